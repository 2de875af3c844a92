//! States and error types of Ray's jobs.

use trackway_core::TerminationReason as Reason;

use super::EngineSignature as State;

pub(super) const STATES: &[State] = &[
    State::likely("ray.out_of_memory", Reason::HostOom, &["OUTOFMEMORY"]),
    State::likely("ray.node_died", Reason::NodeFailure, &["NODEDIED"]),
    State::likely(
        "ray.supervisor",
        Reason::NodeFailure,
        &["JOBSUPERVISORACTORDIED", "JOBSUPERVISORACTORUNSCHEDULABLE", "JOBSUPERVISORACTORSTARTTIMEOUT"],
    ),
    State::likely("ray.stopped", Reason::Cancelled, &["STOPPED"]),
    State::likely("ray.runtime_environment", Reason::CodeError, &["RUNTIMEENVSETUPFAILURE"]),
];
