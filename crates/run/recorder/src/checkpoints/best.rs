//! The metric by which retention decides which checkpoint is the best: taken from what the script logged at the step, where it is not
//! handed to the save.

use trackway_core::Step;
use trackway_formats::EventKind;

use crate::process::inner::Inner;
use crate::process::{ProcessSlot, once};

impl Inner {
    pub(crate) fn note_best(&self, slot: &ProcessSlot, step: Step, values: &[(&str, f64)]) {
        let Some(best) = &self.settings.best_metric else { return };
        if let Some((_, value)) = values.iter().find(|(name, _)| name == best) {
            *slot.best_value.get() = Some((step, *value));
        }
    }

    /// The metrics of a save at this step, with that one. Rank 0 speaks for all ranks.
    pub(crate) fn with_best<'m>(
        &'m self,
        slot: &ProcessSlot,
        step: Step,
        metrics: &[(&'m str, f64)],
    ) -> Vec<(&'m str, f64)> {
        let mut all = metrics.to_vec();
        let Some(best) = self.settings.best_metric.as_deref().filter(|_| self.leads()) else { return all };
        if all.iter().any(|(name, _)| *name == best) {
            return all;
        }
        match *slot.best_value.get() {
            Some((logged, value)) if logged == step => all.push((best, value)),
            _ if once(&slot.reported.best_unknown) => {
                slot.record_event(EventKind::CheckpointBestUnknown, Some(step), &[("metric", best)])
            }
            _ => {}
        }
        all
    }
}
