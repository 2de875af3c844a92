//! How a model uses its inputs, found by calling a scoring command.

use std::path::Path;

use trackway_api::models::ProbeReport;
use trackway_data::model::{Cells, Frame, FrameColumn, MISSING_CODE};
use trackway_engine::error::{AppError, ErrorKind};
pub use trackway_evaluate::debug as parts;
use trackway_evaluate::debug::{Model, ProbeError, ProbePart, ProbeSettings, probe as ask};
use trackway_evaluate::search::Loss;
use trackway_tables::ColumnType;

use crate::data::table::{ReadObserver, TableRequest, data_error};
pub use crate::evaluation::scoring::BatchFormat;
use crate::evaluation::scoring::{PATIENCE_SECONDS, Scorer, ScoringCommand};

/// The model and the rows.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    /// The rows.
    pub table: TableRequest,
    /// A shell command that keeps to docs/scoring.md.
    pub command: String,
    /// How rows are written to it.
    pub format: BatchFormat,
    /// The label column; without it nothing is reported about errors.
    pub label: Option<String>,
    /// The label whose probability the model predicts: labels become 1 if they are it, else 0.
    pub positive: Option<String>,
    /// How far off a prediction is; by the types where absent.
    pub loss: Option<Loss>,
    /// From which predicted probability on the class is positive.
    pub threshold: Option<f64>,
    /// What the model is given; every column but the label where empty.
    pub features: Vec<String>,
    /// Columns that the model is not given.
    pub skip: Vec<String>,
    /// Rows that are drawn at random, at most.
    pub rows: usize,
    /// What is found out.
    pub settings: ProbeSettings,
    /// The longest wait for the answers to a batch; if absent, as for scoring.
    pub patience_seconds: Option<f64>,
    /// Whether the standard error of the command is kept for the reasons of what it did not answer, and not passed on.
    pub keeps_errors: bool,
}

/// Probes a scoring command with rows of a table and with changes of them. `told` is called with the part that begins.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for columns that are not there, and for
/// a command that does not follow docs/scoring.md; [`ErrorKind::Cancelled`].
pub fn probe(
    base: &Path,
    request: &ProbeRequest,
    observer: &ReadObserver<'_>,
    on_part: &dyn Fn(ProbePart),
) -> Result<ProbeReport, AppError> {
    let began_micros = observer.clock.monotonic_micros();
    let mut source = request.table.open(base, "table")?;
    let named = request.features.iter().chain(&request.skip).chain(&request.label);
    for name in named {
        source.index_of(name, "feature").map_err(data_error)?;
    }
    let drawing = (request.rows, request.settings.seed);
    let (frame, coverage) =
        Frame::sample(&mut source, None, drawing, &observer.watch()).map_err(data_error)?;
    let is_feature = |name: &String| {
        request.label.as_ref() != Some(name)
            && !request.skip.contains(name)
            && (request.features.is_empty() || request.features.contains(name))
    };
    let (mut features, others): (Vec<_>, Vec<_>) =
        frame.into_columns().into_iter().partition(|column| is_feature(&column.name));
    // The model is given its columns in the order in which they were named.
    features.sort_by_key(|column| request.features.iter().position(|name| *name == column.name));
    let truth = others.into_iter().find(|column| request.label.as_ref() == Some(&column.name));
    let truth = truth.map(|truth| match &request.positive {
        Some(positive) => of_class(&truth, positive),
        None => Ok(truth),
    });
    let asked = ScoringCommand {
        command: &request.command,
        format: request.format,
        gradients: false,
        patience_seconds: request.patience_seconds.unwrap_or(PATIENCE_SECONDS),
        keeps_errors: request.keeps_errors,
    };
    let mut scorer = Scorer::new(base, asked, &features, observer.cancelled);
    let mut score = |columns: &[FrameColumn]| scorer.score(columns);
    // A separate process, which is not started before it is used.
    let asked = ScoringCommand { gradients: true, ..asked };
    let mut sloped = Scorer::new(base, asked, &features, observer.cancelled);
    let mut gradients = |columns: &[FrameColumn]| sloped.gradients(columns);
    let model = Model::new(features, truth.transpose()?, request.loss, request.threshold, &mut score)
        .map_err(probe_error)?;
    let mut model = model.with_gradients(&mut gradients);
    let found = ask(&mut model, &request.settings, on_part, observer.cancelled).map_err(probe_error)?;
    let seconds = (observer.clock.monotonic_micros() - began_micros) as f64 / 1e6;
    Ok(ProbeReport { found, rows_read: coverage.rows_read, seconds })
}

/// 1 where the label is this class, else 0.
fn of_class(truth: &FrameColumn, positive: &str) -> Result<FrameColumn, AppError> {
    let none = || {
        let message = format!("no row's `{}` is `{positive}`", truth.name);
        Err(AppError::new(ErrorKind::Usage, message)
            .hint("--positive takes a value exactly as it appears in the data"))
    };
    let is_class: Vec<f64> = match &truth.cells {
        Cells::Numbers(numbers) => {
            let Ok(positive) = positive.parse::<f64>() else { return none() };
            let one = |number: &f64| {
                if number.is_nan() { f64::NAN } else { f64::from(u8::from(*number == positive)) }
            };
            numbers.iter().map(one).collect()
        }
        Cells::Categories { codes, names } => {
            let Some(class) = names.iter().position(|name| name == positive) else { return none() };
            let one = |code: &u32| match *code {
                MISSING_CODE => f64::NAN,
                code => f64::from(u8::from(code as usize == class)),
            };
            codes.iter().map(one).collect()
        }
    };
    if !is_class.contains(&1.0) {
        return none();
    }
    Ok(FrameColumn { name: truth.name.clone(), kind: ColumnType::Int, cells: Cells::Numbers(is_class) })
}

fn probe_error(error: ProbeError) -> AppError {
    match error {
        ProbeError::Cancelled => AppError::of(ErrorKind::Cancelled, error),
        ProbeError::Scoring(_) | ProbeError::Refused(_) => AppError::of(ErrorKind::Usage, error)
            .hint("docs/scoring.md describes what a scoring command must do"),
        _ => AppError::of(ErrorKind::Usage, error),
    }
}
