//! From what an evaluator left to the end of its evaluation.
//!
//! Everything comes from the row that was begun and from the launch's folder, never from who conducted it: the next command does the
//! same for a conductor that was killed, and comes to the same receipt.

use std::path::Path;

use serde_json::{Value as Json, json};
use trackway_core::Clock as _;
use trackway_evaluate::told::ToldEvaluation;
use trackway_formats::runfile::EvaluateSection;
use trackway_ledger::{EvaluationEnd, EvaluationRow, EvaluationState};

use super::judge::{Judged, Terms};
use super::outputs::{Outputs, read_outputs, sampled};
use crate::App;
use crate::error::{AppError, ErrorKind};

impl App {
    /// What the evaluator of a begun evaluation left in `folder`, read, judged and put to its gates. What is no answer is the end of
    /// an evaluation that failed.
    ///
    /// # Errors
    /// When the outputs cannot be kept, or the baseline's rows are not what was kept.
    pub(super) fn collected(&self, row: EvaluationRow, folder: &Path) -> Result<EvaluationEnd, AppError> {
        let section = section_of(&row)?;
        let seed = row.seed.unwrap_or(0);
        let end = read_outputs(&self.home, folder, &section, seed)
            .and_then(|outputs| self.completed(row.clone(), &section, &outputs));
        match end {
            Err(error) if error.kind == ErrorKind::Usage => Ok(self.failed(row, &error.message)),
            end => end,
        }
    }

    /// The end of an evaluation without an answer.
    pub(super) fn failed(&self, row: EvaluationRow, why: &str) -> EvaluationEnd {
        let evaluation = EvaluationRow {
            state: EvaluationState::Failed,
            ended_at: Some(self.clock.now()),
            failure: Some(self.redactor.text(why).into_owned()),
            ..row
        };
        EvaluationEnd { evaluation, metrics: Vec::new(), slices: Vec::new(), gate_receipt: None }
    }

    fn completed(
        &self,
        row: EvaluationRow,
        section: &EvaluateSection,
        outputs: &Outputs,
    ) -> Result<EvaluationEnd, AppError> {
        let seed = row.seed.unwrap_or(0);
        let baseline = row.baseline_evaluation_id.as_deref();
        let baseline =
            baseline.map(|id| self.ledger_read(|ledger| ledger.find_evaluation(id))).transpose()?;
        let mut notes = outputs.notes.clone();
        if section.baseline.is_some() && baseline.is_none() {
            notes.push("there is nothing to compare with yet".into());
        }
        let row = by_its_own_word(row, &outputs.told, &mut notes);
        let terms = Terms { section, seed, task: None, baseline: baseline.as_ref() };
        let judged = Judged::of(self, outputs, &terms)?;
        let mut end = self.bound(row, outputs, judged, notes, seed);
        end.evaluation.state = EvaluationState::Completed;
        end.evaluation.ended_at = Some(self.clock.now());
        let (gates, receipt) = self.verdicts(&end.evaluation)?;
        end.evaluation.gates_json = Some(json!(gates));
        end.gate_receipt = receipt;
        Ok(end)
    }

    /// Binds the numbers, the kept rows, a sample of those that are wrong, and what a reader should know.
    pub(super) fn bound(
        &self,
        mut row: EvaluationRow,
        outputs: &Outputs,
        judged: Judged,
        mut notes: Vec<String>,
        seed: u64,
    ) -> EvaluationEnd {
        if let Some(predictions) = &outputs.predictions {
            row.raw_outputs_location = Some(self.home.below(&predictions.path));
            row.raw_outputs_sha256 = Some(predictions.sha256.clone());
            row.raw_outputs_rows = Some(predictions.rows);
            let mut failures = json!(sampled(&predictions.frame, judged.columns(), seed));
            self.redactor.json(&mut failures);
            row.sampled_failures_json = Some(failures).filter(|failures| !failures.is_null());
        }
        notes.extend(judged.notes.iter().cloned());
        row.notes_json = (!notes.is_empty()).then(|| json!(notes));
        judged.end(row)
    }
}

/// What was asked for when an evaluation was begun.
pub(super) fn section_of(row: &EvaluationRow) -> Result<EvaluateSection, AppError> {
    let spec = row.spec_json.clone().unwrap_or_else(|| json!({}));
    serde_json::from_value(spec).map_err(|error| {
        AppError::fault(format!("what evaluation {} was asked for cannot be read", row.evaluation_id), &error)
    })
}

/// The row with what the evaluator said of itself. Where that contradicts the run file, it is noted.
fn by_its_own_word(row: EvaluationRow, told: &ToldEvaluation, notes: &mut Vec<String>) -> EvaluationRow {
    let mut take = |what: &str, asked: Option<String>, told: Option<String>| match (asked, told) {
        (Some(asked), Some(told)) if asked != told => {
            notes.push(format!("{what}: the run file says {asked}, the evaluator {told}; its word counts"));
            Some(told)
        }
        (asked, told) => told.or(asked),
    };
    let judge = told.judge.as_ref();
    let decoding = (!told.decoding.is_empty()).then(|| json!(told.decoding).to_string());
    let decoding = take("decoding", row.decoding_json.as_ref().map(Json::to_string), decoding);
    let seed = take("seed", row.seed.map(|seed| seed.to_string()), told.seed.map(|seed| seed.to_string()));
    let version = take("the task set's version", row.task_set_version, told.task_set_version.clone());
    let judge_model = take("the judge", row.judge_model, judge.map(|judge| judge.model.clone()));
    let judge_rubric = take("the rubric", row.judge_rubric, judge.and_then(|judge| judge.rubric.clone()));
    let named = told.evaluator.as_ref().map(|evaluator| match &evaluator.version {
        Some(version) => format!("{} {version}", evaluator.name),
        None => evaluator.name.clone(),
    });
    notes.extend(told.notes.iter().cloned());
    EvaluationRow {
        evaluator_name: named.unwrap_or(row.evaluator_name),
        task_set_version: version,
        judge_model,
        judge_rubric,
        seed: seed.and_then(|seed| seed.parse().ok()),
        decoding_json: decoding.and_then(|text| serde_json::from_str(&text).ok()),
        ..row
    }
}
