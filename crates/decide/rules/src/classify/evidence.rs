//! Everything that is known about an end, as plain data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trackway_core::{LaunchKind, Step, TerminationReason as Reason, Timestamp};
use trackway_formats::record::RankEnd;

use super::rule::FactRule;
use super::settings;
use crate::scan::LogEvidence;

/// Which of the script's streams.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The scan of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamLog {
    pub stream: Stream,
    /// What the scanner found.
    pub log: LogEvidence,
}

/// The launcher's statement about the end, in the engine's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LauncherState {
    /// `slurm`, `kubernetes`, `ray`, `local` or another launcher's name.
    pub source: String,
    /// The state, such as `OUT_OF_MEMORY`, `FAILED`, `STOPPED`.
    pub state: String,
    /// The reason or message, such as `OOMKilled`, `NodeDown`; empty when there is none.
    pub reason: String,
}

/// What Trackway did to an attempt. Of several actions the least is the reason: they are listed from the strongest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// A newer attempt holds the run's checkpoints.
    Fenced,
    /// The attempt was replaced on purpose.
    Superseded,
    /// A user requested the end.
    StopRequested,
    /// The money or GPU time of the run is spent.
    BudgetStop,
    /// The supervisor got SIGTERM, which the run file calls a preemption.
    PreemptionNotice,
    /// A limit of time of the run file was reached.
    TimeoutKill,
    /// Nothing moved for longer than allowed.
    HangKill,
    /// A detector's rule ended it because the numbers ran away.
    DivergenceStop,
    /// A detector's rule ended it because its input, its speed or its memory was not in order.
    UnhealthyStop,
    /// A rule ended it because more training would not help.
    EarlyStop,
    /// It was to continue from a checkpoint and began before it, and the run file ends such an attempt.
    WrongResume,
    /// A person injected SIGKILL (`--inject`).
    InjectedKill,
    /// A person injected SIGTERM (`--inject`).
    InjectedTerm,
}

impl ActionKind {
    /// The reason of an action and its rule. An injected fault has the reason that it imitates.
    pub(super) fn meaning(self) -> (Reason, FactRule) {
        match self {
            Self::Fenced => (Reason::Fenced, FactRule::OwnFenced),
            Self::Superseded => (Reason::Superseded, FactRule::OwnSuperseded),
            Self::StopRequested => (Reason::Cancelled, FactRule::OwnStopRequested),
            Self::BudgetStop => (Reason::BudgetExhausted, FactRule::OwnBudgetStop),
            Self::PreemptionNotice => (Reason::Preempted, FactRule::OwnPreemptionNotice),
            Self::TimeoutKill => (Reason::Timeout, FactRule::OwnTimeoutKill),
            Self::HangKill => (Reason::Hang, FactRule::OwnHangKill),
            Self::DivergenceStop => (Reason::NumericDivergence, FactRule::OwnDivergenceStop),
            Self::UnhealthyStop => (Reason::Unhealthy, FactRule::OwnUnhealthyStop),
            Self::EarlyStop => (Reason::EarlyStopped, FactRule::OwnEarlyStop),
            Self::WrongResume => (Reason::CheckpointError, FactRule::OwnWrongResume),
            Self::InjectedKill => (Reason::NodeFailure, FactRule::OwnInjectedKill),
            Self::InjectedTerm => (Reason::Preempted, FactRule::OwnInjectedTerm),
        }
    }
}

/// One recorded action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAction {
    /// What was done.
    pub kind: ActionKind,
    /// When it was first done.
    pub at: Timestamp,
    /// Whether SIGKILL was sent: at once, or after the grace period.
    pub kill_sent: bool,
    /// A description of why.
    pub why: String,
}

/// What a process left in `TORCHELASTIC_ERROR_FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorFile {
    /// The exception's message.
    pub message: String,
    /// The traceback, empty when the file holds none.
    pub traceback: String,
    /// When it was raised.
    pub at: Option<Timestamp>,
}

/// A training loss whose last values are NaN or infinite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonFiniteLoss {
    pub metric: String,
    /// The step from which on no value was finite.
    pub from_step: Step,
    /// The step of its last value.
    pub last_step: Step,
    /// Values from that step on.
    pub count: u64,
    /// All of its values.
    pub point_count: u64,
}

