//! Scores every row of a table with a scoring command and writes the predictions beside them (docs/scoring.md). It is
//! also the built-in evaluator of `[evaluate]`, which runs it as a separate process.

mod answers;
mod batches;
mod labels;
mod outputs;
mod probes;
mod request;

use std::collections::BTreeMap;
use std::path::Path;

use trackway_api::models::{PredictionKind, ScoreReport};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::latency::latency;
use trackway_tables::ColumnType;
use trackway_tables::pass::scan;
use trackway_tables::read::{Coverage, Source};

use self::answers::{Answers, BinaryClasses};
use self::batches::{Asking, answer_all};
use self::labels::LabelClasses;
pub use self::outputs::ScoreOutputs;
use self::probes::{ScoredRows, probes};
use self::request::ModelInput;
pub use self::request::{BATCH_ROWS, ScoreRequest};
use crate::data::table::{ReadObserver, data_error};
pub use crate::evaluation::scoring::BatchFormat;
use crate::evaluation::scoring::check_program;

/// What errors call the table.
const SET: &str = "rows";

/// Checks whether the rows are there and have the named columns, and returns those that the model is given; nothing is scored.
///
/// # Errors
/// As [`score`].
pub fn check(base: &Path, request: &ScoreRequest) -> Result<Vec<String>, AppError> {
    let source = request.table.open(base, SET)?;
    Ok(ModelInput::of(&source, request)?.names().map(str::to_owned).collect())
}

/// Scores a table in bounded memory, whatever its size. `told` is called with the rows done and the rows in all.
///
/// Rows keep their order. A row that cannot be read is not scored, which is noted.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for columns that are not there, for rows
/// that the model refuses, and for a command that is not there; [`ErrorKind::Fault`] for one that ends before it has
/// answered; [`ErrorKind::Cancelled`]. Then no table is there.
pub fn score(
    base: &Path,
    request: &ScoreRequest,
    outputs: &ScoreOutputs,
    observer: &ReadObserver<'_>,
    on_rows: &(dyn Fn(u64, u64) + Sync),
) -> Result<ScoreReport, AppError> {
    let began_micros = observer.clock.monotonic_micros();
    request.check()?;
    check_program(&request.command, base, &BTreeMap::new(), "--command")?;
    let format = outputs.format()?;
    request.table.refuse_outputs(base, outputs.paths())?;
    let mut source = request.table.open(base, SET)?;
    ModelInput::of(&source, request)?;
    // The first reading settles the columns and their types: what the model is given must not depend on a sample.
    let label = request
        .label
        .as_deref()
        .map(|name| source.index_of(name, "label").map_err(data_error))
        .transpose()?;
    let (classes, coverage) = scan(&mut source, &|_: &Source| label.map(LabelClasses::of), &observer.watch())
        .map_err(data_error)?;
    if coverage.rows_read == 0 {
        return Err(AppError::new(ErrorKind::Usage, "the table has no row that can be read"));
    }
    let given = ModelInput::of(&source, request)?;
    let chances = match (&classes, &request.positive) {
        (Some(classes), Some(positive)) => Some(BinaryClasses::new(classes, positive)?),
        _ => None,
    };
    let mut notes = given.notes.clone();
    notes.extend(unread(&source, &coverage));
    let label_kind = label.map(|label| source.columns()[label].kind);
    let asking = Asking {
        base,
        label_classes: classes.as_ref().filter(|_| request.positive.is_none()).and_then(LabelClasses::all),
        label_is_number: matches!(label_kind, Some(ColumnType::Int | ColumnType::Float)),
        request,
        given: &given,
        table: (&outputs.table, format),
        rows_max: request.limit.unwrap_or(u64::MAX).min(coverage.rows_read),
        cancelled: observer.cancelled,
        clock: observer.clock,
        on_rows,
    };
    let done = answer_all(source, &asking, Answers::new(chances))?;
    notes.extend(done.notes);
    let metrics = latency(&done.times);
    if let Some(path) = &outputs.probes {
        let scored = ScoredRows { given: &given, kind: done.kind, times: &done.times };
        match probes(base, request, &scored, observer)? {
            Ok(found) => outputs::write_json(path, &serde_json::json!(found))?,
            Err(why) => notes.push(why),
        }
    }
    outputs.write_beside(&metrics, &notes)?;
    Ok(ScoreReport {
        out: outputs.table.display().to_string(),
        rows: done.rows,
        rows_rejected: coverage.rows_rejected,
        features: given.names().map(str::to_owned).collect(),
        predictions: done.kind,
        batches: done.times.len() as u64,
        batch_rows: request.batch_rows,
        metrics,
        notes,
        seconds: (observer.clock.monotonic_micros() - began_micros) as f64 / 1e6,
    })
}

/// What is missing in the table of predictions because it could not be read.
fn unread(source: &Source, coverage: &Coverage) -> Option<String> {
    let first =
        coverage.rejects.iter().flat_map(|rejects| &rejects.examples).min_by_key(|fault| fault.place)?;
    let file = &source.files()[first.place.file].path;
    let rows = match coverage.rows_rejected {
        1 => "1 row".to_owned(),
        count => format!("{count} rows"),
    };
    Some(format!(
        "{rows} cannot be read and {} not scored, the first: `{file}`:{}: {}",
        if coverage.rows_rejected == 1 { "was" } else { "were" },
        first.place.row,
        first.detail
    ))
}
