//! From a model's answers to columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray, UInt32Array};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::DataType;
use trackway_api::models::PredictionKind;
use trackway_data::model::Cells;
use trackway_engine::error::{AppError, ErrorKind};

use super::labels::LabelClasses;

/// The column with the prediction.
pub const PREDICTION: &str = "prediction";
/// The column with the probability of the positive class.
pub const SCORE: &str = "score";
/// Classes of a label that a message shows.
const CLASSES_SHOWN: usize = 5;
/// From this probability on the positive class is predicted.
const THRESHOLD: f64 = 0.5;

/// Two classes, decided by the predicted probability of one.
pub(super) struct BinaryClasses {
    positive: String,
    other: String,
}

impl BinaryClasses {
    pub(super) fn new(classes: &LabelClasses, positive: &str) -> Result<Self, AppError> {
        let same = |class: &&String| {
            let numbers = class.parse::<f64>().ok().zip(positive.parse::<f64>().ok());
            class.as_str() == positive || numbers.is_some_and(|(one, other)| one == other)
        };
        let (ours, others): (Vec<&String>, Vec<&String>) = classes.found.iter().partition(same);
        let wrong = |message: String| AppError::new(ErrorKind::Usage, message);
        let shown = |classes: &[&String]| {
            let first = classes.iter().take(CLASSES_SHOWN).map(|class| format!("`{class}`"));
            first.collect::<Vec<_>>().join(", ")
        };
        match (ours.as_slice(), others.as_slice()) {
            ([positive], [other]) => Ok(Self { positive: (*positive).clone(), other: (*other).clone() }),
            ([_], []) => Err(wrong(format!("every label is `{positive}`: the data has no second class"))),
            ([_], _) => Err(wrong(format!(
                "a probability needs a binary label, but it has more classes than `{positive}` and one other: {} …",
                shown(&others)
            ))),
            _ => Err(wrong(format!("no label is `{positive}`; the classes are {}", shown(&others)))
                .hint("--positive takes a class exactly as it appears in the data")),
        }
    }

    /// The classes as the label has them.
    fn said(&self, probabilities: &[f64], label: &DataType) -> Result<ArrayRef, String> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let both = StringArray::from(vec![self.other.as_str(), self.positive.as_str()]);
        let both = cast_with_options(&both, label, &strict);
        let which: UInt32Array =
            probabilities.iter().map(|probability| u32::from(*probability >= THRESHOLD)).collect();
        both.and_then(|both| take(&both, &which, None))
            .map_err(|error| format!("answered classes that are not values of the label: {error}"))
    }
}

/// How answers become columns; the first batch decides what they are.
pub(super) struct Answers {
    probabilities: Option<BinaryClasses>,
}

impl Answers {
    pub(super) fn new(probabilities: Option<BinaryClasses>) -> Self {
        Self { probabilities }
    }

    pub(super) fn kind(&self, cells: &Cells) -> PredictionKind {
        match (cells, &self.probabilities) {
            (Cells::Categories { .. }, _) => PredictionKind::Classes,
            (Cells::Numbers(_), Some(_)) => PredictionKind::Probabilities,
            (Cells::Numbers(_), None) => PredictionKind::Numbers,
        }
    }

    /// The columns of a batch, in their order. `label` is the type of the label's column.
    ///
    /// # Errors
    /// What is wrong with an answer, as a continuation of "the model".
    pub(super) fn columns(
        &self,
        cells: &Cells,
        label: &DataType,
    ) -> Result<Vec<(&'static str, ArrayRef)>, String> {
        let numbers = match cells {
            Cells::Categories { codes, names } => {
                let text =
                    |code: &u32| names.get(*code as usize).map(String::as_str).filter(|it| !it.is_empty());
                let classes: Option<Vec<&str>> = codes.iter().map(text).collect();
                let classes = classes.ok_or("gave an empty answer for a row")?;
                return Ok(vec![(PREDICTION, Arc::new(StringArray::from(classes)))]);
            }
            Cells::Numbers(numbers) => numbers,
        };
        let floats: ArrayRef = Arc::new(Float64Array::from(numbers.clone()));
        let Some(probabilities) = &self.probabilities else { return Ok(vec![(PREDICTION, floats)]) };
        match numbers.iter().find(|number| !(0.0..=1.0).contains(*number)) {
            Some(number) => {
                Err(format!("answered {number}, which is not a probability of `{}`", probabilities.positive))
            }
            None => Ok(vec![(SCORE, floats), (PREDICTION, probabilities.said(numbers, label)?)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn classes(found: &[&str]) -> LabelClasses {
        let mut classes = LabelClasses::of(0);
        classes.found = found.iter().map(|it| (*it).to_owned()).collect();
        classes
    }

    fn refusal(found: &[&str], positive: &str) -> String {
        BinaryClasses::new(&classes(found), positive).err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// Proves that probabilities become the label's classes, of the label's type, and that numbers and strings stay
    /// what they are.
    #[test]
    fn answers_become_columns() {
        let answers = Answers::new(Some(BinaryClasses::new(&classes(&["0", "1"]), "1.0").unwrap()));
        let numbers = Cells::Numbers(vec![0.5, 0.25]);
        let said = answers.columns(&numbers, &DataType::Int64).unwrap();
        assert_eq!(said.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [SCORE, PREDICTION]);
        assert_eq!(said[1].1.as_primitive::<Int64Type>(), &Int64Array::from(vec![1, 0]));
        assert_eq!(answers.kind(&numbers), PredictionKind::Probabilities);
        let texts = Cells::of_texts([Some("yes"), Some("no")]);
        assert_eq!(answers.columns(&texts, &DataType::Utf8).unwrap().len(), 1);
        let plain = Answers::new(None);
        assert_eq!(plain.columns(&Cells::Numbers(vec![7.5]), &DataType::Utf8).unwrap()[0].0, PREDICTION);
        let wrong = answers.columns(&Cells::Numbers(vec![0.5, 1.5]), &DataType::Int64).unwrap_err();
        assert_eq!(wrong, "answered 1.5, which is not a probability of `1`");
        let empty = plain.columns(&Cells::of_texts([Some("")]), &DataType::Utf8).unwrap_err();
        assert_eq!(empty, "gave an empty answer for a row");
    }

    /// Proves that a label which one probability cannot decide is refused with its values.
    #[test]
    fn labels_of_other_than_two_classes() {
        for (found, positive, expected) in [
            (&["a", "b", "c"][..], "a", "more classes than `a` and one other: `b`, `c`"),
            (&["a"][..], "a", "every label is `a`"),
            (&["a"][..], "z", "no label is `z`; the classes are `a`"),
            (&["a", "b"][..], "a ", "no label is `a `; the classes are `a`, `b`"),
            (&[][..], "a", "no label is `a`"),
        ] {
            let why = refusal(found, positive);
            assert!(why.contains(expected), "{found:?} {positive}: {why}");
        }
    }
}
