//! The rules of verdicts.

use std::fmt;
use std::str::FromStr;

use trackway_core::{UnknownWord, closed_list, serialized_as_text};

use crate::signatures::RuleName;

closed_list!(
    /// A rule that reads something else than words of a log or of an engine.
    FactRule, "termination rule", {
        /// A newer attempt holds the run's checkpoints.
        OwnFenced = "own_action.fenced",
        /// The attempt was replaced deliberately.
        OwnSuperseded = "own_action.superseded",
        /// A person requested the end.
        OwnStopRequested = "own_action.stop_requested",
        /// The money or GPU time of the run is spent.
        OwnBudgetStop = "own_action.budget_stop",
        /// The supervisor got SIGTERM, which the run file calls a preemption.
        OwnPreemptionNotice = "own_action.preemption_notice",
        /// A time limit of the run file was reached.
        OwnTimeoutKill = "own_action.timeout_kill",
        /// There was no progress for longer than allowed.
        OwnHangKill = "own_action.hang_kill",
        /// A detector ended it because the numbers diverged.
        OwnDivergenceStop = "own_action.divergence_stop",
        /// A detector ended it because its input, its speed or its memory was not in order.
        OwnUnhealthyStop = "own_action.unhealthy_stop",
        /// A rule ended it because more training would not help.
        OwnEarlyStop = "own_action.early_stop",
        /// The script did not continue from its checkpoint.
        OwnWrongResume = "own_action.wrong_resume",
        /// A person injected SIGKILL (`--inject`).
        OwnInjectedKill = "own_action.injected_kill",
        /// A person injected SIGTERM (`--inject`).
        OwnInjectedTerm = "own_action.injected_term",
        /// The command could not be started.
        CouldNotStart = "process.could_not_start",
        /// The kernel killed a process of the attempt's cgroup for memory.
        CgroupOomKill = "cgroup.oom_kill",
        /// The script ended by itself with exit code 0.
        ExitZero = "process.exit_0",
        /// The script ended by itself with exit code 0 after a traceback of which nothing shows whether it was handled.
        ExitZeroAfterTraceback = "process.exit_0_after_traceback",
        /// The script ended by itself with exit code 0 after it logged an error of which nothing shows whether it was handled.
        ExitZeroAfterError = "process.exit_0_after_error",
        /// The script ended at the last step of a bounded launch.
        EndedAtLastStep = "process.ended_at_last_step",
        /// No exit was recorded, and the machine was restarted.
        MachineRestarted = "process.machine_restarted",
        /// No exit was recorded.
        ExitNotRecorded = "process.exit_not_recorded",
        /// Exit code 2, which programs use for wrong arguments.
        ExitUsage = "process.exit_2_usage",
        /// Exit code 124, which `timeout` uses.
        ExitTimeout = "process.exit_124_timeout",
        /// Exit code 126 or 127: a shell could not start the command.
        CommandNotRunnable = "process.command_not_runnable",
        /// SIGINT.
        Interrupted = "process.interrupted",
        /// SIGILL.
        IllegalInstruction = "process.illegal_instruction",
        /// SIGABRT.
        Abort = "process.abort",
        /// SIGBUS, often shared memory that ran out.
        BusError = "process.bus_error",
        /// SIGFPE.
        ArithmeticFault = "process.arithmetic_fault",
        /// SIGSEGV.
        SegmentationFault = "process.segmentation_fault",
        /// SIGXCPU.
        CpuTimeLimit = "process.cpu_time_limit",
        /// SIGXFSZ.
        FileSizeLimit = "process.file_size_limit",
        /// SIGTERM from outside, which the run file calls a preemption.
        SigtermPreempts = "process.sigterm_preempts",
        /// Another signal, which does not say who sent it.
        KilledFromOutside = "process.killed_from_outside",
        /// The exit code is a status of Windows for a crash.
        WindowsCrash = "process.windows_crash",
        /// The exit code is the status of Windows for Ctrl-C.
        WindowsInterrupt = "process.windows_interrupt",
        /// The exit code is a status of Windows for memory that ran out.
        WindowsOutOfMemory = "process.windows_out_of_memory",
        /// The last losses in the log are NaN or infinite.
        LastLossNotFinite = "log.last_loss_not_finite",
        /// The last count of epochs or steps in the log is complete, and nothing failed.
        CountComplete = "log.count_complete",
        /// The last line of standard error before an exit code that nothing explains.
        LastWords = "log.last_words",
        /// The training loss was NaN or infinite to the end.
        LossNotFinite = "metrics.loss_not_finite",
        /// A traceback without the line of its exception, or with one of no known class.
        TornTraceback = "traceback.without_its_end",
        /// The metrics of the rung do not meet the promotion rule.
        RungRefused = "rung.promotion_refused",
        /// There is no evidence.
        NoEvidence = "unknown.no_evidence",
        /// As MLflow's store has it.
        ImportedFromMlflow = "import.mlflow",
        /// As the offline files of Weights & Biases have it.
        ImportedFromWandb = "import.wandb",
        /// As event files of TensorBoard have it.
        ImportedFromTensorboard = "import.tensorboard",
    }
);

/// The rule that decided why an attempt ended: `training_attempts.termination_rule`. The list is closed
/// (`docs/termination-reasons.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TerminationRule {
    /// What Trackway did, how the process ended, what the metrics show.
    Fact(FactRule),
    /// A row of the tables of log lines and engine states.
    Signature(RuleName),
}

impl TerminationRule {
    /// Every rule.
    pub fn all() -> impl Iterator<Item = Self> {
        FactRule::ALL.iter().copied().map(Self::Fact).chain(RuleName::every().map(Self::Signature))
    }

    /// The name as it is in the ledger and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fact(rule) => rule.as_str(),
            Self::Signature(rule) => rule.as_str(),
        }
    }
}

impl From<FactRule> for TerminationRule {
    fn from(rule: FactRule) -> Self {
        Self::Fact(rule)
    }
}

impl From<RuleName> for TerminationRule {
    fn from(rule: RuleName) -> Self {
        Self::Signature(rule)
    }
}

impl fmt::Display for TerminationRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for TerminationRule {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        word.parse().map(Self::Fact).or_else(|unknown| word.parse().map(Self::Signature).map_err(|_| unknown))
    }
}

serialized_as_text!(TerminationRule);

#[cfg(debug_assertions)]
impl schemars::JsonSchema for TerminationRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TerminationRule".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "The rule that gave a termination its reason, as in docs/termination-reasons.md.",
        })
    }
}
