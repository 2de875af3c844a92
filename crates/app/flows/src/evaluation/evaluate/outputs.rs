//! The output of an evaluator: its predictions, kept as Parquet under their hash, and its reports.

use std::fs;
use std::path::{Path, PathBuf};

use trackway_core::BoxError;
use trackway_data::model::{FRAME_CELLS_MAX, Frame};
use trackway_data::split::write_parts;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::home::Home;
use trackway_evaluate::debug::ProbeAnswer;
use trackway_evaluate::failures::{Failures, Wrong, failures};
use trackway_evaluate::import::reported::{
    REPORT_BYTES_MAX, ReportedEvaluation, ReportedMetrics, read_evaluation, read_metrics,
};
use trackway_evaluate::{Columns, Task};
use trackway_files::TempFolder;
use trackway_formats::runfile::EvaluateSection;
use trackway_tables::DataSpec;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::read::{Coverage, Place, Source};

use trackway_engine::file_digest::file_sha256;

/// Names that predictions may have.
const PREDICTIONS: [&str; 5] =
    ["predictions.parquet", "predictions.csv", "predictions.jsonl", "predictions.ndjson", "predictions.tsv"];
const METRICS: &str = "metrics.json";
/// What it reports about itself.
pub const EVALUATION: &str = "evaluation.json";
/// What changed inputs do to its predictions.
const PROBES: &str = "probes.json";
/// The prefix of folders in which rows are collected before they are kept.
pub const DRAFT_PREFIX: &str = ".new";
/// Becomes, with that prefix, the name of such a folder.
const DRAFT_NAME: &str = "new";
/// What errors call the predictions.
const SET: &str = "predictions";
/// A column with whether a row is right.
const CORRECT: &str = "correct";

/// Everything an evaluator left.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Its table of predictions.
    pub predictions: Option<Predictions>,
    /// Its own metrics.
    pub metrics: ReportedMetrics,
    /// What it reports about itself.
    pub reported: ReportedEvaluation,
    /// Its probes of the model.
    pub probes: Option<ProbeAnswer>,
    /// Notes for a reader.
    pub notes: Vec<String>,
}

/// A table of predictions that is kept.
#[derive(Debug)]
pub struct Predictions {
    /// The Parquet file.
    pub path: PathBuf,
    /// SHA-256 of it.
    pub sha256: String,
    pub rows: u64,
    /// Its rows in memory; a sample where there are very many.
    pub frame: Frame,
}

/// Reads `folder`. Nothing in it is skipped silently: an empty table, a row that cannot be read, a column that the run
/// file names and is not there are each an error that names file, row and column.
///
/// # Errors
/// [`ErrorKind::Usage`]: the evaluator's output is invalid.
pub fn read_outputs(
    context: &Context,
    folder: &Path,
    section: &EvaluateSection,
    seed: u64,
) -> Result<Outputs, AppError> {
    read_with(folder, section, |name| read_predictions(context, folder, name, section, seed))
}

/// Whether the outputs in `folder` can be read; nothing is kept.
///
/// # Errors
/// As [`read_outputs`].
pub fn check_outputs(
    context: &Context,
    folder: &Path,
    section: &EvaluateSection,
    seed: u64,
) -> Result<(), AppError> {
    let check = |name: &str| opened(context, folder, name, section, seed).map(|_| (None, Vec::new()));
    read_with(folder, section, check).map(drop)
}

