//! The evidence about a version: its evaluation, the verdicts of its gates, its approvals.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trackway_core::registry::{GateVerdict, ReceiptField};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::stored::read_stored;
use trackway_formats::gate::{Gate, kinds};
use trackway_formats::runfile::canonical_json;
use trackway_formats::sha256_hex;
use trackway_ledger::{ApprovalRow, EvaluationRow, EvaluationState, GateReceiptRow, ModelVersionRow};
use trackway_rules::gate::JudgedGate;
use trackway_rules::registry::{Approval, EvaluationFacts, GateFacts, PromotionFacts, TestSetFacts};

use super::attempt::attempt_facts;
use super::{Model, artifact};
use crate::evaluation::baseline::{PROBES, section_of};
use crate::evaluation::gates::{self, is_verified};

/// The rows of [`PromotionFacts`].
pub(super) struct PromotionEvidence {
    pub evaluation: Option<EvaluationRow>,
    pub gates: Option<GateReceiptRow>,
    pub approvals: Vec<ApprovalRow>,
    pub facts: PromotionFacts,
}

/// Everything that is written down about a version; `damage`: why its files do not verify.
pub(super) fn evidence(
    context: &Context,
    model: &Model,
    version: &ModelVersionRow,
    damage: Option<String>,
) -> Result<PromotionEvidence, AppError> {
    let manifest_sha256 = &version.checkpoint_manifest_sha256;
    let mut evaluations = context.ledger_read(|ledger| ledger.evaluations_of_checkpoint(manifest_sha256))?;
    evaluations.retain(|row| !row.is_gate_test());
    let on_set = |wanted: Option<&str>| {
        let rows = evaluations.iter().filter(|row| row.test_set.as_deref() == wanted);
        newest(rows.cloned().collect())
    };
    let evaluation = on_set(None);
    let mut names = model.standing.policy.test_sets.clone();
    names.extend(evaluation.as_ref().map(test_sets_of).transpose()?.into_iter().flatten());
    let mut test_sets = BTreeMap::new();
    let mut receipts = Vec::new();
    for name in names {
        let (set, receipt) = test_set_facts(context, model, on_set(Some(&name)))?;
        receipts.extend(receipt.map(|id| (name.clone(), id)));
        test_sets.insert(name, set);
    }
    let gates = evaluation.as_ref().map(|row| newest_gates(context, row)).transpose()?.flatten();
    let mut approvals = context.ledger_read(|ledger| ledger.approvals_of_model(&model.name))?;
    approvals.retain(|row| row.version == version.version);
    let facts = PromotionFacts {
        model: model.name.clone(),
        version: version.version,
        run_id: version.run_id,
        step: version.step.unwrap_or_default(),
        manifest_sha256: manifest_sha256.clone(),
        registered_by: version.registered_by.clone(),
        rung: version.rung.parse().ok(),
        damage,
        unsafe_because: artifact::unsafe_because(context, version),
        attempt: attempt_facts(context, version)?,
        evaluation: evaluation.as_ref().map(|row| evaluation_facts(context, row)).transpose()?,
        gates: gates.as_ref().map(|gates| gate_facts(context, model, gates)).transpose()?,
        test_sets,
        approval_digest: approval_digest(version, gates.as_ref(), &receipts),
        approvals: approvals.iter().map(approval).collect(),
        production: model.standing.production(),
    };
    Ok(PromotionEvidence { evaluation, gates, approvals, facts })
}

/// The further test sets of the run file that an evaluation was made with.
fn test_sets_of(row: &EvaluationRow) -> Result<Vec<String>, AppError> {
    Ok(section_of(row)?.test_sets.into_keys().collect())
}

/// What is known of a further test set, and the receipt of its gates.
fn test_set_facts(
    context: &Context,
    model: &Model,
    evaluation: Option<EvaluationRow>,
) -> Result<(TestSetFacts, Option<String>), AppError> {
    let Some(row) = evaluation else { return Ok((TestSetFacts::default(), None)) };
    let gates = newest_gates(context, &row)?;
    let facts = TestSetFacts {
        has_gates: !gates::rules_of(context, &row)?.is_empty(),
        gates: gates.as_ref().map(|gates| gate_facts(context, model, gates)).transpose()?,
        evaluation: Some(evaluation_facts(context, &row)?),
    };
    Ok((facts, gates.map(|gates| gates.gate_receipt_id)))
}

/// The newest receipt over an evaluation with all gates of its run file: others may be applied, and permit nothing.
fn newest_gates(context: &Context, row: &EvaluationRow) -> Result<Option<GateReceiptRow>, AppError> {
    let needed = gates::rules_of(context, row)?;
    let receipts = context.ledger_read(|ledger| ledger.gate_receipts_of_evaluation(&row.evaluation_id))?;
    for receipt in receipts {
        let judged = judged(&receipt)?;
        if needed.iter().all(|rule| judged.iter().any(|gate| gate.rule == *rule)) {
            return Ok(Some(receipt));
        }
    }
    Ok(None)
}

