//! `trackway eval`: evaluations run, listed, shown and imported; and what is computed from a table of predictions
//! alone: metrics, slices, probes and scores.

pub mod cross_validate;
pub mod metrics;
mod probe;
mod residuals;
mod score;
pub mod slices;
mod text;

use std::path::PathBuf;

use trackway_api::models::evaluations::{Estimate, EvaluationReceipt, ListedEvaluation};
use trackway_core::registry::GateVerdict;
use trackway_engine::Context;
use trackway_engine::page::Page;
use trackway_flows::checkpoints::CheckpointRef;
use trackway_flows::evaluation::evaluate;
use trackway_flows::evaluation::evaluate::{EvaluateRequest, EvaluationSubject, ImportRequest};
use trackway_flows::outputs;
use trackway_ledger::EvaluationState;
use trackway_rules::gate::JudgedGate;

use crate::args::{EvalImportArgs, EvalLsArgs, EvalRunArgs, EvalShowArgs, ReportArgs};
use crate::commands::live::supervised;
use crate::commands::patch_of;
use crate::commands::sections::note_more;
use crate::exit::{Exit, Failure, INSUFFICIENT, NOT_COMPLETED};
use crate::page::save;
use crate::printer::Printer;
use crate::units::{counted, metric, short_hash, timestamp};

pub use probe::probe;
pub use score::score;

/// Metrics in a line of a list.
const LISTED_METRICS_MAX: usize = 3;

/// The run file that the command names, if it names one.
pub fn run_file(args: &EvalRunArgs) -> Option<PathBuf> {
    let path = PathBuf::from(&args.subject);
    path.is_file().then_some(path)
}

pub fn run(context: &Context, args: &EvalRunArgs, printer: Printer) -> Exit {
    let checkpoint = args.checkpoint.as_deref().map(CheckpointRef::parse).transpose()?;
    let subject = match run_file(args) {
        Some(path) => EvaluationSubject::File(path),
        None => EvaluationSubject::Run(context.resolve_run(&args.subject)?),
    };
    let request = EvaluateRequest {
        subject,
        checkpoint,
        patch: patch_of(&args.overrides)?,
        test_sets: args.test_sets.clone(),
        is_gate_test: false,
        accepts_unsafe: args.accepts.why(),
    };
    let receipt = supervised(context, printer, |live| evaluate::evaluate(context, &request, live))?;
    write(context, &receipt, &args.files, printer)?;
    printer.answer(&receipt, || text::print(printer, &receipt));
    Ok(exit_code(&receipt))
}

pub fn import(context: &Context, args: &EvalImportArgs, printer: Printer) -> Exit {
    let request = ImportRequest {
        path: args.path.clone(),
        run: context.resolve_run(&args.run)?,
        checkpoint: CheckpointRef::parse(&args.checkpoint)?,
    };
    let imported = evaluate::import_evaluations(context, &request)?;
    printer.answer(&imported, || {
        for one in &imported {
            let receipt = &one.receipt;
            let what = if one.is_new { "imported" } else { "known already" };
            let task = receipt.task_set.as_ref().and_then(|set| set.path.as_deref()).unwrap_or_default();
            let metrics = receipt.failure.clone().unwrap_or_else(|| few_metrics(receipt));
            let text = format!("{what}: {} {task}: {metrics}", receipt.evaluation_id);
            printer.line(&text);
        }
    });
    Ok(0)
}

/// Whether the evaluator gave an answer, and every gate passes. A run whose evaluation failed ends with its code: whether the
/// gates pass is unknown.
pub fn exit_code(receipt: &EvaluationReceipt) -> u8 {
    match receipt.state {
        EvaluationState::Completed if receipt.passes() => 0,
        EvaluationState::Completed => INSUFFICIENT,
        EvaluationState::Running | EvaluationState::Failed => NOT_COMPLETED,
    }
}

pub fn list(context: &Context, args: &EvalLsArgs, printer: Printer) -> Exit {
    let run = args.run.as_deref().map(|run| context.resolve_run(run)).transpose()?;
    let after = args.page.after.as_deref().map(|word| context.resolve_evaluation(word)).transpose()?;
    let after = after.map(|row| row.evaluation_id);
    let page = evaluate::evaluations(context, run, &Page { after, limit: args.page.limit })?;
    let receipts = page.entries;
    if printer.is_json() {
        printer.document(&listed(receipts, page.next));
    } else if receipts.is_empty() && args.page.after.is_some() {
        printer.note("no more evaluations");
    } else if receipts.is_empty() {
        printer.note("no evaluations yet; start one with: trackway eval run FILE");
    } else {
        let header = ["evaluation", "run", "step", "evaluator", "tasks", "state", "rows", "metrics", "began"];
        printer.table(&header, receipts.iter().map(cells).collect());
        other_code(printer, "", &receipts);
        note_more(printer, page.more_count, "evaluation", page.next);
    }
    Ok(0)
}

