//! The counts of rows that the attempts of a rung recorded.

use trackway_formats::EventKind;
use trackway_ledger::EventRow;
use trackway_rules::ladder::RungCut;

use super::opened::OpenedData;

/// What the attempts of a rung recorded of the rows they trained on.
#[derive(Debug, Clone, Default)]
pub(super) struct RungEvidence {
    /// The rows they kept, the newest count last.
    pub(super) cuts: Vec<RungCut>,
    pub(super) opened: OpenedData,
}

impl RungEvidence {
    /// Takes what the next attempt recorded. Attempts that counted the same are one count.
    pub(super) fn take(&mut self, events: &[EventRow]) {
        for cut in cuts_in(events) {
            self.cuts.retain(|known| *known != cut);
            self.cuts.push(cut);
        }
        self.opened.take(events);
    }
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
