//! What is known of a path at which a script writes checkpoints.

use trackway_layouts::{Answer, Entry, Fingerprint, Observation, Settling, Wholeness};

use crate::find::candidate::Candidate;
use crate::look::{Look, NotAdopted};

/// Later checkpoints wait for one that is not yet known to be complete for at most so many looks, more than it takes where nothing can be
/// checked.
const AWAITED_LOOKS_MAX: u32 = 15;

/// What is known of a path.
pub(crate) struct PathRecord {
    pub(crate) settling: Settling,
    /// The state that needs nothing more: committed, given up, or there before the attempt.
    pub(crate) done: Option<Fingerprint>,
    /// The files of that state, of what is one file or several.
    pub(crate) done_files: Vec<Entry>,
    /// Why it could not be looked into the last time.
    pub(crate) refused: Option<String>,
    /// How many looks since its last commit let later ones wait for it.
    pub(crate) awaited_looks: u32,
    /// The state that is not shown to be the attempt's.
    pub(crate) not_own: Option<Fingerprint>,
    /// The state that was not shown to be the attempt's by one look.
    pub(crate) doubted: Option<Fingerprint>,
    /// When the state in `done` was looked at, in nanoseconds since 1970: what was seen before is of it or of an earlier one.
    pub(crate) since_ns: i64,
    /// The state at the last look.
    pub(crate) last: Option<State>,
    /// When a state before that one was last seen finished, in nanoseconds since 1970.
    pub(crate) finished_ns: i64,
}

/// A state of a path at a look.
#[derive(Clone, Copy)]
pub(crate) struct State {
    pub(crate) fingerprint: Fingerprint,
    /// When the look began, in nanoseconds since 1970.
    pub(crate) at_ns: i64,
    /// Whether it was whole, and not open for writing.
    pub(crate) is_finished: bool,
}

impl PathRecord {
    pub(crate) fn new(quiet_ns: u64, since_ns: i64) -> Self {
        let settling = Settling::new(quiet_ns);
        Self {
            settling,
            done: None,
            done_files: Vec::new(),
            refused: None,
            awaited_looks: 0,
            not_own: None,
            doubted: None,
            since_ns,
            last: None,
            finished_ns: 0,
        }
    }

    /// A look at `at_ns` finds this state. One that needs nothing more, and was there before the first look, was written by no one then.
    pub(crate) fn is_seen(&mut self, fingerprint: Fingerprint, at_ns: i64) {
        let is_finished = match self.last {
            Some(last) if last.fingerprint == fingerprint => last.is_finished,
            Some(last) => {
                if last.is_finished {
                    self.finished_ns = last.at_ns;
                }
                false
            }
            None => self.done == Some(fingerprint),
        };
        self.last = Some(State { fingerprint, at_ns, is_finished });
    }

    /// This state needs nothing more. While it was copied and committed the next one may have been begun.
    pub(crate) fn is_done(&mut self, candidate: &Candidate, at_ns: i64) {
        let fingerprint = candidate.fingerprint();
        let seen = self.last.filter(|last| Some(last.fingerprint) == fingerprint);
        (self.done, self.since_ns) = (fingerprint, seen.map_or(at_ns, |seen| seen.at_ns));
        self.done_files = if candidate.is_folder { Vec::new() } else { candidate.files().to_vec() };
    }

    /// Says once, while it is the same, why a path is not looked into.
    pub(crate) fn refuse(&mut self, path: String, why: String, look: &mut Look) {
        if self.refused.as_ref() != Some(&why) {
            self.refused = Some(why.clone());
            look.not_adopted.push(NotAdopted { path, why });
        }
    }

    /// What an observation of its state at the last look says.
    pub(crate) fn answer(&mut self, seen: &Observation) -> Answer {
        if let Some(last) = &mut self.last {
            last.is_finished =
                matches!(seen.wholeness, Wholeness::Whole { .. }) && seen.is_open_for_writing != Some(true);
        }
        self.settling.observe(seen)
    }

    /// Whether later checkpoints wait for a state that is not yet known to be complete. Counts the looks that let them wait.
    pub(crate) fn is_awaited(&mut self, seen: &Observation) -> bool {
        let is_written = matches!(seen.wholeness, Wholeness::Whole { .. } | Wholeness::CannotTell { .. })
            && seen.is_open_for_writing != Some(true);
        self.awaited_looks += u32::from(is_written);
        is_written && self.awaited_looks <= AWAITED_LOOKS_MAX
    }
}
