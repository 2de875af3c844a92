//! How long an attempt that cannot be seen is still watched: looks and their times in, decision out.

use trackway_core::Timestamp;
use trackway_launch::{LaunchError, Observation, ObservedAttempt};

/// How long an attempt may be out of sight, in seconds: engines restart and tokens are renewed in less.
pub const PATIENCE_SECONDS: f64 = 600.0;
/// The longest pause between two looks at an attempt that cannot be seen, in seconds.
const PAUSE_SECONDS_MAX: f64 = 30.0;

/// What a supervisor does after a look.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterLook {
    /// The attempt ended.
    End,
    /// The attempt is there, or waits for its turn: watch on.
    Watch {
        /// How long it was out of sight, in seconds, when this look is the first to show it again.
        back_after_seconds: Option<f64>,
    },
    /// The attempt cannot be seen now: look again later.
    LookAgain {
        /// Why it cannot be seen.
        why: String,
        /// How long to wait first, in seconds.
        pause_seconds: f64,
        /// Whether it was in sight until now.
        is_first: bool,
    },
    /// The attempt has been out of sight for too long, or for good.
    GiveUp {
        /// Why it cannot be seen.
        why: String,
    },
}

/// What is known of the looks so far. Times in microseconds are of a clock that never goes backwards.
#[derive(Debug, Clone, PartialEq)]
pub struct LookHistory {
    interval_seconds: f64,
    patience_seconds: f64,
    seen_micros: i64,
    misses: u32,
}

impl LookHistory {
    /// Nothing is known yet; being out of sight counts from now. `interval_seconds`: between two looks at an attempt in
    /// sight.
    #[must_use]
    pub fn new(interval_seconds: f64, patience_seconds: f64, now_micros: i64) -> Self {
        Self { interval_seconds, patience_seconds, seen_micros: now_micros, misses: 0 }
    }

    /// What follows from a look that was made now, by both clocks.
    pub fn take(
        &mut self,
        look: Result<&ObservedAttempt, &LaunchError>,
        now_micros: i64,
        now: Timestamp,
    ) -> AfterLook {
        let (why, is_lasting) = match look {
            Ok(ObservedAttempt { state: Observation::CannotTell { why, is_lasting }, .. }) => {
                (why.clone(), *is_lasting)
            }
            Ok(seen) if seen.is_final() => return AfterLook::End,
            Ok(seen) => return self.seen(now.seconds_since(seen.seen_at).max(0.0), now_micros),
            Err(error) => (error.to_string(), !error.is_passing()),
        };
        let left_seconds = self.patience_seconds - self.unseen_seconds(now_micros);
        if is_lasting || left_seconds <= 0.0 {
            return AfterLook::GiveUp { why };
        }
        let doubled = self.interval_seconds * 2f64.powi(self.misses.min(60) as i32);
        self.misses = self.misses.saturating_add(1);
        let pause_seconds = doubled.min(PAUSE_SECONDS_MAX).min(left_seconds);
        AfterLook::LookAgain { why, pause_seconds, is_first: self.misses == 1 }
    }

    /// The attempt was there `age_seconds` ago: an engine's old answer shows what was, not what is.
    fn seen(&mut self, age_seconds: f64, now_micros: i64) -> AfterLook {
        let unseen_seconds = self.unseen_seconds(now_micros);
        if age_seconds > self.patience_seconds {
            return AfterLook::GiveUp {
                why: format!("the last answer of its engine is {age_seconds:.0} s old"),
            };
        }
        let back_after_seconds = (self.misses > 0).then_some(unseen_seconds);
        self.misses = 0;
        self.seen_micros = self.seen_micros.max(now_micros - (age_seconds * 1e6) as i64);
        AfterLook::Watch { back_after_seconds }
    }

