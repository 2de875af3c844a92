//! Several processes, one checkpoint: they share a root (on one machine or a shared file system), train together in one
//! attempt, and hold its epoch together. Rank 0 alone appends to the log; the others read it. There is no other channel
//! between them.
//!
//! **Start.** Rank 0 claims the epoch and appends `round`, with the world size. The others wait for it and never claim.
//! Ranks that are started again within an attempt make a new round, which fences the one before it.
//!
//! **Save.** Rank 0 appends `begin`. Each rank finds it in the log, writes and syncs its files below that prefix, and
//! votes: it creates `PREFIX/votes/rank-0003.json` with its part of the manifest and what all must agree on (step, world
//! size, position in the data, config). When all votes stand and agree, rank 0 writes the manifest and commits, once.
//! Otherwise it abandons, and says because of which ranks. The others learn from the log which it was. So a rank that
//! dies leaves a checkpoint that is being written, and later abandoned, never half of one.
//!
//! **Resume.** The entry `round` settles which commits may be resumed, and in which order. For each, every rank verifies
//! its share and votes under `votes/resume-NUMBER/`; all wait for all votes and take the commit only if all are for it.
//! Everybody reads the same votes, so nobody steps back alone, whenever it reads them. A missing vote is an error.
//!
//! **What to save.** A cadence by steps needs no talk. What depends on the time or on a request is decided by rank 0, which
//! tells the others of a step to come ([`Notice`]); a step that it declined it begins and abandons at once.
//!
//! A vote is created only if absent, so a rank that asks again finds what it said before. Votes that belong to a
//! checkpoint lie in its folder and go with it; those of a resume go when the next round begins.

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
