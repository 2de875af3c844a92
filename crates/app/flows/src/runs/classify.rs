//! Names the reason a log ended, without a run.

use std::io::Read;
use std::path::Path;

use trackway_core::LaunchKind;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_rules::classify::{LauncherState, Stream, StreamLog};
use trackway_rules::{LogScanner, TerminationEvidence, TerminationVerdict, classify};

/// Bytes scanned in one piece.
const PIECE_BYTES: usize = 1 << 20;

/// What is known beside the log.
#[derive(Debug, Clone, Default)]
pub struct ExitFacts {
    /// The exit code of the process.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The state that the scheduler reported.
    pub launcher_state: Option<String>,
}

/// Classifies a log file. `progress` is called with the bytes done and the bytes in all, about once a MiB.
///
/// # Errors
/// [`ErrorKind::NotFound`] when it does not exist; when it cannot be read.
pub fn log_file(
    path: &Path,
    known: &ExitFacts,
    progress: &dyn Fn(u64, u64),
) -> Result<TerminationVerdict, AppError> {
    let mut file = std::fs::File::open(path).map_err(|error| {
        let kind =
            if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Fault };
        AppError::new(kind, format!("cannot read the log `{}`", path.display())).because(error)
    })?;
    let total_bytes = file.metadata().map_or(0, |found| found.len());
    log(&mut file, known, &|done_bytes| progress(done_bytes, total_bytes))
}

/// Classifies a log as it is read, in one pass and bounded memory. `progress` is called with the bytes done.
pub fn log(
    log: &mut dyn Read,
    known: &ExitFacts,
    progress: &dyn Fn(u64),
) -> Result<TerminationVerdict, AppError> {
    let mut scanner = LogScanner::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut done_bytes = 0;
    loop {
        match log.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                scanner.feed(&piece[..count]);
                done_bytes += count as u64;
                progress(done_bytes);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(AppError::fault("the log cannot be read", error)),
        }
    }
    let mut evidence = TerminationEvidence::new(LaunchKind::Train);
    evidence.exit_code = known.exit_code;
    evidence.signal = known.signal;
    // A state alone does not identify its scheduler; the rules have the states of all.
    evidence.launcher = known.launcher_state.as_ref().map(|word| LauncherState {
        source: "launcher".into(),
        state: word.clone(),
        reason: String::new(),
    });
    evidence.logs.push(StreamLog { stream: Stream::Stdout, log: scanner.finish() });
    Ok(classify(&evidence))
}
