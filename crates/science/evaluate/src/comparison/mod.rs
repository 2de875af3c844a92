//! A candidate against a baseline on the same rows.
//!
//! Both sides are computed from the same draws of rows, so what makes a row hard for both takes nothing from the
//! certainty of the difference.

mod pairing;

use trackway_core::RowCoverage;
use trackway_statistics::{
    Interval, holm, mcnemar_p_value, normal_p_value, normal_quantile, quantile, variance,
};

use crate::metrics::ratio::Ratio;
use crate::metrics::resample::{Units, sorted_column};
use crate::metrics::rows::coverage::Needs;
use crate::metrics::rows::{Content, Items};
use crate::metrics::scoring::Scoring;
use crate::metrics::{Judge, is_best_at_zero, is_higher_better, is_share};
use crate::slices::SliceRows;
use crate::{Compared, Comparison, ComparisonVerdict, Estimate, McNemar, Method, Pairing, SliceCompared};
pub(crate) use pairing::pair;

/// A difference of a metric between 0 and 1 that matters; of other metrics, this part of the baseline's value.
pub const MARGIN: f64 = 0.01;

/// The power with which `settles_at` rows would show the difference.
const POWER: f64 = 0.8;

/// Pairs of items of both sides: the same index is the same row.
pub(crate) struct Pairs {
    pub baseline: Items,
    pub candidate: Items,
    pub pairing: Pairing,
}

/// How two sides are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'t> {
    pub judge: Judge,
    /// A difference below this does not matter; [`MARGIN`] where absent.
    pub margin: Option<f64>,
    /// The metric by which slices are compared.
    pub main_metric: &'t str,
    /// Slices with fewer pairs are inconclusive.
    pub support_min: u64,
}

/// Both sides against each other, over all pairs and in each slice (a name, and which rows of the candidate's table).
pub(crate) fn compare(pairs: &Pairs, slices: &[SliceRows], terms: Terms<'_>) -> Comparison {
    let (baseline, candidate) = sides(pairs, terms.judge);
    let coverage = coverage_of(pairs, terms.judge);
    let metrics = compared(&baseline, &candidate, terms).into_iter().map(|(name, mut compared, _)| {
        compared.difference.coverage = coverage(&name);
        (name, compared)
    });
    Comparison {
        pairing: pairs.pairing.clone(),
        metrics: metrics.collect(),
        mcnemar: mcnemar(pairs),
        slices: by_slice(pairs, slices, terms),
    }
}

/// The pairs of all rows that either side has; and of the candidate's rows those that a number needs.
fn coverage_of(pairs: &Pairs, judge: Judge) -> impl Fn(&str) -> RowCoverage {
    let Pairing { pairs: paired, only_baseline, only_candidate, repeated_ids, different_labels, .. } =
        pairs.pairing;
    let all = paired + only_baseline + only_candidate + repeated_ids + different_labels;
    let lacking = [Needs::Answers, Needs::Scores].map(|needs| {
        let lacking = [&pairs.baseline, &pairs.candidate].map(|items| {
            let coverage = items.rows.coverage(needs, judge.missing, |_| true);
            coverage.rows_expected - coverage.rows_used
        });
        lacking[0].max(lacking[1])
    });
    move |metric| {
        let lacking = lacking[usize::from(Needs::of(metric) == Needs::Scores)];
        RowCoverage { rows_used: paired.saturating_sub(lacking), rows_expected: all }
    }
}

fn sides(pairs: &Pairs, judge: Judge) -> (Scoring, Scoring) {
    (Scoring::of(&pairs.baseline, judge.recall), Scoring::of(&pairs.candidate, judge.recall))
}

/// Every metric that both sides have, with the probability of its difference if there is none.
fn compared(baseline: &Scoring, candidate: &Scoring, terms: Terms<'_>) -> Vec<(String, Compared, f64)> {
    let both = |weights: &[u8]| {
        let mut values = baseline.values(weights, |metric| candidate.place(&metric.name).is_some());
        values.extend(candidate.values(weights, |metric| baseline.place(&metric.name).is_some()));
        values
    };
    let once = both(&vec![1; candidate.items]);
    let places: Vec<(&str, usize, usize)> = baseline
        .metrics
        .iter()
        .enumerate()
        .filter_map(|(place, metric)| {
            let other = candidate.place(&metric.name)? + baseline.metrics.len();
            (once[place].is_finite() && once[other].is_finite()).then_some((
                metric.name.as_str(),
                place,
                other,
            ))
        })
        .collect();
    let units = candidate.units();
    let differences = |values: Vec<f64>| -> Vec<f64> {
        let difference = |(name, place, other): &(&str, usize, usize)| {
            compared_as(name, values[*other]) - compared_as(name, values[*place])
        };
        places.iter().map(difference).collect()
    };
    let drawn = candidate.draw(terms.judge.resampling, |weights| differences(both(weights)));
    let of = |(column, (name, place, other)): (usize, &(&str, usize, usize))| {
        let sorted = sorted_column(&drawn, column);
        let (compared, p_value) = judged(name, (once[*place], once[*other]), &sorted, units, terms);
        ((*name).to_owned(), compared, p_value)
    };
    places.iter().enumerate().map(of).collect()
}

/// A value as it is compared: the absolute value if 0 is the metric's best one.
fn compared_as(metric: &str, value: f64) -> f64 {
    if is_best_at_zero(metric) { value.abs() } else { value }
}

