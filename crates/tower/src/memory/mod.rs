//! How much device memory a training run needs, before it is launched: the rule of thumb and an exact account of
//! parameters, gradients, optimizer states, activations, logits and overhead, as an interval (REQUIREMENTS D7).

mod activations;
mod architecture;
mod device;
mod estimate;
mod interval;
mod spec;
mod states;

#[cfg(test)]
mod published;

pub use architecture::{Architecture, Norm};
pub use device::{DEVICES, Device};
pub use estimate::{MemoryEstimate, Parts, Phase, RULE_OF_THUMB_BYTES_PER_PARAMETER, estimate};
pub use spec::{
    Adapters, Attention, Base, Generation, Loss, Master, MemorySpec, Offload, Optimizer, Parallel, Precision,
    Recompute, Step, Targets,
};
