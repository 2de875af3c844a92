//! What comes before a training: the run file, its checks, the memory it needs, rehearsals, and proofs of resume.

mod arguments;
mod init;
mod memory;
pub(crate) mod preflight;
pub(crate) mod prove;
pub(crate) mod rehearsals;
