//! The stacks of an attempt that makes no progress: taken once by the launcher, kept as a file of its folder, reported
//! in a line.

use trackway_formats::layout::AttemptLayout;
use trackway_launch::{Launcher, Placement, ProcessStack, StackDump};

/// Dumps of one attempt that are kept.
const DUMPS_MAX: usize = 20;
/// Processes that a line names.
const PROCESSES_LISTED: usize = 3;

/// A dump that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stacks {
    /// The file, from the attempt's folder.
    pub path: String,
    /// Where the first processes are.
    pub summary: String,
}

/// Takes the stacks of all processes of an attempt and stores them in its folder.
///
/// # Errors
/// Why there are none: the training continues without.
pub fn take(
    launcher: &dyn Launcher,
    placement: &Placement,
    attempt: &AttemptLayout,
) -> Result<Stacks, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the stacks could not be taken: {error}");
    let path = (1..=DUMPS_MAX)
        .map(|number| attempt.stack_dump(number))
        .find(|path| !path.exists())
        .ok_or_else(|| failed(&format!("there are {DUMPS_MAX} dumps of this attempt already")))?;
    let dump = launcher.stacks(placement).map_err(|error| failed(&error))?;
    if dump.processes.is_empty() {
        return Err(failed(&"no process of the attempt can be seen"));
    }
    let bytes = serde_json::to_vec_pretty(&dump).map_err(|error| failed(&error))?;
    std::fs::create_dir_all(attempt.stacks())
        .and_then(|()| std::fs::write(&path, bytes))
        .map_err(|error| failed(&error))?;
    Ok(Stacks { path: attempt.below(&path), summary: summary(&dump) })
}

/// The dump that a detection names, a line for each process; none where it is gone with the attempt's other files.
pub fn lines(attempt: &AttemptLayout, path: &str) -> Vec<String> {
    let dump = std::fs::read(attempt.folder().join(path))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<StackDump>(&bytes).ok());
    dump.map(|dump| dump.processes.iter().map(ProcessStack::in_one_line).collect()).unwrap_or_default()
}

fn summary(dump: &StackDump) -> String {
    let lines: Vec<String> =
        dump.processes.iter().take(PROCESSES_LISTED).map(ProcessStack::in_one_line).collect();
    let more = dump.processes.len() + dump.left_out - lines.len();
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", lines.join("; "))
}
