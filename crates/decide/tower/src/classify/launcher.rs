//! The meaning of a launcher's states and reasons (REQUIREMENTS A3; the mapping of Slurm, Kubernetes, Kueue, Ray,
//! SkyPilot, dstack).

use trackway_core::{Confidence, TerminationReason as Reason};

use super::evidence::Evidence;
use super::finding::{EvidenceSource, Finding};

/// Words (upper case, letters and digits only) found in state or reason, what they mean, and whether they admit one
/// reading only. Tried in order: the more specific word comes before the general one.
const WORDS: &[(&str, Reason, bool)] = &[
    ("OOMKILLED", Reason::HostOom, true),
    ("OUTOFMEMORY", Reason::HostOom, true),
    ("OUTOFME", Reason::HostOom, true),
    ("LOWONRESOURCEMEMORY", Reason::HostOom, true),
    ("MEMORYPRESSURE", Reason::HostOom, false),
    ("LOWONRESOURCEEPHEMERALSTORAGE", Reason::StorageError, true),
    ("EPHEMERALSTORAGE", Reason::StorageError, false),
    ("DISKPRESSURE", Reason::StorageError, false),
    ("VOLUMEERROR", Reason::StorageError, false),
    ("FAILEDMOUNT", Reason::StorageError, false),
    ("BURSTBUFFEROPERATION", Reason::StorageError, false),
    ("NODEFAIL", Reason::NodeFailure, true),
    ("NODEDOWN", Reason::NodeFailure, true),
    ("BOOTFAIL", Reason::NodeFailure, true),
    ("NODELOST", Reason::NodeFailure, true),
    ("DELETIONBYTAINTMANAGER", Reason::NodeFailure, false),
    ("DELETIONBYPODGC", Reason::NodeFailure, false),
    ("TERMINATIONBYKUBELET", Reason::NodeFailure, false),
    ("NODESHUTDOWN", Reason::NodeFailure, false),
    ("INSTANCEUNREACHABLE", Reason::NodeFailure, false),
    ("PREEMPTIONBYSCHEDULER", Reason::Preempted, true),
    ("EVICTIONBYEVICTIONAPI", Reason::Preempted, false),
    ("PREEMPTED", Reason::Preempted, true),
    ("PREEMPTION", Reason::Preempted, false),
    ("INTERRUPTEDBYNOCAPACITY", Reason::Preempted, true),
    ("FLAVORMIGRATION", Reason::Preempted, false),
    ("MAXIMUMEXECUTIONTIMEEXCEEDED", Reason::Timeout, true),
    ("DEADLINEEXCEEDED", Reason::Timeout, true),
    ("MAXDURATIONEXCEEDED", Reason::Timeout, true),
    ("TIMELIMIT", Reason::Timeout, true),
    ("TIMEOUT", Reason::Timeout, true),
    ("DEADLINE", Reason::Timeout, false),
    ("EXCEEDEDQUOTA", Reason::BudgetExhausted, true),
    ("EXCEEDSMAXQUOTA", Reason::BudgetExhausted, false),
    ("ASSOCGRP", Reason::BudgetExhausted, false),
    ("QOSMAX", Reason::BudgetExhausted, false),
    ("QOSGRP", Reason::BudgetExhausted, false),
    ("TERMINATEDBYUSER", Reason::Cancelled, true),
    ("ABORTEDBYUSER", Reason::Cancelled, true),
    ("STOPPEDBYUSER", Reason::Cancelled, true),
    ("CANCELLED", Reason::Cancelled, false),
    ("CANCELED", Reason::Cancelled, false),
    ("STOPPED", Reason::Cancelled, false),
    ("EVICTED", Reason::Preempted, false),
    ("RUNTIMEENVSETUPFAILURE", Reason::CodeError, false),
    ("CONTAINERCANNOTRUN", Reason::CodeError, false),
    ("IMAGEPULLBACKOFF", Reason::CodeError, false),
    ("ERRIMAGEPULL", Reason::CodeError, false),
    ("CREATECONTAINERCONFIGERROR", Reason::CodeError, false),
];

/// The launcher's statement, when it is more specific than "it failed".
pub(super) fn state(evidence: &Evidence) -> Option<Finding> {
    let stated = evidence.launcher.as_ref()?;
    // The reason is more specific than the state (`Failed` / `OOMKilled`), except where the state is the verdict.
    let texts = [squeeze(&stated.state), squeeze(&stated.reason)];
    let (word, reason, conclusive) =
        WORDS.iter().find(|(word, ..)| texts.iter().any(|text| text.contains(word)))?;
    let _ = word;
    let confidence = if *conclusive { Confidence::Certain } else { Confidence::Likely };
    let text = format!("{} reports {} {}", stated.source, stated.state, stated.reason);
    Some(
        Finding::new(*reason, format!("launcher.{reason}"), confidence)
            .with(EvidenceSource::Launcher, text.trim_end()),
    )
}

fn squeeze(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}