fn gate_facts(context: &Context, model: &Model, row: &GateReceiptRow) -> Result<GateFacts, AppError> {
    let judged = judged(row)?;
    let mut unverified = Vec::new();
    for gate in &judged {
        let tests = context.ledger_read(|ledger| ledger.gate_tests_of_rule(&gate.rule))?;
        if !is_verified(&tests) {
            unverified.push(gate.rule.clone());
        }
    }
    let rules = judged.iter().filter_map(|gate| Gate::parse(&gate.rule).ok());
    let kinds = rules.flat_map(|gate| kinds(&gate)).collect();
    let unmet = judged.iter().filter(|gate| gate.verdict != GateVerdict::Pass);
    let baseline = row.baseline_manifest_sha256.as_deref();
    let compared_with = baseline.and_then(|sha256| model.with_weights(sha256)).map(|row| row.version);
    Ok(GateFacts {
        gate_receipt_id: row.gate_receipt_id.clone(),
        evaluation_id: row.evaluation_id.clone(),
        verdict: row.verdict,
        unmet: unmet.map(|gate| format!("`{}` ({}): {}", gate.rule, gate.verdict, gate.why)).collect(),
        unverified,
        kinds,
        compared_with: row.compares.then_some(compared_with),
    })
}

/// The verdict of each gate of a receipt.
pub(super) fn judged(receipt: &GateReceiptRow) -> Result<Vec<JudgedGate>, AppError> {
    read_stored(&receipt.gates_json, "gate_receipts.gates_json", || {
        format!("gate receipt {}", receipt.gate_receipt_id)
    })
}

/// The newest that completed; else the newest at all. What crashed afterwards takes nothing away.
fn newest(rows: Vec<EvaluationRow>) -> Option<EvaluationRow> {
    let completed = rows.iter().rposition(|row| row.state == EvaluationState::Completed);
    let at = completed.or_else(|| rows.len().checked_sub(1))?;
    rows.into_iter().nth(at)
}

fn evaluation_facts(context: &Context, row: &EvaluationRow) -> Result<EvaluationFacts, AppError> {
    use ReceiptField::{
        BlindSpots, Comparison, Decoding, Environment, EvaluatorDigest, Failures, Fairness, Judge, Metrics,
        Outputs, Probes, Slices, TaskSet, TaskSetVersion,
    };
    let is_list =
        |json: &Option<Value>| json.as_ref().and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    let is_there = |json: &Option<Value>| json.as_ref().is_some_and(|it| !it.is_null());
    let part = |name: &str| row.assessment_json.as_ref().and_then(|it| it.get(name));
    let fields = [
        (EvaluatorDigest, row.evaluator_digest.is_some()),
        (Outputs, row.raw_outputs_location.is_some()),
        (Metrics, is_there(&row.metrics_json)),
        (TaskSet, row.task_set_sha256.is_some()),
        (Environment, row.environment_lock_sha256.is_some()),
        (Slices, is_list(&row.slices_json)),
        (Fairness, is_list(&row.fairness_json)),
        (BlindSpots, part("blind_spots").is_some_and(|it| !it.is_null())),
        (Probes, part(PROBES).is_some()),
        (Comparison, is_there(&row.comparison_json)),
        (TaskSetVersion, row.task_set_version.is_some()),
        (Decoding, is_there(&row.decoding_json)),
        (Judge, row.judge_model.is_some() && row.judge_rubric.is_some()),
        // An empty list says that no row was wrong.
        (Failures, row.sampled_failures_json.as_ref().is_some_and(Value::is_array)),
    ];
    let task_set: Vec<&str> = row.task_set_sha256.as_deref().into_iter().collect();
    let counted = context.ledger_read(|ledger| ledger.test_sets(&task_set))?;
    Ok(EvaluationFacts {
        evaluation_id: row.evaluation_id.clone(),
        manifest_sha256: row.checkpoint_manifest_sha256.clone(),
        completed: row.state == EvaluationState::Completed,
        receipt: fields.iter().filter(|(_, is_there)| *is_there).map(|(field, _)| *field).collect(),
        test_set_uses: counted.first().map(|set| set.use_count),
    })
}

fn approval(row: &ApprovalRow) -> Approval {
    Approval { by: row.approver.clone(), digest: row.digest.clone(), expires_at: row.expires_at }
}

/// What an approval is bound to: these weights with this lineage, and the verdicts of their gates on each test set.
fn approval_digest(
    version: &ModelVersionRow,
    gates: Option<&GateReceiptRow>,
    on_test_sets: &[(String, String)],
) -> String {
    let mut bound: Value = json!({
        "model": version.model,
        "version": version.version,
        "checkpoint_manifest_sha256": version.checkpoint_manifest_sha256,
        "lineage_sha256": version.lineage_sha256,
        "gate_receipt_id": gates.map(|gates| &gates.gate_receipt_id),
    });
    if !on_test_sets.is_empty() {
        bound["test_sets"] = json!(on_test_sets);
    }
    sha256_hex(canonical_json(&bound).as_bytes())
}