/// The verdict from the resamples of a difference.
fn judged(
    name: &str,
    (baseline, candidate): (f64, f64),
    sorted: &[f64],
    units: Units<'_>,
    terms: Terms<'_>,
) -> (Compared, f64) {
    let tail = (1.0 - terms.judge.resampling.confidence) / 2.0;
    let (low, high) = (quantile(sorted, tail), quantile(sorted, 1.0 - tail));
    let value = compared_as(name, candidate) - compared_as(name, baseline);
    let (method, count) = (units.method(Method::Bootstrap), units.count());
    let has_interval = sorted.len() > 1 && count > 1;
    let interval = if has_interval { Interval { low, high } } else { Interval::UNKNOWN };
    let error = variance(sorted).sqrt();
    let p_value = match error {
        _ if value == 0.0 || !has_interval => 1.0,
        error if error > 0.0 => normal_p_value(value / error),
        _ => 0.0,
    };
    let margin = terms.margin.unwrap_or(if is_share(name) { MARGIN } else { MARGIN * baseline.abs() });
    let verdict = verdict(name, value, interval, margin);
    let settles_at = (verdict == ComparisonVerdict::Inconclusive && error > 0.0).then(|| {
        let reach = normal_quantile(1.0 - tail) + normal_quantile(POWER);
        let shown = value.abs().max(margin).max(f64::MIN_POSITIVE);
        (count as f64 * (reach * error / shown).powi(2)).ceil().max(count as f64 + 1.0) as u64
    });
    let support = units.items() as u64;
    let difference = Estimate { method, ..Estimate::new(value, interval, support, method) };
    (Compared { baseline, candidate, difference, verdict, margin, settles_at }, p_value)
}

/// An interval beyond 0 shows a difference; one around 0 that stays within the margin shows that there is none that
/// matters; one that extends further is inconclusive.
fn verdict(name: &str, value: f64, interval: Interval, margin: f64) -> ComparisonVerdict {
    let Interval { low, high } = interval;
    if low > 0.0 || high < 0.0 {
        return directed(name, value);
    }
    if low >= -margin && high <= margin {
        ComparisonVerdict::NoDifferenceShown
    } else {
        ComparisonVerdict::Inconclusive
    }
}

fn directed(name: &str, value: f64) -> ComparisonVerdict {
    if (value > 0.0) == is_higher_better(name) { ComparisonVerdict::Better } else { ComparisonVerdict::Worse }
}

/// The main metric of each slice; a difference is shown if the corrected p-value is small enough.
fn by_slice(pairs: &Pairs, slices: &[SliceRows], terms: Terms<'_>) -> Vec<SliceCompared> {
    let mut found: Vec<(SliceCompared, f64, u64)> = Vec::new();
    for slice in slices {
        let main_metric = slice.metric.as_deref().unwrap_or(terms.main_metric);
        let inside: Vec<u32> = (0..pairs.candidate.len() as u32)
            .filter(|item| slice.rows[pairs.candidate.row_of_item[*item as usize] as usize])
            .collect();
        if inside.is_empty() {
            continue;
        }
        let part = Pairs {
            baseline: pairs.baseline.subset(&inside),
            candidate: pairs.candidate.subset(&inside),
            pairing: Pairing::default(),
        };
        let (baseline, candidate) = sides(&part, terms.judge);
        let (baseline, candidate) = (baseline.only(main_metric), candidate.only(main_metric));
        let Some((_, compared, p_value)) = compared(&baseline, &candidate, terms).pop() else { continue };
        let (name, compared_by) = (slice.name.clone(), slice.metric.clone());
        let support = inside.len() as u64;
        let support_min = slice.limits.map_or(terms.support_min, |limits| limits.support_min);
        let slice = SliceCompared { name, support, compared, adjusted_p_value: 1.0, compared_by };
        found.push((slice, p_value, support_min));
    }
    let p_values: Vec<f64> = found.iter().map(|(_, p_value, _)| *p_value).collect();
    let level = 1.0 - terms.judge.resampling.confidence;
    let corrected = found.into_iter().zip(holm(&p_values)).map(|((mut slice, _, support_min), adjusted)| {
        slice.adjusted_p_value = adjusted;
        let compared = &mut slice.compared;
        compared.verdict = match compared.verdict {
            _ if slice.support < support_min => ComparisonVerdict::Inconclusive,
            _ if adjusted <= level => {
                let metric = slice.compared_by.as_deref().unwrap_or(terms.main_metric);
                directed(metric, compared.difference.value)
            }
            ComparisonVerdict::NoDifferenceShown => ComparisonVerdict::NoDifferenceShown,
            _ => ComparisonVerdict::Inconclusive,
        };
        slice
    });
    corrected.collect()
}

/// `None` where rows are not right or wrong.
fn mcnemar(pairs: &Pairs) -> Option<McNemar> {
    let right = |items: &Items| -> Option<Vec<bool>> {
        match &items.content {
            Content::Classes(rows) => {
                Some(rows.label.iter().zip(&rows.prediction).map(|(l, p)| l == p).collect())
            }
            Content::Sums(sums) => {
                let hits = sums.iter().find_map(Ratio::hits)?;
                Some(hits.iter().map(|hit| *hit > 0.5).collect())
            }
            Content::Amounts(_) | Content::Experiment(_) | Content::Pixels(_) | Content::Boxes(_) => None,
        }
    };
    let (baseline, candidate) = (right(&pairs.baseline)?, right(&pairs.candidate)?);
    let count = |wanted: (bool, bool)| {
        baseline.iter().zip(&candidate).filter(|(one, other)| (**one, **other) == wanted).count() as u64
    };
    let (only_baseline_right, only_candidate_right) = (count((true, false)), count((false, true)));
    let p_value = mcnemar_p_value(only_baseline_right, only_candidate_right);
    let exact = only_baseline_right + only_candidate_right <= trackway_statistics::MCNEMAR_EXACT_MAX;
    Some(McNemar { only_baseline_right, only_candidate_right, p_value, exact })
}
