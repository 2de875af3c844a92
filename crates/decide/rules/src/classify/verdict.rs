//! The verdict, and how it is composed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{Confidence, Domain, RetryOutlook, TerminationReason as Reason};

use super::evidence::TerminationEvidence as Evidence;
use super::finding::{EvidenceItem, EvidenceSource, SecondaryFinding, TerminationFinding as Finding};
use super::fingerprint::fingerprint;
use super::logs::LogReading;
use super::outlook;
use super::rule::{FactRule, TerminationRule};
use crate::diagnosis::silent_ranks;
use crate::signatures::{self, Role, collective};

/// Other findings listed in a verdict at most.
const MAX_SECONDARY: usize = 8;

/// Why an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TerminationVerdict {
    pub reason: Reason,
    /// The rule that decided.
    pub rule: TerminationRule,
    /// How far the evidence carries.
    pub confidence: Confidence,
    /// Whose matter it is.
    pub domain: Domain,
    /// Whether the same launch may do better.
    pub retry_outlook: RetryOutlook,
    /// What decided, and the facts beside it.
    pub evidence: Vec<EvidenceItem>,
    /// What was seen but did not decide.
    pub secondary: Vec<SecondaryFinding>,
    /// The root cause without numbers, paths and addresses: equal for the same cause met again. Empty when unknown.
    pub fingerprint: String,
}

pub(super) fn seal(mut finding: Finding, log: &LogReading, evidence: &Evidence) -> TerminationVerdict {
    let was_sent = finding.items.first().is_some_and(|item| item.source == EvidenceSource::OwnAction);
    let is_other = |reason: Reason, rule: TerminationRule| {
        let is_torn = rule == FactRule::TornTraceback.into() && (was_sent || log.cause.is_some());
        let of_the_signal = was_sent && follows_from_signal(rule);
        !(matches!(reason, Reason::Unknown) || is_torn || of_the_signal)
    };
    // What healthy runs print too says nothing beside a success.
    let weak = log.weak.as_ref().filter(|_| !finding.reason.is_success());
    let mut secondary = std::mem::take(&mut finding.secondary);
    for other in log.cause.iter().chain(weak).filter(|other| is_other(other.reason, other.rule)) {
        let Some(first) = other.items.first().filter(|first| !finding.has_text(&first.text)) else {
            continue;
        };
        if other.reason == finding.reason {
            finding.items.push(first.clone());
        } else if other.rule != finding.rule {
            let text = first.text.clone();
            secondary.push(SecondaryFinding { reason: other.reason, rule: other.rule, text });
        }
    }
    for other in log.others.iter().filter(|other| is_other(other.reason, other.rule)) {
        let is_listed = secondary.iter().any(|listed| listed.text == other.text);
        if finding.has_text(&other.text) || is_listed {
            continue;
        }
        if other.reason != finding.reason {
            secondary.push(other.clone());
        } else if was_sent {
            finding = finding.with(EvidenceSource::Log, &other.text);
        }
    }
    let mut listed = std::collections::HashSet::new();
    secondary.retain(|other| listed.insert(other.text.clone()));
    secondary.truncate(MAX_SECONDARY);
    // A success has no cause to meet again.
    let root = match finding.items.first() {
        Some(item) if !finding.reason.is_success() => fingerprint(finding.reason, &item.text),
        _ => String::new(),
    };
    if finding.reason == Reason::Hang
        && !was_sent
        && let Some(silent) = silent_ranks(&evidence.ranks)
    {
        finding = finding.with(EvidenceSource::Heartbeat, silent);
    }
    let mut items: Vec<EvidenceItem> = Vec::new();
    for item in finding.items.into_iter().chain(surroundings(evidence)) {
        // An item is not repeated, in full or as a part of another.
        if !items.iter().any(|said| said.text.contains(&item.text)) {
            items.push(item);
        }
    }
    TerminationVerdict {
        reason: finding.reason,
        confidence: finding.confidence,
        domain: finding.domain.unwrap_or(finding.reason.domain()),
        retry_outlook: finding.retry_outlook.unwrap_or(outlook(finding.reason, finding.confidence)),
        rule: finding.rule,
        evidence: items,
        secondary,
        fingerprint: root,
    }
}

/// Whether it is what programs print when a signal ends them or their neighbour. Where Trackway sent the signal, it is the cause of
/// nothing; what a collective's watchdog printed may be.
fn follows_from_signal(rule: TerminationRule) -> bool {
    let TerminationRule::Signature(name) = rule else { return false };
    let signature = signatures::all().find(|signature| signature.name == name);
    signature.is_some_and(|signature| match signature.role {
        _ if signature.name == collective::NCCL_REMOTE => true,
        Role::Consequence => signature.reason != Reason::Hang,
        role => signature.reason == Reason::Cancelled && role != Role::Verdict,
    })
}

/// The facts that belong beside every verdict.
fn surroundings(evidence: &Evidence) -> Vec<EvidenceItem> {
    let item = |source, text: String| EvidenceItem { source, line_number: None, stream: None, text };
    let mut items = Vec::new();
    if let Some(code) = evidence.exit_code {
        items.push(item(EvidenceSource::WaitStatus, format!("exit code {code}")));
    }
    if let Some(signal) = evidence.signal {
        items.push(item(EvidenceSource::WaitStatus, format!("ended by signal {signal}")));
    }
    if let Some(state) = &evidence.launcher {
        let text = format!("{}: {} {}", state.source, state.state, state.reason);
        items.push(item(EvidenceSource::Launcher, text.trim_end().to_owned()));
    }
    if let Some(seconds) = evidence.progress.seconds_since_last_heartbeat {
        let step = evidence.progress.last_step.map_or(String::new(), |step| format!(" at step {step}"));
        items.push(item(
            EvidenceSource::Heartbeat,
            format!("last heartbeat{step}, {seconds:.0} s before the end"),
        ));
    }
    items
}
