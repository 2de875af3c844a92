//! A process that Trackway did not launch as an attempt: a notebook or a REPL. What is launched in its place waits for it, and ends as
//! it does, so that its end is seen and sealed also when it is killed.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;
use serde::Deserialize;
use trackway_files::TempFile;
use trackway_formats::Variable;

use crate::process::ProcessIdentity;

/// What the process needs to be the attempt: the variables of Trackway, as a JSON object.
pub const ENVIRONMENT_FILE: &str = "environment.json";
/// How the process ended, written by itself: `{"code": 0}`, with the text of the exception that ended it as `error`.
pub const RESULT_FILE: &str = "result.json";
/// Written when the result was read.
pub const TAKEN_FILE: &str = "taken";
/// Names of the variables that make a process the attempt.
const VARIABLE_PREFIX: &str = Variable::PREFIX;
/// How often the process is looked at.
const TURN: Duration = Duration::from_millis(100);
/// A larger result is none.
const RESULT_BYTES_MAX: usize = 256 << 10;

/// The subcommand under which the binary runs [`stand_in`], followed by the process's number and the time of its start.
pub const AWAIT_COMMAND: &str = "__await";

/// The process that a command waits for, if it is one that does.
pub(crate) fn awaited(argv: &[String]) -> Option<ProcessIdentity> {
    let [_, command, pid, start_ticks, ..] = argv else { return None };
    if command != AWAIT_COMMAND {
        return None;
    }
    Some(ProcessIdentity { pid: pid.parse().ok()?, start_ticks: start_ticks.parse().ok()? })
}

#[derive(Debug, PartialEq, Deserialize)]
struct Outcome {
    code: u8,
    #[serde(default)]
    error: String,
}

/// Gives the process its variables, waits until it has ended, and returns its exit code. If it ended without saying how, this
/// process is killed, as that one was.
///
/// # Errors
/// When the folder cannot be written or `/proc` not be read.
pub fn stand_in(process: ProcessIdentity, folder: &Path) -> io::Result<u8> {
    // A request to stop is for the process itself, which reads the control file; it decides when to end.
    for number in [Signal::SIGTERM, Signal::SIGINT] {
        // SAFETY: ignoring a signal runs no code in a handler.
        unsafe { signal(number, SigHandler::SigIgn) }?;
    }
    let variables: BTreeMap<String, String> =
        std::env::vars().filter(|(name, _)| name.starts_with(VARIABLE_PREFIX)).collect();
    TempFile::write(&folder.join(ENVIRONMENT_FILE), &serde_json::to_vec(&variables)?)?;
    loop {
        // In this order: a result may be the last thing that the process did.
        let is_alive = process.is_alive()?;
        if let Some(Outcome { code, error }) = result_in(folder) {
            // As a script would have printed it: here the reason of the end is looked for.
            io::stderr().write_all(error.as_bytes())?;
            TempFile::write(&folder.join(TAKEN_FILE), b"")?;
            return Ok(code);
        }
        if !is_alive {
            let text = format!("process {} ended without finishing its run\n", process.pid);
            io::stderr().write_all(text.as_bytes())?;
            kill(Pid::this(), Signal::SIGKILL)?;
        }
        std::thread::sleep(TURN);
    }
}

fn result_in(folder: &Path) -> Option<Outcome> {
    let bytes =
        std::fs::read(folder.join(RESULT_FILE)).ok().filter(|bytes| bytes.len() <= RESULT_BYTES_MAX)?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the awaited process is read from the command, and from no other one.
    #[test]
    fn the_awaited_process_is_in_the_command() {
        let argv = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let process = ProcessIdentity { pid: 7, start_ticks: 9 };
        assert_eq!(awaited(&argv("trackway __await 7 9 folder")), Some(process));
        assert_eq!(awaited(&argv("trackway __await x 9 folder")), None);
        assert_eq!(awaited(&argv("python train.py 7 9")), None);
    }

    /// Proves that a result is read whole or not at all.
    #[test]
    fn a_result_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |bytes: &[u8]| std::fs::write(folder.path().join(RESULT_FILE), bytes).unwrap();
        assert_eq!(result_in(folder.path()), None);
        for (bytes, expected) in [
            (&b"{\"code\": 3}"[..], Some((3, ""))),
            (b"{\"code\": 1, \"error\": \"KeyError\"}", Some((1, "KeyError"))),
            (b"{\"code\": ", None),
            (b"{\"code\": 300}", None),
            (&vec![b' '; RESULT_BYTES_MAX + 1], None),
        ] {
            write(bytes);
            let found = result_in(folder.path());
            assert_eq!(found.as_ref().map(|outcome| (outcome.code, outcome.error.as_str())), expected);
        }
    }
}
