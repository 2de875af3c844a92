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
        /// Nothing could be looked at.
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

impl Health {
    /// Whether weights of an attempt of this health, in a checkpoint of this state, may be used for `purpose`; `accepted`: a person decided so
    /// with a reason. The one place where this is decided. Attempts of older receipts have no health.
    #[must_use]
    pub const fn may_be_used_for(
        health: Option<Self>,
        state: CheckpointState,
        purpose: CheckpointUse,
        accepted: bool,
    ) -> bool {
        let is_broken = matches!(health, Some(Self::Broken));
        let is_given_on = matches!(purpose, CheckpointUse::Start | CheckpointUse::Release);
        state.may_be_used(purpose, accepted) && (accepted || !(is_broken && is_given_on))
    }

    /// Whether a completed attempt is one to compare later ones with.
    #[must_use]
    pub const fn is_good(health: Option<Self>) -> bool {
        !matches!(health, Some(Self::Suspect | Self::Broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that weights of a broken attempt are given to no other training and to no release, unless a person decides so, that the state of
    /// the checkpoint still counts, and that an older receipt without a health is taken as before.
    #[test]
    fn a_broken_attempt_gives_nothing_on() {
        let may = |health, purpose, accepted| {
            Health::may_be_used_for(health, CheckpointState::Committed, purpose, accepted)
        };
        for purpose in CheckpointUse::ALL.iter().copied() {
            for health in [None, Some(Health::Ok), Some(Health::Suspect), Some(Health::Unknown)] {
                assert!(may(health, purpose, false), "{purpose}");
            }
            let is_given_on = ["start", "release"].contains(&purpose.as_str());
            assert_eq!(may(Some(Health::Broken), purpose, false), !is_given_on, "{purpose}");
            assert!(may(Some(Health::Broken), purpose, true), "{purpose}");
            assert!(!Health::may_be_used_for(None, CheckpointState::Unsafe, purpose, false), "{purpose}");
        }
        assert!(Health::is_good(None) && Health::is_good(Some(Health::Unknown)));
        assert!(!Health::is_good(Some(Health::Suspect)) && !Health::is_good(Some(Health::Broken)));
    }
}
