//! Several processes, one checkpoint: they share a root (on one machine or a shared file system), train together in one
//! attempt, and hold its epoch together. Rank 0 alone appends to the log; the others read it. There is no other channel
//! between them.
//!
//! **Start.** Rank 0 claims the epoch and appends `round`, with the world size. The others wait for it and never claim.
//! Ranks that are started again within an attempt make a new round, which fences the one before it.
//!
//! **Save.** Rank 0 appends `begin`. Each rank finds it in the log, writes and syncs its files below that prefix, and
//! votes: it creates `PREFIX/votes/rank-0003.json` with its part of the manifest and what all must agree on (step,
//! world size, position in the data, config). When all votes exist and agree, rank 0 writes the manifest and commits,
//! once. Otherwise it abandons, and names the ranks that caused it. The others read the outcome from the log. So a rank
//! that dies leaves a checkpoint that is being written, and later abandoned, never half of one.
//!
//! **Resume.** The entry `round` settles which commits may be resumed, and in which order. For each, every rank
//! verifies its files and votes under `votes/resume-NUMBER/`; all wait for all votes and take the commit only if all
//! are for it. All ranks read the same votes, so none steps back alone, whenever it reads them. A missing vote is an
//! error.
//!
//! **What to save.** A cadence by steps needs no messages. What depends on the time or on a request is decided by rank
//! 0, which announces a coming step to the others ([`Notice`]); a step that it declined it begins and abandons at once.
//!
//! A vote is created only if absent, so a rank that votes again finds its first vote. Votes that belong to a checkpoint
//! are in its folder and are deleted with it; those of a resume are deleted when the next round begins.

mod assemble;
mod decliner;
mod notice;
mod resume;
mod root;
mod save;
mod vote;
mod wait;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod process_tests;
#[cfg(test)]
mod shard_tests;
#[cfg(test)]
mod tests;

pub use decliner::Decliner;
pub use notice::{Notice, Notices};
pub use root::RankedRoot;
pub use save::RankedSave;
