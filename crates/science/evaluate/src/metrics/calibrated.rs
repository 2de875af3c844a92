//! How far probabilities are from what comes true.

/// Bins of the same width between 0 and 1 (C. Guo et al. 2017).
pub const CALIBRATION_BINS: usize = 15;

/// Items by the bin of their probability.
#[derive(Debug, Clone)]
pub(crate) struct Calibrated {
    /// [`NO_BIN`] if there is none.
    bin: Vec<u8>,
    /// Probability less what came true (1 or 0).
    gap: Vec<f64>,
}

const NO_BIN: u8 = u8::MAX;

/// The bin of a probability: above its lower edge, up to its upper one; 0 is in the first.
pub(crate) fn bin_of(probability: f64) -> usize {
    let above = (probability * CALIBRATION_BINS as f64).ceil() as usize;
    above.clamp(1, CALIBRATION_BINS) - 1
}

impl Calibrated {
    pub(crate) fn new(probabilities: &[f64], truth: impl Fn(usize) -> f64) -> Self {
        let bin = |probability: &f64| if probability.is_nan() { NO_BIN } else { bin_of(*probability) as u8 };
        let bin = probabilities.iter().map(bin).collect();
        let gap =
            probabilities.iter().enumerate().map(|(item, probability)| probability - truth(item)).collect();
        Self { bin, gap }
    }

    /// The expected calibration error: the distance of the means of each bin, weighted by its rows.
    pub(crate) fn error(&self, weights: &[u8]) -> f64 {
        let mut gaps = [0.0; CALIBRATION_BINS];
        let mut count = 0u64;
        let items = weights.iter().zip(&self.bin).zip(&self.gap);
        for ((weight, bin), gap) in items.filter(|((_, bin), _)| **bin != NO_BIN) {
            gaps[usize::from(*bin)] += f64::from(*weight) * gap;
            count += u64::from(*weight);
        }
        gaps.iter().map(|gap| gap.abs()).sum::<f64>() / count as f64
    }
}
