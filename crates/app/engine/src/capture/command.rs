//! Starting a helper program (git, Python) with bounds on its time and its output.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The most of a helper's stderr that is kept for the reason why it failed.
const MAX_STDERR_BYTES: u64 = 4096;

/// Runs the program and hands its stdout, at most `max_bytes` of it, to `read` while it runs.
///
/// `Err` explains why there is no answer: not found, ended with an error (with the first line of its stderr), or out of
/// time, in which case its whole process group is killed.
pub(crate) fn stream<T: Send + 'static>(
    mut command: Command,
    limit: Duration,
    max_bytes: u64,
    read: impl FnOnce(&mut dyn Read) -> std::io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("`{program}` is not installed"),
        _ => format!("`{program}` could not be started: {error}"),
    })?;
    let group = Pid::from_raw(child.id().cast_signed());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let complaint = stderr.map(|stderr| std::thread::spawn(move || head_of(stderr)));
        let answer = stdout.map(|stdout| read_and_drain(stdout, max_bytes, read));
        let status = child.wait();
        let complaint = complaint.and_then(|reader| reader.join().ok()).unwrap_or_default();
        // The receiver is gone after a timeout; the answer is not needed then.
        let _ = sender.send((answer, complaint, status));
    });
    let Ok((answer, complaint, status)) = receiver.recv_timeout(limit) else {
        // The thread still waits for the child, so its number cannot belong to another process yet.
        let _ = killpg(group, Signal::SIGKILL);
        return Err(format!("`{program}` did not answer within {} s", limit.as_secs()));
    };
    match (status, answer) {
        (Ok(status), Some(Ok(answer))) if status.success() => Ok(answer),
        (Ok(status), _) => Err(failure(&program, &status.to_string(), &complaint)),
        (Err(error), _) => Err(format!("`{program}` could not be waited for: {error}")),
    }
}

/// Hands over the first bytes and skips the rest, so that the program can end.
fn read_and_drain<T>(
    mut stdout: ChildStdout,
    max_bytes: u64,
    read: impl FnOnce(&mut dyn Read) -> std::io::Result<T>,
) -> std::io::Result<T> {
    let answer = read(&mut stdout.by_ref().take(max_bytes))?;
    std::io::copy(&mut stdout, &mut std::io::sink())?;
    Ok(answer)
}

/// The first bytes of stderr; the rest is skipped.
fn head_of(mut stderr: ChildStderr) -> Vec<u8> {
    let mut head = Vec::new();
    // What could not be read only makes the message shorter.
    let _ = stderr.by_ref().take(MAX_STDERR_BYTES).read_to_end(&mut head);
    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    head
}

/// Runs the program and returns its stdout, cut at `max_bytes`.
pub(crate) fn output(command: Command, limit: Duration, max_bytes: u64) -> Result<Vec<u8>, String> {
    stream(command, limit, max_bytes, |stdout| {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

fn failure(program: &str, status: &str, complaint: &[u8]) -> String {
    let complaint = String::from_utf8_lossy(complaint);
    match complaint.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("`{program}` failed ({status}): {}", line.trim()),
        None => format!("`{program}` failed ({status})"),
    }
}
