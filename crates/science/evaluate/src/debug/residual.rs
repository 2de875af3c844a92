//! What a model's predictions leave over, by prediction and by feature.

use trackway_data::model::FrameColumn;

use super::model::Model;
use crate::residuals::{Leftover, ResidualOf, Residuals, residuals as look};

/// The confidence level of intervals.
const CONFIDENCE: f64 = 0.95;

/// Of the rows whose truth is known; `None` where there are too few.
pub(super) fn residuals(model: &Model<'_>) -> Option<Residuals> {
    let (of, left) = match model.left_over() {
        Some(left) if model.decides_by_threshold() => (ResidualOf::Probability, left),
        Some(left) => (ResidualOf::Value, left),
        // Of classes the loss is 1 where they are wrong.
        None => (ResidualOf::WrongClass, model.losses.clone()),
    };
    let rows: Vec<usize> = (0..left.len()).filter(|row| !left[*row].is_nan()).collect();
    let left: Vec<f64> = rows.iter().map(|row| left[*row]).collect();
    let predicted = model.said.in_order(&rows);
    let rows: Vec<u32> = rows.into_iter().map(|row| row as u32).collect();
    let features: Vec<&FrameColumn> = model.features.iter().collect();
    look(
        &features,
        Leftover {
            of,
            predicted: &predicted,
            residuals: &left,
            rows: Some(&rows),
            groups: None,
            confidence: CONFIDENCE,
        },
    )
}
