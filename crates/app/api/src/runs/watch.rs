//! A run that is not over.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::text::duration;
use trackway_core::{AttemptId, RunId, Step, Timestamp};
use trackway_ledger::{AttemptState, RunState};

use crate::checkpoints::remote::RemoteStatus;
use crate::runs::RungSummary;
use crate::runs::detections::Detection;
use crate::runs::progressive::ProgressiveEstimate;

/// A shorter wait is shown in whole seconds.
const MINUTE_SECONDS: f64 = 60.0;

/// A sample of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunSample {
    pub run_id: RunId,
    pub name: String,
    /// The project it belongs to; null: it is not known.
    pub project: Option<String>,
    pub state: RunState,
    /// The newest attempt.
    pub attempt_id: Option<AttemptId>,
    /// Its number in the run.
    pub attempt_number: Option<u32>,
    /// Whether the run file has a ladder of rungs.
    pub has_ladder: bool,
    /// The rung of the data that it trains on, such as `10%`.
    pub rung: Option<String>,
    /// The rungs of the run's ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungSummary>,
    /// The state of the newest attempt.
    pub attempt_state: Option<AttemptState>,
    /// Seconds for which it has been running, or ran; for which it waits, where it is in the queue of its engine. Null: it ended before it
    /// was started.
    pub running_seconds: Option<f64>,
    /// Its wait for a place in its queue; null: it does not wait.
    pub queue: Option<QueuedRun>,
    pub progress: Progress,
    /// The number of steps that the script announced.
    pub total_steps: Option<u64>,
    /// Seconds left at the present rate.
    pub eta_seconds: Option<f64>,
    /// The last values of the metric in `progress`, oldest first; null where a value is not finite.
    pub curve: Vec<Option<f64>>,
    /// The last values of the most important metrics, that one included; at most six.
    pub curves: Vec<LiveCurve>,
    /// The loss on data that the model has not seen, by progressive validation, over this attempt.
    pub progressive: Option<ProgressiveEstimate>,
    /// The last sample of the machine: values by name (`docs/telemetry.md`); empty before the first one.
    pub machine: BTreeMap<String, f64>,
    /// The retry budgets of the run.
    pub budgets: Vec<Budget>,
    /// The last ten findings of detectors, oldest first.
    pub detections: Vec<Detection>,
    /// The state of its remote; null without one.
    pub remote: Option<RemoteStatus>,
    /// Whether it waits to begin, for a place in its queue or for its next attempt, and no process supervises it: nothing happens before it
    /// is resumed, and this is the last line.
    pub unsupervised: bool,
    /// Why a resume is refused of a run that no process supervises; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_refused: Option<String>,
    /// Whether the run has ended: this is the last line.
    pub ended: bool,
}

/// A run that waits for a place in its queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedRun {
    pub name: String,
    /// How many of its runs may run at once on a host.
    pub at_most: u32,
    /// How many of its places are taken; null: not known.
    pub running: Option<u32>,
    /// The place of the run among those that wait in it, from 1; null: not known, or no process of the run waits.
    pub place: Option<u32>,
    /// How many runs wait in it, this one included; null: not known.
    pub waiting: Option<u32>,
    /// Seconds for which the run has been waiting.
    pub waited_seconds: f64,
}

impl QueuedRun {
    /// `2nd of 3 in queue gpu, 1 may run`
    #[must_use]
    pub fn place_in_line(&self) -> String {
        let Self { name, at_most, place, waiting, .. } = self;
        match place.zip(*waiting) {
            Some((place, waiting)) => {
                format!("{} of {waiting} in queue {name}, {at_most} may run", ordinal(place))
            }
            None => format!("in queue {name}, its place is not known, {at_most} may run"),
        }
    }
}

/// `waiting: 2nd of 3 in queue gpu, 1 may run (1 running), since 12 s`
impl fmt::Display for QueuedRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = match self.running {
            Some(running) => format!("{running} running"),
            None => "how many run is not known".to_owned(),
        };
        let since = match self.waited_seconds {
            seconds if seconds < MINUTE_SECONDS => format!("{seconds:.0} s"),
            seconds => duration(seconds),
        };
        write!(formatter, "waiting: {} ({running}), since {since}", self.place_in_line())
    }
}

