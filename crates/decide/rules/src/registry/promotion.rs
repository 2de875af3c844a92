//! Whether a version may go to a stage.
//!
//! - *candidate*, *archived*: nothing.
//! - *staging*: files that verify, an attempt of the health that the policy requires, a complete evaluation of exactly
//!   these weights.
//! - *production*: the same, and further
//!   - gates that pass on that evaluation, each of which blocked a bad fixture before, of the kinds that the model's
//!     policy names, compared with the version that is in production now;
//!   - trained on as much of the data as the policy requires;
//!   - a test set that was not used more often than it permits;
//!   - the same of each further test set that its run file or the policy names;
//!   - as many approvals as it requires, of exactly this version and these verdicts, that have not expired.

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::registry::{
    AttemptRequirement, BaselineRule, GateKind, GateVerdict, HealthRule, ModelStage, ReceiptField,
};
use trackway_core::text::quoted_list;
use trackway_core::{
    CheckpointState, CheckpointUse, Health, RunId, Rung, Step, Timestamp, Unfit, Weights, closed_list,
};

use super::{Policy, Version, folded};
use crate::gate::how_to_verify;

/// Letters of a manifest's digest by which a command names a checkpoint.
const CHECKPOINT_LETTERS: usize = 12;

/// Everything that is known about a version that shall go further.
#[derive(Debug, Clone, PartialEq)]
pub struct PromotionFacts {
    pub model: String,
    /// Its number.
    pub version: Version,
    /// The run that trained it.
    pub run_id: RunId,
    /// The step of its checkpoint.
    pub step: Step,
    /// The hash of its manifest, which names its weights.
    pub manifest_sha256: String,
    /// The person that registered it.
    pub registered_by: Option<String>,
    /// The fraction of the data on which it was trained; `None`: not known.
    pub rung: Option<Rung>,
    /// Why its files do not verify; `None`: they do.
    pub damage: Option<String>,
    /// Why its checkpoint is unsafe; `None`: it is not.
    pub unsafe_because: Option<String>,
    /// The attempt that wrote it; `None`: the ledger does not have it.
    pub attempt: Option<AttemptFacts>,
    /// Its newest evaluation that ended.
    pub evaluation: Option<EvaluationFacts>,
    /// The newest receipt of gates over that evaluation.
    pub gates: Option<GateFacts>,
    /// Each further test set on which it must be evaluated.
    pub test_sets: BTreeMap<String, TestSetFacts>,
    /// What approvals must be bound to.
    pub approval_digest: String,
    /// All approvals of this version.
    pub approvals: Vec<Approval>,
    /// What is in production.
    pub production: Option<Version>,
}

/// The attempt that wrote a version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AttemptFacts {
    /// Its health; `None`: its receipt is older than that.
    pub health: Option<Health>,
    /// What was found in what it computed.
    pub findings: Vec<String>,
    /// A person vouches for its run.
    pub is_blessed: bool,
    /// What it shows of what a policy may require.
    pub shown: BTreeSet<AttemptRequirement>,
}

/// An evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationFacts {
    pub evaluation_id: String,
    /// The evaluated weights.
    pub manifest_sha256: String,
    /// Whether it completed.
    pub completed: bool,
    /// What its receipt has.
    pub receipt: BTreeSet<ReceiptField>,
    /// How often its test set was used so far; `None`: it has none that is known.
    pub test_set_uses: Option<u64>,
}

/// The evidence on a further test set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestSetFacts {
    /// The newest evaluation of these weights on it that ended.
    pub evaluation: Option<EvaluationFacts>,
    /// Whether the run file has gates for it.
    pub has_gates: bool,
    /// The newest receipt of gates over that evaluation.
    pub gates: Option<GateFacts>,
}

/// A receipt of gates.
#[derive(Debug, Clone, PartialEq)]
pub struct GateFacts {
    /// Its digest.
    pub gate_receipt_id: String,
    /// The evaluation it used.
    pub evaluation_id: String,
    /// Over all gates.
    pub verdict: GateVerdict,
    /// The gates that are not met, with why.
    pub unmet: Vec<String>,
    /// Gates that never blocked a bad fixture.
    pub unverified: Vec<String>,
    /// What they are about.
    pub kinds: BTreeSet<GateKind>,
    /// Whether any gate compares with a baseline, and with which version it did.
    pub compared_with: Option<Option<Version>>,
}

