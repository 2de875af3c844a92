//! Watching a training run: the detectors by name, the policies for a finding, and the finding.

use serde::{Deserialize, Serialize};

use crate::{Step, closed_list};

closed_list!(
    /// A detector of problems in a running run. `docs/detectors.md` explains each.
    Detector, "detector", {
        /// A loss, a gradient or a weight is NaN or infinite.
        NonFinite = "non_finite",
        /// The gradient norm is far above what it was.
        GradientExplosion = "gradient_explosion",
        /// The gradient is zero, or next to nothing of what it was.
        GradientVanishing = "gradient_vanishing",
        /// The loss jumps far out of its noise.
        LossSpike = "loss_spike",
        /// The loss stays at a higher level, or climbs.
        LossShift = "loss_shift",
        /// The loss does not fall at all from the beginning on.
        Plateau = "plateau",
        /// The validation loss rises while the training loss falls, or it never fell.
        ValidationDivergence = "validation_divergence",
        /// The same batch comes again and again.
        DeadInput = "dead_input",
        /// A batch whose loss counts as one on unseen data came before.
        SeenBefore = "seen_before",
        /// The step waits for its batch.
        DataStarvation = "data_starvation",
        /// Steps take longer than they did.
        ThroughputDrop = "throughput_drop",
        /// One rank is slower than the others.
        Straggler = "straggler",
        /// Memory grows steadily.
        MemoryCreep = "memory_creep",
        /// Nothing comes any more.
        Hang = "hang",
        /// The learning rate, or what it does to the weights, is out of range.
        LearningRate = "learning_rate",
        /// The loss scale of mixed precision falls to nothing.
        LossScaleCollapse = "loss_scale_collapse",
        /// Ranks that had the same numbers no longer have them.
        RankDivergence = "rank_divergence",
    }
);

closed_list!(
    /// What is done when a detector fires.
    DetectionPolicy, "policy of a detector", {
        /// Nothing: the detector does not run.
        Off = "off",
        /// It is written down and shown.
        Note = "note",
        /// A checkpoint is requested as well.
        Checkpoint = "checkpoint",
        /// The run is asked to stop: it may save, and the attempt ends.
        Stop = "stop",
        /// The run goes back to a committed step and skips the data that broke it.
        RollBack = "roll_back",
    }
);

closed_list!(
    /// How bad a finding of a detector is.
    DetectionSeverity, "severity of a detection", {
        /// Worth knowing.
        Note = "note",
        /// A person should look at it.
        Warn = "warn",
        /// What is computed from here on is most likely lost.
        Critical = "critical",
    }
);

/// One finding of a detector: the beginning of an episode. It is reported once; the detector can fire again when the
/// run was healthy for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Firing {
    pub detector: Detector,
    /// How bad it is.
    pub severity: DetectionSeverity,
    /// The rank it was seen on.
    pub rank: u32,
    /// The step at which the symptom began.
    pub first_step: Step,
    /// The step at which the detector was sure.
    pub step: Step,
    /// The metric that shows it; none for a hang.
    pub metric: Option<String>,
    /// What was seen, in the unit of `threshold`; NaN where the value itself was.
    pub value: f64,
    /// The limit it passed.
    pub threshold: f64,
    /// The digest of the batch of `first_step`, where batches are recorded with one and it is not long ago.
    pub batch_digest: Option<u64>,
    /// What was seen, as a sentence with the numbers that decided.
    pub evidence: String,
    /// Its likely cause.
    pub cause: String,
    /// What to do.
    pub advice: String,
}
