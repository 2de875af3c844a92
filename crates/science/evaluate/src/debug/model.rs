//! A model that is reached by scoring rows, and these rows.

use trackway_data::model::{Cells, FrameColumn};
use trackway_statistics::{mean_with_interval, wilson};
use trackway_tables::ColumnType;

use super::ProbeError;
use crate::Estimate;
use crate::search::{Loss, row_losses, usual_loss};

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// Scores rows (columns of one length, always the same ones): returns a number or a string for each, or why not.
pub type Score<'s> = dyn FnMut(&[FrameColumn]) -> Result<Cells, Unscored> + 's;

/// Returns for each column how the prediction of each row changes with it; NaN if unknown.
pub type Gradients<'s> = dyn FnMut(&[FrameColumn]) -> Result<Vec<Vec<f64>>, Unscored> + 's;

/// Why rows were not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unscored {
    /// The model does not take such values; it takes others.
    Refused(String),
    /// The model cannot score any more.
    Failed(String),
    /// The caller cancelled it.
    Cancelled,
}

/// When two predictions are two decisions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// When they are not equal: classes.
    Differ,
    /// When this is between them: the probability of a class.
    Threshold(f64),
    /// Never: a regression makes no decision.
    Never,
}

/// The rows, their predictions, and their labels.
pub struct Model<'m> {
    /// The columns that it gets.
    pub(super) features: Vec<FrameColumn>,
    pub(super) rows: usize,
    truth: Option<(FrameColumn, Loss)>,
    pub(super) decision: Decision,
    /// Its predictions for the unchanged rows.
    pub(super) said: Cells,
    /// Their losses, row by row; empty without labels.
    pub(super) losses: Vec<f64>,
    score: &'m mut Score<'m>,
    gradients: Option<&'m mut Gradients<'m>>,
    pub(super) scored_rows: u64,
}

impl<'m> Model<'m> {
    /// Scores the unchanged rows.
    ///
    /// # Errors
    /// [`ProbeError`]: the model does not answer, or its predictions cannot be compared with the labels.
    pub fn new(
        features: Vec<FrameColumn>,
        truth: Option<FrameColumn>,
        loss: Option<Loss>,
        threshold: Option<f64>,
        score: &'m mut Score<'m>,
    ) -> Result<Self, ProbeError> {
        let rows = features.first().map_or(0, |column| column.cells.rows());
        if rows == 0 {
            return Err(ProbeError::NoRows);
        }
        let mut model = Self {
            features,
            rows,
            truth: None,
            decision: Decision::Never,
            said: Cells::Numbers(Vec::new()),
            losses: Vec::new(),
            score,
            gradients: None,
            scored_rows: 0,
        };
        model.said = model.ask(&model.features.clone())?;
        let loss = loss.unwrap_or_else(|| usual(truth.as_ref(), &model.said));
        model.decision = match (&model.said, threshold) {
            (Cells::Categories { .. }, _) => Decision::Differ,
            (Cells::Numbers(_), Some(threshold)) => Decision::Threshold(threshold),
            (Cells::Numbers(_), None) if loss == Loss::ZeroOne => Decision::Differ,
            (Cells::Numbers(said), None)
                if is_binary(truth.as_ref()) && said.iter().all(|it| (0.0..=1.0).contains(it)) =>
            {
                Decision::Threshold(0.5)
            }
            _ => Decision::Never,
        };
        model.truth = truth.map(|truth| (truth, loss));
        model.losses = model.losses_of(&model.said)?;
        Ok(model)
    }

    /// The same model, with its gradients.
    #[must_use]
    pub fn with_gradients(self, gradients: &'m mut Gradients<'m>) -> Self {
        Self { gradients: Some(gradients), ..self }
    }

