//! Verdicts and findings of checks, as every command prints them.

use trackway_core::registry::GateVerdict;
use trackway_flows::preflight::{Finding, Severity, Verdict};

use crate::printer::{Printer, Shown, Tone};

pub fn verdict(printer: Printer, verdict: Verdict) -> Shown {
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
pub fn headline(printer: Printer, finding: &Finding) -> Shown {
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
        printer.line(Shown::from(format!("      {}  ", place.join(":"))) + value);
    }
    print_action(printer, finding);
}
