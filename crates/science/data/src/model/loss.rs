//! What a booster makes small.

use super::target::Target;
use crate::model::MISSING_CODE;

/// Second derivatives below this are rounded up: a leaf's value stays finite.
const CURVATURE_MIN: f64 = 1e-6;

/// A loss with the number of scores it needs for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// Half the squared error of one score.
    Squared,
    /// Cross-entropy of one score, the log odds of the second class.
    Logistic,
    /// Cross-entropy of a score for each class.
    Softmax(usize),
}

impl Loss {
    pub(super) fn of(target: &Target) -> Self {
        match target {
            Target::Numbers(_) => Self::Squared,
            Target::Classes { names, .. } if names.len() == 2 => Self::Logistic,
            Target::Classes { names, .. } => Self::Softmax(names.len()),
        }
    }

    /// Scores for each row.
    pub(super) fn scores(self) -> usize {
        match self {
            Self::Squared | Self::Logistic => 1,
            Self::Softmax(classes) => classes,
        }
    }

    /// Numbers predicted for each row: one number, or a probability for each class.
    pub(super) fn outputs(self) -> usize {
        match self {
            Self::Squared => 1,
            Self::Logistic => 2,
            Self::Softmax(classes) => classes,
        }
    }

    /// The best scores of a model without columns.
    pub(super) fn start(self, target: &Target, rows: &[u32]) -> Vec<f64> {
        match target {
            Target::Numbers(values) => {
                let sum: f64 = rows.iter().map(|row| values[*row as usize]).sum();
                vec![sum / rows.len().max(1) as f64]
            }
            Target::Classes { of_row, names } => {
                let mut counts = vec![0.5_f64; names.len()];
                let known =
                    rows.iter().map(|row| of_row[*row as usize]).filter(|class| *class != MISSING_CODE);
                known.for_each(|class| counts[class as usize] += 1.0);
                match self {
                    Self::Logistic => vec![(counts[1] / counts[0]).ln()],
                    _ => counts.iter().map(|count: &f64| count.ln()).collect(),
                }
            }
        }
    }

    /// First and second derivative by score `output` of a row with the given scores.
    pub(super) fn derivatives(
        self,
        target: &Target,
        row: usize,
        scores: &[f64],
        output: usize,
    ) -> (f64, f64) {
        match target {
            Target::Numbers(values) => (scores[0] - values[row], 1.0),
            Target::Classes { of_row, .. } => {
                let (probability, wanted) = match self {
                    Self::Logistic => (sigmoid(scores[0]), of_row[row] == 1),
                    _ => (softmax_of(scores, output), of_row[row] as usize == output),
                };
                let gradient = probability - f64::from(u8::from(wanted));
                (gradient, (probability * (1.0 - probability)).max(CURVATURE_MIN))
            }
        }
    }

    /// The loss of one row.
    pub(super) fn value(self, target: &Target, row: usize, scores: &[f64]) -> f64 {
        match target {
            Target::Numbers(values) => (scores[0] - values[row]).powi(2) / 2.0,
            Target::Classes { of_row, .. } => {
                let probability = match self {
                    Self::Logistic if of_row[row] == 1 => sigmoid(scores[0]),
                    Self::Logistic => sigmoid(-scores[0]),
                    _ => softmax_of(scores, of_row[row] as usize),
                };
                -probability.max(f64::MIN_POSITIVE).ln()
            }
        }
    }

    /// Scores as a number or as probabilities.
    pub(super) fn predict(self, scores: &[f64], into: &mut Vec<f64>) {
        match self {
            Self::Squared => into.push(scores[0]),
            Self::Logistic => into.extend([sigmoid(-scores[0]), sigmoid(scores[0])]),
            Self::Softmax(classes) => into.extend((0..classes).map(|class| softmax_of(scores, class))),
        }
    }
}

fn sigmoid(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

fn softmax_of(scores: &[f64], class: usize) -> f64 {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - highest).exp()).sum();
    (scores[class] - highest).exp() / sum
}
