//! What the symptom of each detector may mean.

use trackway_core::detect::Detector;

use super::lines::{Line, lines};

/// What a detector sees, and what may cause it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symptom {
    /// What people see.
    pub seen: &'static str,
    /// Likely causes.
    pub causes: &'static [Line],
    /// What to try.
    pub try_first: &'static [Line],
}

macro_rules! symptoms {
    ($($($detector:ident)+: $seen:literal causes { $($causes:tt)* } try { $($try_first:tt)* })+) => {
        /// The symptom that a detector sees.
        #[must_use]
        pub const fn symptom_of_detector(detector: Detector) -> Symptom {
            match detector {
                $($(Detector::$detector)|+ => Symptom {
                    seen: $seen,
                    causes: lines! { $($causes)* },
                    try_first: lines! { $($try_first)* },
                }),+
            }
        }
    };
}

symptoms! {
    NonFinite: "loss is NaN"
        causes {
            "learning rate too high" [RateRaised NumbersGrew], "NaN or Inf in features" [DataNotFinite DataChanged],
            "overflow or division by zero" [Halves],
        }
        try {
            "learning rate ÷ 10" [RateRaised NumbersGrew], "validate the data" [DataNotFinite DataChanged],
            "clip gradients" [NumbersGrew],
        }
    GradientExplosion: "the gradient norm is far above what it was"
        causes { "learning rate too high" [RateRaised], "a bad batch" [DataNotFinite DataChanged], "no clipping", "weights damaged" }
        try {
            "clip gradients", "lower the learning rate" [RateRaised], "look at the batch of that step" [DataNotFinite DataChanged],
            "resume from before it" if Checkpoint,
        }
    GradientVanishing: "the gradient is next to zero"
        causes { "frozen or detached layers", "dead or saturated units", "a masked loss", "underflow in 16 bits" [Halves] }
        try { "list the parameters that require gradients", "look at activations", "another initialisation", "loss scaling" [Halves] }
    LossSpike LossShift: "the loss jumps up or stays higher"
        causes {
            "a bad batch" [DataNotFinite], "learning rate too high" [RateRaised], "labels or inputs changed" [DataChanged],
            "optimizer state lost", "weights damaged",
        }
        try {
            "look at the batches of these steps" [DataNotFinite DataChanged],
            "resume from before them, and skip them if it happens again" if Checkpoint,
        }
    Plateau: "loss is flat from the start"
        causes { "learning rate too low" [RateLowered], "frozen layers", "the pipeline repeats one batch" [BatchesRepeat] }
        try {
            "raise the learning rate" [RateLowered], "list the parameters that require gradients",
            "log the batch's identity" [BatchesRepeat],
        }
    ValidationDivergence: "validation loss rises"
        causes { "overfitting", "leakage in the splits" [DataChanged], "learning rate too high late" [RateRaised] }
        try { "regularise", "verify the splits" [DataChanged], "decay" [RateRaised] }
    DeadInput: "the same batch comes again"
        causes { "the loader does not advance", "its seed is set at each step", "one batch is kept by mistake" }
        try { "log the batch's identity", "look at the sampler and at what resets it" }
    SeenBefore: "batches of the first pass repeat"
        causes { "duplicate rows" [DataChanged], "a sampler that draws with replacement", "shards read by several workers or ranks" }
        try {
            "do not trust `progressive_loss`", "find rows that repeat with `trackway data check`", "look at the sampler and the shards",
        }
    DataStarvation: "device idle though allocated"
        causes { "waiting for storage" }
        try { "pre-batch", "cache near the worker" }
    ThroughputDrop: "steps take longer than they did"
        causes {
            "other work on the machine", "a throttled device", "longer batches" [SizeRaised], "a leak" [MemoryGrew],
            "slower storage" [Starved],
        }
        try { "compare the telemetry before and after", "profile one step of each" }
    Straggler: "one rank is slower than the others"
        causes { "a throttled or damaged device", "unevenly distributed data" [DataChanged], "other work on that node" }
        try { "check the node and its device", "keep it out of the next placement", "even out the shards" [DataChanged] }
    MemoryCreep: "memory grows step by step"
        causes { "tensors kept alive, such as losses added up with their graph", "caches without a bound" }
        try {
            "keep numbers, not tensors (`loss.item()`, `detach()`)", "bound the caches",
            "restart from a checkpoint in time" if Checkpoint,
        }
    Hang: "a distributed run hangs"
        causes { "one rank died silently", "ranks took different branches" }
        try { "the collective library's debug output", "time-outs on barriers", "same operations on every rank" }
    LearningRate: "the learning rate, or the size of updates, is out of range"
        causes { "a mistake in the schedule or its unit" [RateRaised RateLowered], "the optimizer has no parameters to change" }
        try { "look at the schedule around that step" [RateRaised RateLowered], "list the parameters of the optimizer" }
    LossScaleCollapse: "the loss scale collapses"
        causes { "overflow at every step: NaN in data or weights, or a model that 16 bits cannot hold" [DataNotFinite] }
        try { "resume from where the scale was healthy" if Checkpoint, "lower the learning rate", "bf16 instead of fp16" }
    RankDivergence: "ranks that had the same numbers no longer have them"
        causes { "a parameter that is not synchronised", "silent data corruption on one device", "different code or data order" }
        try { "compare the weights of the ranks", "have that device checked", "resume from before the step" if Checkpoint }
}
