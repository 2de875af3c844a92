//! The name of the part of the data that results are of.

use std::ops::Deref;

use super::names;

/// A name is not longer.
const BYTES_MAX: usize = 40;

/// What the names of the values of a part of the data begin with: `val`, `test`, and `test_ood` where its title has a
/// word that distinguishes it from others of its kind. The title alone decides, never those before it or after it: a
/// name is the same over a whole run, and in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) struct PartName {
    part: &'static str,
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl PartName {
    /// A part with the words that distinguish it, in small letters. Those that are no ASCII, or too long, do not.
    pub fn distinguished(part: &'static str, words: &str) -> Self {
        let length = part.len() + 1 + words.len();
        let plain = Self::from(part);
        if words.is_empty() || !words.is_ascii() || length > BYTES_MAX {
            return plain;
        }
        let mut bytes = plain.bytes;
        bytes[part.len()] = b'_';
        bytes[part.len() + 1..length].copy_from_slice(words.as_bytes());
        Self { part, bytes, length }
    }

    /// The words that distinguish it, with underscores between them; empty: none do.
    pub fn distinction(&self) -> &str {
        self.get(self.part.len() + 1..).unwrap_or_default()
    }

    /// The name of a value of the part: `test_ood_acc` of `acc` and of `test_acc`.
    pub fn name_of(&self, value: &str) -> String {
        let is_between = |rest: &&str| rest.starts_with(['_', '/', '.', '-']);
        let is_distinguished = self.length > self.part.len();
        let rest = value.strip_prefix(self.part).filter(|rest| is_distinguished && is_between(rest));
        match rest {
            Some(rest) if !value.starts_with(&**self) => format!("{}{rest}", &**self),
            _ => names::prefixed(self, value),
        }
    }
}

impl From<&'static str> for PartName {
    fn from(part: &'static str) -> Self {
        let mut bytes = [0; BYTES_MAX];
        let length = part.len().min(BYTES_MAX);
        bytes[..length].copy_from_slice(&part.as_bytes()[..length]);
        Self { part, bytes, length }
    }
}

impl Deref for PartName {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or(self.part)
    }
}