/// `1st`, `2nd`, `11th`
fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// What is said of a run that waits; none of one that does not, or whose supervisor launches its next attempt. `unsupervised`: no process
/// supervises it; `resume_refused`: why a resume is refused then.
#[must_use]
pub fn waiting_sentence(
    run_id: RunId,
    queue: Option<&QueuedRun>,
    (unsupervised, resume_refused): (bool, Option<&str>),
) -> Option<String> {
    match (queue, unsupervised) {
        (None, false) => None,
        (Some(queue), false) => Some(queue.to_string()),
        (_, true) if resume_refused.is_some() => {
            resume_refused.map(|why| format!("no process supervises it, and a resume is refused: {why}"))
        }
        (Some(QueuedRun { name, .. }), true) => Some(format!(
            "no process supervises it, and it has no place in queue {name} any more; it waits again with: trackway resume {run_id}"
        )),
        (None, true) => {
            Some(format!("no process supervises it; it continues with: trackway resume {run_id}"))
        }
    }
}

/// The progress of the live attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// The last step in the flight record.
    pub step: Option<Step>,
    /// Steps per second over the last window.
    pub steps_per_second: Option<f64>,
    /// The metric named `loss`, or else the first one, and its last value.
    pub loss: Option<(String, Option<f64>)>,
    /// The last step with a committed checkpoint.
    pub last_committed_step: Option<Step>,
    /// Time of the last sign of life of the training process.
    pub heartbeat_at: Option<Timestamp>,
}

/// The last values of one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveCurve {
    /// The metric.
    pub name: String,
    /// The step of the last value.
    pub last_step: Step,
    /// The values, oldest first; null where a value is not finite.
    pub values: Vec<Option<f64>>,
}

/// A retry budget of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    pub name: String,
    pub spent: f64,
    /// What there is in all; null: no limit.
    pub limit: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(place: Option<u32>, running: Option<u32>, waited_seconds: f64) -> QueuedRun {
        QueuedRun {
            name: "gpu".into(),
            at_most: 1,
            running,
            place,
            waiting: place.map(|_| 13),
            waited_seconds,
        }
    }

    /// Proves how a wait for a place is shown, and that what is not known is called so and not zero.
    #[test]
    fn a_wait_has_one_line() {
        assert_eq!(
            queued(Some(2), Some(1), 12.4).to_string(),
            "waiting: 2nd of 13 in queue gpu, 1 may run (1 running), since 12 s"
        );
        assert_eq!(
            queued(None, None, 245.0).to_string(),
            "waiting: in queue gpu, its place is not known, 1 may run (how many run is not known), since 4 min 05 s"
        );
        let places = [1, 3, 4, 11, 12, 13, 21, 102, 112].map(ordinal);
        assert_eq!(places, ["1st", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "112th"]);
    }

    /// Proves that a run which lost its supervisor is not said to wait for its turn, and how it continues.
    #[test]
    fn a_lost_supervisor_is_said() {
        let run_id: RunId = "run_00000000000000000000000001".parse().unwrap();
        let wait = queued(Some(1), Some(1), 1.0);
        let said = |queue, unsupervised| waiting_sentence(run_id, queue, (unsupervised, None));
        assert_eq!(said(None, false), None);
        assert_eq!(said(Some(&wait), false), Some(wait.to_string()));
        for queue in [None, Some(&wait)] {
            let sentence = said(queue, true).unwrap();
            assert!(sentence.contains("no process supervises it"), "{sentence}");
            assert!(sentence.ends_with(&format!("trackway resume {run_id}")), "{sentence}");
            assert!(!sentence.contains("1st"), "{sentence}");
        }
    }

    /// Proves that a run of which a resume is refused is not said to continue with one.
    #[test]
    fn a_refused_resume_is_not_advised() {
        let run_id: RunId = "run_00000000000000000000000001".parse().unwrap();
        for queue in [None, Some(&queued(Some(1), Some(1), 1.0))] {
            let sentence = waiting_sentence(run_id, queue, (true, Some("2 of 2 hours are spent"))).unwrap();
            let expected = "no process supervises it, and a resume is refused: 2 of 2 hours are spent";
            assert_eq!(sentence, expected);
        }
    }
}
