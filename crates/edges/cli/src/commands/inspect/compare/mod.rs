//! `trackway compare`: runs side by side in the terminal, as JSON, or as one HTML page.

use trackway_api::runs::compare::{ComparedValue, RunComparison};
use trackway_engine::Context;
use trackway_flows::outputs;
use trackway_inspect::compare;
use trackway_pages::{figures, labels};

use super::list::plain_names;
use crate::args::CompareArgs;
use crate::exit::Exit;
use crate::page::save;
use crate::printer::{Printer, Tone};
use crate::signals;
use crate::sparkline::sparkline;
use crate::units::{counted, metric, shortened};

/// Bars of a curve in the terminal.
const CURVE_WIDTH: usize = 24;
/// The rung of a run that trains on all of its data.
const WHOLE: &str = "100%";
/// A longer value is cut in the terminal.
const VALUE_LETTERS: usize = 32;

pub fn compare(context: &Context, args: &CompareArgs, printer: Printer) -> Exit {
    signals::interruptible(&context.request.cancel);
    let runs = args.runs.iter().map(|run| context.resolve_run(run)).collect::<Result<Vec<_>, _>>()?;
    outputs::refuse_outputs(context, args.html.as_deref())?;
    let comparison = compare::compare(context, &runs, &plain_names(&args.metrics))?;
    if let Some(path) = &args.html {
        save(path, "comparison", printer, |about| trackway_pages::comparison(&comparison, about))?;
    }
    if printer.is_json() {
        printer.document(&comparison);
    } else if args.html.is_none() {
        show(&comparison, args.all, printer);
    }
    Ok(0)
}

fn show(comparison: &RunComparison, all: bool, printer: Printer) {
    let labels = labels(comparison);
    show_runs(comparison, &labels, printer);
    show_changes(comparison, &labels, printer);
    show_inputs(comparison, &labels, all, printer);
    show_results(comparison, &labels, printer);
}

/// The facts of each run.
fn show_runs(comparison: &RunComparison, labels: &[String], printer: Printer) {
    let mut runs: Vec<Vec<String>> = Vec::new();
    let mut fact = |name: &str, value: &dyn Fn(usize) -> String| {
        runs.push(std::iter::once(name.to_owned()).chain((0..labels.len()).map(value)).collect());
    };
    let of = &comparison.runs;
    fact("run", &|at| of[at].run_id.to_string());
    fact("state", &|at| of[at].state.to_string());
    fact("ended by", &|at| of[at].termination_reason.map(|reason| reason.to_string()).unwrap_or_default());
    fact("attempts", &|at| of[at].attempt_count.to_string());
    fact("took", &|at| of[at].took());
    if of.iter().any(|run| run.rung != WHOLE) {
        fact("rung", &|at| of[at].rung.clone());
    }
    if of.iter().any(|run| run.cost_usd.is_some()) {
        fact("cost", &|at| of[at].cost_usd.map(|usd| format!("{usd:.2} USD")).unwrap_or_default());
    }
    section("Runs", runs, labels, printer);
}

/// What changed from the first run to each other one.
fn show_changes(comparison: &RunComparison, labels: &[String], printer: Printer) {
    for (other, diff) in labels[1..].iter().zip(&comparison.changes) {
        printer.line(printer.tone(Tone::Bold, format!("Changed from {} to {other}", labels[0])));
        if diff.changes.is_empty() {
            printer.line(format!("  {}", diff.without_changes()));
        }
        for change in &diff.changes {
            printer.line(format!("  {:<12}{}", change.kind.as_str(), change.sentence()));
        }
        for unknown in &diff.unknown {
            printer.line(format!("  {:<12}{}", "not known", unknown.why));
        }
        printer.line("");
    }
}

/// What the runs were given; `all`: what is equal, too.
fn show_inputs(comparison: &RunComparison, labels: &[String], all: bool, printer: Printer) {
    for (title, rows) in [
        ("Parameters", &comparison.parameters),
        ("Settings", &comparison.config),
        ("Data", &comparison.data),
        ("Environment", &comparison.environment),
    ] {
        let shown: Vec<&ComparedValue> = rows.iter().filter(|row| all || row.differs).collect();
        let equal = rows.len() - shown.len();
        // What was varied is never cut.
        let whole = title == "Parameters";
        let cells = shown.iter().map(|row| {
            let values = row.values.iter().map(|value| value.as_deref().unwrap_or("–"));
            let values =
                values.map(|value| if whole { value.to_owned() } else { shortened(value, VALUE_LETTERS) });
            std::iter::once(row.name.clone()).chain(values).collect()
        });
        section(title, cells.collect(), labels, printer);
        if equal > 0 && !shown.is_empty() {
            printer.note(format!(
                "{} hidden in {title}, because they are equal; show them with --all",
                counted(equal as u64, "row")
            ));
        }
    }
}

/// What was measured.
fn show_results(comparison: &RunComparison, labels: &[String], printer: Printer) {
    let metrics = comparison.metrics.iter().map(|row| {
        let values = row.values.iter().map(|it| it.as_ref().map(figures).unwrap_or_else(|| "–".into()));
        std::iter::once(row.name.clone()).chain(values).collect()
    });
    section("Metrics: last (min … max)", metrics.collect(), labels, printer);
    let evaluations = comparison.evaluations.iter().map(|row| {
        let values = row.values.iter().map(|value| value.map_or_else(|| "–".into(), metric));
        std::iter::once(row.name.clone()).chain(values).collect()
    });
    section("Evaluations: the newest of each run", evaluations.collect(), labels, printer);
    let curves = comparison.curves.iter().filter(|curve| curve.series.iter().any(|series| series.len() > 1));
    let curves = curves.map(|curve| {
        let lines = curve.series.iter().map(|series| {
            let values: Vec<f64> = series.iter().map(|(_, value)| value.unwrap_or(f64::NAN)).collect();
            sparkline(&values, CURVE_WIDTH)
        });
        std::iter::once(curve.name.clone()).chain(lines).collect()
    });
    section("Curves", curves.collect(), labels, printer);
}

/// A table with a heading; nothing when it is empty.
fn section(title: &str, rows: Vec<Vec<String>>, labels: &[String], printer: Printer) {
    if rows.is_empty() {
        return;
    }
    printer.line(printer.tone(Tone::Bold, title));
    let header: Vec<&str> = std::iter::once("").chain(labels.iter().map(String::as_str)).collect();
    printer.table(&header, rows);
    printer.line("");
}
