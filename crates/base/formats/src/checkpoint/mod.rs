//! Checkpoints on a disk: what one consists of, where it comes from, and who wrote its files.

pub mod checkpoint_manifest;
pub mod checkpoint_origin;
pub mod writers;
