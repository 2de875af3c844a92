//! The metrics of an attempt in short: one row each, gathered value by value.

use std::collections::BTreeMap;

use trackway_core::{MetricStep, Step};
use trackway_formats::record::{METRIC_NAMES_MAX, OriginOfEach};
use trackway_ledger::{AttemptRow, MetricSummaryRow};

use crate::parts::Part;

/// The metrics of one attempt in short, while they are gathered.
#[derive(Default)]
pub(crate) struct Summaries {
    metrics: BTreeMap<String, MetricTotals>,
    /// Values of metrics beyond [`METRIC_NAMES_MAX`].
    pub left_out: u64,
}

/// The values of a metric in short.
#[derive(Debug, Clone)]
pub(crate) struct MetricTotals {
    point_count: u64,
    finite_count: u64,
    first: (MetricStep, f64),
    last: (MetricStep, f64),
    /// The step and the number of the values at the end that are not finite; of ranks the last one counts.
    not_finite: Option<(MetricStep, u64)>,
    min: f64,
    max: f64,
    /// The running mean does not overflow where a sum would.
    mean: f64,
}

impl Summaries {
    /// Takes the values of a part that count.
    pub fn take(&mut self, part: &Part, origins: &OriginOfEach) {
        let points = part.segment.metric_points_of_any_step();
        for point in points.filter(|point| origins.counts(&point.name, part.origin())) {
            if let Some(gathered) = self.metrics.get_mut(point.name.as_ref()) {
                gathered.take(point.step, point.value);
            } else if self.metrics.len() >= METRIC_NAMES_MAX {
                self.left_out += 1;
            } else {
                self.metrics.insert(point.name.into_owned(), MetricTotals::of(point.step, point.value));
            }
        }
    }

    pub fn rows(self, attempt: &AttemptRow) -> Vec<MetricSummaryRow> {
        self.metrics.into_iter().map(|(name, gathered)| gathered.row(attempt, name)).collect()
    }
}

impl MetricTotals {
    /// Of a first value.
    pub fn of(step: MetricStep, value: f64) -> Self {
        let (first, last) = ((step, value), (step, value));
        let mut gathered = Self {
            point_count: 0,
            finite_count: 0,
            first,
            last,
            not_finite: None,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
        };
        gathered.take(step, value);
        gathered
    }

    /// The next value.
    pub fn take(&mut self, step: MetricStep, value: f64) {
        self.point_count += 1;
        self.last = (step, value);
        if value.is_finite() {
            self.finite_count += 1;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.mean += (value - self.mean) / self.finite_count as f64;
            self.not_finite = None;
        } else {
            let (from_step, count) = self.not_finite.unwrap_or((step, 0));
            self.not_finite = Some((from_step, count + 1));
        }
    }

    /// Takes the values that follow these.
    pub fn then(&mut self, later: Self) {
        let finite_count = self.finite_count + later.finite_count;
        self.not_finite = match (later.finite_count, self.not_finite, later.not_finite) {
            (0, Some((from_step, count)), _) => Some((from_step, count + later.point_count)),
            (.., of_later) => of_later,
        };
        if later.finite_count > 0 {
            self.mean += (later.mean - self.mean) * (later.finite_count as f64 / finite_count as f64);
        }
        self.point_count += later.point_count;
        self.finite_count = finite_count;
        self.last = later.last;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
    }

    /// The same of a training that made so many rounds before; a step below 0 is from before any.
    pub fn after_rounds(mut self, before: Step) -> Self {
        let before = MetricStep::try_from(before).unwrap_or(MetricStep::MAX);
        let counted = |step: MetricStep| if step < 0 { step } else { step.saturating_add(before) };
        self.first.0 = counted(self.first.0);
        self.last.0 = counted(self.last.0);
        self.not_finite = self.not_finite.map(|(from_step, count)| (counted(from_step), count));
        self
    }

    /// As a row of the ledger.
    pub fn row(self, attempt: &AttemptRow, name: String) -> MetricSummaryRow {
        let any_finite = |value: f64| (self.finite_count > 0).then_some(value);
        let not_nan = |value: f64| (!value.is_nan()).then_some(value);
        MetricSummaryRow {
            attempt_id: attempt.attempt_id,
            run_id: attempt.run_id,
            name,
            point_count: self.point_count,
            non_finite_count: self.point_count - self.finite_count,
            non_finite_from_step: self.not_finite.map(|(from_step, _)| from_step),
            non_finite_end_count: self.not_finite.map(|(_, count)| count),
            first_step: self.first.0,
            last_step: self.last.0,
            first_value: not_nan(self.first.1),
            last_value: not_nan(self.last.1),
            min_value: any_finite(self.min),
            max_value: any_finite(self.max),
            mean_value: any_finite(self.mean),
        }
    }
}
