//! Checkpoints of a run or of a folder, and the remote that they are sent to.

pub mod remote;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use trackway_checkpoint::CheckpointState;
use trackway_checkpoint::RetireReason;
pub use trackway_checkpoint::doctor::RootSeverity;
use trackway_core::{AttemptId, RunId, Step, UnsafeEvidence, closed_list};
use trackway_formats::checkpoint_manifest::{Kind, ManifestFile};

closed_list!(
    /// Where the bytes of a checkpoint are.
    CheckpointPlace, "place of a checkpoint", {
        /// On this disk only.
        Local = "local",
        /// At the remote only.
        Remote = "remote",
        /// On this disk and at the remote.
        LocalAndRemote = "local+remote",
        /// On this disk, to be uploaded.
        Waiting = "waiting",
        /// Deleted.
        None = "none",
    }
);

closed_list!(
    /// One of the two places of a run's checkpoints.
    CheckpointOrigin, "origin of a checkpoint", {
        /// This disk.
        Local = "local",
        /// The remote.
        Remote = "remote",
    }
);

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The number of its commit in the log, or of its begin if it has none.
    pub number: u64,
    pub run_id: RunId,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// The step at whose end it was saved.
    pub step: Step,
    /// The epoch of its writer.
    pub epoch: u64,
    /// The prefix it was written below.
    pub object_prefix: String,
    /// The folder of its files, below the root: its prefix, unless it was adopted from the remote.
    pub folder: String,
    /// SHA-256 of its manifest, once committed.
    pub manifest_sha256: Option<String>,
    /// Its state; if a remote answers, by both logs.
    pub state: CheckpointState,
    /// Where its bytes are.
    #[serde(rename = "where")]
    pub place: CheckpointPlace,
    /// Why it was saved: `cadence`, `asked`, `anomaly`, `sigterm`, `end` or `script`, with the reason that was given;
    /// null if it is not known.
    pub reason: Option<String>,
    /// Bytes of its files, once committed.
    pub size_bytes: Option<u64>,
    /// Bytes that it shares with an earlier checkpoint; null if its manifest cannot be read here.
    pub shared_bytes: Option<u64>,
    /// What a resume from it has to start over, because it holds weights without it (optimizer, rng, data_cursor): not empty, it is
    /// incomplete. Null if its manifest cannot be read here.
    #[serde(default)]
    pub missing: Option<Vec<Kind>>,
    /// The digest of the training state in it, once committed.
    pub state_digest: Option<String>,
    /// The number of the commit that training continued from.
    pub parent: Option<u64>,
    /// When it was committed, or begun if it has no commit; RFC 3339.
    pub at: String,
    /// How long ago that was.
    pub age_seconds: Option<f64>,
    /// Whether every byte matched when it was read just now; null if it was not read.
    pub verified: Option<bool>,
    /// Why it is suspect, unsafe or abandoned.
    pub why: Option<String>,
    /// Why what it holds is most likely lost; null: it is not unsafe.
    #[serde(default)]
    pub unsafe_evidence: Option<UnsafeEvidence>,
    /// Why it is not unsafe any more; null: it never was, or is.
    #[serde(default)]
    pub cleared: Option<String>,
    /// Whether a resume may use it: it is on the way from the newest commit to its ancestors.
    pub on_branch: bool,
    /// Where else all of its bytes are.
    pub uploaded_to: Option<String>,
    /// When all of its bytes were there; RFC 3339.
    pub uploaded_at: Option<String>,
    /// Its number in the log at the remote, if it was adopted from there.
    pub remote_number: Option<u64>,
    /// The names of its pins, expired ones too.
    pub pins: Vec<String>,
    /// Those of them whose time is over: they hold it no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_pins: Vec<String>,
    /// Why retention keeps it on this disk, as text; empty if it does not.
    pub kept_because: Vec<String>,
}

/// Whether a run's remote answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteAnswer {
    /// Where it is, without secrets.
    pub location: String,
    /// Whether it answered within seconds.
    pub answers: bool,
    /// The error if it did not.
    pub error: Option<String>,
}

