//! Drift: whether a data set still has the distribution of another one. Computed from two [profiles](Profile) alone;
//! no row is read again.
//!
//! A column has drifted when two things hold: its distance is larger than a threshold *and* it is statistically
//! significant. The threshold is the larger of an effect that matters and the noise that two
//! samples of the reference of these sizes show; p-values are corrected for the number of columns (Benjamini and
//! Hochberg 1995). So neither a small sample's noise nor a large sample's significance makes a drift.
//!
//! | column | rows (effective) | test |
//! |---|---|---|
//! | number or time with many values | up to [`LARGE_SAMPLE_ROWS`] | Kolmogorov–Smirnov distance |
//! | | more | Wasserstein distance in standard deviations of the reference |
//! | string, boolean, number of at most [`CATEGORY_VALUES_MAX`] values | up to [`SMALL_SAMPLE_ROWS`] | Cramér's V (chi-square) |
//! | | more, few values | Jensen–Shannon distance |
//! | | more, over [`FEW_CELLS_MAX`] values | L-infinity over the frequent ones |
//!
//! The other distances are reported beside the chosen one. Missing values are compared separately.
//!
//! Columns that are each unchanged may still depend on each other in another way. [`joint_drift`] trains the [quick
//! model](crate::model) to separate rows of the two sides; unlike all else here it needs the rows themselves.

mod cells;
mod column;
mod distance;
mod joint;
mod number;

use serde::{Deserialize, Serialize};
use trackway_core::checks::Verdict;
use trackway_statistics::benjamini_hochberg;

use crate::infer::ColumnType;
use crate::profile::Profile;
pub(crate) use cells::{only_spelling, plain_spelling};
pub use column::{ColumnDrift, MissingDrift, Role};
pub use distance::{Distances, DriftTest};
pub use joint::{ColumnImportance, JointDrift, JointError, joint_drift, joint_drift_of};

/// From more effective rows (`n × m / (n + m)`) on, the Wasserstein distance is taken for numbers.
pub const LARGE_SAMPLE_ROWS: f64 = 10_000.0;
/// So many rows of data that is read now are compared at least, one of each few neighbours. Kolmogorov's distance of two
/// such samples of one distribution is below 1.63 / √100,000 = 0.005 in 99 of 100 cases, a tenth of what counts.
pub const SAMPLED_ROWS_MIN: u64 = 200_000;
/// Up to so many effective rows, the chi-square test is taken for categories.
pub const SMALL_SAMPLE_ROWS: f64 = 1_000.0;
/// A number with at most so many different values is compared value by value.
pub const CATEGORY_VALUES_MAX: usize = 20;
/// With more values than these, the frequent ones are compared one by one.
pub const FEW_CELLS_MAX: usize = 100;

/// From this fraction of drifted features on, the data as a whole has drifted (Evidently takes the same).
pub const DRIFTED_SHARE_BLOCKS: f64 = 0.5;

/// The largest fraction of false alarms among the alarms.
const FALSE_DISCOVERY_RATE: f64 = 0.01;
/// The least Kolmogorov–Smirnov distance that matters.
const KOLMOGOROV_SMIRNOV_MIN: f64 = 0.05;
/// The least Wasserstein distance that matters, in standard deviations of the reference.
const WASSERSTEIN_MIN: f64 = 0.1;
/// The least Cramér's V that matters.
const CRAMERS_V_MIN: f64 = 0.1;
/// The least Jensen–Shannon distance that matters.
const JENSEN_SHANNON_MIN: f64 = 0.1;
/// The least change of one value's fraction that matters.
const L_INFINITY_MIN: f64 = 0.05;
/// The least change of the fraction of missing values that matters.
const MISSING_SHARE_MIN: f64 = 0.02;

/// Two data sets compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriftReport {
    /// `block`: a model of the reference does not fit the current data; `warn`: something drifted; `pass`: nothing did.
    pub verdict: Verdict,
    /// Rows of the reference.
    pub reference_rows: u64,
    /// Rows of the current data.
    pub current_rows: u64,
    /// Rows of the reference whose numbers were compared, where it was a [sample](Profile::sampled).
    #[serde(default)]
    pub reference_rows_sampled: Option<u64>,
    /// Rows of the current data whose numbers were compared, where it was a sample.
    #[serde(default)]
    pub current_rows_sampled: Option<u64>,
    /// Columns of both sides, in the reference's order; the label is among them with its role.
    pub columns: Vec<ColumnDrift>,
    /// Columns that only one side has, or whose type changed, other than between whole numbers and numbers.
    pub schema_changes: Vec<SchemaChange>,
    /// Features that drifted.
    pub drifted_features: usize,
    /// Whether the label drifted; `None` without one on both sides.
    pub label_drifted: Option<bool>,
    /// Whether a model separates the rows of the sides; `None` if that was not requested: it needs rows of both.
    #[serde(default)]
    pub joint: Option<JointDrift>,
}

