//! An attempt that has not ended: what is known of it by now, and what a person can do about it.

use std::path::Path;

use trackway_core::text::duration;
use trackway_core::{Clock as _, LaunchKind, RunId};
use trackway_engine::Context;
use trackway_engine::actions::{self, ActionKind, OwnAction};
use trackway_engine::error::AppError;
use trackway_engine::run::supervision::is_supervised;
use trackway_ledger::{AttemptRow, AttemptState};

/// What is known of an attempt that has no receipt yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Unended {
    pub state: AttemptState,
    /// Why its receipt could not be sealed, the last time that was tried.
    pub set_aside: Option<String>,
    /// What was done last to end it, and how many seconds ago.
    pub ending: Option<(OwnAction, f64)>,
    pub is_supervised: bool,
}

impl Unended {
    /// None: it has its receipt.
    pub(super) fn of(context: &Context, attempt: &AttemptRow) -> Result<Option<Self>, AppError> {
        if attempt.state == AttemptState::Sealed {
            return Ok(None);
        }
        let id = attempt.attempt_id.to_string();
        let folder = context.home.layout.attempt(attempt.attempt_id);
        // A supervisor of another home, perhaps of another machine, is not seen from here.
        let is_of_this_home = folder.folder() == Path::new(&attempt.log_directory);
        let aside = context.set_aside().into_iter().find(|aside| aside.id == id);
        // What cannot be read is not known: the explanation has everything else.
        let done = actions::read(&folder).unwrap_or_default();
        let seconds = |action: &OwnAction| context.clock.now().seconds_since(action.at).max(0.0);
        Ok(Some(Self {
            state: attempt.state,
            set_aside: aside.map(|aside| aside.why),
            ending: done.last().map(|action| (action.clone(), seconds(action))),
            is_supervised: attempt.kind != LaunchKind::Train
                || is_supervised(context, attempt.run_id)?
                || !is_of_this_home
                || is_sealed_by_now(context, attempt)?,
        }))
    }

    /// What is known of it, as its cause.
    pub(super) fn sentence(&self) -> String {
        let state = match (&self.set_aside, self.state) {
            (Some(why), _) => format!("it has ended, and its receipt cannot be sealed: {why}"),
            (None, AttemptState::Planned) => "it is not known to have begun".into(),
            (None, AttemptState::Queued) => "it waits in the queue of its engine".into(),
            (None, AttemptState::Ended) => "it has ended, and its receipt is not sealed yet".into(),
            (None, AttemptState::Running | AttemptState::Sealed) => "it has not ended".into(),
        };
        let ending = self.ending.as_ref().map(|(action, seconds)| {
            let what = match (action.kill_sent, action.kind) {
                (true, _) => "SIGKILL was sent",
                (false, ActionKind::StopRequested) => "a stop was requested",
                (false, _) => "Trackway began to end it",
            };
            format!("{what} {} ago ({})", duration(*seconds), action.why)
        });
        let alone = (!self.is_supervised).then(|| "no process supervises it".to_owned());
        [Some(state), ending, alone].into_iter().flatten().collect::<Vec<String>>().join("; ")
    }

    /// What a person can do. `asks_to_save`: its script asks Trackway whether to save, so that a stop waits for a checkpoint.
    /// `may_resume`: a resume watches it again.
    pub(super) fn actions(&self, run_id: RunId, asks_to_save: bool, may_resume: bool) -> Vec<String> {
        let resume = match (self.set_aside.is_some(), self.is_supervised) {
            (true, _) => Some("when that is repaired, seal it"),
            (false, false) => Some("no process supervises it; reattach"),
            (false, true) => None,
        };
        let resume = resume.filter(|_| may_resume).map(|what| format!("{what}: trackway resume {run_id}"));
        let watch = self.set_aside.is_none().then(|| format!("follow it: trackway watch {run_id}"));
        let end = match &self.ending {
            Some((action, _)) if action.kill_sent => None,
            Some(_) => Some(format!("end it at once: trackway stop {run_id} --kill")),
            None if asks_to_save => Some(format!("end it after a checkpoint: trackway stop {run_id}")),
            None => Some(format!("end it: trackway stop {run_id}")),
        };
        let end = end.filter(|_| self.set_aside.is_none() && self.state != AttemptState::Ended);
        [resume, watch, end].into_iter().flatten().collect()
    }
}

