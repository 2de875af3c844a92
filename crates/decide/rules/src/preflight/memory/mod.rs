//! How much device memory a training run needs, before it is launched: the rule of thumb and an exact account of
//! parameters, gradients, optimizer states, activations, logits and overhead, as an interval.

mod activations;
mod advice;
mod answer;
mod architecture;
mod calibration;
mod device;
mod estimate;
mod hugging_face;
mod interval;
mod spec;
mod states;
mod tensors;

#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;

pub use advice::{Advice, Fit, MemoryChange, MemoryReport, report};
pub use answer::{Counter, MemoryEstimate, Parts, Phase, PhaseName, PipelineRank};
pub use architecture::{Architecture, Norm, Targets};
pub use calibration::{Calibration, NotThisRun};
pub use device::{DEVICES, Device};
pub use estimate::{RULE_OF_THUMB_BYTES_PER_PARAMETER, estimate, estimate_corrected};
pub use hugging_face::{ConfigError, ReadConfig, read_config};
pub use spec::{
    Adapters, Attention, Base, Generation, Loss, Master, MemorySpec, Offload, Optimizer, Parallel, Precision,
    Recompute, Step,
};
pub use tensors::{TensorCount, architecture_of_tensors};
