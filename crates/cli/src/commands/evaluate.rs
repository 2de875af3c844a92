use std::path::PathBuf;

use serde_json::Value;
use trackway_app::App;
use trackway_app::checkpoints::CheckpointRef;
use trackway_app::evaluate::{EvaluateRequest, EvaluationReceipt, EvaluationSubject, ImportRequest};
use trackway_app::run::interrupt;
use trackway_ledger::EvaluationState;

use super::live::Live;
use crate::args::{EvaluateArgs, EvaluateCommand, EvaluateImportArgs, EvaluationCommand, EvaluationsArgs};
use crate::exit::{Failure, NOT_COMPLETED, REFUSED};
use crate::printer::{Printer, Tone, visible};
use crate::units::{metric, short_hash};

/// Metrics in a line of a list.
const LISTED_METRICS_MAX: usize = 3;
/// Failures that are shown; `--json` has all of the sample.
const SHOWN_FAILURES_MAX: usize = 5;
/// Characters of a failure's cells.
const FAILURE_CHARS_MAX: usize = 160;

/// The run file, when the subject names one.
pub fn file_of(args: &EvaluateArgs) -> Option<PathBuf> {
    let path = PathBuf::from(args.subject.as_deref()?);
    path.is_file().then_some(path)
}

pub fn evaluate(app: &App, args: &EvaluateArgs, printer: Printer) -> Result<u8, Failure> {
    if let Some(EvaluateCommand::Import(import)) = &args.command {
        return take_over(app, import, printer);
    }
    let checkpoint = CheckpointRef::parse(&args.checkpoint)?;
    let subject = match file_of(args) {
        Some(path) => EvaluationSubject::File(path),
        None => EvaluationSubject::Run(args.subject.clone().unwrap_or_default()),
    };
    let request = EvaluateRequest { subject, checkpoint, overrides: args.overrides.clone() };
    interrupt::install();
    let live = Live::new(printer);
    let receipt = app.evaluate(&request, &live);
    live.finish();
    let receipt = receipt?;
    if printer.is_json() {
        printer.document(&receipt);
    } else {
        page(printer, &receipt);
    }
    Ok(exit_code(&receipt))
}

fn take_over(app: &App, args: &EvaluateImportArgs, printer: Printer) -> Result<u8, Failure> {
    let request = ImportRequest {
        path: args.path.clone(),
        run: args.run.clone(),
        checkpoint: CheckpointRef::parse(&args.checkpoint)?,
    };
    let imported = app.import_evaluations(&request)?;
    if printer.is_json() {
        printer.document(&imported);
        return Ok(0);
    }
    for one in &imported {
        let receipt = &one.receipt;
        let what = if one.is_new { "imported" } else { "known already" };
        let task = receipt.task_set.as_ref().and_then(|set| set.path.as_str()).unwrap_or_default();
        let metrics = receipt.failure.clone().unwrap_or_else(|| few_metrics(receipt));
        let text = format!("{what}: {} {task}: {metrics}", receipt.evaluation_id);
        printer.line(&visible(&text));
    }
    Ok(0)
}

/// Whether the evaluator gave an answer, and every gate passes.
fn exit_code(receipt: &EvaluationReceipt) -> u8 {
    match receipt.state {
        EvaluationState::Completed if receipt.gates_pass() => 0,
        EvaluationState::Completed => REFUSED,
        EvaluationState::Running | EvaluationState::Failed => NOT_COMPLETED,
    }
}

pub fn evaluations(app: &App, args: &EvaluationsArgs, printer: Printer) -> Result<u8, Failure> {
    let receipts = app.evaluations(args.run.as_deref(), args.limit)?;
    if printer.is_json() {
        printer.document(&receipts);
    } else if receipts.is_empty() {
        printer.note("no evaluation yet; start one with: trackway evaluate FILE");
    } else {
        let header = ["evaluation", "run", "step", "evaluator", "tasks", "state", "rows", "metrics", "began"];
        printer.table(&header, receipts.iter().map(cells).collect());
    }
    Ok(0)
}

pub fn evaluation(app: &App, command: &EvaluationCommand, printer: Printer) -> Result<u8, Failure> {
    let EvaluationCommand::Show { evaluation } = command;
    let receipt = app.evaluation(evaluation)?;
    if printer.is_json() {
        printer.document(&receipt);
    } else {
        page(printer, &receipt);
    }
    Ok(0)
}

