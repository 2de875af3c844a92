//! Gates over evaluations: applying them, recording their verdicts, and proving that they can fail, with known-bad models.

mod evidence;
mod fixture;
mod verified;

use std::path::Path;

use serde_json::{Value, json};
use trackway_api::models::gates::GateReceipt;
use trackway_core::Clock as _;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::{self, Job, RunSource};
use trackway_engine::stored::stored_plan;
use trackway_evaluate::Comparison;
use trackway_formats::checkpoint_manifest::Manifest;
use trackway_formats::gate::Gate;
use trackway_formats::rule::RuleError;
use trackway_formats::runfile::{PlanPatch, canonical_json};
use trackway_formats::sha256_hex;
use trackway_ledger::{EvaluationRow, EvaluationState, GateReceiptRow, KeptRows};
use trackway_rules::gate::{GateEvidence, JudgedGate, judge, overall};

use crate::checkpoints;
use crate::evaluation::baseline::{self, Candidate, section_of};
use evidence::ModelFacts;
pub(crate) use evidence::number_names;
pub use fixture::{TestedGates, changed_fixture, fixture_of, read_fixture, test_gates};
pub(crate) use verified::is_verified;

/// What to apply gates to.
#[derive(Debug, Clone)]
pub struct JudgeRequest {
    pub evaluation: EvaluationRow,
    /// The gates; empty: those of the run file.
    pub rules: Vec<String>,
    /// The evaluation that `baseline` means; `None`: the one it was compared with.
    pub baseline: Option<String>,
}

/// Applies gates to an evaluation, and records their verdicts.
///
/// # Errors
/// [`ErrorKind::NotFound`]: no such evaluation. [`ErrorKind::Usage`]: it did not complete, there is no gate, or one that cannot be
/// read.
pub fn judge_gates(context: &Context, request: &JudgeRequest) -> Result<GateReceipt, AppError> {
    let row = completed(request.evaluation.clone())?;
    let rules = if request.rules.is_empty() { rules_of(context, &row)? } else { request.rules.clone() };
    if rules.is_empty() {
        let message = format!("evaluation {} has no gates", row.evaluation_id);
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("write `gates = [\"accuracy >= 0.84\"]` into `[evaluate]`, or name one with --gate"));
    }
    let (judged, receipt, notes) = judged(context, &row, &rules, request.baseline.as_deref())?;
    keep_receipt(context, &receipt)?;
    Ok(GateReceipt {
        gate_receipt_id: receipt.gate_receipt_id,
        evaluation_id: row.evaluation_id,
        checkpoint_manifest_sha256: row.checkpoint_manifest_sha256,
        baseline_evaluation_id: receipt.baseline_evaluation_id,
        verdict: receipt.verdict,
        gates: judged,
        unverified: fixture::unverified(context, &rules)?,
        notes,
    })
}

/// The verdicts of the gates of an evaluation that is about to end, and their receipt; none without gates.
pub(crate) fn verdicts(
    context: &Context,
    row: &EvaluationRow,
) -> Result<(Vec<JudgedGate>, Option<GateReceiptRow>), AppError> {
    let rules = rules_of(context, row)?;
    if rules.is_empty() {
        return Ok((Vec::new(), None));
    }
    judged(context, row, &rules, None).map(|(judged, receipt, _)| (judged, Some(receipt)))
}

/// The verdicts of gates about an evaluation beside a named baseline, or the one it was compared with, and notes for a
/// reader.
fn judged(
    context: &Context,
    row: &EvaluationRow,
    rules: &[String],
    named: Option<&str>,
) -> Result<(Vec<JudgedGate>, GateReceiptRow, Vec<String>), AppError> {
    let gates = read_gates(rules)?;
    let baseline = baseline_of(context, row, named)?;
    let (mut evidence, notes) = evidence_of(context, row, baseline.as_ref())?;
    if named.is_none() && !names_baseline(row) {
        evidence.baseline.get_or_insert_default();
    }
    let judged = judge_all(rules, &gates, &evidence);
    let receipt = gate_receipt(context, row, baseline.as_ref(), &gates, &judged, &evidence);
    Ok((judged, receipt, notes))
}