/// The evaluations, the last one with the `--after` of the next page, if there is one.
fn listed(receipts: Vec<EvaluationReceipt>, next: Option<String>) -> Vec<ListedEvaluation> {
    let unpaged = |receipt| ListedEvaluation { receipt, next: None };
    let mut listed: Vec<ListedEvaluation> = receipts.into_iter().map(unpaged).collect();
    if let Some(last) = listed.last_mut() {
        last.next = next;
    }
    listed
}

pub fn show(context: &Context, args: &EvalShowArgs, printer: Printer) -> Exit {
    let receipt = evaluate::evaluation(context, &context.resolve_evaluation(&args.evaluation)?)?;
    write(context, &receipt, &args.files, printer)?;
    printer.answer(&receipt, || text::print(printer, &receipt));
    Ok(0)
}

/// The page and the numbers, if requested.
fn write(
    context: &Context,
    receipt: &EvaluationReceipt,
    files: &ReportArgs,
    printer: Printer,
) -> Result<(), Failure> {
    outputs::refuse_outputs(
        context,
        [&files.html, &files.parquet].into_iter().flatten().map(PathBuf::as_path),
    )?;
    if let Some(path) = &files.html {
        save(path, "page", printer, |about| trackway_pages::evaluation(receipt, about))?;
    }
    if let Some(path) = &files.parquet {
        evaluate::write_evaluation_numbers(context, receipt, path)?;
        printer.note(format!("wrote the numbers to {}", path.display()));
    }
    Ok(())
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
        evaluator_name(receipt),
        receipt.test_set.clone().or(tasks).unwrap_or_default(),
        receipt.state.to_string(),
        rows.map(|rows| rows.to_string()).unwrap_or_default(),
        few_metrics(receipt),
        timestamp(receipt.started_at),
    ]
}

/// Which evaluations are by other code than that of the same weights before them.
pub fn other_code(printer: Printer, indent: &str, receipts: &[EvaluationReceipt]) {
    for receipt in receipts {
        if let Some(other) = receipt.other_code(receipts) {
            printer.line(format!("{indent}{} is {other}", receipt.evaluation_id));
        }
    }
}

/// The evaluator, marked where it evaluated a model that is known to be bad.
pub fn evaluator_name(receipt: &EvaluationReceipt) -> String {
    let mark = if receipt.is_gate_test() { " (gate test)" } else { "" };
    format!("{}{mark}", receipt.evaluator.name)
}

/// How many gates pass, those of further test sets apart; nothing without gates.
pub fn gate_summary(receipt: &EvaluationReceipt) -> Option<String> {
    let (count, unmet) = (receipt.gates.len() as u64, unmet_gates(receipt).count() as u64);
    match (count, unmet) {
        (0, _) => None,
        (1, 0) => Some("the gate passes".into()),
        (_, 0) => Some(format!("all {count} gates pass")),
        (_, 1) => Some(format!("1 of {} does not pass", counted(count, "gate"))),
        _ => Some(format!("{unmet} of {} do not pass", counted(count, "gate"))),
    }
}

/// What does not pass, with the reason: gates, then further test sets.
pub fn unmet_lines(receipt: &EvaluationReceipt) -> Vec<String> {
    let gates = unmet_gates(receipt).map(|gate| format!("`{}` {}: {}", gate.rule, gate.verdict, gate.why));
    let sets = receipt.test_sets.iter().filter(|set| !set.passes());
    let sets = sets.map(|set| match &set.evaluation_id {
        Some(id) => format!("test set `{}` does not pass: trackway eval show {id}", set.name),
        None => format!("test set `{}` was not evaluated", set.name),
    });
    gates.chain(sets).collect()
}

fn unmet_gates(receipt: &EvaluationReceipt) -> impl Iterator<Item = &JudgedGate> {
    receipt.gates.iter().filter(|gate| gate.verdict != GateVerdict::Pass)
}

/// `accuracy 0.84, f1 0.7, …`, and of how many rows where some are missing.
pub fn few_metrics(receipt: &EvaluationReceipt) -> String {
    let shown =
        |(name, it): (&String, &Estimate)| format!("{name} {}{}", metric(it.value), it.of_some_rows());
    let mut shown: Vec<String> = receipt.metrics.iter().map(shown).collect();
    if shown.len() > LISTED_METRICS_MAX {
        shown.truncate(LISTED_METRICS_MAX);
        shown.push("…".into());
    }
    shown.join(", ")
}
