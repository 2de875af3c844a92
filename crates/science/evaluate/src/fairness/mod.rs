//! How groups of rows fare under the same predictions.
//!
//! A measure is the largest difference (or least ratio) between two groups, as in Fairlearn. Its interval comes from
//! the intervals of all pairs of groups, each made wider for the number of pairs (Bonferroni): the largest is between
//! the largest lower end and the largest upper end of all pairs. The largest of several numbers is always above 0, so a
//! bootstrap alone would call every table unfair; these intervals include 0 if no pair differs significantly.

use trackway_data::model::{Frame, MISSING_CODE};
use trackway_statistics::{Interval, difference_interval, ratio_interval};

use crate::error::AssessError;
pub use crate::limits::FAIRNESS_GROUPS_MAX;
use crate::metrics::coverage::Needs;
use crate::metrics::ratio::{Link, Ratio};
use crate::metrics::rows::{Content, Items, values_of};
use crate::metrics::scoring::Scoring;
use crate::metrics::{Judge, cell_table, measure};
use crate::{Estimate, Fairness, FairnessGroup, Method, Metrics};

/// The rates of a group that measures are made of.
const SELECTION: &str = "selection_rate";
const TRUE_POSITIVE: &str = "true_positive_rate";
const FALSE_POSITIVE: &str = "false_positive_rate";
const BIAS: &str = "calibration_bias";

/// The name of a measure of the largest difference, and the rates it is over.
const DIFFERENCES: [(&str, &[&str]); 4] = [
    ("demographic_parity", &[SELECTION]),
    ("equal_opportunity", &[TRUE_POSITIVE]),
    ("equalized_odds", &[TRUE_POSITIVE, FALSE_POSITIVE]),
    ("calibration", &[BIAS]),
];

/// The same of the least ratio.
const RATIOS: [(&str, &[&str]); 3] = [
    ("demographic_parity_ratio", &[SELECTION]),
    ("equal_opportunity_ratio", &[TRUE_POSITIVE]),
    ("equalized_odds_ratio", &[TRUE_POSITIVE, FALSE_POSITIVE]),
];

/// The groups of one column. A group with fewer rows, positives or negatives than `support_min` is inconclusive.
///
/// # Errors
/// No such column, too many groups, or predictions that are not of two classes.
pub(crate) fn fairness(
    frame: &Frame,
    items: &Items,
    column: &str,
    support_min: u64,
    judge: Judge,
) -> Result<Fairness, AssessError> {
    let Content::Classes(classes) = &items.content else { return Err(AssessError::NotFairly) };
    let positive = classes.positive.ok_or(AssessError::NotFairly)?;
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
    // Each pair of groups is one more test.
    let pairs = (groups.len() * groups.len().saturating_sub(1) / 2).max(1);
    let wider = 1.0 - (1.0 - judge.resampling.confidence) / pairs as f64;
    let groups: Vec<(String, Items)> =
        groups.into_iter().map(|(name, members)| (name, items.subset(&members))).collect();
    let rates: Vec<Metrics> = groups.iter().map(|(_, items)| rates(items, positive, wider)).collect();
    let groups: Vec<FairnessGroup> = groups
        .into_iter()
        .map(|(name, items)| {
            let group = group(name, &items, positive, support_min, judge);
            let mut metrics = group.metrics.clone();
            let is_member =
                |row: usize| codes[row] != MISSING_CODE && names[codes[row] as usize] == group.name;
            items.rows.cover(&mut metrics, judge.missing, is_member);
            FairnessGroup { metrics, ..group }
        })
        .collect();
    let mut measures = measures(&groups, &rates);
    // A row without a group is in no measure, and one without a prediction was not treated in any way.
    let mut coverage =
        items.rows.coverage(Needs::Predictions, judge.missing, |row| codes[row] != MISSING_CODE);
    coverage.rows_expected = items.rows.coverage(Needs::Predictions, judge.missing, |_| true).rows_expected;
    measures.values_mut().for_each(|estimate| estimate.coverage = coverage);
    Ok(Fairness { column: column.to_owned(), measures, groups, rows_without_group })
}

