//! What a resume really did, as its first step shows it: hours before the end, when the seal says it.

use trackway_core::{Step, Timestamp};
use trackway_formats::runfile::OnWrongResume;

use super::live_record::RecordFacts;

/// What is read comes into the record a little after it was, on a busy machine after the first step.
const LATE_SECONDS: f64 = 2.0;

/// What is waited for after a launch that is to continue from a checkpoint.
#[derive(Debug, Clone)]
pub struct ResumeWatch {
    /// The step that it is to continue from.
    planned: Step,
    /// What follows where it does not.
    policy: OnWrongResume,
    reported: bool,
}

impl ResumeWatch {
    /// `planned`: the step of the checkpoint; `None`: there is nothing to wait for.
    pub fn of(planned: Option<Step>, policy: OnWrongResume) -> Option<Self> {
        planned.map(|planned| Self { planned, policy, reported: false })
    }

    /// Whether the attempt is to be ended where it did not continue.
    pub fn stops(&self) -> bool {
        self.policy == OnWrongResume::Stop
    }

    /// What to say, once: the script began at or before the step that it was to continue after, and nothing read the checkpoint.
    pub fn take(&mut self, facts: &RecordFacts, now: Timestamp) -> Option<String> {
        if self.reported || facts.resumed {
            return None;
        }
        let first = facts.first_step.filter(|first| *first <= self.planned)?;
        let waited_seconds = facts.first_step_at.map(|at| now.seconds_since(at))?;
        if waited_seconds < LATE_SECONDS {
            return None;
        }
        self.reported = true;
        let planned = self.planned;
        Some(format!(
            "the script began with step {first}, and not after step {planned}, from which it was to continue: what was trained is trained again"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a script which begins before its checkpoint is reported once, when what it read had time to be recorded, and that one
    /// that read it, or begins after it, is not.
    #[test]
    fn a_script_that_begins_again_is_reported_once() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let facts = |first: Step, resumed: bool| RecordFacts {
            first_step: Some(first),
            first_step_at: Some(at(10)),
            resumed,
            ..RecordFacts::default()
        };
        let watch = || ResumeWatch::of(Some(40), OnWrongResume::Note).unwrap();
        let mut one = watch();
        assert_eq!(one.take(&RecordFacts::default(), at(20)), None, "no step yet");
        assert_eq!(one.take(&facts(1, false), at(11)), None, "it may not be recorded yet");
        let text = one.take(&facts(1, false), at(12)).unwrap();
        assert!(text.contains("began with step 1, and not after step 40"), "{text}");
        assert_eq!(one.take(&facts(1, false), at(13)), None, "once");
        assert_eq!(watch().take(&facts(1, true), at(20)), None);
        assert_eq!(watch().take(&facts(41, false), at(20)), None);
        assert!(ResumeWatch::of(None, OnWrongResume::Stop).is_none());
        assert!(ResumeWatch::of(Some(1), OnWrongResume::Stop).unwrap().stops());
    }
}
