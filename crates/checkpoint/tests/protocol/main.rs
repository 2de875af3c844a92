//! The protocol of checkpoints: its models, explored exhaustively, and the real code under every fault.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod explore;
mod model_disk;
