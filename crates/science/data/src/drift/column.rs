//! One column compared.

use serde::{Deserialize, Serialize};
use trackway_statistics::{Table, chi_square};

use super::cells::{self, Cells};
use super::distance::{Distances, DriftTest};
use super::{CATEGORY_VALUES_MAX, FALSE_DISCOVERY_RATE, MISSING_SHARE_MIN, number};
use crate::hashed::digest;
use crate::profile::{ColumnProfile, ValueCount, hidden};

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "ColumnRole")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// An input of the model.
    Feature,
    /// What is predicted.
    Label,
}

/// How missing values changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MissingDrift {
    /// Fraction of the reference's rows without a value; NaN counts as none.
    pub reference_fraction: f64,
    /// Fraction of the current rows without a value.
    pub current_fraction: f64,
    /// Of both fractions being the same.
    pub p_value: f64,
    /// Corrected for the number of tests.
    pub adjusted_p_value: f64,
    /// Whether the change matters and is significant.
    pub drifted: bool,
}

/// One column of both data sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ColumnDrift {
    /// The column.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The distance that decides.
    pub test: DriftTest,
    /// That distance.
    pub statistic: f64,
    /// What it must exceed.
    pub threshold: f64,
    /// What two samples of the reference of these sizes stay below in 99 of 100 cases.
    pub noise: f64,
    /// Of both sides having one distribution (Kolmogorov–Smirnov for numbers, chi-square for categories).
    pub p_value: f64,
    /// Corrected for the number of tests.
    pub adjusted_p_value: f64,
    /// Whether the values, or the fraction of missing ones, drifted.
    pub drifted: bool,
    /// All distances.
    pub distances: Distances,
    /// Missing values.
    pub missing: MissingDrift,
    /// Values that the reference does not have, most frequent first; only where every value is known.
    pub new_values: Vec<ValueCount>,
    /// Values that the current data no longer has.
    pub removed_values: Vec<ValueCount>,
    /// Whether each new value is a gone one written differently (case, blanks, a full stop): a matter of encoding.
    pub only_spelling: bool,
}

/// `None` when the two have nothing in common to compare.
pub(super) fn compare(before: &ColumnProfile, after: &ColumnProfile, role: Role) -> Option<ColumnDrift> {
    // The column's own seed: its noise does not depend on the other columns.
    let seed = digest(before.name.as_bytes()) as u64;
    let sketches = before.quantile_sketch().zip(after.quantile_sketch());
    let few = [before, after]
        .map(|it| it.values_are_exact() && it.summary().distinct_estimate <= CATEGORY_VALUES_MAX as u64);
    let cells = Cells::of(before, after);
    let judged = match sketches {
        Some(_) if few == [true; 2] => cells::judge(cells.as_ref()?, seed),
        Some((one, other)) if one.count() > 0 && other.count() > 0 => {
            number::judge((one, before.moments()?), other, seed)
        }
        Some(_) => return None,
        None => cells::judge(cells.as_ref()?, seed),
    };
    let values = cells.filter(|cells| sketches.is_none() || few == [true; 2] && cells.is_exact);
    let (new_values, removed_values) =
        values.map_or_else(Default::default, |cells| (cells.new_values, cells.removed_values));
    Some(ColumnDrift {
        name: before.name.clone(),
        role,
        test: judged.test,
        statistic: judged.statistic,
        threshold: judged.effect_min.max(judged.noise),
        noise: judged.noise,
        p_value: judged.p_value,
        adjusted_p_value: judged.p_value,
        drifted: false,
        distances: judged.distances,
        missing: missing(before, after),
        only_spelling: cells::only_spelling(&new_values, &removed_values),
        new_values: shown(&before.name, new_values),
        removed_values: shown(&before.name, removed_values),
    })
}

fn shown(column: &str, values: Vec<ValueCount>) -> Vec<ValueCount> {
    values.into_iter().map(|it| ValueCount { value: hidden(column, it.value), ..it }).collect()
}

impl ColumnDrift {
    /// With p-values corrected for their number. A label with a value the reference does not have has drifted: no
    /// model trained on the reference can give it.
    pub(super) fn decide(&mut self, adjusted: f64, adjusted_missing: f64) {
        self.adjusted_p_value = adjusted;
        self.missing.adjusted_p_value = adjusted_missing;
        let change = (self.missing.current_fraction - self.missing.reference_fraction).abs();
        self.missing.drifted = adjusted_missing <= FALSE_DISCOVERY_RATE && change > MISSING_SHARE_MIN;
        self.drifted = self.values_drifted() || self.missing.drifted || self.has_unknown_labels();
    }

    /// Whether the distance of its values matters and is significant.
    #[must_use]
    pub fn values_drifted(&self) -> bool {
        self.adjusted_p_value <= FALSE_DISCOVERY_RATE && self.statistic > self.threshold
    }

    /// Whether it is a label with values that the reference does not have.
    #[must_use]
    pub fn has_unknown_labels(&self) -> bool {
        self.role == Role::Label && !self.new_values.is_empty()
    }
}

fn missing(before: &ColumnProfile, after: &ColumnProfile) -> MissingDrift {
    // NaN is a missing value in floats.
    let nothing = |column: &ColumnProfile| (column.null_count + column.nan_count()) as f64;
    let row = |column: &ColumnProfile| vec![nothing(column), column.rows as f64 - nothing(column)];
    let share = |column: &ColumnProfile| nothing(column) / column.rows.max(1) as f64;
    // Two columns that miss nothing, or everything, do not differ.
    let p_value = chi_square(&Table::new(&[row(before), row(after)])).map_or(1.0, |found| found.p_value);
    MissingDrift {
        reference_fraction: share(before),
        current_fraction: share(after),
        p_value,
        adjusted_p_value: p_value,
        drifted: false,
    }
}
