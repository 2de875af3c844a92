//! Why an attempt ended, from its receipt.

use serde_json::Value;
use trackway_api::runs::explain::{SecondaryReason, Termination, TerminationEvidence};
use trackway_core::{LaunchKind, TerminationReason};
use trackway_ledger::AttemptRow;
use trackway_rules::{meaning, runbook_section};

pub(crate) fn termination(attempt: &AttemptRow) -> Option<Termination> {
    let stored = |json: &Option<Value>| json.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let reason = attempt.termination_reason?;
    let evidence: Vec<TerminationEvidence> =
        stored(&attempt.termination_evidence).iter().map(evidence).collect();
    Some(Termination {
        reason,
        cause: cause(advised_reason(attempt, reason), attempt.termination_rule.as_deref(), &evidence),
        runbook: runbook_section(advised_reason(attempt, reason)),
        rule: attempt.termination_rule.clone(),
        confidence: attempt.termination_confidence,
        domain: attempt.termination_domain,
        retry_outlook: attempt.retry_outlook,
        evidence,
        secondary: stored(&attempt.termination_secondary).iter().filter_map(secondary).collect(),
        fingerprint: attempt.fingerprint.clone(),
    })
}

/// The reason whose meaning and advice hold: receipts of older versions call an evaluation inside a training an evaluator, which it is not.
pub(super) fn advised_reason(attempt: &AttemptRow, reason: TerminationReason) -> TerminationReason {
    let is_inside = reason == TerminationReason::EvaluatorError && attempt.kind != LaunchKind::Evaluate;
    if is_inside { TerminationReason::CodeError } else { reason }
}

/// What the reason means, and the deciding evidence.
fn cause(reason: TerminationReason, rule: Option<&str>, evidence: &[TerminationEvidence]) -> String {
    match evidence.first().map(|first| first.text.trim()).filter(|text| !text.is_empty()) {
        Some(text) => format!("{}: {text}", meaning(reason, rule)),
        None => meaning(reason, rule).to_owned(),
    }
}

/// A stored piece of evidence, whichever program wrote it.
fn evidence(stored: &Value) -> TerminationEvidence {
    let text = |name: &str| stored.get(name).and_then(Value::as_str).map(str::to_owned);
    TerminationEvidence {
        source: text("source").unwrap_or_default(),
        stream: text("stream"),
        line_number: stored.get("line_number").and_then(Value::as_u64),
        text: text("text").unwrap_or_else(|| stored.to_string()),
    }
}

/// A stored reason; none if a newer program wrote a word that this one does not have.
fn secondary(stored: &Value) -> Option<SecondaryReason> {
    let mut secondary: SecondaryReason = serde_json::from_value(stored.clone()).ok()?;
    secondary.runbook = Some(runbook_section(secondary.reason));
    Some(secondary)
}