/// Which of a run's checkpoints matter, each by its step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointStanding {
    /// The newest that is committed and not deleted, whatever it holds.
    pub newest_step: Option<Step>,
    /// Whether that one is unsafe.
    pub newest_is_unsafe: bool,
    /// The newest that is not unsafe: what a resume tries first.
    pub safe_step: Option<Step>,
    /// The best by the metric of the run file's `checkpoint.keep.best` or `early_stop`, of those that are not unsafe.
    pub best_step: Option<Step>,
    /// That metric, as `min val_loss`; null if the run file names none.
    pub best_by: Option<String>,
}

impl CheckpointStanding {
    /// `newest step 60, unsafe; newest safe step 40; best step 20 (min val_loss)`; none where these are all one, or nothing is committed.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let newest = self.newest_step?;
        if !self.newest_is_unsafe && self.best_step.is_none_or(|best| best == newest) {
            return None;
        }
        let mut parts =
            vec![format!("newest step {newest}{}", if self.newest_is_unsafe { ", unsafe" } else { "" })];
        parts.push(match self.safe_step {
            Some(step) => format!("newest safe step {step}"),
            None => "none is safe: a resume begins again".into(),
        });
        if let (Some(step), Some(by)) = (self.best_step, &self.best_by) {
            parts.push(format!("best step {step} ({by})"));
        }
        Some(parts.join("; "))
    }
}

/// Checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointListing {
    /// Newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Which of them matter.
    #[serde(default)]
    pub standing: CheckpointStanding,
    /// Whether the remote answered; null: the run has none. If it did not, `where` is by this disk's log.
    pub remote: Option<RemoteAnswer>,
}

/// The checkpoint that a resume would use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResumeTarget {
    /// The one checkpoint. Its bytes on this disk are verified; those that would be fetched are verified on arrival.
    /// Empty: checkpoints were committed and none is safe, so that a resume begins again.
    pub checkpoints: Vec<Checkpoint>,
    /// The newest, the newest safe and the best one.
    #[serde(default)]
    pub standing: CheckpointStanding,
    /// Where its bytes would come from.
    pub source: CheckpointOrigin,
    /// Bytes that would be fetched.
    pub fetch_bytes: u64,
    /// Newer ones that cannot be used, newest first.
    pub skipped: Vec<SkippedCheckpoint>,
    /// What skipping them costs.
    pub cost: FallBackCost,
    /// Steps of checkpoints on this disk that do not belong to the run, because another attempt was granted it before the
    /// remote knew of them; oldest first.
    pub lost: Vec<Step>,
    /// Whether the remote answered; null: the run has none. If it did not, nothing can be launched, and this is only what
    /// this disk has.
    pub remote: Option<RemoteAnswer>,
}

/// A checkpoint that a resume skips.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedCheckpoint {
    /// Its step; null if even the log entry that names it cannot be read.
    pub step: Option<Step>,
    pub why: String,
}

/// What resuming from an older checkpoint costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FallBackCost {
    /// Committed steps that are trained again.
    pub steps: Step,
    /// How long that takes; null before it could be measured.
    pub seconds: Option<f64>,
    /// GPUs times hours.
    pub gpu_hours: Option<f64>,
}

impl FallBackCost {
    /// `200 steps are trained again, about 1.7 h and 3.3 GPU-hours`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let steps = if self.steps == 1 { "1 step is".into() } else { format!("{} steps are", self.steps) };
        let mut parts: Vec<String> = self.seconds.map(about).into_iter().collect();
        parts
            .extend(self.gpu_hours.filter(|hours| *hours > 0.0).map(|hours| format!("{hours:.2} GPU-hours")));
        if parts.is_empty() {
            return format!("{steps} trained again");
        }
        format!("{steps} trained again, about {}", parts.join(" and "))
    }
}

