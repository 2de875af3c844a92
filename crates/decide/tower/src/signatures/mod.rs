//! What the programs of this field print when something ends, as data.
//!
//! A [`Signature`] describes a *mechanism* (a kernel that kills, a library that reports ENOSPC, a scheduler that
//! cancels), never one program's one line. Each family of mechanisms has its own table. The tables have the meaning of
//! a line alone; `classify` decides what it means beside other lines.

mod budget;
pub(crate) mod checkpoint;
pub(crate) mod code;
pub(crate) mod collective;
pub(crate) mod completion;
pub(crate) mod data;
pub(crate) mod early_stop;
pub mod engine;
pub(crate) mod evaluator;
pub(crate) mod exception_names;
pub(crate) mod markers;
mod memory_device;
pub(crate) mod memory_host;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod numeric;
pub(crate) mod operator;
mod rule_name;
pub(crate) mod scheduler;
mod schema;
pub(crate) mod storage;

use std::str::FromStr;

use trackway_core::{TerminationReason, UnknownWord};

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
    /// The regular expression that confirms; ASCII, case-insensitive unless it contains `(?-i:…)`.
    pub pattern: &'static str,
    /// A line that matches this too is not a hit.
    pub unless: Option<&'static str>,
}

impl Signature {
    const fn new(name: &'static str, reason: TerminationReason, role: Role, pattern: &'static str) -> Self {
        Self { name: RuleName(name), reason, role, conclusive: false, pattern, unless: None }
    }

    const fn conclusive(mut self) -> Self {
        self.conclusive = true;
        self
    }

    const fn unless(mut self, pattern: &'static str) -> Self {
        self.unless = Some(pattern);
        self
    }
}

const fn verdict(name: &'static str, reason: TerminationReason, pattern: &'static str) -> Signature {
    Signature::new(name, reason, Role::Verdict, pattern)
}

const fn cause(name: &'static str, reason: TerminationReason, pattern: &'static str) -> Signature {
    Signature::new(name, reason, Role::Cause, pattern)
}

const fn consequence(name: &'static str, reason: TerminationReason, pattern: &'static str) -> Signature {
    Signature::new(name, reason, Role::Consequence, pattern)
}

const fn hint(name: &'static str, reason: TerminationReason, pattern: &'static str) -> Signature {
    Signature::new(name, reason, Role::Hint, pattern)
}

/// Every family. Within one line, the signature of the earlier family is tried first.
const FAMILIES: &[&[Signature]] = &[
    operator::SIGNATURES,
    scheduler::SIGNATURES,
    node::SIGNATURES,
    memory_device::SIGNATURES,
    memory_host::SIGNATURES,
    storage::SIGNATURES,
    checkpoint::SIGNATURES,
    numeric::SIGNATURES,
    schema::SIGNATURES,
    data::SIGNATURES,
    budget::SIGNATURES,
    evaluator::SIGNATURES,
    collective::SIGNATURES,
    network::SIGNATURES,
    early_stop::SIGNATURES,
    completion::SIGNATURES,
    exception_names::SIGNATURES,
    code::SIGNATURES,
    markers::SIGNATURES,
];

/// Every signature, in the order in which they are tried.
pub fn all() -> impl Iterator<Item = &'static Signature> {
    FAMILIES.iter().flat_map(|family| family.iter())
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
