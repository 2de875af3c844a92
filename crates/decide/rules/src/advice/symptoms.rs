//! What the symptom of each detector may mean.

use trackway_core::detect::Detector;

use super::lines::{Line, Need, OF_DATA, OF_RATE, RATE, Sign, line};

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

/// The symptom that a detector sees.
#[must_use]
pub const fn symptom_of_detector(detector: Detector) -> Symptom {
    match detector {
        Detector::NonFinite => NON_FINITE_SEEN,
        Detector::GradientExplosion => GRADIENT_EXPLOSION_SEEN,
        Detector::GradientVanishing => GRADIENT_VANISHING_SEEN,
        Detector::LossSpike | Detector::LossShift => LOSS_SPIKE_SEEN,
        Detector::Plateau => PLATEAU_SEEN,
        Detector::ValidationDivergence => VALIDATION_DIVERGENCE_SEEN,
        Detector::DeadInput => DEAD_INPUT_SEEN,
        Detector::SeenBefore => SEEN_BEFORE_SEEN,
        Detector::DataStarvation => DATA_STARVATION_SEEN,
        Detector::ThroughputDrop => THROUGHPUT_DROP_SEEN,
        Detector::Straggler => STRAGGLER_SEEN,
        Detector::MemoryCreep => MEMORY_CREEP_SEEN,
        Detector::Hang => HANG_SEEN,
        Detector::LearningRate => LEARNING_RATE_SEEN,
        Detector::LossScaleCollapse => LOSS_SCALE_COLLAPSE_SEEN,
        Detector::RankDivergence => RANK_DIVERGENCE_SEEN,
    }
}

