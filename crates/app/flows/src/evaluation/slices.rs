//! The blind spots of a model, from a table of its errors.

use std::path::{Path, PathBuf};

use trackway_api::models::SlicesReport;
use trackway_data::model::Frame;
use trackway_engine::error::{AppError, ErrorKind};
pub use trackway_evaluate::MatchedClass;
use trackway_evaluate::names_a_prediction;
use trackway_evaluate::search::{self, EarlierAnswer, SearchError, columns_needed};
pub use trackway_evaluate::search::{
    AlikeSlice, BlindSpots, ErrorSlice, ErrorSource, HeldOutSlice, Loss, Predicate, Roles, Settings, Side,
    SliceChange, SliceVerdict,
};

use crate::data::table::{ReadObserver, TableRequest, data_error};

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
pub struct SlicesObserver<'o> {
    /// Called with bytes, while the table is read.
    pub reading: &'o ReadObserver<'o>,
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
    observer: &SlicesObserver<'_>,
) -> Result<SlicesReport, AppError> {
    let began_micros = observer.reading.clock.monotonic_micros();
    let earlier = request.since.as_deref().map(|path| earlier(&base.join(path))).transpose()?;
    let mut source = request.table.open(base, "table")?;
    let names: Vec<String> = source.columns().iter().map(|column| column.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in request.roles.skip.iter().chain(&request.roles.categorical) {
        source.index_of(name, "feature").map_err(data_error)?;
    }
    let predicted_columns = predictions_among(&request.roles, &names);
    let roles = without(&request.roles, &predicted_columns);
    source = source.select(&columns_needed(&roles, &names)).map_err(data_error)?;
    // Every row where they fit: the seed only matters where they do not.
    let drawing = (usize::MAX, request.settings.seed);
    let (frame, coverage) =
        Frame::sample(&mut source, None, drawing, &observer.reading.watch()).map_err(data_error)?;
    let rows_sampled = frame.rows() as u64;
    let watch =
        search::SearchObserver { progress: observer.searching, cancelled: observer.reading.cancelled };
    let found = search::find(frame, &roles, &request.settings, earlier.as_ref(), &watch);
    Ok(SlicesReport {
        found: found.map_err(search_error)?,
        rows: coverage.rows_read,
        rows_rejected: coverage.rows_rejected,
        rows_sampled,
        predicted_columns,
        seconds: (observer.reading.clock.monotonic_micros() - began_micros) as f64 / 1e6,
    })
}

/// The columns that hold what a model said of a row or how right it was, by their names: a low score says where the
/// model is unsure, a high loss where it is wrong, and neither anything about the data. Slices are made of those only
/// that are named as features.
fn predictions_among(roles: &Roles, names: &[&str]) -> Vec<String> {
    let error_columns: Vec<&str> = match &roles.error {
        ErrorSource::Column(error) => vec![error],
        ErrorSource::Predictions { label, prediction, .. } => vec![label, prediction],
    };
    let of_baseline_or_group = [&roles.baseline, &roles.group].into_iter().flatten().map(String::as_str);
    let others: Vec<&str> = error_columns.into_iter().chain(of_baseline_or_group).collect();
    let is_left_out = |name: &&&str| {
        let is_known = others.contains(*name) || roles.skip.iter().any(|skip| skip == **name);
        names_a_prediction(name) && !is_known
    };
    match roles.features.is_empty() {
        true => names.iter().filter(is_left_out).map(|name| (*name).to_owned()).collect(),
        false => Vec::new(),
    }
}

fn without(roles: &Roles, columns: &[String]) -> Roles {
    Roles { skip: roles.skip.iter().chain(columns).cloned().collect(), ..roles.clone() }
}

fn earlier(path: &Path) -> Result<EarlierAnswer, AppError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            AppError::new(ErrorKind::NotFound, format!("there is no file `{shown}`"))
        }
        _ => AppError::file("read", path, error),
    })?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("`{shown}` is not the output of `trackway eval slices --json`");
        AppError::new(ErrorKind::Usage, message).because(error)
    })
}

fn search_error(error: SearchError) -> AppError {
    let kind = match error {
        SearchError::Cancelled => ErrorKind::Cancelled,
        _ => ErrorKind::Usage,
    };
    AppError::of(kind, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that of a scored table the columns of what the model said are found by their names, whether errors are computed or
    /// a column, and that neither what has another role nor a named feature is among them.
    #[test]
    fn what_a_model_said_is_found() {
        let roles = |error: ErrorSource| Roles {
            error,
            baseline: None,
            group: None,
            features: Vec::new(),
            skip: vec!["prob_b".into()],
            categorical: Vec::new(),
        };
        let names = ["age", "score", "prediction", "probability", "prob_a", "prob_b", "loss", "y"];
        let computed = roles(ErrorSource::Predictions {
            label: "y".into(),
            prediction: "prediction".into(),
            loss: None,
        });
        assert_eq!(predictions_among(&computed, &names), ["score", "probability", "prob_a", "loss"]);
        let of_column = roles(ErrorSource::Column("loss".into()));
        assert_eq!(predictions_among(&of_column, &names), ["score", "prediction", "probability", "prob_a"]);
        let named = Roles { features: vec!["score".into()], ..of_column.clone() };
        assert!(predictions_among(&named, &names).is_empty());
        assert_eq!(without(&of_column, &["score".into()]).skip, ["prob_b", "score"]);
    }
}