    fn unseen_seconds(&self, now_micros: i64) -> f64 {
        (now_micros - self.seen_micros) as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use trackway_launch::Running;

    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn seen(state: Observation, at_seconds: f64) -> ObservedAttempt {
        ObservedAttempt {
            state,
            seen_at: START.plus_seconds(at_seconds),
            engine_state: None,
            submitted_at: None,
            started_at: None,
            instance: None,
            hosts: Vec::new(),
            devices: Vec::new(),
        }
    }

    fn pending() -> Observation {
        Observation::Pending { why: "Priority".into() }
    }

    fn running() -> Observation {
        Observation::Running(Running::default())
    }

    fn hidden() -> Observation {
        Observation::CannotTell { why: "the controller does not answer".into(), is_lasting: false }
    }

    /// A sight with looks every 2 s and the usual patience.
    fn sight() -> LookHistory {
        LookHistory::new(2.0, PATIENCE_SECONDS, 0)
    }

    /// A look, `at_seconds` after the start, at what was so at that time.
    fn look(sight: &mut LookHistory, state: Observation, at_seconds: f64) -> AfterLook {
        let seen = seen(state, at_seconds);
        sight.take(Ok(&seen), (at_seconds * 1e6) as i64, seen.seen_at)
    }

    const WATCH: AfterLook = AfterLook::Watch { back_after_seconds: None };

    /// Proves that waiting in a queue is being in sight, for however long, and that an end is an end.
    #[test]
    fn pending_is_in_sight_and_an_end_ends() {
        let mut sight = sight();
        for hour in 0..100 {
            assert_eq!(look(&mut sight, pending(), f64::from(hour) * 3600.0), WATCH);
        }
        let gone = Observation::Gone { why: "the node is gone".into(), rebooted: false };
        assert_eq!(look(&mut sight, gone, 360_000.0), AfterLook::End);
    }

    /// Proves that looks which show nothing are repeated with growing pauses and reported once, that the attempt is
    /// watched on when it is seen again, and that the next time has the whole patience.
    #[test]
    fn an_attempt_that_comes_back_is_watched_on() {
        let mut sight = sight();
        assert_eq!(look(&mut sight, running(), 10.0), WATCH);
        let (mut at_seconds, mut pauses, mut firsts) = (12.0, Vec::new(), 0);
        for _ in 0..7 {
            let AfterLook::LookAgain { pause_seconds, is_first, .. } = look(&mut sight, hidden(), at_seconds)
            else {
                panic!("it must be looked for again")
            };
            pauses.push(pause_seconds);
            firsts += u32::from(is_first);
            at_seconds += pause_seconds;
        }
        assert_eq!(pauses, [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!((firsts, sight.misses), (1, 7));
        let back = look(&mut sight, running(), at_seconds);
        assert_eq!(back, AfterLook::Watch { back_after_seconds: Some(at_seconds - 10.0) });
        assert_eq!(sight.misses, 0);
        assert_eq!(look(&mut sight, pending(), at_seconds + 1.0), WATCH);
        assert!(matches!(look(&mut sight, hidden(), at_seconds + 599.0), AfterLook::LookAgain { .. }));
    }

    /// Proves that patience has an end at its limit and not before, for answers and for errors, and that the last pause
    /// fits in.
    #[test]
    fn an_attempt_that_stays_away_is_given_up() {
        let mut sight = sight();
        assert_eq!(look(&mut sight, running(), 5.0), WATCH);
        let error = LaunchError::Unavailable { launcher: "slurm", what: "poll", why: "no route".into() };
        let at = |seconds: f64| ((seconds * 1e6) as i64, START.plus_seconds(seconds));
        let (micros, now) = at(604.0);
        let AfterLook::LookAgain { pause_seconds, why, .. } = sight.take(Err(&error), micros, now) else {
            panic!("patience is not over")
        };
        assert!(pause_seconds == 1.0 && why.contains("no route"), "{pause_seconds} {why}");
        let (micros, now) = at(605.0);
        assert!(matches!(sight.take(Err(&error), micros, now), AfterLook::GiveUp { .. }));
        assert!(
            matches!(look(&mut sight, hidden(), 606.0), AfterLook::GiveUp { why } if why.contains("controller"))
        );
    }

    /// Proves that no patience is spent where looking again cannot help.
    #[test]
    fn what_cannot_pass_is_given_up_at_once() {
        let lasting = Observation::CannotTell { why: "on another machine".into(), is_lasting: true };
        assert_eq!(look(&mut sight(), lasting, 1.0), AfterLook::GiveUp { why: "on another machine".into() });
        let foreign = LaunchError::ForeignPlacement { expected: "local", found: "ray".into() };
        assert!(matches!(sight().take(Err(&foreign), 0, START), AfterLook::GiveUp { .. }));
    }

    /// Proves that an answer counts from when it was made: an old one delays nothing.
    #[test]
    fn old_answers_are_no_new_sight() {
        let mut sight = sight();
        let old = seen(running(), 0.0);
        let now = |seconds: f64| START.plus_seconds(seconds);
        assert_eq!(sight.take(Ok(&old), 500_000_000, now(500.0)), WATCH);
        let gone = look(&mut sight, hidden(), 600.0);
        assert!(matches!(gone, AfterLook::GiveUp { .. }), "600 s after the answer was made: {gone:?}");
        let stale = sight.take(Ok(&old), 601_000_000, now(601.0));
        assert!(matches!(stale, AfterLook::GiveUp { ref why } if why.contains("601 s old")), "{stale:?}");
    }
}
