//! The residuals of evaluated rows.

use trackway_data::model::{Cells, Frame, FrameColumn};

use super::{Leftover, ResidualOf, Residuals, residuals};
use crate::Columns;
use crate::columns::names_a_prediction;
use crate::metrics::rows::{Classes, Content, Items};

/// Of regression and classification, by every column that is not part of the evaluation, nor by its name what a model
/// said or how right that was.
pub(crate) fn residuals_of(
    frame: &Frame,
    items: &Items,
    roles: &Columns,
    confidence: f64,
) -> Option<Residuals> {
    let (of, predicted, left) = match &items.content {
        Content::Amounts(rows) => {
            let left = rows.label.iter().zip(&rows.prediction).map(|(label, predicted)| label - predicted);
            (ResidualOf::Value, Cells::Numbers(rows.prediction.clone()), left.collect())
        }
        Content::Classes(rows) => of_classes(rows),
        Content::Sums(_) | Content::Experiment(_) | Content::Pixels(_) | Content::Boxes(_) => return None,
    };
    let is_feature = |column: &&FrameColumn| {
        roles.given().all(|name| name != column.name) && !names_a_prediction(&column.name)
    };
    let features: Vec<&FrameColumn> = frame.columns().iter().filter(is_feature).collect();
    let leftover = Leftover {
        of,
        predicted: &predicted,
        residuals: &left,
        rows: Some(&items.row_of_item),
        groups: items.groups.as_ref().map(|(groups, _)| groups.as_slice()),
        confidence,
    };
    residuals(&features, leftover)
}

/// Of the probability of the positive class if there is one, else of right and wrong.
fn of_classes(rows: &Classes) -> (ResidualOf, Cells, Vec<f64>) {
    let pairs = || rows.label.iter().zip(&rows.prediction);
    match (&rows.score, rows.positive) {
        (Some(score), Some(positive)) if rows.are_probabilities => {
            let label = |label: &u32| f64::from(u8::from(*label == positive));
            let left = rows.label.iter().zip(score).map(|(it, score)| label(it) - score).collect();
            (ResidualOf::Probability, Cells::Numbers(score.clone()), left)
        }
        _ => {
            let predicted = Cells::Categories { codes: rows.prediction.clone(), names: rows.names.to_vec() };
            let wrong = pairs().map(|(label, prediction)| f64::from(u8::from(label != prediction)));
            (ResidualOf::WrongClass, predicted, wrong.collect())
        }
    }
}