/// An approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// The approver.
    pub by: String,
    /// What it is bound to.
    pub digest: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

closed_list!(
    /// The requirement of a promotion that is not met.
    RefusalRule, "rule of the registry", {
        /// Its files do not verify.
        Damaged = "registry.damaged",
        /// What its checkpoint holds is most likely lost.
        Unsafe = "registry.unsafe_checkpoint",
        /// The attempt that wrote it is not of the health that the policy requires.
        Health = "registry.health",
        /// The attempt that wrote it does not show what the policy requires.
        Attempt = "registry.attempt",
        /// It was not evaluated, or the evaluation did not complete.
        NotEvaluated = "registry.not_evaluated",
        /// The evaluation is of other weights.
        OtherWeights = "registry.other_weights",
        /// The receipt of the evaluation lacks something.
        IncompleteReceipt = "registry.incomplete_receipt",
        /// No gate was applied to the evaluation.
        NotGated = "registry.not_gated",
        /// A gate does not pass.
        Gate = "registry.gate",
        /// A gate was never verified against a known-bad model.
        UnverifiedGate = "registry.unverified_gate",
        /// A kind of gate that the policy names is not among them.
        MissingGate = "registry.missing_gate",
        /// No gate compared with the version in production.
        NotCompared = "registry.not_compared",
        /// It was trained on less of the data than the policy requires.
        Rung = "registry.rung",
        /// The test set was used more often than the policy permits.
        WornTestSet = "registry.worn_test_set",
        /// On a further test set it was not evaluated, or a gate does not pass.
        TestSet = "registry.test_set",
        /// The gates compared with another version than the one in production.
        StaleBaseline = "registry.stale_baseline",
        /// Valid approvals are missing.
        NotApproved = "registry.not_approved",
    }
);

impl RefusalRule {
    /// Whether a policy of the model decides whether it applies.
    #[must_use]
    pub const fn is_of_policy(self) -> bool {
        matches!(
            self,
            Self::IncompleteReceipt
                | Self::Health
                | Self::Attempt
                | Self::MissingGate
                | Self::NotCompared
                | Self::Rung
                | Self::WornTestSet
                | Self::TestSet
                | Self::NotApproved
        )
    }
}

/// A reason why a version may not go to a stage.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[schemars(rename = "PromotionRefusal")]
pub struct Refusal {
    /// The rule's name.
    pub rule: RefusalRule,
    /// An explanation.
    pub why: String,
    /// What to do.
    pub next: String,
}

fn refusal(rule: RefusalRule, why: impl Into<String>, next: impl Into<String>) -> Refusal {
    Refusal { rule, why: why.into(), next: next.into() }
}

/// All reasons against it; none: it may be promoted.
#[must_use]
pub fn refusals(to: ModelStage, facts: &PromotionFacts, policy: &Policy, now: Timestamp) -> Vec<Refusal> {
    let first = [
        damaged(facts),
        unsafe_checkpoint(facts),
        unhealthy(facts, policy),
        unshown(facts, policy),
        unevaluated(facts, policy),
    ];
    match to {
        ModelStage::Candidate | ModelStage::Archived => Vec::new(),
        ModelStage::Staging => first.into_iter().flatten().collect(),
        ModelStage::Production => {
            // Without an evaluation each of these would only repeat that it is missing.
            let is_evaluated = facts.evaluation.is_some();
            let gates = if is_evaluated { ungated(facts, policy) } else { Vec::new() };
            let worn = worn(facts, policy).filter(|_| is_evaluated);
            let further = facts.test_sets.iter().filter(|_| is_evaluated);
            let further = further.filter_map(|(name, set)| on_test_set(name, set, facts));
            let last = [part_of_data(facts, policy), worn, unapproved(facts, policy, now)];
            first
                .into_iter()
                .flatten()
                .chain(gates)
                .chain(further)
                .chain(last.into_iter().flatten())
                .collect()
        }
    }
}

fn part_of_data(facts: &PromotionFacts, policy: &Policy) -> Option<Refusal> {
    let next = "register a checkpoint of a higher rung, or set `rung` in the policy";
    let least = Rung::new(policy.rung_fraction_min).unwrap_or(Rung::FULL);
    let why = match facts.rung {
        Some(rung) if rung >= least => return None,
        Some(rung) => format!("it was trained on {rung} of the data, and the policy requires {least}"),
        None => {
            format!(
                "the fraction of the data that it was trained on is not known, and the policy requires {least}"
            )
        }
    };
    Some(refusal(RefusalRule::Rung, why, next))
}

