//! Why an attempt ended, and what was decided after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trackway_core::text::budgeted;
use trackway_core::{Confidence, Domain, RetryOutlook, TerminationReason};
use trackway_ledger::Decision;

/// Why an attempt ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Termination {
    pub reason: TerminationReason,
    /// The cause in one sentence.
    pub cause: String,
    /// The section of the runbook about the reason: a path in the repository with an anchor.
    pub runbook: String,
    /// The rule that named it.
    pub rule: Option<String>,
    /// Confidence in the reason.
    pub confidence: Option<Confidence>,
    /// The domain of the cause.
    pub domain: Option<Domain>,
    /// Whether a retry may succeed.
    pub retry_outlook: Option<RetryOutlook>,
    /// Evidence for the reason, the deciding one first.
    pub evidence: Vec<TerminationEvidence>,
    /// Other possible reasons, weaker or later.
    pub secondary: Vec<SecondaryReason>,
    /// The cause without numbers and paths, to recognize a repeated failure.
    pub fingerprint: Option<String>,
}

impl Termination {
    /// The frame of the user's own code that raised what decided, which is behind it; none: no traceback shows it.
    #[must_use]
    pub fn raised_at(&self) -> Option<&TerminationEvidence> {
        let [decided, next, ..] = self.evidence.as_slice() else { return None };
        let is_beside = next.source == decided.source && next.stream == decided.stream;
        (is_beside && next.text.starts_with("at ")).then_some(next)
    }
}

/// A piece of evidence for the reason of an end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TerminationEvidence {
    /// Where it was seen: as in `classify`, or the tool that a run was imported from.
    pub source: String,
    /// The stream, for a line of the output.
    #[serde(default)]
    pub stream: Option<String>,
    /// The line of the stream, from 1.
    #[serde(default)]
    pub line_number: Option<u64>,
    /// What was seen.
    pub text: String,
}

impl TerminationEvidence {
    /// Where it was seen, such as `log, stderr line 12`.
    #[must_use]
    pub fn place(&self) -> String {
        let source = self.source.replace('_', " ");
        match self.line_number {
            Some(line) => format!("{source}, {} line {line}", self.stream.as_deref().unwrap_or("log")),
            None => source,
        }
    }
}

/// How a process ended, such as `exit code 1` or `signal 9`; nothing if that is not known.
#[must_use]
pub fn exit_status(exit_code: Option<i32>, signal: Option<i32>) -> Option<String> {
    let by_signal = signal.map(|signal| format!("signal {signal}"));
    exit_code.map(|code| format!("exit code {code}")).or(by_signal)
}

/// A reason that is possible too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondaryReason {
    pub reason: TerminationReason,
    /// The rule that names it.
    pub rule: String,
    /// What was seen.
    pub text: String,
    /// The section of the runbook about the reason.
    #[serde(default)]
    pub runbook: Option<String>,
}

/// The decision after an attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RetryDecision {
    pub after_attempt_number: Option<u32>,
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// A sentence about why.
    pub why: String,
    /// Seconds before the next attempt.
    pub delay_seconds: Option<f64>,
    /// The budget that is spent from.
    pub budget_name: Option<String>,
    /// What is spent of it, this time included.
    pub budget_spent: Option<f64>,
    /// What there is in all.
    pub budget_limit: Option<f64>,
    /// What the next attempt changes: variables and their values.
    pub changes: Option<Value>,
}

impl RetryDecision {
    /// The budget that is spent from, and how far: `2 of 5`.
    #[must_use]
    pub fn budget(&self) -> Option<(&str, String)> {
        let spent = format!("{} of {}", budgeted(self.budget_spent?), budgeted(self.budget_limit?));
        Some((self.budget_name.as_deref()?, spent))
    }

    /// The settings that it changes, if there are some.
    #[must_use]
    pub fn changed_settings(&self) -> Option<String> {
        let set = self.changes.as_ref()?.get("set")?;
        set.as_object().is_some_and(|set| !set.is_empty()).then(|| set.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that a frame is shown as the place of an error only directly behind it and from the same output, and that
    /// an end has a code before a signal, or neither.
    #[test]
    fn a_frame_is_of_the_error_before_it() {
        let seen = |stream: &str, text: &str| TerminationEvidence {
            source: "log".into(),
            stream: Some(stream.into()),
            line_number: Some(12),
            text: text.into(),
        };
        let raised_at = |evidence: Vec<TerminationEvidence>| {
            let termination = Termination {
                reason: TerminationReason::Unknown,
                cause: String::new(),
                runbook: String::new(),
                rule: None,
                confidence: None,
                domain: None,
                retry_outlook: None,
                evidence,
                secondary: Vec::new(),
                fingerprint: None,
            };
            let frame: Option<String> = termination.raised_at().map(TerminationEvidence::place);
            frame
        };
        let (error, frame) = (seen("stderr", "ValueError: x"), seen("stderr", "at train.py:3 in step"));
        let beside = raised_at(vec![error.clone(), frame.clone()]);
        assert_eq!(beside.as_deref(), Some("log, stderr line 12"));
        assert_eq!(raised_at(vec![error.clone(), seen("stdout", "at train.py:3 in step")]), None);
        assert_eq!(raised_at(vec![error.clone(), seen("stderr", "attention"), frame]), None);
        assert_eq!(raised_at(vec![error]), None);
        let nowhere = TerminationEvidence { source: "exit_code".into(), ..TerminationEvidence::default() };
        assert_eq!(nowhere.place(), "exit code");
        assert_eq!(exit_status(Some(137), Some(9)).as_deref(), Some("exit code 137"));
        assert_eq!(exit_status(None, Some(9)).as_deref(), Some("signal 9"));
        assert_eq!(exit_status(None, None), None);
    }

    /// Proves that a budget is shown only where both what is spent and what there is are known, and settings only where
    /// some change.
    #[test]
    fn a_decision_names_its_budget() {
        let decision = |budget_spent, budget_limit, changes| RetryDecision {
            after_attempt_number: Some(1),
            decision: Decision::Stop,
            rule: "rule".into(),
            why: "why".into(),
            delay_seconds: None,
            budget_name: Some("max_usd".into()),
            budget_spent,
            budget_limit,
            changes,
        };
        let known = decision(Some(2.0), Some(12.5), Some(json!({ "set": { "BATCH": "16" } })));
        assert_eq!(known.budget(), Some(("max_usd", "2 of 12.50".to_owned())));
        assert_eq!(known.changed_settings().as_deref(), Some("{\"BATCH\":\"16\"}"));
        let unlimited = decision(Some(2.0), None, Some(json!({ "set": {} })));
        assert_eq!((unlimited.budget(), unlimited.changed_settings()), (None, None));
        assert_eq!(decision(None, Some(5.0), None).budget(), None);
    }
}
