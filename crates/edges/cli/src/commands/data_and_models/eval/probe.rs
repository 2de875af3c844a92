use std::path::Path;

use trackway_api::models::ProbeReport;
use trackway_core::with_fields_of;
use trackway_flows::data::ReadContext;
use trackway_flows::evaluation::probe::parts::{
    Dependence, Estimate, Importance, Perturbation, ProbePart, ProbeSettings, Sensitivity, SmallStep,
};
use trackway_flows::evaluation::probe::{ProbeRequest, probe as ask};

use super::residuals;
use crate::args::ProbeArgs;
use crate::commands::data_and_models::data::{reading, table};
use crate::exit::{Exit, Failure};
use crate::page::save;
use crate::printer::{Printer, Tone, cut};
use crate::sparkline::sparkline;
use crate::units::{between, counted, duration, known, metric};

/// Rows of a table that a person is shown; `--json` has all.
const SHOWN_MAX: usize = 15;
const CURVE_WIDTH: usize = 20;
const REASON_LETTERS_MAX: usize = 60;

pub fn probe(args: &ProbeArgs, read: &ReadContext, printer: Printer) -> Exit {
    if args.rows == 0 || args.permutations == 0 || args.grid < 2 {
        let message = "--rows and --permutations must be at least 1, and --grid at least 2";
        return Err(Failure::usage(message, "leave them out for the usual ones"));
    }
    let request = request(args, read);
    request.table.refuse_outputs(Path::new(""), args.html.as_deref())?;
    let on_part = |part: ProbePart| printer.note(format!("probing {}", part.as_str()));
    let report = reading(printer, |observer| ask(Path::new(""), &request, observer, &on_part))?;
    if let Some(path) = &args.html {
        let subject = format!("`{}` with {}", args.command, args.table.paths.join(", "));
        save(path, "page", printer, |about| trackway_pages::probe(&subject, &report, about))?;
    }
    printer.answer(&report, || print(printer, &report));
    Ok(0)
}

fn request(args: &ProbeArgs, read: &ReadContext) -> ProbeRequest {
    with_fields_of!(
        ProbeRequest,
        &args,
        [command, label, positive, loss, threshold, features, skip, rows],
        table: table(&args.table, read),
        format: args.batches,
        patience_seconds: None,
        keeps_errors: false,
        settings: ProbeSettings {
            parts: if args.only.is_empty() { ProbePart::ALL.to_vec() } else { args.only.clone() },
            repeats: args.permutations,
            grid: args.grid,
            seed: args.seed,
            ..ProbeSettings::default()
        },
    )
}

fn print(printer: Printer, report: &ProbeReport) {
    let found = &report.found;
    if let Some(it) = &found.residuals {
        residuals::print(printer, it);
        printer.line("");
    }
    section(
        printer,
        "importance",
        &["feature", "error rises by", "interval"],
        found.importance.iter().map(importance),
    );
    section(
        printer,
        "dependence",
        &["feature", "class", "mean prediction", "first", "last"],
        found.dependence.iter().flat_map(dependence),
    );
    let mut perturbations: Vec<&Perturbation> = found.perturbations.iter().collect();
    let harm = |it: &Perturbation| {
        let flipped = it.flipped.map(|flipped| flipped.value);
        (it.refused.is_some(), flipped.or(it.shift).unwrap_or(0.0))
    };
    perturbations.sort_by(|one, other| {
        let (one, other) = (harm(one), harm(other));
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    section(
        printer,
        "perturbations",
        &["feature", "change", "flipped", "mean shift", "error rises by"],
        perturbations.into_iter().map(perturbation),
    );
    if let Some(it) = &found.sensitivity {
        sensitivity(printer, it);
    }
    if let Some(why) = &found.no_sensitivity {
        printer.line(printer.tone(Tone::Dim, format!("sensitivity was not computed: {why}")));
    }
    let error = found.error.map_or(String::new(), |error| format!(", average error {}", metric(error.value)));
    printer.line(format!(
        "{} of {} used{error}; the model scored {} in {}",
        found.rows,
        counted(report.rows_read, "row"),
        counted(found.scored_rows, "row"),
        duration(report.seconds)
    ));
}

/// A table under its name; nothing where it is empty.
fn section(printer: Printer, name: &str, header: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let more = rows.len().saturating_sub(SHOWN_MAX);
    rows.truncate(SHOWN_MAX);
    printer.line(printer.tone(Tone::Dim, name));
    printer.table(header, rows);
    if more > 0 {
        printer.line(format!("… {more} more; --json has all"));
    }
    printer.line("");
}

fn importance(it: &Importance) -> Vec<String> {
    vec![it.feature.clone(), metric(it.increase.value), between(it.increase.interval.bounds(), "to")]
}

fn dependence(it: &Dependence) -> Vec<Vec<String>> {
    let row = |curve: &trackway_flows::evaluation::probe::parts::Curve| {
        let end = |at: Option<(&f64, &String)>| {
            at.map_or_else(String::new, |(mean, value)| format!("{} at {}", metric(*mean), value))
        };
        let mut ends = curve.mean.iter().zip(&it.values);
        vec![
            it.feature.clone(),
            curve.class.clone().unwrap_or_default(),
            sparkline(&curve.mean, CURVE_WIDTH),
            end(ends.next()),
            end(ends.next_back()),
        ]
    };
    it.curves.iter().map(row).collect()
}

fn perturbation(it: &Perturbation) -> Vec<String> {
    let flipped = it.flipped.map(|flipped| format!("{:.1} %", flipped.value * 100.0));
    let flipped = match &it.refused {
        Some(why) => format!("refused: {}", cut(why, REASON_LETTERS_MAX)),
        None => flipped.unwrap_or_else(|| "–".to_owned()),
    };
    let rises = known(it.increase.map(|increase| increase.value));
    vec![it.feature.clone(), it.kind.label().to_owned(), flipped, known(it.shift), rises]
}

fn sensitivity(printer: Printer, it: &Sensitivity) {
    section(
        printer,
        "sensitivity: small steps along the gradient",
        &["standard deviations", "flipped", "in a random direction", "mean shift", "in a random direction"],
        it.steps.iter().map(small_step),
    );
    let slope = |slope: &trackway_flows::evaluation::probe::parts::Slope| {
        vec![slope.feature.clone(), metric(slope.per_deviation.value)]
    };
    section(printer, "slopes", &["feature", "shift per standard deviation"], it.slopes.iter().map(slope));
    if !it.check.features.is_empty() {
        let names = it.check.features.join(", ");
        let message = format!("the gradients of {names} do not match the predictions");
        printer.line(printer.tone(Tone::Warning, message));
        printer.line("");
    }
}

fn small_step(it: &SmallStep) -> Vec<String> {
    let share = |share: Option<Estimate>| {
        share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share.value * 100.0))
    };
    let (along, random) = (share(it.flipped), share(it.flipped_at_random));
    vec![it.deviations.to_string(), along, random, metric(it.shift), metric(it.shift_at_random)]
}
