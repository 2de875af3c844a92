//! From what an evaluator left to the end of its evaluation.
//!
//! Everything comes from the row that was begun and from the launch's folder, never from its supervisor: the next
//! command does the same for a supervisor that was killed, and produces the same receipt.

use std::path::Path;

use serde_json::{Value as Json, json};
use trackway_api::models::evaluations::CodeFile;
use trackway_core::Clock as _;
use trackway_core::boundary::contained;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::evaluator::{digest_of, opened_code, with_opened};
use trackway_engine::stored::read_stored;
use trackway_evaluate::import::reported::ReportedEvaluation;
use trackway_files::TempFile;
use trackway_formats::EventKind;
use trackway_formats::runfile::EvaluateSection;
use trackway_ledger::{EvaluationEnd, EvaluationRow, EvaluationState};
use trackway_tables::personal::masked_value;

use super::judge::{EvaluationNumbers, Searching, Terms};
use super::outputs::{EVALUATION, Outputs, read_outputs, sampled, text_of};
use super::task_set;
use crate::evaluation::baseline::section_of;
use crate::evaluation::gates;

/// What the evaluator of a begun evaluation left in `folder`, read, evaluated and put to its gates. Invalid output ends
/// the evaluation as failed.
///
/// # Errors
/// When the outputs cannot be kept, or the baseline's rows are not what was kept.
pub(super) fn collected(
    context: &Context,
    row: EvaluationRow,
    folder: &Path,
    searching: &Searching<'_>,
) -> Result<EvaluationEnd, AppError> {
    let section = section_of(&row)?;
    let seed = row.seed.unwrap_or(0);
    // Output of an evaluator is foreign: a panic that it causes ends this evaluation, never the command, which may be
    // any that finds the evaluation without a supervisor.
    let judged = contained(|| {
        read_outputs(context, folder, &section, seed)
            .and_then(|outputs| completed(context, row.clone(), &section, &outputs, searching))
    });
    redact_reported(context, folder)?;
    match judged {
        Err(panic) => {
            Ok(failed(context, row, &format!("evaluating its output failed inside Trackway: {panic}")))
        }
        Ok(Err(error)) if error.kind == ErrorKind::Usage => Ok(failed(context, row, &error.to_string())),
        Ok(end) => end,
    }
}

/// Takes secrets out of what the evaluator wrote of itself: the file stays in the home, beside the receipt that does not hold them.
fn redact_reported(context: &Context, folder: &Path) -> Result<(), AppError> {
    let path = folder.join(EVALUATION);
    // Output that is not text or too long was refused, and is invalid.
    let Ok(Some(text)) = text_of(folder, EVALUATION) else { return Ok(()) };
    let cleaned = match serde_json::from_str::<Json>(&text) {
        Ok(mut reported) => {
            let before = reported.clone();
            context.redactor.json(&mut reported);
            (reported != before).then(|| reported.to_string())
        }
        Err(_) => Some(context.redactor.text(&text).into_owned()).filter(|cleaned| *cleaned != text),
    };
    let Some(cleaned) = cleaned else { return Ok(()) };
    TempFile::write(&path, cleaned.as_bytes()).map_err(|error| AppError::file("write", &path, error))
}

/// The end of an evaluation without an answer.
pub(super) fn failed(context: &Context, row: EvaluationRow, why: &str) -> EvaluationEnd {
    let evaluation = EvaluationRow {
        state: EvaluationState::Failed,
        ended_at: Some(context.clock.now()),
        failure: Some(context.redactor.text(why).into_owned()),
        ..row
    };
    EvaluationEnd { evaluation, metrics: Vec::new(), slices: Vec::new(), gate_receipt: None }
}

fn completed(
    context: &Context,
    row: EvaluationRow,
    section: &EvaluateSection,
    outputs: &Outputs,
    searching: &Searching<'_>,
) -> Result<EvaluationEnd, AppError> {
    let seed = row.seed.unwrap_or(0);
    let baseline = row.baseline_evaluation_id.as_deref();
    let baseline = baseline.map(|id| context.evaluation_by_id(id)).transpose()?;
    let mut notes = outputs.notes.clone();
    if section.baseline.is_some() && baseline.is_none() {
        notes.push("there is no baseline to compare with yet".into());
    }
    let row = with_opened_code(context, row, &mut notes)?;
    let row = by_its_own_word(row, &outputs.reported, &mut notes);
    let tasks = task_set::tasks(context, &row)?;
    let baseline = baseline.as_ref();
    let terms = Terms { section, seed, task: None, tasks: &tasks, baseline, searching };
    let judged = EvaluationNumbers::of(context, outputs, &terms)?;
    let mut end = bound(context, row, outputs, judged, notes, seed);
    end.evaluation.state = EvaluationState::Completed;
    end.evaluation.ended_at = Some(context.clock.now());
    let (gates, receipt) = gates::verdicts(context, &end.evaluation)?;
    end.evaluation.gates_json = Some(json!(gates));
    end.gate_receipt = receipt;
    Ok(end)
}

