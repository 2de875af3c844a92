use clap::Args;
use trackway_core::DiagnosisKind;
use trackway_flows::runs::diagnose;

use super::values::Seconds;
use super::{Word, one_of};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway diagnose last                                trace NaN, a hang or slow steps
  trackway diagnose last --kind throughput --steps 30   profile 30 steps
  trackway diagnose last --kind numeric --from-step 4000   observe gradients from step 4000 on
  trackway diagnose att_01kabc --json

The job is launched again for a few steps, from a copy of the last checkpoint before the symptom. It is not a training attempt, \
and the run's checkpoints are only read. Files that the script itself writes elsewhere are written again. The finding is evidence \
of the attempt: `trackway explain` shows it. See docs/diagnosis.md.

Exit codes: 0 found; 4 not reproduced, not observed, or incomplete; 3 nothing to launch")]
pub struct DiagnoseArgs {
    /// Run (its newest attempt with a symptom) or attempt: id, unique part of an id, name, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub subject: String,
    /// What to observe [default: what fits the symptom]
    #[arg(long, value_name = "KIND", value_parser = one_of(&KINDS))]
    pub kind: Option<DiagnosisKind>,
    /// Number of steps [default: up to 20 steps past the symptom, or 50 of throughput]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub steps: Option<u64>,
    /// Continue from the newest checkpoint at or before this step; 0: from the beginning
    #[arg(long, value_name = "N")]
    pub from_step: Option<u64>,
    /// Time limit of the launch
    #[arg(long, value_name = "DURATION", default_value_t = Seconds(diagnose::TIMEOUT_SECONDS))]
    pub timeout: Seconds,
    /// Time without a step after which it counts as a hang
    #[arg(long, value_name = "DURATION", default_value_t = Seconds(diagnose::HANG_AFTER_SECONDS))]
    pub hang_after: Seconds,
}

/// What to observe.
const KINDS: [Word<DiagnosisKind>; 3] = [
    (
        "numeric",
        DiagnosisKind::Numeric,
        "The first NaN or infinite value: its layer, operation, parameter and batch",
    ),
    ("throughput", DiagnosisKind::Throughput, "What the time of a step is spent on"),
    ("hang", DiagnosisKind::Hang, "Where each process is when training makes no progress"),
];