/// Reads everything; the table of predictions with `table`.
fn read_with(
    folder: &Path,
    section: &EvaluateSection,
    table: impl FnOnce(&str) -> Result<(Option<Predictions>, Vec<String>), AppError>,
) -> Result<Outputs, AppError> {
    let mut outputs = Outputs::default();
    let metrics = text_of(folder, METRICS)?;
    if let Some(text) = &metrics {
        outputs.metrics = read_metrics(text, METRICS).map_err(unreadable)?;
    }
    if let Some(text) = text_of(folder, EVALUATION)? {
        outputs.reported = read_evaluation(&text, EVALUATION).map_err(unreadable)?;
    }
    if let Some(text) = text_of(folder, PROBES)? {
        let probes =
            serde_json::from_str(&text).map_err(|error| broken(format!("`{PROBES}`")).because(error))?;
        outputs.probes = Some(probes);
    }
    let found: Vec<&str> = PREDICTIONS.into_iter().filter(|name| folder.join(name).is_file()).collect();
    match found.as_slice() {
        [] if metrics.is_none() => return Err(nothing_left(folder)),
        [] => check_no_columns(section)?,
        [name] => {
            let (predictions, notes) = table(name)?;
            outputs.predictions = predictions;
            outputs.notes.extend(notes);
        }
        [one, other, ..] => {
            return Err(broken(format!("it left both `{one}` and `{other}`: which one counts?")));
        }
    }
    Ok(outputs)
}

fn broken(message: String) -> AppError {
    AppError::new(ErrorKind::Usage, message)
}

fn unreadable(error: impl Into<BoxError>) -> AppError {
    AppError::of(ErrorKind::Usage, error)
}

fn nothing_left(folder: &Path) -> AppError {
    let names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| format!("`{}`", entry.file_name().to_string_lossy()))
        .take(5)
        .collect();
    let there = if names.is_empty() { "nothing".into() } else { names.join(", ") };
    broken(format!(
        "the evaluator left {there} in TRACKWAY_EVALUATION_OUT, and neither predictions (.parquet, .csv, .jsonl) nor `{METRICS}`"
    ))
}

/// Columns of the run file would have no effect.
fn check_no_columns(section: &EvaluateSection) -> Result<(), AppError> {
    let needs = [
        ("label", section.label.is_some()),
        ("positive", section.positive.is_some()),
        ("prediction", section.prediction.is_some()),
        ("score", section.score.is_some()),
        ("slices", !section.slices.is_empty()),
        ("fairness", !section.fairness.is_empty()),
    ];
    match needs.into_iter().find(|(_, needed)| *needed) {
        Some((key, _)) => Err(broken(format!(
            "`evaluate.{key}` needs a table of predictions, but the evaluator wrote only `{METRICS}`"
        ))),
        None => Ok(()),
    }
}

/// The text of a file that the evaluator may have left.
pub fn text_of(folder: &Path, name: &str) -> Result<Option<String>, AppError> {
    let path = folder.join(name);
    let size = match path.metadata() {
        Ok(found) => found.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AppError::file("read", &path, error)),
    };
    if size > REPORT_BYTES_MAX as u64 {
        return Err(broken(format!("`{name}` has {size} bytes; the limit is {REPORT_BYTES_MAX}")));
    }
    let bytes = fs::read(&path).map_err(|error| AppError::file("read", &path, error))?;
    String::from_utf8(bytes).map(Some).map_err(|error| {
        broken(format!(
            "`{name}` is not valid UTF-8: the first invalid byte is byte {}",
            error.utf8_error().valid_up_to() + 1
        ))
    })
}

fn read_predictions(
    context: &Context,
    folder: &Path,
    name: &str,
    section: &EvaluateSection,
    seed: u64,
) -> Result<(Option<Predictions>, Vec<String>), AppError> {
    let (source, frame, rows) = opened(context, folder, name, section, seed)?;
    let mut notes = source.notes().to_vec();
    notes.extend(frame.left_out().iter().cloned());
    if (frame.rows() as u64) < rows {
        notes.push(format!(
            "{} of {rows} rows were looked at: a table in memory has at most {FRAME_CELLS_MAX} cells",
            frame.rows()
        ));
    }
    let (path, sha256) = keep(&context.home, &source, rows)?;
    Ok((Some(Predictions { path, sha256, rows, frame }), notes))
}

/// The table of predictions, checked, in memory, and the number of its rows.
fn opened(
    context: &Context,
    folder: &Path,
    name: &str,
    section: &EvaluateSection,
    seed: u64,
) -> Result<(Source, Frame, u64), AppError> {
    let spec = DataSpec { path: name.to_owned(), ..DataSpec::default() };
    let mut source = Source::open(folder, SET, &spec, &context.read_context).map_err(unreadable)?;
    check_columns(&source, section)?;
    let (frame, coverage) =
        Frame::sample(&mut source, None, (usize::MAX, seed), &UNWATCHED).map_err(unreadable)?;
    check_rows(name, &coverage)?;
    Ok((source, frame, coverage.rows_read))
}

