//! The report as text: a table of checks, then findings, worst first, then the verdict.

use trackway_api::runs::preflight::PreflightReport;
use trackway_flows::training::preflight::{CheckResult, Finding, Severity, Verdict};

use crate::commands::checks::{self, FINDINGS_SHOWN, print_finding, verdict_counts};
use crate::printer::{Printer, StyledLine, Tone, cut, row};
use crate::units::{counted, duration};

/// Letters of a line in the table.
const LINE_LETTERS: usize = 96;
/// Examples of a finding that are shown.
const EXAMPLES_SHOWN: usize = 3;

/// The report for a person; checks that do not apply are counted, and listed only where `all` is set.
pub fn print(printer: Printer, report: &PreflightReport, all: bool) {
    let is_listed = |check: &&CheckResult| all || check.verdict != Verdict::NotApplicable;
    let rows: Vec<_> = report.checks.iter().filter(is_listed).map(|check| cells(printer, check)).collect();
    let folded = report.checks.len() - rows.len();
    if !rows.is_empty() {
        printer.table(&["check", "verdict", "took", "result"], rows);
    }
    if folded > 0 {
        let checks = counted(folded as u64, "check");
        let text = format!("… {checks} not applicable to this run; list them with --all");
        printer.line(printer.tone(Tone::Dim, text));
    }
    for severity in [Severity::Block, Severity::Warn, Severity::Note] {
        for check in &report.checks {
            let findings = check.findings.iter().filter(|finding| finding.severity == severity);
            let findings: Vec<&Finding> = findings.collect();
            for finding in findings.iter().take(FINDINGS_SHOWN) {
                printer.line("");
                print_finding(printer, finding, EXAMPLES_SHOWN);
            }
            if let Some(hidden) = findings.len().checked_sub(FINDINGS_SHOWN + 1) {
                let text = format!("      … {} more of `{}` (`--json` has all)", hidden + 1, check.name);
                printer.line(printer.tone(Tone::Dim, text));
            }
        }
    }
    printer.line("");
    printer.line(verdict(printer, report));
    if let Some(cost) = &report.cost {
        printer.line(format!(
            "expected cost: {:.2} USD, {:.2} with failures ({:.1} GPU hours)",
            cost.total_usd, cost.with_failures_usd, cost.gpu_hours
        ));
    }
}

fn cells(printer: Printer, check: &CheckResult) -> Vec<StyledLine> {
    let word = checks::verdict(printer, check.verdict);
    let took = check.seconds.filter(|_| check.verdict != Verdict::NotApplicable).map(duration);
    row![&check.name, word, took.unwrap_or_default(), cut(&line_of(check), LINE_LETTERS)]
}

fn line_of(check: &CheckResult) -> String {
    let first = check.findings.iter().find(|finding| finding.severity != Severity::Note);
    let more = check.findings.iter().filter(|finding| finding.severity != Severity::Note).count();
    match (first, more) {
        (Some(finding), 1) => finding.message.clone(),
        (Some(finding), more) => format!("{more} findings, the first: {}", finding.message),
        (None, _) => check.why.clone().unwrap_or_default(),
    }
}

fn verdict(printer: Printer, report: &PreflightReport) -> StyledLine {
    let (tone, text) = match report.verdict {
        Verdict::Block => (Tone::Bad, format!("not launched because of {}", report.blocked_by().join(", "))),
        _ if report.stopped => (Tone::Warning, "stopped before it was finished".into()),
        Verdict::Warn => (Tone::Warning, "the run may start; see the warnings above".into()),
        _ => (Tone::Good, "the run may start".into()),
    };
    let word = printer.tone(tone, report.verdict.as_str());
    word + format!(": {text} ({}, {})", verdict_counts(report), duration(report.seconds))
}
