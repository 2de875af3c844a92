//! What a run measured, made and cost.

use trackway_api::models::evaluations::EvaluationReceipt;
use trackway_api::models::registry::ModelVersion;
use trackway_api::runs::explain::{Explanation, MetricSummary};
use trackway_flows::data::{ReadNote, sentences};

use crate::commands::data_and_models::eval::{evaluator_name, few_metrics, gate_summary, other_code};
use crate::commands::sections::{fact, lines, more, optional, section};
use crate::printer::Printer;
use crate::units::{counted, duration, known};

const METRICS_MAX: usize = 12;
const LEFT_OUT_MAX: usize = 12;

pub(super) fn metrics(printer: Printer, metrics: &[MetricSummary]) {
    let rows = metrics
        .iter()
        .take(METRICS_MAX)
        .map(|line| {
            vec![
                format!("  {}", line.name),
                line.count.to_string(),
                known(line.first),
                known(line.last),
                known(line.min),
                known(line.max),
                if line.non_finite_count > 0 { line.non_finite_count.to_string() } else { String::new() },
            ]
        })
        .collect();
    printer.table(&["  metric", "points", "first", "last", "min", "max", "not finite"], rows);
    more(printer, metrics.len().saturating_sub(METRICS_MAX), "metrics");
}

/// What of the output, of files of metrics or of an import was left out or changed.
pub(super) fn left_out(printer: Printer, notes: &[ReadNote]) {
    lines(printer, sentences(notes.iter().take(LEFT_OUT_MAX)));
    more(printer, notes.len().saturating_sub(LEFT_OUT_MAX), "reading");
}

pub(super) fn versions(printer: Printer, versions: &[ModelVersion]) {
    for one in versions {
        let step = one.step.map(|step| format!("step {step}, ")).unwrap_or_default();
        let aliases = one.aliases.iter().map(|alias| format!(", `{alias}`")).collect::<String>();
        printer.line(format!("  {} version {}: {step}{}{aliases}", one.model, one.version, one.stage));
    }
}

pub(super) fn evaluations(printer: Printer, evaluations: &[EvaluationReceipt]) {
    let cells = |evaluation: &EvaluationReceipt| {
        let step = evaluation.step.map(|step| step.to_string());
        let result = evaluation.failure.clone().unwrap_or_else(|| few_metrics(evaluation));
        vec![
            format!("  {}", evaluation.evaluation_id),
            step.unwrap_or_default(),
            evaluator_name(evaluation),
            evaluation.state.to_string(),
            gate_summary(evaluation).unwrap_or_default(),
            result,
        ]
    };
    let columns = ["  evaluation", "step", "evaluator", "state", "gates", ""];
    printer.table(&columns, evaluations.iter().map(cells).collect());
    other_code(printer, "  ", evaluations);
}

pub(super) fn cost(printer: Printer, page: &Explanation) {
    section(printer, "Cost");
    let cost = &page.cost;
    let running = || {
        cost.running_seconds
            .map_or_else(|| "not known".into(), |so_far| format!("{} so far", duration(so_far)))
    };
    let took = cost.wall_seconds.map_or_else(running, duration);
    let cpu = cost.cpu_seconds.map(|seconds| format!(", {} of CPU", duration(seconds))).unwrap_or_default();
    // A run without a GPU has no hours of one.
    let gpu_hours = |seconds: f64| match seconds > 0.0 {
        true => format!(", {:.2} GPU hours", seconds / 3600.0),
        false => String::new(),
    };
    let gpu = cost.gpu_seconds.map(gpu_hours).unwrap_or_default();
    let usd = cost.cost_usd.map(|usd| format!(", {usd:.2} USD")).unwrap_or_default();
    fact(printer, "attempt", format!("{took}{cpu}{gpu}{usd}"));
    let usd = cost.run_cost_usd.map(|usd| format!(", {usd:.2} USD")).unwrap_or_default();
    let (took, gpu) = (duration(cost.run_wall_seconds), gpu_hours(cost.run_gpu_seconds));
    fact(printer, "run", format!("{took} in all attempts{gpu}{usd}"));
    if let Some(beside) = &cost.beside {
        let usd = beside.cost_usd.map(|usd| format!(", {usd:.2} USD")).unwrap_or_default();
        let launched = match beside.runs {
            1 => "1 evaluation, diagnosis or rehearsal".to_owned(),
            runs => format!("{runs} evaluations, diagnoses and rehearsals"),
        };
        fact(printer, "beside", format!("{} in {launched}{usd}", duration(beside.wall_seconds)));
    }
    let lost = cost.run_lost_steps.filter(|lost| *lost > 0);
    let of_this = cost.lost_steps.unwrap_or(0);
    let beside = move |lost: u64| if lost == of_this { "" } else { ", in all attempts" };
    let text = |lost| format!("{} that do not count{}", counted(lost, "step"), beside(lost));
    optional(printer, "lost", lost.map(text));
}
