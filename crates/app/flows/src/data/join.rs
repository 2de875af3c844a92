//! Two tables side by side by a key.

use std::path::{Path, PathBuf};

use trackway_api::data::AsOfAnswer;
use trackway_data::join::JoinError;
use trackway_data::join::as_of::{AsOfPlan, Tolerance, as_of as join};
use trackway_data::join::skew::skew as compare;
pub use trackway_data::join::skew::{SkewPlan, SkewReport};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::runfile::parse_duration;
use trackway_tables::write::WriteError;

use super::table::{ReadObserver, TableRequest, data_error};

/// What is joined to what.
#[derive(Debug, Clone)]
pub struct AsOfRequest {
    /// Rows with a time, such as labels.
    pub left: TableRequest,
    /// Rows that are known since a time, such as features.
    pub right: TableRequest,
    /// The key columns.
    pub on: Vec<String>,
    /// When a left row is from.
    pub left_time: String,
    /// Since when a right row is known.
    pub right_time: String,
    /// Whether a right row must be earlier than the left one.
    pub strict: bool,
    /// How much older a right row may be: a duration (`30d`), or a whole number.
    pub tolerance: Option<String>,
    /// The joined table.
    pub out: PathBuf,
}

/// Joins to each left row the latest right row that was known at its time, and counts what a join with the latest row of all
/// would have leaked.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that is not a table, a column that makes
/// no sense, and an output that is an input. No output is there then.
pub fn as_of(
    base: &Path,
    request: &AsOfRequest,
    observer: &ReadObserver<'_>,
) -> Result<AsOfAnswer, AppError> {
    let out = base.join(&request.out);
    request.left.refuse_outputs(base, [out.as_path()])?;
    request.right.refuse_outputs(base, [out.as_path()])?;
    let plan = AsOfPlan {
        on: request.on.clone(),
        left_time: request.left_time.clone(),
        right_time: request.right_time.clone(),
        strict: request.strict,
        tolerance: request.tolerance.as_deref().map(tolerance).transpose()?,
        out: out.clone(),
    };
    let (left, right) = (request.left.open(base, "left")?, request.right.open(base, "right")?);
    let report = join(left, right, &plan, &observer.watch()).map_err(join_error)?;
    Ok(AsOfAnswer { out, report })
}

/// A whole number is one of steps; everything else is a duration.
fn tolerance(text: &str) -> Result<Tolerance, AppError> {
    if let Ok(steps) = text.parse::<i64>() {
        return Ok(Tolerance::Steps(steps));
    }
    parse_duration(text).map(Tolerance::Seconds).ok_or_else(|| {
        AppError::new(ErrorKind::Usage, format!("invalid tolerance `{text}`"))
            .hint("expected e.g. `30d` or `12h` for timestamps, `1000` for whole numbers")
    })
}

/// Compares the features that training and serving have for the same keys.
///
/// # Errors
/// As [`as_of`].
pub fn skew(
    base: &Path,
    (train, serve): (&TableRequest, &TableRequest),
    plan: &SkewPlan,
    observer: &ReadObserver<'_>,
) -> Result<SkewReport, AppError> {
    let (train, serve) = (train.open(base, "train")?, serve.open(base, "serve")?);
    compare(train, serve, plan, &observer.watch()).map_err(join_error)
}

fn join_error(error: JoinError) -> AppError {
    match error {
        JoinError::Data(error) | JoinError::Write(WriteError::Data(error)) => data_error(error),
        JoinError::Write(WriteError::Disk { .. }) => AppError::of(ErrorKind::Fault, error),
        error => AppError::of(ErrorKind::Usage, error),
    }
}
