//! One column compared.

use serde::{Deserialize, Serialize};
use trackway_statistics::{Table, chi_square};
use trackway_tables::profile::{ColumnProfile, ValueCount, hidden};

use super::apart::{ApartReason, SetApart};
use super::cells::{self, Cells};
use super::distance::{Distances, DriftTest, Judged};
use super::unknown::UnknownValues;
use super::{CATEGORY_VALUES_MAX, FALSE_DISCOVERY_RATE, MISSING_SHARE_MIN, number};
use crate::values::hashed::digest;

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
    /// Whether the values, or the fraction of missing ones, drifted, or too many values are unknown to the reference.
    pub drifted: bool,
    pub distances: Distances,
    /// Missing values.
    pub missing: MissingDrift,
    /// Rows whose value the reference does not have; of columns that are compared value by value.
    #[serde(default)]
    pub unknown: Option<UnknownValues>,
    /// How many values the reference does not have; only where every value of it is known.
    #[serde(default)]
    pub new_value_count: u64,
    /// The most frequent of them, at most 10.
    pub new_values: Vec<ValueCount>,
    /// How many values the current data no longer has.
    #[serde(default)]
    pub removed_value_count: u64,
    /// The most frequent of them, at most 10.
    pub removed_values: Vec<ValueCount>,
    /// Whether each new value is a gone one written differently (case, blanks, a full stop): a matter of encoding.
    pub only_spelling: bool,
}

/// Whether it has a value, and not only NaN.
pub(super) fn has_values(column: &ColumnProfile) -> bool {
    column.value_count() > column.nan_count()
}

/// The two compared, or why they cannot be. `is_raw`: the values of neither side are masked.
pub(super) fn compare(
    before: &ColumnProfile,
    after: &ColumnProfile,
    (role, is_raw): (Role, bool),
) -> Result<ColumnDrift, SetApart> {
    match (has_values(before), has_values(after)) {
        (true, true) => {}
        (false, false) => {
            let why = "no value on either side: unchanged".to_owned();
            return Err(SetApart { name: before.name.clone(), reason: ApartReason::NoValues, why });
        }
        _ => return Ok(without_values(before, after, role)),
    }
    // The column's own seed: its noise does not depend on the other columns.
    let seed = digest(before.name.as_bytes()) as u64;
    let sketches = before.quantile_sketch().zip(after.quantile_sketch());
    let few = [before, after]
        .map(|it| it.values_are_exact() && it.summary().distinct_estimate <= CATEGORY_VALUES_MAX as u64);
    let cells = Cells::of(before, after);
    let by_value = || cells.as_ref().map(|cells| cells::judge(cells, seed));
    let judged = match sketches {
        Some(_) if few == [true; 2] => by_value(),
        Some((one, other)) if one.count() > 0 && other.count() > 0 => {
            before.moments().map(|moments| number::judge((one, moments), other, seed))
        }
        Some(_) => None,
        None => by_value(),
    };
    let judged = judged.ok_or_else(|| not_comparable(before, sketches.is_some()))?;
    let values = cells.filter(|cells| sketches.is_none() || few == [true; 2] && cells.is_exact);
    let (new, removed, exact) =
        values.map_or_else(Default::default, |cells| (cells.new, cells.removed, cells.unknown));
    let is_exact = [before, after].map(ColumnProfile::values_are_exact);
    let is_sketched = sketches.is_none() && is_exact != [true; 2] && (is_raw || is_exact == [false; 2]);
    let about = || is_sketched.then(|| UnknownValues::about(before, after)).flatten();
    Ok(ColumnDrift {
        unknown: exact.or_else(about),
        only_spelling: cells::only_spelling(&new.listed, &removed.listed),
        new_value_count: new.count,
        new_values: shown(&before.name, new.listed),
        removed_value_count: removed.count,
        removed_values: shown(&before.name, removed.listed),
        ..of(before, after, role, judged)
    })
}

fn not_comparable(column: &ColumnProfile, is_number: bool) -> SetApart {
    let why = match is_number {
        true => "a side has no finite number".to_owned(),
        false => format!("values of the type {} are not compared", column.kind),
    };
    SetApart { name: column.name.clone(), reason: ApartReason::NotComparable, why }
}

/// One side has no values: nothing is known of how they changed, only that they are missing.
fn without_values(before: &ColumnProfile, after: &ColumnProfile, role: Role) -> ColumnDrift {
    let missing = missing(before, after);
    let judged = Judged {
        test: DriftTest::MissingFraction,
        statistic: (missing.current_fraction - missing.reference_fraction).abs(),
        effect_min: MISSING_SHARE_MIN,
        noise: 0.0,
        p_value: missing.p_value,
        distances: Distances::default(),
    };
    of(before, after, role, judged)
}

fn of(before: &ColumnProfile, after: &ColumnProfile, role: Role, judged: Judged) -> ColumnDrift {
    ColumnDrift {
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
        unknown: None,
        only_spelling: false,
        new_value_count: 0,
        new_values: Vec::new(),
        removed_value_count: 0,
        removed_values: Vec::new(),
    }
}

fn shown(column: &str, values: Vec<ValueCount>) -> Vec<ValueCount> {
    values.into_iter().map(|it| ValueCount { value: hidden(column, it.value), ..it }).collect()
}

impl ColumnDrift {
    /// The p-values of its tests, in an order that [`ColumnDrift::decide`] expects.
    pub(super) fn p_values(&self) -> Vec<f64> {
        let unknown = self.unknown.and_then(|unknown| unknown.p_value);
        [self.p_value, self.missing.p_value].into_iter().chain(unknown).collect()
    }

    /// With these p-values corrected for their number. A label with a value the reference does not have has drifted: no
    /// model trained on the reference can give it.
    pub(super) fn decide(&mut self, adjusted: &[f64]) {
        self.adjusted_p_value = adjusted[0];
        self.missing.adjusted_p_value = adjusted[1];
        let change = (self.missing.current_fraction - self.missing.reference_fraction).abs();
        self.missing.drifted = adjusted[1] <= FALSE_DISCOVERY_RATE && change > MISSING_SHARE_MIN;
        if let Some(unknown) = &mut self.unknown {
            unknown.decide(adjusted.get(2).copied());
        }
        self.drifted = self.values_drifted()
            || self.missing.drifted
            || self.unknown_drifted()
            || self.has_unknown_labels();
    }

    /// Whether the distance of its values matters and is significant.
    #[must_use]
    pub fn values_drifted(&self) -> bool {
        self.test != DriftTest::MissingFraction
            && self.adjusted_p_value <= FALSE_DISCOVERY_RATE
            && self.statistic > self.threshold
    }

    /// Whether more rows than expected have a value that the reference does not have.
    #[must_use]
    pub fn unknown_drifted(&self) -> bool {
        self.unknown.is_some_and(|unknown| unknown.drifted)
    }

    /// Whether it had values and has none any more.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.test == DriftTest::MissingFraction
            && self.missing.drifted
            && self.missing.current_fraction > self.missing.reference_fraction
    }

    /// Whether it is a label with values that the reference does not have.
    #[must_use]
    pub fn has_unknown_labels(&self) -> bool {
        self.role == Role::Label && !self.new_values.is_empty()
    }
}

fn missing(before: &ColumnProfile, after: &ColumnProfile) -> MissingDrift {
    // NaN is a missing value in floats, and no distance sees infinity.
    let nothing = |column: &ColumnProfile| {
        let missing = column.null_count + column.nan_count();
        missing as f64 + column.rows.saturating_sub(missing) as f64 * column.infinite_share()
    };
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
