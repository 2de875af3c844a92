//! One way in which a secret shows, and what of the bytes it reads.

use std::sync::Arc;

use once_cell::race::OnceBox;
use regex::bytes::{Regex, RegexBuilder};

/// What of the bytes a rule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadExtent {
    /// The line of the trigger.
    Line,
    /// So many lines from that of the trigger on, without what a logger or a difference puts before each.
    Lines(usize),
    /// So many bytes from the beginning of the line: binary data has its line ends anywhere.
    Bytes(usize),
    /// The column of a table below a header.
    Column,
    /// What is assigned to the names that the pattern finds, in any language. `is_strong`: whatever it looks like.
    Assigned { is_strong: bool },
    /// The column of a table with bars below a header.
    Grid,
}

/// One way in which a secret shows.
pub(crate) struct Rule {
    /// The kind shown in `[redacted:kind]`.
    pub kind: &'static str,
    /// Strings of which one must be in the line, in any case. Rules of the same names have them in common.
    pub triggers: Arc<[String]>,
    pub reading: ReadExtent,
    /// The first group that took part is the secret, in several lines each of them; without groups the whole match is.
    pub pattern: String,
    /// A test of the secret beyond the regex.
    pub accept: fn(&[u8]) -> bool,
    pub compiled: OnceBox<Regex>,
}

impl Rule {
    pub fn new(
        kind: &'static str,
        triggers: &[&str],
        pattern: impl Into<String>,
        accept: fn(&[u8]) -> bool,
    ) -> Self {
        Self {
            kind,
            triggers: triggers.iter().map(|trigger| (*trigger).to_owned()).collect(),
            reading: ReadExtent::Line,
            pattern: pattern.into(),
            accept,
            compiled: OnceBox::new(),
        }
    }

    pub fn of(row: &Row) -> Self {
        Self { reading: row.reading, ..Self::new(row.kind, row.triggers, row.pattern, row.accept) }
    }

    pub fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            let built = RegexBuilder::new(&self.pattern).unicode(false).build();
            Box::new(built.expect("every pattern of the table is compiled by a test"))
        })
    }
}

/// A rule as a table has it.
pub(crate) struct Row {
    pub kind: &'static str,
    pub triggers: &'static [&'static str],
    pub reading: ReadExtent,
    pub pattern: &'static str,
    pub accept: fn(&[u8]) -> bool,
}

/// A row that reads the line of its trigger.
pub(crate) const fn row(
    kind: &'static str,
    triggers: &'static [&'static str],
    pattern: &'static str,
    accept: fn(&[u8]) -> bool,
) -> Row {
    Row { kind, triggers, reading: ReadExtent::Line, pattern, accept }
}
