//! Sends requests of the supervisor to the training process.

use std::io::Read as _;

use trackway_core::Timestamp;
use trackway_formats::control::{self, Command};
use trackway_launch::{AttemptChannel, ChannelReader, GrowingFile};
use trackway_redact::Redactor;

/// Bytes of earlier requests that are read for the number of the next one.
const CONTROL_BYTES_MAX: u64 = 4 << 20;

/// Sends a request to the script of an attempt and returns its id.
///
/// The line is written with one call, so that a reader sees all of it or nothing that ends in a newline.
/// Two writers may pick the same id; readers act on every line, so nothing is lost. Secrets in `why` are removed.
///
/// # Errors
/// When it cannot be sent.
pub fn request(
    channel: &dyn AttemptChannel,
    command: Command,
    why: &str,
    now: Timestamp,
) -> std::io::Result<u64> {
    let mut sent = Vec::new();
    // A number that another request has too is better than no request.
    let _ = ChannelReader::new(channel, GrowingFile::Control).take(CONTROL_BYTES_MAX).read_to_end(&mut sent);
    let id = control::next_id(&sent);
    let why = Redactor::of_this_process().text(why);
    channel.send_control(control::line(id, now, command, &why).as_bytes())?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use trackway_formats::SaveReason;
    use trackway_formats::control::{Line, LineReader};
    use trackway_launch::FolderChannel;

    use super::*;

    fn sent(channel: &FolderChannel) -> Vec<u8> {
        channel.read(GrowingFile::Control, 0, CONTROL_BYTES_MAX).unwrap()
    }

    /// Proves that requests are numbered and appended, and that a reader of the script reads them as they were sent.
    #[test]
    fn requests_are_appended_and_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let channel = FolderChannel::new(folder.path());
        let now = Timestamp::from_micros(0);
        let anomaly = Command::CheckpointNow(SaveReason::Anomaly);
        assert_eq!(request(&channel, anomaly, "a spike", now).unwrap(), 1);
        assert_eq!(request(&channel, Command::Stop, "Ctrl-C", now).unwrap(), 2);
        let lines = LineReader::default().read(&sent(&channel));
        let line = |id, command, why: &str| Line::Request { id, command, why: why.into() };
        assert_eq!(lines, [line(1, anomaly, "a spike"), line(2, Command::Stop, "Ctrl-C")]);
    }

    /// Proves that a secret in a reason does not reach the control file.
    #[test]
    fn reasons_hold_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let channel = FolderChannel::new(folder.path());
        let token = format!("ghp{}{}", "_", "a1B2c3D4e5F6".repeat(3));
        request(&channel, Command::Stop, &format!("asked with {token}"), Timestamp::from_micros(0)).unwrap();
        let text = String::from_utf8(sent(&channel)).unwrap();
        assert!(text.contains("[redacted:github-token]") && !text.contains(&token), "{text}");
    }
}