/// One group by itself, with intervals at the requested confidence level.
fn group(name: String, items: &Items, positive: u32, support_min: u64, judge: Judge) -> FairnessGroup {
    let mut metrics = rates(items, positive, judge.resampling.confidence);
    let scoring = Scoring::of(items, judge.recall);
    for kept in ["accuracy", "ece"] {
        metrics.extend(measure(&scoring.clone().only(kept), judge));
    }
    let support = items.len() as u64;
    let count = |rate: &str| metrics.get(rate).map_or(0, |estimate| estimate.support);
    let few = [
        (support, "rows"),
        (count(TRUE_POSITIVE), "rows with a positive label"),
        (count(FALSE_POSITIVE), "rows with a negative label"),
    ];
    let why = few
        .iter()
        .find(|(count, _)| *count < support_min)
        .map(|(count, what)| format!("it has {count} {what}, fewer than {support_min}"));
    FairnessGroup { name, support, inconclusive: why.is_some(), why, metrics }
}

/// The rates of a group that can be computed.
fn rates(items: &Items, positive: u32, confidence: f64) -> Metrics {
    let Content::Classes(rows) = &items.content else { return Metrics::new() };
    let (classes, positive) = (rows.names.len(), positive as usize);
    let table = |is: &dyn Fn(usize, Option<usize>) -> bool| cell_table(classes, is);
    // Without a prediction a row is wrong, whatever its label.
    let is_selected =
        |label: bool| table(&|l, p| (l == positive) == label && p.map_or(l != positive, |p| p == positive));
    let labelled = |label: bool| table(&|l, _| (l == positive) == label);
    let (all, selected) = (table(&|_, _| true), table(&|_, p| p == Some(positive)));
    let mut ratios = vec![
        Ratio::cells(SELECTION, selected, all, Link::Itself),
        Ratio::cells(TRUE_POSITIVE, is_selected(true), labelled(true), Link::Itself),
        Ratio::cells(FALSE_POSITIVE, is_selected(false), labelled(false), Link::Itself),
    ];
    if let (Some(scores), true) = (&rows.score, rows.are_probabilities) {
        let gap = |(score, label): (&f64, &u32)| score - f64::from(u8::from(*label as usize == positive));
        ratios.push(Ratio::mean_of_known(BIAS, scores.iter().zip(&rows.label).map(gap).collect()));
    }
    let cells = rows.cells();
    let mut counts = vec![0.0; classes * (classes + 1)];
    cells.iter().for_each(|cell| counts[*cell as usize] += 1.0);
    let estimates = ratios.into_iter().filter_map(|ratio| {
        let estimate = ratio.estimate(&cells, &counts, items.units(), confidence)?;
        Some((ratio.name, estimate))
    });
    estimates.collect()
}

fn measures(groups: &[FairnessGroup], rates: &[Metrics]) -> Metrics {
    let mut measures = Metrics::new();
    let support = groups.iter().map(|group| group.support).sum();
    for (name, of) in DIFFERENCES {
        if let Some(estimate) = extreme(rates, of, support, largest_difference) {
            measures.insert(name.to_owned(), estimate);
        }
    }
    for (name, of) in RATIOS {
        if let Some(estimate) = extreme(rates, of, support, least_ratio) {
            measures.insert(name.to_owned(), estimate);
        }
    }
    measures
}

/// A value with the interval that all pairs leave for it.
type Found = (f64, Interval);

/// The most extreme of some rates over the groups. `None` where fewer than two groups have one of the rates.
fn extreme(
    rates: &[Metrics],
    of: &[&str],
    support: u64,
    extreme: fn(&[(Found, Found)]) -> Option<Found>,
) -> Option<Estimate> {
    let mut pairs = Vec::new();
    let mut method = Method::Analytic;
    for rate in of {
        let known: Vec<Found> = rates
            .iter()
            .filter_map(|rates| rates.get(*rate))
            .filter_map(|estimate| {
                method = estimate.method;
                estimate.interval.bounds().map(|_| (estimate.value, estimate.interval))
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

fn largest_difference(pairs: &[(Found, Found)]) -> Option<Found> {
    let all = pairs.iter().map(|(one, other)| (one.0 - other.0, difference_interval(*one, *other)));
    all.reduce(|(most, held), (value, interval)| {
        (most.max(value), Interval { low: held.low.max(interval.low), high: held.high.max(interval.high) })
    })
    .map(|(value, held)| (value, Interval { low: held.low.max(0.0), high: held.high }))
}

fn least_ratio(pairs: &[(Found, Found)]) -> Option<Found> {
    let all = pairs.iter().filter(|(_, below)| below.0 > 0.0);
    let all = all.map(|(above, below)| (above.0 / below.0, ratio_interval(*above, *below)));
    all.reduce(|(least, held), (value, interval)| {
        (least.min(value), Interval { low: held.low.min(interval.low), high: held.high.min(interval.high) })
    })
    .map(|(value, held)| (value.min(1.0), Interval { low: held.low, high: held.high.min(1.0) }))
}
