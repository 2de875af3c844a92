//! An error for each row: given as a column, or computed from what was predicted.

use std::collections::HashSet;

use trackway_data::model::{Cells, Frame, FrameColumn, MISSING_CODE};
use trackway_results::search::Loss;
use trackway_tables::ColumnType;

use super::SearchError;
use crate::spellings::values::{classes_of, values_of};
use crate::spellings::{Agreement, agreement, shown};

/// Where the error of a row comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorSource {
    /// A column of numbers that are not negative.
    Column(String),
    /// Computed from two columns; by [`Loss`] of their types where none is named.
    Predictions {
        /// The ground truth.
        label: String,
        /// What was predicted.
        prediction: String,
        /// How far off a prediction is.
        loss: Option<Loss>,
    },
}

/// Whole numbers with more different values than these are a continuous target, not classes.
const CLASSES_MAX: usize = 32;

impl ErrorSource {
    /// The columns that determine the error; they are not features.
    pub(super) fn columns(&self) -> Vec<&str> {
        match self {
            Self::Column(column) => vec![column],
            Self::Predictions { label, prediction, .. } => vec![label, prediction],
        }
    }

    /// The same errors of the baseline, whose error or prediction `column` is.
    pub(super) fn of_baseline(&self, column: &str, loss: Option<Loss>) -> Self {
        match self {
            Self::Column(_) => Self::Column(column.to_owned()),
            Self::Predictions { label, .. } => {
                Self::Predictions { label: label.clone(), prediction: column.to_owned(), loss }
            }
        }
    }

    /// An error for each row, NaN if unknown, and the loss it was computed with.
    ///
    /// # Errors
    /// [`SearchError`]: no such column, one that is not numbers, a negative or infinite error, columns that cannot be
    /// compared.
    pub(super) fn of_rows(&self, frame: &Frame) -> Result<(Vec<f64>, Option<Loss>), SearchError> {
        let column = |name: &str| {
            let index = frame.index_of(name);
            index.map(|index| &frame.columns()[index]).ok_or_else(|| no_column(frame, name))
        };
        let (errors, loss, name) = match self {
            Self::Column(name) => match &column(name)?.cells {
                Cells::Numbers(numbers) => (numbers.clone(), None, name),
                Cells::Categories { .. } => return Err(SearchError::NotNumbers { column: name.clone() }),
            },
            Self::Predictions { label, prediction, loss } => {
                let (truth, predicted) = (column(label)?, column(prediction)?);
                let loss = loss.unwrap_or_else(|| usual_loss(truth, predicted));
                let errors = row_losses(truth, predicted, loss)?;
                if loss == Loss::ZeroOne {
                    check_classes(truth, predicted)?;
                }
                (errors, Some(loss), prediction)
            }
        };
        match errors.iter().position(|error| *error < 0.0 || error.is_infinite()) {
            Some(row) => Err(SearchError::BadError {
                column: name.clone(),
                place: frame.places()[row],
                value: errors[row],
            }),
            None => Ok((errors, loss)),
        }
    }
}

impl ErrorSource {
    /// Which predicted classes were labels written differently, where errors are computed from classes.
    pub(super) fn agreement(&self, frame: &Frame) -> Agreement {
        let column = |name: &str| frame.index_of(name).map(|index| &frame.columns()[index]);
        let Self::Predictions { label, prediction, loss } = self else { return Agreement::default() };
        let Some((truth, predicted)) = column(label).zip(column(prediction)) else {
            return Agreement::default();
        };
        match loss.unwrap_or_else(|| usual_loss(truth, predicted)) {
            Loss::ZeroOne => agreement(&classes_of(truth), &classes_of(predicted)),
            Loss::Squared | Loss::Absolute => Agreement::default(),
        }
    }
}

/// Labels and predictions of several classes of which none is the same are two columns that cannot be compared.
fn check_classes(truth: &FrameColumn, predicted: &FrameColumn) -> Result<(), SearchError> {
    let (labels, predictions) = (classes_of(truth), classes_of(predicted));
    let is_one_each = labels.len() == 1 && predictions.len() == 1;
    match agreement(&labels, &predictions).is_disjoint && !is_one_each {
        true => Err(SearchError::NoCommonClass {
            label: truth.name.clone(),
            prediction: predicted.name.clone(),
            labels: shown(&labels),
            predictions: shown(&predictions),
        }),
        false => Ok(()),
    }
}

pub(super) fn no_column(frame: &Frame, name: &str) -> SearchError {
    let known = frame.columns().iter().map(|column| column.name.clone()).collect();
    SearchError::NoColumn { column: name.to_owned(), known }
}

