use serde::{Deserialize, Serialize};
use trackway_core::Step;

use super::entry::{ClaimBody, RoundBody};
use super::{Candidate, History};
use crate::error::{CheckpointError, Fallback, RankError, Result};

/// A round, and what it may resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundRecord {
    pub number: u64,
    pub body: RoundBody,
    pub stops: Vec<Stop>,
    pub newest_step: Option<Step>,
}

/// One stop on the way from the newest commit to its ancestors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stop {
    Commit(u64),
    Passed(Fallback),
}

impl RoundBody {
    pub fn claim(&self) -> ClaimBody {
        ClaimBody { epoch: self.epoch, run_id: self.run_id, attempt_id: self.attempt_id }
    }

    pub fn is_of(&self, claim: ClaimBody) -> bool {
        self.claim() == claim
    }

    pub fn is_newer_than(&self, known: &Self) -> bool {
        (self.epoch, self.round) > (known.epoch, known.round)
    }

    /// Whether this round is in the log. An error: it never will be, or must not continue.
    pub fn is_current(&self, history: &History) -> Result<bool> {
        let Some(found) = history.claimed() else { return Ok(false) };
        if found.epoch > self.epoch || (found.epoch == self.epoch && found.attempt_id != self.attempt_id) {
            let (found_epoch, found_attempt) = (found.epoch, found.attempt_id);
            return Err(CheckpointError::Fenced { epoch: self.epoch, found_epoch, found_attempt });
        }
        match history.round().map(|record| record.body).filter(|found| found.epoch == self.epoch) {
            Some(found) if found.round > self.round => {
                Err(RankError::Overtaken { round: self.round, found_round: found.round }.into())
            }
            Some(found) if found.round == self.round && found.world_size != self.world_size => {
                Err(RankError::WorldSize { expected: found.world_size, found: self.world_size }.into())
            }
            found => Ok(found.is_some_and(|found| found.round == self.round)),
        }
    }
}

impl Stop {
    /// All stops up to the oldest commit that may be resumed. What was passed after that one explains nothing.
    pub fn all(candidates: Vec<Candidate<'_>>) -> Vec<Self> {
        let stop = |candidate| match candidate {
            Candidate::Commit { number, .. } => Self::Commit(number),
            Candidate::Passed(fallback) => Self::Passed(fallback),
        };
        let mut stops: Vec<_> = candidates.into_iter().map(stop).collect();
        if let Some(oldest) = stops.iter().rposition(|stop| matches!(stop, Self::Commit(_))) {
            stops.truncate(oldest + 1);
        }
        stops
    }
}

/// Refuses a commit by ranks whose round was ended by a newer one.
pub(crate) fn check_round(history: &History, round: Option<RoundBody>) -> Result<()> {
    round.map_or(Ok(()), |round| round.is_current(history).map(drop))
}
