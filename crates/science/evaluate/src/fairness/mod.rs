//! How groups of rows fare under the same predictions.
//!
//! A measure is the largest difference (or least ratio) between two groups, as in Fairlearn; of three or more classes
//! the worst over classes, each against all others. Its interval comes from the intervals of all pairs of groups, each made wider for the
//! number of pairs and classes (Bonferroni): the largest is between the largest lower end and the largest upper end of
//! all pairs. The largest of several numbers is always above 0, so a
//! bootstrap alone would call every table unfair; these intervals include 0 if no pair differs significantly.

mod rates;

use std::collections::{BTreeMap, BTreeSet};

use trackway_data::model::{Frame, MISSING_CODE};
use trackway_statistics::{Interval, difference_interval, ratio_interval};

use crate::error::{AssessError, Result};
pub use crate::limits::FAIRNESS_GROUPS_MAX;
use crate::metrics::rows::coverage::Needs;
use crate::metrics::rows::{Items, values_of};
use crate::metrics::scoring::Scoring;
use crate::metrics::{Judge, measure};
use crate::{Estimate, Fairness, FairnessGroup, Method, Metrics};
use rates::{FALSE_POSITIVE, Kind, SELECTION, TRUE_POSITIVE, of_class};

/// The groups of one column. A group with fewer rows, or fewer rows of a class, than `support_min` is inconclusive.
///
/// # Errors
/// No such column, too many groups, or predictions that are neither classes nor numbers.
pub(crate) fn fairness(
    frame: &Frame,
    items: &Items,
    column: &str,
    support_min: u64,
    judge: Judge,
) -> Result<Fairness> {
    let kind = Kind::of(items)?;
    let index = frame.index_of(column).ok_or_else(|| AssessError::no_column(frame, column))?;
    let (names, codes) = values_of(&frame.columns()[index]);
    if names.len() > FAIRNESS_GROUPS_MAX {
        return Err(AssessError::TooManyGroups { column: column.to_owned(), groups: names.len() });
    }
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
    let mut rows_without_group = 0;
    for (item, row) in (0..).zip(&items.row_of_item) {
        match codes[*row as usize] {
            MISSING_CODE => rows_without_group += 1,
            code => members[code as usize].push(item),
        }
    }
    let mut groups: Vec<(String, Vec<u32>)> =
        names.iter().cloned().zip(members).filter(|(_, members)| !members.is_empty()).collect();
    groups.sort_by(|one, other| other.1.len().cmp(&one.1.len()).then_with(|| one.0.cmp(&other.0)));
    // Each pair of groups is one more test, and for several classes each class of it.
    let tests = (groups.len() * groups.len().saturating_sub(1) / 2).max(1) * kind.tests_of_pair();
    let wider = 1.0 - (1.0 - judge.resampling.confidence) / tests as f64;
    let groups: Vec<(String, Items)> =
        groups.into_iter().map(|(name, members)| (name, items.subset(&members))).collect();
    let rates: Vec<Metrics> = groups.iter().map(|(_, items)| kind.rates(items, wider)).collect();
    let support = groups.iter().map(|(_, items)| items.len() as u64).sum();
    let (mut measures, worst_classes) = measures(&kind, &rates, support);
    let shown: BTreeSet<&str> = worst_classes.values().map(String::as_str).collect();
    let groups: Vec<FairnessGroup> = groups
        .into_iter()
        .map(|(name, items)| {
            let group = group(name, &items, (&kind, &shown), support_min, judge);
            let mut metrics = group.metrics.clone();
            let is_member =
                |row: usize| codes[row] != MISSING_CODE && names[codes[row] as usize] == group.name;
            items.rows.cover(&mut metrics, judge.missing, is_member);
            FairnessGroup { metrics, ..group }
        })
        .collect();
    // A row without a group is in no measure, and one without a prediction was not treated in any way.
    let mut coverage =
        items.rows.coverage(Needs::Predictions, judge.missing, |row| codes[row] != MISSING_CODE);
    coverage.rows_expected = items.rows.coverage(Needs::Predictions, judge.missing, |_| true).rows_expected;
    measures.values_mut().for_each(|estimate| estimate.coverage = coverage);
    Ok(Fairness { column: column.to_owned(), measures, worst_classes, groups, rows_without_group })
}

/// One group by itself, with intervals at the requested confidence level. Of several classes only the rates of those
/// in `shown` are kept.
fn group(
    name: String,
    items: &Items,
    (kind, shown): (&Kind, &BTreeSet<&str>),
    support_min: u64,
    judge: Judge,
) -> FairnessGroup {
    let mut metrics = kind.rates(items, judge.resampling.confidence);
    let why = too_few(kind, items, &metrics, support_min);
    if let Kind::Classes(classes) = kind {
        for class in classes.iter().filter(|class| !shown.contains(class.as_str())) {
            for rate in [SELECTION, TRUE_POSITIVE, FALSE_POSITIVE] {
                metrics.remove(&of_class(rate, class));
            }
        }
    }
    let scoring = Scoring::of(items, judge.recall);
    for kept in ["accuracy", "ece"] {
        metrics.extend(measure(&scoring.clone().only(kept), judge));
    }
    FairnessGroup { name, support: items.len() as u64, inconclusive: why.is_some(), why, metrics }
}

