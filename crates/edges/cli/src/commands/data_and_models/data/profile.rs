use std::path::Path;

use trackway_api::data::ProfileAnswer;
use trackway_engine::home::Home;
use trackway_flows::data::ReadContext;
use trackway_flows::data::profile::{ColumnSummary, ProfileRequest, Value, profile as profile_table};

use super::{code, reading, table};
use crate::args::ProfileArgs;
use crate::exit::Exit;
use crate::printer::{Printer, Tone};
use crate::sparkline::sparkline;
use crate::units::{bytes, counted, metric, shortened};

/// Letters of a value in the table; `--json` has all of them.
const SHOWN_LETTERS: usize = 20;

/// Values shown per column.
const SHOWN_VALUES: usize = 3;

/// Width of a distribution.
const CURVE_WIDTH: usize = 12;

pub fn profile(home: &Home, args: &ProfileArgs, read: &ReadContext, printer: Printer) -> Exit {
    let request = ProfileRequest {
        table: table(&args.table, read),
        label: args.label.clone(),
        save_to: args.out.clone(),
    };
    let answer = reading(printer, |observer| profile_table(home, Path::new(""), &request, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(code(answer.rows, answer.rows_rejected))
}

fn print(printer: Printer, answer: &ProfileAnswer) {
    let has_label = answer.label.is_some();
    let mut header = vec!["column", "type", "missing", "distinct", "min", "mean", "max", "distribution"];
    header.extend(has_label.then_some("label association"));
    header.push("most frequent");
    let rows = answer.columns.iter().map(|column| cells(column, has_label)).collect();
    printer.table(&header, rows);
    printer.line("");
    let size: u64 = answer.files.iter().map(|file| file.size_bytes).sum();
    let (rows, files) = (counted(answer.rows, "row"), counted(answer.files.len() as u64, "file"));
    let rejected = answer.rows_rejected;
    printer.line(format!("{rows} read, {rejected} rejected, from {files} of {}", bytes(size)));
    printer.points(Tone::Warning, warnings(answer));
}

fn cells(column: &ColumnSummary, has_label: bool) -> Vec<String> {
    let shown = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
    let length = |of: fn(&trackway_flows::data::profile::LengthSummary) -> u64| {
        column.lengths.as_ref().map(|lengths| counted(of(lengths), "character"))
    };
    let mut cells = vec![
        column.name.clone(),
        serde_name(&column.kind),
        share(column.null_count, column.rows),
        distinct(column),
        length(|lengths| lengths.min).unwrap_or_else(|| shown(&column.min)),
        column.mean.map(metric).unwrap_or_default(),
        length(|lengths| lengths.max).unwrap_or_else(|| shown(&column.max)),
        distribution(column),
    ];
    if has_label {
        cells.push(column.label_association.map(|it| format!("{:+.2}", it.value)).unwrap_or_default());
    }
    let top = column.top_values.iter().take(SHOWN_VALUES);
    let is_telling = column.top_values.first().is_some_and(|most| most.count > 1);
    let top: Vec<_> = top
        .filter(|_| is_telling)
        .map(|it| format!("{} {}", short(&it.value), share(it.count, column.rows)))
        .collect();
    cells.push(top.join(", "));
    cells
}

/// How many different values a column has; nothing where they are not counted.
fn distinct(column: &ColumnSummary) -> String {
    match (column.distinct_is_exact, column.distinct_estimate) {
        (true, count) => count.to_string(),
        (false, 0) => String::new(),
        (false, count) => format!("about {count}"),
    }
}

fn distribution(column: &ColumnSummary) -> String {
    let Some(histogram) = &column.histogram else { return String::new() };
    let counts: Vec<f64> = histogram.counts.iter().map(|count| *count as f64).collect();
    sparkline(&counts, CURVE_WIDTH)
}

/// What a person should look at.
fn warnings(answer: &ProfileAnswer) -> Vec<String> {
    let mut warnings = Vec::new();
    for rejects in &answer.rejects {
        let first = rejects
            .examples
            .first()
            .map(|fault| format!(", the first in {}: {}", answer.place(fault.place), fault.detail));
        warnings.push(format!(
            "{} rejected ({}){}",
            counted(rejects.count, "row"),
            serde_name(&rejects.kind),
            first.unwrap_or_default()
        ));
    }
    if let Some(place) = answer.first_recoded {
        let (count, place) = (answer.rows_recoded, answer.place(place));
        warnings.push(format!(
            "{count} of the rows were read as Windows-1252, because they are not UTF-8; the first in {place}"
        ));
    }
    warnings.extend(answer.notes.iter().cloned());
    for column in &answer.columns {
        warnings.extend(column_warnings(answer, column));
    }
    warnings
}

fn column_warnings(answer: &ProfileAnswer, column: &ColumnSummary) -> Vec<String> {
    let (name, faults) = (&column.name, &column.faults);
    let mut warnings = Vec::new();
    if let Some(first) = faults.examples.first() {
        let (count, kind) = (faults.misfits, serde_name(&column.kind));
        let place = answer.place(first.place);
        warnings.push(format!(
            "`{name}`: {count} of its values are not of type {kind}, the first in {place}: `{}`",
            first.detail
        ));
    }
    let texts: Vec<_> = faults.missing_strings.iter().filter(|(text, _)| !text.is_empty()).collect();
    if !texts.is_empty() {
        let texts: Vec<_> =
            texts.iter().map(|(text, count)| format!("`{text}` ({})", counted(**count, "row"))).collect();
        warnings.push(format!("`{name}`: missing values are written {}", texts.join(", ")));
    }
    let odd = [(column.nan_count, "NaN"), (column.infinite_count, "infinite")];
    warnings.extend(
        odd.iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("`{name}`: {count} of its values are {what}")),
    );
    let what = match column.distinct_estimate {
        0 if column.null_count == column.rows => Some("all values are missing"),
        1 if column.distinct_is_exact => Some("all values are the same"),
        _ => None,
    };
    warnings.extend(what.filter(|_| column.rows > 1).map(|what| format!("`{name}`: {what}")));
    warnings
}

fn share(count: u64, rows: u64) -> String {
    match count as f64 * 100.0 / rows.max(1) as f64 {
        _ if count == 0 => "–".into(),
        percent if percent < 0.1 => "<0.1 %".into(),
        percent => format!("{percent:.1} %"),
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::Float(number) => shortened(&metric(*number), SHOWN_LETTERS),
        other => shortened(&other.to_string(), SHOWN_LETTERS),
    }
}

/// The value of a variant in JSON, which is the name in the documentation.
fn serde_name(value: &impl serde::Serialize) -> String {
    let name = serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned));
    name.unwrap_or_default().replace('_', " ")
}
