//! What an exit code or a signal means by itself, read alone.

use trackway_core::{Confidence, TerminationReason as Reason};

use super::evidence::TerminationEvidence as Evidence;
use super::finding::TerminationFinding as Finding;
use super::rule::FactRule;

/// Exit codes that a shell or a wrapper uses to report a child's signal.
pub(super) const SIGNAL_CODE_BASE: i32 = 128;

pub(super) const SIGKILL: i32 = 9;

/// Whether SIGKILL ended the command, or a wrapper reports that.
pub(super) fn ended_by_sigkill(evidence: &Evidence) -> bool {
    evidence.signal == Some(SIGKILL)
        || evidence.exit_code.is_some_and(|code| code == SIGNAL_CODE_BASE + SIGKILL || code == -SIGKILL)
}

/// What an exit code means by itself. 1 is not informative: a weak reading of the log speaks first.
pub(super) fn by_code(code: i32) -> Option<Finding> {
    Some(match code {
        2 => Finding::new(Reason::CodeError, FactRule::ExitUsage, Confidence::Guess),
        124 => Finding::new(Reason::Timeout, FactRule::ExitTimeout, Confidence::Guess),
        126 | 127 => Finding::new(Reason::CodeError, FactRule::CommandNotRunnable, Confidence::Likely),
        _ if code < -64 => by_windows_status(code)?,
        _ if code > SIGNAL_CODE_BASE && code <= SIGNAL_CODE_BASE + 64 => {
            by_signal(code - SIGNAL_CODE_BASE, Confidence::Guess)
        }
        _ if (-64..0).contains(&code) => by_signal(-code, Confidence::Guess),
        _ => return None,
    })
}

/// The statuses of Windows that say how a process died; an exit code has them as a negative number.
fn by_windows_status(code: i32) -> Option<Finding> {
    let (reason, rule) = match code.cast_unsigned() {
        // Access violation, illegal instruction, division by zero, stack overflow, heap corruption, buffer overrun, fail fast.
        0xC000_0005 | 0xC000_001D | 0xC000_0094 | 0xC000_00FD | 0xC000_0374 | 0xC000_0409 | 0xC000_0602 => {
            (Reason::CodeError, FactRule::WindowsCrash)
        }
        // A library that is not there, has no such entry, or cannot be initialized.
        0xC000_0135 | 0xC000_0139 | 0xC000_0142 => (Reason::CodeError, FactRule::WindowsCrash),
        0xC000_013A => (Reason::Cancelled, FactRule::WindowsInterrupt),
        0xC000_0017 | 0xC000_012D => (Reason::HostOom, FactRule::WindowsOutOfMemory),
        _ => return None,
    };
    Some(Finding::new(reason, rule, Confidence::Likely))
}

/// A crash signal is the program's doing; SIGKILL and SIGTERM come from outside and do not identify the sender.
pub(super) fn by_signal(signal: i32, strongest: Confidence) -> Finding {
    let (reason, rule, confidence) = match signal {
        2 => (Reason::Cancelled, FactRule::Interrupted, strongest),
        4 => (Reason::CodeError, FactRule::IllegalInstruction, strongest),
        6 => (Reason::CodeError, FactRule::Abort, Confidence::Guess),
        7 => (Reason::HostOom, FactRule::BusError, Confidence::Guess),
        8 => (Reason::CodeError, FactRule::ArithmeticFault, strongest),
        11 => (Reason::CodeError, FactRule::SegmentationFault, strongest),
        24 => (Reason::Timeout, FactRule::CpuTimeLimit, strongest),
        25 => (Reason::StorageError, FactRule::FileSizeLimit, strongest),
        _ => (Reason::Unknown, FactRule::KilledFromOutside, Confidence::Guess),
    };
    Finding::new(reason, rule, confidence)
}