fn about(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.1} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// A resume from an older checkpoint than the newest that was committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FallBack {
    /// The newest committed step, which was skipped.
    pub from_step: Step,
    /// The step it resumed from.
    pub to_step: Step,
    /// Why the newer one was skipped.
    pub why: String,
    #[serde(flatten)]
    pub cost: FallBackCost,
}

/// One checkpoint, explained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointExplanation {
    /// The one checkpoint.
    pub checkpoints: Vec<Checkpoint>,
    /// Where it comes from, what it holds, and what will happen to it, as sentences.
    pub sentences: Vec<String>,
    /// Its files by kind.
    pub kinds: Vec<CheckpointKind>,
    /// Every file, as the manifest has it.
    pub files: Vec<ManifestFile>,
    /// Metrics at its step; those that are not finite are null.
    pub metrics: BTreeMap<String, Option<f64>>,
    /// SHA-256 of the run's config, if it is known.
    pub config_sha256: Option<String>,
    /// SHA-256 of the run's data, if it is known.
    pub data_sha256: Option<String>,
    /// Number of processes that trained together.
    pub world_size: Option<u32>,
    pub pins: Vec<CheckpointPin>,
    /// The steps of the commits that led to it, oldest first, its own last.
    pub lineage_steps: Vec<Step>,
    /// Why retention keeps it, as text; or `superseded`, `suspect`, `unsafe` or `dead_branch` if it is deleted.
    pub retention: Vec<String>,
    /// Why its manifest cannot be read.
    pub manifest_error: Option<String>,
}

/// Files of one kind in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointKind {
    pub kind: Kind,
    pub file_count: usize,
    pub size_bytes: u64,
    /// The bytes of them that are shared with an earlier checkpoint.
    pub shared_bytes: u64,
}

/// A pin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointPin {
    pub name: String,
    /// The number of the commit it holds, or held.
    pub number: u64,
    pub step: Option<Step>,
    /// Why it was set.
    pub why: String,
    /// When it expires; RFC 3339.
    pub until: Option<String>,
    /// When it was set; RFC 3339.
    pub at: String,
}

/// What retention deletes, or would delete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointCollection {
    /// Whether nothing was deleted, because `--yes` was not given.
    pub dry_run: bool,
    /// What is kept by rule, as text.
    pub policy: String,
    /// This disk first, then the remote, if the run has one.
    pub places: Vec<CollectedPlace>,
}

/// What retention deletes, or would delete, at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectedPlace {
    #[serde(rename = "where")]
    pub origin: CheckpointOrigin,
    /// Its folder or address, without secrets.
    pub location: String,
    /// The checkpoints that are kept, newest first.
    pub keep: Vec<KeptCheckpoint>,
    /// The checkpoints that are deleted, or would be, newest first.
    pub retire: Vec<RetiredCheckpoint>,
    /// Files of what was never committed or was deleted only in part; only on a disk.
    pub orphans: Vec<OrphanedFiles>,
    /// Steps that did not verify and were marked suspect.
    pub suspects: Vec<Step>,
    /// Bytes that are, or would be, free again; null for a remote.
    pub freed_bytes: Option<u64>,
    /// Objects that were deleted; null for a disk.
    pub removed_objects: Option<u64>,
    /// Why nothing is deleted, if that is so.
    pub refused: Option<String>,
    /// Why the place could not be read completely; the next collection deletes what was retired.
    pub error: Option<String>,
}

/// A checkpoint that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptCheckpoint {
    /// The number of its commit.
    pub number: u64,
    pub step: Step,
    /// Bytes of its files.
    pub size_bytes: Option<u64>,
    /// Why, as text.
    pub reasons: Vec<String>,
}

/// A checkpoint that is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetiredCheckpoint {
    /// The number of its commit.
    pub number: u64,
    pub step: Step,
    /// Bytes of its files, shared ones included.
    pub size_bytes: Option<u64>,
    pub why: RetireReason,
}

/// Left-over files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrphanedFiles {
    /// The number of their begin or commit.
    pub number: u64,
    pub step: Step,
    /// Their folder, below the root.
    pub folder: String,
}

