//! A receipt as text: the most important first.

use serde::Deserialize as _;
use serde_json::Value;
use trackway_core::RowCoverage;
use trackway_flows::evaluate::EvaluationReceipt;
use trackway_ledger::EvaluationState;

use crate::printer::{Printer, Tone, cut, row};
use crate::units::{counted, metric, short_hash};

/// Failures that are shown; `--json` has all of the sample.
const SHOWN_FAILURES_MAX: usize = 5;
/// Characters of a failure's cells.
const FAILURE_CHARS_MAX: usize = 160;

/// One receipt for a person.
pub fn print<'r>(printer: Printer, receipt: &'r EvaluationReceipt) {
    let tone = match receipt.state {
        EvaluationState::Completed => Tone::Good,
        EvaluationState::Running => Tone::Warning,
        EvaluationState::Failed => Tone::Bad,
    };
    let state = printer.tone(tone, receipt.state.as_str());
    printer.line(printer.tone(Tone::Bold, &receipt.evaluation_id) + " " + state);
    if let Some(failure) = &receipt.failure {
        printer.line(format!("  {}", failure));
    }
    identity(printer, receipt);
    estimates(printer, "Metrics", vec![(String::new(), &receipt.metrics)]);
    let slices = receipt.slices.as_array().into_iter().flatten();
    let named = |slice: &'r Value| {
        (format!("{} ({})", text_at(slice, "name"), text_at(slice, "verdict")), &slice["metrics"])
    };
    estimates(printer, "Slices", slices.map(named).collect());
    fairness(printer, &receipt.fairness);
    comparison(printer, receipt);
    gates(printer, &receipt.gates);
    failures(printer, &receipt.sampled_failures);
    let notes: Vec<&str> = receipt.notes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !notes.is_empty() {
        heading(printer, "Notes");
        notes.iter().for_each(|note| printer.line(format!("  - {}", note)));
    }
}

fn gates(printer: Printer, gates: &Value) {
    let gates = gates.as_array().map(Vec::as_slice).unwrap_or_default();
    if gates.is_empty() {
        return;
    }
    heading(printer, "Gates");
    let tone = |verdict: &str| match verdict {
        "pass" => Tone::Good,
        "fail" => Tone::Bad,
        _ => Tone::Warning,
    };
    let row = |gate: &Value| {
        let verdict = text_at(gate, "verdict");
        row![
            format!("  {}", text_at(gate, "rule")),
            printer.tone(tone(&verdict), &verdict),
            text_at(gate, "why"),
        ]
    };
    printer.table(&["  gate", "verdict", "why"], gates.iter().map(row).collect());
}

