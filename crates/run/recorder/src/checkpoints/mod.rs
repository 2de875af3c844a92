//! Checkpoints as the training loop saves them: when one is due, what several ranks save together, what saving costs, and
//! what the flight record gets of it.

mod best;
pub(crate) mod cadence;
pub mod cost;
mod due;
mod record;
pub(crate) mod together;
#[cfg(test)]
mod together_tests;
