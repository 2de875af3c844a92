//! What is committed: whether a checkpoint is whole, which state of it was committed before, and in which order.

pub(super) mod committed;
pub(super) mod complete;
pub(super) mod families;
pub(super) mod lost;
pub(super) mod order;
pub(super) mod weights;
