mod defect;
mod kind;
mod ranks;
mod tensors;

use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, BoxError, RunId, Step};
use trackway_formats::checkpoint_manifest::ManifestError;
use trackway_store::StoreError;

pub use defect::Defect;
pub(crate) use defect::{check_hash, check_size};
pub use kind::ErrorKind;
pub use ranks::RankError;
pub(crate) use ranks::named;
pub use tensors::TensorError;

/// The longest name of a pin.
pub(crate) const MAX_PIN_NAME_BYTES: usize = 200;

pub(crate) type Result<T, E = CheckpointError> = std::result::Result<T, E>;

/// What went wrong with a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("no checkpoints here: `{variable}` is not set or invalid; start the script with `trackway run`")]
    NotInAttempt { variable: &'static str },
    #[error(
        "fenced: {found_attempt} claimed epoch {found_epoch}, and this process has epoch {epoch}; it must stop, and nothing it does can be committed any more"
    )]
    Fenced { epoch: u64, found_epoch: u64, found_attempt: AttemptId },
    #[error("the checkpoint root {} belongs to {found}, not to {expected}", root.display())]
    WrongRun { root: PathBuf, expected: RunId, found: RunId },
    /// The storage of the log failed.
    #[error(transparent)]
    Store(StoreError),
    #[error("cannot {action} {}: {source}", path.display())]
    Storage { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{} was written to while it was copied", path.display())]
    SourceChanged { path: PathBuf },
    #[error("the checkpoint of step {step} does not verify: {defect}")]
    Damaged {
        step: Step,
        #[source]
        defect: Defect,
    },
    #[error("{}", nothing_verifies(fallbacks))]
    NothingVerifies { fallbacks: Vec<Fallback> },
    #[error("the checkpoint of step {step} has no file `{name}`; it has {}", available.join(", "))]
    NoSuchFile { step: Step, name: String, available: Vec<String> },
    #[error("no commit has the number {number} in {}", root.display())]
    NoSuchCommit { root: PathBuf, number: u64 },
    #[error(
        "the checkpoints that epoch {epoch} continues from were only partly fetched; launch another attempt"
    )]
    HalfAdopted { epoch: u64 },
    #[error("the checkpoint with the unchanged files of step {step} was deleted in the meantime; save again")]
    ParentRetired { step: Step },
    #[error("no pin has the name `{name}` in {}", root.display())]
    NoSuchPin { root: PathBuf, name: String },
    #[error("invalid pin name `{name}` (expected 1 to {max_bytes} bytes)", max_bytes = MAX_PIN_NAME_BYTES)]
    PinName { name: String },
    #[error("the checkpoint of step {step} is {state}: its files are gone")]
    NotHere { step: Step, state: &'static str },
    /// A file name or a manifest breaks a rule of the format.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(
        "{location} holds no checkpoints, but {} has committed ones: is it the right remote?",
        root.display()
    )]
    RemoteEmpty { location: String, root: PathBuf },
    #[error("the checkpoint of step {step} was given no file; write at least one")]
    Empty { step: Step },
    /// A tensor cannot be stored as it was given.
    #[error(transparent)]
    Tensors(#[from] TensorError),
    #[error("not enough memory for a save of {size_bytes} bytes: {source}")]
    Memory { size_bytes: u64, source: std::io::Error },
    #[error("this process was forked from the one that saves checkpoints; save there")]
    Forked,
    #[error("saving in the background panicked: {what}")]
    Panicked { what: String },
    /// Ranks that save or resume together did not agree.
    #[error(transparent)]
    Ranks(#[from] RankError),
    #[error("the state of step {step} could not be written: {source}")]
    State { step: Step, source: BoxError },
}

/// A checkpoint that was skipped on the way to one that verifies.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fallback {
    /// Its step; `None` when even the log entry that names it cannot be read.
    pub step: Option<Step>,
    /// Why it was not taken.
    pub why: String,
    /// What kind of reason that is.
    #[serde(default, skip_serializing_if = "FallbackKind::is_defect")]
    pub kind: FallbackKind,
}

