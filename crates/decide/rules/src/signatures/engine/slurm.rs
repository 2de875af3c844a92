//! States and reasons of Slurm (`sacct`, `squeue`).

use trackway_core::TerminationReason as Reason;

use super::EngineSignature as State;

pub(super) const STATES: &[State] = &[
    State::certain("slurm.out_of_memory", Reason::HostOom, &["OUTOFMEMORY", "OUTOFME"]),
    State::likely("slurm.burst_buffer", Reason::StorageError, &["BURSTBUFFEROPERATION"]),
    State::certain("slurm.node_fail", Reason::NodeFailure, &["NODEFAIL", "NODEDOWN"]),
    State::certain("slurm.boot_fail", Reason::NodeFailure, &["BOOTFAIL"]),
    State::certain("slurm.preempted", Reason::Preempted, &["PREEMPTED"]),
    // Another cluster of a federation started the job.
    State::likely("slurm.revoked", Reason::Preempted, &["REVOKED"]),
    State::certain("slurm.timeout", Reason::Timeout, &["TIMEOUT", "TIMELIMIT"]),
    State::likely("slurm.deadline", Reason::Timeout, &["DEADLINE"]),
    State::likely("slurm.quota", Reason::BudgetExhausted, &["ASSOCGRP", "QOSMAX", "QOSGRP"]),
    State::likely("slurm.cancelled", Reason::Cancelled, &["CANCELLED"]),
];
