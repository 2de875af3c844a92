//! How many samples an update of the weights uses, as callbacks count them. A retry with another batch size keeps it by
//! accumulation, or else its learning rate no longer fits and its curve does not compare with the one before.

use std::collections::BTreeSet;

use trackway_formats::EventKind;
use trackway_ledger::{EventRow, MetricSummaryRow};

/// The metric that callbacks record when it changes: samples of one update of the weights in this process.
const SAMPLES_PER_UPDATE: &str = "samples_per_update";

/// Samples of one update over all ranks; none if nothing counted them. The last batch of an epoch may be smaller, so the largest
/// count is taken.
pub(in crate::run) fn effective_batch(summaries: &[MetricSummaryRow], events: &[EventRow]) -> Option<u64> {
    let counted = summaries.iter().find(|summary| summary.name == SAMPLES_PER_UPDATE)?;
    let samples = counted.max_value.filter(|samples| *samples >= 1.0)?;
    let ranks: BTreeSet<&str> = events
        .iter()
        .filter(|event| EventKind::Rank.is(&event.kind))
        .filter_map(|event| event.field("rank"))
        .collect();
    Some(samples.round() as u64 * ranks.len().max(1) as u64)
}

/// That it changed, for a user.
pub(in crate::run) fn sentence(now: u64, before: u64, attempt_number: u32) -> String {
    format!(
        "an update of the weights uses {now} samples, in attempt {attempt_number} it used {before}: keep batch size × accumulation × ranks the same"
    )
}

/// Looks at the live record of one attempt of one process. With several ranks the receipt shows it.
#[derive(Debug, Default)]
pub struct BatchWatch {
    before: Option<(u32, u64)>,
    several_ranks: bool,
    change: Option<String>,
    compared: bool,
}

impl BatchWatch {
    /// An attempt begins; `before`: number and effective batch of the one before, if it is known.
    #[must_use]
    pub fn new(before: Option<(u32, u64)>) -> Self {
        Self { before, ..Self::default() }
    }

    /// Whether there is something to compare with, and nothing was compared yet.
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.before.is_some() && !self.compared
    }

    /// Takes a value of the record.
    pub fn take(&mut self, rank: u32, name: &str, value: f64) {
        self.several_ranks |= rank > 0;
        let Some((number, before)) =
            self.before.filter(|_| name == SAMPLES_PER_UPDATE && !self.several_ranks)
        else {
            return;
        };
        let now = value.round() as u64;
        // Later values are of the last, smaller batch of an epoch.
        if now != before && !self.compared {
            self.change = Some(sentence(now, before, number));
        }
        self.compared = true;
    }

    /// That the batch changed, once.
    pub fn complaint(&mut self) -> Option<String> {
        self.change.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the first count of an attempt is compared with that of the one before, once, and only of one process.
    #[test]
    fn a_changed_batch_is_reported_once() {
        let mut same = BatchWatch::new(Some((1, 32)));
        same.take(0, "loss", 3.0);
        same.take(0, SAMPLES_PER_UPDATE, 32.0);
        same.take(0, SAMPLES_PER_UPDATE, 7.0);
        assert_eq!(same.complaint(), None);
        let mut halved = BatchWatch::new(Some((1, 32)));
        halved.take(0, SAMPLES_PER_UPDATE, 16.0);
        assert!(
            halved.complaint().is_some_and(|text| text.contains("uses 16 samples, in attempt 1 it used 32"))
        );
        assert_eq!(halved.complaint(), None);
        let mut ranks = BatchWatch::new(Some((1, 32)));
        ranks.take(1, SAMPLES_PER_UPDATE, 16.0);
        assert_eq!(ranks.complaint(), None);
        let mut first = BatchWatch::new(None);
        first.take(0, SAMPLES_PER_UPDATE, 16.0);
        assert_eq!(first.complaint(), None);
    }
}
