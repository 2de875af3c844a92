//! Requests for probes of a model.

use trackway_results::probes::ProbePart;

/// The size of the probes.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeSettings {
    /// What to find out.
    pub parts: Vec<ProbePart>,
    /// Shuffles of each feature for its importance.
    pub repeats: usize,
    /// Values of each feature at which predictions are averaged.
    pub grid: usize,
    /// Rows whose own curve is in the answer.
    pub curves: usize,
    /// Decides shuffles, typos and chosen rows.
    pub seed: u64,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self { parts: ProbePart::ALL.to_vec(), repeats: 5, grid: 20, curves: 20, seed: 0 }
    }
}
