//! What an engine does by itself with an attempt that it had started: a requeue, which is an event of the attempt.

use serde_json::json;
use trackway_core::Clock as _;
use trackway_formats::EventKind;
use trackway_launch::{EngineState, Observation, ObservedAttempt};
use trackway_ledger::{AttemptRow, AttemptState, EventRow};

use crate::Context;
use crate::run::launch::row::instance_of;

/// What an engine did with an attempt that it had started: it took the attempt back into its queue, or started it again.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::run) struct Requeue {
    from: String,
    /// The new start; none while the attempt waits.
    to: Option<String>,
    /// Why it waits.
    why: Option<String>,
    words: Option<EngineState>,
}

impl Requeue {
    /// `known`: the state and the start of the attempt before. A start after a wait is not a second requeue.
    pub(in crate::run) fn of(
        row: &AttemptRow,
        (state, start): (AttemptState, Option<&str>),
        seen: &ObservedAttempt,
    ) -> Option<Self> {
        // Before the first start there is the engine alone.
        let from = start.filter(|start| start.contains(':') && state == AttemptState::Running)?;
        let (to, why) = match &seen.state {
            Observation::Pending { why } => (None, Some(why.clone())),
            _ => (Some(instance_of(row, seen).filter(|now| now != from)?), None),
        };
        Some(Self { from: from.to_owned(), to, why, words: seen.engine_state.clone() })
    }

    fn text(&self, row: &AttemptRow) -> String {
        let number = row.attempt_number;
        match (&self.to, &self.why) {
            (Some(to), _) => format!("the engine started attempt {number} again, as {to}"),
            (None, why) => {
                let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("the engine took attempt {number} back into its queue{why}")
            }
        }
    }

    /// Completes the history of the run, and says what a user reads of it.
    pub(in crate::run) fn remember(&self, context: &Context, row: &AttemptRow) -> String {
        let (at, kind, text) = (context.clock.now(), EventKind::Requeued, self.text(row));
        let words = self.words.as_ref();
        let event = EventRow {
            // It may happen more than once.
            event_id: format!("{}:{kind}:{}", row.attempt_id, at.as_micros()),
            fields_json: Some(json!({
                "from": self.from,
                "to": self.to,
                "state": words.map(|words| &words.state),
                "reason": words.map(|words| &words.reason),
            })),
            ..EventRow::of_attempt(row, kind, at, text.clone())
        };
        let _ = context.ledger_write_now(|ledger| ledger.append_event(&event));
        text
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds, Timestamp};
    use trackway_launch::{Instance, Running};
    use trackway_ledger::RunRow;

    use super::*;

    /// Proves that a running attempt that waits again, and one with another start, are requeued; and neither the first
    /// start of an attempt, nor the start after its wait, nor an engine that does not answer.
    #[test]
    fn another_start_is_a_requeue() {
        let ids = SequentialIds::default();
        let at = Timestamp::from_micros(0);
        let run = RunRow::planned(
            RunId::new(&ids),
            &Name::renamed(NameKind::Run, "a"),
            "0",
            serde_json::json!({}),
            at,
        );
        let mut row = AttemptRow::planned(AttemptId::new(&ids), 4, LaunchKind::Train, &run);
        row.engine_instance = Some("juwels:7/1".into());
        let words =
            EngineState { engine: "slurm".into(), state: "PENDING".into(), reason: "Priority".into() };
        let seen = |state, start: Option<&str>| ObservedAttempt {
            state,
            seen_at: at,
            engine_state: start.map(|_| words.clone()),
            submitted_at: None,
            started_at: None,
            instance: start.map(|start| Instance(start.to_owned())),
            hosts: Vec::new(),
            devices: Vec::new(),
        };
        let waiting = || Observation::Pending { why: "Priority".into() };
        let running = || Observation::Running(Running::default());
        let hidden = || Observation::CannotTell { why: "no answer".into(), is_lasting: false };
        let text = |known, seen| Requeue::of(&row, known, &seen).map(|requeue| requeue.text(&row));
        let (was_running, was_queued) = (AttemptState::Running, AttemptState::Queued);
        let first = Some("juwels:7/1");
        let back = text((was_running, first), seen(waiting(), None));
        assert_eq!(back.as_deref(), Some("the engine took attempt 4 back into its queue: Priority"));
        let again = text((was_running, first), seen(running(), Some("7/2")));
        assert_eq!(again.as_deref(), Some("the engine started attempt 4 again, as juwels:7/2"));
        for (known, seen) in [
            ((was_running, first), seen(running(), Some("7/1"))),
            ((was_running, first), seen(hidden(), None)),
            ((was_queued, first), seen(running(), Some("7/2"))),
            ((was_queued, None), seen(running(), Some("7/1"))),
            ((was_running, Some("juwels")), seen(running(), Some("7/1"))),
            ((was_running, None), seen(waiting(), None)),
        ] {
            assert_eq!(text(known, seen), None);
        }
    }
}
