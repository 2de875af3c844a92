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
//! The other distances are reported beside the chosen one. Missing values are compared separately, and so is [how many rows
//! have a value that the reference does not have](UnknownValues): where every value was replaced, none of them may have changed much.
//!
//! What names a row, when it came about, and what differs in nearly every row has other values in any other data: such
//! columns are [set apart](SetApart), with the reason.
//!
//! Columns that are each unchanged may still depend on each other in another way. [`joint_drift`] trains the [quick
//! model](crate::model) to separate rows of the two sides; unlike all else here it needs the rows themselves.

mod apart;
mod cells;
mod column;
mod distance;
mod joint;
mod number;
mod unknown;

use serde::{Deserialize, Serialize};
use trackway_core::checks::Verdict;
use trackway_statistics::benjamini_hochberg;
use trackway_tables::ColumnType;
use trackway_tables::profile::{ColumnProfile, Profile};

use crate::counted;
pub use apart::{ApartReason, SetApart};
pub(crate) use cells::{only_spelling, plain_spelling};
pub use column::{ColumnDrift, MissingDrift, Role};
pub use distance::{Distances, DriftTest};
pub use joint::{ColumnImportance, JointDrift, JointError, joint_drift, joint_drift_of};
pub use unknown::UnknownValues;

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
/// The least fraction of rows with a value that the reference does not have, above what is expected, that matters.
pub const UNKNOWN_FRACTION_MIN: f64 = 0.05;

/// Two data sets compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DriftReport {
    /// `block`: a model of the reference does not fit the current data; `warn`: something drifted; `pass`: nothing did.
    pub verdict: Verdict,
    pub reference_rows: u64,
    /// Rows of the current data.
    pub current_rows: u64,
    /// Rows of the reference whose numbers were compared, where it was a sample.
    #[serde(default)]
    pub reference_rows_sampled: Option<u64>,
    /// Rows of the current data whose numbers were compared, where it was a sample.
    #[serde(default)]
    pub current_rows_sampled: Option<u64>,
    /// Columns of both sides that were compared, in the reference's order; the label is among them with its role.
    pub columns: Vec<ColumnDrift>,
    /// Columns of both sides that were not compared, with the reason.
    #[serde(default)]
    pub set_apart: Vec<SetApart>,
    /// Columns that only one side has, or whose type changed, other than between whole numbers and numbers.
    pub schema_changes: Vec<SchemaChange>,
    /// What blocks, a sentence for each kind; empty if nothing does.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    pub drifted_features: usize,
    /// Whether the label drifted; `None` without one on both sides.
    pub label_drifted: Option<bool>,
    /// Whether a model separates the rows of the sides; `None` if that was not requested: it needs rows of both.
    #[serde(default)]
    pub joint: Option<JointDrift>,
}

/// What is known of the columns of two data sets beside their values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownColumns<'k> {
    /// The target column, if there is one: its shift is reported separately from that of the features.
    pub label: Option<&'k str>,
    /// The column that says when a row came about.
    pub time: Option<&'k str>,
    /// The column that says which rows belong together.
    pub group: Option<&'k str>,
    /// Columns that are not compared.
    pub skip: &'k [String],
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
    compare_known(reference, current, KnownColumns { label, ..KnownColumns::default() })
}

/// As [`compare`], with more that is known of the columns.
#[must_use]
pub fn compare_known(reference: &Profile, current: &Profile, known: KnownColumns<'_>) -> DriftReport {
    let is_raw = reference.masked_with.is_none() && current.masked_with.is_none();
    let is_skipped = |name: &str| known.skip.iter().any(|skip| skip == name);
    let (mut columns, mut set_apart, mut schema_changes) = (Vec::new(), Vec::new(), Vec::new());
    for before in &reference.columns {
        let after = current.column(&before.name);
        if is_skipped(&before.name) {
            set_apart.push(SetApart::skipped(&before.name));
            continue;
        }
        if let Some(after) = after.filter(|after| !is_another_type(before, after)) {
            match compared(before, after, known, is_raw) {
                Ok(compared) => columns.push(compared),
                Err(apart) => set_apart.push(apart),
            }
            continue;
        }
        schema_changes.push(SchemaChange {
            name: before.name.clone(),
            reference: Some(before.kind),
            current: after.map(|after| after.kind),
        });
        columns.extend(
            after.and_then(|after| column::compare(before, after, (known.role_of(before), is_raw)).ok()),
        );
    }
    for after in current.columns.iter().filter(|after| reference.column(&after.name).is_none()) {
        match is_skipped(&after.name) {
            true => set_apart.push(SetApart::skipped(&after.name)),
            false => schema_changes.push(SchemaChange {
                name: after.name.clone(),
                reference: None,
                current: Some(after.kind),
            }),
        }
    }
    decide(&mut columns);
    DriftReport {
        verdict: Verdict::Pass,
        reference_rows: reference.rows,
        current_rows: current.rows,
        reference_rows_sampled: reference.rows_sampled,
        current_rows_sampled: current.rows_sampled,
        drifted_features: columns.iter().filter(|it| it.role == Role::Feature && it.drifted).count(),
        label_drifted: columns.iter().find(|it| it.role == Role::Label).map(|it| it.drifted),
        columns,
        set_apart,
        schema_changes,
        blocked_by: Vec::new(),
        joint: None,
    }
    .judged()
}

