//! When a checkpoint is due, and why.

use std::sync::atomic::Ordering;

use trackway_core::Step;

use crate::process::{ProcessSlot, once};
use crate::recorder::Inner;

/// A save must fit so many times into what is left of the grace period: the next one may take longer than the last.
pub(crate) const SAVE_MARGIN: f64 = 1.25;

/// How long a stop is put off at most. A loop whose steps take longer asks nothing meanwhile.
pub const STOP_PUT_OFF_SECONDS_MAX: f64 = 60.0;

/// The event that says why a checkpoint was made; its fields are `reason` and, when somebody asked, `why`.
pub const CHECKPOINT_REASON_EVENT: &str = "checkpoint_reason";

/// The event that says that `TRACKWAY_MAX_STEPS` was reached and the script was asked to end.
pub const MAX_STEPS_EVENT: &str = "max_steps_reached";

/// The event that says that a save is held between its files and its commit, for a rehearsal.
pub const HELD_IN_SAVE_EVENT: &str = "held_in_save";

/// Why a checkpoint was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SaveReason {
    /// The script saved by itself; nothing was due.
    Script,
    /// The cadence of the run file.
    Cadence,
    /// The last checkpoint before an end that was asked for, or at the last step.
    End,
    /// A person asked for it (`trackway checkpoint now`).
    Asked,
    /// A detector asked for it, to keep the state before something that looks wrong.
    Anomaly,
    /// SIGTERM: the machine is about to be taken away.
    Sigterm,
}

impl SaveReason {
    const ALL: [Self; 6] =
        [Self::Script, Self::Cadence, Self::End, Self::Asked, Self::Anomaly, Self::Sigterm];

    /// The word in the record and in the control file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Cadence => "cadence",
            Self::End => "end",
            Self::Asked => "asked",
            Self::Anomaly => "anomaly",
            Self::Sigterm => "sigterm",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

impl Inner {
    /// Why a checkpoint is due at the end of this step, if it is.
    pub(crate) fn due(&self, slot: &ProcessSlot, step: Step) -> Option<SaveReason> {
        if let Some(board) = slot.board() {
            return self.due_together(slot, board, step);
        }
        if self.sigterm.at_micros().is_some() && !self.save_fits(slot) {
            return None;
        }
        if slot.checkpoint_asked.load(Ordering::Relaxed) {
            return slot.control().checkpoints.iter().map(|asked| asked.reason).max();
        }
        if step == slot.last_saved_step.load(Ordering::Relaxed) {
            return None;
        }
        self.due_before_stop(slot).or_else(|| self.due_by_cadence(slot, step))
    }

    /// One checkpoint is due once the end was asked for.
    pub(crate) fn due_before_stop(&self, slot: &ProcessSlot) -> Option<SaveReason> {
        if slot.saved_for_stop.load(Ordering::Relaxed) || slot.fenced.load(Ordering::Relaxed) {
            return None;
        }
        let asked = slot.stop_wants_checkpoint.load(Ordering::Relaxed).then_some(SaveReason::End);
        self.sigterm.at_micros().map(|_| SaveReason::Sigterm).or(asked)
    }

    fn due_by_cadence(&self, slot: &ProcessSlot, step: Step) -> Option<SaveReason> {
        let last_step = slot.last_saved_step.load(Ordering::Relaxed);
        self.due_by_steps(last_step, step).or_else(|| self.due_by_time(slot))
    }

    /// What follows from the time since the last save.
    pub(crate) fn due_by_time(&self, slot: &ProcessSlot) -> Option<SaveReason> {
        let every = self.settings.every_seconds.filter(|_| self.settings.at_steps.is_empty())?;
        let last_micros = slot.last_saved_micros.load(Ordering::Relaxed);
        (self.seconds_since(last_micros) >= every).then_some(SaveReason::Cadence)
    }