/// Whether its supervisor sealed it, and ended, after its row was read.
fn is_sealed_by_now(context: &Context, attempt: &AttemptRow) -> Result<bool, AppError> {
    let now = context.ledger_read(|ledger| ledger.attempt(attempt.attempt_id))?;
    Ok(now.is_some_and(|now| now.state == AttemptState::Sealed))
}

#[cfg(test)]
mod tests {
    use trackway_core::Timestamp;

    use super::*;

    fn running() -> Unended {
        Unended { state: AttemptState::Running, set_aside: None, ending: None, is_supervised: true }
    }

    fn ending(kind: ActionKind, kill_sent: bool) -> Option<(OwnAction, f64)> {
        Some((OwnAction { kind, at: Timestamp::from_micros(0), kill_sent, why: "by ana".into() }, 3.0))
    }

    /// Proves that an attempt which has not ended is said to be stopping, killed, left alone or not sealed where it is.
    #[test]
    fn what_is_known_by_now_is_said() {
        let stopping = Unended { ending: ending(ActionKind::StopRequested, false), ..running() };
        for (unended, expected) in [
            (running(), "it has not ended"),
            (stopping.clone(), "it has not ended; a stop was requested 3.0 s ago (by ana)"),
            (
                Unended { is_supervised: false, ..stopping },
                "it has not ended; a stop was requested 3.0 s ago (by ana); no process supervises it",
            ),
            (
                Unended { ending: ending(ActionKind::HangKill, false), ..running() },
                "it has not ended; Trackway began to end it 3.0 s ago (by ana)",
            ),
            (
                Unended { ending: ending(ActionKind::StopRequested, true), ..running() },
                "it has not ended; SIGKILL was sent 3.0 s ago (by ana)",
            ),
            (Unended { state: AttemptState::Queued, ..running() }, "it waits in the queue of its engine"),
            (
                Unended { set_aside: Some("its record is torn".into()), ..running() },
                "it has ended, and its receipt cannot be sealed: its record is torn",
            ),
        ] {
            assert_eq!(unended.sentence(), expected);
        }
    }

    /// Proves that only what still works is proposed: no second stop but by a kill, none after that, and a resume only of what
    /// no process supervises, where it is not refused.
    #[test]
    fn what_is_proposed_works() {
        let run_id: RunId = "run_01jz0000000000000000000001".parse().unwrap();
        let of = |unended: &Unended| -> Vec<String> {
            let actions = unended.actions(run_id, false, true).into_iter();
            actions.map(|action| action.replace(&format!(" {run_id}"), "")).collect()
        };
        let (watch, end) = ("follow it: trackway watch", "end it: trackway stop");
        assert_eq!(of(&running()), [watch, end]);
        let stopping = Unended { ending: ending(ActionKind::StopRequested, false), ..running() };
        assert_eq!(of(&stopping), [watch, "end it at once: trackway stop --kill"]);
        let killed = Unended { ending: ending(ActionKind::StopRequested, true), ..running() };
        assert_eq!(of(&killed), [watch]);
        let alone = Unended { is_supervised: false, ..running() };
        let resume = "no process supervises it; reattach: trackway resume";
        assert_eq!(of(&alone), [resume, watch, end]);
        assert_eq!(alone.actions(run_id, false, false).len(), 2);
        let aside = Unended { set_aside: Some("torn".into()), ..running() };
        assert_eq!(of(&aside), ["when that is repaired, seal it: trackway resume"]);
    }
}
