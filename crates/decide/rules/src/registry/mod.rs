//! The stages of the versions of a model, and whether one may be promoted. The history of a model is a list of changes
//! that only grows; the present state, or that at any time, is computed from them.

mod person;
mod promotion;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_core::registry::{
    AttemptRequirement, BaselineRule, GateKind, HealthRule, ModelChange, ModelStage, ReceiptField,
};

pub use person::folded;
pub use promotion::{
    Approval, AttemptFacts, EvaluationFacts, GateFacts, PromotionFacts, Refusal, RefusalRule, TestSetFacts,
    refusals,
};

/// The number of a version, from 1.
pub type Version = u32;

/// One change of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the history of the model, from 1.
    pub number: u64,
    pub at: Timestamp,
    /// What was done.
    pub kind: ModelChange,
    /// The version it is about; `None` for a policy and a dropped name.
    pub version: Option<Version>,
    /// The new stage.
    pub stage: Option<ModelStage>,
    /// The name that was set or dropped.
    pub alias: Option<String>,
    /// The rules from here on.
    pub policy: Option<Policy>,
}

/// What a promotion to production requires beside an evaluation, and gates that pass and were verified. What an older
/// policy does not name has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "ModelPolicy")]
#[serde(default)]
pub struct Policy {
    /// So many people must have approved it.
    pub approvals: u32,
    /// An approval holds so long.
    pub approval_seconds: f64,
    /// Whether the person who registered the version may approve it too.
    pub own_approval: bool,
    /// Whose approvals count; empty: those of any person.
    pub approvers: BTreeSet<String>,
    /// The kinds of gate that must be among those that were applied.
    pub gates: BTreeSet<GateKind>,
    /// Whether a gate must compare it with the version in production.
    pub baseline: BaselineRule,
    /// The least fraction of the data on which it was trained.
    pub rung_fraction_min: f64,
    /// What the receipt of its evaluation must have.
    pub receipt: BTreeSet<ReceiptField>,
    /// How often its test set may have been used; `None`: as often as one likes.
    pub test_set_uses_max: Option<u32>,
    /// The further test sets on which it must have been evaluated, beside those of its run file.
    pub test_sets: BTreeSet<String>,
    /// What the health of the attempt that wrote it must be.
    pub health: HealthRule,
    /// What that attempt must show.
    pub attempt: BTreeSet<AttemptRequirement>,
}

impl Default for Policy {
    /// Strict: gates about quality, slices, fairness, latency and size, a comparison with the version in production, training on all
    /// of the data, a receipt that names the evaluator's code, the raw outputs, the metrics and the test set, and the approval of
    /// another person, which is valid for a week. What does not apply to a model is left out by its policy.
    fn default() -> Self {
        Self {
            approvals: 1,
            approval_seconds: 7.0 * 24.0 * 3600.0,
            own_approval: false,
            approvers: BTreeSet::new(),
            gates: [
                GateKind::Quality,
                GateKind::Slice,
                GateKind::Fairness,
                GateKind::Latency,
                GateKind::Size,
            ]
            .into(),
            baseline: BaselineRule::Required,
            rung_fraction_min: 1.0,
            receipt: [
                ReceiptField::EvaluatorDigest,
                ReceiptField::Outputs,
                ReceiptField::Metrics,
                ReceiptField::TaskSet,
            ]
            .into(),
            test_set_uses_max: None,
            test_sets: BTreeSet::new(),
            health: HealthRule::NotBroken,
            attempt: BTreeSet::new(),
        }
    }
}

/// A time in which a version was in production.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub version: Version,
    /// When it went into production.
    pub from: Timestamp,
    /// When it left production; `None`: it is there.
    pub until: Option<Timestamp>,
}

/// The state of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelState {
    /// The number of the last change; 0: there is none.
    pub number: u64,
    pub stages: BTreeMap<Version, ModelStage>,
    /// What each name points to.
    pub aliases: BTreeMap<String, Version>,
    /// What promotions require.
    pub policy: Policy,
    in_production: Option<Version>,
    /// What production goes back to, the newest last.
    released: Vec<Version>,
    releases: Vec<Release>,
}

impl ModelState {
    /// After these changes, which come in order.
    #[must_use]
    pub fn after<'c>(changes: impl IntoIterator<Item = &'c Change>) -> Self {
        let mut standing = Self::default();
        changes.into_iter().for_each(|change| standing.take(change));
        standing
    }

    /// As it was at a time.
    #[must_use]
    pub fn at(changes: &[Change], moment: Timestamp) -> Self {
        Self::after(changes.iter().take_while(|change| change.at <= moment))
    }

    /// The version in production.
    #[must_use]
    pub fn production(&self) -> Option<Version> {
        self.in_production
    }

    /// The version that production goes back to: the one before the one in use. A version that was rolled back from is
    /// not gone back to, nor is one that was moved to another stage.
    #[must_use]
    pub fn before_production(&self) -> Option<Version> {
        self.released.last().copied()
    }

    /// Every time in which a version was in production, the oldest first.
    #[must_use]
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }

    /// Whether a version is or was in production.
    #[must_use]
    pub fn was_released(&self, version: Version) -> bool {
        self.releases.iter().any(|release| release.version == version)
    }

    fn take(&mut self, change: &Change) {
        let before = self.in_production;
        self.number = change.number;
        match (change.kind, change.version) {
            (ModelChange::Register, Some(version)) => {
                self.stages.insert(version, ModelStage::Candidate);
            }
            (ModelChange::Promote, Some(version)) => {
                self.move_to(version, change.stage.unwrap_or(ModelStage::Candidate));
            }
            (ModelChange::RollBack, Some(version)) => self.go_back_to(version),
            (ModelChange::SetAlias, Some(version)) => {
                self.aliases.extend(change.alias.clone().map(|alias| (alias, version)));
            }
            (ModelChange::DropAlias, _) => {
                self.aliases.remove(change.alias.as_deref().unwrap_or_default());
            }
            (ModelChange::Policy, _) => {
                if let Some(policy) = &change.policy {
                    self.policy.clone_from(policy);
                }
            }
            (_, None) => {}
        }
        if self.in_production != before {
            self.note_release(change.at);
        }
    }

    /// Production has another version than before.
    fn note_release(&mut self, at: Timestamp) {
        if let Some(last) = self.releases.last_mut() {
            last.until = last.until.or(Some(at));
        }
        let now = self.in_production.map(|version| Release { version, from: at, until: None });
        self.releases.extend(now);
    }

    fn move_to(&mut self, version: Version, stage: ModelStage) {
        self.released.retain(|released| *released != version);
        if self.in_production == Some(version) {
            self.in_production = None;
        }
        if stage == ModelStage::Production
            && let Some(before) = self.in_production.replace(version)
        {
            self.stages.insert(before, ModelStage::Archived);
            self.released.push(before);
        }
        self.stages.insert(version, stage);
    }

    /// A named version may be one that was rolled back from: then it is as after its promotion, and what it replaces is before it.
    fn go_back_to(&mut self, version: Version) {
        let left = self.in_production.replace(version).filter(|left| *left != version);
        self.stages.extend(left.map(|left| (left, ModelStage::Archived)));
        match self.released.iter().position(|released| *released == version) {
            Some(place) => self.released.truncate(place),
            None => self.released.extend(left),
        }
        self.stages.insert(version, ModelStage::Production);
    }
}
