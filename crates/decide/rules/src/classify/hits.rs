//! What a line is, by itself or beside another one.

use trackway_core::TerminationReason as Reason;

use super::allocation::is_absurd_allocation;
use super::exception::lasting::is_code_type;
use super::exception::sample;
use crate::scan::{Hit, Phase};
use crate::signatures::{Role, checkpoint, code, data, node, operator, scheduler};

/// Lines over which one message may run.
pub(super) const SAME_MESSAGE_LINES: u64 = 3;
/// Lines between an exception and its repetition by a runtime.
pub(super) const SAME_ERROR_LINES: u64 = 30;
/// The header of a traceback.
const TRACEBACK: &str = "Traceback (most recent call last):";

pub(super) fn is_cancellation(hit: &Hit) -> bool {
    matches!(hit.signature, operator::SCANCEL | operator::RUN_CANCELLED)
}

/// Whether the line is the interrupt itself, as the end of a traceback prints it.
pub(super) fn is_bare_interrupt(text: &str) -> bool {
    let name = text.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic());
    name.starts_with("KeyboardInterrupt") || name.starts_with("^C")
}

/// Whether the exception announces that of another process, which follows with its traceback: PyTorch raises a worker's again as
/// "Caught RuntimeError in DataLoader worker process 3", or once had its traceback as the message.
pub(super) fn announces(hit: &Hit, later: &Hit) -> bool {
    is_announcement(hit) && (hit.line_number..hit.line_number + SAME_ERROR_LINES).contains(&later.line_number)
}

pub(super) fn is_announcement(hit: &Hit) -> bool {
    let is_raised_again = hit.text.contains("Caught ") && hit.text.contains(" in ");
    let class = hit.text.strip_suffix(TRACEBACK);
    is_raised_again || class.is_some_and(|class| class.trim_end().ends_with(':'))
}

/// Verdicts and causes, but for what a sibling process on the same machine sees of another's death.
pub(super) fn is_causal(hit: &Hit) -> bool {
    let local_peer = hit.phases.contains(&Phase::LocalPeer) && hit.reason == Reason::NetworkError;
    matches!(hit.role, Role::Verdict | Role::Cause) && !local_peer && !is_absurd_allocation(hit)
}

/// Whether `later` explains what `earlier` reports: a node is gone because it was preempted, a process crashed because
/// memory ran out, a connection was lost because memory ran out at its other end, a request failed because the object store refused it.
pub(super) fn explains(later: &Hit, earlier: &Hit) -> bool {
    let preempted = later.role == Role::Verdict
        && later.reason == Reason::Preempted
        && earlier.reason == Reason::NodeFailure;
    let crash = is_crash(earlier)
        && matches!(
            later.reason,
            Reason::HostOom | Reason::DeviceOom | Reason::StorageError | Reason::NodeFailure
        );
    let store = earlier.reason == Reason::NetworkError
        && later.reason == Reason::StorageError
        && later.line_number <= earlier.line_number + SAME_MESSAGE_LINES;
    // A scheduler cancels for a reason, and may state it only after the cancellation itself.
    let stopped_for = is_cancellation(earlier)
        && later.role == Role::Verdict
        && matches!(
            later.reason,
            Reason::Timeout
                | Reason::Preempted
                | Reason::HostOom
                | Reason::NodeFailure
                | Reason::BudgetExhausted
        );
    let killed = matches!(earlier.signature, node::CLUSTER_LOST | scheduler::EVICTED)
        && later.role == Role::Verdict
        && matches!(later.reason, Reason::HostOom | Reason::StorageError);
    let gone = earlier.signature == scheduler::EVICTED
        && later.reason == Reason::NodeFailure
        && later.line_number == earlier.line_number;
    let checked = earlier.signature == code::NATIVE_CHECK
        && later.reason != Reason::CodeError
        && later.line_number <= earlier.line_number + SAME_MESSAGE_LINES;
    let broken_device = earlier.signature == code::GPU_FAULT
        && later.signature != node::LAUNCH_FAILURE
        && later.reason == Reason::NodeFailure;
    // One rank ran out of memory, and another printed first that the connection to it was lost.
    let starved =
        earlier.reason == Reason::NetworkError && matches!(later.reason, Reason::HostOom | Reason::DeviceOom);
    preempted || crash || starved || store || stopped_for || killed || gone || checked || broken_device
}

/// Whether the connection that failed was the one to a judge: its client raises a separate exception over it.
pub(super) fn was_judges(later: &Hit, earlier: &Hit) -> bool {
    earlier.reason == Reason::NetworkError && later.reason == Reason::EvaluatorError
}

