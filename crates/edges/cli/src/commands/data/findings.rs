//! What a check of data found, for people and programs.

use trackway_api::data::FindingsAnswer;
use trackway_flows::data::table::CheckResult;

use crate::commands::checks::{print_finding, verdict};
use crate::exit::BLOCKED;
use crate::printer::{Printer, Tone, row};
use crate::units::counted;

/// The exit code.
pub fn code(answer: &FindingsAnswer) -> u8 {
    if answer.blocks() { BLOCKED } else { 0 }
}

/// Each check with its verdict and what it looked at.
pub fn table(printer: Printer, checks: &[CheckResult]) {
    let row = |check: &CheckResult| {
        row![&check.name, verdict(printer, check.verdict), check.why.as_deref().unwrap_or_default()]
    };
    printer.table(&["check", "verdict", "checked"], checks.iter().map(row).collect());
    printer.line("");
}

pub fn print(printer: Printer, answer: &FindingsAnswer) {
    answer.findings.iter().for_each(|finding| print_finding(printer, finding, usize::MAX));
    for why in &answer.not_run {
        printer.line(printer.tone(Tone::Warning, "not run") + " " + why);
    }
    let rules = |count: usize| format!(", {} checked", counted(count as u64, "rule"));
    let rules = answer.rules_checked.map(rules).unwrap_or_default();
    let found = match answer.findings.len() {
        0 => "no findings".to_owned(),
        count => counted(count as u64, "finding"),
    };
    let rows = counted(answer.rows, "row");
    printer.line(format!("{found}: {rows} read, {} rejected{rules}", answer.rows_rejected));
}
