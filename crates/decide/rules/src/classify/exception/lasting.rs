//! Errors that the same launch meets again, whatever its reason: of code, of arguments, of a command that cannot be run.

use trackway_core::{RetryOutlook, TerminationReason as Reason};

use super::by_name;
use crate::classify::finding::{EvidenceItem, EvidenceSource, TerminationFinding as Finding};
use crate::classify::rule::{FactRule, TerminationRule};
use crate::pattern::Pattern;

/// Rules of logs that read such an error. A crash of native code and a failed check are none: both depend on more than the code.
const RULES: [&str; 7] = [
    "code.import", "code.syntax", "code.arguments", "code.build", "code.container", "code.kernel_image",
    "code.shapes",
];
/// The same of exits.
const FACTS: [FactRule; 3] = [FactRule::ExitUsage, FactRule::CommandNotRunnable, FactRule::CouldNotStart];

/// Exception types that only a mistake in code raises.
pub(crate) fn is_code_type(text: &str) -> bool {
    ["AttributeError", "NameError", "TypeError", "ImportError", "UnboundLocalError", "NotImplementedError"]
        .iter()
        .any(|name| text.contains(name))
}

/// Exceptions that follow from the code and its data, whatever the machine and the network do; `RuntimeError` only of shapes.
static BY_CODE: Pattern = Pattern::exact_made(|| {
    let of_logic = "AttributeError|NameError|TypeError|ImportError|ModuleNotFoundError|UnboundLocalError|NotImplementedError|KeyError|\
                    IndexError|LookupError|ValueError|AssertionError|ZeroDivisionError|SyntaxError|IndentationError|RecursionError|\
                    UnicodeDecodeError";
    let of_shapes = r"RuntimeError: .*(shapes? |size of tensor|[Ss]izes of tensors|size mismatch|dimension)";
    format!(r"(?:^|[\s.])(?:(?:{of_logic})(?::|$)|{of_shapes})")
});

/// Whether the line names an exception that follows from the code and its data.
pub(super) fn is_of_logic(text: &str) -> bool {
    BY_CODE.is_match(text)
}

/// What is refused to a process: it has no right, or its files are not what they were said to be.
static BY_REFUSAL: Pattern = Pattern::exact_made(|| {
    let of_files = "PermissionError|FileNotFoundError|FileExistsError|IsADirectoryError|NotADirectoryError";
    let of_stores = "NoCredentialsError|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied";
    format!(r"(?:^|[\s.(])(?:{of_files}|{of_stores})(?:[:)]|$)")
});

/// A line that an exception ends with: its type, of whatever name, and its message.
static EXCEPTION: Pattern = Pattern::exact(r"^(?:\[[^\]]*\]:?\s*)*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: |:?$)");

/// What a machine, a device, a network or a service may have caused, whatever the exception is named.
static BY_MACHINE: Pattern = Pattern::made(|| {
    let of_network = r"nccl|gloo|dist(backend|network|store)|connect|network|socket|\bssl|https?\b|\bdns\b|\brpc|time[ds]?[ -]?out|broken ?pipe|\bpeer\b|\beof|\bremote";
    let of_services = r"unavailable|temporar|try again|rate.?limit|too many requests|overloaded|quota|api.?error|servererror";
    let of_files = r"\[errno|input/output|\bi/o\b|no space|stale file|blockingio|interrupted";
    let of_memory = r"out ?of ?memory|memoryerror|cannot allocate|\boom\b|alloc_failed";
    let of_devices = r"cuda error|cuda driver|no cuda|cublas|cudnn|(hip|xpu|npu|acl) error|illegal memory access|\becc\b|\bxid\b";
    let of_processes =
        r"killed|aborted|terminated|preempt|\bsig[a-z]{3,4}\b|worker|died|calledprocess|childfailed";
    [of_network, of_services, of_files, of_memory, of_devices, of_processes].join("|")
});

/// Whether the line is an exception that nothing outside the code is known to cause. An assertion on a device checks values of the code.
fn is_of_unknown_cause(text: &str) -> bool {
    EXCEPTION.is_match(text)
        && (text.contains("device-side assert") || !BY_MACHINE.is_match(&*by_name::without_bare_names(text)))
}

/// The exception that decided about an end, with its message as it was printed, where nothing but the code, its data and its rights is
/// known to cause it: the same launch may raise it again. `None`: another evidence decided, or one that the machine or the network may have
/// caused. An evaluator depends on services too: of it only exceptions of the code count.
#[must_use]
pub fn thrown(reason: Reason, evidence: &[EvidenceItem]) -> Option<&str> {
    use Reason::{CheckpointError, CodeError, EvaluatorError, StorageError, Unknown};
    let decided = evidence.first()?;
    let is_printed = matches!(decided.source, EvidenceSource::Log | EvidenceSource::ErrorFile);
    let text = decided.text.trim();
    let lasts = match reason {
        StorageError => BY_REFUSAL.is_match(text),
        EvaluatorError => (is_of_logic(text) && !text.contains("NoneType")) || BY_REFUSAL.is_match(text),
        CodeError | CheckpointError | Unknown => {
            is_of_logic(text) || BY_REFUSAL.is_match(text) || is_of_unknown_cause(text)
        }
        _ => false,
    };
    (is_printed && lasts).then_some(text)
}

/// What the reading of an evaluation launch says of another one.
pub(crate) fn outlook_of_evaluation(finding: &Finding) -> Option<RetryOutlook> {
    let text = finding.items.first().map_or("", |item| item.text.as_str());
    outlook_of(finding.reason, finding.rule, text)
}

/// `DoNotRetry` for an error of code that no repetition changes; `None`: the reason alone decides. A missing value (`NoneType`) may be
/// an answer of a judge that did not come.
pub(crate) fn outlook_of(reason: Reason, rule: TerminationRule, text: &str) -> Option<RetryOutlook> {
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

    /// Proves that an exception is one of the code, in a package or behind a rank too and whatever its type, unless a machine, a network
    /// or a judge may have caused it.
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
            ("TypeError: 'NoneType' object is not subscriptable", true),
            ("RuntimeError: boom", true),
            ("[rank0]: Exception: boom", true),
            ("OSError: boom", true),
            ("trainer.errors.Boom: boom", true),
            ("Boom", true),
            ("RuntimeError: CUDA error: device-side assert triggered", true),
            ("RuntimeError: CUDA error: an illegal memory access was encountered", false),
            ("RuntimeError: DataLoader worker (pid 7) exited unexpectedly", false),
            ("torch.OutOfMemoryError: CUDA out of memory", false),
            ("TimeoutError: boom", false),
            ("project.errors.ApiError: the plan has 3 layers", true),
            ("project.errors.ApiError: the server did not answer, status 503", false),
            ("Segmentation fault (core dumped)", false),
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
            ("KeyError: 'target'", true),
            ("RuntimeError: the judge says nothing", false),
            ("TypeError: 'NoneType' object is not subscriptable", false),
        ] {
            assert_eq!(of(Reason::EvaluatorError, EvidenceSource::Log, text), expected, "{text}");
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
