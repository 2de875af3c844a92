//! Names that people give: which are legal, and what the others already mean (`docs/names.md`).
//!
//! One rule for every source: what a user gives is refused with the reason ([`Name::new`]), what comes from elsewhere
//! is renamed ([`Name::renamed`]). A legal name never reads as an id, as the beginning of one, as `last` or as
//! `RUN/NUMBER`, so that a reference on a command line has one meaning.

use std::fmt;

use crate::registry::ModelStage;
use crate::{AttemptId, EvaluationId, GroupId, ProofId, RunId};

/// The reference to the newest run, or the newest evaluation.
pub const LAST: &str = "last";
/// What a name that reads as something else is followed by where it cannot be refused.
pub const RENAMED_SUFFIX: &str = "-renamed";
/// The fewest digits that are taken for the beginning of a digest.
pub const DIGEST_PREFIX_MIN: usize = 4;

/// The longest name of a snapshot, a model or an alias.
const NAME_BYTES_MAX: usize = 100;
/// Digits of a SHA-256.
const DIGEST_LENGTH: usize = 64;
/// Digits of a ULID.
const ULID_LENGTH: usize = 26;
/// The first digit of every ULID until the year 3084.
const ULID_FIRST: char = '0';
const PREFIXES: [&str; 5] =
    [RunId::PREFIX, AttemptId::PREFIX, ProofId::PREFIX, EvaluationId::PREFIX, GroupId::PREFIX];
/// Words of the registry that are not aliases; stages are not either.
const ALIAS_WORDS: [&str; 2] = ["latest", "none"];

/// What a name is given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A run. Several may have the same name.
    Run,
    /// A snapshot of data; its name is part of a file's.
    Snapshot,
    /// A model of the registry; its name is part of folders and pins.
    Model,
    /// An alias of a version of a model.
    Alias,
}

/// A legal name. It has no other constructors than those that check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why a string is refused as a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` cannot be the name of {}: {why}", .of.noun())]
pub struct NameError {
    word: String,
    of: NameKind,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Empty,
    Letters,
    Word,
    Id,
    Digest,
    AttemptOfRun,
    Version,
}

impl NameKind {
    const fn noun(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Snapshot => "a snapshot",
            Self::Model => "a model",
            Self::Alias => "an alias",
        }
    }
}

impl Name {
    /// A name that a person gives.
    ///
    /// # Errors
    /// [`NameError`] for a string that reads as something else already, or has characters that names of this kind do
    /// not have.
    pub fn new(named: NameKind, word: &str) -> Result<Self, NameError> {
        match fault(named, word) {
            None => Ok(Self(word.to_owned())),
            Some(why) => Err(NameError { word: word.to_owned(), of: named, why }),
        }
    }

    /// A name from a source that cannot be prompted for another one: an import's, a script's, one that an older program
    /// took. One that reads as something else gets [`RENAMED_SUFFIX`], an empty one becomes `unnamed`.
    #[must_use]
    pub fn renamed(named: NameKind, word: &str) -> Self {
        match fault(named, word) {
            None => Self(word.to_owned()),
            Some(Why::Empty) => Self("unnamed".into()),
            Some(_) => Self(format!("{word}{RENAMED_SUFFIX}")),
        }
    }

    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl NameError {
    /// Why it is refused.
    #[must_use]
    pub fn why(&self) -> String {
        self.why.to_string()
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self.why {
            Why::Empty => "give at least one letter".into(),
            Why::Letters => {
                let first = if self.of == NameKind::Snapshot { "a letter" } else { "a letter or a digit" };
                format!("use 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`, the first {first}")
            }
            Why::AttemptOfRun => {
                format!("write it without the slash, such as `{}`", self.word.replace('/', "-"))
            }
            Why::Word | Why::Id | Why::Digest | Why::Version => {
                "choose another name; docs/names.md lists what is reserved".into()
            }
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "it is empty",
            Self::Letters => "it is too long or has invalid characters",
            Self::Word => "the word is reserved",
            Self::Id => "it looks like an id or the beginning of one",
            Self::Digest => "it looks like a digest or the beginning of one",
            Self::AttemptOfRun => "it looks like the number of an attempt of a run",
            Self::Version => "it looks like the number of a version",
        })
    }
}

/// `RUN/NUMBER`: an attempt of a run by its number.
#[must_use]
pub fn attempt_of_run(word: &str) -> Option<(&str, u32)> {
    let (run, number) = word.rsplit_once('/')?;
    Some((run, number.parse().ok()?))
}

