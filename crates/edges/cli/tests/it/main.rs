//! The command line as a user meets it: exit code, stdout and stderr of the real binary.
#![allow(missing_docs, clippy::disallowed_methods, reason = "tests wait on the real clock")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic and print")]

mod adopted;
mod checks;
mod data;
mod documents;
mod evaluations;
mod faults;
mod harness;
mod install;
mod models;
#[path = "../../../../storage/ledger/tests/postgres_cluster/mod.rs"]
#[allow(dead_code, reason = "the ledger's own tests use the rest")]
mod postgres_cluster;
mod records;
mod safety;
mod screens;
mod training;
#[path = "../../../../app/api/tests/support/validate.rs"]
mod validate;

/// Prints that kills at every step are skipped where no tracer is written for the system.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[test]
fn kill_steps() {
    trackway_skip::skip!("kills at every step need Linux on x86-64 or aarch64");
}