    /// The loss that is computed, if there are labels.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.truth.as_ref().map(|(_, loss)| *loss)
    }

    /// The rows that the model scored so far.
    #[must_use]
    pub fn scored_rows(&self) -> u64 {
        self.scored_rows
    }

    /// The model's predictions for other rows.
    pub(super) fn ask(&mut self, columns: &[FrameColumn]) -> Result<Cells, ProbeError> {
        let rows = columns.first().map_or(0, |column| column.cells.rows());
        self.scored_rows += rows as u64;
        let said = (self.score)(columns).map_err(unanswered)?;
        if said.rows() != rows {
            return Err(ProbeError::Scoring(format!("it answered {} of {rows} rows", said.rows())));
        }
        if let Some(row) = (0..rows).find(|row| said.is_missing(*row)) {
            return Err(ProbeError::Scoring(format!("it gave no prediction for row {} of a batch", row + 1)));
        }
        Ok(said)
    }

    /// Whether predictions are probabilities, which a threshold turns into decisions.
    pub(super) fn decides_by_threshold(&self) -> bool {
        matches!(self.decision, Decision::Threshold(_))
    }

    /// For each feature the gradients of the rows as they are.
    pub(super) fn ask_gradients(&mut self) -> Result<Vec<Vec<f64>>, ProbeError> {
        let Some(gradients) = &mut self.gradients else {
            return Err(ProbeError::Refused("it was not started with gradients".to_owned()));
        };
        self.scored_rows += self.rows as u64;
        // A model that answers rows and fails over gradients gives none.
        let given = gradients(&self.features).map_err(|why| match why {
            Unscored::Failed(why) | Unscored::Refused(why) => ProbeError::Refused(why),
            Unscored::Cancelled => ProbeError::Cancelled,
        })?;
        let is_whole = given.len() == self.features.len() && given.iter().all(|it| it.len() == self.rows);
        if is_whole {
            Ok(given)
        } else {
            Err(ProbeError::Scoring("it gave gradients of other rows".to_owned()))
        }
    }

    /// For each row label minus prediction, if both are numbers or probabilities; NaN without a label.
    pub(super) fn left_over(&self) -> Option<Vec<f64>> {
        if self.decision == Decision::Differ {
            return None;
        }
        match (&self.truth.as_ref()?.0.cells, &self.said) {
            (Cells::Numbers(truth), Cells::Numbers(said)) => {
                Some(truth.iter().zip(said).map(|(truth, said)| truth - said).collect())
            }
            _ => None,
        }
    }

    /// Its predictions for the rows with one column changed.
    pub(super) fn ask_with(&mut self, feature: usize, cells: Cells) -> Result<Cells, ProbeError> {
        let mut columns = self.features.clone();
        columns[feature].cells = cells;
        self.ask(&columns)
    }

    /// By how much other predictions of the rows are further off; empty without labels.
    pub(super) fn rises(&self, said: &Cells) -> Result<Vec<f64>, ProbeError> {
        let losses = self.losses_of(said)?;
        Ok(losses.iter().zip(&self.losses).map(|(with, without)| with - without).collect())
    }

    /// How far other predictions of the rows are from its own, on average; `None` of classes.
    pub(super) fn shift(&self, said: &Cells) -> Option<f64> {
        let (Cells::Numbers(before), Cells::Numbers(after)) = (&self.said, said) else { return None };
        let shifts: f64 = before.iter().zip(after).map(|(before, after)| (after - before).abs()).sum();
        Some(shifts / self.rows as f64)
    }

    /// How far off predictions of the rows are.
    fn losses_of(&self, said: &Cells) -> Result<Vec<f64>, ProbeError> {
        let Some((truth, loss)) = &self.truth else { return Ok(Vec::new()) };
        let kind = truth.kind;
        let said = FrameColumn { name: "prediction".to_owned(), kind, cells: said.clone() };
        row_losses(truth, &said, *loss).map_err(|error| ProbeError::Truth(error.to_string()))
    }

    /// For each row whether the decision is another one; `None` where nothing is decided.
    pub(super) fn flips(&self, before: &Cells, after: &Cells) -> Option<Vec<bool>> {
        let flips = |row: usize| match (self.decision, before, after) {
            (Decision::Threshold(at), Cells::Numbers(before), Cells::Numbers(after)) => {
                (before[row] >= at) != (after[row] >= at)
            }
            (_, Cells::Numbers(before), Cells::Numbers(after)) => before[row] != after[row],
            (_, before, after) => text(before, row) != text(after, row),
        };
        (self.decision != Decision::Never).then(|| (0..before.rows()).map(flips).collect())
    }
}

fn unanswered(why: Unscored) -> ProbeError {
    match why {
        Unscored::Refused(why) => ProbeError::Refused(why),
        Unscored::Failed(why) => ProbeError::Scoring(why),
        Unscored::Cancelled => ProbeError::Cancelled,
    }
}

/// The text of a row's class.
pub(super) fn text(cells: &Cells, row: usize) -> Option<String> {
    match cells {
        Cells::Numbers(numbers) => Some(numbers[row].to_string()),
        Cells::Categories { codes, names } => names.get(codes[row] as usize).cloned(),
    }
}

/// The mean of values of rows that are known, with Student's interval.
pub(super) fn mean_of(values: &[f64]) -> Option<Estimate> {
    let values: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    if values.is_empty() {
        return None;
    }
    let (mean, interval) = mean_with_interval(&values, CONFIDENCE);
    Some(Estimate::analytic(mean, interval, values.len() as u64))
}

/// A fraction, with Wilson's interval.
pub(super) fn share_of(hits: &[bool]) -> Estimate {
    let (count, all) = (hits.iter().filter(|hit| **hit).count() as f64, hits.len() as f64);
    Estimate::analytic(count / all, wilson(count, all, CONFIDENCE), hits.len() as u64)
}

fn usual(truth: Option<&FrameColumn>, said: &Cells) -> Loss {
    let is_whole = |numbers: &[f64]| numbers.iter().all(|it| it.fract() == 0.0);
    let kind = match said {
        Cells::Categories { .. } => ColumnType::Text,
        Cells::Numbers(numbers) if is_whole(numbers) => ColumnType::Int,
        Cells::Numbers(_) => ColumnType::Float,
    };
    let predicted = FrameColumn { name: "prediction".to_owned(), kind, cells: said.clone() };
    match truth {
        Some(truth) => usual_loss(truth, &predicted),
        None if kind == ColumnType::Text => Loss::ZeroOne,
        None => Loss::Squared,
    }
}

fn is_binary(truth: Option<&FrameColumn>) -> bool {
    match truth.map(|truth| &truth.cells) {
        Some(Cells::Numbers(numbers)) => numbers.iter().all(|it| it.is_nan() || *it == 0.0 || *it == 1.0),
        _ => false,
    }
}
