//! How good a model is: a checkpoint or a table of predictions is evaluated, against a baseline, by slices and by probes;
//! gates judge the result; and a scoring command makes predictions.

pub mod assess;
pub mod baseline;
pub mod evaluate;
pub mod gates;
pub mod known_bad;
pub mod probe;
pub mod score;
mod scoring;
pub mod slices;