fn worn(facts: &PromotionFacts, policy: &Policy) -> Option<Refusal> {
    let (evaluation, most) = (facts.evaluation.as_ref()?, policy.test_set_uses_max?);
    let next = "evaluate it on a test set that was not used to select earlier versions";
    let why = match evaluation.test_set_uses {
        Some(uses) if uses <= u64::from(most) => return None,
        Some(uses) => format!("its test set was used {uses} times, and the policy permits {most}"),
        None => format!("how often its test set was used is not known, and the policy permits {most} uses"),
    };
    Some(refusal(RefusalRule::WornTestSet, why, next))
}

fn damaged(facts: &PromotionFacts) -> Option<Refusal> {
    let why = facts.damage.as_ref()?;
    Some(refusal(RefusalRule::Damaged, why.as_str(), "register a checkpoint that verifies"))
}

impl PromotionFacts {
    /// What speaks against giving its weights on, whatever the policy requires.
    fn unfit(&self) -> Vec<Unfit> {
        let attempt = self.attempt.as_ref();
        let state = match self.unsafe_because {
            Some(_) => CheckpointState::Unsafe,
            None => CheckpointState::Committed,
        };
        let weights = Weights {
            health: attempt.and_then(|attempt| attempt.health),
            is_blessed: attempt.is_some_and(|attempt| attempt.is_blessed),
            ..Weights::in_state(state)
        };
        weights.unfit_for(CheckpointUse::Release)
    }

    /// The same in sentences, for who takes it all the same.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let in_words = |unfit| match unfit {
            Unfit::NotWhole => None,
            Unfit::Unsafe => unsafe_sentence(self),
            Unfit::Broken => Some(health_sentence(self)),
        };
        self.unfit().into_iter().filter_map(in_words).collect()
    }
}

fn unsafe_sentence(facts: &PromotionFacts) -> Option<String> {
    Some(format!("its checkpoint is unsafe: {}", facts.unsafe_because.as_ref()?))
}

fn health_sentence(facts: &PromotionFacts) -> String {
    let attempt = facts.attempt.as_ref();
    let health = attempt.and_then(|attempt| attempt.health);
    let health = health.map_or("unknown (its receipt is older)", |health| health.as_str());
    let found = match attempt.and_then(|attempt| attempt.findings.first()) {
        Some(found) => format!(": {found}"),
        None => String::new(),
    };
    format!("the health of the attempt that wrote it is {health}{found}")
}

fn unsafe_checkpoint(facts: &PromotionFacts) -> Option<Refusal> {
    let why = unsafe_sentence(facts).filter(|_| facts.unfit().contains(&Unfit::Unsafe))?;
    let next = format!(
        "register a safe checkpoint, or clear this one: trackway checkpoint clear {} --step {} --why TEXT",
        facts.run_id, facts.step
    );
    Some(refusal(RefusalRule::Unsafe, why, next))
}

fn unhealthy(facts: &PromotionFacts, policy: &Policy) -> Option<Refusal> {
    let attempt = facts.attempt.as_ref();
    let is_met = match policy.health {
        HealthRule::Any => true,
        HealthRule::NotBroken => !facts.unfit().contains(&Unfit::Broken),
        HealthRule::Ok => attempt.and_then(|attempt| attempt.health) == Some(Health::Ok),
    };
    if is_met || attempt.is_some_and(|attempt| attempt.is_blessed) {
        return None;
    }
    let next = format!(
        "look at it: trackway explain {}; vouch for it: trackway runs bless {} --why TEXT",
        facts.run_id, facts.run_id
    );
    Some(refusal(RefusalRule::Health, health_sentence(facts), next))
}

fn unshown(facts: &PromotionFacts, policy: &Policy) -> Option<Refusal> {
    let shown = facts.attempt.as_ref().map(|attempt| attempt.shown.clone()).unwrap_or_default();
    let missing: Vec<&AttemptRequirement> = policy.attempt.difference(&shown).collect();
    if missing.is_empty() {
        return None;
    }
    let why = format!("the attempt that wrote it does not show {}", quoted_list(missing));
    Some(refusal(
        RefusalRule::Attempt,
        why,
        "register a checkpoint of a run that does, or change `attempt` in the policy",
    ))
}

