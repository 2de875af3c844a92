//! Errors that the same launch meets again, whatever its reason: of code, of arguments, of a command that cannot be run.

use std::sync::LazyLock;

use regex::Regex;
use trackway_core::{RetryOutlook, TerminationReason as Reason};

use super::finding::{EvidenceItem, EvidenceSource, TerminationFinding};
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

/// Exceptions that follow from the code and its data, whatever the machine and the network do; `RuntimeError` only of shapes.
static BY_CODE: LazyLock<Regex> = LazyLock::new(|| {
    let of_logic = "AttributeError|NameError|TypeError|ImportError|ModuleNotFoundError|UnboundLocalError|NotImplementedError|KeyError|\
                    IndexError|LookupError|ValueError|AssertionError|ZeroDivisionError|SyntaxError|IndentationError|RecursionError|\
                    UnicodeDecodeError";
    let of_shapes = r"RuntimeError: .*(shapes? |size of tensor|[Ss]izes of tensors|size mismatch|dimension)";
    Regex::new(&format!(r"(?:^|[\s.])(?:(?:{of_logic})(?::|$)|{of_shapes})")).expect("a fixed pattern")
});

/// Whether the line names an exception that follows from the code and its data.
pub(super) fn is_of_logic(text: &str) -> bool {
    BY_CODE.is_match(text)
}

/// What is refused to a process: it has no right, or its files are not what they were said to be.
static BY_REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    let of_files = "PermissionError|FileNotFoundError|FileExistsError|IsADirectoryError|NotADirectoryError";
    let of_stores = "NoCredentialsError|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied";
    Regex::new(&format!(r"(?:^|[\s.(])(?:{of_files}|{of_stores})(?:[:)]|$)")).expect("a fixed pattern")
});

/// The exception that decided about an end, with its message as it was printed, where it follows from the code, its data and its rights: the
/// same launch raises it again. `None`: another evidence decided, or one that the machine or the network may have caused.
#[must_use]
pub fn thrown(reason: Reason, evidence: &[EvidenceItem]) -> Option<&str> {
    use Reason::{CheckpointError, CodeError, EvaluatorError, StorageError, Unknown};
    let decided = evidence.first()?;
    let is_printed = matches!(decided.source, EvidenceSource::Log | EvidenceSource::ErrorFile);
    let text = decided.text.trim();
    let is_of_code = || is_of_logic(text) && !text.contains("NoneType");
    let lasts = match reason {
        StorageError => BY_REFUSAL.is_match(text),
        CodeError | CheckpointError | EvaluatorError | Unknown => is_of_code() || BY_REFUSAL.is_match(text),
        _ => false,
    };
    (is_printed && lasts).then_some(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an exception of code is one, in a package or behind a rank too, and that what a machine, a network or a judge may
    /// have caused is none.
    #[test]
    fn exceptions_of_code_are_recognised() {
        let of = |reason, source, text: &str| {
            let item = EvidenceItem { source, line_number: None, stream: None, text: text.into() };
            thrown(reason, &[item]).is_some()
        };
        for (text, expected) in [
            ("KeyError: 'target'", true),
            ("[rank3]: KeyError: 'target'", true),
            ("pandas.errors.IndexError: 3", true),
            ("AssertionError", true),
            ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 5x3)", true),
            ("RuntimeError: NCCL error: unhandled system error", false),
            ("TypeError: 'NoneType' object is not subscriptable", false),
            ("ConnectionError: the judge did not answer", false),
            ("OSError: [Errno 5] Input/output error", false),
            ("Killed", false),
        ] {
            assert_eq!(of(Reason::Unknown, EvidenceSource::Log, text), expected, "{text}");
            assert!(!of(Reason::NetworkError, EvidenceSource::Log, text), "{text}");
            assert!(!of(Reason::StorageError, EvidenceSource::Log, text), "{text}");
            assert!(!of(Reason::Unknown, EvidenceSource::WaitStatus, text), "{text}");
        }
        for (text, expected) in [
            ("PermissionError: [Errno 13] Permission denied: 'd.bin'", true),
            ("botocore.exceptions.NoCredentialsError: Unable to locate credentials", true),
            ("An error occurred (AccessDenied) when calling the GetObject operation: Access Denied", true),
            ("OSError: [Errno 28] No space left on device", false),
            ("OSError: [Errno 5] Input/output error", false),
        ] {
            assert_eq!(of(Reason::StorageError, EvidenceSource::Log, text), expected, "{text}");
        }
    }
}