fn cells(receipt: &EvaluationReceipt) -> Vec<String> {
    let rows = receipt.raw_outputs.as_ref().and_then(|raw| raw.rows);
    let tasks = receipt.task_set.as_ref().map(|set| match (&set.version, &set.sha256) {
        (Some(version), _) => version.clone(),
        (None, Some(sha256)) => short_hash(sha256).to_owned(),
        (None, None) => String::new(),
    });
    vec![
        receipt.evaluation_id.clone(),
        receipt.name.clone(),
        receipt.step.map(|step| step.to_string()).unwrap_or_default(),
        receipt.evaluator.name.clone(),
        tasks.unwrap_or_default(),
        receipt.state.to_string(),
        rows.map(|rows| rows.to_string()).unwrap_or_default(),
        few_metrics(receipt),
        receipt.started_at.to_rfc3339().get(..19).unwrap_or_default().replace('T', " "),
    ]
}

/// `accuracy 0.84, f1 0.7, …`
pub fn few_metrics(receipt: &EvaluationReceipt) -> String {
    let Value::Object(metrics) = &receipt.metrics else { return String::new() };
    let shown = |(name, estimate): (&String, &Value)| {
        Some(format!("{name} {}", metric(estimate.get("value")?.as_f64()?)))
    };
    let mut shown: Vec<String> = metrics.iter().filter_map(shown).collect();
    if shown.len() > LISTED_METRICS_MAX {
        shown.truncate(LISTED_METRICS_MAX);
        shown.push("…".into());
    }
    shown.join(", ")
}

/// One receipt for a person.
fn page<'r>(printer: Printer, receipt: &'r EvaluationReceipt) {
    let tone = match receipt.state {
        EvaluationState::Completed => Tone::Good,
        EvaluationState::Running => Tone::Warning,
        EvaluationState::Failed => Tone::Bad,
    };
    let state = printer.tone(tone, receipt.state.as_str());
    printer.line(&format!("{} {state}", printer.tone(Tone::Bold, &receipt.evaluation_id)));
    if let Some(failure) = &receipt.failure {
        printer.line(&format!("  {}", visible(failure)));
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
        notes.iter().for_each(|note| printer.line(&format!("  - {}", visible(note))));
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
        vec![
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
    printer.line(&printer.tone(Tone::Bold, text));
}

fn fact(printer: Printer, name: &str, text: &str) {
    printer.line(&format!("  {name:<12} {}", visible(text)));
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
            1 => ", looked at for the first time".into(),
            count => format!(", looked at {count} times, for {} checkpoints", set.checkpoint_count),
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
        let rows = raw.rows.map(|rows| format!("{rows} rows in ")).unwrap_or_default();
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
                number("support").filter(|rows| *rows > 0.0).map(|rows| rows.to_string()).unwrap_or_default(),
            ]);
        }
    }
    if rows.is_empty() {
        return;
    }
    heading(printer, title);
    printer.table(&["  ", "metric", "value", "interval", "rows"], rows);
}

fn fairness(printer: Printer, fairness: &Value) {
    let columns = fairness.as_array().into_iter().flatten();
    let named = |one: &'_ Value| text_at(one, "column");
    let of: Vec<(String, &Value)> = columns.map(|one| (named(one), &one["measures"])).collect();
    estimates(printer, "Fairness", of);
}

/// Each metric on both sides, and what is to be thought of it.
fn comparison(printer: Printer, receipt: &EvaluationReceipt) {
    let Some(baseline) = &receipt.baseline_evaluation_id else { return };
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
    let what = if failures["kind"] == "farthest" { "farthest off" } else { "wrong" };
    heading(printer, &format!("Failures ({wrong} of {rows} rows {what}; a sample)"));
    for failure in sample.iter().take(SHOWN_FAILURES_MAX) {
        let cells = visible(&failure["cells"].to_string());
        let cut: String = cells.chars().take(FAILURE_CHARS_MAX).collect();
        let more = if cut.len() < cells.len() { "…" } else { "" };
        printer.line(&format!("  row {}: {cut}{more}", failure["row"]));
    }
}
