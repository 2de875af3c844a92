//! What the rows of an evaluation show, computed from them alone: no clock, no I/O but reading the table.
//!
//! A table in memory is a [`trackway_data::model::Frame`]; a number is an [`Estimate`], never without its interval.

pub mod assess;
mod assessment;
mod blind_spots;
mod classes;
mod columns;
pub mod comparison;
mod costs;
mod curves;
pub mod debug;
mod differences;
mod documents;
mod error;
pub mod failures;
pub mod fairness;
pub mod import;
pub mod latency;
mod limits;
pub mod metrics;
mod notes;
pub mod numbers;
pub mod reported;
pub mod residuals;
pub mod search;
pub mod slices;
mod spec;
pub mod spellings;
pub mod tasks;
mod values;

pub use assess::{Baseline, assess, assess_watched};
pub use assessment::{
    Assessment, Average, CURVE_POINTS_MAX, CalibrationBin, ClassMetrics, Columns, Compared, Comparison,
    ComparisonVerdict, Confusion, Curves, Fairness, FairnessGroup, McNemar, Metrics, Pairing, Point, Slice,
    SliceCompared, Task, TaskCoverage,
};
pub use columns::names_a_prediction;
pub use costs::Costs;
pub use error::AssessError;
pub use slices::{SliceLimits, SliceRows};
pub use spec::Spec;
pub use spellings::MatchedClass;
pub use tasks::TaskMatch;
pub use trackway_statistics::{Estimate, Interval, Method};

#[cfg(test)]
mod tests;
