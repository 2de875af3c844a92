//! How good predictions are.

use trackway_statistics::{Interval, mean, variance};

use super::booster::Predictions;
use super::frame::MISSING_CODE;
use super::target::Target;

/// The area under the ROC curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AreaUnderCurve {
    /// The probability that a positive row scores higher than a negative one, ties counting half: 0.5 is random.
    pub value: f64,
    pub standard_error: f64,
}

impl AreaUnderCurve {
    /// The interval of the true area, by the normal distribution; `z` is 1.96 for 95 %.
    #[must_use]
    pub fn interval(&self, z: f64) -> Interval {
        let half = z * self.standard_error;
        Interval { low: (self.value - half).max(0.0), high: (self.value + half).min(1.0) }
    }
}

/// The area under the ROC curve with the standard error of E. DeLong et al. (1988), in the fast form of X. Sun and W.
/// Xu (2014). `None` where one side has fewer than two rows, or a score is NaN.
#[must_use]
pub fn roc_auc(scores: &[f64], is_positive: &[bool]) -> Option<AreaUnderCurve> {
    assert_eq!(scores.len(), is_positive.len(), "every row has a score");
    let side = |wanted: bool| -> Vec<usize> {
        (0..scores.len()).filter(|row| is_positive[*row] == wanted).collect()
    };
    let (positives, negatives) = (side(true), side(false));
    if positives.len() < 2 || negatives.len() < 2 || scores.iter().any(|score| score.is_nan()) {
        return None;
    }
    let all: Vec<usize> = (0..scores.len()).collect();
    let ranks = middle_ranks(scores, &all);
    let (positive_count, negative_count) = (positives.len() as f64, negatives.len() as f64);
    // For each row the fraction of the other side that it beats.
    let beaten = |rows: &[usize], others: f64| -> Vec<f64> {
        let own = middle_ranks(scores, rows);
        rows.iter().zip(own).map(|(row, own)| (ranks[*row] - own) / others).collect()
    };
    let (wins, losses) = (beaten(&positives, negative_count), beaten(&negatives, positive_count));
    let value = mean(&wins);
    let variance = variance(&wins) / positive_count + variance(&losses) / negative_count;
    Some(AreaUnderCurve { value, standard_error: variance.sqrt() })
}

/// Ranks from 1 of some rows among themselves; ties have the mean one.
fn middle_ranks(scores: &[f64], rows: &[usize]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|one, other| scores[rows[*one]].total_cmp(&scores[rows[*other]]));
    let mut ranks = vec![0.0; rows.len()];
    let mut before = 0;
    for tied in order.chunk_by(|one, other| scores[rows[*one]] == scores[rows[*other]]) {
        let rank = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        tied.iter().for_each(|index| ranks[*index] = rank);
        before += tied.len();
    }
    ranks
}

/// Mean of `-ln` of the probability that was given to the true class, over rows with a class. NaN without any.
///
/// # Panics
/// For a continuous target.
#[must_use]
pub fn log_loss(predictions: &Predictions, target: &Target) -> f64 {
    let Target::Classes { of_row, .. } = target else { panic!("continuous targets have no log loss") };
    let known = of_row.iter().enumerate().filter(|(_, class)| **class != MISSING_CODE);
    let losses: Vec<f64> =
        known.map(|(row, class)| -predictions.row(row)[*class as usize].max(1e-15).ln()).collect();
    mean(&losses)
}
