//! Files in which frameworks write their metrics and settings themselves: Lightning's `metrics.csv`, `CSVLogger` of
//! Keras, loggers that write one JSON object per line, `trainer_state.json` of Transformers, and the configurations
//! beside them. Pure: what a file is, and what its rows mean.
//!
//! A table or a file of objects is a log if its first rows show it ([`LogReader`]) and it grows as logs do ([`Judge`]):
//! a table of data that the script wrote is none. A log that is rewritten, as with new columns, gives each value once
//! ([`Replay`]).

mod behind;
mod judge;
mod log;
mod replay;
mod settings;
mod state;
mod table;
#[cfg(test)]
mod tests;

use trackway_core::MetricStep;

pub use behind::printed_behind;
pub use judge::{Judge, LogFacts, Verdict};
pub use log::{LeftOut, LogReader};
pub use replay::Replay;
pub use settings::{Settings, read_overrides, read_settings};
pub use state::{StateHistory, read_state};

/// Hydra writes the configuration of a run there.
pub const HYDRA_FOLDER: &str = ".hydra";
/// The name of the epoch in rows and objects.
pub const EPOCH: &str = "epoch";
/// Names of files that are logs of metrics, up to the first full stop.
const LOG_NAMES: [&str; 14] = [
    "eval_log", "history", "log", "logs", "metrics", "progress", "results", "scalars", "train_history",
    "train_log", "training", "training_history", "training_log", "val_log",
];
/// Folders in which loggers write; others end with `_logs`.
const LOG_FOLDERS: [&str; 3] = ["log", "logs", "vis_data"];

/// What a file may be, by its name and folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// `.hydra/overrides.yaml`.
    Overrides,
    /// `.hydra/config.yaml`.
    Config,
    /// `hparams.yaml` of Lightning.
    Hparams,
    /// `trainer_state.json` of Transformers.
    State,
    /// A table with a heading.
    Table,
    /// One JSON object per line.
    Lines,
}

impl Form {
    /// `way`: the names of the folders down to the file.
    #[must_use]
    pub fn of(way: &[String], name: &str) -> Option<Self> {
        let is_of_hydra = way.last().is_some_and(|folder| folder == HYDRA_FOLDER);
        match name {
            "config.yaml" if is_of_hydra => Some(Self::Config),
            "overrides.yaml" if is_of_hydra => Some(Self::Overrides),
            _ if is_of_hydra || name.starts_with('.') => None,
            "trainer_state.json" => Some(Self::State),
            "hparams.yaml" => Some(Self::Hparams),
            "log.txt" => Some(Self::Lines),
            _ => match name.rsplit_once('.')?.1 {
                // `CSVLogger("training.log")` of Keras. Most files of this name have text, which their first line shows.
                "csv" | "log" => Some(Self::Table),
                "json" | "jsonl" | "ndjson" => Some(Self::Lines),
                _ => None,
            },
        }
    }

    /// As records have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overrides | Self::Config => "hydra",
            Self::Hparams => "hparams",
            Self::State => "trainer_state",
            Self::Table => "table",
            Self::Lines => "json_lines",
        }
    }

    /// Whether it is a log, which grows.
    #[must_use]
    pub const fn is_log(self) -> bool {
        matches!(self, Self::Table | Self::Lines)
    }
}

/// Whether loggers write files of this name or to this folder.
#[must_use]
pub fn is_place_of_logs(way: &[String], name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_lowercase();
    let is_of_logs = |folder: &String| LOG_FOLDERS.contains(&folder.as_str()) || folder.ends_with("_logs");
    LOG_NAMES.contains(&stem.as_str()) || way.iter().any(is_of_logs)
}

/// Whether a file with the heading of a log is one by its place and name: logs are read there, and data has another ending than `.log`.
#[must_use]
pub fn is_log_by_name(way: &[String], name: &str) -> bool {
    is_place_of_logs(way, name) || name.ends_with(".log")
}

/// The folder whose values those of a file are: of a checkpoint, the one that it is in.
#[must_use]
pub fn folder_of_values(way: &[String], form: Form) -> &[String] {
    match way.split_last() {
        Some((last, outer)) if form == Form::State && last.starts_with("checkpoint-") => outer,
        _ => way,
    }
}

/// What the steps of a log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Steps of the training.
    Steps,
    /// Epochs: what the script prints may be finer.
    Epochs,
}

/// Values at one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub step: MetricStep,
    /// Names and values.
    pub values: Vec<(String, f64)>,
}