/// The same evidence and gates give the same receipt, which is kept as it was first written.
fn keep_receipt(context: &Context, receipt: &GateReceiptRow) -> Result<(), AppError> {
    let known = context.ledger_read(|ledger| ledger.gate_receipt(&receipt.gate_receipt_id))?;
    match known {
        Some(_) => Ok(()),
        None => {
            context.ledger_write(|ledger| ledger.insert_gate_receipt(receipt))?;
            context.keep_in_registry(&format!("gates-{}", receipt.gate_receipt_id), &KeptRows::of([receipt]));
            Ok(())
        }
    }
}

fn gate_receipt(
    context: &Context,
    row: &EvaluationRow,
    baseline: Option<&EvaluationRow>,
    gates: &[Gate],
    judged: &[JudgedGate],
    evidence: &GateEvidence,
) -> GateReceiptRow {
    let compares = gates.iter().any(compares);
    let baseline = baseline.filter(|_| compares);
    let (gates_json, evidence_json) = (json!(judged), json!(evidence));
    let verdict = overall(judged);
    let baseline_evaluation_id = baseline.map(|row| row.evaluation_id.clone());
    let receipt = GateReceiptRow {
        gate_receipt_id: String::new(),
        evaluation_id: row.evaluation_id.clone(),
        run_id: row.run_id,
        checkpoint_manifest_sha256: row.checkpoint_manifest_sha256.clone(),
        baseline_evaluation_id,
        baseline_manifest_sha256: baseline.map(|row| row.checkpoint_manifest_sha256.clone()),
        compares,
        verdict,
        gates_json,
        evidence_json,
        judged_at: context.clock.now(),
        person: context.request.actor.name.clone(),
    };
    GateReceiptRow { gate_receipt_id: digest_of(&receipt), ..receipt }
}

/// The id of a receipt of gates: SHA-256 over what it binds together.
pub(crate) fn digest_of(receipt: &GateReceiptRow) -> String {
    let bound = json!({
        "evaluation_id": receipt.evaluation_id,
        "checkpoint_manifest_sha256": receipt.checkpoint_manifest_sha256,
        "baseline_evaluation_id": receipt.baseline_evaluation_id,
        "verdict": receipt.verdict,
        "gates": receipt.gates_json,
        "evidence": receipt.evidence_json,
    });
    sha256_hex(canonical_json(&bound).as_bytes())
}

/// Everything that gates may name about an evaluation, and why it was not put beside the baseline row by row, where it was not.
pub(crate) fn evidence_of(
    context: &Context,
    row: &EvaluationRow,
    baseline: Option<&EvaluationRow>,
) -> Result<(GateEvidence, Vec<String>), AppError> {
    let of_baseline = baseline.map(|row| Ok::<_, AppError>((row, facts(context, row)?))).transpose()?;
    let (compared, note) = match baseline.map(|baseline| comparison_of(context, row, baseline)).transpose()? {
        Some(Ok(compared)) => (compared, None),
        Some(Err(why)) => (None, Some(format!("not compared with the baseline row by row: {why}"))),
        None => (None, None),
    };
    let evidence = evidence::evidence((row, facts(context, row)?), of_baseline, compared.as_ref())?;
    Ok((evidence, note.into_iter().collect()))
}

/// How two evaluations compare on the same rows: as when the one was made, else from what both kept.
fn comparison_of(
    context: &Context,
    row: &EvaluationRow,
    baseline: &EvaluationRow,
) -> Result<Result<Option<Comparison>, String>, AppError> {
    if row.baseline_evaluation_id.as_ref() == Some(&baseline.evaluation_id) {
        return Ok(Ok(evidence::stored_comparison(row)?));
    }
    if row.evaluation_id == baseline.evaluation_id {
        return Ok(Ok(None));
    }
    baseline::compare_kept(context, row, baseline)
}

fn facts(context: &Context, row: &EvaluationRow) -> Result<ModelFacts, AppError> {
    let run = context.run_by_id(row.run_id)?;
    let rung = run::rung_now(context, &run)?;
    let (seconds, gpu_seconds, cost_usd) = (run.wall_seconds, run.gpu_seconds, run.cost_usd);
    let opened =
        checkpoints::checkpoints_at(context, run, rung)?.open_manifest(&row.checkpoint_manifest_sha256).ok();
    let manifest = opened.map(|opened| opened.manifest);
    Ok(ModelFacts {
        size_bytes: manifest.as_ref().map(Manifest::size_bytes),
        weights_bytes: manifest.as_ref().and_then(Manifest::weights_bytes),
        training_seconds: Some(seconds),
        gpu_seconds: Some(gpu_seconds),
        cost_usd,
    })
}