/// The row with the source files that were seen opened while the evaluator ran: its code is what it imported, not only what its
/// command names.
fn with_opened_code(
    context: &Context,
    row: EvaluationRow,
    notes: &mut Vec<String>,
) -> Result<EvaluationRow, AppError> {
    let Some(launch) = row.launch_attempt_id else { return Ok(row) };
    let kind = EventKind::CodeOpened.as_str();
    let opened = opened_code(&context.ledger_read(|ledger| ledger.events_of_attempt_of_kind(launch, kind))?);
    let owner = || format!("evaluation {}", row.evaluation_id);
    let known: Option<Vec<CodeFile>> =
        row.spec("files").map(|files| read_stored(files, "evaluations.spec_json", owner)).transpose()?;
    let (files, changed) = with_opened(known.unwrap_or_default(), opened);
    for path in changed {
        notes.push(format!(
            "the evaluator's `{path}` changed after the evaluation had begun; what it read then is its code"
        ));
    }
    let evaluator_digest = digest_of(&files).or_else(|| row.evaluator_digest.clone());
    let mut spec_json = row.spec_json.clone();
    if let Some(Json::Object(spec)) = &mut spec_json {
        spec.insert("files".into(), json!(files));
    }
    Ok(EvaluationRow { evaluator_digest, spec_json, ..row })
}

/// Binds the numbers, the kept rows, a sample of those that are wrong, and notes for a reader.
pub(super) fn bound(
    context: &Context,
    mut row: EvaluationRow,
    outputs: &Outputs,
    judged: EvaluationNumbers,
    mut notes: Vec<String>,
    seed: u64,
) -> EvaluationEnd {
    if let Some(predictions) = &outputs.predictions {
        row.raw_outputs_location = Some(context.home.layout.below(&predictions.path));
        row.raw_outputs_sha256 = Some(predictions.sha256.clone());
        row.raw_outputs_rows = Some(predictions.rows);
        let mut failures = masked_value(json!(sampled(&predictions.frame, judged.columns(), seed)));
        context.redactor.json(&mut failures);
        row.sampled_failures_json = Some(failures).filter(|failures| !failures.is_null());
    }
    notes.extend(judged.notes.iter().cloned());
    row.notes_json = (!notes.is_empty()).then(|| json!(notes));
    judged.end(row)
}

/// The row with what the evaluator reported about itself. A contradiction to the run file is noted.
fn by_its_own_word(
    row: EvaluationRow,
    reported: &ReportedEvaluation,
    notes: &mut Vec<String>,
) -> EvaluationRow {
    let mut take = |what: &str, asked: Option<String>, found: Option<String>| match (asked, found) {
        (Some(asked), Some(found)) if asked != found => {
            notes
                .push(format!("{what}: {asked} in the run file, {found} reported by the evaluator and used"));
            Some(found)
        }
        (asked, found) => found.or(asked),
    };
    let judge = reported.judge.as_ref();
    let decoding = (!reported.decoding.is_empty()).then(|| json!(reported.decoding).to_string());
    let decoding = take("decoding", row.decoding_json.as_ref().map(Json::to_string), decoding);
    let seed =
        take("seed", row.seed.map(|seed| seed.to_string()), reported.seed.map(|seed| seed.to_string()));
    let version = take("the task set's version", row.task_set_version, reported.task_set_version.clone());
    let judge_model = take("the judge", row.judge_model, judge.map(|judge| judge.model.clone()));
    let judge_rubric = take("the rubric", row.judge_rubric, judge.and_then(|judge| judge.rubric.clone()));
    let named = reported.evaluator.as_ref().map(|evaluator| match &evaluator.version {
        Some(version) => format!("{} {version}", evaluator.name),
        None => evaluator.name.clone(),
    });
    notes.extend(reported.notes.iter().cloned());
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
