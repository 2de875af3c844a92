//! When a checkpoint that another program writes is complete: a decision over what is seen of it from time to time.
//!
//! No clock is read. Time counts only between two looks at the same state, and of each interval at most half of the quiet
//! period counts. So a clock that jumps back delays nothing beyond that interval, and one that jumps forward completes nothing early.

use serde::{Deserialize, Serialize};

use crate::listing::Fingerprint;
use crate::whole::{By, Wholeness};

/// The quiet period unless another one is chosen: two seconds.
pub const DEFAULT_QUIET_NS: u64 = 2_000_000_000;
/// The longest quiet period that rewriting leads to: 64 seconds, or the chosen one if that is longer.
pub const MAX_QUIET_NS: u64 = 64_000_000_000;
/// Quiet periods before a checkpoint that cannot be checked counts as complete.
pub const UNVERIFIED_PERIODS: u64 = 5;

/// What was seen of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The time in nanoseconds, from any clock.
    pub at_ns: u64,
    /// The state of its files ([`crate::Listing::fingerprint`]); nothing if there are none.
    pub fingerprint: Option<Fingerprint>,
    /// Whether they are whole.
    pub wholeness: Wholeness,
    /// Whether a process has one of the files open for writing; nothing if this is not known.
    pub is_open_for_writing: Option<bool>,
    /// Whether a callback or hook of the framework reported this save as complete.
    pub reported_complete: bool,
    /// Whether it was renamed from a temporary name into its place.
    pub renamed_into_place: bool,
    /// Whether every process that could write it has ended.
    pub writers_ended: bool,
}

/// What the observations so far say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is not known yet.
    Wait {
        /// When to look again, by the clock of the observations.
        until_ns: u64,
    },
    /// It is complete in this state.
    Complete {
        /// What shows it.
        because: Because,
    },
    /// It does not exist any more.
    Gone,
    /// It is not whole, and no process is writing it.
    Torn {
        /// What is wrong.
        what: String,
    },
}

/// What shows that a checkpoint is complete, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// A callback or hook reported it.
    Reported,
    /// The framework's last file is there and agrees.
    Marker,
    /// It was renamed into place and is whole.
    Renamed,
    /// It is whole, and every process that could write it has ended.
    Ended,
    /// It is whole and has not changed for the quiet period.
    Quiet,
    /// Its format cannot be checked; it is closed and has not changed for several quiet periods, or for one since its writers ended.
    QuietUnverified,
}

/// The decision about one path. It starts again for each state of its files: a file that is overwritten in place becomes complete
/// again after each save. While nothing changes the answer remains the same; the fingerprint says which state it is about.
#[derive(Debug, Clone)]
pub struct Settling {
    quiet_ns: u64,
    max_quiet_ns: u64,
    /// Whether it changed after it was complete: then neither a marker nor the end of its writers is enough alone.
    was_rewritten: bool,
    writers_ended: bool,
    fingerprint: Option<Fingerprint>,
    last_ns: u64,
    unchanged_ns: u64,
}

impl Settling {
    /// A decision with this quiet period, at least a millisecond.
    #[must_use]
    pub fn new(quiet_ns: u64) -> Self {
        let quiet_ns = quiet_ns.max(1_000_000);
        Self {
            quiet_ns,
            max_quiet_ns: quiet_ns.max(MAX_QUIET_NS),
            was_rewritten: false,
            writers_ended: false,
            fingerprint: None,
            last_ns: 0,
            unchanged_ns: 0,
        }
    }

    /// The present quiet period.
    #[must_use]
    pub fn quiet_ns(&self) -> u64 {
        self.quiet_ns
    }

    /// The files changed while they were copied, though they were complete: the quiet period doubles, within its bound.
    pub fn rewritten(&mut self) {
        self.quiet_ns = self.quiet_ns.saturating_mul(2).min(self.max_quiet_ns);
        self.was_rewritten = true;
        self.unchanged_ns = 0;
    }

    /// Takes what was seen, and says what it means together with what was seen before.
    pub fn observe(&mut self, seen: &Observation) -> Answer {
        let Some(fingerprint) = seen.fingerprint else {
            self.fingerprint = None;
            self.unchanged_ns = 0;
            return Answer::Gone;
        };
        if seen.writers_ended && !self.writers_ended {
            // Those that wrote it again and again have ended; from now on a change is by an unknown process.
            (self.writers_ended, self.was_rewritten) = (true, false);
        }
        let is_open = seen.is_open_for_writing == Some(true) && !seen.writers_ended;
        self.count(fingerprint, seen.at_ns, is_open);
        let quiet = self.unchanged_ns >= self.quiet_ns;
        let ended = seen.writers_ended && !self.was_rewritten;
        let complete = |because| Answer::Complete { because };
        match &seen.wholeness {
            Wholeness::Torn { file, what } if quiet || ended => {
                Answer::Torn { what: format!("`{file}`: {what}") }
            }
            Wholeness::Torn { .. } => self.wait(seen.at_ns, self.quiet_ns),
            _ if seen.reported_complete => complete(Because::Reported),
            _ if is_open => self.wait(seen.at_ns, self.quiet_ns),
            Wholeness::Whole { by: By::Marker(_) } if quiet || !self.was_rewritten => {
                complete(Because::Marker)
            }
            Wholeness::Whole { .. } if seen.renamed_into_place && !self.was_rewritten => {
                complete(Because::Renamed)
            }
            Wholeness::Whole { .. } if quiet => complete(Because::Quiet),
            Wholeness::Whole { .. } if ended => complete(Because::Ended),
            Wholeness::Whole { .. } => self.wait(seen.at_ns, self.quiet_ns),
            Wholeness::Unfinished { what } if ended || quiet && seen.writers_ended => {
                Answer::Torn { what: what.clone() }
            }
            Wholeness::Unfinished { .. } => self.wait(seen.at_ns, self.unverified_ns()),
            // Nothing else shows that the last process to write it was one of those that ended.
            Wholeness::CannotTell { .. } if quiet && ended => complete(Because::QuietUnverified),
            Wholeness::CannotTell { .. } => {
                let is_closed = seen.writers_ended || seen.is_open_for_writing == Some(false);
                if is_closed && self.unchanged_ns >= self.unverified_ns() {
                    complete(Because::QuietUnverified)
                } else {
                    self.wait(seen.at_ns, self.unverified_ns())
                }
            }
        }
    }

    fn unverified_ns(&self) -> u64 {
        self.quiet_ns.saturating_mul(UNVERIFIED_PERIODS)
    }

    /// Counts the time since the last look, if nothing changed and nothing is open.
    fn count(&mut self, fingerprint: Fingerprint, at_ns: u64, is_open: bool) {
        let passed = at_ns.saturating_sub(self.last_ns).min(self.quiet_ns / 2);
        self.last_ns = at_ns;
        if self.fingerprint.replace(fingerprint) == Some(fingerprint) && !is_open {
            self.unchanged_ns = self.unchanged_ns.saturating_add(passed);
        } else {
            self.unchanged_ns = 0;
        }
    }

    /// The next look: when what is missing has passed, at the latest after what counts of one interval.
    fn wait(&self, at_ns: u64, wanted_ns: u64) -> Answer {
        let interval = self.quiet_ns.div_ceil(2);
        let missing = wanted_ns.saturating_sub(self.unchanged_ns);
        let next = if missing == 0 { interval } else { missing.min(interval) };
        Answer::Wait { until_ns: at_ns.saturating_add(next) }
    }
}
