//! The command line as a user meets it: exit code, stdout and stderr of the real binary.
#![allow(missing_docs, clippy::disallowed_methods, reason = "tests wait on the real clock")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic and print")]

mod adopted;
mod adopted_names;
mod amendments;
mod arguments;
mod bad_input;
mod changes;
mod checkpoints;
mod containers;
mod coverage;
mod cross_validation;
mod data;
mod data_check;
mod data_clean;
mod data_sets;
mod database_loss;
mod decoders;
mod deletion;
mod detach;
mod detectors;
mod diagnose;
mod documents;
mod evaluations;
mod evidence;
mod example_evaluators;
mod examples;
mod exports;
mod faults;
mod hangs;
mod harness;
mod health;
mod imports;
mod init;
mod install;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod kill_steps;
mod ladder;
mod leakage;
mod memory;
mod metric_files;
mod metrics;
mod modes;
mod names;
mod neighbours;
mod notifications;
mod postgres;
#[path = "../../../../storage/ledger/tests/postgres_cluster/mod.rs"]
#[allow(dead_code, reason = "the ledger's own tests use the rest")]
mod postgres_cluster;
mod postmortems;
mod preemptions;
mod preflight;
mod probe;
mod progressive;
mod prove;
mod rebuild;
mod receipts;
mod redaction;
mod registry;
mod rehearsals;
mod remote;
mod retries;
mod roll_backs;
mod safe_copies;
mod saved_models;
mod score;
mod scorers;
mod screens;
mod sdk;
mod settings;
mod shown;
mod slices;
mod smell;
mod states_in_parts;
mod supervisors;
mod telemetry;
mod terminals;
mod test_sets;
mod text;
mod tracking;
#[path = "../../../../app/api/tests/support/validate.rs"]
mod validate;
mod verifying;

/// Prints that kills at every step are skipped where no tracer is written for the system.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[test]
fn kill_steps() {
    trackway_skip::skip!("kills at every step need Linux on x86-64 or aarch64");
}
