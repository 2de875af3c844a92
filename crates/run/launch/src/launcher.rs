use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, BoxError, Timestamp};
use trackway_redact::Redactor;

use crate::{AttemptChannel, ExitRecord, LaunchSpec, Offer, StackDump};

/// Starts attempts and reports their states. Local processes, Slurm, Kubernetes and Ray all fit.
///
/// The contract, which [`crate::conformance`] checks:
/// - What [`Launcher::offer`] does not give is refused by `launch`, with the same reason.
/// - `launch` is idempotent by attempt id: the second call finds the first launch, also after a crash in between.
/// - Silence is never death. [`Observation::Gone`] is proof; without a way to look, it is [`Observation::CannotTell`].
/// - Every answer has the time at which it was true: [`ObservedAttempt::seen_at`] is when the launcher looked, also if it answers
///   from a cache.
/// - The end of an attempt is returned by every call; once a launcher has returned it, also while its engine does not
///   answer.
/// - An attempt that waits for its turn has a time at which it was submitted, and neither an instance nor a start.
/// - An end is reported once the files that [`ExitRecord::files`] lists have arrived, or are not waited for any longer.
/// - Any process may call any method with a placement that another one made.
pub trait Launcher: Send + Sync {
    /// The launcher's name in placements and run files, such as `local`.
    fn name(&self) -> &'static str;

    /// The engine whose attempts it starts, by its name in the settings; none: the default engine of its kind.
    fn engine(&self) -> Option<&str> {
        None
    }

    /// What it can give now; `directory` is where the attempt's files would be, and need not exist yet.
    ///
    /// # Errors
    /// [`LaunchError::Unavailable`] when that cannot be found out now.
    fn offer(&self, directory: &Path) -> Result<Offer, LaunchError>;

    /// Starts the attempt, or finds it when it was started before. Returns when it has a place, not when it runs.
    ///
    /// # Errors
    /// [`LaunchError::Refused`] when a retry cannot help, [`LaunchError::Unavailable`] when it may. A script that
    /// cannot be executed is not an error here: the attempt ends at once, with a `spawn_error` in its exit record.
    fn launch(&self, spec: &LaunchSpec, redactor: &Redactor) -> Result<Placement, LaunchError>;

    /// Finds an attempt whose placement was lost: its supervisor ended before it was noted, or the reply to the launch was lost. `None`
    /// when it never began.
    ///
    /// # Errors
    /// When that cannot be found out now.
    fn find(&self, attempt_id: AttemptId, directory: &Path) -> Result<Option<Placement>, LaunchError>;

    /// What can be known about the attempt now. Returns at once.
    ///
    /// # Errors
    /// [`LaunchError::ForeignPlacement`]; everything that merely could not be found out is
    /// [`Observation::CannotTell`].
    fn observe(&self, placement: &Placement) -> Result<ObservedAttempt, LaunchError>;

    /// Like [`Launcher::observe`], but waits for the end, at most so long. May return early with another observation
    /// than the end; callers loop.
    ///
    /// # Errors
    /// As for [`Launcher::observe`].
    fn wait(&self, placement: &Placement, timeout: Duration) -> Result<ObservedAttempt, LaunchError>;

    /// How long an answer is good enough: a supervisor polls one attempt no more often than this. If an engine is
    /// polled, one poll serves the questions about all attempts.
    fn poll_interval(&self) -> Duration;

    /// Requests the end of the attempt, which [`Launcher::observe`] will report. Stopping what has ended is not an
    /// error.
    ///
    /// # Errors
    /// [`LaunchError::Unavailable`] when the request could not be delivered.
    fn stop(&self, placement: &Placement, mode: StopMode) -> Result<(), LaunchError>;

    /// The way to what the attempt writes while it runs, and to its script.
    ///
    /// # Errors
    /// [`LaunchError::ForeignPlacement`].
    fn channel(&self, placement: &Placement) -> Result<Arc<dyn AttemptChannel>, LaunchError>;

    /// What every process of a living attempt does at present; needs some seconds at most and changes nothing. An attempt
    /// that has ended has none.
    ///
    /// # Errors
    /// [`LaunchError::Unavailable`] where its processes cannot be seen from here.
    fn stacks(&self, _placement: &Placement) -> Result<StackDump, LaunchError> {
        let why = "it cannot see the processes of an attempt".into();
        Err(LaunchError::Unavailable { launcher: self.name(), what: "read the stacks", why })
    }
}

/// Where an attempt was put, which never changes again. Plain data: it goes into the ledger and comes back in another process.
/// The machines it got are in [`ObservedAttempt`]: an engine may not know them yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// [`Launcher::name`] of the launcher that made it.
    pub launcher: String,
    /// [`Launcher::engine`] of that launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The launcher's name for the job.
    pub job_id: String,
    /// The queue or partition.
    pub queue: Option<String>,
    /// What the launcher needs to find it again; other readers leave it alone. What is stored of it passes the redactor: a member whose
    /// name is that of a secret (`key`, `token`) would be lost.
    pub extra: serde_json::Value,
}

