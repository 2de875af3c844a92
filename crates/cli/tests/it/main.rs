//! The command line as a user meets it: exit code, stdout and stderr of the real binary.
#![allow(missing_docs, clippy::disallowed_methods, reason = "tests wait on the real clock")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic, and say what they skip")]

mod bad_input;
mod checkpoints;
mod data;
mod data_check;
mod data_sets;
mod detectors;
mod evaluations;
mod example_evaluators;
mod examples;
mod faults;
mod hangs;
mod harness;
mod imports;
mod leakage;
mod memory;
mod metrics;
mod postgres;
#[path = "../../../ledger/tests/postgres_cluster/mod.rs"]
#[allow(dead_code, reason = "the ledger's own tests use the rest")]
mod postgres_cluster;
mod preflight;
mod probe;
mod progressive;
mod prove;
mod receipts;
mod registry;
mod rehearsals;
mod remote;
mod retries;
mod roll_backs;
mod score;
mod scorers;
mod sdk;
mod slices;
mod stages;
mod telemetry;
mod tracking;