    /// What follows from the number of the step, when `last_step` was the last one that was saved.
    pub(crate) fn due_by_steps(&self, last_step: Step, step: Step) -> Option<SaveReason> {
        let settings = &self.settings;
        if !settings.at_steps.is_empty() {
            let due = settings.at_steps.iter().any(|at| (last_step + 1..=step).contains(at));
            return due.then(|| if self.is_last(step) { SaveReason::End } else { SaveReason::Cadence });
        }
        let due = settings.every_steps.is_some_and(|every| step / every > last_step / every);
        due.then_some(SaveReason::Cadence)
    }

    /// Why a checkpoint that is being saved is saved: what made it due, or else the end, or the script's own will.
    pub(crate) fn reason_of_save(&self, slot: &ProcessSlot, step: Step) -> SaveReason {
        let stopping = || {
            let reason = self.sigterm.at_micros().map_or(SaveReason::End, |_| SaveReason::Sigterm);
            self.stopping(slot).then_some(reason)
        };
        self.due(slot, step).or_else(stopping).unwrap_or(SaveReason::Script)
    }

    fn is_last(&self, step: Step) -> bool {
        self.settings.max_steps.is_some_and(|max| step >= max)
    }

    /// Whether the loop should end now. A stop that arrived after the loop had asked whether to save this step is put
    /// off to the end of the next one, so that a checkpoint comes before it.
    pub(crate) fn should_end(&self, slot: &ProcessSlot) -> bool {
        let step = slot.seen_step();
        let save_comes = || {
            slot.is_unsaved(step)
                && !self.is_last(step)
                && self.due_before_stop(slot).is_some()
                && self.save_fits(slot)
                && self.group().is_none()
        };
        let micros_max = (STOP_PUT_OFF_SECONDS_MAX * 1e6) as i64;
        self.stopping(slot) && !(save_comes() && slot.put_off(step, self.now_micros(), micros_max))
    }

    /// Whether the end was asked for, or is reached.
    pub(crate) fn stopping(&self, slot: &ProcessSlot) -> bool {
        let at_last_step = self.is_last(slot.seen_step());
        if at_last_step && once(&slot.told.max_steps) {
            slot.segment().event(MAX_STEPS_EVENT, Some(slot.seen_step()), &[]);
        }
        if let Some(board) = slot.board() {
            return at_last_step || self.stopping_together(slot, board);
        }
        at_last_step || slot.stop_asked.load(Ordering::Relaxed) || self.sigterm.at_micros().is_some()
    }

    /// Whether a save as long as the last one ends before SIGKILL may come. One that was never measured may fit.
    pub(crate) fn save_fits(&self, slot: &ProcessSlot) -> bool {
        let left = self.grace_seconds_left();
        left.zip(slot.save_seconds()).is_none_or(|(left, needed)| needed * SAVE_MARGIN <= left)
    }

    /// What is left of the grace period; none before SIGTERM, or when nobody said how long it is.
    pub(crate) fn grace_seconds_left(&self) -> Option<f64> {
        let arrived_micros = self.sigterm.at_micros()?;
        Some(self.settings.grace_seconds? - self.seconds_since(arrived_micros))
    }

    /// Says once that SIGTERM arrived, and whether there is time for a checkpoint.
    pub(crate) fn notice_sigterm(&self, slot: &ProcessSlot) {
        if self.sigterm.at_micros().is_none() || !once(&slot.told.sigterm) {
            return;
        }
        let text = |seconds: Option<f64>| seconds.map_or("unknown".into(), |it: f64| format!("{it:.3}"));
        let (left, needed) = (text(self.grace_seconds_left()), text(slot.save_seconds()));
        let fields = [("grace_seconds_left", &*left), ("save_seconds", &*needed)];
        let step = Some(slot.seen_step());
        slot.segment().event("sigterm_noticed", step, &fields);
        if self.settings.checkpoint_root.is_some() && !self.save_fits(slot) {
            slot.segment().event("checkpoint_does_not_fit", step, &fields);
        }
    }
}
