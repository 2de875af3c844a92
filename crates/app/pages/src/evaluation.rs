//! The receipt of an evaluation.

use maud::{Markup, html};
use serde_json::Value;
use trackway_api::models::evaluations::{
    Estimate, EvaluationReceipt, EvaluationState, FailureKind, Failures, ProbeAnswer, TestSetResult,
};
use trackway_core::TerminationReason;
use trackway_core::registry::GateVerdict;
use trackway_core::text::{duration, metric};
use trackway_rules::gate::JudgedGate;

use crate::frame::{About, Page, page};
use crate::metrics::sections;
use crate::parts::{columns, number, section, table, text};

/// The page.
#[must_use]
pub fn evaluation(receipt: &EvaluationReceipt, about: &About) -> Page {
    let step = receipt.step.map(|step| format!(", step {step}")).unwrap_or_default();
    let body = html! {
        @if !receipt.gates.is_empty() { (section("Gates", &gate_table(&receipt.gates))) }
        (section("Provenance", &provenance(receipt)))
        @if let Some(assessment) = receipt.assessed() {
            (section("Results", &html! {}))
            (sections(&assessment))
        } @else {
            (reported(receipt))
        }
        @if let Some(found) = &receipt.probes { (section("Probes", &probes(found))) }
        @if !receipt.test_sets.is_empty() { (section("Further test sets", &test_sets(&receipt.test_sets))) }
        @if let Some(sample) = &receipt.sampled_failures { (failures(sample)) }
    };
    page(&format!("Evaluation of {}{step}", receipt.name), about, &lead(receipt), &body)
}

fn lead(receipt: &EvaluationReceipt) -> Markup {
    let (class, word) = match receipt.state {
        EvaluationState::Completed if receipt.passes() => ("pass", "completed"),
        EvaluationState::Completed => ("block", "a gate does not pass"),
        EvaluationState::Failed => ("block", "failed"),
        EvaluationState::Running => ("warn", "running"),
    };
    let took = receipt.ended_at.map(|ended| duration(ended.seconds_since(receipt.started_at)));
    html! {
        p { span class=(format!("badge {class}")) { (word) } " " (receipt.failure.as_deref().unwrap_or_default()) }
        p.dim {
            (receipt.evaluation_id) " began " (receipt.started_at.to_rfc3339())
            @if let Some(took) = took { ", took " (took) } "."
        }
        @for note in &receipt.notes { p.dim { "· " (note) } }
    }
}

fn gate_table(gates: &[JudgedGate]) -> Markup {
    table(
        &columns("Verdict | Rule | Why"),
        gates.iter().map(|gate| {
            html! {
                td class=(verdict_class(gate.verdict)) { (gate.verdict.as_str().replace('_', " ")) }
                td { code { (gate.rule) } }
                td.dim { (gate.why) }
            }
        }),
    )
}

fn verdict_class(verdict: GateVerdict) -> &'static str {
    match verdict {
        GateVerdict::Pass => "pass",
        GateVerdict::Fail => "block",
        GateVerdict::Inconclusive => "warn",
    }
}

/// What the model loses without each feature, and what each change of it does.
fn probes(found: &ProbeAnswer) -> Markup {
    let shown = |estimate: Option<Estimate>| estimate.map(|it| metric(it.value)).unwrap_or_default();
    let importance = table(
        &[text("Feature"), number("Error rises without it by")],
        found.importance.iter().map(|it| {
            html! { td { code { (it.feature) } } td.n { (metric(it.increase.value)) } }
        }),
    );
    let changes = table(
        &columns("Feature | Change | Decisions changed: | Error rises by: | "),
        found.perturbations.iter().map(|it| {
            html! {
                td { code { (it.feature) } }
                td { (it.kind.label()) }
                td.n { (shown(it.flipped)) }
                td.n { (shown(it.increase)) }
                td.dim { (it.refused.as_deref().unwrap_or_default()) }
            }
        }),
    );
    html! { p.dim { (found.rows) " rows drawn at random." } (importance) (changes) }
}

/// The newest result of the same weights on each further test set.
fn test_sets(sets: &[TestSetResult]) -> Markup {
    table(
        &columns("Test set | Gates | Evaluation | Rows: | Metric"),
        sets.iter().map(|set| {
            let main = set.main_metric.as_ref().and_then(|name| Some((name, set.metrics.get(name)?)));
            let (class, word) = match (set.state, set.verdict) {
                (Some(EvaluationState::Completed), Some(verdict)) => {
                    (verdict_class(verdict), verdict.as_str())
                }
                (Some(EvaluationState::Completed), None) => ("dim", "none"),
                (Some(state), _) => ("block", state.as_str()),
                (None, _) => ("warn", "not evaluated"),
            };
            html! {
                td { (set.name) }
                td class=(class) { (word) }
                td { (set.evaluation_id.as_deref().unwrap_or_default()) }
                td.n { (set.rows.map(|rows| rows.to_string()).unwrap_or_default()) }
                td { (main.map(|(name, it)| format!("{name} {}{}", metric(it.value), it.of_some_rows())).unwrap_or_default()) }
            }
        }),
    )
}

