//! What the doctor found, with the commands that help.

use trackway_api::checkpoints::{CheckpointDiagnosis, CheckpointFinding, RemoteAnswer};
use trackway_checkpoint::doctor::{Diagnosis, Remedy, RootFinding, RootSeverity, diagnose};
use trackway_engine::error::AppError;
use trackway_engine::run::remote::{Patience, RemotePlan};
use trackway_formats::shell::quoted;

use super::reading::BytesProgress;
use super::remote_view::Remote;
use super::{Checkpoints, environment};
use crate::checkpoints::model_pin::model_of_pin;

impl Checkpoints {
    /// Looks at every file of the root, at the disk it is on, and at the remote's log and what the remote can do. Changes
    /// nothing but for trial files, which it removes.
    ///
    /// # Errors
    /// [`trackway_engine::error::ErrorKind::NotFound`] when the root does not exist; when it cannot be listed.
    pub fn doctor(&self, watch: &BytesProgress) -> Result<CheckpointDiagnosis, AppError> {
        let remote = self.ask_remote();
        let answer = remote.answer();
        let here = self.root.is_dir();
        if !here && self.remote.is_none() {
            return Err(self.nothing_committed());
        }
        let mut findings = self.remote_findings(&remote);
        let diagnosis = if here { self.diagnose_disk(watch, &mut findings)? } else { Diagnosis::default() };
        findings.sort_by_key(|finding| finding.severity);
        let mut resume_step = diagnosis.resume.map(|sound| sound.step);
        let mut committed_count = diagnosis.committed_count;
        if let Remote::Answers(mut there) = remote {
            // The findings about each checkpoint report that nothing verifies.
            resume_step = there.replica.foresee(None).ok().flatten().map(|found| found.info.step);
            committed_count = committed_count.max(there.truth.checkpoints.len());
        }
        Ok(CheckpointDiagnosis {
            root: self.root.display().to_string(),
            findings,
            resume_step,
            verified_steps: diagnosis.sound.iter().map(|sound| sound.step).collect(),
            committed_count,
            remote: answer,
        })
    }

    fn diagnose_disk(
        &self,
        watch: &BytesProgress,
        findings: &mut Vec<CheckpointFinding>,
    ) -> Result<Diagnosis, AppError> {
        let mut diagnosis =
            diagnose(&self.root, self.now(), watch.as_ref()).map_err(|error| self.error(error))?;
        let mut found =
            environment::check(&self.root, diagnosis.next_save_bytes, self.clock.as_ref(), &self.ids);
        found.extend(self.wrong_run());
        found.append(&mut diagnosis.findings);
        findings.extend(found.into_iter().map(|finding| self.finding(finding)));
        Ok(diagnosis)
    }

    /// Whether the remote answers, can do what the log needs, and has what is here.
    fn remote_findings(&self, remote: &Remote) -> Vec<CheckpointFinding> {
        let (Some(plan), Some(RemoteAnswer { location, error, .. })) = (&self.remote, remote.answer()) else {
            return Vec::new();
        };
        let there = match remote {
            Remote::Answers(there) => there,
            Remote::None => return Vec::new(),
            Remote::Silent { passing, .. } => {
                let severity = if *passing { RootSeverity::Warning } else { RootSeverity::Error };
                let why = error.unwrap_or_default();
                let message = format!("{location} cannot be used, and without it nothing is launched: {why}");
                let safe = "running training continues; its commits stay on this disk for now";
                let action = "check the address, the network and the credentials, then run the doctor again";
                return vec![finding(severity, "remote", message, safe, action)];
            }
        };
        let mut findings = self.tried_out(plan);
        let (commits, step) = there.replica.waiting_commits();
        let lost = there.truth.lost.len() as u64;
        let newest = step.map(|step| format!(" up to step {step}")).unwrap_or_default();
        if commits > lost {
            let message = format!("{} commits{newest} are not in the log at {location} yet", commits - lost);
            let safe = "they are on this disk, and are handed over in order";
            let action = format!(
                "the supervisor of the run does this; if it is gone: trackway resume {}",
                self.subject
            );
            findings.push(finding(RootSeverity::Note, "remote_behind", message, safe, &action));
        }
        if lost > 0 {
            let message = format!(
                "{lost} commits{newest} do not belong to the run: another attempt took it over at {location} before \
                 they were uploaded"
            );
            let safe = "they are never resumed from; their files are kept until they expire";
            let action =
                format!("copy them if you need them, then: trackway checkpoint gc {} --yes", self.subject);
            findings.push(finding(RootSeverity::Note, "lost_work", message, safe, &action));
        }
        findings
    }

    /// Whether the remote can do what the log needs.
    fn tried_out(&self, plan: &RemotePlan) -> Vec<CheckpointFinding> {
        let such_as = "one with conditional writes (`If-None-Match: *`)";
        let found = match plan.selftest(Patience::Short) {
            Ok(tested) => environment::judged(&tested, "remote", "storage", such_as),
            Err(error) => vec![RootFinding::new(RootSeverity::Warning, "remote", error.to_string())],
        };
        found.into_iter().map(|finding| self.finding(finding)).collect()
    }

    /// A root that was copied or moved to another run's place.
    fn wrong_run(&self) -> Option<RootFinding> {
        let expected = self.run.as_ref()?.row.run_id;
        let found = self.view().ok()?.list().first()?.run_id;
        let message = format!("this root belongs to {found}, but it is in the place of {expected}");
        (found != expected).then(|| RootFinding::new(RootSeverity::Error, "wrong_run", message))
    }

    fn finding(&self, finding: RootFinding) -> CheckpointFinding {
        CheckpointFinding {
            severity: finding.severity,
            check: finding.check.into(),
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
            Remedy::Nothing => "no action is needed".into(),
            Remedy::RestoreFile { path } => {
                format!("restore {} from a backup, if there is one", file(path))
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
            Remedy::MoveTo { from, to } => {
                let above = to.rsplit_once('/').map_or(".", |(above, _)| above);
                format!("mkdir -p {} && mv {} {}", file(above), file(from), file(to))
            }
            Remedy::Keep => "keep it until the log is intact again".into(),
            Remedy::Remove { path } if self.root.join(path).is_dir() => format!("rm -r {}", file(path)),
            Remedy::Remove { path } => format!("rm {}", file(path)),
            Remedy::CollectGarbage => format!("trackway checkpoint gc {subject} --yes"),
            Remedy::Unpin { name } => {
                let force = if model_of_pin(name).is_some() { " --force" } else { "" };
                format!("trackway checkpoint unpin {} {subject}{force}", quoted(name))
            }
            Remedy::Allow { path } => format!("chmod u+rwX {}", file(path)),
            Remedy::MakeRoom { missing_bytes } => {
                format!(
                    "free {missing_bytes} bytes, for example with: trackway checkpoint gc {subject} --yes"
                )
            }
            Remedy::UseAnother { what } => format!("use another {what}"),
        }
    }
}

/// A finding about the remote, which no file or entry of this disk is the subject of.
fn finding(
    severity: RootSeverity,
    check: &'static str,
    message: String,
    safe: &str,
    action: &str,
) -> CheckpointFinding {
    CheckpointFinding {
        severity,
        check: check.into(),
        path: None,
        number: None,
        step: None,
        epoch: None,
        attempt_id: None,
        message,
        safe: Some(safe.into()),
        action: action.into(),
    }
}
