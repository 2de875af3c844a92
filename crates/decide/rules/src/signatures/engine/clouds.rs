//! States of SkyPilot, dstack and the batch services of clouds.

use trackway_core::TerminationReason as Reason;

use super::EngineSignature as State;

pub(super) const STATES: &[State] = &[
    State::likely("clouds.volume_error", Reason::StorageError, &["VOLUMEERROR"]),
    State::likely("clouds.instance_unreachable", Reason::NodeFailure, &["INSTANCEUNREACHABLE"]),
    State::certain("clouds.no_capacity", Reason::Preempted, &["INTERRUPTEDBYNOCAPACITY"]),
    State::certain("clouds.max_duration", Reason::Timeout, &["MAXDURATIONEXCEEDED"]),
    State::likely("clouds.quota", Reason::BudgetExhausted, &["EXCEEDSMAXQUOTA"]),
    State::certain(
        "clouds.ended_by_user",
        Reason::Cancelled,
        &["TERMINATEDBYUSER", "ABORTEDBYUSER", "STOPPEDBYUSER"],
    ),
    State::likely("clouds.canceled", Reason::Cancelled, &["CANCELED"]),
];
