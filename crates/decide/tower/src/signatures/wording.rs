//! Topics and troubles, as words: what the last lines of a log speak of where no rule knows the program that wrote them.

use trackway_core::TerminationReason::{
    self, BudgetExhausted, CheckpointError, DataError, DeviceOom, Hang, HostOom, NetworkError, NodeFailure,
    NumericDivergence, Preempted, SchemaDrift, StorageError, Timeout,
};

/// A line with a word of each list speaks of the reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wording {
    pub(crate) reason: TerminationReason,
    pub(crate) topics: &'static [&'static str],
    pub(crate) troubles: &'static [&'static [&'static str]],
}

const FAILED: &[&str] = &[
    "fail", "failed", "fails", "failure", "error", "errors", "cannot", "can't", "couldn't", "unable", "lost",
    "broken", "aborted", "refused", "denied", "unavailable", "unreachable", "crashed", "died", "rejected",
];
const LIMIT: &[&str] =
    &["exceeded", "exceeds", "exceed", "exceeding", "exhausted", "insufficient", "reached", "full", "over"];
const TAKEN: &[&str] = &["was", "were", "been", "being", "notice", "signal", "received", "by", "because"];
const GONE: &[&str] = &[
    "lost", "died", "dead", "down", "unhealthy", "unreachable", "fault", "faulty", "crashed", "unresponsive",
    "rebooted", "failure",
];
const BROKEN: &[&str] =
    &["corrupt", "corrupted", "malformed", "invalid", "empty", "truncated", "unreadable", "damaged", "bad"];
const MISSING: &[&str] =
    &["missing", "mismatch", "mismatched", "incompatible", "differ", "differs", "unexpected", "doesn't"];
const CUT: &[&str] = &["timeout", "timed", "reset", "closed", "disconnected", "dropped"];
const OF_TRAINING: &[&str] = &[
    "loss", "losses", "gradient", "gradients", "grad", "weights", "parameters", "activations", "logits",
    "training", "stop", "stopping", "abort", "aborting",
];

/// In the order in which a line is read.
pub(crate) const WORDINGS: &[Wording] = &[
    Wording {
        reason: Preempted,
        topics: &["preempted", "preemption", "reclaimed", "evicted", "eviction"],
        troubles: &[TAKEN],
    },
    Wording {
        reason: DeviceOom,
        topics: &["vram", "hbm", "gpu-memory", "gpumem"],
        troubles: &[LIMIT, FAILED, &["not", "low"]],
    },
    Wording {
        reason: HostOom,
        topics: &["memory", "ram", "heap", "swap", "rss", "oom"],
        troubles: &[LIMIT, &["failed", "low", "killed", "kill", "pressure"]],
    },
    Wording {
        reason: Timeout,
        topics: &["walltime", "wall-time", "wallclock", "time-limit", "deadline", "lifetime"],
        troubles: &[LIMIT, &["expired", "elapsed"]],
    },
    Wording {
        reason: StorageError,
        topics: &[
            "disk", "filesystem", "volume", "mount", "nfs", "lustre", "bucket", "inode", "inodes", "s3",
            "gcs",
        ],
        troubles: &[FAILED, LIMIT, &["read-only", "stale"]],
    },
    Wording {
        reason: CheckpointError,
        topics: &["checkpoint", "checkpoints", "ckpt", "state_dict"],
        troubles: &[FAILED, BROKEN, &["mismatch", "mismatched", "incompatible", "differs"]],
    },
    Wording {
        reason: NumericDivergence,
        topics: &["nan", "nans", "inf", "diverged", "diverging", "non-finite", "exploded", "exploding"],
        troubles: &[OF_TRAINING],
    },
    Wording {
        reason: SchemaDrift,
        topics: &["column", "columns", "schema", "schemas"],
        troubles: &[MISSING, &["unknown", "changed", "found"]],
    },
    Wording {
        reason: NetworkError,
        topics: &[
            "connection", "connect", "connecting", "socket", "network", "endpoint", "proxy", "dns", "ssh",
            "peer", "download", "server", "url",
        ],
        troubles: &[FAILED, CUT],
    },
    Wording {
        reason: DataError,
        topics: &[
            "data", "dataset", "record", "records", "sample", "samples", "image", "images", "label",
            "labels", "row", "rows", "csv", "json", "annotation", "annotations", "corpus", "audio", "video",
        ],
        troubles: &[BROKEN, &["missing", "unable", "cannot", "couldn't", "decode", "parse"]],
    },
    Wording {
        reason: NodeFailure,
        topics: &[
            "node", "gpu", "device", "accelerator", "machine", "hardware", "nvlink", "npu", "tpu", "chip",
        ],
        troubles: &[GONE],
    },
    Wording {
        reason: Hang,
        topics: &["hang", "hangs", "hung", "stuck", "deadlock", "deadlocked", "frozen"],
        troubles: &[],
    },
    Wording {
        reason: BudgetExhausted,
        topics: &["credit", "credits", "billing", "quota", "funds"],
        troubles: &[LIMIT],
    },
];

/// Words of an accelerator: the memory of the line is its own.
pub(crate) const OF_DEVICE: &[&str] = &["gpu", "cuda", "device", "vram", "hbm", "npu", "hip", "mlu", "tpu"];
