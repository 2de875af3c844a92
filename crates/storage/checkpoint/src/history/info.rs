use std::collections::BTreeMap;

use trackway_core::{AttemptId, CheckpointState, RunId, Step, Timestamp, UnsafeEvidence};

/// One checkpoint of a root.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CheckpointInfo {
    /// The number of its commit in the log, or of its begin while it has none.
    pub number: u64,
    pub run_id: RunId,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// The step whose end it holds.
    pub step: Step,
    /// The epoch of its writer.
    pub epoch: u64,
    /// Below which prefix it was written.
    pub object_prefix: String,
    /// Where its files are, below the root: its prefix, but for one that was adopted.
    pub folder: String,
    /// The SHA-256 of its manifest, once committed.
    pub manifest_sha256: Option<String>,
    pub state: CheckpointState,
    /// Bytes of its files, once committed.
    pub size_bytes: Option<u64>,
    /// The digest of the training state it holds, once committed.
    pub state_digest: Option<String>,
    /// The number of the commit it was trained on from.
    pub parent: Option<u64>,
    /// When it was committed, or begun while it has no commit; RFC 3339.
    pub at: String,
    /// Why it is suspect, unsafe or abandoned.
    pub why: Option<String>,
    /// Why it is unsafe; stays when it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsafe_evidence: Option<UnsafeEvidence>,
    /// Why it is not unsafe any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<String>,
    /// Whether a resume could reach it: it is on the path from the newest commit to its ancestors. A dead branch (of a
    /// fenced epoch, or after a suspect commit) is not.
    pub on_branch: bool,
    /// Where else all of its bytes are.
    pub uploaded_to: Option<String>,
    /// When all of its bytes were there; RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploaded_at: Option<String>,
    /// Names of the pins that hold it, expired ones too.
    pub pins: Vec<String>,
    /// Its number in the log that holds the truth, when it was adopted from there.
    pub number_there: Option<u64>,
    /// The metrics of its step, once committed; the first ones, where there are many.
    #[serde(skip)]
    pub metrics: BTreeMap<String, f64>,
    /// Whether its weights are known to be those of its parent, in the same attempt.
    #[serde(skip)]
    pub same_weights: bool,
}

/// A pin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PinInfo {
    /// Its name, unique in the root.
    pub name: String,
    /// The number of the commit it holds.
    pub commit: u64,
    pub why: String,
    /// When it ends by itself; RFC 3339.
    pub until: Option<String>,
    /// When it was set; RFC 3339.
    pub at: String,
}

impl PinInfo {
    /// Whether its time is over.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        has_expired(self.until.as_deref(), now)
    }
}

/// Whether a pin ended by itself. One whose end cannot be read counts: better too much than too little.
pub(crate) fn has_expired(until: Option<&str>, now: Timestamp) -> bool {
    until.and_then(|until| until.parse::<Timestamp>().ok()).is_some_and(|until| until <= now)
}
