use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, Step};
use trackway_formats::checkpoint_manifest::{MAX_MANIFEST_BYTES, ManifestFile};
use trackway_store::{Backend, Created, Entry, ErrorKind, NoEntry, StoreError};

use crate::error::{RankError, Result};
use crate::group::VOTES_FOLDER;

/// The largest vote that is cast or read: a manifest must hold what all votes list.
const MAX_VOTE_BYTES: usize = MAX_MANIFEST_BYTES;
/// How often a create is repeated that left no trace.
const MAX_CAST_TRIES: u32 = 3;

/// A rank's vote on a checkpoint that is being written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum SaveVote {
    /// Its files are written and synced.
    Wrote {
        rank: u32,
        agreed: Agreed,
        /// Its part of the manifest.
        files: Vec<ManifestFile>,
    },
    /// They are not, and will not be.
    Failed { rank: u32, why: String },
}

/// What all ranks must agree on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agreed {
    pub epoch: u64,
    pub attempt_id: AttemptId,
    pub round: u32,
    pub world_size: u32,
    pub step: Step,
    pub object_prefix: String,
    /// The BLAKE3 of where in the data all ranks together are.
    pub cursor_blake3: String,
    pub config_sha256: Option<String>,
    pub data_sha256: Option<String>,
}

/// A rank's vote on a commit that may be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ResumeVote {
    /// Its files verify.
    Sound { rank: u32, commit: u64 },
    /// Its files do not. `damaged`: the checkpoint itself is bad, rather than out of reach.
    Defect { rank: u32, commit: u64, damaged: bool, why: String },
}

/// What all votes have.
pub(crate) trait Ballot: Serialize + DeserializeOwned + Clone {
    fn rank(&self) -> u32;
}

impl Ballot for SaveVote {
    fn rank(&self) -> u32 {
        let (Self::Wrote { rank, .. } | Self::Failed { rank, .. }) = self;
        *rank
    }
}

impl Ballot for ResumeVote {
    fn rank(&self) -> u32 {
        let (Self::Sound { rank, .. } | Self::Defect { rank, .. }) = self;
        *rank
    }
}

/// Where votes are: each rank's is `FOLDER/rank-0003.json`.
#[derive(Debug, Clone)]
pub(crate) struct Ballots {
    pub folder: String,
    /// The number of the entry that is voted on.
    pub number: u64,
}

impl Ballots {
    /// Those on a save that was begun. They go when the checkpoint's folder does.
    pub fn on_save(begin: u64, object_prefix: &str) -> Self {
        Self { folder: format!("{object_prefix}/{VOTES_FOLDER}"), number: begin }
    }

    /// Those on a commit that may be resumed in a round.
    pub fn on_resume(round: u64, commit: u64) -> Self {
        Self { folder: format!("{}/commit-{commit:08}", resume_folder(round)), number: round }
    }

    pub fn name(&self, rank: u32) -> String {
        format!("{}/rank-{rank:04}.json", self.folder)
    }

    /// Casts the vote of a rank, and returns the one that counts: perhaps an earlier one.
    pub fn cast<B: Ballot>(
        &self,
        backend: &dyn Backend,
        ulid: String,
        at: String,
        vote: B,
    ) -> Result<Entry<B>> {
        let name = self.name(vote.rank());
        let rank = vote.rank();
        let vote = Entry::new(self.number, ulid, at, vote);
        let bytes = vote.to_bytes();
        if bytes.len() > MAX_VOTE_BYTES {
            return Err(StoreError::TooLarge { size_bytes: bytes.len(), max_bytes: MAX_VOTE_BYTES }.into());
        }
        let mut lost = None;
        // After a lost answer the file is read again, as for entries of the log: an existing file is durable then.
        for _ in 0..MAX_CAST_TRIES {
            match backend.create(&name, &bytes) {
                Ok(Created::New) => return Ok(vote),
                Ok(Created::Exists) => match self.read(backend, rank)? {
                    Some(Ok(found)) => return Ok(found),
                    Some(Err(why)) => return Err(RankError::DamagedVote { name, why }.into()),
                    None => {}
                },
                Err(error) if error.kind() == ErrorKind::Unavailable => lost = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        let location = backend.location();
        Err(lost.unwrap_or(StoreError::Contended { location, tries: MAX_CAST_TRIES }).into())
    }

    /// The vote of a rank, or why the file is not a vote; `None`: it has not voted.
    pub fn read<B: Ballot>(
        &self,
        backend: &dyn Backend,
        rank: u32,
    ) -> Result<Option<Result<Entry<B>, String>>, StoreError> {
        let Some(bytes) = backend.read(&self.name(rank), MAX_VOTE_BYTES)? else { return Ok(None) };
        let vote = match bytes.len() {
            size if size > MAX_VOTE_BYTES => Err(format!("it has more than {MAX_VOTE_BYTES} bytes")),
            _ => Entry::<B>::from_bytes(&bytes, self.number).map_err(|fault| match fault {
                NoEntry::Damaged(why) => why,
                NoEntry::Newer(version) => format!("it has version {version}: use a newer Trackway"),
            }),
        };
        let of_rank = |vote: Entry<B>| match vote.body.rank() {
            found if found == rank => Ok(vote),
            found => Err(format!("it belongs to rank {found}")),
        };
        Ok(Some(vote.and_then(of_rank)))
    }
}

/// Where the votes of a round on its resume are.
pub(crate) fn resume_folder(round: u64) -> String {
    format!("{VOTES_FOLDER}/resume-{round:08}")
}
