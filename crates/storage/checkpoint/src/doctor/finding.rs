use trackway_core::{AttemptId, Step, closed_list};

use crate::history::entry::{Begin, CommitBody};

closed_list!(
    /// How much a finding matters.
    RootSeverity, "severity", {
        /// Something is lost or wrong.
        Error = "error",
        /// Nothing is lost, and something should be done.
        Warning = "warning",
        /// Information without a need to act.
        Note = "note",
    }
);

/// What can be done about a finding. How it is done on a command line is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing: readers ignore it, or a resume deals with it.
    Nothing,
    /// Restore a file from a copy that is kept elsewhere; there is none in this root.
    RestoreFile {
        /// The file, below the root.
        path: String,
    },
    /// Copy the same bytes from another file of this root.
    CopyFrom {
        /// The file that is whole, below the root.
        from: String,
        /// The file that is not, below the root.
        to: String,
    },
    /// Cut off what was added.
    CutTo {
        /// The file, below the root.
        path: String,
        /// Its size as it was written.
        size_bytes: u64,
    },
    /// Put one byte back: with it the hash holds again.
    SetByte {
        /// The file, below the root.
        path: String,
        /// Where in the file.
        offset: u64,
        /// The byte that belongs there.
        byte: u8,
    },
    /// Get the checkpoint from where else it is.
    FetchFrom {
        /// Where all of its bytes are.
        location: String,
    },
    /// Put a folder back where it belongs.
    MoveTo {
        /// Where it is, below the root.
        from: String,
        /// Where it belongs, below the root.
        to: String,
    },
    /// Leave it where it is: what is lost may have named it.
    Keep,
    /// Delete a file or folder that belongs to nothing.
    Remove {
        /// What, below the root.
        path: String,
    },
    /// Let retention delete what is left over.
    CollectGarbage,
    /// Take a pin away.
    Unpin { name: String },
    /// Give the own user the right to read or write.
    Allow {
        /// What, below the root.
        path: String,
    },
    /// Make room on the disk.
    MakeRoom { missing_bytes: u64 },
    /// Use a file system, or a program, that can do what is needed.
    UseAnother { what: String },
}

/// Whose matter a finding is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub number: Option<u64>,
    pub step: Option<Step>,
    pub epoch: Option<u64>,
    pub attempt_id: Option<AttemptId>,
}

impl Subject {
    fn of(number: u64, step: Step, epoch: u64, attempt_id: AttemptId) -> Self {
        Self { number: Some(number), step: Some(step), epoch: Some(epoch), attempt_id: Some(attempt_id) }
    }
}

/// A finding about a root.
#[derive(Debug, Clone, PartialEq)]
pub struct RootFinding {
    /// How much it matters.
    pub severity: RootSeverity,
    /// What was checked, in snake case.
    pub check: &'static str,
    /// The file or folder, below the root.
    pub path: Option<String>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What is still safe, in a sentence; none for notes.
    pub safe: Option<String>,
    /// What can be done.
    pub remedy: Remedy,
    pub(crate) subject: Subject,
}

impl RootFinding {
    /// A finding about the root as a whole.
    #[must_use]
    pub fn new(severity: RootSeverity, check: &'static str, message: String) -> Self {
        let (remedy, subject) = (Remedy::Nothing, Subject::default());
        Self { severity, check, path: None, message, safe: None, remedy, subject }
    }

    pub(crate) fn error(check: &'static str, path: &str, message: String) -> Self {
        Self::new(RootSeverity::Error, check, message).at(path)
    }

    pub(crate) fn warning(check: &'static str, path: &str, message: String) -> Self {
        Self::new(RootSeverity::Warning, check, message).at(path)
    }

    pub(crate) fn note(check: &'static str, path: &str, message: String) -> Self {
        Self::new(RootSeverity::Note, check, message).at(path)
    }

    fn at(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// The same with what can be done.
    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = remedy;
        self
    }

    pub(crate) fn about(mut self, number: u64) -> Self {
        self.subject.number = Some(number);
        self
    }

    pub(crate) fn of_commit(self, number: u64, body: &CommitBody) -> Self {
        Self { subject: Subject::of(number, body.step, body.epoch, body.attempt_id), ..self }
    }

    pub(crate) fn of_begin(self, number: u64, body: &Begin) -> Self {
        Self { subject: Subject::of(number, body.step, body.epoch, body.attempt_id), ..self }
    }

    /// The number in the log of the entry it is about.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.subject.number
    }

    /// The step of the checkpoint it is about.
    #[must_use]
    pub fn step(&self) -> Option<Step> {
        self.subject.step
    }

    /// The epoch that wrote it.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.subject.epoch
    }

    /// The attempt that wrote it.
    #[must_use]
    pub fn attempt_id(&self) -> Option<AttemptId> {
        self.subject.attempt_id
    }

    /// Errors first, and the whole before its parts; then in the order of the log.
    pub(crate) fn rank(&self) -> (RootSeverity, u64, Option<&str>, &str) {
        (self.severity, self.subject.number.unwrap_or(0), self.path.as_deref(), self.check)
    }
}
