use std::path::Path;

use trackway_api::data::CheckAnswer;
use trackway_flows::data::check::{CheckRequest, CheckResult, Group, Verdict, check as run, read_sign_offs};
use trackway_flows::data::table::TableRequest;
use trackway_flows::data::{DataSpec, ReadContext, ReadNote};

use super::{print_reading, reading, request, table};
use crate::args::CheckArgs;
use crate::commands::checks::{print_finding, verdict};
use crate::exit::{BLOCKED, Exit};
use crate::printer::{Printer, StyledLine, row};
use crate::units::counted;

/// Groups that are printed; `--json` has all.
const GROUPS_SHOWN: usize = 40;

pub fn check(args: &CheckArgs, read: &ReadContext, printer: Printer) -> Exit {
    let other = |paths: &[String]| (!paths.is_empty()).then(|| request(paths, &args.table.reading, read));
    // Column names of the data are not those of the probabilities.
    let unnamed = |it: TableRequest| TableRequest { spec: DataSpec { columns: Vec::new(), ..it.spec }, ..it };
    let asked = CheckRequest {
        table: table(&args.table, read),
        label: args.label.clone(),
        group_by: args.group_by.clone(),
        ignored: args.ignore.clone(),
        against: other(&args.against),
        sign_offs: args.sign_off.as_deref().map(read_sign_offs).transpose()?.unwrap_or_default(),
        probabilities: other(&args.probabilities).map(unnamed),
        only: args.only.clone(),
        skip: args.skip.clone(),
    };
    let answer = reading(printer, |observer| run(Path::new(""), &asked, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(if answer.verdict == Verdict::Block { BLOCKED } else { 0 })
}

fn print(printer: Printer, answer: &CheckAnswer) {
    printer.table(
        &["check", "verdict", "findings", "checked"],
        answer.checks.iter().map(|check| cells(printer, check)).collect(),
    );
    let findings = answer.checks.iter().flat_map(|check| &check.findings);
    printer.line("");
    findings.for_each(|finding| print_finding(printer, finding, usize::MAX));
    if !answer.groups.is_empty() {
        print_groups(printer, &answer.groups);
    }
    // Findings say what the counts of rows and columns say.
    let reading: Vec<ReadNote> =
        answer.reading.iter().filter(|note| !note.kind.is_counted_elsewhere()).cloned().collect();
    print_reading(printer, &reading);
    let read = format!(": {} read, {} rejected", counted(answer.rows, "row"), answer.rows_rejected);
    printer.line(verdict(printer, answer.verdict) + read);
}

fn cells(printer: Printer, check: &CheckResult) -> Vec<StyledLine> {
    let count = check.findings.len();
    row![
        &check.name,
        verdict(printer, check.verdict),
        if count == 0 { String::new() } else { count.to_string() },
        check.why.as_deref().unwrap_or_default(),
    ]
}

fn print_groups(printer: Printer, groups: &[Group]) {
    let rate = |value: Option<f64>, group: &Group| match (value, &group.label_value) {
        (Some(value), Some(_)) => format!("{:.1} %", value * 100.0),
        (Some(value), None) => format!("{value:.3}"),
        (None, _) => String::new(),
    };
    let row = |group: &Group| {
        let ends = group.interval.bounds();
        let interval =
            ends.map(|(low, high)| format!("{} to {}", rate(Some(low), group), rate(Some(high), group)));
        vec![
            group.columns.join(" × "),
            group.values.join(" × "),
            group.rows.to_string(),
            format!("{:.1} %", group.fraction * 100.0),
            rate(group.label_rate, group),
            interval.unwrap_or_default(),
        ]
    };
    let what = groups.iter().find_map(|group| group.label_value.clone());
    let title = what.map_or_else(|| "mean of the label".to_owned(), |value| format!("rate of `{}`", value));
    printer.line("");
    let header = ["group by", "group", "rows", "fraction", title.as_str(), "95 % interval"];
    printer.table(&header, groups.iter().take(GROUPS_SHOWN).map(row).collect());
    if groups.len() > GROUPS_SHOWN {
        printer.line(format!("… and {} more groups (--json has all)", groups.len() - GROUPS_SHOWN));
    }
    printer.line("");
}