/// Columns that the run file names must be there.
fn check_columns(source: &Source, section: &EvaluateSection) -> Result<(), AppError> {
    let named = [
        ("label", &section.label),
        ("prediction", &section.prediction),
        ("score", &section.score),
        ("group", &section.group),
    ];
    let single = named.into_iter().filter_map(|(role, name)| Some((role, name.as_ref()?)));
    let fairness = section.fairness.iter().map(|name| ("fairness", name));
    for (role, name) in single.chain(fairness) {
        source.index_of(name, role).map_err(unreadable)?;
    }
    Ok(())
}

fn check_rows(name: &str, coverage: &Coverage) -> Result<(), AppError> {
    if let Some(rejects) = coverage.rejects.first() {
        let example = rejects.examples.first();
        let Place { row, .. } = example.map_or(Place { file: 0, row: 0 }, |fault| fault.place);
        let why = example.map_or_else(String::new, |fault| format!(": {}", fault.detail));
        let more = match coverage.rows_rejected {
            1 => String::new(),
            count => format!(" ({count} such rows)"),
        };
        return Err(broken(format!("`{name}`:{row}: the row cannot be read{why}{more}")));
    }
    if coverage.rows_read == 0 { Err(broken(format!("`{name}` has no row"))) } else { Ok(()) }
}

/// Keeps the whole table as a Parquet file that is named after its content. The same content is kept once.
fn keep(home: &Home, source: &Source, rows: u64) -> Result<(PathBuf, String), AppError> {
    let folder = home.layout.evaluation_outputs();
    fs::create_dir_all(&folder).map_err(|error| AppError::file("make", &folder, error))?;
    let draft = TempFolder::beside(&folder.join(DRAFT_NAME))
        .map_err(|error| AppError::file("make a folder in", &folder, error))?;
    let parts = vec![Some(0); usize::try_from(rows).unwrap_or(usize::MAX)];
    let written = write_parts(draft.path(), source, &parts, &[SET.to_owned()], &UNWATCHED)
        .map_err(|error| AppError::fault("the predictions cannot be kept", error))?;
    let written = written.into_iter().next().ok_or_else(|| broken("no row was written".into()))?;
    let (sha256, _) = file_sha256(&written).map_err(|error| AppError::file("read", &written, error))?;
    let path = folder.join(format!("{sha256}.parquet"));
    fs::rename(&written, &path).map_err(|error| AppError::file("keep", &path, error))?;
    trackway_files::tighten(&path).map_err(|error| AppError::file("keep", &path, error))?;
    let synced = fs::File::open(&folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| AppError::file("sync", &folder, error))?;
    Ok((path, sha256))
}

/// A sample of wrong rows; none if right and wrong are unknown. `columns` is the roles of the columns, if the rows
/// could be evaluated.
pub fn sampled(frame: &Frame, columns: Option<(Task, &Columns)>, seed: u64) -> Option<Failures> {
    let index = |name: Option<&String>| frame.index_of(name?);
    let own = |usual: &str| frame.index_of(usual);
    let correct = columns.and_then(|(_, it)| index(it.correct.as_ref())).or_else(|| own(CORRECT));
    let (label, prediction) = match columns {
        Some((_, it)) => (index(it.label.as_ref()), index(it.prediction.as_ref())),
        None => (own("label"), own("prediction")),
    };
    let is_amount = columns.is_some_and(|(task, _)| task == Task::Regression);
    // The evaluator may take an answer for right that is not the label letter by letter.
    let wrong = match (correct, label.zip(prediction)) {
        (Some(correct), _) => Wrong::Correct(correct),
        (None, Some((label, prediction))) if is_amount => Wrong::Far(label, prediction),
        (None, Some((label, prediction))) => Wrong::Differs(label, prediction),
        (None, None) => return None,
    };
    Some(failures(frame, wrong, seed))
}
