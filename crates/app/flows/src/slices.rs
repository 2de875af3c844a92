//! The blind spots of a model, from a table of its errors.

use std::path::{Path, PathBuf};

use trackway_api::models::SlicesReport;
use trackway_data::model::Frame;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::names_a_prediction;
use trackway_evaluate::search::{self, Earlier, SearchError, columns_needed};
pub use trackway_evaluate::search::{
    BlindSpots, ErrorSlice, ErrorSource, HeldOutSlice, Loss, Predicate, Roles, Settings, Side, SliceChange,
    SliceVerdict,
};

use crate::data::table::{Onlooker, TableRequest, data_error};

/// What is searched, and how.
#[derive(Debug, Clone)]
pub struct SlicesRequest {
    /// The table: a row for each prediction.
    pub table: TableRequest,
    /// What its columns are for.
    pub roles: Roles,
    /// How to search.
    pub settings: Settings,
    /// An earlier answer (JSON) to begin with and to compare with.
    pub since: Option<PathBuf>,
}

/// Observes the reading, then the search.
pub struct SlicesOnlooker<'o> {
    /// Called with bytes, while the table is read.
    pub reading: &'o Onlooker<'o>,
    /// Called with the number of predicates, and the candidates done and those there are of this number.
    pub searching: &'o (dyn Fn(usize, u64, u64) + Sync),
}

/// Reads a table and finds the slices of it where errors are largest for their size.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for a table, columns or settings that make
/// no sense; [`ErrorKind::Cancelled`].
pub fn find(
    base: &Path,
    request: &SlicesRequest,
    onlooker: &SlicesOnlooker<'_>,
) -> Result<SlicesReport, AppError> {
    let began_micros = onlooker.reading.clock.monotonic_micros();
    let earlier = request.since.as_deref().map(|path| earlier(&base.join(path))).transpose()?;
    let mut source = request.table.open(base, "table")?;
    let names: Vec<String> = source.columns().iter().map(|column| column.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in request.roles.skip.iter().chain(&request.roles.categorical) {
        source.index_of(name, "feature").map_err(data_error)?;
    }
    let roles = without_predictions(&request.roles, &names);
    source = source.select(&columns_needed(&roles, &names)).map_err(data_error)?;
    // Every row where they fit: the seed only matters where they do not.
    let drawing = (usize::MAX, request.settings.seed);
    let (frame, coverage) =
        Frame::sample(&mut source, None, drawing, &onlooker.reading.watch()).map_err(data_error)?;
    let rows_sampled = frame.rows() as u64;
    let watch =
        search::SearchObserver { progress: onlooker.searching, cancelled: onlooker.reading.cancelled };
    let found = search::find(frame, &roles, &request.settings, earlier.as_ref(), &watch);
    Ok(SlicesReport {
        found: found.map_err(|error| search_error(&error))?,
        rows: coverage.rows_read,
        rows_rejected: coverage.rows_rejected,
        rows_sampled,
        seconds: (onlooker.reading.clock.monotonic_micros() - began_micros) as f64 / 1e6,
    })
}

/// Where errors are computed from predictions, slices are made of what the model said only if it is named: a low score says where the model is
/// unsure, and nothing about the data.
fn without_predictions(roles: &Roles, names: &[&str]) -> Roles {
    let mut searched = roles.clone();
    if let (ErrorSource::Predictions { label, .. }, true) = (&roles.error, roles.features.is_empty()) {
        let said = names.iter().filter(|name| names_a_prediction(name) && *name != label);
        searched.skip.extend(said.map(|name| (*name).to_owned()));
    }
    searched
}

fn earlier(path: &Path) -> Result<Earlier, AppError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            AppError::new(ErrorKind::NotFound, format!("there is no file `{shown}`"))
        }
        _ => AppError::file("read", path, &error),
    })?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("`{shown}` is not the output of `trackway eval slices --json`: {error}");
        AppError::new(ErrorKind::Usage, message)
    })
}

fn search_error(error: &SearchError) -> AppError {
    let kind = match error {
        SearchError::Cancelled => ErrorKind::Cancelled,
        _ => ErrorKind::Usage,
    };
    AppError::new(kind, error.to_string())
}
