//! What a look needs to know, and what it leads to.

use std::path::PathBuf;

use trackway_checkpoint::Commit;
use trackway_core::{AttemptId, RunId, Step};
use trackway_formats::writers::ShownBy;
use trackway_layouts::Because;

use crate::find::patterns::Patterns;
use crate::find::saves::Saves;
use crate::writers::sightings::{WriterEvidence, WrittenFile};

/// Whose checkpoints are adopted, and where they go.
#[derive(Debug, Clone)]
pub struct AdopterSpec {
    /// What is looked at.
    pub patterns: Patterns,
    /// The root of the run's checkpoints.
    pub checkpoint_root: PathBuf,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    /// The epoch of its commits.
    pub epoch: u64,
    /// The commit that the attempt continues from, by number: the parent of its first one.
    pub parent: Option<u64>,
    /// How long files must not change to count as complete where nothing else shows it, in nanoseconds.
    pub quiet_ns: u64,
}

/// Whether one of these files, by device and inode, is open for writing; none if that is not known.
pub type IsOpen<'f> = dyn Fn(&[(u64, u64)]) -> Option<bool> + 'f;

/// The step that was reached when a file was written to, at a time in nanoseconds since 1970; none if none was recorded.
pub type StepWhenWritten<'f> = dyn Fn(i64) -> Option<Step> + 'f;

/// What was seen of the writers of files, of which earlier sightings than a time in nanoseconds since 1970 are of an earlier state.
pub type WritersOf<'f> = dyn Fn(&[WrittenFile], i64) -> WriterEvidence + 'f;

/// What the adopter cannot see in the files.
pub struct Facts<'f> {
    /// Now, in nanoseconds of any clock.
    pub at_ns: u64,
    /// Which saves were reported or renamed into place, by the real paths of the folders.
    pub saves: &'f Saves,
    /// Which step the script had recorded or printed ([`crate::Steps`]).
    pub step_when_written: &'f StepWhenWritten<'f>,
    /// How far such steps may be behind ([`crate::Steps::slack`]).
    pub step_slack: Step,
    /// Who wrote files.
    pub writers: &'f WritersOf<'f>,
    /// Whether every process that could write a checkpoint has ended.
    pub writers_ended: bool,
    /// Whether a process has one of these files, by device and inode, open for writing; none if that is not known.
    pub is_open_for_writing: &'f IsOpen<'f>,
    /// Whether to leave off at the next chunk of a copy; what is not committed is waited for.
    pub is_interrupted: &'f dyn Fn() -> bool,
}

/// A checkpoint that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Adopted {
    pub commit: Commit,
    /// Where the script wrote it.
    pub path: String,
    /// The names of the files beside it that hold the rest of its state.
    pub beside: Vec<String>,
    /// How it is laid out.
    pub layout: &'static str,
    /// What showed that it was complete.
    pub because: Because,
    /// Where its step comes from.
    pub step_origin: &'static str,
    /// What showed that the attempt wrote it.
    pub shown_by: ShownBy,
}

/// A path that is not shown to be the attempt's: neither committed nor moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOwn {
    pub path: String,
    /// Its step, where the files say it.
    pub step: Option<Step>,
    /// Whether another writer is known; else none is.
    pub is_others: bool,
    /// Who wrote it, or why that is not known.
    pub why: String,
}

/// A path that was not committed, and will not be in its present state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAdopted {
    pub path: String,
    pub why: String,
}

/// What one look led to.
#[derive(Debug, Default)]
pub struct Look {
    /// What was committed, in the order of the log.
    pub adopted: Vec<Adopted>,
    /// What was given up; each state of a path once.
    pub not_adopted: Vec<NotAdopted>,
    /// What is not shown to be the attempt's; each state of a path once.
    pub not_own: Vec<NotOwn>,
    /// Whether something may still become complete.
    pub is_waiting: bool,
    /// Another attempt owns the run's checkpoints now: nothing more is committed.
    pub is_fenced: bool,
}
