//! What a person can do, per reason; and what the symptom of each detector may mean.

use trackway_core::TerminationReason as Reason;
use trackway_core::detect::Detector;

/// What is known about the ends for one reason.
struct End {
    /// As the beginning of a sentence.
    meaning: &'static str,
    /// Short lines, most useful first. The long version is `docs/termination-reasons.md`.
    actions: &'static [&'static str],
}

const fn end(reason: Reason) -> End {
    match reason {
        Reason::Completed => COMPLETED,
        Reason::EarlyStopped => EARLY_STOPPED,
        Reason::Cancelled => CANCELLED,
        Reason::Preempted => PREEMPTED,
        Reason::NodeFailure => NODE_FAILURE,
        Reason::HostOom => HOST_OOM,
        Reason::DeviceOom => DEVICE_OOM,
        Reason::DataError => DATA_ERROR,
        Reason::SchemaDrift => SCHEMA_DRIFT,
        Reason::CodeError => CODE_ERROR,
        Reason::Hang => HANG,
        Reason::Timeout => TIMEOUT,
        Reason::NumericDivergence => NUMERIC_DIVERGENCE,
        Reason::Unhealthy => UNHEALTHY,
        Reason::CheckpointError => CHECKPOINT_ERROR,
        Reason::StorageError => STORAGE_ERROR,
        Reason::NetworkError => NETWORK_ERROR,
        Reason::EvaluatorError => EVALUATOR_ERROR,
        Reason::BudgetExhausted => BUDGET_EXHAUSTED,
        Reason::RungRejected => RUNG_REJECTED,
        Reason::Fenced => FENCED,
        Reason::Superseded => SUPERSEDED,
        Reason::Unknown => UNKNOWN,
    }
}

const COMPLETED: End = End { meaning: "Training finished", actions: &["no action is needed"] };
const EARLY_STOPPED: End = End {
    meaning: "More training would not have helped",
    actions: &[
        "evaluate the best checkpoint, not the last",
        "look at the validation curve before giving more patience",
    ],
};
const CANCELLED: End =
    End { meaning: "A user requested the end", actions: &["nothing is wrong: it was ended on request"] };