impl NonFiniteLoss {
    /// Values in a row that no skipped update explains: a loss scale is found by a few overflows.
    const CERTAIN_COUNT: u64 = 3;

    /// Whether it is more than an update that was skipped at the very end.
    pub(super) fn is_certain(&self) -> bool {
        self.count >= Self::CERTAIN_COUNT || self.count == self.point_count
    }
}

/// How far the attempt came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The last step reported.
    pub last_step: Option<Step>,
    /// When the script recorded its last step, by its own clock; none of steps that it only printed.
    #[serde(default)]
    pub last_step_at: Option<Timestamp>,
    /// Seconds between the last heartbeat and the end.
    pub seconds_since_last_heartbeat: Option<f64>,
    /// Whether the recorder asked the script to end because it had made all steps of a bounded launch.
    #[serde(default)]
    pub reached_last_step: bool,
}

/// Everything known about an end. Absent facts are `None` or empty; nothing is assumed from absence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TerminationEvidence {
    /// What the launch was for.
    pub kind: LaunchKind,
    /// Whether it was launched by Trackway, so that `kind` is known. Of a log alone it is not known whether an evaluator wrote it.
    #[serde(default)]
    pub is_launch: bool,
    /// The exit code, when the process exited. Negative values are a wrapper's way of naming a signal.
    pub exit_code: Option<i32>,
    /// The signal that ended the process, as `wait` reports it. 137 is a code, not signal 9.
    pub signal: Option<i32>,
    /// Whether the run file calls a SIGTERM from outside a preemption.
    #[serde(default)]
    pub sigterm_preempts: bool,
    /// Whether a signal reached the script through Trackway before it ended; none if that was not recorded.
    #[serde(default)]
    pub was_signalled: Option<bool>,
    /// The state that the engine gives.
    pub launcher: Option<LauncherState>,
    /// What Trackway did.
    pub own_actions: Vec<OwnAction>,
    /// Whether the attempt had its whole grace period before it was killed.
    #[serde(default)]
    pub killed_after_grace: bool,
    /// How many OOM kills the attempt's own cgroup counted.
    pub oom_kill_delta: Option<u64>,
    /// The error file, when one was left.
    pub error_file: Option<ErrorFile>,
    /// The scanned streams.
    pub logs: Vec<StreamLog>,
    /// How far it came.
    pub progress: Progress,
    /// The training loss, if it was NaN or infinite to the end.
    #[serde(default)]
    pub non_finite_loss: Option<NonFiniteLoss>,
    /// How the ranks ended that recorded themselves.
    #[serde(default)]
    pub ranks: Vec<RankEnd>,
    /// Why the exit is not known: the shim that should have recorded it vanished.
    pub shim_lost: Option<String>,
    /// Whether the machine rebooted since the attempt began.
    pub rebooted: bool,
    /// Why the command could not be started (with the errno's text).
    pub spawn_error: Option<String>,
    /// Why the promotion rule of the run's ladder refuses this rung, with the numbers; `None`: it does not.
    #[serde(default)]
    pub rung_refused: Option<String>,
    /// Values that the log says cannot be read and that files of settings have ([`Self::take_settings`]).
    #[serde(default)]
    pub rejected_settings: Vec<String>,
}

impl TerminationEvidence {
    /// Evidence of which nothing is known yet.
    #[must_use]
    pub fn new(kind: LaunchKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// The same of a launch of Trackway.
    #[must_use]
    pub fn of_launch(kind: LaunchKind) -> Self {
        Self { is_launch: true, ..Self::new(kind) }
    }

    /// Takes the texts of the files of settings that the command names, which are read only where the log rejects a
    /// value. The logs come first.
    pub fn take_settings(&mut self, texts: impl FnOnce() -> Vec<String>) {
        let hits = self.logs.iter().flat_map(|log| &log.log.hits);
        let rejected: BTreeSet<&str> = hits.filter_map(settings::rejected_value).collect();
        if rejected.is_empty() {
            return;
        }
        let texts = texts();
        let is_set = |value: &&str| texts.iter().any(|text| settings::has_value(text, value));
        self.rejected_settings = rejected.into_iter().filter(is_set).map(str::to_owned).collect();
    }
}