fn text_at(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn heading(printer: Printer, text: &str) {
    printer.line("");
    printer.line(printer.tone(Tone::Bold, text));
}

fn fact(printer: Printer, name: &str, text: &str) {
    printer.line(format!("  {name:<12} {}", text));
}

/// What is bound to what.
fn identity(printer: Printer, receipt: &EvaluationReceipt) {
    let step = receipt.step.map(|step| format!("step {step} of ")).unwrap_or_default();
    fact(printer, "weights", &format!("{step}`{}` ({})", receipt.name, receipt.run_id));
    fact(printer, "manifest", &receipt.checkpoint_manifest_sha256);
    let digest = receipt.evaluator.digest.as_deref().map(|digest| format!(", sha256:{}", short_hash(digest)));
    let tool =
        if receipt.origin == "trackway" { String::new() } else { format!(", from {}", receipt.origin) };
    fact(printer, "evaluator", &format!("{}{}{tool}", receipt.evaluator.name, digest.unwrap_or_default()));
    if let Some(set) = &receipt.task_set {
        let path = set.path.as_str().unwrap_or("tasks");
        let version = set.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let hash = set.sha256.as_deref().map(short_hash).unwrap_or("–");
        let used = match set.use_count {
            0 => String::new(),
            1 => ", used for the first time".into(),
            count => format!(", used {count} times, for {}", counted(set.checkpoint_count, "checkpoint")),
        };
        fact(printer, "tasks", &format!("{path}{version}, sha256:{hash}{used}"));
    }
    if !receipt.decoding.is_null() {
        fact(printer, "decoding", &receipt.decoding.to_string());
    }
    if let Some(judge) = &receipt.judge {
        let rubric = judge.rubric.as_deref().map(|rubric| format!(", rubric {rubric}")).unwrap_or_default();
        fact(printer, "judge", &format!("{}{rubric}", judge.model.as_deref().unwrap_or("–")));
    }
    if let Some(raw) = &receipt.raw_outputs {
        let rows = raw.rows.map(|rows| format!("{} in ", counted(rows, "row"))).unwrap_or_default();
        fact(printer, "outputs", &format!("{rows}{}", raw.path));
    }
    if receipt.launches.len() > 1 {
        let ends: Vec<&str> =
            receipt.launches.iter().filter_map(|launch| launch.termination_reason.as_deref()).collect();
        fact(printer, "launches", &ends.join(", then "));
    }
}

/// Tables of numbers with their intervals, one line each.
fn estimates(printer: Printer, title: &str, of: Vec<(String, &Value)>) {
    let mut rows = Vec::new();
    for (slice, metrics) in of {
        for (name, estimate) in metrics.as_object().into_iter().flatten() {
            let number = |member: &str| estimate.get(member).and_then(Value::as_f64);
            let interval = number("low").zip(number("high"));
            rows.push(vec![
                format!("  {slice}"),
                name.clone(),
                number("value").map(metric).unwrap_or_default(),
                interval.map(|(low, high)| format!("{} … {}", metric(low), metric(high))).unwrap_or_default(),
                rows_behind(estimate),
            ]);
        }
    }
    if rows.is_empty() {
        return;
    }
    heading(printer, title);
    let first = if rows.iter().all(|row| row[0].trim().is_empty()) { "" } else { "  slice" };
    printer.table(&[first, "metric", "value", "interval", "rows"], rows);
}

/// The rows behind a number; `10 of 1000` where it does not cover all that it should.
fn rows_behind(estimate: &Value) -> String {
    let coverage = RowCoverage::deserialize(&estimate["coverage"]).unwrap_or_default();
    let support = estimate["support"].as_u64().filter(|rows| *rows > 0);
    match coverage.is_partial() {
        true => format!("{} of {}", coverage.rows_used, coverage.rows_expected),
        false => support.map(|rows| rows.to_string()).unwrap_or_default(),
    }
}

fn fairness(printer: Printer, fairness: &Value) {
    let columns = fairness.as_array().into_iter().flatten();
    let named = |one: &'_ Value| text_at(one, "column");
    let of: Vec<(String, &Value)> = columns.map(|one| (named(one), &one["measures"])).collect();
    estimates(printer, "Fairness", of);
}

/// Each metric on both sides, and what is to be thought of it.
fn comparison(printer: Printer, receipt: &EvaluationReceipt) {
    let compared = receipt.baseline_evaluation_id.as_ref().filter(|_| !receipt.comparison.is_null());
    let Some(baseline) = compared else { return };
    heading(printer, &format!("Compared with {baseline}"));
    let row = |name: String, compared: &Value| {
        let number = |value: &Value| value.as_f64().map(metric).unwrap_or_default();
        let difference = &compared["difference"];
        vec![
            format!("  {name}"),
            number(&compared["baseline"]),
            number(&compared["candidate"]),
            number(&difference["value"]),
            format!("{} … {}", number(&difference["low"]), number(&difference["high"])),
            text_at(compared, "verdict").replace('_', " "),
        ]
    };
    let metrics = receipt.comparison["metrics"].as_object().into_iter().flatten();
    let mut rows: Vec<Vec<String>> = metrics.map(|(name, compared)| row(name.clone(), compared)).collect();
    for slice in receipt.comparison["slices"].as_array().into_iter().flatten() {
        rows.push(row(format!("slice {}", text_at(slice, "name")), &slice["compared"]));
    }
    printer.table(&["  metric", "baseline", "candidate", "difference", "interval", "verdict"], rows);
}

fn failures(printer: Printer, failures: &Value) {
    let sample: Vec<&Value> = failures["sample"].as_array().into_iter().flatten().collect();
    if sample.is_empty() {
        return;
    }
    let (wrong, rows) = (&failures["wrong"], &failures["rows"]);
    let what = if failures["kind"] == "farthest" { "with the largest errors" } else { "wrong" };
    heading(printer, &format!("Failures ({wrong} of {rows} rows {what}; a sample)"));
    for failure in sample.iter().take(SHOWN_FAILURES_MAX) {
        let cells = cut(&failure["cells"].to_string(), FAILURE_CHARS_MAX);
        printer.line(format!("  row {}: {cells}", failure["row"]));
    }
}
