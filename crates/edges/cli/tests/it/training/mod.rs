//! Runs while they train: launches, detectors, requests, retries, and what the script and the machine report.

mod containers;
mod detach;
mod detectors;
pub(crate) mod examples;
mod hangs;
mod health;
mod ladder;
mod metric_files;
mod preemptions;
mod progressive;
mod queues;
mod retries;
pub(crate) mod roll_backs;
mod sdk;
mod telemetry;
mod terminals;
mod text;
