//! The protocol of checkpoints: its models, explored exhaustively, and the real code under every fault.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod explore;
mod model_disk;
mod model_remote;
