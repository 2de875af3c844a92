//! What a check of data found, for people and programs.

use trackway_api::data::FindingsAnswer;
use trackway_flows::data::table::CheckResult;

use super::print_reading;
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
    print_reading(printer, &answer.reading);
    let rules = |count: usize| format!(", {} checked", counted(count as u64, "rule"));
    let rules = answer.rules_checked.map(rules).unwrap_or_default();
    let found = found(answer.findings.len(), answer.not_run.len());
    let rows = counted(answer.rows, "row");
    printer.line(format!("{found}: {rows} read, {} rejected{rules}", answer.rows_rejected));
}

/// What was found, and what was not looked at: silence about it is not a result.
fn found(findings: usize, not_run: usize) -> String {
    let open = format!("{} not run", counted(not_run as u64, "check"));
    match (findings, not_run) {
        (0, 0) => "no findings".to_owned(),
        (0, _) => open,
        (count, 0) => counted(count as u64, "finding"),
        (count, _) => format!("{}, {open}", counted(count as u64, "finding")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that nothing is said to be without findings if a check of it did not run.
    #[test]
    fn what_did_not_run_is_not_without_findings() {
        assert_eq!(found(0, 0), "no findings");
        assert_eq!(found(0, 4), "4 checks not run");
        assert_eq!(found(3, 0), "3 findings");
        assert_eq!(found(1, 1), "1 finding, 1 check not run");
    }
}
