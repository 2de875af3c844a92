//! What a data set is like.

use std::path::{Path, PathBuf};

use trackway_api::data::{FileRead, ProfileAnswer};
use trackway_engine::error::AppError;
use trackway_engine::home::Home;
pub use trackway_tables::profile::{ColumnSummary, LengthSummary, Value, ValueCount};
use trackway_tables::profile::{PROFILE_VERSION, Profile};
use trackway_tables::read::{Coverage, Source};

use super::snapshot::mask;
use super::table::{ReadObserver, TableRequest, data_error};

/// What to profile.
#[derive(Debug, Clone, Default)]
pub struct ProfileRequest {
    /// The data.
    pub table: TableRequest,
    /// The column that others are compared with.
    pub label: Option<String>,
    /// Where to keep the profile, so that a later comparison reads no data.
    pub save_to: Option<PathBuf>,
}

/// Reads the data once and describes it. A profile that is kept is masked with the key of the home.
///
/// # Errors
/// [`NotFound`](trackway_engine::error::ErrorKind::NotFound) for a path that names nothing;
/// [`Usage`](trackway_engine::error::ErrorKind::Usage) for data that cannot be read as a table or lacks the label; when
/// the profile cannot be saved.
pub fn profile(
    home: &Home,
    base: &Path,
    request: &ProfileRequest,
    observer: &ReadObserver<'_>,
) -> Result<ProfileAnswer, AppError> {
    request.table.refuse_outputs(base, request.save_to.as_deref())?;
    let mut source = request.table.open(base, "data")?;
    let profiled = Profile::of(&mut source, request.label.as_deref(), &observer.watch());
    let (profile, coverage) = profiled.map_err(data_error)?;
    if let Some(path) = &request.save_to {
        let kept = mask(home)?.masked(profile.clone());
        let text = serde_json::to_string(&kept).map_err(|error| AppError::fault("the profile", error))?;
        let written = std::fs::write(path, text).and_then(|()| trackway_files::give_to_user(path));
        written.map_err(|error| AppError::file("save the profile in", path, error))?;
    }
    Ok(answer(&source, &profile, coverage))
}

fn answer(source: &Source, profile: &Profile, coverage: Coverage) -> ProfileAnswer {
    let file = |(index, file): (usize, &trackway_tables::read::SourceFile)| FileRead {
        path: file.path.clone(),
        size_bytes: file.size_bytes,
        rows: coverage.file_rows.get(&index).copied().unwrap_or(0),
    };
    ProfileAnswer {
        version: PROFILE_VERSION,
        files: source.files().iter().enumerate().map(file).collect(),
        rows: coverage.rows_read,
        rows_rejected: coverage.rows_rejected,
        rejects: coverage.rejects,
        rows_recoded: coverage.rows_recoded,
        first_recoded: coverage.first_recoded,
        notes: source.notes(),
        reading: source.reading(),
        label: profile.label.clone(),
        columns: profile.columns.iter().map(|column| column.summary()).collect(),
    }
}
