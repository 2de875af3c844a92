//! States, reasons and conditions of Kubernetes and Kueue.

use trackway_core::TerminationReason as Reason;

use super::EngineSignature as State;

pub(super) const STATES: &[State] = &[
    State::certain("kubernetes.oom_killed", Reason::HostOom, &["OOMKILLED"]),
    State::certain("kubernetes.evicted_for_memory", Reason::HostOom, &["LOWONRESOURCEMEMORY"]),
    State::likely("kubernetes.memory_pressure", Reason::HostOom, &["MEMORYPRESSURE"]),
    State::certain(
        "kubernetes.evicted_for_storage",
        Reason::StorageError,
        &["LOWONRESOURCEEPHEMERALSTORAGE"],
    ),
    State::likely("kubernetes.disk_pressure", Reason::StorageError, &["DISKPRESSURE", "EPHEMERALSTORAGE"]),
    State::likely("kubernetes.failed_mount", Reason::StorageError, &["FAILEDMOUNT"]),
    State::certain("kubernetes.node_lost", Reason::NodeFailure, &["NODELOST"]),
    State::likely("kubernetes.node_shutdown", Reason::NodeFailure, &["NODESHUTDOWN"]),
    State::likely("kubernetes.taint_manager", Reason::NodeFailure, &["DELETIONBYTAINTMANAGER"]),
    State::likely("kubernetes.pod_gc", Reason::NodeFailure, &["DELETIONBYPODGC"]),
    State::likely("kubernetes.kubelet", Reason::NodeFailure, &["TERMINATIONBYKUBELET"]),
    State::certain("kubernetes.preempted", Reason::Preempted, &["PREEMPTIONBYSCHEDULER", "PREEMPTED"]),
    State::likely("kubernetes.preemption", Reason::Preempted, &["PREEMPTION"]),
    State::likely("kubernetes.eviction_api", Reason::Preempted, &["EVICTIONBYEVICTIONAPI"]),
    State::likely("kubernetes.flavor_migration", Reason::Preempted, &["FLAVORMIGRATION"]),
    State::general("kubernetes.evicted", Reason::Preempted, &["EVICTED"]),
    State::certain(
        "kubernetes.deadline_exceeded",
        Reason::Timeout,
        &["DEADLINEEXCEEDED", "MAXIMUMEXECUTIONTIMEEXCEEDED"],
    ),
    State::certain("kubernetes.exceeded_quota", Reason::BudgetExhausted, &["EXCEEDEDQUOTA"]),
    State::likely(
        "kubernetes.container_cannot_run",
        Reason::CodeError,
        &["CONTAINERCANNOTRUN", "CREATECONTAINERCONFIGERROR"],
    ),
    State::likely("kubernetes.image", Reason::CodeError, &["IMAGEPULLBACKOFF", "ERRIMAGEPULL"]),
];
