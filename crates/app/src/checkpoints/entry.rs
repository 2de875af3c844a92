use serde::Serialize;
use trackway_checkpoint::{CheckpointInfo, CheckpointView, State};
use trackway_core::{AttemptId, RunId, Step, Timestamp};

/// One checkpoint. Field names are the JSON contract of `trackway checkpoint ls`.
#[derive(Debug, Clone, Serialize)]
pub struct CheckpointEntry {
    /// The number of its commit in the log, or of its begin while it has none.
    pub number: u64,
    /// The run.
    pub run_id: RunId,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// The step whose end it holds.
    pub step: Step,
    /// The epoch of its writer.
    pub epoch: u64,
    /// Below which prefix it was written.
    pub object_prefix: String,
    /// Where its files are, below the root: its prefix, but for one that was adopted from a remote.
    pub folder: String,
    /// SHA-256 of its manifest, once committed.
    pub manifest_sha256: Option<String>,
    /// `writing`, `committed`, `superseded`, `suspect`, `abandoned` or `retired`.
    pub state: String,
    /// Where its bytes are, by the log: `local`, `remote`, `local+remote`, `waiting` (here, and on their way to the remote)
    /// or `none` once they are deleted.
    #[serde(rename = "where")]
    pub location: String,
    /// Where the second copy is.
    pub uploaded_to: Option<String>,
    /// Bytes of its files.
    pub size_bytes: Option<u64>,
    /// Those of them that are shared with an earlier checkpoint; none when its manifest cannot be read.
    pub shared_bytes: Option<u64>,
    /// Whether every byte matched when it was read just now; none when it was not read.
    pub verified: Option<bool>,
    /// The number of the commit that it was trained on from.
    pub parent: Option<u64>,
    /// Whether a resume could come to it.
    pub on_branch: bool,
    /// Names of the pins that hold it.
    pub pins: Vec<String>,
    /// When it was committed, or begun.
    pub at: String,
    /// How long ago that is.
    pub age_seconds: Option<f64>,
    /// Why it is suspect, abandoned, or does not verify.
    pub why: Option<String>,
}

impl CheckpointEntry {
    pub(super) fn new(view: &CheckpointView, info: CheckpointInfo, now: Timestamp) -> Self {
        let committed = info.manifest_sha256.is_some() && info.state != State::Retired;
        let shared_bytes = if committed { shared_bytes(view, info.number) } else { None };
        let age_seconds = info.at.parse::<Timestamp>().ok().map(|at| now.seconds_since(at));
        Self {
            number: info.number,
            run_id: info.run_id,
            attempt_id: info.attempt_id,
            step: info.step,
            epoch: info.epoch,
            location: location(&info).into(),
            object_prefix: info.object_prefix,
            folder: info.folder,
            manifest_sha256: info.manifest_sha256,
            state: info.state.as_str().into(),
            uploaded_to: info.uploaded_to,
            size_bytes: info.size_bytes,
            shared_bytes,
            verified: None,
            parent: info.parent,
            on_branch: info.on_branch,
            pins: info.pins,
            at: info.at,
            age_seconds,
            why: info.why,
        }
    }
}

fn location(info: &CheckpointInfo) -> &'static str {
    match (info.state, &info.uploaded_to) {
        (State::Retired, None) => "none",
        (State::Retired, Some(_)) => "remote",
        (_, None) => "local",
        (_, Some(_)) => "local+remote",
    }
}

fn shared_bytes(view: &CheckpointView, number: u64) -> Option<u64> {
    let manifest = view.manifest(number).ok()?;
    let shared = manifest.files.iter().filter(|file| file.stored_in.is_some());
    Some(shared.map(|file| file.size_bytes).sum())
}
