//! Errors that the same launch meets again, whatever its reason: of code, of arguments, of a command that cannot be run.

use trackway_core::{RetryOutlook, TerminationReason as Reason};

use super::finding::TerminationFinding;
use super::rule::{FactRule, TerminationRule};

/// Rules of logs that read such an error. A crash of native code and a failed check are none: both depend on more than the code.
const RULES: [&str; 7] = [
    "code.import", "code.syntax", "code.arguments", "code.build", "code.container", "code.kernel_image",
    "code.shapes",
];
/// The same of exits.
const FACTS: [FactRule; 3] = [FactRule::ExitUsage, FactRule::CommandNotRunnable, FactRule::CouldNotStart];

/// Exception types that only a mistake in code raises.
pub(super) fn is_code_type(text: &str) -> bool {
    ["AttributeError", "NameError", "TypeError", "ImportError", "UnboundLocalError", "NotImplementedError"]
        .iter()
        .any(|name| text.contains(name))
}

/// What the reading of an evaluation launch says of another one.
pub(super) fn outlook_of_evaluation(finding: &TerminationFinding) -> Option<RetryOutlook> {
    let text = finding.items.first().map_or("", |item| item.text.as_str());
    outlook_of(finding.reason, finding.rule, text)
}

/// `DoNotRetry` for an error of code that no repetition changes; `None`: the reason alone decides. A missing value (`NoneType`) may be
/// an answer of a judge that did not come.
pub(super) fn outlook_of(reason: Reason, rule: TerminationRule, text: &str) -> Option<RetryOutlook> {
    let by_rule = match rule {
        TerminationRule::Fact(fact) => FACTS.contains(&fact),
        TerminationRule::Signature(name) => RULES.contains(&name.as_str()),
    };
    let lasts = by_rule || (is_code_type(text) && !text.contains("NoneType"));
    (reason == Reason::CodeError && lasts).then_some(RetryOutlook::DoNotRetry)
}