const PREEMPTED: End = End {
    meaning: "The machine was reclaimed",
    actions: &[
        "let it resume; if it never commits in time, save more often or at the preemption notice",
        "move to capacity with a higher priority if this repeats",
    ],
};
const NODE_FAILURE: End = End {
    meaning: "A machine, a device or its link broke",
    actions: &[
        "keep the named node or device out of the next placement",
        "have it checked (Xid, ECC, link counters) before it returns",
    ],
};
const HOST_OOM: End = End {
    meaning: "The memory of the host or container ran out",
    actions: &[
        "fewer loader workers or less prefetch; a larger memory request or a larger /dev/shm",
        "watch memory over time: a steady rise is a leak",
        "add an entry to retry.host_oom.plan",
    ],
};
const DEVICE_OOM: End = End {
    meaning: "The memory of an accelerator ran out",
    actions: &[
        "smaller batch with gradient accumulation, then activation checkpointing, then sharding",
        "add entries to retry.device_oom.plan so that the next run falls back by itself",
        "check for other processes on the device and for tensors kept in lists",
    ],
};
const DATA_ERROR: End = End {
    meaning: "The content of the data stopped the run",
    actions: &[
        "open the named file or row; quarantine it or repair the source",
        "find the rows with `trackway data check FILE`; nothing is launched until the data, its schema or the code changes",
    ],
};
const SCHEMA_DRIFT: End = End {
    meaning: "The data no longer has the shape that the code expects",
    actions: &[
        "compare the schema with that of the last good run: `trackway data diff BEFORE NOW`",
        "fix the producer, or change the contract and the code together",
    ],
};
const CODE_ERROR: End = End {
    meaning: "The program failed",
    actions: &[
        "read the deciding line and the frame above it",
        "reproduce it with one batch: `trackway rehearse FILE`, with its run file",
    ],
};
const HANG: End = End {
    meaning: "Training made no progress",
    actions: &[
        "look where it waits: its stack",
        "a save, a download or a data loader that takes longer than the time-out looks the same",
        "of several ranks: which one is behind, and its last collective? same operations on each? uneven batches? set time-outs on barriers",
    ],
};
const TIMEOUT: End = End {
    meaning: "A time limit was reached",
    actions: &[
        "raise the time limit, or resume: commits before the limit are kept",
        "commit before the limit: act on the scheduler's warning signal",
    ],
};
const NUMERIC_DIVERGENCE: End = End {
    meaning: "The loss or the gradients diverged",
    actions: &[
        "learning rate ÷ 10, clip gradients, longer warm-up",
        "check the inputs of the step for NaN and Inf",
        "resume from a checkpoint before the divergence; where it computes in fp16, bf16 instead",
    ],
};
const UNHEALTHY: End = End {
    meaning: "A detector ended it because its input, its speed or its memory was not in order",
    actions: &[
        "look at what the detector found, with its cause and its advice: `trackway explain`",
        "repair the loader, the machine or the leak before it continues",
    ],
};
const CHECKPOINT_ERROR: End = End {
    meaning: "A checkpoint could not be saved, read or matched",
    actions: &[
        "which checkpoint was read? `trackway checkpoint verify RUN` reads those of the run",
        "model, world size or library version changed since it was written?",
    ],
};
const STORAGE_ERROR: End = End {
    meaning: "A disk, file system or object store failed",
    actions: &[
        "free space or raise the quota; count inodes too",
        "check the mount or the bucket from the same node, then launch again",
    ],
};
const NETWORK_ERROR: End = End {
    meaning: "Machines could not reach each other or a service",
    actions: &[
        "is the service or the peer reachable from that node? name, port, proxy, certificate",
        "download models and data before the run, so that it needs no network",
    ],
};
const EVALUATOR_ERROR: End = End {
    meaning: "The evaluator that Trackway launched failed; the training is not affected",
    actions: &[
        "the training attempt is good: repeat the evaluation alone with `trackway eval run RUN`",
        "check the judge's quota, key and rate limit, the task's files, the metric's input",
    ],
};
const BUDGET_EXHAUSTED: End = End {
    meaning: "Money, credit or quota was used up",
    actions: &[
        "raise the budget or the quota, or stop here: what was committed is kept",
        "see which attempts spent it: `trackway explain`",
    ],
};
const RUNG_REJECTED: End = End {
    meaning: "The metrics of the rung do not meet the promotion rule",
    actions: &[
        "compare with the rung before: did the metric or only its interval move?",
        "change the recipe, or relax the promotion rule and document why",
    ],
};
const FENCED: End = End {
    meaning: "A newer attempt owns the run's checkpoints",
    actions: &[
        "another attempt owns the run's checkpoints: look for a second launch",
        "ignore everything this attempt wrote after the fence",
    ],
};
const SUPERSEDED: End = End {
    meaning: "It was replaced on purpose by another attempt",
    actions: &["look at the attempt that replaced it"],
};
const UNKNOWN: End = End {
    meaning: "The evidence does not show why it ended",
    actions: &[
        "look at the last lines and the launcher's records; the evidence did not decide",
        "if a signal ended it: check host memory, the scheduler's log and who was logged in",
    ],
};

/// What is known about the ends by some rules, where it is closer than what is known about their reason.
struct Closer {
    rules: &'static [&'static str],
    /// As the beginning of a sentence; none: that of the reason holds.
    meaning: Option<&'static str>,
    actions: &'static [&'static str],
}

const fn closer(rules: &'static [&'static str], actions: &'static [&'static str]) -> Closer {
    Closer { rules, meaning: None, actions }
}

impl Closer {
    const fn meaning(mut self, meaning: &'static str) -> Self {
        self.meaning = Some(meaning);
        self
    }
}

