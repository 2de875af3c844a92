//! What stands in one file of the checkpoint log, and how.
//!
//! A file is exactly `{"blake3":"HASH","entry":ENTRY}` and a newline, where HASH is the BLAKE3 of ENTRY's bytes in
//! lower-case hex; so a flipped bit is found, and the file is JSON all the same.

use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, RunId, Step};

/// The version of entries that this crate writes, and the highest it reads.
pub(crate) const ENTRY_VERSION: u32 = 1;
/// The largest entry that is read.
pub(crate) const MAX_ENTRY_BYTES: usize = 65_536;
/// The longest explanation stored in an entry.
const MAX_WHY_BYTES: usize = 4_096;

const BEFORE_HASH: &str = "{\"blake3\":\"";
const BEFORE_ENTRY: &str = "\",\"entry\":";
const BEHIND_ENTRY: &str = "}\n";
const HASH_BYTES: usize = 64;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub version: u32,
    pub number: u64,
    /// Unique to this entry: whoever finds its own here knows that its create won.
    pub ulid: String,
    /// RFC 3339.
    pub at: String,
    #[serde(flatten)]
    pub body: Body,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Body {
    /// From here on only this epoch may commit.
    Claim { epoch: u64, run_id: RunId, attempt_id: AttemptId },
    /// A checkpoint is being written.
    Begin(Begin),
    /// A checkpoint is real.
    Commit(CommitBody),
    /// A commit did not verify.
    Suspect { commit: u64, why: String },
    /// A commit's files are about to be deleted.
    Retire { commit: u64 },
    /// An entry of a later version, which changes nothing for this one.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub epoch: u64,
    pub run_id: RunId,
    pub attempt_id: AttemptId,
    pub step: Step,
    pub object_prefix: String,
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
}

impl Body {
    pub fn suspect(commit: u64, why: &str) -> Self {
        let end =
            (0..=why.len().min(MAX_WHY_BYTES)).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0);
        Self::Suspect { commit, why: why[..end].to_owned() }
    }
}

impl Entry {
    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let entry = serde_json::to_string(self).expect("an entry has text keys and finite numbers only");
        let hash = blake3::hash(entry.as_bytes()).to_hex();
        format!("{BEFORE_HASH}{hash}{BEFORE_ENTRY}{entry}{BEHIND_ENTRY}").into_bytes()
    }

    /// Reads the bytes of the file with that number.
    ///
    /// # Errors
    /// A sentence that says why they are no entry.
    pub fn from_bytes(bytes: &[u8], number: u64) -> Result<Self, String> {
        let entry = checked_entry(bytes).ok_or("its checksum does not hold")?;
        let versioned: Versioned = serde_json::from_slice(entry).map_err(|error| error.to_string())?;
        if versioned.version > ENTRY_VERSION {
            return Err(format!("it is of version {}, use a newer Trackway", versioned.version));
        }
        let entry: Self = serde_json::from_slice(entry).map_err(|error| error.to_string())?;
        if entry.number != number {
            return Err(format!("it says that it is entry {}", entry.number));
        }
        match &entry.body {
            Body::Begin(Begin { step, epoch, object_prefix, .. })
            | Body::Commit(CommitBody { step, epoch, object_prefix, .. }) => {
                check_prefix(*step, *epoch, object_prefix)?
            }
            _ => {}
        }
        Ok(entry)
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The bytes between the fixed parts, when the hash in front of them holds.
fn checked_entry(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(BEFORE_HASH.as_bytes())?;
    let (hash, rest) = rest.split_at_checked(HASH_BYTES)?;
    let entry = rest.strip_prefix(BEFORE_ENTRY.as_bytes())?.strip_suffix(BEHIND_ENTRY.as_bytes())?;
    (blake3::hash(entry).to_hex().as_bytes() == hash).then_some(entry)
}

/// Where the files of a checkpoint go, below the root. The ULID makes it a name that is never used again.
pub(crate) fn object_prefix(step: Step, epoch: u64, ulid: &str) -> String {
    format!("step-{step:08}/epoch-{epoch:04}-{ulid}")
}

/// Refuses a prefix that [`object_prefix`] cannot have made: it might lead out of the root.
fn check_prefix(step: Step, epoch: u64, prefix: &str) -> Result<(), String> {
    let ulid = prefix.rsplit('-').next().unwrap_or_default();
    let sound =
        ulid.bytes().all(|byte| byte.is_ascii_alphanumeric()) && prefix == object_prefix(step, epoch, ulid);
    if sound { Ok(()) } else { Err(format!("its prefix `{}` is none", prefix.escape_debug())) }
}