/// 0 and 1 for classes, the square for numbers.
pub(crate) fn usual_loss(truth: &FrameColumn, predicted: &FrameColumn) -> Loss {
    let is_whole = |column: &FrameColumn| matches!(column.kind, ColumnType::Int | ColumnType::Bool);
    match (&truth.cells, &predicted.cells) {
        (Cells::Numbers(numbers), Cells::Numbers(_)) => {
            let mut different = HashSet::new();
            let is_few = numbers.iter().filter(|it| !it.is_nan()).all(|value| {
                different.insert(value.to_bits());
                different.len() <= CLASSES_MAX
            });
            if is_whole(truth) && is_whole(predicted) && is_few { Loss::ZeroOne } else { Loss::Squared }
        }
        _ => Loss::ZeroOne,
    }
}

/// How far each prediction is off; NaN where one of both is missing.
///
/// # Errors
/// [`SearchError::NotComparable`].
pub(crate) fn row_losses(
    truth: &FrameColumn,
    predicted: &FrameColumn,
    loss: Loss,
) -> Result<Vec<f64>, SearchError> {
    let wrong = |is_wrong: bool| f64::from(u8::from(is_wrong));
    match (&truth.cells, &predicted.cells) {
        (Cells::Numbers(truth), Cells::Numbers(predicted)) => {
            let error = |(truth, predicted): (&f64, &f64)| match loss {
                _ if truth.is_nan() || predicted.is_nan() => f64::NAN,
                Loss::ZeroOne => wrong(truth != predicted),
                Loss::Squared => (truth - predicted).powi(2),
                Loss::Absolute => (truth - predicted).abs(),
            };
            Ok(truth.iter().zip(predicted).map(error).collect())
        }
        (one, other) if loss == Loss::ZeroOne => {
            let ((names, codes), (other_names, others)) = (values_of(truth), values_of(predicted));
            let agreed = agreement(&classes_of(truth), &classes_of(predicted));
            if agreed.is_disjoint && std::mem::discriminant(one) != std::mem::discriminant(other) {
                return Err(not_comparable(truth, predicted));
            }
            // The label's code of each class that was predicted.
            let code_of = |name: &String| {
                let label = agreed.label_of(name).unwrap_or(name);
                names.iter().position(|known| known == label).map(|code| code as u32)
            };
            let same: Vec<Option<u32>> = other_names.iter().map(code_of).collect();
            let error = |(code, other): (&u32, &u32)| match (*code, *other) {
                (MISSING_CODE, _) | (_, MISSING_CODE) => f64::NAN,
                (code, other) => wrong(same[other as usize] != Some(code)),
            };
            Ok(codes.iter().zip(&others).map(error).collect())
        }
        _ => Err(not_comparable(truth, predicted)),
    }
}

fn not_comparable(truth: &FrameColumn, predicted: &FrameColumn) -> SearchError {
    SearchError::NotComparable { label: truth.name.clone(), prediction: predicted.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: ColumnType, cells: Cells) -> FrameColumn {
        FrameColumn { name: name.to_owned(), kind, cells }
    }

    /// Proves that strings and few whole numbers are right or wrong, that other numbers are squared, and that a missing
    /// value is not an error but unknown.
    #[test]
    fn losses_by_type() {
        let texts = |texts: [Option<&str>; 3]| Cells::of_texts(texts);
        let frame = Frame::of_columns(vec![
            column("y", ColumnType::Text, texts([Some("a"), Some("b"), None])),
            column("p", ColumnType::Text, texts([Some("b"), Some("b"), Some("a")])),
            column("n", ColumnType::Int, Cells::Numbers(vec![0.0, 2.0, 1.0])),
            column("m", ColumnType::Int, Cells::Numbers(vec![0.0, 0.0, f64::NAN])),
            column("score", ColumnType::Float, Cells::Numbers(vec![0.5, 2.0, 1.0])),
            column("other", ColumnType::Text, texts([Some("c"), Some("d"), Some("c")])),
            column("flag", ColumnType::Text, texts([Some("true"), Some("false"), Some("false")])),
            column("yes", ColumnType::Int, Cells::Numbers(vec![1.0, 1.0, 0.0])),
        ]);
        let of = |label: &str, prediction: &str| {
            let source =
                ErrorSource::Predictions { label: label.into(), prediction: prediction.into(), loss: None };
            source.of_rows(&frame)
        };
        let (errors, loss) = of("y", "p").unwrap();
        assert_eq!(
            (&errors[..2], errors[2].is_nan(), loss),
            ([1.0, 0.0].as_slice(), true, Some(Loss::ZeroOne))
        );
        assert_eq!(of("n", "m").unwrap().0[..2], [0.0, 1.0]);
        assert_eq!(of("n", "score").unwrap(), (vec![0.25, 0.0, 0.0], Some(Loss::Squared)));
        assert!(matches!(of("y", "n"), Err(SearchError::NotComparable { .. })));
        assert!(matches!(of("y", "other"), Err(SearchError::NoCommonClass { .. })));
        assert_eq!(of("flag", "yes").unwrap().0, [0.0, 1.0, 0.0], "`true` is 1");
        assert!(matches!(of("y", "q"), Err(SearchError::NoColumn { .. })));
    }
}
