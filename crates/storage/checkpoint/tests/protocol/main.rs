//! The protocol of checkpoints: its models, explored exhaustively, and the real code under every fault.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod disk;
mod explore;
mod remote;
