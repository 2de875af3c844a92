//! The command line as a user meets it: exit code, stdout and stderr of the real binary.
#![allow(missing_docs, clippy::disallowed_methods, reason = "tests wait on the real clock")]

mod bad_input;
mod examples;
mod faults;
mod harness;
mod receipts;
mod retries;
