//! The record of an attempt that has ended, read once more from its folder: what its detectors leave standing, its
//! curves, and the losses that are not to be trusted.

use std::sync::Arc;

use trackway_core::detect::Firing;
use trackway_core::{Rung, Step};
use trackway_launch::FolderChannel;
use trackway_ledger::{AttemptRow, RunRow};
use trackway_rules::health::Curves;
use trackway_rules::trust::{CHANCE_LEVEL, LOSS_EXPLODED, LossRecord};

use super::Detecting;
use super::majority::majority_of;
use crate::Context;
use crate::error::AppError;
use crate::ledger::rows::rung_of;
use crate::ledger::stored::stored_plan;
use crate::run::record::live_record::{LiveRecord, RecordUpdate};
use crate::run::trust::{begins, losses_of};

/// What the record of an attempt shows at its end.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Its losses, complete.
    pub losses: LossRecord,
    pub curves: Curves,
    /// What its detectors found and what was not over at the end.
    pub standing: Vec<Firing>,
    pub last_step: Option<Step>,
}

impl Replay {
    /// Reads the record of an attempt.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub fn of(context: &Context, run: &RunRow, row: &AttemptRow) -> Result<Self, AppError> {
        let plan = stored_plan(run).ok().flatten().unwrap_or_default();
        let folder = context.home.layout.attempt(row.attempt_id);
        let mut record = LiveRecord::of(Arc::new(FolderChannel::new(folder.folder())));
        record.losses = Some(losses_of(&plan, row));
        let (mut detecting, mut curves) = (Detecting::new(&plan, rung_of(row), true), Curves::default());
        let mut seen = None;
        while seen.replace(record.facts.frame_count) != Some(record.facts.frame_count) {
            record.look_at(&mut |sight| {
                take(&mut curves, &sight);
                detecting.take(sight);
            });
        }
        let mut losses = record.losses.take().unwrap_or_else(|| losses_of(&plan, row));
        for detection in context.ledger_read(|ledger| ledger.detections_of_attempt(row.attempt_id))? {
            losses.take_finding(detection.detector);
        }
        curves.knows_majority(majority_of(context, run, row, &plan)?);
        if begins(row) {
            look(&curves, rung_of(row) == Rung::FULL, &mut losses);
        }
        losses.finish();
        let last_step = record.facts.last_step;
        Ok(Self { losses, curves, standing: detecting.standing(), last_step })
    }
}

/// What looks at the whole curve find that spoils checkpoints.
fn look(curves: &Curves, on_all_data: bool, losses: &mut LossRecord) {
    if let Some(found) = curves.chance_level().filter(|_| on_all_data) {
        let (_, loss) = curves.training_loss().and_then(|(_, curve)| curve.last).unwrap_or_default();
        losses.take_look(CHANCE_LEVEL, found.first_step.unwrap_or_default(), loss);
    }
    if let Some((step, loss)) = curves.exploded_from() {
        losses.take_look(LOSS_EXPLODED, step, loss);
    }
}

fn take(curves: &mut Curves, sight: &RecordUpdate<'_>) {
    let RecordUpdate::Values(seen) = sight else { return };
    seen.replaced.iter().for_each(|name| curves.forget(name));
    for (id, value) in &seen.metrics.values {
        curves.take(seen.rank, &seen.names.name_or_placeholder(*id), seen.metrics.step, *value);
    }
}
