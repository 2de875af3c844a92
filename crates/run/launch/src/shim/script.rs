//! Starting the script, and explaining why it could not be started.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::libc;
use nix::unistd::Pid;

use super::signals;
use crate::Isolation;
use crate::exit_record::SpawnError;

/// The script's ends of its streams.
pub(super) struct Streams {
    /// None: an empty standard input.
    pub stdin: Option<OwnedFd>,
    pub stdout: File,
    pub stderr: File,
}

/// Starts the script in a new process group, with signals as a fresh process has them. Its environment is the shim's.
pub(super) fn spawn(
    argv: &[OsString],
    working_directory: &Path,
    isolation: Option<&Isolation>,
    streams: Streams,
) -> Result<Pid, (io::Error, FailedAt)> {
    let Some((program, arguments)) = argv.split_first().filter(|(program, _)| !program.is_empty()) else {
        return Err((io::Error::from_raw_os_error(libc::ENOENT), FailedAt::EmptyCommand));
    };
    match std::fs::metadata(working_directory) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err((io::Error::from_raw_os_error(libc::ENOTDIR), FailedAt::WorkingDirectory)),
        Err(error) => return Err((error, FailedAt::WorkingDirectory)),
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(working_directory)
        .stdin(streams.stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(streams.stdout)
        .stderr(streams.stderr)
        .process_group(0);
    trackway_files::restore_umask(&mut command);
    // Before the signals are reset: what runs last in the child runs as the script will.
    isolation
        .map_or(Ok(()), |isolation| isolation.apply(&mut command))
        .map_err(|error| (error, FailedAt::Isolation))?;
    // SAFETY: the function makes async-signal-safe calls only and allocates nothing.
    unsafe { command.pre_exec(signals::reset_for_script) };
    // The shim waits for every child by itself; dropping the handle leaves the process alone.
    let child = command.spawn().map_err(|error| (error, FailedAt::Execute))?;
    Ok(Pid::from_raw(child.id() as i32))
}

/// What was being tried when it went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedAt {
    EmptyCommand,
    WorkingDirectory,
    Isolation,
    Execute,
}

/// Explains what went wrong and what to do. `program` must be free of secrets.
pub(super) fn explain(
    error: &io::Error,
    at: FailedAt,
    program: &str,
    working_directory: &Path,
) -> SpawnError {
    let folder = working_directory.display();
    let is_path = program.contains('/');
    let there = is_path && working_directory.join(program).exists();
    let message = match (at, error.raw_os_error()) {
        (FailedAt::EmptyCommand, _) => "the command is empty; give a program and its arguments".to_owned(),
        (FailedAt::WorkingDirectory, _) => {
            format!("cannot enter the working directory `{folder}`: {error}; does it exist on this machine?")
        }
        (FailedAt::Isolation, _) => {
            format!("the folder `{folder}` cannot be kept apart from what the script writes: {error}")
        }
        (_, Some(libc::ENOENT)) if there => format!(
            "`{program}` exists, but the interpreter in its first line (or its dynamic loader) does not"
        ),
        (_, Some(libc::ENOENT)) if is_path => format!("`{program}` does not exist (seen from `{folder}`)"),
        (_, Some(libc::ENOENT)) => {
            format!("command `{program}` was not found in PATH; is its environment activated?")
        }
        (_, Some(libc::EACCES)) => {
            format!("`{program}` is not executable: run `chmod +x` on it, or name its interpreter")
        }
        (_, Some(libc::ENOEXEC)) => {
            format!(
                "`{program}` is not executable on this system; name its interpreter, such as `python {program}`"
            )
        }
        (_, Some(libc::E2BIG)) => "the arguments and the environment are too long for the system".to_owned(),
        _ => format!("cannot start `{program}` in `{folder}`: {error}"),
    };
    SpawnError { errno: error.raw_os_error(), message }
}