/// A column of both sides with values of one type, compared or set apart.
fn compared(
    before: &ColumnProfile,
    after: &ColumnProfile,
    known: KnownColumns<'_>,
    is_raw: bool,
) -> Result<ColumnDrift, SetApart> {
    let role = known.role_of(before);
    let apart = || SetApart::known(&before.name, known).or_else(|| SetApart::seen(before, after));
    match Some(role).filter(|role| *role == Role::Feature).and_then(|_| apart()) {
        Some(apart) => Err(apart),
        None => column::compare(before, after, (role, is_raw)),
    }
}

impl KnownColumns<'_> {
    fn role_of(&self, column: &ColumnProfile) -> Role {
        if self.label == Some(column.name.as_str()) { Role::Label } else { Role::Feature }
    }
}

impl DriftReport {
    /// With the answer of a model that separates the rows of the sides.
    #[must_use]
    pub fn with_joint(self, joint: JointDrift) -> Self {
        Self { joint: Some(joint), ..self }.judged()
    }

    fn judged(self) -> Self {
        let joint = self.joint.as_ref().is_some_and(|joint| joint.drifted);
        let is_changed = !self.schema_changes.is_empty() || self.columns.iter().any(|column| column.drifted);
        let blocked_by = self.what_blocks();
        let verdict = match blocked_by.is_empty() {
            false => Verdict::Block,
            true if joint || is_changed => Verdict::Warn,
            true => Verdict::Pass,
        };
        Self { verdict, blocked_by, ..self }
    }

    /// Whether a model of the reference does not fit the current data: a column that it has is gone, of another type or without
    /// a value, its label has other values, or at least [`DRIFTED_SHARE_BLOCKS`] of its features drifted.
    #[must_use]
    pub fn blocks(&self) -> bool {
        !self.what_blocks().is_empty()
    }

    /// The compared columns that are features.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        self.columns.iter().filter(|column| column.role == Role::Feature).count()
    }

    /// How many of the features drifted, such as `2 of 3 features drifted`.
    #[must_use]
    pub fn drifted_of_features(&self) -> String {
        format!("{} of {} drifted", self.drifted_features, counted(self.feature_count() as u64, "feature"))
    }

    fn what_blocks(&self) -> Vec<String> {
        let lost = self.schema_changes.iter().filter(|change| change.blocks());
        let (gone, changed): (Vec<_>, Vec<_>) = lost.partition(|change| change.current.is_none());
        let emptied = self.columns.iter().filter(|column| column.is_emptied()).count();
        let of = |count: usize, one: &str, more: &str| {
            let verb = if count == 1 { one } else { more };
            (count > 0).then(|| format!("{} {verb}", counted(count as u64, "column")))
        };
        let label = self.columns.iter().find(|column| column.role == Role::Label);
        let other_labels = label.filter(|label| label.drifted && label.has_unknown_labels());
        let have_drifted = self.drifted_features > 0
            && self.drifted_features as f64 >= self.feature_count() as f64 * DRIFTED_SHARE_BLOCKS;
        let sentences = [
            of(gone.len(), "is gone", "are gone"),
            of(changed.len(), "changed its type", "changed their type"),
            of(emptied, "lost all its values", "lost all their values"),
            other_labels.map(|_| "the label has values that the reference does not have".to_owned()),
            have_drifted.then(|| self.drifted_of_features()),
        ];
        sentences.into_iter().flatten().collect()
    }
}

/// Whether the values are of another type now. Whole numbers and numbers are one type here: which of them a file has
/// depends on its rows. A side without a value shows no type.
fn is_another_type(before: &ColumnProfile, now: &ColumnProfile) -> bool {
    let is_number = |kind: ColumnType| matches!(kind, ColumnType::Int | ColumnType::Float);
    let have_values = column::has_values(before) && column::has_values(now);
    have_values && before.kind != now.kind && !(is_number(before.kind) && is_number(now.kind))
}

/// Corrects the p-values for their number, then decides which columns drifted.
fn decide(columns: &mut [ColumnDrift]) {
    let p_values: Vec<Vec<f64>> = columns.iter().map(ColumnDrift::p_values).collect();
    let adjusted = benjamini_hochberg(&p_values.concat());
    let mut left = adjusted.as_slice();
    for (column, tests) in columns.iter_mut().zip(&p_values) {
        let of_column;
        (of_column, left) = left.split_at(tests.len());
        column.decide(of_column);
    }
}

#[cfg(test)]
mod tests;
