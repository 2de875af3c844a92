//! Events that mean the same to every reader: what the recorder writes and what closing a record makes rows of.
//! Listed in `docs/formats/flight-record.md`.

use super::Event;
use crate::EventKind;
use crate::checkpoint::checkpoint_manifest::is_hex_hash;

/// The field `names` of [`EventKind::TensorboardRestart`]; `None` when it is not such a list.
#[must_use]
pub fn restarted_names(field: &str) -> Option<Vec<String>> {
    serde_json::from_str(field).ok()
}

/// The field of [`EventKind::TensorboardRestart`] with its step, where that is below 0.
pub const EARLY_STEP: &str = "step";

/// The metric that is the loss of a batch from before the model is trained on it.
pub const PROGRESSIVE_LOSS: &str = "progressive_loss";

/// Whether a metric is the fingerprint of a batch, for the detectors: its value says nothing to people.
#[must_use]
pub fn is_fingerprint(name: &str) -> bool {
    matches!(name, "batch_digest" | "input_digest")
}

/// Whether a metric is a figure for or about Trackway itself and no result of a training.
#[must_use]
pub fn is_internal_metric(name: &str) -> bool {
    is_fingerprint(name) || name.starts_with("trackway/")
}

/// The beginning of a metric that telemetry measured.
const OF_MACHINE: &str = "system/";

/// What telemetry calls the resident memory of a run's processes.
pub const RESIDENT_BYTES: &str = "system/rss_bytes";
/// What telemetry calls the memory that they can still take.
pub const AVAILABLE_BYTES: &str = "system/machine_available_bytes";

/// Whether a metric was measured on the machine and not recorded by the script.
#[must_use]
pub fn is_machine_metric(name: &str) -> bool {
    name.starts_with(OF_MACHINE)
}

/// A file that was copied into the attempt's `artifacts` folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactEvent<'a> {
    /// What the script calls it.
    pub name: &'a str,
    /// The BLAKE3 of its content in lower-case hex, which is its file name too.
    pub blake3: &'a str,
    pub size_bytes: u64,
}

impl Event {
    /// The value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Name and value, when this is a tag.
    #[must_use]
    pub fn as_tag(&self) -> Option<(&str, &str)> {
        (EventKind::Tag.is(&self.kind)).then(|| Some((self.field("name")?, self.field("value")?)))?
    }

    /// Type, message and digest, when this is an exception.
    #[must_use]
    pub fn as_exception(&self) -> Option<(&str, &str, &str)> {
        let parts = || Some((self.field("type")?, self.field("message")?, self.field("digest")?));
        (EventKind::Exception.is(&self.kind)).then(parts)?
    }

    /// What was kept, when this is an artifact. A hash that could lead out of the folder is none.
    #[must_use]
    pub fn as_artifact(&self) -> Option<ArtifactEvent<'_>> {
        let blake3 = self.field("blake3").filter(|hash| is_hex_hash(hash));
        (EventKind::Artifact.is(&self.kind)).then(|| {
            Some(ArtifactEvent {
                name: self.field("name")?,
                blake3: blake3?,
                size_bytes: self.field("size_bytes")?.parse().ok()?,
            })
        })?
    }
}
