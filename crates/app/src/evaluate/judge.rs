//! From what the evaluator left to the numbers of the receipt.

use serde_json::json;
use trackway_evaluate::{Estimate, Metrics, Slice, Verdict};
use trackway_ledger::{EvaluationEnd, EvaluationMetricRow, EvaluationRow, EvaluationSliceRow};

use super::Case;
use super::outputs::Outputs;
use crate::error::AppError;

/// What a slice is called whose rows only the evaluator knows.
const TOLD: &str = "told by the evaluator";
/// Why nothing is said of such a slice.
const NOT_COMPARED: &str = "only the evaluator knows its rows, so it was not compared with the rest";

/// The numbers of an evaluation.
#[derive(Debug, Default)]
pub struct Judged {
    metrics: Metrics,
    slices: Vec<Slice>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Judged {
    /// Judges.
    ///
    /// # Errors
    /// A slice or a column that cannot be used.
    pub fn of(_case: &Case<'_>, _row: &EvaluationRow, outputs: &Outputs) -> Result<Self, AppError> {
        let told = &outputs.metrics;
        let slice = |(name, metrics): (&String, &Metrics)| Slice {
            name: name.clone(),
            predicate: TOLD.into(),
            support: metrics.values().map(|estimate| estimate.support).max().unwrap_or(0),
            verdict: Verdict::Inconclusive,
            why: Some(NOT_COMPARED.into()),
            metrics: metrics.clone(),
            difference: None,
            adjusted_p_value: None,
        };
        Ok(Self {
            metrics: told.metrics.clone(),
            slices: told.slices.iter().map(slice).collect(),
            notes: Vec::new(),
        })
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
        let evaluation = EvaluationRow {
            metrics_json: Some(json!(self.metrics)),
            slices_json: Some(json!(self.slices)),
            ..row.clone()
        };
        EvaluationEnd { evaluation, metrics, slices }
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
