//! The loss on data that the model has not seen, by progressive validation.

pub use trackway_rules::early_stop::progressive::{Fall, ProgressiveEstimate};
