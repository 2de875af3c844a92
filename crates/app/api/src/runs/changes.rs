//! What changed between the inputs of two attempts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

/// The side of a file that does not differ from its commit, where the other side is what was changed without a commit.
pub const AS_COMMITTED: &str = "as committed";

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
        /// A file that the command names, or another one below its folders that git does not compare.
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
    /// These lines, each behind `-` or `+`, where they are few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_lines: Vec<String>,
    /// Why it fits a failure, in an explanation; null: it is not known to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits_because: Option<String>,
    /// Whether only comments and docstrings differ.
    #[serde(skip)]
    pub is_of_comments: bool,
}

impl Change {
    /// A change of this kind, from and to.
    #[must_use]
    pub fn new(
        kind: InputKind,
        key: impl Into<String>,
        before: Option<String>,
        after: Option<String>,
    ) -> Self {
        let key = key.into();
        let (lines, shown_lines) = (None, Vec::new());
        Self { kind, key, before, after, lines, shown_lines, fits_because: None, is_of_comments: false }
    }

    /// The line that became another one, if no other line differs.
    #[must_use]
    pub fn one_line(&self) -> Option<(&str, &str)> {
        match self.shown_lines.as_slice() {
            [before, after] => Some((before.strip_prefix('-')?.trim(), after.strip_prefix('+')?.trim())),
            _ => None,
        }
    }

    /// `c.json: steps: 10 → 20`, or `t.py: +3 −1`. What is new since the commit has no value before it: `gone.txt: deleted`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".into());
        match &self.lines {
            Some(lines) if self.before.is_some() && self.after.is_some() => format!("{}: {lines}", self.key),
            _ if self.before.as_deref() == Some(AS_COMMITTED) => {
                format!("{}: {}", self.key, side(&self.after))
            }
            _ => format!("{}: {} → {}", self.key, side(&self.before), side(&self.after)),
        }
    }
}

/// Lines by which two texts differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    pub kind: InputKind,
    /// What is missing, as a sentence.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a file which was there is not called absent where only its uncommitted change is new, and that what
    /// was added or removed is.
    #[test]
    fn a_file_that_was_there_is_not_absent() {
        let sentence = |before: Option<&str>, after: Option<&str>, lines: Option<LineCount>| {
            let owned = |side: Option<&str>| side.map(str::to_owned);
            let change = Change::new(InputKind::Uncommitted, "a.yaml", owned(before), owned(after));
            Change { lines, ..change }.sentence()
        };
        let lines = Some(LineCount { added: 1, removed: 1 });
        assert_eq!(sentence(Some(AS_COMMITTED), Some("+1 −1"), lines), "a.yaml: +1 −1");
        assert_eq!(sentence(Some(AS_COMMITTED), Some("deleted"), None), "a.yaml: deleted");
        assert_eq!(sentence(Some("+1 −1"), Some(AS_COMMITTED), None), "a.yaml: +1 −1 → as committed");
        assert_eq!(sentence(None, Some("1"), None), "a.yaml: (absent) → 1");
    }

    /// Proves that a line became another one only where no other line differs, and that two attempts which cannot be
    /// compared as a whole are not called equal.
    #[test]
    fn one_line_is_all_that_differs() {
        let change = |lines: &[&str]| {
            let shown_lines = lines.iter().map(|line| (*line).to_owned()).collect();
            Change { shown_lines, ..Change::new(InputKind::Script, "t.py", None, None) }
        };
        assert_eq!(change(&["-  lr = 1", "+  lr = 2"]).one_line(), Some(("lr = 1", "lr = 2")));
        assert_eq!(change(&["-a", "-b"]).one_line(), None);
        assert_eq!(change(&["+a"]).one_line(), None);
        assert_eq!(change(&["-a", "+b", "+c"]).one_line(), None);
        let said = |unknown: Vec<UnknownChange>| {
            let (against, label) = ("a".to_owned(), "attempt 1".to_owned());
            Diff { against, label, changes: Vec::new(), unknown }.without_changes()
        };
        let unknown = UnknownChange { kind: InputKind::Data, why: "it has no hash".into() };
        assert_eq!(said(Vec::new()), "no difference");
        assert_eq!(said(vec![unknown]), "no difference in what can be compared");
    }
}
