//! What the rows of an evaluation show, computed from them alone: no clock, no I/O but reading the table.
//!
//! A table in memory is a [`trackway_data::model::Frame`]; a number is an [`Estimate`], never without its interval.

pub mod assess;
mod columns;
pub mod comparison;
pub mod debug;
mod documents;
mod error;
pub mod failures;
pub mod fairness;
pub mod import;
pub mod latency;
mod limits;
pub mod metrics;
pub mod residuals;
pub mod search;
pub mod slices;
pub mod spellings;

pub use assess::spec::Spec;
pub use assess::tasks::TaskMatch;
pub use assess::{Baseline, assess, assess_watched};
pub use columns::{complete_columns, names_a_prediction};
pub use documents::costs::Costs;
pub use error::AssessError;
pub use slices::{SliceLimits, SliceRows};
pub use spellings::MatchedClass;
pub use trackway_results::assessment::{
    Assessment, Average, CURVE_POINTS_MAX, CalibrationBin, ClassMetrics, Columns, Compared, Comparison,
    ComparisonVerdict, Confusion, Curves, Fairness, FairnessGroup, McNemar, Metrics, Number, Pairing, Point,
    Slice, SliceCompared, Task, TaskCoverage,
};
pub use trackway_statistics::{Estimate, Interval, Method};

#[cfg(test)]
mod tests;