const CREATE_OR_CORRECT: &str = "the path is resolved against the working directory of the run; create there what is missing, the file or its folder, or correct the path";

const BY_RULE: [Closer; 16] = [
    closer(
        &["process.exit_0_after_traceback"],
        &["a traceback was printed before the end: the evidence has its last line; if the script did not handle it, what follows it is missing"],
    )
    .meaning("Training ended with exit code 0 after a traceback, and whether that was handled cannot be known"),
    closer(
        &["storage.file_size", "process.file_size_limit"],
        &["raise the limit of file size of the run (`ulimit -f`) or use a file system that takes such a file, or write smaller files"],
    )
    .meaning("A file was larger than the limit of file size"),
    closer(
        &["host_oom.loader_worker"],
        &[
            "was it memory? the kernel's log (`dmesg`) names a process that it killed for that; else see who sent the signal",
            "fewer loader workers or less prefetch; a larger memory request or a larger /dev/shm",
        ],
    )
    .meaning("A loader worker was killed, as the kernel does when memory runs out"),
    closer(
        &["storage.no_space", "storage.quota", "storage.ephemeral_eviction"],
        &["free space or raise the quota; count inodes too"],
    ),
    closer(
        &["storage.permission"],
        &["give the user of the run the right to what was refused, or the credential of that store; or name another place"],
    )
    .meaning("The run was refused a file or a store"),
    closer(
        &["storage.io_error", "storage.stale_handle", "storage.read_only", "storage.mount"],
        &["check the mount from the same node, then launch again"],
    ),
    closer(
        &["storage.object_store"],
        &["check the bucket from the same node: its address, region, credential and limits; then launch again"],
    ),
    closer(
        &["code.import"],
        &["install what is missing where the run finds it, or correct its name; then launch again"],
    ),
    closer(&["code.syntax"], &["correct the named line: nothing of that file ran"]),
    closer(&["code.arguments"], &["compare the command with what the script's own `--help` lists"]),
    closer(
        &["checkpoint.unreadable_archive"],
        &[
            "the file is torn or damaged: put it away and read an older one",
            "`trackway checkpoint verify RUN` shows which of the run are whole",
        ],
    ),
    closer(
        &["checkpoint.absent_file"],
        &[CREATE_OR_CORRECT, "`trackway checkpoint verify RUN` shows which of the run are whole"],
    )
    .meaning("A checkpoint that the run needs is not there"),
    closer(&["data.absent_file", "data.missing_file"], &[CREATE_OR_CORRECT])
        .meaning("A file that the run needs is not there"),
    closer(
        &["host_oom.cpu_allocator", "host_oom.memory_error"],
        &[
            "look at the shape of the array that did not fit, and at what it is computed from",
            "if it is not large, watch memory over time: a steady rise is a leak",
        ],
    )
    .meaning("One allocation was larger than what was left for this process, by a limit or of the memory"),
    closer(
        &[
            "process.segmentation_fault", "process.illegal_instruction", "process.arithmetic_fault",
            "process.windows_crash", "code.crash",
        ],
        &[
            "see which native code ran: the last lines, and with `PYTHONFAULTHANDLER=1` in its environment (Python's `faulthandler`) the next time the frame",
            "compare the versions of native libraries with those of the last good run; try another machine",
        ],
    )
    .meaning("Native code crashed"),
    closer(
        &["process.abort"],
        &[
            "see which native code ended it: the last lines, and with `PYTHONFAULTHANDLER=1` in its environment (Python's `faulthandler`) the next time the frame",
        ],
    )
    .meaning("Native code ended the process"),
];

/// What a rule of data says of settings, which are the code's matter.
const OF_SETTINGS: Closer = closer(
    &[],
    &[
        "correct the setting: the deciding line has its value, the frame above it shows which one it is",
        "read the deciding line and the frame above it",
    ],
)
.meaning("A setting cannot be read");

