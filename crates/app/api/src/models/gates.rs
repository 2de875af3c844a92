//! Gates: what they said of an evaluation, and whether they were verified against known-bad models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::registry::GateVerdict;
use trackway_rules::gate::{GateEvidence, JudgedGate};

/// The verdict of gates on an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateReceipt {
    /// SHA-256 of evaluation, weights, baseline, rules, verdicts and evidence.
    pub gate_receipt_id: String,
    pub evaluation_id: String,
    /// SHA-256 of the manifest of the weights.
    pub checkpoint_manifest_sha256: String,
    /// The evaluation that `baseline` means.
    pub baseline_evaluation_id: Option<String>,
    /// The worst verdict of the gates.
    pub verdict: GateVerdict,
    pub gates: Vec<JudgedGate>,
    /// Gates that were never verified against a known-bad model: they allow no promotion.
    pub unverified: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The evidence of a known-bad model, as a file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateFixture {
    /// What is bad about it.
    pub name: String,
    /// Its numbers.
    pub evidence: GateEvidence,
}

/// The verdict of one gate on one known-bad model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateTest {
    pub rule: String,
    /// The known-bad model.
    pub fixture: String,
    pub verdict: GateVerdict,
    pub why: String,
}

/// Gates and known-bad models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateTests {
    /// Every gate with every known-bad model.
    pub tests: Vec<GateTest>,
    /// Gates with the verdict `fail` for at least one, now or when they were last applied to another.
    pub verified: Vec<String>,
    /// Gates without one.
    pub unverified: Vec<String>,
}
