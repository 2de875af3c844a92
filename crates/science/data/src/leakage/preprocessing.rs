//! Fit before split: columns that were scaled with the statistics of both sides together.
//!
//! A scaler that was fitted on the training side makes *that side's* mean 0 and deviation 1 to the last digits, and
//! leaves the whole only near them: the training mean strays from the whole's by `s = sqrt(1/n_train − 1/n)`
//! deviations. So a whole that is a hundred times nearer to 0 and 1 than `s`, with a training side that is not, was
//! scaled as a whole. A column that just happens to be near 0 and 1 passes that in about one of 50,000 cases.

use arrow::array::ArrayRef;
use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_tables::ColumnType;
use trackway_tables::merge::merge_option;
use trackway_tables::pass::Pass;
use trackway_tables::profile::Moments;
use trackway_tables::read::{Chunk, Source};

use super::columns::Places;
use crate::values::sampled::numbers;

/// The whole is exact when it is so much nearer than expected.
const TIMES_NEARER: f64 = 100.0;

/// The training side is not exact when it is further away than this part of what is expected.
const RANDOM_FRACTION: f64 = 0.05;

/// With fewer rows on a side, statistics of the side and of the whole are too similar.
const ROWS_MIN: u64 = 20;

/// Kolmogorov's statistic `√n · D`: below this, numbers are more even than random ones are in 1 of 3,000 columns;
const TOO_EVEN: f64 = 0.35;

/// and from this on, they are not. (A part of evenly distributed numbers is often even, less so the larger the part.)
const UNEVENNESS_FACTOR: f64 = 0.45;

/// Steps between 0 and 1 at which evenness is looked at.
const STEPS: usize = 256;

/// Numbers of one column, on one side.
#[derive(Debug, Clone)]
struct ColumnScale {
    moments: Moments,
    min: f64,
    max: f64,
    /// How many numbers fall into each step from 0 to 1; `None` once one is outside. Begun with the first number.
    steps: Option<Vec<u32>>,
}

/// The facts of every column of numbers on one side.
pub(super) struct Scales {
    columns: Places,
    /// `None` for a column of something else.
    facts: Vec<Option<ColumnScale>>,
}

impl ColumnScale {
    fn new() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { moments: Moments::default(), min, max, steps: Some(Vec::new()) }
    }

    fn add(&mut self, column: &ArrayRef) {
        let mut values = numbers(column);
        values.retain(|value| value.is_finite());
        if values.is_empty() {
            return;
        }
        let (min, max) = range(&values);
        self.moments.merge(&Moments::of(&values));
        (self.min, self.max) = (self.min.min(min), self.max.max(max));
        if self.min < 0.0 || self.max > 1.0 {
            self.steps = None;
        }
        if let Some(steps) = &mut self.steps {
            steps.resize(STEPS, 0);
            values.iter().for_each(|value| steps[((value * STEPS as f64) as usize).min(STEPS - 1)] += 1);
        }
    }

    fn merge(&mut self, later: Self) {
        self.moments.merge(&later.moments);
        (self.min, self.max) = (self.min.min(later.min), self.max.max(later.max));
        self.steps = match (self.steps.take(), later.steps) {
            (Some(mut steps), Some(more)) => {
                steps.resize(STEPS, 0);
                steps.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                Some(steps)
            }
            _ => None,
        };
    }

    /// Largest distance between the fraction of numbers up to a step and the step itself, times √n.
    fn unevenness(&self) -> Option<f64> {
        let steps = self.steps.as_ref()?;
        let rows = self.moments.count as f64;
        let mut below = 0.0;
        let mut largest: f64 = 0.0;
        for (index, count) in steps.iter().enumerate() {
            below += f64::from(*count);
            largest = largest.max((below / rows - (index + 1) as f64 / STEPS as f64).abs());
        }
        Some(largest * rows.sqrt())
    }
}

/// Smallest and largest.
pub(super) fn range(values: &[f64]) -> (f64, f64) {
    let wider = |(min, max): (f64, f64), value: &f64| (min.min(*value), max.max(*value));
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), wider)
}

impl Scales {
    pub(super) fn new(columns: Places, source: &Source) -> Self {
        let is_float = |index: &usize| source.columns()[*index].kind == ColumnType::Float;
        let facts = columns.features.iter().map(|index| is_float(index).then(ColumnScale::new)).collect();
        Self { columns, facts }
    }
}

impl Pass for Scales {
    fn observe(&mut self, chunk: &Chunk) {
        for (facts, index) in self.facts.iter_mut().zip(&self.columns.features) {
            if let Some(facts) = facts {
                facts.add(chunk.batch.column(*index));
            }
        }
    }

    fn merge(&mut self, later: Self) {
        let pairs = self.facts.iter_mut().zip(later.facts);
        pairs.for_each(|(facts, more)| merge_option(facts, more, ColumnScale::merge));
    }
}

/// What a column was fitted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Mean 0 and deviation 1, of both sides together.
    StandardizedOnBoth,
    /// Mean 0 and deviation 1, of each side by itself.
    StandardizedApart,
    /// Smallest 0 and largest 1, of both sides together.
    RangeOfBoth,
    /// Even ranks between 0 and 1, of both sides together.
    RanksOfBoth,
}

/// A column that was fitted with statistics of the other side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedColumn {
    pub column: String,
    pub fit: Fit,
    /// Mean and deviation of the training side (for a range: its smallest and largest number).
    pub train: [f64; 2],
    /// The same of both sides together.
    pub both: [f64; 2],
}

