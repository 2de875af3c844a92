//! That an attempt was not trained on what its receipt says, or not as the attempt before it.

use serde_json::json;
use trackway_core::{Clock as _, LaunchKind};
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow};

use crate::Context;
use crate::error::AppError;
use crate::run::ladder::{OpenedData, data_of};
use crate::run::record::earlier;
use crate::run::record::effective_batch;

/// Training data that no process opened, though every file of it was watched.
pub(super) fn unopened_data(
    context: &Context,
    row: &AttemptRow,
    events: &[EventRow],
) -> Result<Option<EventRow>, AppError> {
    // An attempt without a step may have ended before it opened anything.
    if row.kind != LaunchKind::Train || row.last_step.is_none() {
        return Ok(None);
    }
    let mut opened = OpenedData::default();
    opened.take(events);
    let names = opened.training_not_opened(&data_of(&context.run_by_id(row.run_id)?)?);
    let Some(first) = names.first() else { return Ok(None) };
    let message = format!(
        "data `{first}`: none of its files was opened while the attempt ran: `data_sha256` does not describe what it trained on"
    );
    let at = row.ended_at.unwrap_or_else(|| context.clock.now());
    let fields_json = Some(json!({ "data": names }));
    Ok(Some(EventRow { fields_json, ..EventRow::of_attempt(row, EventKind::DataNotOpened, at, message) }))
}

/// An effective batch that is not that of the attempt before: the learning rate no longer fits, and the curves do not compare.
pub(super) fn changed_batch(context: &Context, row: &AttemptRow) -> Result<Option<EventRow>, AppError> {
    let Some(now) = row.effective_batch else { return Ok(None) };
    let before = earlier::before(context, row)?.effective_batch;
    let Some((number, before)) = before.filter(|(_, before)| *before != now) else { return Ok(None) };
    let message = effective_batch::sentence(now, before, number);
    let at = row.first_step_at.or(row.ended_at).unwrap_or_else(|| context.clock.now());
    let fields_json = Some(json!({ "before": before, "now": now }));
    Ok(Some(EventRow {
        fields_json,
        ..EventRow::of_attempt(row, EventKind::EffectiveBatchChanged, at, message)
    }))
}
