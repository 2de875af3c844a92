//! A receipt as one HTML file that needs nothing else: no script, no font, no network.

use serde_json::Value;
use trackway_api::evaluations::{Estimate, EvaluationReceipt, FailureKind, Failures};
use trackway_core::TerminationReason;
use trackway_core::registry::GateVerdict;
use trackway_ledger::EvaluationState;
use trackway_tower::gate::JudgedGate;

use crate::html::assessment::sections;
use crate::html::{Html, head, put};
use crate::units::{duration, metric};

/// The page.
pub fn page(receipt: &EvaluationReceipt) -> Html {
    let mut page = head(&format!("Evaluation of {}", receipt.name));
    heading(&mut page, receipt);
    gates(&mut page, &receipt.gates);
    identity(&mut page, receipt);
    match receipt.assessed() {
        Some(assessment) => {
            page.push_str("<h2>Results</h2>");
            sections(&mut page, &assessment);
        }
        None => told(&mut page, receipt),
    }
    receipt.sampled_failures.iter().for_each(|sample| failures(&mut page, sample));
    page.push_str("</body></html>\n");
    page
}

fn heading(page: &mut Html, receipt: &EvaluationReceipt) {
    let (class, word) = match receipt.state {
        EvaluationState::Completed if receipt.gates_pass() => ("pass", "completed"),
        EvaluationState::Completed => ("block", "a gate does not pass"),
        EvaluationState::Failed => ("block", "failed"),
        EvaluationState::Running => ("warn", "running"),
    };
    let step = receipt.step.map(|step| format!(", step {step}")).unwrap_or_default();
    put!(page, "<h1>Evaluation of {}{}</h1>", receipt.name, step);
    let failure = receipt.failure.as_deref();
    put!(page, "<p><span class=\"badge {}\">{}</span> {}</p>", class, word, failure);
    let took = receipt.ended_at.map(|ended| duration(ended.seconds_since(receipt.started_at)));
    let took = took.map(|took| format!(", took {took}")).unwrap_or_default();
    put!(
        page,
        "<p class=\"dim\">{} began {}{}.</p>",
        receipt.evaluation_id,
        receipt.started_at.to_rfc3339(),
        took
    );
    for note in &receipt.notes {
        put!(page, "<p class=\"dim\">· {}</p>", note);
    }
}

fn gates(page: &mut Html, gates: &[JudgedGate]) {
    if gates.is_empty() {
        return;
    }
    page.push_str("<h2>Gates</h2><div class=\"wide\"><table>");
    for gate in gates {
        let class = match gate.verdict {
            GateVerdict::Pass => "pass",
            GateVerdict::Fail => "block",
            GateVerdict::Inconclusive => "warn",
        };
        put!(
            page,
            "<tr><td class=\"{}\">{}</td><td><code>{}</code></td><td class=\"dim\">{}</td></tr>",
            class,
            gate.verdict.as_str(),
            gate.rule.as_str(),
            gate.why.as_str()
        );
    }
    page.push_str("</table></div>");
}

/// What is bound to what.
fn identity(page: &mut Html, receipt: &EvaluationReceipt) {
    page.push_str("<h2>What is bound to what</h2><div class=\"wide\"><table>");
    let mut row = |name: &str, text: String| {
        if !text.is_empty() {
            put!(page, "<tr><td>{}</td><td><code>{}</code></td></tr>", name, text);
        }
    };
    let hash = |hash: &Option<String>| hash.as_deref().map(|it| format!(" sha256:{it}")).unwrap_or_default();
    row("run", receipt.run_id.to_string());
    row("weights", format!("sha256:{} (manifest)", receipt.checkpoint_manifest_sha256));
    let evaluator = &receipt.evaluator;
    row("evaluator", format!("{}{}", evaluator.name, hash(&evaluator.digest)));
    for file in &evaluator.files {
        row("", format!("{} sha256:{}", file.path, file.sha256));
    }
    row("packages", hash(&evaluator.environment_lock_sha256).trim().to_owned());
    row("image", evaluator.container_digest.clone().unwrap_or_default());
    if let Some(set) = &receipt.task_set {
        let version = set.version.as_deref().unwrap_or_default();
        let used = format!("; evaluations on it: {}, checkpoints: {}", set.use_count, set.checkpoint_count);
        row(
            "tasks",
            format!("{} {version}{}{used}", set.path.as_deref().unwrap_or_default(), hash(&set.sha256)),
        );
    }
    let decoding = receipt.decoding.as_ref().map(|decoding| serde_json::json!(decoding).to_string());
    row("decoding", decoding.unwrap_or_default());
    if let Some(judge) = &receipt.judge {
        let rubric = judge.rubric.as_deref().map(|rubric| format!(", rubric {rubric}")).unwrap_or_default();
        row("judge", format!("{}{rubric}", judge.model.as_deref().unwrap_or_default()));
    }
    row("seed", receipt.seed.map(|seed| seed.to_string()).unwrap_or_default());
    if let Some(raw) = &receipt.raw_outputs {
        let rows = raw.rows.map(|rows| format!("{rows} rows")).unwrap_or_default();
        row("outputs", format!("{rows}{}", hash(&raw.sha256)));
    }
    row("baseline", receipt.baseline_evaluation_id.clone().unwrap_or_default());
    for launch in &receipt.launches {
        let ended = launch.termination_reason.map_or("running", TerminationReason::as_str);
        row("launch", format!("{} {ended}", launch.attempt_id));
    }
    row("receipt", hash(&receipt.receipt_sha256).trim().to_owned());
    page.push_str("</table></div>");
}

/// Numbers whose origin only the evaluator knows.
fn told(page: &mut Html, receipt: &EvaluationReceipt) {
    let metrics = &receipt.metrics;
    if metrics.is_empty() {
        return;
    }
    page.push_str("<h2>Results reported by the evaluator (not recomputed)</h2><div class=\"wide\"><table><tr><th>Metric</th><th class=\"n\">Value</th><th>Interval</th></tr>");
    for (name, Estimate { value, low, high, .. }) in metrics {
        let interval = low.zip(*high).map(|(low, high)| format!("{} … {}", metric(low), metric(high)));
        put!(
            page,
            "<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            name,
            metric(*value),
            interval.unwrap_or_default()
        );
    }
    page.push_str("</table></div>");
}

/// The sample of rows that are wrong, one table.
fn failures(page: &mut Html, failures: &Failures) {
    let Some(names) = failures.sample.first().map(|row| &row.cells) else { return };
    let what = match failures.kind {
        FailureKind::Farthest => "farthest off",
        FailureKind::Wrong => "wrong",
    };
    put!(page, "<h2>Failures</h2><p>{} of {} rows {}; a sample:</p>", failures.wrong, failures.rows, what);
    page.push_str("<div class=\"wide\"><table><tr><th class=\"n\">Row</th>");
    names.keys().for_each(|name| put!(page, "<th>{}</th>", name));
    page.push_str("</tr>");
    for row in &failures.sample {
        put!(page, "<tr><td class=\"n dim\">{}</td>", row.row);
        for name in names.keys() {
            let text = match row.cells.get(name) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            put!(page, "<td>{}</td>", text);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div>");
}
