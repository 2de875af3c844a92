//! One object of the log, and how it is written.
//!
//! Its bytes are exactly `{"blake3":"HASH","entry":ENTRY}` and a line feed, where HASH is the BLAKE3 of ENTRY's bytes
//! in lower-case hex; so a flipped bit is found, and the object is JSON all the same.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of entries that this crate writes, and the highest it reads.
const ENTRY_VERSION: u32 = 1;
/// The largest entry that is written or read, but for summaries.
pub const MAX_ENTRY_BYTES: usize = 65_536;
/// The largest summary that is written or read.
pub const MAX_SUMMARY_BYTES: usize = 16 << 20;

const BEFORE_HASH: &str = "{\"blake3\":\"";
const BEFORE_ENTRY: &str = "\",\"entry\":";
const BEHIND_ENTRY: &str = "}\n";
const HASH_BYTES: usize = 64;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry<B> {
    /// The format's version.
    pub version: u32,
    pub number: u64,
    /// Unique to this entry: a process that finds its ULID here knows that its create won.
    pub ulid: String,
    /// When it was made, by its writer's clock; RFC 3339.
    pub at: String,
    /// The content.
    #[serde(flatten)]
    pub body: B,
}

impl<B: Serialize + DeserializeOwned> Entry<B> {
    /// An entry of the version this crate writes.
    pub fn new(number: u64, ulid: String, at: String, body: B) -> Self {
        Self { version: ENTRY_VERSION, number, ulid, at, body }
    }

    /// The bytes of its object.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let entry = serde_json::to_string(self).expect("an entry has text keys and finite numbers only");
        let hash = blake3::hash(entry.as_bytes()).to_hex();
        format!("{BEFORE_HASH}{hash}{BEFORE_ENTRY}{entry}{BEHIND_ENTRY}").into_bytes()
    }

    /// Reads the bytes of the object with that number.
    ///
    /// # Errors
    /// Why they are no entry that this crate can read.
    pub fn from_bytes(bytes: &[u8], number: u64) -> Result<Self, NoEntry> {
        let damaged = |why: String| NoEntry::Damaged(why);
        let entry = checked_entry(bytes).ok_or_else(|| damaged("its checksum does not match".into()))?;
        let versioned: Versioned =
            serde_json::from_slice(entry).map_err(|error| damaged(error.to_string()))?;
        if versioned.version > ENTRY_VERSION {
            return Err(NoEntry::Newer(versioned.version));
        }
        let entry: Self = serde_json::from_slice(entry).map_err(|error| damaged(error.to_string()))?;
        if entry.number != number {
            return Err(damaged(format!("it is numbered {}", entry.number)));
        }
        Ok(entry)
    }
}

/// Why an object is not an entry that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoEntry {
    /// Its bytes are not those of an entry. It takes its number and has no content.
    Damaged(String),
    /// It is intact, and of this version: it counts and cannot be interpreted, so no process may continue.
    Newer(u32),
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
