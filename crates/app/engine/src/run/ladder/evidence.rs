//! The counts of rows that the attempts of a rung recorded.

use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow};
use trackway_rules::ladder::RungCut;

use super::opened::OpenedData;
use super::sealed_of_rung;
use crate::Context;
use crate::error::AppError;
use crate::rows::rung_of;

/// What the attempts of a rung recorded of the rows they trained on.
#[derive(Debug, Default)]
pub(super) struct RungEvidence {
    /// The rows they kept.
    pub(super) cuts: Vec<RungCut>,
    pub(super) opened: OpenedData,
}

impl RungEvidence {
    fn take(&mut self, events: &[EventRow]) {
        self.cuts.extend(cuts_in(events));
        self.opened.take(events);
    }
}

/// That of all attempts of the row's rung; `newest` are the events of the row's own.
pub(super) fn evidence_of_rung(
    context: &Context,
    row: &AttemptRow,
    newest: &[EventRow],
) -> Result<RungEvidence, AppError> {
    let mut found = RungEvidence::default();
    found.take(newest);
    for attempt in sealed_of_rung(context, row, rung_of(row))? {
        found.take(&context.ledger_read(|ledger| ledger.events_of_attempt(attempt.attempt_id))?);
    }
    Ok(found)
}

/// The counts among these events.
pub(crate) fn cuts_in(events: &[EventRow]) -> Vec<RungCut> {
    events.iter().filter(|event| EventKind::RungCut.is(&event.kind)).filter_map(cut_of).collect()
}

fn cut_of(event: &EventRow) -> Option<RungCut> {
    Some(RungCut {
        fraction: event.field("rung")?.parse().ok()?,
        rows: event.field("rows")?.parse().ok()?,
        rows_total: event.field("rows_total")?.parse().ok()?,
        by_key: event.field("by") == Some("keys"),
        is_claimed: event.field("by") == Some("indexes"),
    })
}
