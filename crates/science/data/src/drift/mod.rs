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

use trackway_core::checks::Verdict;
pub use trackway_results::drift::{
    ApartReason, ColumnDrift, ColumnImportance, DRIFTED_SHARE_BLOCKS, Distances, DriftReport, DriftTest,
    FALSE_DISCOVERY_RATE, JointDrift, MissingDrift, Role, SchemaChange, SetApart, UnknownValues,
};
use trackway_statistics::benjamini_hochberg;
use trackway_tables::ColumnType;
use trackway_tables::profile::{ColumnProfile, Profile};

pub(crate) use cells::{only_spelling, plain_spelling};
pub use joint::{JointError, joint_drift, joint_drift_of};

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
            set_apart.push(apart::skipped(&before.name));
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
            true => set_apart.push(apart::skipped(&after.name)),
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
    let set_apart = || apart::known(&before.name, known).or_else(|| apart::seen(before, after));
    match Some(role).filter(|role| *role == Role::Feature).and_then(|_| set_apart()) {
        Some(apart) => Err(apart),
        None => column::compare(before, after, (role, is_raw)),
    }
}

impl KnownColumns<'_> {
    fn role_of(&self, column: &ColumnProfile) -> Role {
        if self.label == Some(column.name.as_str()) { Role::Label } else { Role::Feature }
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
    let p_values: Vec<Vec<f64>> = columns.iter().map(column::p_values).collect();
    let adjusted = benjamini_hochberg(&p_values.concat());
    let mut left = adjusted.as_slice();
    for (column, tests) in columns.iter_mut().zip(&p_values) {
        let of_column;
        (of_column, left) = left.split_at(tests.len());
        column::decide(column, of_column);
    }
}

#[cfg(test)]
mod tests;
