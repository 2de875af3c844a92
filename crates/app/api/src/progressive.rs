//! The loss on data that the model has not seen, by progressive validation.

pub use trackway_tower::progressive::{Fall, ProgressiveEstimate};
