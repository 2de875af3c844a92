//! A receipt as one HTML file that needs nothing else: no script, no font, no network.

use serde_json::Value;
use trackway_flows::assess::{Estimate, Metrics};
use trackway_flows::evaluate::EvaluationReceipt;
use trackway_ledger::EvaluationState;

use crate::html::assessment::sections;
use crate::html::{Html, head, put};
use crate::units::{duration, metric};

/// The page.
pub fn page(receipt: &EvaluationReceipt) -> Html {
    let mut page = head(&format!("Evaluation of {}", receipt.name));
    heading(&mut page, receipt);
    gates(&mut page, &receipt.gates);
    identity(&mut page, receipt);
    match receipt.judged() {
        Some(assessment) => {
            page.push_str("<h2>Results</h2>");
            sections(&mut page, &assessment);
        }
        None => told(&mut page, receipt),
    }
    failures(&mut page, &receipt.sampled_failures);
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
    for note in receipt.notes.as_array().into_iter().flatten().filter_map(Value::as_str) {
        put!(page, "<p class=\"dim\">· {}</p>", note);
    }
}

fn gates(page: &mut Html, gates: &Value) {
    let gates = gates.as_array().map(Vec::as_slice).unwrap_or_default();
    if gates.is_empty() {
        return;
    }
    page.push_str("<h2>Gates</h2><div class=\"wide\"><table>");
    for gate in gates {
        let text = |member: &str| gate[member].as_str().unwrap_or_default();
        let class = match text("verdict") {
            "pass" => "pass",
            "fail" => "block",
            _ => "warn",
        };
        put!(
            page,
            "<tr><td class=\"{}\">{}</td><td><code>{}</code></td><td class=\"dim\">{}</td></tr>",
            class,
            text("verdict"),
            text("rule"),
            text("why")
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
    for file in evaluator.files.as_array().into_iter().flatten() {
        let text = |member: &str| file[member].as_str().unwrap_or_default().to_owned();
        row("", format!("{} sha256:{}", text("path"), text("sha256")));
    }
    row("packages", hash(&evaluator.environment_lock_sha256).trim().to_owned());
    row("image", evaluator.container_digest.clone().unwrap_or_default());
    if let Some(set) = &receipt.task_set {
        let version = set.version.as_deref().unwrap_or_default();
        let used = format!("; evaluations on it: {}, checkpoints: {}", set.use_count, set.checkpoint_count);
        row(
            "tasks",
            format!("{} {version}{}{used}", set.path.as_str().unwrap_or_default(), hash(&set.sha256)),
        );
    }
    row("decoding", if receipt.decoding.is_null() { String::new() } else { receipt.decoding.to_string() });
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
        let ended = launch.termination_reason.as_deref().unwrap_or("running");
        row("launch", format!("{} {ended}", launch.attempt_id));
    }
    row("receipt", hash(&receipt.receipt_sha256).trim().to_owned());
    page.push_str("</table></div>");
}

/// Numbers whose origin only the evaluator knows.
fn told(page: &mut Html, receipt: &EvaluationReceipt) {
    let metrics: Metrics = serde_json::from_value(receipt.metrics.clone()).unwrap_or_default();
    if metrics.is_empty() {
        return;
    }
    page.push_str("<h2>Results reported by the evaluator (not recomputed)</h2><div class=\"wide\"><table><tr><th>Metric</th><th class=\"n\">Value</th><th>Interval</th></tr>");
    for (name, Estimate { value, low, high, .. }) in &metrics {
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
fn failures(page: &mut Html, failures: &Value) {
    let sample = failures["sample"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(names) = sample.first().and_then(|row| row["cells"].as_object()) else { return };
    let what = if failures["kind"] == "farthest" { "farthest off" } else { "wrong" };
    put!(
        page,
        "<h2>Failures</h2><p>{} of {} rows {}; a sample:</p>",
        failures["wrong"],
        failures["rows"],
        what
    );
    page.push_str("<div class=\"wide\"><table><tr><th class=\"n\">Row</th>");
    names.keys().for_each(|name| put!(page, "<th>{}</th>", name));
    page.push_str("</tr>");
    for row in sample {
        put!(page, "<tr><td class=\"n dim\">{}</td>", row["row"]);
        for name in names.keys() {
            let text = match &row["cells"][name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            put!(page, "<td>{}</td>", text);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div>");
}
