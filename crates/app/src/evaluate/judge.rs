//! From what the evaluator left to the numbers of the receipt.

use serde_json::{Value as Json, json};
use trackway_data::model::Frame;
use trackway_evaluate::told::ToldMetrics;
use trackway_evaluate::{
    AssessError, Assessment, Baseline, Columns, Estimate, Metrics, Slice, Spec, Task, Verdict, assess,
};
use trackway_formats::runfile::EvaluateSection;
use trackway_ledger::{EvaluationEnd, EvaluationMetricRow, EvaluationRow, EvaluationSliceRow};

use super::outputs::Outputs;
use crate::App;
use crate::assess::{NamedPredicate, slices};
use crate::error::{AppError, ErrorKind};

/// What a slice is called whose rows only the evaluator knows.
const TOLD: &str = "told by the evaluator";
/// Why nothing is said of such a slice.
const NOT_COMPARED: &str = "only the evaluator knows its rows, so it was not compared with the rest";
/// Two numbers of one metric that differ by more than this part are not the same.
const SAME_WITHIN: f64 = 1e-6;

/// The numbers of an evaluation.
#[derive(Debug, Default)]
pub struct Judged {
    metrics: Metrics,
    slices: Vec<Slice>,
    /// What was computed from the rows.
    assessment: Option<Assessment>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// How the rows are to be judged.
pub struct Terms<'a> {
    pub section: &'a EvaluateSection,
    pub seed: u64,
    /// Of an import, whose rows say by themselves what is right.
    pub task: Option<Task>,
    pub baseline: Option<&'a EvaluationRow>,
}

impl Judged {
    /// Judges: computed from the rows where there are some, else as the evaluator said it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a slice, a column or a task that was asked for and cannot be; when the baseline's rows cannot be read.
    pub fn of(app: &App, outputs: &Outputs, terms: &Terms<'_>) -> Result<Self, AppError> {
        let mut judged = match &outputs.predictions {
            Some(predictions) => Self::of_rows(app, &predictions.frame, terms)?,
            None => Self::default(),
        };
        judged.take_told(&outputs.metrics);
        Ok(judged)
    }

    fn of_rows(app: &App, frame: &Frame, terms: &Terms<'_>) -> Result<Self, AppError> {
        let section = terms.section;
        let refused = |error: AssessError| AppError::new(ErrorKind::Usage, error.to_string());
        let asked: Vec<NamedPredicate> = section
            .slices
            .iter()
            .map(|(name, sql)| NamedPredicate { name: name.clone(), sql: sql.clone() })
            .collect();
        let spec = Spec {
            slices: slices(frame, &asked)?,
            fairness: section.fairness.clone(),
            ..spec_of(section, frame, terms.task, terms.seed).map_err(refused)?
        };
        let rows_there = terms.baseline.map(|row| app.kept_rows(row, terms.seed)).transpose()?;
        let sides = rows_there.as_ref().map(|rows| Baseline { frame: rows, id: spec.columns.id.as_deref() });
        let mut notes = Vec::new();
        let assessed = match assess(frame, &spec, sides) {
            // That the sides cannot be put side by side takes nothing from the numbers of this one.
            Err(error) if sides.is_some() => {
                notes.push(format!("not compared with the baseline: {error}"));
                assess(frame, &spec, None)
            }
            assessed => assessed,
        };
        match assessed {
            Ok(assessment) => Ok(Self {
                metrics: assessment.metrics.clone(),
                slices: assessment.slices.clone(),
                notes: [notes, assessment.notes.clone()].concat(),
                assessment: Some(assessment),
            }),
            Err(error) if asks_for_numbers(section) => Err(refused(error)),
            Err(error) => {
                notes.push(format!("nothing was computed from the rows: {error}"));
                Ok(Self { notes, ..Self::default() })
            }
        }
    }

    /// What was said, and nothing computed.
    pub fn told(told: &ToldMetrics) -> Self {
        let mut judged = Self::default();
        judged.take_told(told);
        judged
    }

