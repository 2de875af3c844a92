use std::path::Path;

use trackway_app::data::drift::{ColumnDrift, DriftReport, Role, drift as compare};
use trackway_app::home::Home;

use super::{reading, request};
use crate::args::DriftArgs;
use crate::exit::Failure;
use crate::printer::{Printer, Tone, visible};

pub fn drift(home: &Home, args: &DriftArgs, printer: Printer) -> Result<u8, Failure> {
    let sides = (&request(&args.reference, &args.reading), &request(&args.current, &args.reading));
    let report = reading(|onlooker| compare(home, Path::new(""), sides, args.label.as_deref(), onlooker))?;
    if printer.is_json() {
        printer.document(&report);
    } else {
        print(printer, &report);
    }
    Ok(0)
}

pub(super) fn print(printer: Printer, report: &DriftReport) {
    let mut columns: Vec<&ColumnDrift> = report.columns.iter().collect();
    columns.sort_by_key(|column| !column.drifted);
    let header =
        ["column", "", "test", "distance", "threshold", "noise", "p (corrected)", "missing before → now"];
    printer.table(&header, columns.iter().map(|column| cells(printer, column)).collect());
    printer.line("");
    for column in &columns {
        if let Some(line) = values(column) {
            printer.line(&format!("{} {}", printer.tone(Tone::Warning, "·"), visible(&line)));
        }
    }
    for change in &report.schema_changes {
        let what = match (change.reference, change.current) {
            (Some(_), None) => "is gone".to_owned(),
            (None, Some(_)) => "is new".to_owned(),
            (before, after) => format!("cannot be compared: {before:?} before, {after:?} now"),
        };
        let line = format!("`{}` {what}", change.name);
        printer.line(&format!("{} {}", printer.tone(Tone::Warning, "·"), visible(&line)));
    }
    let features = report.columns.iter().filter(|column| column.role == Role::Feature).count();
    let label = match report.label_drifted {
        Some(true) => ", and the label",
        Some(false) => ", not the label",
        None => "",
    };
    printer.line(&format!(
        "{} of {features} features drifted{label} ({} rows before, {} now)",
        report.drifted_features, report.reference_rows, report.current_rows
    ));
}

fn cells(printer: Printer, column: &ColumnDrift) -> Vec<String> {
    let state = match (column.drifted, column.role) {
        (true, Role::Feature) => printer.tone(Tone::Bad, "drifted"),
        (true, Role::Label) => printer.tone(Tone::Bad, "label drifted"),
        (false, Role::Label) => "label".to_owned(),
        (false, Role::Feature) => String::new(),
    };
    let test =
        serde_json::to_value(column.test).ok().and_then(|test| test.as_str().map(|it| it.replace('_', " ")));
    vec![
        column.name.clone(),
        state,
        test.unwrap_or_default(),
        format!("{:.3}", column.statistic),
        format!("{:.3}", column.threshold),
        format!("{:.3}", column.noise),
        if column.adjusted_p_value < 1e-4 {
            "<0.0001".into()
        } else {
            format!("{:.4}", column.adjusted_p_value)
        },
        format!(
            "{:.1} % → {:.1} %",
            column.missing.reference_share * 100.0,
            column.missing.current_share * 100.0
        ),
    ]
}

/// New and gone values in a sentence.
fn values(column: &ColumnDrift) -> Option<String> {
    let listed = |values: &[trackway_app::data::profile::ValueCount]| {
        values.iter().map(|it| format!("`{}`", it.value)).collect::<Vec<_>>().join(", ")
    };
    let (new, gone) = (listed(&column.new_values), listed(&column.gone_values));
    let spelling = if column.only_spelling { ": the same values, written differently" } else { "" };
    match (new.is_empty(), gone.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("`{}` has new values: {new}", column.name)),
        (true, false) => Some(format!("`{}` no longer has {gone}", column.name)),
        (false, false) => {
            Some(format!("`{}` has new values {new} and no longer {gone}{spelling}", column.name))
        }
    }
}