/// The gates of a test set of a run file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestSetGates {
    /// Its name; `None`: that of `[evaluate]` itself.
    pub test_set: Option<String>,
    /// Its gates, at least one.
    pub rules: Vec<String>,
}

/// The gates of a run file, for each test set that has any.
///
/// # Errors
/// [`ErrorKind::Usage`]: a run file with mistakes, or without gates.
pub fn gates_of_file(context: &Context, path: &Path) -> Result<Vec<TestSetGates>, AppError> {
    let source = RunSource::File { path: path.to_owned(), patch: PlanPatch::default() };
    let job = Job::read(&source, &context.redactor)?;
    let section = job.plan.evaluate.unwrap_or_default();
    let further = section.test_sets.into_iter().map(|(name, set)| (Some(name), set.gates));
    let all = std::iter::once((None, section.gates)).chain(further);
    let gates: Vec<TestSetGates> = all
        .filter(|(_, rules)| !rules.is_empty())
        .map(|(test_set, rules)| TestSetGates { test_set, rules })
        .collect();
    if gates.is_empty() {
        let message = format!("`{}` has no gates", path.display());
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("write `gates = [\"accuracy >= 0.84\"]` into `[evaluate]`"));
    }
    Ok(gates)
}

fn baseline_of(
    context: &Context,
    row: &EvaluationRow,
    named: Option<&str>,
) -> Result<Option<EvaluationRow>, AppError> {
    let Some(named) = named else {
        return baseline_made_with(context, row);
    };
    let candidate = Candidate {
        run: &context.run_by_id(row.run_id)?,
        manifest_sha256: &row.checkpoint_manifest_sha256,
        task_set_sha256: row.task_set_sha256.as_deref(),
        evaluator_name: &row.evaluator_name,
    };
    baseline::baseline(context, named, &candidate)
}

/// The evaluation that one was compared with when it was made.
pub(crate) fn baseline_made_with(
    context: &Context,
    row: &EvaluationRow,
) -> Result<Option<EvaluationRow>, AppError> {
    let Some(id) = row.baseline_evaluation_id.as_deref() else { return Ok(None) };
    completed(context.evaluation_by_id(id)?).map(Some)
}

/// The gates that an evaluation was made with, else those of its run.
pub(crate) fn rules_of(context: &Context, row: &EvaluationRow) -> Result<Vec<String>, AppError> {
    if row.spec("gates").is_some() {
        return Ok(section_of(row)?.gates);
    }
    let section = stored_plan(&context.run_by_id(row.run_id)?)?.and_then(|plan| plan.evaluate);
    Ok(section.map(|section| section.gates).unwrap_or_default())
}

pub(crate) fn completed(row: EvaluationRow) -> Result<EvaluationRow, AppError> {
    if row.state == EvaluationState::Completed {
        return Ok(row);
    }
    let EvaluationRow { evaluation_id, state, .. } = &row;
    let message = format!("evaluation {evaluation_id} is {}: gates need a complete one", state.as_str());
    Err(AppError::new(ErrorKind::Usage, message))
}

/// Whether an evaluation was made with a baseline, be it one that there is not yet. Without one a gate that compares has nothing
/// that it could pass by.
fn names_baseline(row: &EvaluationRow) -> bool {
    row.spec_json.as_ref().and_then(|spec| spec.get("baseline")).is_some_and(Value::is_string)
}

fn judge_all(rules: &[String], gates: &[Gate], evidence: &GateEvidence) -> Vec<JudgedGate> {
    rules.iter().zip(gates).map(|(rule, gate)| judge(rule, gate, evidence)).collect()
}

fn compares(gate: &Gate) -> bool {
    gate.comparisons().iter().any(|comparison| comparison.operands().iter().any(|number| number.baseline))
}

/// Reads gates that were not read with a run file.
fn read_gates(rules: &[String]) -> Result<Vec<Gate>, AppError> {
    rules.iter().map(|rule| Gate::parse(rule).map_err(|error| mistake(rule, &error))).collect()
}

fn mistake(rule: &str, error: &RuleError) -> AppError {
    let failure = AppError::new(ErrorKind::Usage, format!("the gate `{rule}` {}", error.message));
    match &error.hint {
        Some(hint) => failure.hint(hint.clone()),
        None => {
            let column = rule[..error.span.start].chars().count() + 1;
            failure.hint(format!("the mistake is at column {column}: `{}`", &rule[error.span.clone()]))
        }
    }
}
