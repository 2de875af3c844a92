//! What a check of data found, for people and programs.

use trackway_api::data::FindingsAnswer;
use trackway_flows::data::table::{CheckResult, Finding, Severity, Verdict};

use crate::exit::BLOCKED;
use crate::printer::{Printer, Shown, Tone, row};
use crate::units::counted;

pub fn show(printer: Printer, answer: &FindingsAnswer) -> u8 {
    if printer.is_json() {
        printer.document(answer);
    } else {
        print(printer, answer);
    }
    code(answer)
}

/// The exit code.
pub fn code(answer: &FindingsAnswer) -> u8 {
    if answer.blocks() { BLOCKED } else { 0 }
}

/// Each check with its verdict and what it looked at.
pub fn table(printer: Printer, checks: &[CheckResult]) {
    let row = |check: &CheckResult| {
        let tone = match check.verdict {
            Verdict::Pass => Tone::Good,
            Verdict::Warn | Verdict::NotRun => Tone::Warning,
            Verdict::Block => Tone::Bad,
            Verdict::NotApplicable => Tone::Dim,
        };
        let verdict = printer.tone(tone, check.verdict.as_str().replace('_', " "));
        row![&check.name, verdict, check.why.as_deref().unwrap_or_default()]
    };
    printer.table(&["check", "verdict", "checked"], checks.iter().map(row).collect());
    printer.line("");
}

pub fn print(printer: Printer, answer: &FindingsAnswer) {
    answer.findings.iter().for_each(|finding| print_finding(printer, finding));
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

pub fn print_finding(printer: Printer, finding: &Finding) {
    let tone = match finding.severity {
        Severity::Block => Tone::Bad,
        Severity::Warn => Tone::Warning,
        Severity::Note => Tone::Dim,
    };
    let severity = printer.tone(tone, finding.severity.as_str());
    let check = printer.tone(Tone::Dim, &finding.check);
    printer.line(severity + format!(" {}  ", finding.message) + check);
    for example in &finding.examples {
        let place = [example.file.clone(), example.row.map(|row| row.to_string())];
        let place: Vec<_> = place.into_iter().flatten().collect();
        let value = example.value.as_deref().unwrap_or_default();
        printer.line(Shown::from(format!("      {}  ", place.join(":"))) + value);
    }
    if let Some(action) = &finding.action {
        printer.line(format!("      → {}", action));
    }
}
