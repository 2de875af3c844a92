//! What a checkpoint is judged on: the tasks, by their content.

use std::path::{Path, PathBuf};

use trackway_data::pass::UNWATCHED;
use trackway_data::{DataFormat, DataSpec, HashCache, Resolver};

use super::evaluator::file_sha256;
use crate::App;
use crate::data::data_error;
use crate::error::{AppError, ErrorKind};

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
    pub fn read(app: &App, base: &Path, path: &str, version: Option<&str>) -> Result<Self, AppError> {
        let local: PathBuf = base.join(path);
        let sha256 = if local.is_file() {
            file_sha256(&local).map_err(|error| AppError::file("read the task set", &local, &error))?.0
        } else {
            let cache = HashCache::load(&app.home.data_cache());
            let spec =
                DataSpec { path: path.to_owned(), format: Some(DataFormat::Other), ..DataSpec::default() };
            let resolver = Resolver { base, cache: Some(&cache), clock: &app.clock, watch: &UNWATCHED };
            resolver.resolve("task_set", &spec).map_err(not_there)?.data_sha256
        };
        let version = version.map(str::to_owned).or_else(|| version_in_name(path));
        Ok(Self { path: path.to_owned(), sha256, version })
    }
}

fn not_there(error: trackway_data::DataError) -> AppError {
    let error = data_error(error);
    match error.kind {
        ErrorKind::NotFound => error.hint("the path of tasks and rows starts at the run file's folder"),
        _ => error,
    }
}

/// `v3` of `eval/tasks-v3.jsonl`: a `v` and a number behind a separator, the last one in the file's name.
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

    /// Proves which names tell a version.
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