/// What is closer to an end than its reason. What to do about an evaluation does not depend on the rule.
fn closer_to(reason: Reason, rule: Option<&str>) -> Option<&'static Closer> {
    let rule = rule.filter(|_| reason != Reason::EvaluatorError)?;
    let of_settings = || reason == Reason::CodeError && rule.starts_with("data.");
    let by_rule = BY_RULE.iter().find(|closer| closer.rules.contains(&rule));
    by_rule.or_else(|| of_settings().then_some(&OF_SETTINGS))
}

/// What must be done before a resume does better, as the beginning of a sentence. `None`: nothing has to be.
#[must_use]
pub fn before_resume(reason: Reason, rule: Option<&str>) -> Option<&'static str> {
    let rule = rule.unwrap_or_default();
    match (reason, rule) {
        (Reason::StorageError, "storage.no_space" | "storage.quota" | "storage.ephemeral_eviction") => {
            Some("when space is freed or the quota raised, ")
        }
        (Reason::StorageError, "storage.file_size" | "process.file_size_limit") => {
            Some("when the limit is raised, ")
        }
        (Reason::StorageError, "storage.permission") => Some("when the right or the credential is there, "),
        (Reason::StorageError, "storage.object_store") => Some("when the bucket answers again, "),
        (Reason::StorageError, _) => Some("when the storage works again, "),
        (Reason::HostOom, "host_oom.shared_memory" | "host_oom.bus_error" | "host_oom.loader_worker") => {
            Some("when there is a larger /dev/shm or memory, or there are fewer loader workers, ")
        }
        (Reason::HostOom, _) => Some("when more memory is given or less is needed, "),
        _ => None,
    }
}

/// What a person can do, most useful first. `rule`: the one that decided about the end, if it is known.
#[must_use]
pub fn next_actions(reason: Reason, rule: Option<&str>) -> &'static [&'static str] {
    closer_to(reason, rule).map_or(end(reason).actions, |closer| closer.actions)
}

/// What an end for `reason`, by `rule` if it is known, means, as the beginning of a sentence.
#[must_use]
pub fn meaning(reason: Reason, rule: Option<&str>) -> &'static str {
    closer_to(reason, rule).and_then(|closer| closer.meaning).unwrap_or(end(reason).meaning)
}