/// What kind of reason a checkpoint is skipped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackKind {
    /// Its bytes are not what was committed, cannot be read, or crash what loads them.
    #[default]
    Defect,
    /// Retention deleted it.
    Deleted,
    /// What it holds is most likely lost.
    Unsafe,
}

impl FallbackKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_defect(&self) -> bool {
        *self == Self::Defect
    }
}

impl Fallback {
    /// One with a defect.
    #[must_use]
    pub fn new(step: Option<Step>, why: String) -> Self {
        Self { step, why, kind: FallbackKind::Defect }
    }

    /// Whether nothing but unsafe and deleted checkpoints was skipped, at least one of them unsafe: then the training begins again.
    #[must_use]
    pub fn only_unsafe(fallbacks: &[Self]) -> bool {
        let is = |kind: FallbackKind| move |found: &Self| found.kind == kind;
        fallbacks.iter().any(is(FallbackKind::Unsafe)) && !fallbacks.iter().any(is(FallbackKind::Defect))
    }
}

fn nothing_verifies(fallbacks: &[Fallback]) -> String {
    let reasons: Vec<_> = fallbacks
        .iter()
        .map(|fallback| match fallback.step {
            Some(step) => format!("step {step}: {}", fallback.why),
            None => fallback.why.clone(),
        })
        .collect();
    format!("no committed checkpoint verifies, so there is nothing to resume from ({})", reasons.join("; "))
}

fn store_kind(error: &StoreError) -> ErrorKind {
    use trackway_store::ErrorKind as Store;
    match error.kind() {
        Store::Contended => ErrorKind::Retry,
        Store::Fenced => ErrorKind::Fenced,
        Store::Input => ErrorKind::Input,
        Store::Damaged => ErrorKind::Integrity,
        Store::Cancelled => ErrorKind::Retry,
        Store::Unavailable | Store::Full | Store::Refused | Store::Unsupported => ErrorKind::Storage,
    }
}

impl From<StoreError> for CheckpointError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced { epoch, found_epoch, ref holder } => match holder.parse() {
                Ok(found_attempt) => Self::Fenced { epoch, found_epoch, found_attempt },
                Err(_) => Self::Store(error),
            },
            other => Self::Store(other),
        }
    }
}

impl CheckpointError {
    /// An error of the caller's own code, for use inside the closure that fills a checkpoint.
    pub fn state(source: impl Into<BoxError>) -> Self {
        Self::State { step: 0, source: source.into() }
    }

    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => store_kind(error),
            Self::Ranks(error) => error.kind(),
            Self::ParentRetired { .. } | Self::SourceChanged { .. } => ErrorKind::Retry,
            Self::HalfAdopted { .. } => ErrorKind::Fenced,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::NotInAttempt { .. }
            | Self::WrongRun { .. }
            | Self::NoSuchFile { .. }
            | Self::NoSuchCommit { .. }
            | Self::NoSuchPin { .. }
            | Self::NotHere { .. }
            | Self::PinName { .. }
            | Self::Empty { .. }
            | Self::Tensors(_)
            | Self::Forked
            | Self::Manifest(_) => ErrorKind::Input,
            Self::Storage { .. } | Self::Memory { .. } => ErrorKind::Storage,
            Self::Damaged { .. } | Self::NothingVerifies { .. } | Self::RemoteEmpty { .. } => {
                ErrorKind::Integrity
            }
            Self::State { .. } | Self::Panicked { .. } => ErrorKind::State,
        }
    }

    pub(crate) fn storage(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Storage { action, path, source }
    }

    /// Names the step in an error that a closure made with [`CheckpointError::state`].
    pub(crate) fn at_step(self, at: Step) -> Self {
        match self {
            Self::State { source, .. } => Self::State { step: at, source },
            other => other,
        }
    }
}
