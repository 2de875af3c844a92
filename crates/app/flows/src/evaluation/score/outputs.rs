//! Where a score goes, and what is written beside it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::Metrics;
use trackway_tables::write::{TableFormat, WriteError};

use crate::data::table::data_error;
use trackway_engine::run::evaluator::{BUILT_IN, BUILT_IN_VERSION};

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreOutputs {
    /// The table: Parquet, CSV or JSON lines by the end of its name.
    pub table: PathBuf,
    /// How fast the model answered, as an evaluator's `metrics.json`.
    pub metrics: Option<PathBuf>,
    /// The scorer and notes for a reader, as an evaluator's `evaluation.json`.
    pub evaluation: Option<PathBuf>,
    /// What changed inputs do to the predictions, as an evaluator's `probes.json`.
    pub probes: Option<PathBuf>,
}

impl ScoreOutputs {
    /// What the built-in evaluator leaves in the folder of an evaluation.
    #[must_use]
    pub fn of_evaluation(folder: &Path) -> Self {
        Self {
            table: folder.join("predictions.parquet"),
            metrics: Some(folder.join("metrics.json")),
            evaluation: Some(folder.join("evaluation.json")),
            probes: Some(folder.join("probes.json")),
        }
    }

    /// Every file that is written.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let beside =
            [&self.metrics, &self.evaluation, &self.probes].into_iter().flatten().map(PathBuf::as_path);
        std::iter::once(self.table.as_path()).chain(beside)
    }

    pub(super) fn format(&self) -> Result<TableFormat, AppError> {
        if self.table.is_dir() {
            let message = format!("`{}` is a folder; the output must be a file", self.table.display());
            return Err(
                AppError::new(ErrorKind::Usage, message).hint("name a file: --out predictions.parquet")
            );
        }
        TableFormat::of(&self.table).map_err(write_error)
    }

    pub(super) fn write_beside(&self, metrics: &Metrics, notes: &[String]) -> Result<(), AppError> {
        let as_json = |metrics: &Metrics| -> Json {
            let one = |(name, it): (&String, &trackway_evaluate::Estimate)| {
                let members = json!({ "value": it.value, "low": it.interval.known_low(), "high": it.interval.known_high(), "support": it.support });
                (name.clone(), members)
            };
            metrics.iter().map(one).collect::<serde_json::Map<_, _>>().into()
        };
        let evaluator = json!({ "name": BUILT_IN, "version": BUILT_IN_VERSION });
        for (path, document) in [
            (&self.metrics, as_json(metrics)),
            (&self.evaluation, json!({ "evaluator": evaluator, "notes": notes })),
        ] {
            path.iter().try_for_each(|path| write_json(path, &document))?;
        }
        Ok(())
    }
}

/// Writes a file that belongs to the user.
pub(super) fn write_json(path: &Path, document: &Json) -> Result<(), AppError> {
    fs::write(path, format!("{document:#}\n"))
        .and_then(|()| trackway_files::give_to_user(path))
        .map_err(|error| AppError::file("write", path, error))
}

pub(super) fn write_error(error: WriteError) -> AppError {
    match error {
        WriteError::Data(error) => data_error(error),
        WriteError::Disk { .. } => AppError::of(ErrorKind::Fault, error),
        _ => AppError::of(ErrorKind::Usage, error),
    }
}
