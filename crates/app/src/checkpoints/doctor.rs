//! What the doctor found, with the commands that help.

use serde::Serialize;
use trackway_checkpoint::doctor::{Finding, Remedy, Severity, diagnose};
use trackway_core::{AttemptId, Step};

use super::environment;
use super::reading::Watch;
use super::{Checkpoints, quoted};
use crate::error::AppError;

/// The answer to `trackway checkpoint doctor`.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorReport {
    /// The folder that was looked at.
    pub root: String,
    /// What is worth a word, errors first.
    pub findings: Vec<DoctorFinding>,
    /// The step that a resume takes; none when nothing it could come to verifies.
    pub resume_step: Option<Step>,
    /// The steps of all checkpoints that verify, newest first.
    pub verified_steps: Vec<Step>,
    /// How many checkpoints were ever committed.
    pub committed_count: usize,
}

/// Something that is worth a word. Field names are the JSON contract.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorFinding {
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// What was checked, in snake case.
    pub check: &'static str,
    /// The file or folder, below the root.
    pub path: Option<String>,
    /// The number in the log of the entry it is about.
    pub number: Option<u64>,
    /// The step of the checkpoint it is about.
    pub step: Option<Step>,
    /// The epoch that wrote it.
    pub epoch: Option<u64>,
    /// The attempt that wrote it.
    pub attempt_id: Option<AttemptId>,
    /// What is wrong.
    pub message: String,
    /// What is still safe.
    pub safe: Option<String>,
    /// What to do: a command, or a sentence where no command does it.
    pub action: String,
}

impl DoctorReport {
    /// Whether something needs repair.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error.as_str())
    }
}

impl Checkpoints {
    /// Looks at every file of the root and at the disk it is on. Changes nothing but for a trial file, which it removes.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`] when the root does not exist; when it cannot be listed.
    pub fn doctor(&self, watch: &Watch) -> Result<DoctorReport, AppError> {
        if !self.root.is_dir() {
            return Err(self.nothing_committed());
        }
        let diagnosis =
            diagnose(&self.root, self.now(), watch.as_ref()).map_err(|error| self.error(&error))?;
        let mut findings = environment::check(&self.root, diagnosis.next_save_bytes);
        findings.extend(self.wrong_run());
        findings.extend(diagnosis.findings);
        findings.sort_by_key(|finding| finding.severity);
        Ok(DoctorReport {
            root: self.root.display().to_string(),
            findings: findings.into_iter().map(|finding| self.finding(finding)).collect(),
            resume_step: diagnosis.resume.map(|sound| sound.step),
            verified_steps: diagnosis.sound.iter().map(|sound| sound.step).collect(),
            committed_count: diagnosis.committed_count,
        })
    }

    /// A root that was copied or moved to another run's place.
    fn wrong_run(&self) -> Option<Finding> {
        let expected = self.run.as_ref()?.row.run_id;
        let found = self.view().ok()?.list().first()?.run_id;
        let message = format!("this root is of {found}, and it lies where that of {expected} belongs");
        (found != expected).then(|| Finding::new(Severity::Error, "wrong_run", message))
    }

    fn finding(&self, finding: Finding) -> DoctorFinding {
        DoctorFinding {
            severity: finding.severity.as_str(),
            check: finding.check,
            number: finding.number(),
            step: finding.step(),
            epoch: finding.epoch(),
            attempt_id: finding.attempt_id(),
            action: self.action(&finding.remedy),
            path: finding.path,
            message: finding.message,
            safe: finding.safe,
        }
    }

    fn action(&self, remedy: &Remedy) -> String {
        let subject = &self.subject;
        let file = |path: &str| quoted(&self.root.join(path).to_string_lossy());
        match remedy {
            Remedy::Nothing => "nothing has to be done".into(),
            Remedy::RestoreFile { path } => {
                format!("bring {} back from a backup, if there is one", file(path))
            }
            Remedy::CopyFrom { from, to } => format!("cp {} {}", file(from), file(to)),
            Remedy::CutTo { path, size_bytes } => format!("truncate -s {size_bytes} {}", file(path)),
            Remedy::SetByte { path, offset, byte } => format!(
                "printf '\\{byte:03o}' | dd of={} bs=1 seek={offset} conv=notrunc status=none",
                file(path)
            ),
            Remedy::FetchFrom { location } => {
                format!("the next launch fetches it from {location} when it needs it")
            }
            Remedy::Remove { path } if self.root.join(path).is_dir() => format!("rm -r {}", file(path)),
            Remedy::Remove { path } => format!("rm {}", file(path)),
            Remedy::CollectGarbage => format!("trackway checkpoint gc {subject} --yes"),
            Remedy::Unpin { name } => format!("trackway checkpoint unpin {} {subject}", quoted(name)),
            Remedy::Allow { path } => format!("chmod u+rwX {}", file(path)),
            Remedy::MakeRoom { missing_bytes } => {
                format!(
                    "make room for {missing_bytes} bytes, perhaps with: trackway checkpoint gc {subject} --yes"
                )
            }
            Remedy::UseAnother { what } => format!("use another {what}"),
        }
    }
}
