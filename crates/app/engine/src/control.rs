//! The control file: requests of the supervisor to the training process (DESIGN §3.4).

use std::io::Read as _;

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_launch::{AttemptChannel, ChannelReader, GrowingFile};
use trackway_recorder::SaveReason;
use trackway_redact::Redactor;

/// Bytes of earlier requests that are read for the number of the next one.
const CONTROL_BYTES_MAX: u64 = 4 << 20;

/// The request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Save a checkpoint and end.
    Stop,
    /// Save a checkpoint at the end of this step and continue, for this reason.
    CheckpointNow(SaveReason),
}

/// The name of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Save a checkpoint and end.
    Stop,
    /// Save a checkpoint and continue.
    CheckpointNow,
}

/// One line of the control file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlLine {
    /// Of this format.
    pub version: u32,
    /// Counted from 1 in this file; acknowledgements name it.
    pub id: u64,
    /// When it was requested.
    pub at: String,
    /// The command.
    pub command: Command,
    /// The kind of reason for the checkpoint: `asked` or `anomaly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// By whom and why.
    pub why: String,
}

/// Sends a request to the script of an attempt and returns its id.
///
/// The line is written with one call, so that a reader sees all of it or nothing that ends in a newline.
/// Two writers may pick the same id; readers act on every line, so nothing is lost. Secrets in `why` are removed.
///
/// # Errors
/// When it cannot be sent.
pub fn request(
    channel: &dyn AttemptChannel,
    command: Request,
    why: &str,
    now: Timestamp,
) -> std::io::Result<u64> {
    let mut sent = Vec::new();
    // A number that another request has too is better than no request.
    let _ = ChannelReader::new(channel, GrowingFile::Control).take(CONTROL_BYTES_MAX).read_to_end(&mut sent);
    let id = sent.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let (command, reason) = match command {
        Request::Stop => (Command::Stop, None),
        Request::CheckpointNow(reason) => (Command::CheckpointNow, Some(reason.as_str().into())),
    };
    let why = Redactor::of_this_process().text(why).into_owned();
    let line = ControlLine { version: 1, id, at: now.to_rfc3339(), command, reason, why };
    let mut text = serde_json::to_string(&line).map_err(std::io::Error::other)?;
    text.push('\n');
    channel.send_control(text.as_bytes())?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use trackway_launch::FolderChannel;

    use super::*;

    /// Proves that requests are numbered and are on separate lines.
    #[test]
    fn requests_are_appended_and_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let channel = FolderChannel::new(folder.path());
        let now = Timestamp::from_micros(0);
        let anomaly = Request::CheckpointNow(SaveReason::Anomaly);
        assert_eq!(request(&channel, anomaly, "a spike", now).unwrap(), 1);
        assert_eq!(request(&channel, Request::Stop, "Ctrl-C", now).unwrap(), 2);
        let text = std::fs::read_to_string(folder.path().join("control.jsonl")).unwrap();
        let lines: Vec<ControlLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines[0].command, lines[0].reason.as_deref()), (Command::CheckpointNow, Some("anomaly")));
        assert_eq!((lines[1].command, &lines[1].reason), (Command::Stop, &None));
        assert_eq!(lines[1].id, 2);
    }

    /// Proves that a secret in a reason does not reach the control file.
    #[test]
    fn reasons_hold_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let channel = FolderChannel::new(folder.path());
        let token = format!("ghp{}{}", "_", "a1B2c3D4e5F6".repeat(3));
        request(&channel, Request::Stop, &format!("asked with {token}"), Timestamp::from_micros(0)).unwrap();
        let text = std::fs::read_to_string(folder.path().join("control.jsonl")).unwrap();
        assert!(text.contains("[redacted:github-token]") && !text.contains(&token), "{text}");
    }
}
