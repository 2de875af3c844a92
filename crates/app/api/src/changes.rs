//! What changed between the inputs of two attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

/// What an attempt started from, compared with another one's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The id of the attempt or run that was compared.
    pub against: String,
    /// What was compared: `the last good run`, `attempt 1`.
    pub label: String,
    /// What differs, by kind, and in the explanation of a failure with what fits it best first; empty if nothing that can be compared does.
    pub changes: Vec<Change>,
    /// What cannot be compared; where it is not empty, `changes` may not be all.
    pub unknown: Vec<UnknownChange>,
}

impl Diff {
    /// What to say of a difference without changes.
    #[must_use]
    pub fn without_changes(&self) -> &'static str {
        if self.unknown.is_empty() { "no difference" } else { "no difference in what can be compared" }
    }
}

closed_list!(
    /// What an attempt starts from, in the order in which differences are shown.
    InputKind, "kind of input", {
        /// The script of the command.
        Script = "script",
        /// A file that the command names, such as a configuration.
        File = "file",
        /// A key of the run file, or the command.
        Setting = "setting",
        /// The commit that is checked out.
        Commit = "commit",
        /// A file that differs between the commits.
        Code = "code",
        /// What is not committed.
        Uncommitted = "uncommitted",
        /// A data set.
        Data = "data",
        /// A package, or the interpreter.
        Package = "package",
        /// A variable of the environment.
        Variable = "variable",
        /// A parameter that the script recorded.
        Parameter = "parameter",
        /// The container image.
        Image = "image",
        /// Where it ran.
        Machine = "machine",
        /// The rung of the ladder.
        Rung = "rung",
    }
);

/// Something whose value differs; a null side means that it was added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What it is.
    pub kind: InputKind,
    /// Its name: of a setting the key, with dots between the levels and `[n]` for list places; of a file its path from the working
    /// directory, and of a file of settings also the key in it (`c.json: steps`).
    pub key: String,
    /// The value before: of settings as JSON, of files the beginning of their BLAKE3.
    pub before: Option<String>,
    /// The value now.
    pub after: Option<String>,
    /// How many lines differ, for texts whose bytes are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineCount>,
    /// Why it fits a failure, in an explanation; null: it is not known to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits_because: Option<String>,
}

impl Change {
    /// `c.json: steps: 10 → 20`, or `t.py: +3 −1`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".into());
        match &self.lines {
            Some(lines) if self.before.is_some() && self.after.is_some() => format!("{}: {lines}", self.key),
            _ => format!("{}: {} → {}", self.key, side(&self.before), side(&self.after)),
        }
    }
}

/// Lines by which two texts differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineCount {
    /// Lines that only the later text has.
    pub added: u64,
    /// Lines that only the earlier one has.
    pub removed: u64,
}

impl std::fmt::Display for LineCount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "+{} −{}", self.added, self.removed)
    }
}

/// Something of which it is not known whether, or how, it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownChange {
    /// What it is.
    pub kind: InputKind,
    /// What is missing, as a sentence.
    pub why: String,
}