/// What was evaluated by what, on what: hashes and ids.
fn provenance(receipt: &EvaluationReceipt) -> Markup {
    let sha256 = |hash: &Option<String>| hash.as_deref().map(|it| format!("sha256:{it}")).unwrap_or_default();
    let evaluator = &receipt.evaluator;
    let mut rows = vec![
        ("run", receipt.run_id.to_string()),
        ("weights", format!("sha256:{} (manifest)", receipt.checkpoint_manifest_sha256)),
        ("evaluator", format!("{} {}", evaluator.name, sha256(&evaluator.digest))),
    ];
    for file in &evaluator.files {
        rows.push(("", format!("{} sha256:{}", file.path, file.sha256)));
    }
    rows.push(("packages", sha256(&evaluator.environment_lock_sha256)));
    rows.push(("image", evaluator.container_digest.clone().unwrap_or_default()));
    if let Some(set) = &receipt.task_set {
        let path = set.path.as_deref().unwrap_or_default();
        let version = set.version.as_deref().unwrap_or_default();
        let used = format!("evaluations on it: {}, checkpoints: {}", set.use_count, set.checkpoint_count);
        rows.push(("tasks", format!("{path} {version} {}; {used}", sha256(&set.sha256))));
        rows.extend(set.worn.clone().map(|worn| ("tasks are worn", worn)));
    }
    let decoding = receipt.decoding.clone().map(|decoding| Value::Object(decoding).to_string());
    rows.push(("decoding", decoding.unwrap_or_default()));
    if let Some(judge) = &receipt.judge {
        let rubric = judge.rubric.as_deref().map(|rubric| format!(", rubric {rubric}")).unwrap_or_default();
        rows.push(("judge", format!("{}{rubric}", judge.model.as_deref().unwrap_or_default())));
    }
    rows.push(("seed", receipt.seed.map(|seed| seed.to_string()).unwrap_or_default()));
    if let Some(raw) = &receipt.raw_outputs {
        let count = raw.rows.map(|rows| format!("{rows} rows ")).unwrap_or_default();
        rows.push(("outputs", format!("{count}{}", sha256(&raw.sha256))));
    }
    rows.push(("baseline", receipt.baseline_evaluation_id.clone().unwrap_or_default()));
    for launch in &receipt.launches {
        let ended = launch.termination_reason.map_or("running", TerminationReason::as_str);
        rows.push(("launch", format!("{} {ended}", launch.attempt_id)));
    }
    rows.push(("receipt", sha256(&receipt.receipt_sha256)));
    let known = rows.iter().filter(|(_, text)| !text.trim().is_empty());
    table(
        &[text(""), text("")],
        known.map(|(name, text)| html! { td { (name) } td { code { (text.trim()) } } }),
    )
}

/// Numbers of an evaluator that left no rows to compute them from.
fn reported(receipt: &EvaluationReceipt) -> Markup {
    let metrics = &receipt.metrics;
    if metrics.is_empty() {
        return html! {};
    }
    let rows = metrics.iter().map(|(name, it)| {
        let interval = it.interval.bounds().map(|(low, high)| format!("{} to {}", metric(low), metric(high)));
        html! {
            td { code { (name) } }
            td.n { (metric(it.value)) }
            td { (interval.unwrap_or_default()) }
        }
    });
    let table = table(&columns("Metric | Value: | Interval"), rows);
    section("Results reported by the evaluator (not recomputed)", &table)
}

/// A sample of wrong rows, one table.
fn failures(failures: &Failures) -> Markup {
    let Some(first) = failures.sample.first() else { return html! {} };
    let what = match failures.kind {
        FailureKind::Farthest => "with the largest errors",
        FailureKind::Wrong => "wrong",
    };
    let mut columns = vec![number("Row")];
    columns.extend(first.cells.keys().map(|name| text(name)));
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let rows = failures.sample.iter().map(|row| {
        html! {
            td.n.dim { (row.row) }
            @for name in first.cells.keys() { td { (cell(row.cells.get(name))) } }
        }
    });
    section(
        "Failures",
        &html! {
            p { (failures.wrong) " of " (failures.rows) " rows " (what) "; a sample:" }
            (table(&columns, rows))
        },
    )
}
