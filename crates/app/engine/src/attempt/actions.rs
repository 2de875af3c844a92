//! What Trackway itself did to an attempt, written down before it is done: the strongest evidence there is.

use std::fs::OpenOptions;
use std::io::Write as _;

pub use trackway_rules::classify::{ActionKind, OwnAction};

use trackway_formats::layout::AttemptLayout;

use crate::error::AppError;

/// Writes an action down, durably, before it is carried out.
///
/// # Errors
/// When the file cannot be written; the action should then be carried out all the same.
pub fn append(attempt: &AttemptLayout, action: &OwnAction) -> std::io::Result<()> {
    let mut line = serde_json::to_string(action).map_err(std::io::Error::other)?;
    line.push('\n');
    let mut options = OpenOptions::new();
    let mut file = trackway_files::open_own(options.create(true).append(true), &attempt.actions_jsonl())?;
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

/// The actions in the order they were taken. A torn line (a crash while writing) is passed.
///
/// # Errors
/// When the file exists but cannot be read.
pub fn read(attempt: &AttemptLayout) -> Result<Vec<OwnAction>, AppError> {
    let opened = trackway_files::open_trusted(&attempt.actions_jsonl());
    match opened.and_then(std::io::read_to_string) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(AppError::file("read the actions in", attempt.folder(), error)),
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::Timestamp;

    use super::*;

    /// Proves that actions are read back in order and that a torn last line hides none of the earlier ones.
    #[test]
    fn actions_survive_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = AttemptLayout::new(folder.path());
        assert!(read(&attempt).unwrap().is_empty());
        let action =
            |kind| OwnAction { at: Timestamp::from_micros(5), kind, kill_sent: false, why: "test".into() };
        append(&attempt, &action(ActionKind::StopRequested)).unwrap();
        append(&attempt, &action(ActionKind::HangKill)).unwrap();
        let path = attempt.actions_jsonl();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"at\":1,\"ki");
        std::fs::write(&path, text).unwrap();
        assert_eq!(
            read(&attempt).unwrap(),
            [action(ActionKind::StopRequested), action(ActionKind::HangKill)]
        );
    }
}
