//! Reports for every part of a damaged root what is wrong with it, what is still safe, and what can be done.
//!
//! [`diagnose`] reads everything there is, also what no reader uses: folders are listed only here. Reading (`survey`,
//! `objects`, `bytes`) is separate from checking (`log`, `judge`, `left_over`), which is pure.
//!
//! Not detected: that the last entry of the log was removed, when nothing in the root needs it; and a root that was
//! rewritten as a whole, hashes included.

mod bytes;
mod checked;
mod finding;
mod judge;
mod left_over;
mod log;
mod objects;
mod survey;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Serialize;
use trackway_core::{Step, Timestamp};

use crate::error::{Fallback, Result};
use crate::history::Candidate;
use finding::Subject;
pub use finding::{Remedy, RootFinding, RootSeverity};
use survey::Survey;

/// A checkpoint that verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sound {
    /// The number of its commit.
    pub number: u64,
    pub step: Step,
}

/// What was found in a root.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// Errors first, then in the order of the log.
    pub findings: Vec<RootFinding>,
    /// What a resume takes; none when nothing that it could reach verifies.
    pub resume: Option<Sound>,
    /// Every checkpoint that verifies, newest first.
    pub sound: Vec<Sound>,
    /// How many checkpoints were committed, deleted ones too.
    pub committed_count: usize,
    /// What the next save takes on the disk, estimated from the newest checkpoint.
    pub next_save_bytes: Option<u64>,
}

/// Looks at every file of a root. `now` decides which pins have ended; `progress` gets the bytes of checkpoints read so
/// far and in all.
///
/// # Errors
/// [`crate::CheckpointError::Storage`] when the root itself cannot be listed. Whatever else cannot be read is a finding.
pub fn diagnose(root: &Path, now: Timestamp, progress: &dyn Fn(u64, u64)) -> Result<Diagnosis> {
    let survey = Survey::of(root)?;
    let mut objects = objects::check(&survey, progress);
    let mut findings = log::check(&survey, now);
    findings.append(&mut objects.findings);
    let sound = objects.sound;
    let resume = survey.history.candidates().into_iter().find_map(|candidate| match candidate {
        Candidate::Commit { number, .. } => sound.iter().copied().find(|it| it.number == number),
        Candidate::Passed(_) => None,
    });
    let mut diagnosis = Diagnosis {
        resume,
        committed_count: survey.history.commits().count(),
        next_save_bytes: next_save_bytes(&survey),
        sound,
        findings,
    };
    diagnosis.add_summary(&survey);
    diagnosis.say_what_is_safe(&survey);
    diagnosis.findings.sort_by(|left, right| left.rank().cmp(&right.rank()));
    Ok(diagnosis)
}

/// What of the log of a root needs repair. The files of its checkpoints are not read.
///
/// # Errors
/// [`crate::CheckpointError::Storage`] when the root cannot be listed.
pub fn log_errors(root: &Path, now: Timestamp) -> Result<Vec<RootFinding>> {
    let mut findings = log::check(&Survey::of(root)?, now);
    findings.retain(|finding| finding.severity == RootSeverity::Error);
    Ok(findings)
}

fn next_save_bytes(survey: &Survey) -> Option<u64> {
    let newest = *survey.history.live_chain().first()?;
    survey.history.commit(newest).map(|record| record.body.size_bytes)
}

impl Diagnosis {
    /// Whether something needs repair.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == RootSeverity::Error)
    }

    /// Summarises the findings for a user who wants to continue.
    fn add_summary(&mut self, survey: &Survey) {
        if self.resume.is_some() || self.committed_count == 0 || survey.history.candidates().is_empty() {
            return;
        }
        let passed = survey.history.candidates().into_iter().map(|candidate| match candidate {
            Candidate::Passed(fallback) => fallback,
            Candidate::Commit { body, .. } => Fallback::new(Some(body.step), String::new()),
        });
        if Fallback::only_unsafe(&passed.collect::<Vec<_>>()) {
            let message = "every checkpoint that a resume could use is unsafe: it begins again";
            self.findings.push(RootFinding::new(RootSeverity::Warning, "nothing_safe", message.into()));
            return;
        }
        let message = "checkpoints were committed, but none that a resume could use verifies";
        self.findings.push(
            RootFinding::new(RootSeverity::Error, "nothing_verifies", message.into())
                .remedy(Remedy::RestoreFile { path: "the files named here".into() }),
        );
    }

    fn say_what_is_safe(&mut self, survey: &Survey) {
        for place in 0..self.findings.len() {
            if self.findings[place].severity != RootSeverity::Note {
                let safe = self.safe_beside(survey, &self.findings[place].subject);
                self.findings[place].safe = Some(safe);
            }
        }
    }

    fn safe_beside(&self, survey: &Survey, subject: &Subject) -> String {
        let named = |sound: &Sound| format!("step {} (entry {})", sound.step, sound.number);
        let Some(resume) = self.resume else {
            return match self.sound.first() {
                _ if self.committed_count == 0 => match survey.with_manifest() {
                    0 => "nothing was committed, so nothing is lost".into(),
                    count => format!(
                        "the files in {count} folders with a manifest: files that no log names are never deleted"
                    ),
                },
                Some(sound) => format!("{} verifies, but a resume cannot reach it", named(sound)),
                None => "no checkpoint of this root verifies".into(),
            };
        };
        let chain = survey.history.live_chain();
        let position = |number| chain.iter().position(|candidate| *candidate == number);
        let newer = subject.number.is_some_and(|number| match (position(number), position(resume.number)) {
            (Some(here), Some(target)) => here < target,
            _ => false,
        });
        let lost = subject.step.unwrap_or(0).saturating_sub(resume.step);
        match newer {
            true if lost > 0 => {
                format!("a resume falls back to {}, which verifies; steps to repeat: {lost}", named(&resume))
            }
            true => format!("a resume falls back to {}, which verifies", named(&resume)),
            false => format!("a resume takes {}, which verifies", named(&resume)),
        }
    }
}
