//! What the rows of an evaluation show, computed from them alone: no clock, no I/O but reading the table.
//!
//! A table in memory is a [`trackway_data::model::Frame`]; a number is an [`Estimate`], never without its interval.

mod assessment;
pub mod debug;
mod estimate;
pub mod search;

pub use assessment::{
    Assessment, Average, CURVE_POINTS_MAX, CalibrationBin, ClassMetrics, Columns, Compared, Comparison,
    Confusion, Curves, Fairness, FairnessGroup, McNemar, Metrics, Pairing, Point, Slice, SliceCompared, Task,
    Verdict,
};
pub use estimate::{Estimate, Method};
