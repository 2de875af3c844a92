use trackway_api::checkpoints::{CheckpointDiagnosis, CheckpointFinding, RootSeverity};
use trackway_core::text::first_few;

use crate::printer::{Printer, Tone};
use crate::units::counted;

/// Steps that are named of those that verify; the list of `--json` has all.
const STEPS_MAX: usize = 10;

pub fn print(report: &CheckpointDiagnosis, printer: Printer) {
    printer.paragraph(0, &summary(report));
    for finding in &report.findings {
        printer.line("");
        print_finding(finding, printer);
    }
    if !report.findings.is_empty() {
        printer.line("");
        printer.line(counts(&report.findings));
    }
}

fn summary(report: &CheckpointDiagnosis) -> String {
    let steps: Vec<String> = report.verified_steps.iter().map(u64::to_string).collect();
    let log_missing = report.findings.iter().any(|finding| finding.check == "log_missing");
    let verified = match steps.as_slice() {
        _ if report.committed_count == 0 && log_missing => {
            return "unknown what was committed: the log is missing".into();
        }
        _ if report.committed_count == 0 => return "nothing was ever committed".into(),
        [] if report.remote.is_some() => "none verifies on this disk".into(),
        [] => "none verifies".into(),
        [step] => format!("step {step} verifies"),
        steps => format!("steps {} verify", first_few(steps, STEPS_MAX)),
    };
    let resume = match report.resume_step {
        Some(step) => format!("a resume takes step {step}"),
        None => "there is nothing to resume from".into(),
    };
    let were = if report.committed_count == 1 { "was" } else { "were" };
    let committed = format!("{} {were} committed", counted(report.committed_count as u64, "checkpoint"));
    let wrong = if report.findings.is_empty() { "; no problems found" } else { "" };
    format!("{committed}, {verified}; {resume}{wrong}")
}

fn print_finding(finding: &CheckpointFinding, printer: Printer) {
    let tone = match finding.severity {
        RootSeverity::Error => Tone::Bad,
        RootSeverity::Warning => Tone::Warning,
        RootSeverity::Note => Tone::Dim,
    };
    let severity = printer.tone(tone, finding.severity.as_str());
    let path = finding.path.as_deref().map(|path| format!(" {}", path)).unwrap_or_default();
    printer.line(severity + format!(" {}{path}", finding.check));
    printer.paragraph(2, &finding.message);
    if let Some(safe) = &finding.safe {
        printer.paragraph(2, &format!("safe: {safe}"));
    }
    // A command is copied as a whole.
    printer.line(format!("  do: {}", finding.action));
}

fn counts(findings: &[CheckpointFinding]) -> String {
    let parts = [RootSeverity::Error, RootSeverity::Warning, RootSeverity::Note].map(|severity| {
        let of_it = findings.iter().filter(|finding| finding.severity == severity);
        counted(of_it.count() as u64, severity.as_str())
    });
    parts.join(", ")
}
