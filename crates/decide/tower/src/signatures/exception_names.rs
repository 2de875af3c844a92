//! Exceptions whose class says what they are about, in any library. They weigh as much as any other exception.

use trackway_core::TerminationReason::{
    self, BudgetExhausted, CheckpointError, DataError, EvaluatorError, Hang, NetworkError, NodeFailure,
    NumericDivergence, Preempted, SchemaDrift, StorageError, Timeout,
};

use super::{Role, RuleName, Signature};

/// A class that is named after a network, or after a time that ran out.
pub(crate) const NETWORK: RuleName = RuleName("exception_name.network");

const fn named(name: &'static str, reason: TerminationReason, pattern: &'static str) -> Signature {
    Signature::new(name, reason, Role::Exception, pattern)
        // Where the class is named by code, by settings or by advice.
        .unless(r"^\s*(raise|except|return|if|elif|assert|from|import|class|def|with|#|//)\b|^object (type name|repr) *:|warning: |registered|callback|\b0 \w*errors|40[134] client error")
}

pub(super) const SIGNATURES: &[Signature] = &[
    named(
        "exception_name.hang",
        Hang,
        r"(?-i:\b\w*(Barrier|Heartbeat|Collective|Watchdog|Deadlock|Hang|Stall)\w*(Error|Exception|Timeout))\b",
    ),
    named(
        "exception_name.timeout",
        Timeout,
        r"(?-i:\b\w*(TimeLimit|WallTime|Walltime|MaxRuntime|JobTimeout|TaskTimeout)\w*(Error|Exception|Exceeded))\b",
    ),
    named(
        "exception_name.preempted",
        Preempted,
        r"(?-i:\b\w*(Preempt|Evict|SpotInterrupt|Reclaim)\w*(Error|Exception))\b",
    ),
    named(
        "exception_name.node",
        NodeFailure,
        r"(?-i:\b\w*(Node|Hardware|Device|Gpu|GPU|Host)(Lost|Died|Failure|Down|Fault|Unhealthy|Unavailable)\w*(Error|Exception))\b",
    ),
    named(
        "exception_name.storage",
        StorageError,
        r"(?-i:\b\w*(Storage|Bucket|Blob|Disk|FileSystem|Filesystem|HDFS|Hdfs|ObjectStore|PermissionDenied|DataNode|NameNode|AccessControl)\w*(Error|Exception))\b",
    ),
    named(
        "exception_name.checkpoint",
        CheckpointError,
        r"(?-i:\b\w*(Checkpoint|Ckpt|StateDict)\w*(Error|Exception))\b",
    ),
    named(
        "exception_name.numeric",
        NumericDivergence,
        r"(?-i:\b\w*(NaN|Nan|NonFinite|Diverge)\w*(Error|Exception))\b",
    ),
    named(
        "exception_name.schema",
        SchemaDrift,
        r"(?-i:\b(\w*Schema\w*(Error|Exception)|(pandas\.errors\.)MergeError|\w*(Column|Feature|Field)s?(NotFound|Missing|Mismatch)\w*))\b",
    ),
    named(
        "exception_name.evaluator",
        EvaluatorError,
        r"(?-i:\b\w*(Judge|Evaluat|Grader|Scorer|Metric|Benchmark)\w*(Error|Exception))\b",
    ),
    named(
        "exception_name.budget",
        BudgetExhausted,
        r"(?-i:\b\w*(Quota|Billing|Credit|Budget|Payment)\w*(Error|Exception|Exceeded|Exhausted))\b",
    ),
    named(
        "exception_name.data",
        DataError,
        r"(?-i:\b\w*(Decode|Decoding|Corrupt|Malformed|Truncated|InvalidData|BadData|DataLoss|DataFormat|Annotation|DataFiles\w*|DatasetGeneration|Unpack|Avro|LZMA|XMLSyntax|Rasterio)\w*(Error|Exception)|OutOfRangeError|\b(struct|binascii|zlib|lzma|wave|aifc|audioop)\.[eE]rror)\b",
    ),
    named(
        NETWORK.as_str(),
        NetworkError,
        r"(?-i:\b\w+(Timeout|TimeOut|TimedOut)\w*(Error|Exception)|\b(Timeout|TimeOut|TimedOut)\w*Exception)\b|(?-i:\b\w*(Connect|Connection|Communicat|Network|Socket|Http|HTTP|Transport|Proxy|Disconnect|Dns|DNS|Unreachable|Rpc|RPC|Grpc)\w*(Error|Exception))\b",
    ),
];
