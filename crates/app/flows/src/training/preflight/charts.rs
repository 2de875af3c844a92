//! Distributions of each column, set beside set, as plain numbers for a page to draw. Computed from profiles alone.

use std::collections::{BTreeMap, BTreeSet};

use trackway_api::runs::preflight::{ColumnChart, Scale, Series};
use trackway_core::Timestamp;
use trackway_data::integrity::personal_columns;
use trackway_tables::profile::ColumnProfile;

use super::sets::SetProfile;

/// Bars of a number's distribution.
const BINS: usize = 24;
/// Bars of a category: its most frequent values; the others are one more bar.
const VALUES_MAX: usize = 10;
/// Outliers beyond these fractions go to the first and the last bar, so that they do not flatten all others.
const ENDS: [f64; 2] = [0.005, 0.995];
/// Whole numbers of at most so many different values are drawn value by value.
const FEW_VALUES: u64 = 24;
/// A string column whose frequent values are rarer than this is not a category.
const CATEGORY_SHARE_MIN: f64 = 0.02;
/// Columns that are drawn.
const COLUMNS_MAX: usize = 200;

/// The charts of all columns, in the order of the first set. Values of columns with personal data are not shown.
pub fn charts(sets: &[SetProfile], now: Timestamp) -> Vec<ColumnChart> {
    let Some(first) = sets.first() else { return Vec::new() };
    // A sign-off for the data does not permit showing it.
    let found = sets.iter().flat_map(|set| personal_columns(&set.evidence, &[], now));
    let personal: BTreeSet<String> = found.map(|found| found.column).collect();
    let columns = first.evidence.profile.columns.iter().take(COLUMNS_MAX);
    columns.map(|column| chart(&column.name, sets, personal.contains(&column.name))).collect()
}

fn chart(name: &str, sets: &[SetProfile], is_personal: bool) -> ColumnChart {
    let sides: Vec<(&SetProfile, &ColumnProfile)> =
        sets.iter().filter_map(|set| Some((set, set.evidence.profile.column(name)?))).collect();
    let scale = if is_personal { Scale::Texts } else { scale(&sides) };
    let series = sides.iter().map(|(set, column)| Series {
        set: set.name.clone(),
        missing_share: column.null_count as f64 / column.rows.max(1) as f64,
        distinct: column.summary().distinct_estimate,
        shares: shares(column, &scale),
    });
    let is_label = sets.iter().any(|set| set.label.as_deref() == Some(name));
    ColumnChart { name: name.to_owned(), is_label, series: series.collect(), scale }
}

fn scale(sides: &[(&SetProfile, &ColumnProfile)]) -> Scale {
    let few = |column: &ColumnProfile| {
        column.values_are_exact() && column.summary().distinct_estimate <= FEW_VALUES
    };
    let is_number = sides.iter().all(|(_, column)| column.quantile_sketch().is_some());
    if is_number && !sides.iter().all(|(_, column)| few(column)) {
        return range(sides).map_or(Scale::Texts, |(low, high)| Scale::Range(low, high));
    }
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for (_, column) in sides {
        let values = (column.rows - column.null_count).max(1) as f64;
        for top in column.top_values(VALUES_MAX) {
            *counts.entry(top.value.to_string()).or_default() += top.count as f64 / values;
        }
    }
    let mut frequent: Vec<(String, f64)> = counts.into_iter().collect();
    frequent.sort_by(|one, other| other.1.total_cmp(&one.1));
    frequent.truncate(VALUES_MAX);
    if frequent.first().is_none_or(|(_, share)| *share < CATEGORY_SHARE_MIN) {
        return Scale::Texts;
    }
    let mut values: Vec<String> = frequent.into_iter().map(|(value, _)| value).collect();
    if is_number {
        values.sort_by(|one, other| number(one).total_cmp(&number(other)));
    }
    Scale::Values(values)
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// From the lowest to the highest of all sets, outliers aside.
fn range(sides: &[(&SetProfile, &ColumnProfile)]) -> Option<(f64, f64)> {
    let ends = sides.iter().filter_map(|(_, column)| column.quantile_sketch()?.at(&ENDS));
    let (low, high) = ends
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ends| (low.min(ends[0]), high.max(ends[1])));
    let fits = low.is_finite() && high.is_finite();
    fits.then_some(if low < high { (low, high) } else { (low - 0.5, high + 0.5) })
}

fn shares(column: &ColumnProfile, scale: &Scale) -> Vec<f64> {
    let of = |counts: Vec<u64>, all: u64| -> Vec<f64> {
        counts.into_iter().map(|count| count as f64 / all.max(1) as f64).collect()
    };
    match scale {
        Scale::Texts => Vec::new(),
        Scale::Range(low, high) => {
            let edge = |place: usize| low + (high - low) * place as f64 / BINS as f64;
            let edges: Vec<f64> = (0..=BINS).map(edge).collect();
            let sketch = column.quantile_sketch();
            sketch.map(|sketch| of(sketch.histogram(&edges), sketch.count())).unwrap_or_default()
        }
        Scale::Values(values) => {
            let counts: BTreeMap<String, u64> = column
                .top_values(usize::MAX)
                .into_iter()
                .map(|it| (it.value.to_string(), it.count))
                .collect();
            let all = column.rows - column.null_count;
            let named: Vec<u64> =
                values.iter().map(|value| counts.get(value).copied().unwrap_or(0)).collect();
            let others = all.saturating_sub(named.iter().sum());
            of(named.into_iter().chain([others]).collect(), all)
        }
    }
}

/// Sets in the order in which they are drawn: what is learned from first.
pub fn in_order(mut sets: Vec<SetProfile>) -> Vec<SetProfile> {
    sets.sort_by_key(|set| set.role.map_or(1, |role| role as u8));
    sets
}