/// The command that evaluates these weights.
fn evaluate(facts: &PromotionFacts) -> String {
    let checkpoint = facts.manifest_sha256.get(..CHECKPOINT_LETTERS).unwrap_or(&facts.manifest_sha256);
    format!("trackway eval run {} --checkpoint {checkpoint}", facts.run_id)
}

fn unevaluated(facts: &PromotionFacts, policy: &Policy) -> Option<Refusal> {
    let next = evaluate(facts);
    let Some(evaluation) = &facts.evaluation else {
        return Some(refusal(RefusalRule::NotEvaluated, "these weights have not been evaluated", next));
    };
    if evaluation.manifest_sha256 != facts.manifest_sha256 {
        let why = format!("evaluation {} is of other weights", evaluation.evaluation_id);
        return Some(refusal(RefusalRule::OtherWeights, why, next));
    }
    if !evaluation.completed {
        let why = format!("evaluation {} did not complete", evaluation.evaluation_id);
        return Some(refusal(RefusalRule::NotEvaluated, why, next));
    }
    let missing: Vec<ReceiptField> = policy.receipt.difference(&evaluation.receipt).copied().collect();
    if missing.is_empty() {
        return None;
    }
    let lacks = quoted_list(&missing);
    let why = format!("the receipt of evaluation {} lacks {lacks}", evaluation.evaluation_id);
    let keys: BTreeSet<&str> = missing.iter().filter_map(|field| source_of(*field)).collect();
    let next = match keys.is_empty() {
        true => next,
        false => {
            format!("set {} in `[evaluate]`, then: {next}", keys.into_iter().collect::<Vec<_>>().join(", "))
        }
    };
    Some(refusal(RefusalRule::IncompleteReceipt, why, next))
}

/// The key of a run file without which an evaluation has no such field; `None`: another evaluation may have it as it is.
const fn source_of(field: ReceiptField) -> Option<&'static str> {
    match field {
        ReceiptField::TaskSet => Some("`task_set`"),
        ReceiptField::Slices => Some("`slices`"),
        ReceiptField::Fairness => Some("`fairness`"),
        ReceiptField::Comparison => Some("`baseline`"),
        ReceiptField::TaskSetVersion => Some("`task_set_version`"),
        ReceiptField::Decoding => Some("`decoding`"),
        ReceiptField::Judge => Some("`judge`"),
        ReceiptField::EvaluatorDigest
        | ReceiptField::Outputs
        | ReceiptField::Metrics
        | ReceiptField::Environment
        | ReceiptField::BlindSpots
        | ReceiptField::Failures
        | ReceiptField::Probes => None,
    }
}

fn ungated(facts: &PromotionFacts, policy: &Policy) -> Vec<Refusal> {
    let evaluation_id = facts.evaluation.as_ref().map_or("", |it| it.evaluation_id.as_str());
    let judge = format!("trackway gates judge {evaluation_id}");
    let Some(gates) = facts.gates.as_ref().filter(|gates| gates.evaluation_id == evaluation_id) else {
        let why = format!("no gate was evaluated for evaluation {evaluation_id}");
        let not_gated = refusal(RefusalRule::NotGated, why, judge);
        return [not_gated].into_iter().chain(missing_kinds(&BTreeSet::new(), policy)).collect();
    };
    let mut found = unmet(gates);
    found.extend(missing_kinds(&gates.kinds, policy));
    if let (BaselineRule::Required, Some(version), None) =
        (policy.baseline, facts.production.filter(|it| *it != facts.version), gates.compared_with)
    {
        let why = format!("no gate compares it with version {version}, which is in production");
        let next =
            "add a gate such as `accuracy >= baseline - 0.005`, with `baseline = \"MODEL@production\"`";
        found.push(refusal(RefusalRule::NotCompared, why, next));
    }
    if gates.compared_with.is_some_and(|version| version != facts.production) {
        let named =
            |version: Option<Version>| version.map_or("no version".into(), |it| format!("version {it}"));
        let why = format!(
            "the gates compared with {}, and {} is in production now",
            named(gates.compared_with.flatten()),
            named(facts.production)
        );
        found.push(refusal(RefusalRule::StaleBaseline, why, judge));
    }
    found
}

