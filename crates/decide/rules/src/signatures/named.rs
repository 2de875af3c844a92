//! The rows of the tables that decisions name.

pub(crate) mod checkpoint {
    use super::super::RuleName;

    /// An archive of a checkpoint, or of data, cannot be read.
    pub(crate) const UNREADABLE_ARCHIVE: RuleName = RuleName("checkpoint.unreadable_archive");
    /// A checkpoint is not there, because it never was or because what should have written it failed.
    pub(crate) const ABSENT_FILE: RuleName = RuleName("checkpoint.absent_file");
    /// What a checkpoint holds is not what the script expects.
    pub(crate) const TRAINING_STATE: RuleName = RuleName("checkpoint.training_state");
    /// An HDF5 file cannot be read.
    pub(crate) const HDF5_WEIGHTS: RuleName = RuleName("checkpoint.hdf5_weights");
}

pub(crate) mod code {
    use super::super::RuleName;

    /// A device reports a fault that a program can cause.
    pub(crate) const GPU_FAULT: RuleName = RuleName("code.gpu_fault");
    /// How a process dies of many causes.
    pub(crate) const CRASH: RuleName = RuleName("code.crash");
    /// The header of a traceback.
    pub(crate) const PYTHON_EXIT: RuleName = RuleName("code.python_exit");
    /// A process ended itself, whatever the cause.
    pub(crate) const ABORTED: RuleName = RuleName("code.aborted");
    /// A process was ended by a signal that says nothing of its cause.
    pub(crate) const KILLED: RuleName = RuleName("process.killed");
    /// A worker of a pool ended without a word, whatever the cause.
    pub(crate) const WORKER_GONE: RuleName = RuleName("process.worker_gone");
    /// A check of native code failed, whatever the cause.
    pub(crate) const NATIVE_CHECK: RuleName = RuleName("code.native_check");
    /// Text that is not a program.
    pub(crate) const SYNTAX: RuleName = RuleName("code.syntax");
}

pub(crate) mod collective {
    use super::super::RuleName;

    /// A launcher reports that a child failed.
    pub(crate) const RANK_FAILED: RuleName = RuleName("collective.rank_failed");
    /// A launcher reports how the child that failed first ended.
    pub(crate) const FIRST_FAILED: RuleName = RuleName("collective.first_failed");
    /// A rank lost its neighbour.
    pub(crate) const NCCL_REMOTE: RuleName = RuleName("collective.nccl_remote");
    /// The fabric or the system refused a collective.
    pub(crate) const NCCL_TRANSPORT: RuleName = RuleName("collective.nccl_transport");
}

pub(crate) mod completion {
    use super::super::RuleName;

    /// A script's own words for it.
    pub(crate) const STATED: RuleName = RuleName("completion.stated");
    /// A last line that is nothing but a word for an end.
    pub(crate) const BARE_WORD: RuleName = RuleName("completion.bare_word");
}

pub(crate) mod data {
    use super::super::RuleName;

    /// A file of the data is not there, because it never was or because what should have written it failed.
    pub(crate) const ABSENT_FILE: RuleName = RuleName("data.absent_file");
    /// JSON that cannot be read.
    pub(crate) const JSON: RuleName = RuleName("data.json");
    /// A row, or one of its values, that cannot be read.
    pub(crate) const DELIMITED_TEXT: RuleName = RuleName("data.delimited_text");
}

pub(crate) mod early_stop {
    use super::super::RuleName;

    /// How many checks without improvement were counted, of how many that are allowed, or that so many are allowed.
    pub(crate) const COUNTER: RuleName = RuleName("early_stop.counter");
}

pub(crate) mod evaluator {
    use super::super::RuleName;

    /// A judge, or another service behind an interface, refused or did not answer.
    pub(crate) const JUDGE_API: RuleName = RuleName("evaluator.judge_api");
}

pub(crate) mod exception_names {
    use super::super::RuleName;

    /// A class that is named after a network, or after a time that ran out.
    pub(crate) const NETWORK: RuleName = RuleName("exception_name.network");
}

pub(crate) mod markers {
    use super::super::RuleName;

    /// Marks the exception that follows.
    pub(crate) const EXCEPTION_IGNORED: RuleName = RuleName("marker.exception_ignored");
    /// Marks that the run was resumed.
    pub(crate) const RESUMED: RuleName = RuleName("marker.resumed");
}

pub(crate) mod memory_host {
    use super::super::RuleName;

    /// A worker of a loader was killed by a signal.
    pub(crate) const LOADER_WORKER: RuleName = RuleName("host_oom.loader_worker");
    /// A worker of a loader ended without a word, whatever the cause.
    pub(crate) const LOADER_EXITED: RuleName = RuleName("host_oom.loader_exited");
}

pub(crate) mod network {
    use super::super::RuleName;

    /// The script waits for a service that does not answer.
    pub(crate) const WAITING: RuleName = RuleName("network.waiting");
}

pub(crate) mod node {
    use super::super::RuleName;

    /// A cluster lost a machine, whatever the cause.
    pub(crate) const CLUSTER_LOST: RuleName = RuleName("node.cluster_lost");
    /// A device reports that a kernel could not be launched.
    pub(crate) const LAUNCH_FAILURE: RuleName = RuleName("node.launch_failure");
}

pub(crate) mod numeric {
    use super::super::RuleName;

    /// A scaler skipped an update: usual when it happens now and then.
    pub(crate) const OVERFLOW_SEEN: RuleName = RuleName("numeric.overflow_seen");
    /// A value that is NaN is printed.
    pub(crate) const NAN_PRINTED: RuleName = RuleName("numeric.nan_printed");
}

pub(crate) mod operator {
    use super::super::RuleName;

    /// A scheduler cancelled a job, it does not say why.
    pub(crate) const SCANCEL: RuleName = RuleName("operator.scancel");
    /// A platform reports something as cancelled, it does not say why.
    pub(crate) const RUN_CANCELLED: RuleName = RuleName("operator.run_cancelled");
}

pub(crate) mod scheduler {
    use super::super::RuleName;

    /// A pod or machine was evicted, for whatever reason.
    pub(crate) const EVICTED: RuleName = RuleName("scheduler.evicted");
}
