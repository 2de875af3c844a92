//! Whether a sample of the data stopped the work, where the exception is of no particular family: a program that had
//! read others reads each one in the same way.

use trackway_core::TerminationReason as Reason;

use super::lasting::is_code_type;
use crate::classify::evidence::TerminationEvidence as Evidence;
use crate::classify::settings::own_code;
use crate::pattern::Pattern;
use crate::scan::{Hit, LogEvidence, Phase};
use crate::signatures::Role;

/// What says nothing of the content of a file: it is not there, may not be read, or memory ran out.
static OF_FILES: Pattern = Pattern::exact(
    r"FileNotFoundError|FileExistsError|PermissionError|(Is|Not)ADirectoryError|MemoryError|\bErrno\b",
);
/// A picture or a sound, as code calls it.
static MEDIA: Pattern =
    Pattern::new(r"\b(im|img|image|pic|frame|mask|audio|wav|waveform|video|clip)s?\d?\b|imread");
/// A reader that returned nothing, where its result is used: `cv2.imread` of a file that it cannot read.
static NOTHING_READ: Pattern = Pattern::exact_made(|| {
    let attributes = "shape|size|dtype|ndim|astype|copy|resize|convert|transpose|mean";
    format!(r"'NoneType' object (is not (subscriptable|iterable)|has no attribute '({attributes})')")
});

/// Whether the exception may be about the content of what was read.
pub(crate) fn may_be_of_content(text: &str) -> bool {
    !is_code_type(text) && !OF_FILES.is_match(text)
}

/// Whether one sample stopped the work: it was being read or joined to a batch after others had been, or a picture or a sound was nothing.
pub(crate) fn stopped_it(hit: &Hit, evidence: &Evidence) -> bool {
    if hit.role != Role::Exception || hit.reason != Reason::CodeError {
        return false;
    }
    let code = own_code(hit).unwrap_or_default();
    let is_checked = hit.text.contains("AssertionError") && code.contains("is not None");
    let was_nothing = (is_checked || NOTHING_READ.is_match(&hit.text)) && MEDIA.is_match(code);
    was_nothing || (may_be_of_content(&hit.text) && was_being_read(&hit.phases, evidence))
}

/// Whether a sample was being read or joined to a batch after others had been.
pub(super) fn was_being_read(phases: &[Phase], evidence: &Evidence) -> bool {
    let is_in = |phase| phases.contains(&phase);
    let is_loading = is_in(Phase::LoadSample) && !is_in(Phase::PinMemory) && !is_in(Phase::LocalPeer);
    is_loading && has_worked(evidence)
}

/// Whether the attempt printed or recorded a result of its work, as far as its last lines and those before a traceback show.
pub(super) fn has_worked(evidence: &Evidence) -> bool {
    let shows_work = |log: &LogEvidence| {
        log.worked_before_traceback || log.ending.has_results || !log.ending.progress.is_empty()
    };
    evidence.progress.last_step.is_some() || evidence.logs.iter().any(|log| shows_work(&log.log))
}
