//! The receipt of an evaluation.

use maud::{Markup, html};
use serde_json::Value;
use trackway_core::text::{duration, metric};
use trackway_evaluate::Metrics;
use trackway_flows::evaluate::EvaluationReceipt;
use trackway_ledger::EvaluationState;

use crate::frame::{About, Page, page};
use crate::metrics::sections;
use crate::parts::{number, section, table, text};

/// The page.
#[must_use]
pub fn evaluation(receipt: &EvaluationReceipt, about: &About) -> Page {
    let step = receipt.step.map(|step| format!(", step {step}")).unwrap_or_default();
    let gates = receipt.gates.as_array().map(Vec::as_slice).unwrap_or_default();
    let body = html! {
        @if !gates.is_empty() { (section("Gates", &gate_table(gates))) }
        (section("Provenance", &provenance(receipt)))
        @if let Some(assessment) = receipt.judged() {
            (section("Results", &html! {}))
            (sections(&assessment))
        } @else {
            (reported(receipt))
        }
        (failures(&receipt.sampled_failures))
    };
    page(&format!("Evaluation of {}{step}", receipt.name), about, &lead(receipt), &body)
}

fn lead(receipt: &EvaluationReceipt) -> Markup {
    let (class, word) = match receipt.state {
        EvaluationState::Completed if receipt.gates_pass() => ("pass", "completed"),
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
        @for note in receipt.notes.as_array().into_iter().flatten().filter_map(Value::as_str) { p.dim { "· " (note) } }
    }
}

fn gate_table(gates: &[Value]) -> Markup {
    let member = |gate: &Value, name: &str| gate[name].as_str().unwrap_or_default().to_owned();
    table(
        &[text("Verdict"), text("Rule"), text("Why")],
        gates.iter().map(|gate| {
            let verdict = member(gate, "verdict");
            let class = match verdict.as_str() {
                "pass" => "pass",
                "fail" => "block",
                _ => "warn",
            };
            html! {
                td class=(class) { (verdict.replace('_', " ")) }
                td { code { (member(gate, "rule")) } }
                td.dim { (member(gate, "why")) }
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
    for file in evaluator.files.as_array().into_iter().flatten() {
        let member = |name: &str| file[name].as_str().unwrap_or_default().to_owned();
        rows.push(("", format!("{} sha256:{}", member("path"), member("sha256"))));
    }
    rows.push(("packages", sha256(&evaluator.environment_lock_sha256)));
    rows.push(("image", evaluator.container_digest.clone().unwrap_or_default()));
    if let Some(set) = &receipt.task_set {
        let path = set.path.as_str().unwrap_or_default();
        let version = set.version.as_deref().unwrap_or_default();
        let used = format!("evaluations on it: {}, checkpoints: {}", set.use_count, set.checkpoint_count);
        rows.push(("tasks", format!("{path} {version} {}; {used}", sha256(&set.sha256))));
    }
    rows.push((
        "decoding",
        if receipt.decoding.is_null() { String::new() } else { receipt.decoding.to_string() },
    ));
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
        let ended = launch.termination_reason.as_deref().unwrap_or("running");
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
    let metrics: Metrics = serde_json::from_value(receipt.metrics.clone()).unwrap_or_default();
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
    let table = table(&[text("Metric"), number("Value"), text("Interval")], rows);
    section("Results reported by the evaluator (not recomputed)", &table)
}

/// A sample of wrong rows, one table.
fn failures(failures: &Value) -> Markup {
    let sample = failures["sample"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(names) = sample.first().and_then(|row| row["cells"].as_object()) else { return html! {} };
    let what = if failures["kind"] == "farthest" { "with the largest errors" } else { "wrong" };
    let mut columns = vec![number("Row")];
    columns.extend(names.keys().map(|name| text(name)));
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let rows = sample.iter().map(|row| {
        html! {
            td.n.dim { (row["row"].to_string()) }
            @for name in names.keys() { td { (cell(&row["cells"][name])) } }
        }
    });
    section(
        "Failures",
        &html! {
            p { (failures["wrong"].to_string()) " of " (failures["rows"].to_string()) " rows " (what) "; a sample:" }
            (table(&columns, rows))
        },
    )
}