/// Columns of numbers that were fitted on more than the training side, and how many columns were looked at.
pub(super) fn fitted(names: &[String], train: &Scales, test: &Scales) -> (Vec<FittedColumn>, usize) {
    let mut looked_at = 0;
    let mut found = Vec::new();
    for (name, sides) in names.iter().zip(train.facts.iter().zip(&test.facts)) {
        let (Some(train), Some(test)) = sides else { continue };
        if train.moments.count.min(test.moments.count) < ROWS_MIN {
            continue;
        }
        looked_at += 1;
        let mut both = train.clone();
        both.merge(test.clone());
        if let Some(fit) = fit_of(train, test, &both) {
            let numbers = |facts: &ColumnScale| match fit {
                Fit::RangeOfBoth => [facts.min, facts.max],
                _ => [facts.moments.mean, deviation(facts)],
            };
            found.push(FittedColumn {
                column: name.clone(),
                fit,
                train: numbers(train),
                both: numbers(&both),
            });
        }
    }
    (found, looked_at)
}

/// Divided by the count, as scikit-learn's scaler does.
fn deviation(facts: &ColumnScale) -> f64 {
    (facts.moments.m2 / facts.moments.count as f64).sqrt()
}

/// How far mean and deviation are from 0 and 1, whether the deviation was divided by the count or by one less.
fn off(facts: &ColumnScale) -> f64 {
    let sample = facts.moments.stddev().unwrap_or_default();
    let spread = (deviation(facts) - 1.0).abs().min((sample - 1.0).abs());
    facts.moments.mean.abs().max(spread)
}

fn fit_of(train: &ColumnScale, test: &ColumnScale, both: &ColumnScale) -> Option<Fit> {
    let (train_rows, rows) = (train.moments.count as f64, both.moments.count as f64);
    let strays = (1.0 / train_rows - 1.0 / rows).sqrt();
    let (exact, inexact) = (strays / TIMES_NEARER, strays * RANDOM_FRACTION);
    if off(train) <= exact && off(test) <= exact {
        return Some(Fit::StandardizedApart);
    }
    if off(both) <= exact && off(train) >= inexact {
        return Some(Fit::StandardizedOnBoth);
    }
    let is_even = |side: &ColumnScale| side.unevenness().is_some_and(|unevenness| unevenness < TOO_EVEN);
    let is_uneven = |side: &ColumnScale| {
        let expected = (1.0 - side.moments.count as f64 / rows).sqrt();
        side.unevenness().is_some_and(|unevenness| unevenness > UNEVENNESS_FACTOR * expected)
    };
    if is_even(both) && is_uneven(train) && is_uneven(test) {
        return Some(Fit::RanksOfBoth);
    }
    let only_together = both.min == 0.0 && both.max == 1.0 && (train.min > 0.0 || train.max < 1.0);
    (only_together && is_spread(both)).then_some(Fit::RangeOfBoth)
}

/// Whether the numbers fill the range rather than a few values, as fractions and flags do.
fn is_spread(facts: &ColumnScale) -> bool {
    let used = |steps: &Vec<u32>| steps.iter().filter(|count| **count > 0).count();
    facts.steps.as_ref().is_some_and(|steps| used(steps) >= STEPS / 4)
}

/// `leakage.preprocessing`: which columns were scaled before the split.
pub(super) fn result(rows: u64, found: &[FittedColumn], looked_at: usize) -> CheckResult {
    const NAME: &str = "leakage.preprocessing";
    if looked_at == 0 {
        return CheckResult::not_applicable(NAME, "no column of decimal numbers with 20 rows on both sides");
    }
    // One column of fractions can have its only 1.0 on the test side; several cannot.
    let ranges = found.iter().filter(|it| it.fit == Fit::RangeOfBoth).count();
    let findings = found.iter().map(|it| finding(it, ranges)).collect();
    let columns = crate::counted(looked_at as u64, "column");
    CheckResult::of_rows(NAME, rows, findings).because(format!("{columns} of decimal numbers"))
}

fn finding(it: &FittedColumn, ranges: usize) -> Finding {
    let FittedColumn { column, train: [train_a, train_b], both: [both_a, both_b], .. } = it;
    let (severity, message) = match it.fit {
        Fit::StandardizedOnBoth => (
            Severity::Warn,
            format!(
                "`{column}` has mean {both_a:.1e} and deviation 1{:+.1e} over both sides, but {train_a:.1e} and \
                 {train_b:.4} over the training side: it was standardized before the split",
                both_b - 1.0
            ),
        ),
        Fit::StandardizedApart => (
            Severity::Warn,
            format!("`{column}` has mean 0 and deviation 1 on each side: the test side was scaled by itself"),
        ),
        Fit::RangeOfBoth => (
            if ranges > 1 { Severity::Warn } else { Severity::Note },
            format!(
                "`{column}` reaches from 0 to 1 only over both sides, and from {train_a} to {train_b} on the \
                 training side: it seems to have been scaled before the split"
            ),
        ),
        Fit::RanksOfBoth => (
            Severity::Warn,
            format!(
                "`{column}` is more uniform between 0 and 1 over both data sets than random values are, but not on either \
                 alone: its ranks were computed before the split"
            ),
        ),
    };
    Finding::new("leakage.preprocessing", severity, message)
        .about(column)
        .action("split first; fit scalers on the training side alone")
}
