//! Verdicts and findings of checks, as every command prints them.

use trackway_api::runs::preflight::PreflightReport;
use trackway_core::registry::GateVerdict;
use trackway_flows::training::preflight::{Finding, Severity, Verdict};

use crate::printer::{Printer, StyledLine, Tone};
use crate::units::duration;

/// Findings of a check that are shown; `--json` has all of them.
pub const FINDINGS_SHOWN: usize = 10;

pub fn verdict(printer: Printer, verdict: Verdict) -> StyledLine {
    let tone = match verdict {
        Verdict::Pass => Tone::Good,
        Verdict::Warn | Verdict::NotRun => Tone::Warning,
        Verdict::Block => Tone::Bad,
        Verdict::NotApplicable => Tone::Dim,
    };
    printer.tone(tone, verdict.as_str().replace('_', " "))
}

/// How the verdict of a gate is emphasised.
pub fn gate_tone(verdict: GateVerdict) -> Tone {
    match verdict {
        GateVerdict::Pass => Tone::Good,
        GateVerdict::Fail => Tone::Bad,
        GateVerdict::Inconclusive => Tone::Warning,
    }
}

/// The severity and the message of a finding.
pub fn headline(printer: Printer, finding: &Finding) -> StyledLine {
    let tone = match finding.severity {
        Severity::Block => Tone::Bad,
        Severity::Warn => Tone::Warning,
        Severity::Note => Tone::Dim,
    };
    printer.tone(tone, finding.severity.as_str()) + format!(" {}", finding.message)
}

pub fn print_action(printer: Printer, finding: &Finding) {
    if let Some(action) = &finding.action {
        printer.line(format!("      → {}", action));
    }
}

/// A finding with at most so many of its examples.
pub fn print_finding(printer: Printer, finding: &Finding, examples_max: usize) {
    printer.line(headline(printer, finding) + "  " + printer.tone(Tone::Dim, &finding.check));
    for example in finding.examples.iter().take(examples_max) {
        let place = [example.file.clone(), example.row.map(|row| row.to_string())];
        let place: Vec<_> = place.into_iter().flatten().collect();
        let value = example.value.as_deref().unwrap_or_default();
        printer.line(StyledLine::from(format!("      {}  ", place.join(":"))) + value);
    }
    print_action(printer, finding);
}

/// How many checks of a pre-flight have each verdict.
pub fn verdict_counts(report: &PreflightReport) -> String {
    let verdicts: Vec<Verdict> = report.checks.iter().map(|check| check.verdict).collect();
    counted_verdicts(&verdicts, report.skipped.len())
}

/// `1 with warnings, 12 passed, 3 not applicable`. `skipped`: how many of those that were not run were skipped on request.
pub fn counted_verdicts(verdicts: &[Verdict], skipped: usize) -> String {
    let count = |verdict: Verdict| verdicts.iter().filter(|one| **one == verdict).count();
    let parts = [
        (count(Verdict::Block), "blocked"),
        (count(Verdict::NotRun) - skipped.min(count(Verdict::NotRun)), "not run"),
        (skipped, "skipped"),
        (count(Verdict::Warn), "with warnings"),
        (count(Verdict::Pass), "passed"),
        (count(Verdict::NotApplicable), "not applicable"),
    ];
    let names: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    names.join(", ")
}

/// The message of `trackway run` about its pre-flight: a line when all is well, else the findings too.
pub fn preflight_summary(report: &PreflightReport) -> Vec<String> {
    let mut lines = Vec::new();
    for severity in [Severity::Block, Severity::Warn] {
        for check in &report.checks {
            let findings = check.findings.iter().filter(|finding| finding.severity == severity);
            for finding in findings.take(FINDINGS_SHOWN) {
                let action = finding.action.as_deref().map(|action| format!(" → {action}"));
                let action = action.filter(|_| severity == Severity::Block).unwrap_or_default();
                lines.push(format!("{severity} {}: {}{action}", finding.check, finding.message));
            }
        }
    }
    for check in report.checks.iter().filter(|check| check.verdict == Verdict::NotRun) {
        let word = if report.blocks(check) { "block" } else { "not run" };
        lines.push(format!("{word} {}: {}", check.name, check.why.as_deref().unwrap_or_default()));
    }
    lines.push(format!(
        "pre-flight: {} ({}, {})",
        report.verdict,
        verdict_counts(report),
        duration(report.seconds)
    ));
    lines
}