/// What the doctor found in a folder of checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointDiagnosis {
    /// The folder.
    pub root: String,
    /// Findings, errors first.
    pub findings: Vec<CheckpointFinding>,
    /// The step that a resume uses; null if no checkpoint verifies.
    pub resume_step: Option<Step>,
    /// The steps of all checkpoints that verify, newest first.
    pub verified_steps: Vec<Step>,
    /// Number of checkpoints that were ever committed.
    pub committed_count: usize,
    /// Whether the remote answered; null: the run has none. If it did, `resume_step` is by its log.
    pub remote: Option<RemoteAnswer>,
}

impl CheckpointDiagnosis {
    /// Whether something needs repair.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == RootSeverity::Error)
    }
}

/// A finding of the doctor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointFinding {
    pub severity: RootSeverity,
    /// The name of the check.
    pub check: String,
    /// The file or folder, below the root.
    pub path: Option<String>,
    /// The number of the log entry.
    pub number: Option<u64>,
    pub step: Option<Step>,
    /// The epoch that wrote it.
    pub epoch: Option<u64>,
    /// The attempt that wrote it.
    pub attempt_id: Option<AttemptId>,
    /// What is wrong.
    pub message: String,
    /// What is still safe.
    pub safe: Option<String>,
    /// What to do: a command, or a sentence if no command does it.
    pub action: String,
}

/// A checkpoint was requested from a live attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointRequested {
    /// The live attempt.
    pub attempt_id: AttemptId,
    /// The number of the request in the control file.
    pub request_id: u64,
    /// The answer of the script.
    pub outcome: RequestOutcome,
    /// The last committed step that the script reported.
    pub step: Option<Step>,
}

closed_list!(
    /// How a request for a checkpoint ended.
    RequestOutcome, "outcome of a request", {
        /// It was saved.
        Done = "done",
        /// It was refused.
        Refused = "refused",
        /// The script's recorder does not know the request.
        UnknownCommand = "unknown_command",
        /// The script answered something that this version does not know.
        Unknown = "unknown",
        /// The script did not answer in time.
        NoAnswer = "no_answer",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a cost is a sentence with what is known, and no more than that.
    #[test]
    fn a_cost_is_reported_as_far_as_it_is_known() {
        let cost = |steps, seconds, gpu_hours| FallBackCost { steps, seconds, gpu_hours }.sentence();
        assert_eq!(cost(1, None, None), "1 step is trained again");
        let sentence = "200 steps are trained again, about 1.7 h and 3.33 GPU-hours";
        assert_eq!(cost(200, Some(6000.0), Some(3.3333)), sentence);
        assert_eq!(cost(200, Some(2.0), Some(0.0)), "200 steps are trained again, about 2.0 s");
    }

    /// Proves that the safe and the best checkpoint are named where they are others than the newest, and that a resume
    /// is said to begin again where none is safe.
    #[test]
    fn the_checkpoints_that_matter_are_named() {
        let said = |newest_is_unsafe: bool, safe_step: Option<Step>, best_step: Option<Step>| {
            let standing = CheckpointStanding {
                newest_step: Some(60),
                newest_is_unsafe,
                safe_step,
                best_step,
                best_by: best_step.map(|_| "min val_loss".to_owned()),
            };
            standing.sentence()
        };
        assert_eq!(CheckpointStanding::default().sentence(), None);
        assert_eq!(said(false, Some(60), None), None);
        assert_eq!(said(false, Some(60), Some(60)), None);
        let best = "newest step 60; newest safe step 60; best step 20 (min val_loss)";
        assert_eq!(said(false, Some(60), Some(20)).as_deref(), Some(best));
        let safe = "newest step 60, unsafe; newest safe step 40";
        assert_eq!(said(true, Some(40), None).as_deref(), Some(safe));
        let none = "newest step 60, unsafe; none is safe: a resume begins again";
        assert_eq!(said(true, None, None).as_deref(), Some(none));
        assert_eq!([89.9, 120.0, 5400.0].map(about), ["89.9 s", "2 min", "1.5 h"]);
    }
}
