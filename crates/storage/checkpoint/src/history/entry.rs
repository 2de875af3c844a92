//! The entries of the checkpoint log (`docs/formats/checkpoint-manifest.md`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, Ids, RunId, Step, UnsafeEvidence};
use trackway_formats::checkpoint_manifest::{is_object_prefix, object_prefix};
use trackway_store::{Claim, new_ulid};

use super::CommitRecord;
use super::summary::Summary;

/// The longest explanation stored in an entry.
const MAX_WHY_BYTES: usize = 4_096;
/// The most metric values stored in a commit entry; the manifest holds all of them.
const MAX_COMMIT_METRICS: usize = 64;
/// The longest name of a metric that is stored in a commit entry.
const MAX_METRIC_NAME_BYTES: usize = 200;

/// The body of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Body {
    /// From here on only this epoch may commit.
    Claim(ClaimBody),
    /// Several ranks start together; what they resume is decided from the log up to here.
    Round(RoundBody),
    /// A checkpoint is being written.
    Begin(Begin),
    /// A checkpoint is real, and supersedes the one before it.
    Commit(CommitBody),
    /// What was begun under that number will never be committed.
    Abandon { begin: u64, why: String },
    /// What this epoch continues from, according to the remote's log.
    Adopt(Adopt),
    /// All of a commit's bytes are at a second place too.
    Uploaded { commit: u64, location: String },
    /// Nothing may delete that commit while the pin exists.
    Pin(PinBody),
    /// A pin was removed.
    Unpin { name: String },
    /// A commit must not be resumed from.
    Suspect { commit: u64, why: String },
    /// What a commit holds is most likely lost, though its bytes are whole.
    Unsafe {
        commit: u64,
        #[serde(flatten)]
        evidence: UnsafeEvidence,
    },
    /// A commit is not unsafe any more, by later evidence or the decision of a person; nothing marks it again.
    Cleared { commit: u64, why: String },
    /// Files of those commits, and of those begun, are about to be deleted. `swept` names earlier ones whose files are
    /// gone.
    Retire {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<u64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        swept: Vec<u64>,
    },
    /// What all entries before this one mean together.
    Summary(Box<Summary>),
    /// An entry of a later version, which changes nothing for this one.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimBody {
    pub epoch: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
}

impl ClaimBody {
    /// As the store of the log compares it.
    pub fn holder(&self) -> Claim {
        Claim { epoch: self.epoch, holder: self.attempt_id.to_string() }
    }

    /// The begin of a checkpoint below a new prefix.
    pub fn begin(&self, step: Step, ids: &dyn Ids) -> Begin {
        let Self { epoch, run_id, attempt_id } = *self;
        let object_prefix = object_prefix(step, epoch, &new_ulid(ids));
        Begin { epoch, run_id, attempt_id, step, object_prefix, ranks: None }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub epoch: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    pub step: Step,
    pub object_prefix: String,
    /// The ranks that must vote before it is committed; `None`: one process writes all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<BeginRanks>,
}

/// Ranks that start together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RoundBody {
    pub epoch: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    /// How often they were all started again within the attempt.
    pub round: u32,
    pub world_size: u32,
}

/// The round of a begin, and what all ranks must know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BeginRanks {
    pub round: u32,
    pub world_size: u32,
    /// The commit that rank 0 continues from: unchanged files may be shared with it and no other.
    pub parent: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommitBody {
    pub epoch: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    pub step: Step,
    pub object_prefix: String,
    /// The number of the commit that this one was trained on from; `None`: from the beginning.
    pub parent: Option<u64>,
    pub manifest_sha256: String,
    pub state_digest: String,
    pub size_bytes: u64,
    /// Metrics at that step that are finite: what retention decides by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Whether its weights are known to be those of its parent, which retention may delete.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub same_weights: bool,
}

/// A process that read the remote's log writes entries of this kind into a local log. The first of an epoch has no
/// commit and means that nothing before this entry counts. The others follow, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adopt {
    pub epoch: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    /// A commit of the truth, whose `parent` is a number of this log.
    pub commit: Option<CommitBody>,
    /// Where its files are in this root: a prefix of this epoch. Never the one they had before, whose deletion may
    /// still be under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Its number in the log that holds the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_there: Option<u64>,
    /// Whether this is the last entry of the adoption: before it, the epoch must not begin.
    #[serde(default)]
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PinBody {
    pub name: String,
    pub commit: u64,
    pub why: String,
    /// RFC 3339; the pin no longer counts from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Body {
    pub fn suspect(commit: u64, why: &str) -> Self {
        Self::Suspect { commit, why: shortened(why) }
    }

    pub fn unsafe_commit(commit: u64, evidence: &UnsafeEvidence) -> Self {
        let evidence = UnsafeEvidence {
            why: shortened(&evidence.why),
            value: evidence.value.as_deref().map(shortened),
            of: evidence.of.as_deref().map(shortened),
            ..evidence.clone()
        };
        Self::Unsafe { commit, evidence }
    }

    pub fn cleared(commit: u64, why: &str) -> Self {
        Self::Cleared { commit, why: shortened(why) }
    }

    pub fn abandon(begin: u64, why: &str) -> Self {
        Self::Abandon { begin, why: shortened(why) }
    }

    /// Whether a mark about what a commit holds changes what is known of it.
    pub fn changes(&self, record: &CommitRecord) -> bool {
        match self {
            Self::Unsafe { .. } => record.may_be_marked_unsafe(),
            Self::Cleared { .. } => record.unsafe_evidence.is_some(),
            _ => true,
        }
    }

    /// Why this entry is none, though its bytes are whole. A prefix that no writer makes might lead out of the root.
    pub fn broken_rule(&self) -> Option<String> {
        let (step, epoch, prefix) = match self {
            Self::Begin(Begin { step, epoch, object_prefix, .. })
            | Self::Commit(CommitBody { step, epoch, object_prefix, .. }) => (*step, *epoch, object_prefix),
            Self::Adopt(adopt) => return adopt.broken_rule(),
            _ => return None,
        };
        broken_prefix(prefix, step, epoch)
    }
}

impl Adopt {
    fn broken_rule(&self) -> Option<String> {
        let commit = self.commit.as_ref()?;
        let Some(folder) = &self.folder else {
            return Some("it adopts a commit without naming a folder".into());
        };
        broken_prefix(&commit.object_prefix, commit.step, commit.epoch)
            .or_else(|| broken_prefix(folder, commit.step, self.epoch))
    }
}

fn broken_prefix(prefix: &str, step: Step, epoch: u64) -> Option<String> {
    let ulid = prefix.rsplit('-').next().unwrap_or_default();
    let sound = is_object_prefix(prefix) && *prefix == object_prefix(step, epoch, ulid);
    (!sound).then(|| format!("its prefix `{}` is invalid", prefix.escape_debug()))
}

/// The part of a checkpoint's metrics that its commit entry holds.
pub(crate) fn commit_metrics(metrics: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    metrics
        .iter()
        .filter(|(name, value)| value.is_finite() && name.len() <= MAX_METRIC_NAME_BYTES)
        .take(MAX_COMMIT_METRICS)
        .map(|(name, value)| (name.clone(), *value))
        .collect()
}

fn shortened(why: &str) -> String {
    let end = (0..=why.len().min(MAX_WHY_BYTES)).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0);
    why[..end].to_owned()
}