/// How a process dies of many causes.
pub(super) fn is_crash(hit: &Hit) -> bool {
    matches!(hit.signature, code::CRASH | code::NATIVE_CHECK)
}

/// A launcher may report the abort before the watchdog that aborted is heard.
pub(super) fn says_aborted(hit: &Hit) -> bool {
    hit.text.contains("Aborted")
}

/// What other ranks, a waiting person and the next script see when something else has gone wrong.
pub(super) fn is_soft(hit: &Hit) -> bool {
    matches!(hit.reason, Reason::NetworkError | Reason::Hang)
        || matches!(hit.signature, data::ABSENT_FILE | checkpoint::ABSENT_FILE)
        || (hit.reason == Reason::Cancelled && hit.role == Role::Cause)
}

/// An error without a family belongs to what the enclosing frames were doing.
pub(super) fn reason_in_phase(hit: &Hit) -> Reason {
    let phases = &hit.phases;
    let is_in = |phase| phases.contains(&phase);
    let was_thrown = |class: &str| hit.role == Role::Exception && hit.text.contains(class);
    let reads_data = is_in(Phase::LoadData) || is_in(Phase::LoadSample) || is_in(Phase::Decode);
    let is_content = rejects_content(hit)
        || (hit.reason == Reason::DataError && (reads_data || hit.text.contains("DataLoader worker")));
    let in_evaluation = is_in(Phase::Evaluate)
        && !is_content
        && matches!(
            hit.reason,
            Reason::CodeError | Reason::NetworkError | Reason::DataError | Reason::SchemaDrift
        );
    let specific_code = hit.role == Role::Cause;
    let unreadable_sample =
        matches!(hit.signature, checkpoint::UNREADABLE_ARCHIVE | checkpoint::HDF5_WEIGHTS)
            && (is_in(Phase::LoadSample) || hit.text.contains("DataLoader worker"));
    let unreadable_data = hit.signature == checkpoint::HDF5_WEIGHTS
        && is_in(Phase::LoadData)
        && !Phase::are_of_checkpoints(phases);
    // The device's allocator says how much it tried to allocate.
    let in_host_memory = is_in(Phase::PinMemory) && !hit.text.contains("ried to allocate");
    if hit.reason == Reason::DeviceOom && in_host_memory {
        Reason::HostOom
    } else if in_evaluation {
        Reason::EvaluatorError
    } else if unreadable_sample || unreadable_data || rejects_content(hit) {
        Reason::DataError
    } else if hit.reason == Reason::CodeError
        && !specific_code
        && Phase::are_of_checkpoints(phases)
        && !is_code_type(&hit.text)
    {
        Reason::CheckpointError
    } else if hit.role == Role::Exception
        && (is_workers_read(hit) || (reads_data && is_reader_type(&hit.text)))
    {
        Reason::DataError
    } else if was_thrown("KeyError") && is_in(Phase::SelectColumns) {
        Reason::SchemaDrift
    } else if was_thrown("ValueError") && is_in(Phase::CheckInput) {
        Reason::DataError
    } else {
        hit.reason
    }
}

/// Whether a library that decodes data, or a lookup of labels and ids, raised it because of what it was given.
fn rejects_content(hit: &Hit) -> bool {
    let is_in = |phase| hit.phases.contains(&phase);
    let is_plain =
        hit.reason == Reason::CodeError && (hit.role == Role::Exception || hit.signature == code::SYNTAX);
    let is_decoded = is_in(Phase::Decode) && !Phase::are_of_checkpoints(&hit.phases);
    let is_absent_class = is_in(Phase::LookUp) && hit.text.contains("IndexError");
    is_plain && (is_absent_class || (is_decoded && sample::may_be_of_content(&hit.text)))
}

/// Whether the worker of a loader raised an exception with which readers reject content: also where its traceback is missing.
fn is_workers_read(hit: &Hit) -> bool {
    let is_announced = hit.text.contains("Caught ") && hit.text.contains(" in DataLoader worker");
    is_announced
        && (is_reader_type(&hit.text)
            || ["Caught OSError ", "Caught IOError "].iter().any(|caught| hit.text.contains(caught)))
}

/// Exception types with which readers reject content.
fn is_reader_type(text: &str) -> bool {
    ["EOFError", "struct.error", "wave.Error", "ParseError", "OverflowError", "LZMAError"]
        .iter()
        .any(|name| text.contains(name))
}

pub(super) fn says_sigkill(text: &str) -> bool {
    text.contains("137") || text.contains("SIGKILL")
}
