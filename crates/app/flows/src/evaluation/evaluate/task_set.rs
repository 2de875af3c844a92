//! The tasks that a checkpoint is evaluated on, by their content.

use std::path::{Path, PathBuf};

use trackway_data::model::Frame;
use trackway_data::{HashCache, Resolver};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_ledger::EvaluationRow;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::read::Source;
use trackway_tables::{DataFormat, DataSpec, ReadContext};

use crate::data::data_error;
use trackway_engine::file_digest::file_sha256;

/// A task set that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSet {
    /// As the run file names it.
    pub path: String,
    /// SHA-256 of the file; of several files, or of a URL, the hash of their manifest (as of a data set).
    pub sha256: String,
    /// What people call it.
    pub version: Option<String>,
}

impl TaskSet {
    /// Reads the tasks that `[evaluate]` names, relative to `base`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nothing is there.
    pub fn read(context: &Context, base: &Path, path: &str, version: Option<&str>) -> Result<Self, AppError> {
        let local: PathBuf = base.join(path);
        let sha256 = if local.is_file() {
            file_sha256(&local).map_err(|error| AppError::file("read the task set", &local, error))?.0
        } else {
            let cache = HashCache::load(&context.home.layout.data_cache());
            let spec =
                DataSpec { path: path.to_owned(), format: Some(DataFormat::Other), ..DataSpec::default() };
            let read_context = &context.read_context;
            let resolver = Resolver {
                base,
                context: read_context,
                cache: Some(&cache),
                clock: &context.clock,
                watch: &UNWATCHED,
            };
            resolver.resolve("task_set", &spec).map_err(not_there)?.data_sha256
        };
        let version = version.map(str::to_owned).or_else(|| version_in_name(path));
        Ok(Self { path: path.to_owned(), sha256, version })
    }
}

/// The tasks of an evaluation, as far as rows can be matched with them.
#[derive(Debug)]
pub enum Tasks {
    /// It has no task set.
    None,
    /// Each row of the table is a task.
    Table(Frame),
    /// They are no table, or one that cannot be read whole, and why.
    Unreadable(String),
}

/// Reads the tasks of an evaluation as a table.
///
/// # Errors
/// [`ErrorKind::Usage`]: they are not the tasks that the evaluation began with.
pub fn tasks(context: &Context, row: &EvaluationRow) -> Result<Tasks, AppError> {
    let Some(spec) = row.spec("task_table").filter(|spec| spec.is_object()) else { return Ok(Tasks::None) };
    let spec: DataSpec = match serde_json::from_value(spec.clone()) {
        Ok(spec) => spec,
        Err(error) => return Ok(Tasks::Unreadable(format!("how they are read is not known: {error}"))),
    };
    check_unchanged(row, &spec)?;
    Ok(frame_of(&spec, &context.read_context).map_or_else(Tasks::Unreadable, Tasks::Table))
}

fn check_unchanged(row: &EvaluationRow, spec: &DataSpec) -> Result<(), AppError> {
    let path = Path::new(&spec.path);
    if path.is_file() {
        let (sha256, _) =
            file_sha256(path).map_err(|error| AppError::file("read the task set", path, error))?;
        if row.task_set_sha256.as_deref().is_some_and(|begun| begun != sha256) {
            let message = format!("the task set `{}` changed while it was evaluated", spec.path);
            return Err(AppError::new(ErrorKind::Usage, message).hint("evaluate the checkpoint again"));
        }
    }
    Ok(())
}

/// Every row of the tasks, or why they are no table that rows can be matched with.
fn frame_of(spec: &DataSpec, context: &ReadContext) -> Result<Frame, String> {
    let mut source =
        Source::open(Path::new("/"), "task set", spec, context).map_err(|error| error.to_string())?;
    let (frame, coverage) =
        Frame::sample(&mut source, None, (usize::MAX, 0), &UNWATCHED).map_err(|error| error.to_string())?;
    if coverage.rows_rejected > 0 {
        return Err(format!("{} of its rows cannot be read", coverage.rows_rejected));
    }
    if (frame.rows() as u64) < coverage.rows_read {
        return Err(format!("its {} rows do not fit into memory", coverage.rows_read));
    }
    Ok(frame)
}

fn not_there(error: trackway_tables::DataError) -> AppError {
    let error = data_error(error);
    match error.kind {
        ErrorKind::NotFound => error.hint("the path of tasks and rows starts at the run file's folder"),
        _ => error,
    }
}

/// `v3` of `eval/tasks-v3.jsonl`: a `v` and a number after a separator, the last one in the file's name.
fn version_in_name(path: &str) -> Option<String> {
    let name = path.rsplit('/').find(|part| !part.is_empty())?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_version = |part: &&str| {
        let number = part.strip_prefix(['v', 'V']).unwrap_or_default();
        number.starts_with(|first: char| first.is_ascii_digit())
            && number.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    stem.split(['-', '_', ' ', '@']).rfind(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which names contain a version.
    #[test]
    fn versions_in_names() {
        for (path, version) in [
            ("eval/tasks-v3.jsonl", Some("v3")),
            ("tasks_V1.2.csv", Some("V1.2")),
            ("v7/tasks.jsonl", None),
            ("valid.csv", None),
            ("tasks-v2", Some("v2")),
            ("a-v1-v2.jsonl", Some("v2")),
        ] {
            assert_eq!(version_in_name(path).as_deref(), version, "{path}");
        }
    }
}
