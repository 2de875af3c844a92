//! The rows of the tables that decisions name.

macro_rules! named {
    ($($table:ident { $($(#[$doc:meta])* $name:ident = $row:literal;)+ })+) => {
        $(pub(crate) mod $table {
            use super::super::RuleName;
            $($(#[$doc])* pub(crate) const $name: RuleName = RuleName($row);)+
        })+
    };
}

named! {
    checkpoint {
        /// An archive of a checkpoint, or of data, cannot be read.
        UNREADABLE_ARCHIVE = "checkpoint.unreadable_archive";
        /// A checkpoint is not there, because it never was or because what should have written it failed.
        ABSENT_FILE = "checkpoint.absent_file";
        /// What a checkpoint holds is not what the script expects.
        TRAINING_STATE = "checkpoint.training_state";
        /// An HDF5 file cannot be read.
        HDF5_WEIGHTS = "checkpoint.hdf5_weights";
    }
    code {
        /// A device reports a fault that a program can cause.
        GPU_FAULT = "code.gpu_fault";
        /// How a process dies of many causes.
        CRASH = "code.crash";
        /// The header of a traceback.
        PYTHON_EXIT = "code.python_exit";
        /// A process ended itself, whatever the cause.
        ABORTED = "code.aborted";
        /// A process was ended by a signal that says nothing of its cause.
        KILLED = "process.killed";
        /// A worker of a pool ended without a word, whatever the cause.
        WORKER_GONE = "process.worker_gone";
        /// A check of native code failed, whatever the cause.
        NATIVE_CHECK = "code.native_check";
        /// Text that is not a program.
        SYNTAX = "code.syntax";
    }
    collective {
        /// A launcher reports that a child failed.
        RANK_FAILED = "collective.rank_failed";
        /// A launcher reports how the child that failed first ended.
        FIRST_FAILED = "collective.first_failed";
        /// A rank lost its neighbour.
        NCCL_REMOTE = "collective.nccl_remote";
        /// The fabric or the system refused a collective.
        NCCL_TRANSPORT = "collective.nccl_transport";
    }
    completion {
        /// A script's own words for it.
        STATED = "completion.stated";
        /// A last line that is nothing but a word for an end.
        BARE_WORD = "completion.bare_word";
    }
    data {
        /// A file of the data is not there, because it never was or because what should have written it failed.
        ABSENT_FILE = "data.absent_file";
        /// JSON that cannot be read.
        JSON = "data.json";
        /// A row, or one of its values, that cannot be read.
        DELIMITED_TEXT = "data.delimited_text";
    }
    early_stop {
        /// How many checks without improvement were counted, of how many that are allowed, or that so many are allowed.
        COUNTER = "early_stop.counter";
    }
    evaluator {
        /// A judge, or another service behind an interface, refused or did not answer.
        JUDGE_API = "evaluator.judge_api";
    }
    exception_names {
        /// A class that is named after a network, or after a time that ran out.
        NETWORK = "exception_name.network";
    }
    markers {
        /// Marks the exception that follows.
        EXCEPTION_IGNORED = "marker.exception_ignored";
        /// Marks that the run was resumed.
        RESUMED = "marker.resumed";
    }
    memory_host {
        /// A worker of a loader was killed by a signal.
        LOADER_WORKER = "host_oom.loader_worker";
        /// A worker of a loader ended without a word, whatever the cause.
        LOADER_EXITED = "host_oom.loader_exited";
    }
    network {
        /// The script waits for a service that does not answer.
        WAITING = "network.waiting";
    }
    node {
        /// A cluster lost a machine, whatever the cause.
        CLUSTER_LOST = "node.cluster_lost";
        /// A device reports that a kernel could not be launched.
        LAUNCH_FAILURE = "node.launch_failure";
    }
    numeric {
        /// A scaler skipped an update: usual when it happens now and then.
        OVERFLOW_SEEN = "numeric.overflow_seen";
        /// A value that is NaN is printed.
        NAN_PRINTED = "numeric.nan_printed";
    }
    operator {
        /// A scheduler cancelled a job, it does not say why.
        SCANCEL = "operator.scancel";
        /// A platform reports something as cancelled, it does not say why.
        RUN_CANCELLED = "operator.run_cancelled";
    }
    scheduler {
        /// A pod or machine was evicted, for whatever reason.
        EVICTED = "scheduler.evicted";
    }
}