const NON_FINITE_SEEN: Symptom = Symptom {
    seen: "loss is NaN",
    causes: &[
        line("learning rate too high").by(OF_RATE),
        line("NaN or Inf in features").by(OF_DATA),
        line("overflow or division by zero").by(&[Sign::Halves]),
    ],
    try_first: &[
        line("learning rate ÷ 10").by(OF_RATE),
        line("validate the data").by(OF_DATA),
        line("clip gradients").by(&[Sign::NumbersGrew]),
    ],
};
const GRADIENT_EXPLOSION_SEEN: Symptom = Symptom {
    seen: "the gradient norm is far above what it was",
    causes: &[
        line("learning rate too high").by(RATE),
        line("a bad batch").by(OF_DATA),
        line("no clipping"),
        line("weights damaged"),
    ],
    try_first: &[
        line("clip gradients"),
        line("lower the learning rate").by(RATE),
        line("look at the batch of that step").by(OF_DATA),
        line("resume from before it").needs(Need::Checkpoint),
    ],
};
const GRADIENT_VANISHING_SEEN: Symptom = Symptom {
    seen: "the gradient is next to zero",
    causes: &[
        line("frozen or detached layers"),
        line("dead or saturated units"),
        line("a masked loss"),
        line("underflow in 16 bits").by(&[Sign::Halves]),
    ],
    try_first: &[
        line("list the parameters that require gradients"),
        line("look at activations"),
        line("another initialisation"),
        line("loss scaling").by(&[Sign::Halves]),
    ],
};
const LOSS_SPIKE_SEEN: Symptom = Symptom {
    seen: "the loss jumps up or stays higher",
    causes: &[
        line("a bad batch").by(&[Sign::DataNotFinite]),
        line("learning rate too high").by(RATE),
        line("labels or inputs changed").by(&[Sign::DataChanged]),
        line("optimizer state lost"),
        line("weights damaged"),
    ],
    try_first: &[
        line("look at the batches of these steps").by(OF_DATA),
        line("resume from before them, and skip them if it happens again").needs(Need::Checkpoint),
    ],
};
const PLATEAU_SEEN: Symptom = Symptom {
    seen: "loss is flat from the start",
    causes: &[
        line("learning rate too low").by(&[Sign::RateLowered]),
        line("frozen layers"),
        line("the pipeline repeats one batch").by(&[Sign::BatchesRepeat]),
    ],
    try_first: &[
        line("raise the learning rate").by(&[Sign::RateLowered]),
        line("list the parameters that require gradients"),
        line("log the batch's identity").by(&[Sign::BatchesRepeat]),
    ],
};
const VALIDATION_DIVERGENCE_SEEN: Symptom = Symptom {
    seen: "validation loss rises",
    causes: &[
        line("overfitting"),
        line("leakage in the splits").by(&[Sign::DataChanged]),
        line("learning rate too high late").by(RATE),
    ],
    try_first: &[
        line("regularise"),
        line("verify the splits").by(&[Sign::DataChanged]),
        line("decay").by(RATE),
    ],
};
const DEAD_INPUT_SEEN: Symptom = Symptom {
    seen: "the same batch comes again",
    causes: &[
        line("the loader does not advance"),
        line("its seed is set at each step"),
        line("one batch is kept by mistake"),
    ],
    try_first: &[line("log the batch's identity"), line("look at the sampler and at what resets it")],
};
const SEEN_BEFORE_SEEN: Symptom = Symptom {
    seen: "batches of the first pass repeat",
    causes: &[
        line("duplicate rows").by(&[Sign::DataChanged]),
        line("a sampler that draws with replacement"),
        line("shards read by several workers or ranks"),
    ],
    try_first: &[
        line("do not trust `progressive_loss`"),
        line("find rows that repeat with `trackway data check`"),
        line("look at the sampler and the shards"),
    ],
};
const DATA_STARVATION_SEEN: Symptom = Symptom {
    seen: "device idle though allocated",
    causes: &[line("waiting for storage")],
    try_first: &[line("pre-batch"), line("cache near the worker")],
};
const THROUGHPUT_DROP_SEEN: Symptom = Symptom {
    seen: "steps take longer than they did",
    causes: &[
        line("other work on the machine"),
        line("a throttled device"),
        line("longer batches").by(&[Sign::SizeRaised]),
        line("a leak").by(&[Sign::MemoryGrew]),
        line("slower storage").by(&[Sign::Starved]),
    ],
    try_first: &[line("compare the telemetry before and after"), line("profile one step of each")],
};
const STRAGGLER_SEEN: Symptom = Symptom {
    seen: "one rank is slower than the others",
    causes: &[
        line("a throttled or damaged device"),
        line("unevenly distributed data").by(&[Sign::DataChanged]),
        line("other work on that node"),
    ],
    try_first: &[
        line("check the node and its device"),
        line("keep it out of the next placement"),
        line("even out the shards").by(&[Sign::DataChanged]),
    ],
};
const MEMORY_CREEP_SEEN: Symptom = Symptom {
    seen: "memory grows step by step",
    causes: &[
        line("tensors kept alive, such as losses added up with their graph"),
        line("caches without a bound"),
    ],
    try_first: &[
        line("keep numbers, not tensors (`loss.item()`, `detach()`)"),
        line("bound the caches"),
        line("restart from a checkpoint in time").needs(Need::Checkpoint),
    ],
};
const HANG_SEEN: Symptom = Symptom {
    seen: "a distributed run hangs",
    causes: &[line("one rank died silently"), line("ranks took different branches")],
    try_first: &[
        line("the collective library's debug output"),
        line("time-outs on barriers"),
        line("same operations on every rank"),
    ],
};
const LEARNING_RATE_SEEN: Symptom = Symptom {
    seen: "the learning rate, or the size of updates, is out of range",
    causes: &[
        line("a mistake in the schedule or its unit").by(&[Sign::RateRaised, Sign::RateLowered]),
        line("the optimizer has no parameters to change"),
    ],
    try_first: &[
        line("look at the schedule around that step").by(&[Sign::RateRaised, Sign::RateLowered]),
        line("list the parameters of the optimizer"),
    ],
};
const LOSS_SCALE_COLLAPSE_SEEN: Symptom = Symptom {
    seen: "the loss scale collapses",
    causes: &[line("overflow at every step: NaN in data or weights, or a model that 16 bits cannot hold")
        .by(&[Sign::DataNotFinite])],
    try_first: &[
        line("resume from where the scale was healthy").needs(Need::Checkpoint),
        line("lower the learning rate"),
        line("bf16 instead of fp16"),
    ],
};
const RANK_DIVERGENCE_SEEN: Symptom = Symptom {
    seen: "ranks that had the same numbers no longer have them",
    causes: &[
        line("a parameter that is not synchronised"),
        line("silent data corruption on one device"),
        line("different code or data order"),
    ],
    try_first: &[
        line("compare the weights of the ranks"),
        line("have that device checked"),
        line("resume from before the step").needs(Need::Checkpoint),
    ],
};
