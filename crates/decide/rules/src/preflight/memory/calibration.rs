//! A measured peak corrects what is modelled: the ledger's, or that of a rehearsal with one batch.

use super::answer::{Counter, MemoryEstimate};

/// A correction beyond these means that another run was measured than the one that was described.
const FACTOR_MIN: f64 = 0.2;
const FACTOR_MAX: f64 = 5.0;

/// By how much measured activations, logits and copies differ from modelled ones. It holds for other batch sizes,
/// lengths and numbers of ranks of the same code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Measured over modelled.
    pub factor: f64,
}

/// A measured peak that the described run cannot have had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "a peak of {measured_bytes} bytes is not that of the described run: {counted_bytes} bytes are there for certain, and the \
     rest would be {factor:.2} times what is modelled"
)]
pub struct NotThisRun {
    pub measured_bytes: u64,
    /// What is there for certain.
    pub counted_bytes: u64,
    /// Measured over modelled.
    pub factor: f64,
}

impl Calibration {
    /// Compares the estimate of a run with the peak it was measured to have.
    ///
    /// What is counted from the spec is taken as right; context and collectives too; everything else is scaled.
    ///
    /// # Errors
    /// When the factor is out of bounds: another run was measured than the one that was described.
    pub fn of(estimate: &MemoryEstimate, measured_bytes: u64, counter: Counter) -> Result<Self, NotThisRun> {
        let outside_bytes = match counter {
            Counter::Device => estimate.total_bytes - estimate.reserved_bytes,
            Counter::Allocated | Counter::Reserved => 0,
        };
        let fixed_bytes = estimate.parts.counted() + estimate.parts.kv_cache + outside_bytes;
        let modelled_bytes = estimate.counted_by(counter) as f64 - fixed_bytes as f64;
        let factor = (measured_bytes as f64 - fixed_bytes as f64) / modelled_bytes.max(1.0);
        if (FACTOR_MIN..=FACTOR_MAX).contains(&factor) {
            Ok(Self { factor })
        } else {
            Err(NotThisRun { measured_bytes, counted_bytes: fixed_bytes, factor })
        }
    }
}
