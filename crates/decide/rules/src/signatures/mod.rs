//! What the programs of this field print when something ends, as data.
//!
//! A [`Signature`] describes a *mechanism* (a kernel that kills, a library that reports ENOSPC, a scheduler that
//! cancels), never one program's one line. Each family of mechanisms has its own table, a TOML file in `tables/`, of
//! which `build/` makes Rust when the crate is built. The tables have the meaning of a line alone; `classify` decides
//! what it means beside other lines.
//!
//! A signature has `phrases`, one a line: a regular expression, and a line in which it is what is found first. A phrase
//! without such an example is dead, and a test fails. `unless` has what rules a line out, each with a line that only it
//! rules out; `near` has lines like those that match, which do not.

pub mod engine;
mod named;
mod rule_name;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use trackway_core::{TerminationReason, UnknownWord};

pub(crate) use named::{
    checkpoint, code, collective, completion, data, early_stop, evaluator, exception_names, markers,
    memory_host, network, node, numeric, operator, scheduler,
};
pub use rule_name::RuleName;

/// What a line that matches a signature means for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// An authority outside the script (kernel, scheduler, platform) states why it ended the work.
    Verdict,
    /// The failing operation itself reports what went wrong.
    Cause,
    /// An exception of no particular family; it names a cause only when nothing more specific does.
    Exception,
    /// Something that follows from an earlier end elsewhere; read as a cause only when nothing earlier is seen.
    Consequence,
    /// The trainer or the platform states that the work reached its end.
    Completion,
    /// Something that happens in healthy runs too.
    Hint,
    /// The error just before it was handled.
    Handled,
    /// Joins two exceptions of one traceback.
    Chain,
}

/// One mechanism and how to see it in a line.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// A stable name, `family.mechanism`; it is the rule's name in a verdict.
    pub name: RuleName,
    /// The reason if this mechanism is the cause.
    pub reason: TerminationReason,
    /// What the line means for the end.
    pub role: Role,
    /// Whether the line, unhandled and uncontradicted, admits no other reading.
    pub conclusive: bool,
    /// The number of its first phrase among those of all signatures.
    pub(crate) first_phrase: u16,
    /// What it is seen by: regular expressions; ASCII, case-insensitive unless they contain `(?-i:…)`.
    pub phrases: &'static [&'static str],
    /// A line that has one of these too is not a hit.
    pub unless: &'static [Exception],
}

/// What rules a line out.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// As in [`Signature::phrases`].
    pub phrase: &'static str,
    /// Lower-case literals of which every match has one, where it has any.
    pub(crate) literals: &'static [&'static [u8]],
}

impl Exception {
    /// Whether the line, in lower case, may have the phrase.
    pub(crate) fn may_be_in(&self, lowered: &[u8]) -> bool {
        let has = |literal: &&[u8]| memchr::memmem::find(lowered, literal).is_some();
        self.literals.is_empty() || self.literals.iter().any(has)
    }
}

include!(concat!(env!("OUT_DIR"), "/signatures.rs"));

/// Every signature, in the order in which they are tried.
pub fn all() -> impl Iterator<Item = &'static Signature> {
    SIGNATURES.iter()
}

/// The number of the signature that has the phrase of this number; `None` for what is of tracebacks.
pub(crate) fn number_of(phrase: u16) -> Option<u16> {
    SIGNATURE_OF.get(usize::from(phrase)).copied()
}

impl RuleName {
    /// Every name, in the order of the tables.
    pub fn every() -> impl Iterator<Item = Self> {
        all().map(|row| row.name).chain(engine::all().map(|(_, state)| state.rule))
    }
}

impl FromStr for RuleName {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Self::every()
            .find(|name| name.as_str() == word)
            .ok_or_else(|| UnknownWord::new(word, "signature", &[]))
    }
}
