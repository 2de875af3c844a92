//! A launch that is not a training attempt.

use std::collections::BTreeMap;
use std::ffi::OsString;

use trackway_core::{Rung, Step};
use trackway_formats::runfile::PlanEntry;

use crate::run::watch::inject::Injection;
use crate::run::watch::watchdog::Limits;

/// One launch that is not a training attempt.
#[derive(Debug, Clone, Default)]
pub struct Rehearsal {
    /// Trackway's variables for it.
    pub environment: BTreeMap<String, OsString>,
    /// What entries of the retry plan change.
    pub in_force: PlanEntry,
    /// The fault that is part of it.
    pub injection: Option<Injection>,
    /// How long the script may take until it speaks to the recorder.
    pub handshake_seconds: Option<f64>,
    /// How long it may take; the run file's own limit counts too.
    pub timeout_seconds: Option<f64>,
    /// How long it may be without a new step; the run file's own limit counts too.
    pub hang_after_seconds: Option<f64>,
    /// The last step that is needed.
    pub last_step: Option<Step>,
    /// The rung of the data; `None`: all of it.
    pub rung: Option<Rung>,
    /// Whether the stacks of its processes are taken every two seconds, as many as are kept of an attempt.
    pub takes_stacks: bool,
}

impl Rehearsal {
    /// A rehearsal has separate bounds; the shorter time limit counts.
    pub(super) fn limits(&self, limits: Limits) -> Limits {
        let shorter =
            |own: Option<f64>, of_file: Option<f64>| own.into_iter().chain(of_file).min_by(f64::total_cmp);
        Limits {
            timeout_seconds: shorter(self.timeout_seconds, limits.timeout_seconds),
            hang_after_seconds: shorter(self.hang_after_seconds, limits.hang_after_seconds),
            handshake_seconds: self.handshake_seconds,
            last_step: self.last_step,
            ..limits
        }
    }
}
