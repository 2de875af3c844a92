//! `[early_stop]` over the live record of a run.

use std::collections::HashMap;

use trackway_formats::record::{NameId, PROGRESSIVE_LOSS, unmarked};
use trackway_formats::runfile::{EarlyStopSection, Goal};
use trackway_rules::early_stop::progressive::WINDOW_DEFAULT;
use trackway_rules::early_stop::{BandStop, Patience};

use super::WATCHES_MAX;
use crate::run::record::live_record::RecordedValues;

/// The rules of one run, over the attempts of a rung.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    section: Option<EarlyStopSection>,
    patience: Option<Patience>,
    band: Option<BandStop>,
    /// What the names of segments are to the rules.
    roles: HashMap<(usize, NameId), Role>,
    /// The rank whose values count: the first that recorded one.
    rank: Option<u32>,
    why: Option<String>,
}

/// Which rules look at a metric; both where the metric of patience is the progressive loss.
#[derive(Debug, Clone, Copy)]
struct Role {
    of_patience: bool,
    of_band: bool,
}

impl Stopping {
    pub(super) fn new(section: Option<&EarlyStopSection>) -> Self {
        let Some(section) = section else { return Self::default() };
        let patience = section.patience.map(|evaluations| {
            let greater_is_better = section.metric.goal == Goal::Max;
            Patience::new(section.metric.metric.clone(), greater_is_better, evaluations, section.improvement)
        });
        let band = section
            .progressive
            .map(|least_fall| BandStop::new(section.window.unwrap_or(WINDOW_DEFAULT), least_fall));
        Self { section: Some(section.clone()), patience, band, ..Self::default() }
    }

    /// An attempt begins; at another rung nothing of the one before counts.
    pub(super) fn begins_again(&mut self, at_another_rung: bool) {
        if at_another_rung {
            *self = Self::new(self.section.take().as_ref());
        }
        self.roles.clear();
        (self.rank, self.why) = (None, None);
    }

    pub(super) fn take(&mut self, seen: &RecordedValues<'_>) {
        if self.section.is_none() {
            return;
        }
        let is_replaced = |patience: &Patience| seen.replaced.iter().any(|name| name == patience.metric());
        if self.patience.as_ref().is_some_and(is_replaced) {
            self.patience = Self::new(self.section.as_ref()).patience;
        }
        if self.roles.len() > WATCHES_MAX {
            self.roles.clear();
        }
        for (id, value) in &seen.metrics.values {
            let patience = &self.patience;
            let role = *self.roles.entry((seen.segment, *id)).or_insert_with(|| {
                let name = seen.names.name_or_placeholder(*id);
                let of_patience = patience.as_ref().is_some_and(|patience| patience.metric() == &*name);
                Role { of_patience, of_band: *name == *PROGRESSIVE_LOSS }
            });
            let is_seen = role.of_patience || role.of_band;
            if !is_seen || *self.rank.get_or_insert(seen.rank) != seen.rank {
                continue;
            }
            let (step, value) = (seen.metrics.step, unmarked(*value));
            let by_patience = self.patience.as_mut().filter(|_| role.of_patience);
            let found = by_patience.and_then(|patience| patience.take(step, value));
            let by_band = self.band.as_mut().filter(|_| role.of_band);
            let found = found.or(by_band.and_then(|band| band.take(step, value)));
            self.why = self.why.take().or(found);
        }
    }

    /// The progressive losses are no longer those of unseen data.
    pub(super) fn batches_came_again(&mut self) {
        if let Some(band) = &mut self.band {
            band.invalidate();
        }
    }

    pub(super) fn enough(&mut self) -> Option<String> {
        self.why.take()
    }
}
