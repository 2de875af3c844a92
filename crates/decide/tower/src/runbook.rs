//! What a person can do, per reason; and what the symptom of each detector may mean.

use trackway_core::TerminationReason as Reason;
use trackway_core::detect::Detector;

/// Short lines, most useful first. The long version is `docs/termination-reasons.md`.
#[must_use]
pub const fn next_actions(reason: Reason) -> &'static [&'static str] {
    match reason {
        Reason::Completed => &[
            "no action is needed; `trackway eval run` evaluates its checkpoints, `trackway compare` compares it with earlier runs",
        ],
        Reason::EarlyStopped => &[
            "evaluate the best checkpoint, not the last",
            "look at the validation curve before giving more patience",
        ],
        Reason::Cancelled => &["nothing is wrong: it was ended on request"],
        Reason::Preempted => &[
            "let it resume; if it never commits in time, save more often or at the preemption notice",
            "move to capacity with a higher priority if this repeats",
        ],
        Reason::NodeFailure => &[
            "keep the named node or device out of the next placement",
            "have it checked (Xid, ECC, link counters) before it returns",
        ],
        Reason::HostOom => &[
            "fewer loader workers or less prefetch; a larger memory request or a larger /dev/shm",
            "watch memory over time: a steady rise is a leak",
            "add an entry to retry.host_oom.plan",
        ],
        Reason::DeviceOom => &[
            "smaller batch with gradient accumulation, then activation checkpointing, then sharding",
            "add entries to retry.device_oom.plan so that the next run falls back by itself",
            "check for other processes on the device and for tensors kept in lists",
        ],
        Reason::DataError => &[
            "open the named file or row; quarantine it or repair the source",
            "run `trackway data validate` on the manifest: nothing is launched until it changes",
        ],
        Reason::SchemaDrift => &[
            "compare the schema with the last good run: `trackway data diff`",
            "fix the producer, or change the contract and the code together",
        ],
        Reason::CodeError => &[
            "read the deciding line and the frame above it",
            "reproduce it with one batch: `trackway preflight --only one_batch`",
        ],
        Reason::Hang => &[
            "look at which rank is behind: its stack, its last collective",
            "same operations on every rank? uneven batches? set time-outs on barriers",
            "a slow save or download longer than the collective's time-out looks the same",
        ],
        Reason::Timeout => &[
            "raise the time limit, or resume: commits before the limit are kept",
            "commit before the limit: act on the scheduler's warning signal",
        ],
        Reason::NumericDivergence => &[
            "learning rate ÷ 10, clip gradients, longer warm-up",
            "check the inputs of the step for NaN and Inf",
            "resume from a checkpoint before the divergence; bf16 instead of fp16",
        ],
        Reason::Unhealthy => &[
            "look at what the detector found, with its cause and its advice: `trackway explain`",
            "repair the loader, the machine or the leak before it continues",
        ],
        Reason::CheckpointError => &[
            "`trackway checkpoint verify`, then resume from the one before",
            "model, world size or library version changed since it was written?",
        ],
        Reason::StorageError => &[
            "free space or raise the quota; count inodes too",
            "check the mount or the bucket from the same node, then launch again",
        ],
        Reason::NetworkError => &[
            "is the service or the peer reachable from that node? name, port, proxy, certificate",
            "download models and data before the run, so that it needs no network",
        ],
        Reason::EvaluatorError => &[
            "the training attempt is good: repeat the evaluation alone with `trackway eval run`",
            "check the judge's quota, key and rate limit, the task's files, the metric's input",
        ],
        Reason::BudgetExhausted => &[
            "raise the budget or the quota, or stop here: what was committed is kept",
            "see which attempts spent it: `trackway explain`",
        ],
        Reason::RungRejected => &[
            "compare with the rung before: did the metric or only its interval move?",
            "change the recipe, or relax the promotion rule and document why",
        ],
        Reason::Fenced => &[
            "another attempt owns the run's checkpoints: look for a second launch",
            "ignore everything this attempt wrote after the fence",
        ],
        Reason::Superseded => &["look at the attempt that replaced it"],
        Reason::Unknown => &[
            "look at the last lines and the launcher's records; the evidence did not decide",
            "if a signal ended it: check host memory, the scheduler's log and who was logged in",
        ],
    }
}

/// The section of the runbook about a reason, as a path from the root of the repository with a stable anchor.
#[must_use]
pub fn runbook_section(reason: Reason) -> String {
    format!("docs/termination-reasons.md#{reason}")
}

/// What an end for `reason` means, as the beginning of a sentence.
#[must_use]
pub const fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::Completed => "Training finished",
        Reason::EarlyStopped => "More training would not have helped",
        Reason::Cancelled => "A user requested the end",
        Reason::Preempted => "The machine was reclaimed",
        Reason::NodeFailure => "A machine, a device or its link broke",
        Reason::HostOom => "The memory of the host or container ran out",
        Reason::DeviceOom => "The memory of an accelerator ran out",
        Reason::DataError => "The content of the data stopped the run",
        Reason::SchemaDrift => "The data no longer has the shape that the code expects",
        Reason::CodeError => "The program failed",
        Reason::Hang => "Training made no progress",
        Reason::Timeout => "A time limit was reached",
        Reason::NumericDivergence => "The loss or the gradients diverged",
        Reason::Unhealthy => {
            "A detector ended it because its input, its speed or its memory was not in order"
        }
        Reason::CheckpointError => "A checkpoint could not be saved, read or matched",
        Reason::StorageError => "A disk, file system or object store failed",
        Reason::NetworkError => "Machines could not reach each other or a service",
        Reason::EvaluatorError => "The evaluation failed; the training is not affected",
        Reason::BudgetExhausted => "Money, credit or quota was used up",
        Reason::RungRejected => "The metrics of the rung do not meet the promotion rule",
        Reason::Fenced => "A newer attempt owns the run's checkpoints",
        Reason::Superseded => "It was replaced on purpose by another attempt",
        Reason::Unknown => "The evidence does not show why it ended",
    }
}

