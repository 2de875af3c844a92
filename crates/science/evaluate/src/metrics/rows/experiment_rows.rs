//! The rows of an experiment.

use trackway_data::model::Frame;

use super::{Content, RowItems, numbers, pick, whole_rows};
use crate::Columns;
use crate::error::{AssessError, Result};
use crate::metrics::uplift::Experiment;

/// The rows with a treatment, an outcome and a score.
pub(super) fn experiment(frame: &Frame, columns: &Columns) -> Result<RowItems> {
    let treatment = columns.treatment.as_deref().ok_or(AssessError::NoColumnFor("treatment"))?;
    let label = columns.label.as_deref().ok_or(AssessError::NoColumnFor("label"))?;
    let score = columns.score.as_deref().ok_or(AssessError::NoColumnFor("score"))?;
    let rows = whole_rows(frame, &[treatment, label, score])?;
    let values = pick(numbers(frame, treatment)?, &rows);
    if let Some(place) = values.iter().position(|value| *value != 0.0 && *value != 1.0) {
        let (column, value) = (treatment.to_owned(), values[place].to_string());
        return Err(AssessError::NotATreatment { column, row: u64::from(rows[place]) + 1, value });
    }
    let treated: Vec<bool> = values.iter().map(|value| *value == 1.0).collect();
    if let Some(only) = treated.first().filter(|first| treated.iter().all(|it| it == *first)) {
        return Err(AssessError::OneArm { column: treatment.to_owned(), value: u8::from(*only) });
    }
    let (outcome, score) = (pick(numbers(frame, label)?, &rows), pick(numbers(frame, score)?, &rows));
    Ok(RowItems::rows(frame, rows, Content::Experiment(Experiment { treated, outcome, score })))
}
