//! Which batches the steps of an attempt trained on.

use std::collections::BTreeMap;

use trackway_core::Step;

/// Places that are remembered; of more the oldest are forgotten.
const PLACES_MAX: usize = 4096;

/// The positions in the data that a script reported. From each of them on a step trains on one batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataCursor {
    reported: BTreeMap<Step, DataPlace>,
}

/// The place in the data at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPlace {
    /// The batch, counted from 0 over all passes through the data.
    pub batch: u64,
    /// Passes that were finished, where that is known.
    pub epoch: Option<u64>,
}

impl DataCursor {
    /// Records which batch a step trains on. Several ranks report the same.
    pub fn record(&mut self, step: Step, batch: u64, epoch: Option<u64>) {
        self.reported.insert(step, DataPlace { batch, epoch });
        if self.reported.len() > PLACES_MAX {
            self.reported.pop_first();
        }
    }

    /// The place at this step; none if nothing was reported up to it.
    #[must_use]
    pub fn at(&self, step: Step) -> Option<DataPlace> {
        let (reported_step, place) = self.reported.range(..=step).next_back()?;
        Some(DataPlace { batch: place.batch.checked_add(step - reported_step)?, ..*place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a step's batch follows from the last position reported before it, across epochs and skipped batches.
    #[test]
    fn the_batch_of_a_step_follows_from_what_was_reported() {
        let mut cursor = DataCursor::default();
        cursor.record(6, 5, Some(0));
        cursor.record(11, 10, Some(1));
        cursor.record(13, 40, Some(1));
        let at = |step| cursor.at(step).map(|place| (place.batch, place.epoch));
        assert_eq!(at(5), None);
        assert_eq!(at(10), Some((9, Some(0))));
        assert_eq!(at(12), Some((11, Some(1))));
        assert_eq!(at(15), Some((42, Some(1))));
    }

    /// Proves that memory is bounded and the newest places are kept.
    #[test]
    fn old_places_are_forgotten() {
        let mut cursor = DataCursor::default();
        (1..=10_000).for_each(|step| cursor.record(step, 2 * step, None));
        assert_eq!(cursor.reported.len(), PLACES_MAX);
        assert_eq!(cursor.at(5_000), None);
        assert_eq!(cursor.at(10_000).map(|place| place.batch), Some(20_000));
    }
}