/// The kinds of gate that the policy requires, without those that there are.
fn missing_kinds(kinds: &BTreeSet<GateKind>, policy: &Policy) -> Option<Refusal> {
    let missing = quoted_list(policy.gates.difference(kinds));
    let why = format!("the policy requires gates about {missing}, and there are none");
    let next = "add them to `[evaluate] gates` (docs/gates.md), or change `gates` of the policy";
    (!missing.is_empty()).then(|| refusal(RefusalRule::MissingGate, why, next))
}

fn on_test_set(name: &str, set: &TestSetFacts, facts: &PromotionFacts) -> Option<Refusal> {
    let (why, next) = unmet_on(name, set, facts)?;
    Some(refusal(RefusalRule::TestSet, format!("test set `{name}`: {why}"), next))
}

/// What is missing on a further test set, and what to do.
fn unmet_on(name: &str, set: &TestSetFacts, facts: &PromotionFacts) -> Option<(String, String)> {
    let evaluate = format!("{} --test-set {name}", evaluate(facts));
    let Some(evaluation) = &set.evaluation else {
        return Some(("these weights were not evaluated on it".into(), evaluate));
    };
    let id = &evaluation.evaluation_id;
    if evaluation.manifest_sha256 != facts.manifest_sha256 || !evaluation.completed {
        return Some((format!("evaluation {id} did not complete"), evaluate));
    }
    if !set.has_gates {
        return None;
    }
    let Some(gates) = set.gates.as_ref().filter(|gates| gates.evaluation_id == *id) else {
        return Some((format!("no gate was evaluated for {id}"), format!("trackway gates judge {id}")));
    };
    unmet(gates).into_iter().next().map(|refusal| (refusal.why, refusal.next))
}

/// What the gates themselves leave open.
fn unmet(gates: &GateFacts) -> Vec<Refusal> {
    let mut found = Vec::new();
    if gates.verdict != GateVerdict::Pass {
        let why = format!("gate verdict {}: {}", gates.verdict, gates.unmet.join("; "));
        found.push(refusal(RefusalRule::Gate, why, "train a better model, or evaluate it on more rows"));
    }
    if !gates.unverified.is_empty() {
        let why = format!("never blocked a bad model: {}", quoted_list(&gates.unverified));
        let test = how_to_verify(&gates.unverified, &gates.evaluation_id);
        found.push(refusal(RefusalRule::UnverifiedGate, why, test));
    }
    found
}

fn unapproved(facts: &PromotionFacts, policy: &Policy, now: Timestamp) -> Option<Refusal> {
    let wanted = policy.approvals as usize;
    let approvers: BTreeSet<String> = policy.approvers.iter().map(|name| folded(name)).collect();
    let registered_by = facts.registered_by.as_deref().map(folded);
    let is_named = |by: &str| approvers.is_empty() || approvers.contains(by);
    let is_own = |by: &str| !policy.own_approval && registered_by.as_deref() == Some(by);
    let people = || facts.approvals.iter().map(|it| (folded(&it.by), it));
    let may = |by: &str| !by.is_empty() && is_named(by) && !is_own(by);
    let valid: BTreeSet<String> = people()
        .filter(|(by, it)| it.digest == facts.approval_digest && it.expires_at > now && may(by))
        .map(|(by, _)| by)
        .collect();
    if valid.len() >= wanted {
        return None;
    }
    let excluded: Vec<String> = people()
        .filter(|(by, _)| !valid.contains(by))
        .map(|(by, it)| {
            let why = match () {
                () if by.is_empty() => "has no name",
                () if !is_named(&by) => "not an approver of this model",
                () if is_own(&by) => "registered it",
                () if it.digest != facts.approval_digest => "approved other evidence",
                () => "approval has expired",
            };
            format!("{} ({why})", it.by)
        })
        .collect();
    let rest =
        if excluded.is_empty() { String::new() } else { format!("; do not count: {}", excluded.join(", ")) };
    let why = format!("{} of {wanted} approvals{rest}", valid.len());
    let approve =
        format!("{}: trackway registry approve {} {}", approver(policy), facts.model, facts.version);
    Some(refusal(RefusalRule::NotApproved, why, approve))
}

/// Whose approval counts.
fn approver(policy: &Policy) -> String {
    let not_own = if policy.own_approval { "" } else { " who did not register it" };
    match policy.approvers.iter().map(String::as_str).collect::<Vec<_>>().join(", ") {
        any if any.is_empty() => format!("a person{not_own} runs"),
        named => format!("one of {named}{not_own} runs"),
    }
}
