use std::path::Path;

use trackway_api::data::{LabelCount, SplitAnswer, SplitPart};
use trackway_core::with_fields_of;
use trackway_flows::data::ReadContext;
use trackway_flows::data::split::{SplitColumns, SplitMethod, SplitRequest, split as make};

use super::{code, print_reading, reading, table};
use crate::args::SplitArgs;
use crate::exit::{BLOCKED, Exit, Failure};
use crate::printer::{Printer, Tone};
use crate::units::counted;

/// Labels shown per part; `--json` has all.
const SHOWN_LABELS: usize = 6;

pub fn split(args: &SplitArgs, read: &ReadContext, printer: Printer) -> Exit {
    let request = with_fields_of!(
        SplitRequest,
        &args,
        [folds, seed, out],
        columns: with_fields_of!(SplitColumns, &args, [key, label, group, time]),
        table: table(&args.table, read),
        method: method(args)?,
        parts: args.parts.iter().map(|text| part(text)).collect::<Result<_, _>>()?,
        rungs: args.rungs.iter().map(|text| share(text)).collect::<Result<_, _>>()?,
        write_parts: args.write_rows,
    );
    let answer = reading(printer, |observer| make(Path::new(""), &request, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(if answer.proved { code(answer.rows, answer.rows_rejected) } else { BLOCKED })
}

/// The method given by name, or implied by the named columns.
fn method(args: &SplitArgs) -> Result<SplitMethod, Failure> {
    Ok(match (args.strategy, &args.group, &args.time) {
        (Some(method), _, _) => method,
        (None, None, None) => SplitMethod::Hash,
        (None, Some(_), None) => SplitMethod::Group,
        (None, None, Some(_)) => SplitMethod::Time,
        (None, Some(_), Some(_)) => {
            let hint =
                "choose with --strategy group or --strategy time; the overlap in the other is reported";
            return Err(Failure::usage("rows are split by group or by time, not by both", hint));
        }
    })
}

fn part(text: &str) -> Result<(String, f64), Failure> {
    let wrong =
        || Failure::usage(format!("invalid part `{text}`"), "expected e.g. --parts train=0.8,test=0.2");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.trim().to_owned(), share(value)?))
}

/// `0.1` or `10%`.
fn share(text: &str) -> Result<f64, Failure> {
    let (digits, unit) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text.trim(), 1.0),
    };
    let wrong = |_| Failure::usage(format!("invalid fraction `{text}`"), "expected e.g. 0.1 or 10%");
    digits.trim().parse::<f64>().map(|number| number / unit).map_err(wrong)
}

fn print(printer: Printer, answer: &SplitAnswer) {
    let has_labels = answer.parts.iter().any(|part| !part.labels.is_empty());
    let mut header = vec!["part", "rows", "fraction"];
    header.extend(has_labels.then_some("labels"));
    let cells = |part: &SplitPart| {
        let mut cells =
            vec![part.name.clone(), part.rows.to_string(), format!("{:.2} %", part.fraction * 100.0)];
        let share = |rows: u64| rows as f64 / part.rows.max(1) as f64 * 100.0;
        let label = |it: &LabelCount| format!("{} {:.2} %", it.label, share(it.rows));
        let shown: Vec<String> = part.labels.iter().take(SHOWN_LABELS).map(label).collect();
        cells.extend(has_labels.then(|| shown.join(", ")));
        cells
    };
    printer.table(&header, answer.parts.iter().map(cells).collect());
    printer.line("");
    if !answer.folds.is_empty() {
        let folds: Vec<String> = answer.folds.iter().map(u64::to_string).collect();
        printer.line(format!(
            "{} of `{}`: {} rows",
            counted(folds.len() as u64, "fold"),
            answer.parts[0].name,
            folds.join(", ")
        ));
    }
    for rung in &answer.rungs {
        printer.line(format!(
            "rung {} %: {} of `{}`",
            rung.fraction * 100.0,
            counted(rung.rows, "row"),
            answer.parts[0].name
        ));
    }
    for line in proof(answer) {
        printer.line(&line);
    }
    if answer.rows_rejected > 0 {
        let line = format!("{} could not be read; no part has them", counted(answer.rows_rejected, "row"));
        printer.point(Tone::Warning, line);
    }
    print_reading(printer, &answer.reading);
    if !answer.proved {
        printer.line(printer.tone(Tone::Bad, "verification failed; nothing was written"));
    }
    for path in answer.assignment.iter().chain(&answer.files) {
        printer.line(format!("wrote {}", path.display()));
    }
}

fn proof(answer: &SplitAnswer) -> Vec<String> {
    let proof = &answer.proof;
    let mut facts = Vec::new();
    if answer.parts.len() > 1 {
        facts.push(format!("equal rows in two parts: {}", proof.rows_shared));
        facts.extend(proof.groups_shared.map(|count| format!("groups in two parts: {count}")));
        facts.extend(proof.times_overlapping.map(|count| format!("parts that overlap in time: {count}")));
    }
    facts.extend(proof.folds_shared.map(|count| format!("rows in two folds: {count}")));
    facts.extend(proof.rungs_not_nested.map(|count| format!("rows missing from a larger rung: {count}")));
    facts.push(format!("rows without a part: {}", proof.rows_without_part));
    let mut lines = vec![format!("verified: {}", facts.join(" · "))];
    if proof.rows_shared > 0 && answer.proved {
        lines.push(format!(
            "{} different rows appear in two parts; `--strategy hash` keeps equal rows together",
            proof.rows_shared
        ));
    }
    lines
}
