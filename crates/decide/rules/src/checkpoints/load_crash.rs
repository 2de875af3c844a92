//! A checkpoint whose bytes verify may still kill the process that loads it. Two attempts in a row that resume from the
//! same one and crash before their first step put it under suspicion, so that the next attempt steps back one.
//!
//! A bug in the code crashes at any checkpoint. So the run steps back once, and not again until an attempt got on: the
//! rule must not eat all checkpoints one after another.

use trackway_core::{AttemptId, Step, TerminationReason as Reason};

/// Crashes in a row at one checkpoint that put it under suspicion.
const CRASHES_MAX: usize = 2;
/// Crashed attempts that are named.
const NAMED_MAX: usize = 8;
/// Signals that a process brings upon itself: ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS.
const OWN_SIGNALS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];

/// An ended attempt as this rule sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadAttempt {
    pub attempt_id: AttemptId,
    /// The step it resumed from; none: from the beginning.
    pub resumed_from_step: Option<Step>,
    /// SHA-256 of the manifest of that checkpoint.
    pub resumed_from: Option<String>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    /// Why it ended.
    pub reason: Reason,
    /// The exit code of its process.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// A checkpoint under suspicion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadCrash {
    /// SHA-256 of its manifest.
    pub manifest_sha256: String,
    /// The newest attempts that crashed at it, oldest first.
    pub attempts: Vec<AttemptId>,
}

/// The crashes at the end of a run's history, as far as the rule looks at them: the ended attempts are taken one by one, oldest first,
/// every one of them, also those that a user resumed.
///
/// Attempts that were taken away (preempted, cancelled, lost with their machine) are no evidence about a checkpoint and
/// are skipped. One that made a step ends the series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadCrashes {
    /// SHA-256 of the manifest of the checkpoint that the newest crashed at; none: they began from the beginning.
    at: Option<String>,
    /// How many crashed there in a row.
    count: usize,
    /// The newest of these, oldest first.
    newest: Vec<AttemptId>,
    /// Whether another checkpoint was under suspicion since an attempt made progress.
    stepped_back: bool,
}

impl LoadCrashes {
    /// Takes the next attempt.
    pub fn take(&mut self, attempt: &LoadAttempt) {
        if attempt.made_progress() {
            *self = Self::default();
        } else if attempt.crashed() {
            self.take_crash(attempt);
        }
    }

    fn take_crash(&mut self, attempt: &LoadAttempt) {
        if self.at != attempt.resumed_from {
            let stepped_back = self.stepped_back || self.is_series();
            *self = Self { at: attempt.resumed_from.clone(), stepped_back, ..Self::default() };
        }
        self.count += 1;
        if self.newest.len() == NAMED_MAX {
            self.newest.remove(0);
        }
        self.newest.push(attempt.attempt_id);
    }

    fn is_series(&self) -> bool {
        self.at.is_some() && self.count >= CRASHES_MAX
    }

    /// The checkpoint that they put under suspicion. Whether an older one exists to step back to is not known here and must be
    /// checked first.
    #[must_use]
    pub fn suspect(&self) -> Option<LoadCrash> {
        let manifest_sha256 = self.at.clone().filter(|_| self.is_series() && !self.stepped_back)?;
        Some(LoadCrash { manifest_sha256, attempts: self.newest.clone() })
    }
}

impl LoadAttempt {
    /// A step or a commit after the one it resumed from.
    fn made_progress(&self) -> bool {
        let from = self.resumed_from_step.unwrap_or(0);
        self.last_step.max(self.last_committed_step).is_some_and(|step| step > from)
    }