/// Why a group is too small for a conclusion, if so.
fn too_few(kind: &Kind, items: &Items, rates: &Metrics, support_min: u64) -> Option<String> {
    let count = |rate: &str| rates.get(rate).map_or(0, |estimate| estimate.support);
    let mut counts = vec![(items.len() as u64, "rows".to_owned())];
    match kind {
        Kind::Binary(_) => counts.extend([
            (count(TRUE_POSITIVE), "rows with a positive label".to_owned()),
            (count(FALSE_POSITIVE), "rows with a negative label".to_owned()),
        ]),
        Kind::Classes(classes) => {
            counts.extend(classes.iter().map(|class| {
                (count(&of_class(TRUE_POSITIVE, class)), format!("rows with the label `{class}`"))
            }))
        }
        Kind::Values => {}
    }
    let (count, what) = counts.into_iter().find(|(count, _)| *count < support_min)?;
    Some(format!("it has {count} {what}, fewer than {support_min}"))
}

/// All measures of the groups, whose rates these are, and of those over several classes the class that is worst.
fn measures(kind: &Kind, rates: &[Metrics], support: u64) -> (Metrics, BTreeMap<String, String>) {
    let (mut measures, mut worst_classes) = (Metrics::new(), BTreeMap::new());
    for measure in kind.measures() {
        let extreme = if measure.is_ratio { least_ratio } else { largest_difference };
        let is_known = |rate: &&(String, Option<String>)| {
            rates.iter().filter(|it| it.contains_key(&rate.0)).count() >= 2
        };
        let known: Vec<&(String, Option<String>)> = measure.rates.iter().filter(is_known).collect();
        // Of two classes both rates count; a class that only one group has cannot differ between groups.
        let is_whole = known.len() == measure.rates.len() || matches!(kind, Kind::Classes(_));
        let names: Vec<&str> = known.iter().map(|(rate, _)| rate.as_str()).collect();
        let Some(estimate) = extreme_of(rates, &names, support, extreme).filter(|_| is_whole) else {
            continue;
        };
        // The larger, the worse; a ratio is the worse, the smaller it is.
        let badness = |rate: &str| {
            let alone = extreme_of(rates, &[rate], support, extreme).map(|estimate| estimate.value);
            alone.map_or(f64::NEG_INFINITY, |value| if measure.is_ratio { -value } else { value })
        };
        let worst = known.into_iter().max_by(|one, other| badness(&one.0).total_cmp(&badness(&other.0)));
        if let Some((_, Some(class))) = worst {
            worst_classes.insert(measure.name.to_owned(), class.clone());
        }
        measures.insert(measure.name.to_owned(), estimate);
    }
    (measures, worst_classes)
}

/// A value with the interval that all pairs leave for it.
type ValueAndInterval = (f64, Interval);

/// The most extreme of some rates over the groups. A group whose rate has no interval leaves the measure open. `None`
/// where fewer than two groups have one of the rates.
fn extreme_of(
    rates: &[Metrics],
    of: &[&str],
    support: u64,
    extreme: fn(&[(ValueAndInterval, ValueAndInterval)]) -> Option<ValueAndInterval>,
) -> Option<Estimate> {
    let mut pairs = Vec::new();
    let mut method = Method::Analytic;
    for rate in of {
        let known: Vec<ValueAndInterval> = rates
            .iter()
            .filter_map(|rates| rates.get(*rate))
            .map(|estimate| {
                method = estimate.method;
                (estimate.value, estimate.interval)
            })
            .collect();
        if known.len() < 2 {
            return None;
        }
        for (place, one) in known.iter().enumerate() {
            for (other_place, other) in known.iter().enumerate() {
                if place != other_place {
                    pairs.push((*one, *other));
                }
            }
        }
    }
    let (value, interval) = extreme(&pairs)?;
    value.is_finite().then(|| Estimate::new(value, interval, support, method))
}

fn largest_difference(pairs: &[(ValueAndInterval, ValueAndInterval)]) -> Option<ValueAndInterval> {
    let all = pairs.iter().map(|(one, other)| (one.0 - other.0, difference_interval(*one, *other)));
    all.reduce(|(most, held), (value, interval)| {
        (most.max(value), Interval { low: held.low.max(interval.low), high: held.high.max(interval.high) })
    })
    .map(|(value, held)| (value, Interval { low: held.low.max(0.0), high: held.high }))
}

fn least_ratio(pairs: &[(ValueAndInterval, ValueAndInterval)]) -> Option<ValueAndInterval> {
    let all = pairs.iter().filter(|(_, below)| below.0 > 0.0);
    let all = all.map(|(above, below)| (above.0 / below.0, ratio_interval(*above, *below)));
    all.reduce(|(least, held), (value, interval)| {
        (least.min(value), Interval { low: held.low.min(interval.low), high: held.high.min(interval.high) })
    })
    .map(|(value, held)| (value.min(1.0), Interval { low: held.low, high: held.high.min(1.0) }))
}
