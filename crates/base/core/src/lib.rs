//! The common types of all crates: ids, time, steps, termination reasons, and the traits through which clocks,
//! randomness and ids come in. No I/O happens here.

// The macro of closed lists names this crate as its users do.
#[cfg(feature = "schema")]
extern crate self as trackway_core;

mod batches;
pub mod boundary;
mod checkpoint_state;
pub mod checks;
mod clock;
mod coverage;
pub mod detect;
mod diagnosis;
mod fields;
mod health;
mod id;
pub mod name;
mod reason;
pub mod registry;
mod rung;
mod sign_off;
pub mod text;
mod time;
pub mod visible;

/// For the macros of this crate.
#[cfg(feature = "schema")]
#[doc(hidden)]
pub use schemars;

pub use batches::{BatchRange, SKIPPED_RANGES_MAX, SkippedBatches};
pub use checkpoint_state::{CheckpointState, CheckpointUse, UnsafeEvidence};
pub use clock::{Clock, Ids, ManualClock, Rng, SequentialIds, SplitMix64};
pub use coverage::{MissingPredictions, RowCoverage, UnmatchedTasks};
pub use diagnosis::{DiagnosisKind, DiagnosisVerdict};
pub use health::{Health, HealthFinding, HealthReport, Unfit, Weights};
pub use id::{AttemptId, EvaluationId, GroupId, IdError, ProofId, RunId};
pub use reason::{Confidence, Domain, RetryOutlook, TerminationReason, UnknownWord};
pub use rung::{Rung, RungError};
pub use sign_off::{SignOff, SignOffError};
pub use time::Timestamp;

/// A training step: the number of optimizer updates done since the run began, over all of its attempts.
pub type Step = u64;

/// The step of a metric's value. Below 0 are values from before the training, as other tools record them: an evaluation at step -1.
pub type MetricStep = i64;

/// What an error was caused by: another error of any type, or else a text.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

closed_list!(
    /// What depends on a run.
    Criticality, "criticality", {
        /// Nothing but what is learned from it.
        Experiment = "experiment",
        /// The work of others.
        Standard = "standard",
        /// A model that people use.
        Release = "release",
    }
);

closed_list!(
    /// What a process launch is for. Only launches of kind `train` appear in `training_attempts`.
    #[derive(Default)]
    LaunchKind, "kind of launch", {
        /// A training attempt.
        #[default]
        Train = "train",
        /// A rehearsal with one batch.
        OneBatch = "one_batch",
        /// A rehearsal that must overfit a few batches.
        Overfit = "overfit",
        /// A launch made to prove that resuming changes nothing.
        Prove = "prove",
        /// A short launch that observes the cause of a symptom of a training attempt.
        Diagnose = "diagnose",
        /// An evaluation of a committed checkpoint.
        Evaluate = "evaluate",
    }
);
