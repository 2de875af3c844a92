//! The names of files with copies of the ledger's rows.

use trackway_core::{AttemptId, RunId, closed_list};

use crate::sha256_hex;

closed_list!(
    /// What a file with copies of the ledger's rows is about.
    RowCopyKind, "kind of a row copy", {
        /// The run as it was planned, with its data.
        Run = "run",
        /// The state of the run.
        State = "state",
        /// What pre-flight found.
        Checks = "checks",
        /// An attempt that was launched.
        Attempt = "attempt",
        /// An attempt that is sealed.
        Receipt = "receipt",
        /// A rollback from an attempt.
        RollBack = "roll-back",
        /// An evaluation that ended.
        Evaluation = "evaluation",
        /// A late fact beside a sealed receipt.
        Amendment = "amendment",
        /// Changes of what the run is called or how lists show it.
        AmendedRun = "amended-run",
        /// A diagnosis of an attempt.
        Diagnosis = "diagnosis",
        /// A notice that is to be delivered, or was.
        Notice = "notice",
        /// An event of the run that is part of no receipt.
        Event = "event",
    }
);

impl RowCopyKind {
    /// What a file of this name is about.
    #[must_use]
    pub fn of_file(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".json")?;
        let has_id = |word: &str| name.strip_prefix(word).is_some_and(|rest| rest.starts_with('-'));
        Self::ALL.iter().copied().find(|kind| name == kind.as_str() || has_id(kind.as_str()))
    }
}

/// A file with copies of the ledger's rows about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCopy<'a> {
    /// See [`RowCopyKind::Run`].
    Run,
    /// See [`RowCopyKind::State`].
    State,
    /// See [`RowCopyKind::Checks`].
    Checks,
    /// See [`RowCopyKind::Attempt`].
    Attempt(AttemptId),
    /// See [`RowCopyKind::Receipt`].
    Receipt(AttemptId),
    /// See [`RowCopyKind::RollBack`].
    RollBack(AttemptId),
    /// See [`RowCopyKind::Evaluation`].
    Evaluation(&'a str),
    /// See [`RowCopyKind::Amendment`].
    Amendment(&'a str),
    /// See [`RowCopyKind::AmendedRun`]; the id is that of the first change.
    AmendedRun(&'a str),
    /// See [`RowCopyKind::Diagnosis`]; the id is that of the run that it launched.
    Diagnosis(RunId),
    /// See [`RowCopyKind::Notice`]; the id of a notice has characters that a name of a file does not take.
    Notice(&'a str),
    /// See [`RowCopyKind::Event`]; named as a notice is.
    Event(&'a str),
}

impl RowCopy<'_> {
    /// What it is about.
    #[must_use]
    pub const fn kind(self) -> RowCopyKind {
        match self {
            Self::Run => RowCopyKind::Run,
            Self::State => RowCopyKind::State,
            Self::Checks => RowCopyKind::Checks,
            Self::Attempt(_) => RowCopyKind::Attempt,
            Self::Receipt(_) => RowCopyKind::Receipt,
            Self::RollBack(_) => RowCopyKind::RollBack,
            Self::Evaluation(_) => RowCopyKind::Evaluation,
            Self::Amendment(_) => RowCopyKind::Amendment,
            Self::AmendedRun(_) => RowCopyKind::AmendedRun,
            Self::Diagnosis(_) => RowCopyKind::Diagnosis,
            Self::Notice(_) => RowCopyKind::Notice,
            Self::Event(_) => RowCopyKind::Event,
        }
    }

    /// The name of the file.
    #[must_use]
    pub fn file_name(self) -> String {
        let kind = self.kind();
        match self {
            Self::Run | Self::State | Self::Checks => format!("{kind}.json"),
            Self::Attempt(id) | Self::Receipt(id) | Self::RollBack(id) => format!("{kind}-{id}.json"),
            Self::Evaluation(id) | Self::Amendment(id) | Self::AmendedRun(id) => format!("{kind}-{id}.json"),
            Self::Diagnosis(id) => format!("{kind}-{id}.json"),
            Self::Notice(id) | Self::Event(id) => {
                format!("{kind}-{}.json", sha256_hex(id.as_bytes()).get(..16).unwrap_or_default())
            }
        }
    }
}
