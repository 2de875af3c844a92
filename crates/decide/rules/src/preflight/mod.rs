//! What is judged before a launch: the memory that a run needs, its cost, whether its settings are sound, how uneven the classes of
//! its label are, and whether it learns one batch.

pub mod config_checks;
pub mod cost;
pub mod imbalance;
pub mod memory;
pub mod rehearsal;
