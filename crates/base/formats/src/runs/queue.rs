//! Queues: of each at most so many runs of a home run at once on a host (`docs/unattended.md`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How many runs of a queue run at once, unless a settings file says otherwise.
pub const QUEUE_AT_MOST: u32 = 1;
/// The longest name of a queue or an engine, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// The name of a queue, which is also that of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QueueName(String);

/// Why a text is not the name of a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be the name of a queue: use 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`, the first a letter or a digit"
)]
pub struct QueueNameError(String);

/// Whether a text can be the name of something with settings: also that of a folder, which never leads to another one.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
    let begins_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    begins_well && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_plain)
}

impl QueueName {
    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for QueueName {
    type Err = QueueNameError;

    fn from_str(text: &str) -> Result<Self, QueueNameError> {
        match is_plain_name(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(QueueNameError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for QueueName {
    type Error = QueueNameError;

    fn try_from(text: String) -> Result<Self, QueueNameError> {
        text.parse()
    }
}

impl From<QueueName> for String {
    fn from(name: QueueName) -> Self {
        name.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the name of a queue can be that of a folder, and never leads to another folder.
    #[test]
    fn a_name_is_that_of_a_folder() {
        for good in ["gpu", "a100-80.big", "0", "night_runs"] {
            assert_eq!(good.parse::<QueueName>().unwrap().as_str(), good);
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", ".", "..", "../x", "a/b", "a b", "-x", "ä", long.as_str()] {
            let refused = bad.parse::<QueueName>().unwrap_err();
            assert_eq!(refused, QueueNameError(bad.to_owned()));
            let unread = serde_json::from_value::<QueueName>(bad.into()).unwrap_err();
            assert_eq!(unread.to_string(), refused.to_string());
        }
    }
}
