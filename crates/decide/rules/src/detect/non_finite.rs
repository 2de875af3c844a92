//! NaN and infinite values.
//!
//! A finite computation never makes one, so the first one counts. One exception: with a loss scale, gradients that
//! overflow are how the scale is found; the update is skipped, and only a row of them is a problem.
//!
//! One NaN may be that of a batch. A training loss that stays so for [`LASTING`] values does not come back: the finding is
//! repeated as critical, and a run with a run file ends by default.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::{Critical, Warn};

use super::anomaly::{Anomaly, DetectorChange, Sample, number};
use super::rules::Rule;
use super::series::streak::{Streak, Turn};

/// Gradients that may overflow in a row while a loss scale is sought: from 2¹⁶, the usual beginning, down to 2⁶.
const OVERFLOWS_ALLOWED: u32 = 10;
/// Finite values in a row after which it is over.
const CALM: u32 = 20;
/// Values in a row after which a training loss is lost.
pub(super) const LASTING: u32 = 10;

/// What is known of a metric whose values are looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subject {
    /// It counts non-finite gradients.
    pub is_count: bool,
    /// Overflows of it are part of the method.
    pub may_overflow: bool,
    /// It is the training loss of its rank.
    pub is_training_loss: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct NonFinite {
    streak: Streak,
    lasting: Streak,
    last_finite: Option<(Step, f64)>,
}

impl NonFinite {
    pub(super) fn take(
        &mut self,
        rule: Rule,
        sample: Sample,
        metric: &str,
        subject: Subject,
    ) -> Option<DetectorChange> {
        let bad = !sample.value.is_finite() || (subject.is_count && sample.value > 0.0);
        if !bad && !self.streak.is_bad() {
            self.last_finite = Some((sample.step, sample.value));
        }
        let patience =
            if subject.may_overflow { rule.patience.max(OVERFLOWS_ALLOWED + 1) } else { rule.patience };
        let lasting_patience = LASTING.max(rule.patience.saturating_add(1));
        let turn = self.streak.take(bad, sample.step, patience, CALM);
        let lasting = self.lasting.take(bad && subject.is_training_loss, sample.step, lasting_patience, CALM);
        let anomaly = |severity, first_step, seen: String| Anomaly {
            severity,
            first_step,
            value: None,
            threshold: 0.0,
            evidence: format!("{seen}{}", self.before()),
        };
        match (turn, lasting) {
            (_, Turn::Fires(first_step)) => {
                let seen = format!(
                    "`{metric}` is NaN or infinite from step {first_step} on, {lasting_patience} values in a row"
                );
                Some(DetectorChange::Worsens(Box::new(anomaly(Critical, first_step, seen))))
            }
            (Turn::Fires(first_step), _) => {
                let seen = match subject.is_count {
                    true => format!("`{metric}` counts {} at step {first_step}", number(sample.value)),
                    false => format!("`{metric}` is {} at step {first_step}", sample.value),
                };
                Some(DetectorChange::fires(anomaly(Warn, first_step, seen)))
            }
            (Turn::Rearmed, _) => Some(DetectorChange::Rearmed),
            (Turn::Nothing, _) => None,
        }
    }

    fn before(&self) -> String {
        match self.last_finite {
            Some((step, value)) => format!("; it was {} at step {step}", number(value)),
            None => ", its first value".into(),
        }
    }
}
