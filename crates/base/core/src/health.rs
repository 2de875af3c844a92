//! Whether what an attempt computed is worth something, beside how it ended; and what a checkpoint may be used for.

use serde::{Deserialize, Serialize};

use crate::{CheckpointState, CheckpointUse, Step, closed_list};

closed_list!(
    /// The health of what an attempt computed. An attempt that ended well may be broken, and one that was killed may be ok.
    Health, "health", {
        /// Something looked at its values to the end, and nothing was found that was not over by then.
        Ok = "ok",
        /// A warning was not over at its end.
        Suspect = "suspect",
        /// What it computed is most likely lost: NaN, a loss that exploded, a model that guesses or that never changed.
        Broken = "broken",
        /// Nothing could be looked at, or its level cannot be compared with its beginning.
        Unknown = "unknown",
    }
);

/// What was found in what an attempt computed, and was not over at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthFinding {
    /// The detector, or the look at the whole curve, that found it; `docs/health.md` explains each.
    pub found_by: String,
    /// What it makes of the attempt: suspect or broken.
    pub health: Health,
    /// The step from which it holds; none: it is about the whole attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_step: Option<Step>,
    /// What was seen, with its numbers.
    pub evidence: String,
}

/// What the health of an attempt rests on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthReport {
    /// What was found, the gravest first.
    pub findings: Vec<HealthFinding>,
    /// The metrics that were looked at to the end.
    pub looked_at: Vec<String>,
    /// What could not be looked at, and why.
    pub missing: Vec<String>,
}

/// What is known of the weights in a checkpoint, and what a person decided about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    pub state: CheckpointState,
    /// The health of the attempt that wrote it; none: it is not known, or the receipt is older.
    pub health: Option<Health>,
    /// A person uses them although the checkpoint is unsafe, with a reason.
    pub accepts_unsafe: bool,
    /// A person vouches for the run, whatever its health is.
    pub is_blessed: bool,
}

/// What speaks against a use of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// Their bytes are not there, or not what was committed.
    NotWhole,
    /// What the checkpoint holds is most likely lost.
    Unsafe,
    /// The attempt that wrote it is broken.
    Broken,
}

impl Weights {
    /// Weights of which only the state of the checkpoint is known.
    #[must_use]
    pub const fn in_state(state: CheckpointState) -> Self {
        Self { state, health: None, accepts_unsafe: false, is_blessed: false }
    }

    /// All that speaks against using them for `purpose`; nothing: they may be used. The one place where this is decided.
    #[must_use]
    pub fn unfit_for(self, purpose: CheckpointUse) -> Vec<Unfit> {
        use CheckpointUse::{Evaluate, Register, Release, Resume, Start};
        let is_accepted = self.accepts_unsafe && matches!(purpose, Evaluate | Register | Resume);
        let is_given_on = matches!(purpose, Start | Release);
        let is_broken = self.health == Some(Health::Broken) && !self.is_blessed;
        let found = [
            (Unfit::NotWhole, !self.state.is_whole()),
            (Unfit::Unsafe, self.state == CheckpointState::Unsafe && !is_accepted),
            (Unfit::Broken, is_given_on && is_broken),
        ];
        found.into_iter().filter(|(_, is_so)| *is_so).map(|(unfit, _)| unfit).collect()
    }

    /// Whether they may be used for `purpose`.
    #[must_use]
    pub fn may_be_used_for(self, purpose: CheckpointUse) -> bool {
        self.unfit_for(purpose).is_empty()
    }
}

impl Health {
    /// Whether a completed attempt is one to compare later ones with.
    #[must_use]
    pub const fn is_good(health: Option<Self>) -> bool {
        !matches!(health, Some(Self::Suspect | Self::Broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that weights of a broken attempt are given to no other training and to no release, unless a person
    /// decides so, that the state of the checkpoint still counts, and that an older receipt without a health is taken
    /// as before.
    #[test]
    fn a_broken_attempt_gives_nothing_on() {
        let of = |health| Weights { health, ..Weights::in_state(CheckpointState::Committed) };
        let broken = of(Some(Health::Broken));
        for purpose in CheckpointUse::ALL.iter().copied() {
            for health in [None, Some(Health::Ok), Some(Health::Suspect), Some(Health::Unknown)] {
                assert!(of(health).may_be_used_for(purpose), "{purpose}");
            }
            let is_given_on = ["start", "release"].contains(&purpose.as_str());
            assert_eq!(broken.may_be_used_for(purpose), !is_given_on, "{purpose}");
            assert!(Weights { is_blessed: true, ..broken }.may_be_used_for(purpose), "{purpose}");
        }
        let both = Weights { state: CheckpointState::Unsafe, ..broken };
        assert_eq!(both.unfit_for(CheckpointUse::Release), [Unfit::Unsafe, Unfit::Broken]);
        assert!(Health::is_good(None) && Health::is_good(Some(Health::Unknown)));
        assert!(!Health::is_good(Some(Health::Suspect)) && !Health::is_good(Some(Health::Broken)));
    }

    /// Proves that an unsafe checkpoint is used for nothing by itself, and by the decision of a person only where one
    /// decides; that who vouches for a run decides nothing about its unsafe checkpoints; and that what is not whole is
    /// used for nothing.
    #[test]
    fn an_unsafe_checkpoint_is_used_only_where_a_person_decides() {
        let of = |state, accepts_unsafe, is_blessed| Weights {
            accepts_unsafe,
            is_blessed,
            ..Weights::in_state(state)
        };
        for purpose in CheckpointUse::ALL.iter().copied() {
            assert!(of(CheckpointState::Superseded, false, false).may_be_used_for(purpose));
            assert!(!of(CheckpointState::Unsafe, false, true).may_be_used_for(purpose), "{purpose}");
            let decides = ["resume", "evaluate", "register"].contains(&purpose.as_str());
            let accepted = of(CheckpointState::Unsafe, true, false);
            assert_eq!(accepted.may_be_used_for(purpose), decides, "{purpose}");
            for state in [CheckpointState::Suspect, CheckpointState::Retired, CheckpointState::Writing] {
                assert_eq!(of(state, true, true).unfit_for(purpose), [Unfit::NotWhole], "{state} {purpose}");
            }
        }
    }
}