/// A column that is not the same column any more: missing on a side, or of another type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "IncomparableColumn")]
pub struct SchemaChange {
    /// The column.
    pub name: String,
    /// Its type in the reference; `None` where it is not there.
    pub reference: Option<ColumnType>,
    /// Its type in the current data; `None` where it is not there.
    pub current: Option<ColumnType>,
}

impl SchemaChange {
    /// Whether what was made for the reference does not fit any more: a column that it has is gone or of another type.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.reference.is_some()
    }
}

/// Compares two profiles, column by column. `label` is the target column, if there is one: its shift is reported
/// separately from that of the features.
#[must_use]
pub fn compare(reference: &Profile, current: &Profile, label: Option<&str>) -> DriftReport {
    let mut columns = Vec::new();
    let mut schema_changes = Vec::new();
    for before in &reference.columns {
        let after = current.column(&before.name);
        let role = if label == Some(before.name.as_str()) { Role::Label } else { Role::Feature };
        let compared = after.and_then(|after| column::compare(before, after, role));
        if compared.is_none() || after.is_some_and(|after| is_another_type(before.kind, after.kind)) {
            schema_changes.push(SchemaChange {
                name: before.name.clone(),
                reference: Some(before.kind),
                current: after.map(|after| after.kind),
            });
        }
        columns.extend(compared);
    }
    let new = current.columns.iter().filter(|after| reference.column(&after.name).is_none());
    schema_changes.extend(new.map(|after| SchemaChange {
        name: after.name.clone(),
        reference: None,
        current: Some(after.kind),
    }));
    decide(&mut columns);
    let report = DriftReport {
        verdict: Verdict::Pass,
        reference_rows: reference.rows,
        current_rows: current.rows,
        reference_rows_sampled: reference.rows_sampled,
        current_rows_sampled: current.rows_sampled,
        drifted_features: columns.iter().filter(|it| it.role == Role::Feature && it.drifted).count(),
        label_drifted: columns.iter().find(|it| it.role == Role::Label).map(|it| it.drifted),
        columns,
        schema_changes,
        joint: None,
    };
    DriftReport { verdict: report.judged(), ..report }
}

impl DriftReport {
    /// With the answer of a model that separates the rows of the sides.
    #[must_use]
    pub fn with_joint(self, joint: JointDrift) -> Self {
        let report = Self { joint: Some(joint), ..self };
        Self { verdict: report.judged(), ..report }
    }

    fn judged(&self) -> Verdict {
        let joint = self.joint.as_ref().is_some_and(|joint| joint.drifted);
        let is_changed = !self.schema_changes.is_empty() || self.columns.iter().any(|column| column.drifted);
        match self.blocks() {
            true => Verdict::Block,
            false if joint || is_changed => Verdict::Warn,
            false => Verdict::Pass,
        }
    }

    /// Whether a model of the reference does not fit the current data: a column that it has is gone or of another type,
    /// its label has other values, or at least [`DRIFTED_SHARE_BLOCKS`] of its features drifted.
    #[must_use]
    pub fn blocks(&self) -> bool {
        let is_lost = self.schema_changes.iter().any(SchemaChange::blocks);
        let label = self.columns.iter().find(|column| column.role == Role::Label);
        let has_other_labels = label.is_some_and(|label| label.drifted && !label.new_values.is_empty());
        let features = self.columns.iter().filter(|column| column.role == Role::Feature).count();
        let have_drifted = self.drifted_features > 0
            && self.drifted_features as f64 >= features as f64 * DRIFTED_SHARE_BLOCKS;
        is_lost || has_other_labels || have_drifted
    }
}

/// Whether the values are of another type now. Whole numbers and numbers are one type here: which of them a file has
/// depends on its rows.
fn is_another_type(before: ColumnType, now: ColumnType) -> bool {
    let is_number = |kind: ColumnType| matches!(kind, ColumnType::Int | ColumnType::Float);
    before != now && !(is_number(before) && is_number(now))
}

/// Corrects the p-values for their number, then decides which columns drifted.
fn decide(columns: &mut [ColumnDrift]) {
    let p_values: Vec<f64> =
        columns.iter().flat_map(|column| [column.p_value, column.missing.p_value]).collect();
    let adjusted = benjamini_hochberg(&p_values);
    for (column, adjusted) in columns.iter_mut().zip(adjusted.chunks(2)) {
        column.decide(adjusted[0], adjusted[1]);
    }
}

#[cfg(test)]
mod tests;