/// What a detector sees, and what may cause it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symptom {
    /// What people see.
    pub seen: &'static str,
    /// Likely causes.
    pub causes: &'static str,
    /// What to try.
    pub try_first: &'static str,
}

const fn symptom(seen: &'static str, causes: &'static str, try_first: &'static str) -> Symptom {
    Symptom { seen, causes, try_first }
}

/// The symptom that a detector sees.
#[must_use]
pub const fn symptom_of_detector(detector: Detector) -> Symptom {
    match detector {
        Detector::NonFinite => symptom(
            "loss is NaN",
            "learning rate too high; NaN or Inf in features; overflow or division by zero",
            "learning rate ÷ 10; validate the data; clip gradients",
        ),
        Detector::GradientExplosion => symptom(
            "the gradient norm is far above what it was",
            "learning rate too high; a bad batch; no clipping; weights damaged",
            "clip gradients; lower the learning rate; look at the batch of that step; resume from before it",
        ),
        Detector::GradientVanishing => symptom(
            "the gradient is next to zero",
            "frozen or detached layers; dead or saturated units; a masked loss; underflow in 16 bits",
            "list the parameters that require gradients; look at activations; another initialisation; loss scaling",
        ),
        Detector::LossSpike | Detector::LossShift => symptom(
            "the loss jumps up or stays higher",
            "a bad batch; learning rate too high; labels or inputs changed; optimizer state lost; weights damaged",
            "look at the batches of these steps; resume from before them, and skip them if it happens again",
        ),
        Detector::Plateau => symptom(
            "loss is flat from the start",
            "learning rate too low; frozen layers; the pipeline repeats one batch",
            "raise it; list the parameters that require gradients; log the batch's identity",
        ),
        Detector::ValidationDivergence => symptom(
            "validation loss rises",
            "overfitting; leakage in the splits; learning rate too high late",
            "regularise; verify the splits; decay",
        ),
        Detector::DeadInput => symptom(
            "the same batch comes again",
            "the loader does not advance; its seed is set at each step; one batch is kept by mistake",
            "log the batch's identity; look at the sampler and at what resets it",
        ),
        Detector::SeenBefore => symptom(
            "batches of the first pass repeat",
            "duplicate rows; a sampler that draws with replacement; shards read by several workers or ranks",
            "do not trust `progressive_loss`; find rows that repeat with `trackway data check`; look at the sampler and the shards",
        ),
        Detector::DataStarvation => {
            symptom("device idle though allocated", "waiting for storage", "pre-batch; cache near the worker")
        }
        Detector::ThroughputDrop => symptom(
            "steps take longer than they did",
            "other work on the machine; a throttled device; longer batches; a leak; slower storage",
            "compare the telemetry before and after; profile one step of each",
        ),
        Detector::Straggler => symptom(
            "one rank is slower than the others",
            "a throttled or damaged device; unevenly distributed data; other work on that node",
            "check the node and its device; keep it out of the next placement; even out the shards",
        ),
        Detector::MemoryCreep => symptom(
            "memory grows step by step",
            "tensors kept alive, such as losses added up with their graph; caches without a bound",
            "keep numbers, not tensors (`loss.item()`, `detach()`); bound the caches; restart from a checkpoint in time",
        ),
        Detector::Hang => symptom(
            "a distributed run hangs",
            "one rank died silently; ranks took different branches",
            "the collective library's debug output; time-outs on barriers; same operations on every rank",
        ),
        Detector::LearningRate => symptom(
            "the learning rate, or the size of updates, is out of range",
            "a mistake in the schedule or its unit; the optimizer has no parameters to change",
            "look at the schedule around that step; list the parameters of the optimizer",
        ),
        Detector::LossScaleCollapse => symptom(
            "the loss scale collapses",
            "overflow at every step: NaN in data or weights, or a model that 16 bits cannot hold",
            "resume from where the scale was healthy; lower the learning rate; bf16 instead of fp16",
        ),
        Detector::RankDivergence => symptom(
            "ranks that had the same numbers no longer have them",
            "a parameter that is not synchronised; silent data corruption on one device; different code or data order",
            "compare the weights of the ranks; have that device checked; resume from before the step",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the section of every reason exists in the runbook, and that no two reasons mean the same.
    #[test]
    fn every_reason_has_a_section() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for reason in Reason::ALL {
            let section = runbook_section(*reason);
            let (file, anchor) = section.split_once('#').unwrap();
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            assert!(text.lines().any(|line| line == format!("## {anchor}")), "{section}");
            let alike = Reason::ALL.iter().filter(|other| meaning(**other) == meaning(*reason));
            assert_eq!(alike.count(), 1, "{reason}");
        }
    }
}