    /// Whether the program itself brought the end about, as far as is known. What ran out of memory or hung would do so
    /// at an older checkpoint too.
    fn crashed(&self) -> bool {
        match self.reason {
            Reason::CodeError | Reason::CheckpointError | Reason::NumericDivergence => true,
            Reason::Unknown => match (self.exit_code, self.signal) {
                // A shell's way to report that a signal ended its child.
                (Some(code @ 129..=192), _) => OWN_SIGNALS.contains(&(code - 128)),
                (Some(code), _) => code != 0,
                (None, Some(signal)) => OWN_SIGNALS.contains(&signal),
                (None, None) => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::SequentialIds;

    use super::*;

    /// `a:code_error` resumed from checkpoint `a` at step 100; `a+50:` got 50 steps on; `-:` began at the beginning.
    fn attempts(words: &str) -> Vec<LoadAttempt> {
        let ids = SequentialIds::default();
        let attempt = |word: &str| {
            let (from, end) = word.split_once(':').unwrap();
            let (from, steps) = from.split_once('+').unwrap_or((from, "0"));
            let resumed_from = (from != "-").then(|| from.to_owned());
            let at = if from == "-" { 0 } else { 100 };
            let (reason, rest) = end.split_once('/').unwrap_or((end, ""));
            let signal = rest.strip_prefix("signal").and_then(|number| number.parse().ok());
            LoadAttempt {
                attempt_id: AttemptId::new(&ids),
                resumed_from_step: resumed_from.as_ref().map(|_| at),
                last_step: Some(at + steps.parse::<u64>().unwrap()).filter(|step| *step > 0),
                last_committed_step: None,
                reason: reason.parse().unwrap(),
                exit_code: rest.strip_prefix("code").and_then(|number| number.parse().ok()),
                signal,
                resumed_from,
            }
        };
        words.split_whitespace().map(attempt).collect()
    }

    fn load_crash(attempts: &[LoadAttempt]) -> Option<LoadCrash> {
        let mut crashes = LoadCrashes::default();
        attempts.iter().for_each(|attempt| crashes.take(attempt));
        crashes.suspect()
    }

    /// Proves which histories put a checkpoint under suspicion and which do not.
    #[test]
    fn two_crashes_at_one_checkpoint_make_it_suspect() {
        let table = [
            ("", None),
            ("-:code_error -:code_error", None),
            ("-+90:code_error a:code_error", None),
            ("-+90:code_error a:code_error a:code_error", Some(("a", 2))),
            ("a:code_error a:code_error a:code_error", Some(("a", 3))),
            // What was taken away proves nothing, and breaks nothing.
            ("a:code_error a:preempted a:node_failure a:code_error", Some(("a", 2))),
            ("a:preempted a:preempted a:cancelled a:network_error a:device_oom a:hang", None),
            ("a:code_error a:completed", None),
            // A step or another checkpoint in between restarts the count.
            ("a:code_error a+1:code_error a:code_error", None),
            ("a+50:code_error a+50:code_error", None),
            ("a:code_error b:code_error a:code_error", None),
            // Never a second step back before an attempt made progress.
            ("b:code_error b:code_error a:code_error a:code_error", None),
            ("b:code_error b:code_error a:code_error a:preempted a:code_error a:code_error", None),
            ("b:code_error b:code_error a+7:code_error a:code_error a:code_error", Some(("a", 2))),
            // One crash at a newer checkpoint was no step back of this rule.
            ("b:code_error a:code_error a:code_error", Some(("a", 2))),
            ("a:checkpoint_error a:numeric_divergence", Some(("a", 2))),
            ("a:unknown/signal11 a:unknown/code139", Some(("a", 2))),
            ("a:unknown/signal9 a:unknown/signal15 a:unknown/code137 a:unknown/code0 a:unknown", None),
        ];
        for (history, expected) in table {
            let found = load_crash(&attempts(history));
            let found = found.as_ref().map(|it| (it.manifest_sha256.as_str(), it.attempts.len()));
            assert_eq!(found, expected, "{history}");
        }
    }

    /// Proves that the attempts are named oldest first, and none but those that crashed there.
    #[test]
    fn the_attempts_are_named() {
        let history = attempts("-+9:preempted a:code_error a:preempted a:code_error");
        let named = load_crash(&history).unwrap().attempts;
        assert_eq!(named, [history[1].attempt_id, history[3].attempt_id]);
    }

    /// Proves that what is kept of a history does not grow with it: of many crashes at one checkpoint the newest are named.
    #[test]
    fn of_many_crashes_the_newest_are_named() {
        let history = attempts(&["a:code_error"; 100].join(" "));
        let named = load_crash(&history).unwrap().attempts;
        let newest: Vec<AttemptId> = history[100 - NAMED_MAX..].iter().map(|it| it.attempt_id).collect();
        assert_eq!(named, newest);
    }
}
