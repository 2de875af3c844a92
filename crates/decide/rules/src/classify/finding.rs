//! How a piece of evidence counts, on its way to a verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{Confidence, Domain, RetryOutlook, TerminationReason as Reason};

use super::evidence::Stream;
use super::rule::TerminationRule;

/// Where a piece of evidence comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// Exit code or signal.
    WaitStatus,
    /// A line of the script's output.
    Log,
    /// The launcher's statement.
    Launcher,
    /// What Trackway did.
    OwnAction,
    /// The kernel's counters of the attempt's cgroup.
    Cgroup,
    /// `TORCHELASTIC_ERROR_FILE`.
    ErrorFile,
    /// The recorded metrics.
    Metrics,
    /// Heartbeats and progress.
    Heartbeat,
    /// A rule of the run file.
    Rule,
}

/// One thing seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceItem {
    /// Where it was seen.
    pub source: EvidenceSource,
    /// 1-based line of the stream, for log lines.
    pub line_number: Option<u64>,
    /// The stream, for log lines.
    pub stream: Option<Stream>,
    /// What was seen.
    pub text: String,
}

/// A finding that did not decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecondaryFinding {
    /// Its meaning alone.
    pub reason: Reason,
    pub rule: TerminationRule,
    /// What was seen.
    pub text: String,
}

/// A reading of some evidence, on its way to a verdict.
#[derive(Debug, Clone)]
pub(super) struct TerminationFinding {
    pub(super) reason: Reason,
    pub(super) rule: TerminationRule,
    pub(super) confidence: Confidence,
    pub(super) domain: Option<Domain>,
    /// Whether the same launch may do better, where the evidence says more than the reason.
    pub(super) retry_outlook: Option<RetryOutlook>,
    pub(super) items: Vec<EvidenceItem>,
    pub(super) secondary: Vec<SecondaryFinding>,
    /// What the line means wherever it was printed, if an evaluation is part of the training: where that differs from `reason`.
    pub(super) within_training: Option<Reason>,
    /// Whether this is a cause in the log that was not handled.
    pub(super) is_open_cause: bool,
    /// Whether kernel, scheduler or platform state it.
    pub(super) is_platform_statement: bool,
}

impl TerminationFinding {
    pub(super) fn new(reason: Reason, rule: impl Into<TerminationRule>, confidence: Confidence) -> Self {
        Self {
            reason,
            rule: rule.into(),
            confidence,
            domain: None,
            retry_outlook: None,
            items: Vec::new(),
            secondary: Vec::new(),
            within_training: None,
            is_open_cause: false,
            is_platform_statement: false,
        }
    }

    pub(super) fn with(mut self, source: EvidenceSource, text: impl Into<String>) -> Self {
        self.items.push(EvidenceItem { source, line_number: None, stream: None, text: text.into() });
        self
    }

    /// Whether this line is part of its evidence.
    pub(super) fn has_text(&self, text: &str) -> bool {
        self.items.iter().any(|item| item.text == text)
    }

    pub(super) fn and_also(mut self, other: Self) -> Self {
        let text = other.items.into_iter().next().map(|item| item.text).unwrap_or_default();
        self.secondary.push(SecondaryFinding { reason: other.reason, rule: other.rule, text });
        self
    }
}