    /// Adds what the evaluator says and the rows do not; of two answers the computed one counts.
    fn take_told(&mut self, told: &ToldMetrics) {
        for (name, estimate) in &told.metrics {
            match self.metrics.get(name) {
                Some(own) if differ(own.value, estimate.value) => self.notes.push(format!(
                    "`{name}`: the evaluator says {}, the rows give {}; the rows count",
                    estimate.value, own.value
                )),
                Some(_) => {}
                None => drop(self.metrics.insert(name.clone(), *estimate)),
            }
        }
        for (name, metrics) in &told.slices {
            if self.slices.iter().all(|slice| slice.name != *name) {
                self.slices.push(told_slice(name, metrics));
            }
        }
    }

    /// The rows of the ledger.
    pub fn end(self, row: EvaluationRow) -> EvaluationEnd {
        let id = &row.evaluation_id;
        let mut metrics = metric_rows(id, "", &self.metrics);
        for slice in &self.slices {
            metrics.extend(metric_rows(id, &slice.name, &slice.metrics));
        }
        let slices = self.slices.iter().map(|slice| EvaluationSliceRow {
            evaluation_id: id.clone(),
            slice: slice.name.clone(),
            predicate: slice.predicate.clone(),
            support: slice.support,
            verdict: Some(slice.verdict.as_str().into()),
        });
        let slices: Vec<EvaluationSliceRow> = slices.collect();
        let assessment = self.assessment.as_ref();
        let comparison = assessment.and_then(|it| it.comparison.as_ref());
        let evaluation = EvaluationRow {
            metrics_json: Some(json!(self.metrics)),
            slices_json: Some(json!(self.slices)),
            fairness_json: assessment.map(|it| json!(it.fairness)),
            comparison_json: comparison.map(|it| json!(it)),
            assessment_json: assessment.map(rest_of),
            ..row.clone()
        };
        EvaluationEnd { evaluation, metrics, slices, gate_receipt: None }
    }

    /// What the rows are taken for.
    pub fn columns(&self) -> Option<(Task, &Columns)> {
        self.assessment.as_ref().map(|assessment| (assessment.task, &assessment.columns))
    }
}

/// How all rows of a table are judged: by the columns that a run file names, and those that are found.
pub fn spec_of(
    section: &EvaluateSection,
    frame: &Frame,
    task: Option<Task>,
    seed: u64,
) -> Result<Spec, AssessError> {
    let columns = Columns {
        label: section.label.clone(),
        prediction: section.prediction.clone(),
        score: section.score.clone(),
        group: section.group.clone(),
        ..Columns::default()
    };
    let (columns, positive) = (columns.complete(frame)?, section.positive.clone());
    Ok(Spec { columns, task, positive, seed, ..Spec::default() })
}

/// Whether the run file wants what only rows that can be judged give.
fn asks_for_numbers(section: &EvaluateSection) -> bool {
    let columns = [
        &section.label,
        &section.positive,
        &section.prediction,
        &section.score,
        &section.group,
        &section.baseline,
    ];
    columns.iter().any(|it| it.is_some()) || !section.slices.is_empty() || !section.fairness.is_empty()
}

fn differ(one: f64, other: f64) -> bool {
    (one - other).abs() > SAME_WITHIN * one.abs().max(other.abs()).max(1.0)
}

/// The parts that have columns of their own are left out.
fn rest_of(assessment: &Assessment) -> Json {
    let mut rest = json!(assessment);
    if let Some(members) = rest.as_object_mut() {
        for part in ["metrics", "slices", "fairness", "comparison", "notes"] {
            members.remove(part);
        }
    }
    rest
}

fn told_slice(name: &str, metrics: &Metrics) -> Slice {
    Slice {
        name: name.to_owned(),
        predicate: TOLD.into(),
        support: metrics.values().map(|estimate| estimate.support).max().unwrap_or(0),
        verdict: Verdict::Inconclusive,
        why: Some(NOT_COMPARED.into()),
        metrics: metrics.clone(),
        difference: None,
        adjusted_p_value: None,
    }
}

fn metric_rows(evaluation_id: &str, slice: &str, metrics: &Metrics) -> Vec<EvaluationMetricRow> {
    let row = |(metric, estimate): (&String, &Estimate)| EvaluationMetricRow {
        evaluation_id: evaluation_id.into(),
        slice: slice.into(),
        metric: metric.clone(),
        value: Some(estimate.value),
        low: estimate.low,
        high: estimate.high,
        support: Some(estimate.support).filter(|support| *support > 0),
        method: json!(estimate.method).as_str().unwrap_or("none").into(),
    };
    metrics.iter().map(row).collect()
}
