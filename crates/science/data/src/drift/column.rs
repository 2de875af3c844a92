//! One column compared.

use trackway_results::drift::{
    ApartReason, ColumnDrift, Distances, DriftTest, FALSE_DISCOVERY_RATE, MissingDrift, Role, SetApart,
};
use trackway_statistics::{Table, chi_square};
use trackway_tables::profile::{ColumnProfile, ValueCount, hidden};

use super::cells::{self, Cells};
use super::distance::ComparedDistance;
use super::{CATEGORY_VALUES_MAX, MISSING_SHARE_MIN, number, unknown};
use crate::values::hashed::digest;

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
    let about = || is_sketched.then(|| unknown::about(before, after)).flatten();
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
    let judged = ComparedDistance {
        test: DriftTest::MissingFraction,
        statistic: (missing.current_fraction - missing.reference_fraction).abs(),
        effect_min: MISSING_SHARE_MIN,
        noise: 0.0,
        p_value: missing.p_value,
        distances: Distances::default(),
    };
    of(before, after, role, judged)
}

fn of(before: &ColumnProfile, after: &ColumnProfile, role: Role, judged: ComparedDistance) -> ColumnDrift {
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

/// The p-values of the tests of a column, in an order that [`decide`] expects.
pub(super) fn p_values(column: &ColumnDrift) -> Vec<f64> {
    let unknown = column.unknown.and_then(|unknown| unknown.p_value);
    [column.p_value, column.missing.p_value].into_iter().chain(unknown).collect()
}

/// Decides with these p-values, corrected for their number. A label with a value the reference does not have has drifted: no
/// model trained on the reference can give it.
pub(super) fn decide(column: &mut ColumnDrift, adjusted: &[f64]) {
    column.adjusted_p_value = adjusted[0];
    column.missing.adjusted_p_value = adjusted[1];
    let change = (column.missing.current_fraction - column.missing.reference_fraction).abs();
    column.missing.drifted = adjusted[1] <= FALSE_DISCOVERY_RATE && change > MISSING_SHARE_MIN;
    if let Some(unknown) = &mut column.unknown {
        unknown::decide(unknown, adjusted.get(2).copied());
    }
    column.drifted = column.values_drifted()
        || column.missing.drifted
        || column.unknown_drifted()
        || column.has_unknown_labels();
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
