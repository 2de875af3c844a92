//! How far a peak may be from its estimate.

use super::answer::Parts;
use super::spec::MemorySpec;

/// How much less and how much more a part may be, as fractions of it.
struct Width {
    less: f64,
    more: f64,
}

/// Weights, gradients and optimizer states are counted, not estimated; what remains is padding.
const COUNTED: Width = Width { less: 0.005, more: 0.02 };
/// What comes and goes in a step depends on the code that runs.
const MODELLED: Width = Width { less: 0.25, more: 0.4 };
/// The same for a shape that was guessed.
const GUESSED: Width = Width { less: 0.45, more: 0.6 };
/// Context, collectives and holes.
const OVERHEAD: Width = Width { less: 0.6, more: 0.8 };
/// What comes and goes, when a measured peak of the same code has corrected it.
const CORRECTED: Width = Width { less: 0.1, more: 0.1 };

/// The interval around a peak of such parts, in bytes. Widths add up: what is wrong in one part is often wrong in all.
pub(super) fn of(parts: &Parts, spec: &MemorySpec, corrected: bool) -> (u64, u64) {
    let (modelled, overhead) = match (corrected, spec.model.guessed()) {
        (true, _) => (CORRECTED, CORRECTED),
        (false, true) => (GUESSED, OVERHEAD),
        (false, false) => (MODELLED, OVERHEAD),
    };
    let end = |of: &dyn Fn(&Width) -> f64| {
        parts.counted() as f64 * of(&COUNTED)
            + parts.modelled() as f64 * of(&modelled)
            + parts.overhead as f64 * of(&overhead)
    };
    let total_bytes = parts.total() as f64;
    ((total_bytes - end(&|width| width.less)) as u64, (total_bytes + end(&|width| width.more)) as u64)
}