/// The section of the runbook about a reason, as a path from the root of the repository with a stable anchor.
#[must_use]
pub fn runbook_section(reason: Reason) -> String {
    format!("docs/termination-reasons.md#{reason}")
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

/// The symptom that a detector sees.
#[must_use]
pub const fn symptom_of_detector(detector: Detector) -> Symptom {
    match detector {
        Detector::NonFinite => NON_FINITE_SEEN,
        Detector::GradientExplosion => GRADIENT_EXPLOSION_SEEN,
        Detector::GradientVanishing => GRADIENT_VANISHING_SEEN,
        Detector::LossSpike | Detector::LossShift => LOSS_SPIKE_SEEN,
        Detector::Plateau => PLATEAU_SEEN,
        Detector::ValidationDivergence => VALIDATION_DIVERGENCE_SEEN,
        Detector::DeadInput => DEAD_INPUT_SEEN,
        Detector::SeenBefore => SEEN_BEFORE_SEEN,
        Detector::DataStarvation => DATA_STARVATION_SEEN,
        Detector::ThroughputDrop => THROUGHPUT_DROP_SEEN,
        Detector::Straggler => STRAGGLER_SEEN,
        Detector::MemoryCreep => MEMORY_CREEP_SEEN,
        Detector::Hang => HANG_SEEN,
        Detector::LearningRate => LEARNING_RATE_SEEN,
        Detector::LossScaleCollapse => LOSS_SCALE_COLLAPSE_SEEN,
        Detector::RankDivergence => RANK_DIVERGENCE_SEEN,
    }
}

const NON_FINITE_SEEN: Symptom = Symptom {
    seen: "loss is NaN",
    causes: "learning rate too high; NaN or Inf in features; overflow or division by zero",
    try_first: "learning rate ÷ 10; validate the data; clip gradients",
};
const GRADIENT_EXPLOSION_SEEN: Symptom = Symptom {
    seen: "the gradient norm is far above what it was",
    causes: "learning rate too high; a bad batch; no clipping; weights damaged",
    try_first: "clip gradients; lower the learning rate; look at the batch of that step; resume from before it",
};
const GRADIENT_VANISHING_SEEN: Symptom = Symptom {
    seen: "the gradient is next to zero",
    causes: "frozen or detached layers; dead or saturated units; a masked loss; underflow in 16 bits",
    try_first: "list the parameters that require gradients; look at activations; another initialisation; loss scaling",
};
const LOSS_SPIKE_SEEN: Symptom = Symptom {
    seen: "the loss jumps up or stays higher",
    causes: "a bad batch; learning rate too high; labels or inputs changed; optimizer state lost; weights damaged",
    try_first: "look at the batches of these steps; resume from before them, and skip them if it happens again",
};
const PLATEAU_SEEN: Symptom = Symptom {
    seen: "loss is flat from the start",
    causes: "learning rate too low; frozen layers; the pipeline repeats one batch",
    try_first: "raise the learning rate; list the parameters that require gradients; log the batch's identity",
};
const VALIDATION_DIVERGENCE_SEEN: Symptom = Symptom {
    seen: "validation loss rises",
    causes: "overfitting; leakage in the splits; learning rate too high late",
    try_first: "regularise; verify the splits; decay",
};
const DEAD_INPUT_SEEN: Symptom = Symptom {
    seen: "the same batch comes again",
    causes: "the loader does not advance; its seed is set at each step; one batch is kept by mistake",
    try_first: "log the batch's identity; look at the sampler and at what resets it",
};
const SEEN_BEFORE_SEEN: Symptom = Symptom {
    seen: "batches of the first pass repeat",
    causes: "duplicate rows; a sampler that draws with replacement; shards read by several workers or ranks",
    try_first: "do not trust `progressive_loss`; find rows that repeat with `trackway data check`; look at the sampler and the shards",
};
const DATA_STARVATION_SEEN: Symptom = Symptom {
    seen: "device idle though allocated",
    causes: "waiting for storage",
    try_first: "pre-batch; cache near the worker",
};
const THROUGHPUT_DROP_SEEN: Symptom = Symptom {
    seen: "steps take longer than they did",
    causes: "other work on the machine; a throttled device; longer batches; a leak; slower storage",
    try_first: "compare the telemetry before and after; profile one step of each",
};
const STRAGGLER_SEEN: Symptom = Symptom {
    seen: "one rank is slower than the others",
    causes: "a throttled or damaged device; unevenly distributed data; other work on that node",
    try_first: "check the node and its device; keep it out of the next placement; even out the shards",
};
const MEMORY_CREEP_SEEN: Symptom = Symptom {
    seen: "memory grows step by step",
    causes: "tensors kept alive, such as losses added up with their graph; caches without a bound",
    try_first: "keep numbers, not tensors (`loss.item()`, `detach()`); bound the caches; restart from a checkpoint in time",
};
const HANG_SEEN: Symptom = Symptom {
    seen: "a distributed run hangs",
    causes: "one rank died silently; ranks took different branches",
    try_first: "the collective library's debug output; time-outs on barriers; same operations on every rank",
};
const LEARNING_RATE_SEEN: Symptom = Symptom {
    seen: "the learning rate, or the size of updates, is out of range",
    causes: "a mistake in the schedule or its unit; the optimizer has no parameters to change",
    try_first: "look at the schedule around that step; list the parameters of the optimizer",
};
const LOSS_SCALE_COLLAPSE_SEEN: Symptom = Symptom {
    seen: "the loss scale collapses",
    causes: "overflow at every step: NaN in data or weights, or a model that 16 bits cannot hold",
    try_first: "resume from where the scale was healthy; lower the learning rate; bf16 instead of fp16",
};
const RANK_DIVERGENCE_SEEN: Symptom = Symptom {
    seen: "ranks that had the same numbers no longer have them",
    causes: "a parameter that is not synchronised; silent data corruption on one device; different code or data order",
    try_first: "compare the weights of the ranks; have that device checked; resume from before the step",
};

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
            let alike = Reason::ALL.iter().filter(|other| meaning(**other, None) == meaning(*reason, None));
            assert_eq!(alike.count(), 1, "{reason}");
        }
    }

    /// Proves that closer advice is about rules that exist, each once, and that it comes in the place of that of the reason.
    #[test]
    fn closer_advice_is_about_rules() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let listed = std::fs::read_to_string(root.join("docs/termination-reasons.md")).unwrap();
        let mut rules: Vec<&str> = BY_RULE.iter().flat_map(|closer| closer.rules.iter().copied()).collect();
        for rule in &rules {
            assert!(listed.contains(&format!("| `{rule}` |")), "{rule}");
        }
        let count = rules.len();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(rules.len(), count);
        let general = next_actions(Reason::StorageError, None);
        assert_ne!(next_actions(Reason::StorageError, Some("storage.permission")), general);
        assert_eq!(next_actions(Reason::StorageError, Some("exception_name.storage")), general);
        let of_evaluation = next_actions(Reason::EvaluatorError, None);
        assert_eq!(next_actions(Reason::EvaluatorError, Some("storage.permission")), of_evaluation);
    }

    /// Proves that a value of the settings is advised about as a setting, and one of the data as data.
    #[test]
    fn a_setting_is_not_repaired_as_data() {
        let rule = Some("data.delimited_text");
        let says = |reason, words: &str| next_actions(reason, rule).iter().any(|line| line.contains(words));
        assert!(says(Reason::CodeError, "correct the setting") && !says(Reason::CodeError, "trackway data"));
        assert!(says(Reason::DataError, "trackway data check") && !says(Reason::DataError, "setting"));
        assert_eq!(meaning(Reason::CodeError, rule), "A setting cannot be read");
        let absent = meaning(Reason::CodeError, Some("data.absent_file"));
        assert_eq!(absent, "A file that the run needs is not there");
    }

    /// Proves that what has to be done before a resume is said where the machine is to be changed, by the rule, and nowhere else.
    #[test]
    fn a_machine_is_changed_before_a_resume() {
        let space = before_resume(Reason::StorageError, Some("storage.quota"));
        assert_eq!(space, Some("when space is freed or the quota raised, "));
        for reason in Reason::ALL.iter().copied() {
            let is_of_machine = matches!(reason, Reason::StorageError | Reason::HostOom);
            assert_eq!(before_resume(reason, None).is_some(), is_of_machine, "{reason}");
        }
        for rule in ["storage.permission", "storage.object_store"] {
            let of_rule = before_resume(Reason::StorageError, Some(rule));
            assert_ne!(of_rule, before_resume(Reason::StorageError, None), "{rule}");
        }
        let shared = before_resume(Reason::HostOom, Some("host_oom.shared_memory"));
        assert!(shared.is_some_and(|said| said.contains("/dev/shm")));
    }

    /// Proves that an end whose rule says more than its reason is called what it is, and another one by its reason.
    #[test]
    fn a_rule_may_say_more_than_its_reason() {
        let refused = meaning(Reason::StorageError, Some("storage.permission"));
        assert_eq!(refused, "The run was refused a file or a store");
        let absent = meaning(Reason::DataError, Some("data.absent_file"));
        assert_eq!(absent, "A file that the run needs is not there");
        let large = meaning(Reason::HostOom, Some("host_oom.cpu_allocator"));
        assert!(large.starts_with("One allocation was larger than what was left for this process"));
        for rule in [None, Some("code.import"), Some("exception_name.code")] {
            assert_eq!(meaning(Reason::CodeError, rule), "The program failed");
        }
    }
}
