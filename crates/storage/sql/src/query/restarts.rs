//! Points that a writer of event files made void when it began again at an earlier step: `effective_metrics` leaves
//! them out.

use std::collections::HashSet;

use arrow::array::{Array as _, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::Int64Type;
use serde_json::Value as Json;
use trackway_core::{AttemptId, MetricStep, Step};
use trackway_formats::EventKind;
use trackway_formats::record::{EARLY_STEP, restarted_names};
use trackway_ledger::{EventRow, Ledger, LedgerError};

/// The columns that decide whether a point is void.
pub(super) const COLUMNS: [&str; 4] = ["segment", "name", "step", "sequence"];

/// A writer began again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Restart {
    /// Where in the record the restart is: points after it count. The segments of one writer sort by name.
    segment: String,
    sequence: i64,
    /// Points of this step and later ones before it are void.
    step: i64,
    /// The metrics it is about.
    names: HashSet<String>,
}

impl Restart {
    /// Those of a sealed attempt.
    pub(super) fn of_attempt(ledger: &Ledger, attempt_id: AttemptId) -> Result<Vec<Self>, LedgerError> {
        let events = ledger.events_of_attempt_of_kind(attempt_id, EventKind::TensorboardRestart.as_str())?;
        Ok(Self::of_events(&events))
    }

    /// Those among the events of an attempt.
    pub(super) fn of_events(events: &[EventRow]) -> Vec<Self> {
        let restarts = events.iter().filter(|event| EventKind::TensorboardRestart.is(&event.kind));
        restarts.filter_map(Self::of_event).collect()
    }

    /// The id of an event is its place in the record: attempt, segment, frame.
    fn of_event(event: &EventRow) -> Option<Self> {
        let mut place = event.event_id.splitn(3, ':').skip(1);
        let fields = event.fields_json.as_ref()?;
        Self::new(
            place.next()?,
            place.next()?.parse().ok()?,
            step_of(event.step, event.field(EARLY_STEP))?,
            fields.get("names").and_then(Json::as_str)?,
        )
    }

    fn new(segment: &str, sequence: i64, step: MetricStep, names: &str) -> Option<Self> {
        let (segment, names) = (segment.to_owned(), restarted_names(names)?.into_iter().collect());
        Some(Self { segment, sequence, step, names })
    }

    fn makes_void(&self, segment: &str, name: &str, step: i64, sequence: i64) -> bool {
        step >= self.step
            && (segment, sequence) < (self.segment.as_str(), self.sequence)
            && self.names.contains(name)
    }
}

/// The step of a restart: a field has it where it is below 0.
fn step_of(step: Option<Step>, early: Option<&str>) -> Option<MetricStep> {
    match early {
        Some(early) => early.parse().ok(),
        None => step?.try_into().ok(),
    }
}

/// Which of these rows count; `None` when all of them do.
pub(super) fn counting(batch: &RecordBatch, restarts: &[Restart]) -> Option<BooleanArray> {
    if restarts.is_empty() {
        return None;
    }
    let [segments, names, steps, sequences] = COLUMNS.map(|column| batch.column_by_name(column));
    let (segments, names) = (segments?.as_string_opt::<i32>()?, names?.as_string_opt::<i32>()?);
    let (steps, sequences) =
        (steps?.as_primitive_opt::<Int64Type>()?, sequences?.as_primitive_opt::<Int64Type>()?);
    let counts = |row: usize| {
        let place = (segments.value(row), names.value(row), steps.value(row), sequences.value(row));
        !restarts.iter().any(|restart| restart.makes_void(place.0, place.1, place.2, place.3))
    };
    Some((0..segments.len()).map(|row| Some(counts(row))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only earlier points of the same metrics, from the step on, are void.
    #[test]
    fn a_restart_makes_earlier_points_void() {
        let restart = Restart::new("b.tkr", 10, 4, r#"["loss", "a/b"]"#).unwrap();
        assert!(restart.makes_void("b.tkr", "loss", 4, 9) && restart.makes_void("a.tkr", "a/b", 7, 900));
        assert!(!restart.makes_void("b.tkr", "loss", 3, 9));
        assert!(!restart.makes_void("b.tkr", "loss", 4, 11) && !restart.makes_void("c.tkr", "loss", 4, 1));
        assert!(!restart.makes_void("b.tkr", "b", 4, 9));
        assert_eq!(Restart::new("b", 1, 4, "loss"), None);
    }

    /// Proves that a restart below step 0 is at its step, and one without a field at the step of its event.
    #[test]
    fn a_restart_may_be_before_step_0() {
        assert_eq!(step_of(None, Some("-5")), Some(-5));
        assert_eq!((step_of(Some(4), None), step_of(None, None)), (Some(4), None));
    }
}
