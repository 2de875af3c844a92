use trackway_checkpoint::{Notice, Notices};
use trackway_core::Step;
use trackway_formats::SaveReason;

/// A notice is at most so many steps ahead.
const NOTICE_STEPS_MAX: f64 = 1_000.0;

/// The coming steps that a rank has notices of.
pub(crate) struct Board {
    pub notices: Notices,
    /// Saves that are due and were not requested yet.
    pub saves: Vec<Notice>,
    pub stop_step: Option<Step>,
    /// The newest step for which a save was requested, when, and the answer.
    pub asked: Option<(Step, i64, Option<SaveReason>)>,
    /// The newest step at which a save was decided or that was resumed from, whatever became of it: it must be the same
    /// on every rank.
    pub decided_step: Step,
    step_seconds: Option<f64>,
    /// When this rank first knew of a requested stop.
    pub stop_wanted_micros: Option<i64>,
}

impl Board {
    pub fn new(notices: Notices) -> Self {
        Self {
            notices,
            saves: Vec::new(),
            stop_step: None,
            asked: None,
            decided_step: 0,
            step_seconds: None,
            stop_wanted_micros: None,
        }
    }

    pub fn resumed_from(&mut self, step: Step) {
        self.decided_step = step;
    }

    /// The answer that was given already: all questions about one step have one answer.
    pub fn answer_on(&self, step: Step) -> Option<Option<SaveReason>> {
        self.asked.filter(|(asked, ..)| *asked == step).map(|(.., answer)| answer)
    }

    pub fn note_pace(&mut self, step: Step, now_micros: i64) {
        let (before, at_micros, _) = self.asked.unwrap_or((step, now_micros, None));
        if step > before {
            self.step_seconds = Some((now_micros - at_micros) as f64 / 1e6 / (step - before) as f64);
        }
    }

    /// How many steps ahead a notice must be.
    pub fn steps_ahead(&self, seconds: f64) -> Step {
        let steps = self.step_seconds.map_or(2.0, |step_seconds| seconds / step_seconds.max(1e-6));
        steps.ceil().clamp(1.0, NOTICE_STEPS_MAX) as Step
    }

    /// The reason of the saves announced up to this step.
    pub fn take_saves(&mut self, step: Step) -> Option<SaveReason> {
        let due = self.saves.extract_if(.., |notice| notice.step <= step);
        due.map(|notice| notice.reason.parse().unwrap_or(SaveReason::Asked)).max()
    }
}
