//! Takes over evaluations that other tools made of a checkpoint.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use trackway_api::models::evaluations::{EvaluationReceipt, ImportedEvaluation};
use trackway_core::{Clock as _, EvaluationId, RunId};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::Task;
use trackway_evaluate::import::{ForeignEvaluation, ImportError, read};
use trackway_formats::runfile::EvaluateSection;
use trackway_ledger::{EvaluationRow, EvaluationState, RunRow};

use super::judge::{EvaluationNumbers, Terms, UNOBSERVED};
use super::outputs::{Outputs, read_outputs};
use super::receipt;
use super::task_set::Tasks;
use crate::checkpoints::{self, CheckpointRef, Chosen};
use crate::evaluation::evaluate::collect;

/// The note about what cannot be verified here.
const WORD: &str = "imported: the link to these weights was asserted at import, not verified";

/// The request of `trackway eval import`.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// The log, or a folder of logs.
    pub path: PathBuf,
    /// The run whose checkpoint was evaluated.
    pub run: RunId,
    pub checkpoint: CheckpointRef,
}

/// Takes over every evaluation of a log. What was taken over before for the same checkpoint is only named again.
///
/// # Errors
/// [`ErrorKind::NotFound`] without the log, the run or the checkpoint; [`ErrorKind::Usage`] for a file that is not a
/// log; nothing of it is taken over then.
pub fn import_evaluations(
    context: &Context,
    request: &ImportRequest,
) -> Result<Vec<ImportedEvaluation>, AppError> {
    let found = read(&request.path).map_err(import_error)?;
    let run = context.run_by_id(request.run)?;
    let chosen = checkpoints::checkpoints(context, run.run_id)?.chosen(&request.checkpoint)?;
    let known = context.ledger_read(|ledger| ledger.evaluations_of_run(run.run_id))?;
    let mut imported = Vec::with_capacity(found.len());
    for foreign in found {
        let same = |row: &&EvaluationRow| {
            row.origin == foreign.origin
                && row.checkpoint_manifest_sha256 == chosen.manifest_sha256
                && row.spec("origin_id").and_then(Json::as_str) == Some(foreign.origin_id.as_str())
        };
        let before = known.iter().find(same);
        let receipt = match before {
            Some(row) => receipt::of(context, row)?,
            None => take_over(context, &run, &chosen, &foreign, &request.path)?,
        };
        imported.push(ImportedEvaluation { is_new: before.is_none(), receipt });
    }
    Ok(imported)
}

fn take_over(
    context: &Context,
    run: &RunRow,
    chosen: &Chosen,
    foreign: &ForeignEvaluation,
    path: &Path,
) -> Result<EvaluationReceipt, AppError> {
    let id = EvaluationId::new(&context.ids).to_string();
    let mut notes = vec![WORD.to_owned()];
    notes.extend(foreign.notes.iter().cloned());
    let row = row_of(context, id, run, chosen, foreign, path);
    let section = EvaluateSection::default();
    let seed = foreign.seed.unwrap_or(0);
    let mut outputs = Outputs::default();
    if !foreign.rows.is_empty() {
        let folder = context.home.layout.evaluation(&row.evaluation_id).import();
        write_rows(&folder, foreign)?;
        outputs = read_outputs(context, &folder, &section, seed)?;
        notes.extend(outputs.notes.iter().cloned());
    }
    outputs.metrics.metrics.clone_from(&foreign.metrics);
    // An imported row contains whether it is right; labels and answers are strings.
    let task = foreign.rows.iter().any(|row| row.get("correct").is_some_and(Json::is_boolean));
    let terms = Terms {
        section: &section,
        seed,
        task: task.then_some(Task::LanguageModel),
        tasks: &Tasks::None,
        baseline: None,
        searching: UNOBSERVED,
    };
    let judged = match task {
        true => EvaluationNumbers::of(context, &outputs, &terms)?,
        false => EvaluationNumbers::reported(&outputs.metrics),
    };
    let end = collect::bound(context, row, &outputs, judged, notes, seed);
    let stored = context.take_ended_evaluation(&end)?;
    receipt::of(context, &stored)
}

fn row_of(
    context: &Context,
    id: String,
    run: &RunRow,
    chosen: &Chosen,
    foreign: &ForeignEvaluation,
    path: &Path,
) -> EvaluationRow {
    let time = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
    let now = context.clock.now();
    let started_at = time(&foreign.times.0).unwrap_or(now);
    let spec = json!({
        "origin_id": foreign.origin_id,
        "model": foreign.model,
        "task_set": foreign.task,
        "imported_from": path.file_name().map(|name| name.to_string_lossy()),
        "imported_at": now,
    });
    EvaluationRow {
        attempt_id: Some(chosen.attempt_id),
        step: Some(chosen.step),
        origin: foreign.origin.clone(),
        state: if foreign.failure.is_none() { EvaluationState::Completed } else { EvaluationState::Failed },
        failure: foreign.failure.as_ref().map(|why| context.redactor.text(why).into_owned()),
        ended_at: Some(time(&foreign.times.1).unwrap_or(started_at)),
        evaluator_name: foreign.evaluator.clone(),
        evaluator_digest: foreign.code.clone(),
        task_set_version: foreign.task_version.clone(),
        task_set_sha256: foreign.task_sha256.clone(),
        judge_model: foreign.judge_model.clone(),
        judge_rubric: foreign.judge_rubric.clone(),
        seed: foreign.seed,
        decoding_json: (!foreign.decoding.is_empty()).then(|| Json::Object(foreign.decoding.clone())),
        spec_json: Some(spec),
        ..EvaluationRow::begun(id, run.run_id, chosen.manifest_sha256.clone(), started_at)
    }
}

/// The examples as an evaluator would have left them.
fn write_rows(folder: &Path, foreign: &ForeignEvaluation) -> Result<(), AppError> {
    let path = folder.join("predictions.jsonl");
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = std::io::BufWriter::new(fs::File::create(&path)?);
        for row in &foreign.rows {
            serde_json::to_writer(&mut file, row)?;
            file.write_all(b"\n")?;
        }
        file.flush()
    };
    write().map_err(|error| AppError::file("write", &path, error))
}

fn import_error(error: ImportError) -> AppError {
    let kind = match &error {
        ImportError::Disk { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            ErrorKind::NotFound
        }
        ImportError::Disk { .. } => ErrorKind::Fault,
        _ => ErrorKind::Usage,
    };
    AppError::of(kind, error)
}
