//! What may be a checkpoint: the paths that the patterns name, what is read of their files, and which files hold one state together.

pub(super) mod candidate;
pub(super) mod kinds;
mod matching;
mod noting;
pub(super) mod parts;
pub(super) mod patterns;
pub(super) mod places;
mod reads;
pub(super) mod saves;