/// Whether a string is read as a digest or the beginning of one, and as nothing else.
#[must_use]
pub fn is_digest_prefix(word: &str) -> bool {
    (DIGEST_PREFIX_MIN..=DIGEST_LENGTH).contains(&word.len())
        && word.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn fault(named: NameKind, word: &str) -> Option<Why> {
    if word.trim().is_empty() {
        return Some(Why::Empty);
    }
    if word == LAST {
        return Some(Why::Word);
    }
    if reads_as_id(word) {
        return Some(Why::Id);
    }
    if attempt_of_run(word).is_some() {
        return Some(Why::AttemptOfRun);
    }
    // Only snapshots are found by the beginning of a digest; `20260501` and `decade` may well name a run.
    if is_digest_prefix(word) && (word.len() == DIGEST_LENGTH || named == NameKind::Snapshot) {
        return Some(Why::Digest);
    }
    if named != NameKind::Run && !is_plain(named, word) {
        return Some(Why::Letters);
    }
    if named != NameKind::Alias {
        return None;
    }
    let is_stage = ModelStage::ALL.iter().any(|stage| stage.as_str() == word);
    if is_stage || ALIAS_WORDS.contains(&word) {
        return Some(Why::Word);
    }
    word.strip_prefix('v').unwrap_or(word).parse::<u32>().is_ok().then_some(Why::Version)
}

fn reads_as_id(word: &str) -> bool {
    let is_ulid_beginning = |digits: &str| {
        digits.starts_with(ULID_FIRST) && digits.len() <= ULID_LENGTH && digits.chars().all(is_ulid_digit)
    };
    let of_prefix = PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix));
    match of_prefix {
        Some(digits) => digits.is_empty() || is_ulid_beginning(digits),
        None => word.len() == ULID_LENGTH && is_ulid_beginning(word),
    }
}

/// Crockford's digits: no i, l, o and u.
fn is_ulid_digit(letter: char) -> bool {
    letter.is_ascii_alphanumeric() && !matches!(letter.to_ascii_lowercase(), 'i' | 'l' | 'o' | 'u')
}

/// Whether the name may be a part of a file's name.
fn is_plain(named: NameKind, word: &str) -> bool {
    let first = word.as_bytes()[0];
    let begins = first.is_ascii_alphabetic() || (named != NameKind::Snapshot && first.is_ascii_digit());
    begins
        && word.len() <= NAME_BYTES_MAX
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "run_01arz3ndektsv4rrffq69g5fav";

    /// Proves that a string which means something else is refused as a name of anything, and that the reason is given.
    #[test]
    fn words_that_mean_something_else_are_refused() {
        let digest = "0123456789abcdef".repeat(4);
        let cases = [
            ("last", "reserved"),
            (ID, "an id"),
            (&ID[..9], "an id"),
            ("run_0", "an id"),
            ("run_", "an id"),
            ("att_01", "an id"),
            ("evl_01arz3ndektsv4rrffq69g5fav", "an id"),
            ("prf_0", "an id"),
            (&ID[4..], "an id"),
            (&ID[4..].to_uppercase(), "an id"),
            ("exp/1", "attempt of a run"),
            ("a/b/12", "attempt of a run"),
            (&digest, "a digest"),
            (" ", "empty"),
        ];
        for (word, why) in cases {
            for named in [NameKind::Run, NameKind::Snapshot, NameKind::Model, NameKind::Alias] {
                let error = Name::new(named, word).unwrap_err();
                assert!(error.to_string().contains(why), "{error}");
                assert!(!error.hint().is_empty());
            }
            assert!(Name::new(NameKind::Run, Name::renamed(NameKind::Run, word).as_str()).is_ok(), "{word}");
        }
    }

    /// Proves that usual names of runs stay what they are.
    #[test]
    fn usual_names_are_legal() {
        for word in [
            "exp", "v1", "7b", "run_1", "run_baseline", "run_best", "2024", "deadbeef", "exp/1a", "last-one",
            "ünï 1", "3",
        ] {
            assert_eq!(Name::new(NameKind::Run, word).unwrap().as_str(), word);
            assert_eq!(Name::renamed(NameKind::Run, word).as_str(), word);
        }
    }

    /// Proves that the words of the registry are not aliases, and that a snapshot is not named like a digest.
    #[test]
    fn each_kind_of_name_has_its_own_words() {
        let refused = |named, word| Name::new(named, word).map_err(|error| error.why).err();
        for (word, why) in [
            ("none", Why::Word),
            ("latest", Why::Word),
            ("production", Why::Word),
            ("3", Why::Version),
            ("v3", Why::Version),
            ("-x", Why::Letters),
            ("a b", Why::Letters),
        ] {
            assert_eq!(refused(NameKind::Alias, word), Some(why), "{word}");
        }
        for (word, why) in [
            ("cafe", Why::Digest),
            ("decade", Why::Digest),
            ("1abc", Why::Digest),
            ("-x", Why::Letters),
            ("ü", Why::Letters),
        ] {
            assert_eq!(refused(NameKind::Snapshot, word), Some(why), "{word}");
        }
        let good =
            [(NameKind::Alias, "champion"), (NameKind::Snapshot, "cafe-1"), (NameKind::Model, "3d-net")];
        for (named, word) in good {
            assert_eq!(Name::new(named, word).unwrap().as_str(), word);
        }
        assert_eq!(refused(NameKind::Model, "in/come"), Some(Why::Letters));
    }
}
