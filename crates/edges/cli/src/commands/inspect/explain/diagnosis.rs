//! Diagnoses, as an explanation and `trackway diagnose` show them.

use trackway_api::runs::diagnosis::AttemptDiagnosis;
use trackway_core::DiagnosisVerdict;

use crate::commands::sections::newest;
use crate::printer::{Printer, StyledLine, Tone};

/// Most diagnoses of an explanation that are shown.
const DIAGNOSES_MAX: usize = 5;

pub(super) fn diagnoses(printer: Printer, all: &[AttemptDiagnosis]) {
    newest(printer, all, DIAGNOSES_MAX, "diagnoses").iter().for_each(|one| diagnosis(printer, one));
}

/// Verdict and finding, then where the launch is.
pub(in crate::commands::inspect) fn diagnosis(printer: Printer, found: &AttemptDiagnosis) {
    let tone = match found.verdict {
        DiagnosisVerdict::Found => Tone::Good,
        DiagnosisVerdict::NotReproduced | DiagnosisVerdict::NotObserved => Tone::Warning,
        DiagnosisVerdict::Incomplete => Tone::Bad,
    };
    let verdict = printer.tone(tone, found.verdict.as_str().replace('_', " "));
    printer.line(StyledLine::from(format!("  {}, ", found.kind)) + verdict + format!(": {}", found.finding));
    let from = found.from_step.map_or("the beginning".to_owned(), |step| format!("step {step}"));
    printer
        .line(format!("    symptom: {}; launched again from {from} to step {}", found.why, found.until_step));
    for file in &found.files {
        printer.line(format!("    kept: {file}"));
    }
    printer.line(format!("    its launch: trackway explain {}", found.launch_id));
}