/// One look at an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedAttempt {
    /// What is known about it.
    pub state: Observation,
    /// When the launcher looked, by the wall clock of the process that looked; an answer from a cache keeps its time.
    pub seen_at: Timestamp,
    /// The state in the engine's own words; none where there is no engine.
    pub engine_state: Option<EngineState>,
    /// When the engine took the job into its queue, by the engine's clock; none where there is no engine, or it does not say.
    pub submitted_at: Option<Timestamp>,
    /// When the engine started it, by the engine's clock; none before that, where there is no engine, or it does not say.
    pub started_at: Option<Timestamp>,
    /// Which start of the job this is about; none before it started.
    pub instance: Option<Instance>,
    /// The machines it runs on, as far as they are known.
    pub hosts: Vec<String>,
    /// The accelerators it was given, as the launcher names them.
    pub devices: Vec<String>,
}

impl ObservedAttempt {
    /// Whether nothing will change any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.state.is_final()
    }

    /// Whether it ended in the queue of its engine, and was never started.
    #[must_use]
    pub fn never_started(&self) -> bool {
        let waited = self.submitted_at.is_some() && self.started_at.is_none() && self.instance.is_none();
        waited && matches!(self.state, Observation::Gone { .. })
    }
}

/// A state in the words of the engine that has it. What they mean for an end is known to the tables of `trackway-rules`, by engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineState {
    /// The engine: `slurm`, `kubernetes`, `ray` or another one.
    pub engine: String,
    /// The state, such as `OUT_OF_MEMORY`, `Failed` or `PENDING`.
    pub state: String,
    /// The reason that the engine gives for it, such as `OOMKilled` or `Priority`; empty where it gives none.
    #[serde(default)]
    pub reason: String,
}

/// Which start of a job: where an engine starts a job again by itself, that is another instance. Only ever compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instance(pub String);

/// What is known about an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// It waits for its turn.
    Pending {
        /// What it waits for.
        why: String,
    },
    /// Its processes are there.
    Running(Running),
    /// It ended, and how is on record. Boxed, because it is large.
    Exited(Box<ExitRecord>),
    /// It is proved to have ended, and there is no record of how.
    Gone {
        /// The proof.
        why: String,
        /// The machine rebooted since.
        rebooted: bool,
    },
    /// It cannot be found out from here.
    CannotTell {
        /// What could not be looked at.
        why: String,
        /// Looking again from here does not help, as on another machine than its own.
        is_lasting: bool,
    },
}

/// What is known about a running attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Running {
    /// The main process.
    pub pid: Option<i32>,
    /// The main process has ended with code 0; others still hold its output open since then.
    pub main_ended_at: Option<Timestamp>,
    /// There will be no exit record: the shim is gone and the script continues without it.
    pub unsupervised: bool,
}

impl Observation {
    /// Whether nothing will change any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Exited(_) | Self::Gone { .. })
    }
}

/// How to stop an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StopMode {
    /// SIGTERM now, SIGKILL for whatever is left after the grace period.
    Graceful {
        /// Seconds, 0 or more.
        grace_seconds: f64,
    },
    /// As Ctrl-C in the terminal of the script: SIGINT now, SIGTERM after half of the grace period, SIGKILL for whatever is left after it.
    Interrupt {
        /// Seconds, 0 or more.
        grace_seconds: f64,
    },
    /// SIGKILL for the whole tree now.
    Kill,
}

impl StopMode {
    /// The first signal, and the seconds until SIGKILL.
    pub(crate) fn first_signal(self) -> (Signal, f64) {
        match self {
            Self::Graceful { grace_seconds } => (Signal::SIGTERM, grace_seconds),
            Self::Interrupt { grace_seconds } => (Signal::SIGINT, grace_seconds),
            Self::Kill => (Signal::SIGKILL, 0.0),
        }
    }
}

impl LaunchError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::File { .. } => true,
            Self::Refused { .. } | Self::ForeignPlacement { .. } => false,
        }
    }
}

/// What can go wrong with launchers, in terms true for each of them.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot launch attempt `{attempt}`: {why}")]
    Refused { attempt: String, why: String },
    #[error("the `{launcher}` launcher could not {what}: {why}")]
    Unavailable {
        launcher: &'static str,
        what: &'static str,
        #[source]
        why: BoxError,
    },
    #[error("could not {what} `{path}`")]
    File { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("a placement of launcher `{found}` was given to launcher `{expected}`")]
    ForeignPlacement { expected: &'static str, found: String },
}
