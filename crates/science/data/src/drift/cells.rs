//! Categories: strings, booleans, numbers with few values.

use std::collections::HashMap;

use trackway_core::SplitMix64;
use trackway_statistics::{
    Table, chi_square, jensen_shannon, l_infinity, noise_floor, population_stability_index,
};
use trackway_tables::profile::{ColumnProfile, Value, ValueCount};

use super::distance::ComparedDistance;
use super::{
    CRAMERS_V_MIN, Distances, DriftTest, FEW_CELLS_MAX, JENSEN_SHANNON_MIN, L_INFINITY_MIN,
    SMALL_SAMPLE_ROWS, UnknownValues, unknown,
};
use crate::values::unicode_form::composed;

/// Pairs of random samples that estimate the noise, and the fraction of them that stays below it.
pub(super) const NOISE_ROUNDS: usize = 200;
pub(super) const NOISE_QUANTILE: f64 = 0.99;

/// A cell must expect so many rows on each side to be tested on its own (Cochran 1954); rarer values are one cell.
const EXPECTED_ROWS_MIN: f64 = 5.0;

/// The most new and gone values that are reported.
const VALUES_LISTED: usize = 10;

type Distance = fn(&[f64], &[f64]) -> f64;

/// Values of both sides with their counts.
pub(super) struct Cells {
    /// Rows per value; the last cell holds all rare ones.
    before: Vec<f64>,
    after: Vec<f64>,
    /// Whether every value of both sides is known.
    pub(super) is_exact: bool,
    pub(super) new: Different,
    pub(super) removed: Different,
    /// Where every value of both sides is known.
    pub(super) unknown: Option<UnknownValues>,
}

/// Values that only one side has.
#[derive(Default)]
pub(super) struct Different {
    pub(super) count: u64,
    /// The most frequent ones.
    pub(super) listed: Vec<ValueCount>,
}

impl Cells {
    /// `None` where a side has no values that can be distinguished.
    pub(super) fn of(before: &ColumnProfile, after: &ColumnProfile) -> Option<Self> {
        let (one, other) = (Counts::of(before)?, Counts::of(after)?);
        let mut names: Vec<&str> =
            one.by_value.keys().chain(other.by_value.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let (share, other_share) = (one.rows / (one.rows + other.rows), other.rows / (one.rows + other.rows));
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for name in names {
            let (count, other_count) = (one.count(name), other.count(name));
            let both = count + other_count;
            if both * share >= EXPECTED_ROWS_MIN && both * other_share >= EXPECTED_ROWS_MIN {
                before.push(count);
                after.push(other_count);
            }
        }
        let (listed, other_listed) = (before.iter().sum::<f64>(), after.iter().sum::<f64>());
        before.push((one.rows - listed).max(0.0));
        after.push((other.rows - other_listed).max(0.0));
        let is_exact = one.is_exact && other.is_exact;
        let unknown = is_exact.then(|| unknown::exact(&one.by_value, &other.by_value)).flatten();
        Some(Self {
            before,
            after,
            is_exact,
            new: if one.is_exact { other.without(&one) } else { Different::default() },
            removed: if other.is_exact { one.without(&other) } else { Different::default() },
            unknown,
        })
    }
}

struct Counts {
    by_value: HashMap<String, f64>,
    listed: Vec<ValueCount>,
    rows: f64,
    is_exact: bool,
}

impl Counts {
    fn of(column: &ColumnProfile) -> Option<Self> {
        let listed = column.top_values(usize::MAX);
        let by_value = listed.iter().map(|it| (key(&it.value), it.count as f64)).collect();
        let rows = column.value_count() as f64;
        let is_exact = column.values_are_exact();
        // Of very many values none may be frequent enough to be listed.
        let has_values = !listed.is_empty() || column.summary().distinct_estimate > 0;
        (rows > 0.0 && has_values).then_some(Self { by_value, listed, rows, is_exact })
    }

    fn count(&self, value: &str) -> f64 {
        self.by_value.get(value).copied().unwrap_or(0.0)
    }

    fn without(&self, other: &Self) -> Different {
        let missing = self.listed.iter().filter(|it| !other.by_value.contains_key(&key(&it.value)));
        Different {
            count: missing.clone().count() as u64,
            listed: missing.take(VALUES_LISTED).cloned().collect(),
        }
    }
}

/// A value as it is compared: `2` and `2.0` are one.
fn key(value: &Value) -> String {
    match value {
        Value::Float(float) => (*float + 0.0).to_string(),
        other => other.to_string(),
    }
}

pub(super) fn judge(cells: &Cells, seed: u64) -> ComparedDistance {
    let (before, after) = (&cells.before, &cells.after);
    let (reference_rows, current_rows) = (before.iter().sum::<f64>(), after.iter().sum::<f64>());
    let effective_rows = reference_rows * current_rows / (reference_rows + current_rows);
    let distances = Distances {
        cramers_v: Some(cramers_v(before, after)),
        jensen_shannon: Some(jensen_shannon(before, after)),
        population_stability_index: Some(population_stability_index(before, after)),
        l_infinity: Some(l_infinity(before, after)),
        ..Distances::default()
    };
    let test = if effective_rows <= SMALL_SAMPLE_ROWS {
        DriftTest::CramersV
    } else if before.len() <= FEW_CELLS_MAX {
        DriftTest::JensenShannon
    } else {
        DriftTest::LInfinity
    };
    let (distance, effect_min): (Distance, f64) = match test {
        DriftTest::CramersV => (cramers_v, CRAMERS_V_MIN),
        DriftTest::JensenShannon => (jensen_shannon, JENSEN_SHANNON_MIN),
        _ => (l_infinity, L_INFINITY_MIN),
    };
    let mut rng = SplitMix64::new(seed);
    let shares: Vec<f64> = before.iter().map(|rows| rows / reference_rows).collect();
    let rounds = (NOISE_ROUNDS, NOISE_QUANTILE);
    let noise = noise_floor(&shares, reference_rows, current_rows, distance, rounds, &mut rng);
    // One value that fills both sides: nothing differs.
    let p_value = chi_square(&table(before, after)).map_or(1.0, |found| found.p_value);
    // A constant reference makes no noise, and its samples have no distance.
    let noise = if noise.is_nan() { 0.0 } else { noise };
    ComparedDistance { test, statistic: distance(before, after), effect_min, noise, p_value, distances }
}

fn table(before: &[f64], after: &[f64]) -> Table {
    Table::new(&[before.to_vec(), after.to_vec()])
}

/// For a table of two rows, without a bias correction: the noise includes it.
fn cramers_v(before: &[f64], after: &[f64]) -> f64 {
    let table = table(before, after);
    chi_square(&table).map_or(0.0, |found| (found.statistic / table.sum()).sqrt())
}

/// Whether each new value is a gone one written differently.
pub(crate) fn only_spelling(new_values: &[ValueCount], removed_values: &[ValueCount]) -> bool {
    let gone: Vec<String> = removed_values.iter().map(plain_spelling).collect();
    !new_values.is_empty() && new_values.iter().all(|it| gone.contains(&plain_spelling(it)))
}

/// A value without what spellings differ in: case, Unicode form, blanks, dashes, a full stop at its end.
pub(crate) fn plain_spelling(value: &ValueCount) -> String {
    let text = composed(&key(&value.value)).to_lowercase();
    text.trim().trim_end_matches(['.', ',', ';', ':']).replace(['-', '_', ' '], "")
}
