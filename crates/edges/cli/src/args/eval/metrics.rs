use std::path::PathBuf;

use clap::Args;
use trackway_flows::data::split::DEFAULT_SEED;
use trackway_flows::evaluation::assess::Task;

use crate::args::{TableArgs, Word, one_of};

/// Task type of a table of predictions.
const TASKS: [Word<Task>; 8] = [
    ("classification", Task::Classification, "One of a few classes"),
    ("regression", Task::Regression, "A continuous target"),
    ("language_model", Task::LanguageModel, "Losses, exact matches, or several completions per task"),
    ("transcription", Task::Transcription, "Speech recognition: hypotheses against references"),
    ("ranking", Task::Ranking, "Ranked documents per query"),
    ("uplift", Task::Uplift, "The predicted effect of a treatment"),
    ("segmentation", Task::Segmentation, "Counted pixels of images"),
    ("object_detection", Task::ObjectDetection, "Boxes in images"),
];

#[derive(Debug, Args)]
#[command(
    after_help = "Columns are found by name (label, prediction, score, score_CLASS, quantile_0.9, loss, tokens, bytes, task_id, \
correct, reference, hypothesis, query, relevance, rank, id, treatment, image, class, kind, x_min, \
true_positive …) unless named; guesses are reported.

Examples:
  trackway eval metrics predictions.parquet
  trackway eval metrics predictions.csv --label income --score p --positive '>50K' --json
  trackway eval metrics predictions.parquet --slice women=\"sex = 'Female'\" \\
    --slice older='age >= 60' --fairness sex,race
  trackway eval metrics new.parquet --baseline old.parquet --id id   better, worse, or not shown
  trackway eval metrics predictions.parquet --html report.html --parquet numbers.parquet
  trackway eval metrics answers.parquet --group-by document          resample whole documents

Exit codes: 0 computed, whatever the numbers; 2 invalid columns or predicates; 6 file not found"
)]
pub struct MetricsArgs {
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Task type [default: detected from the columns]
    #[arg(long, value_parser = one_of(&TASKS))]
    pub task: Option<Task>,
    /// Positive class [default: the last one]
    #[arg(long, value_name = "CLASS")]
    pub positive: Option<String>,
    /// Cost matrix for `cost`, a JSON file: `{"LABEL": {"PREDICTION": COST}}`; missing pairs cost 0
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Slice defined by a SQL condition on columns; repeatable
    #[arg(long = "slice", value_name = "NAME=PREDICATE")]
    pub slices: Vec<String>,
    /// Search all other columns for slices where the model is worst (docs/slices.md)
    #[arg(long)]
    pub blind_spots: bool,
    /// Columns of protected groups, for fairness measures
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub fairness: Vec<String>,
    /// Predictions of a baseline model for the same rows
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub baseline: Vec<String>,
    /// Pair rows with the baseline by position instead of --id
    #[arg(long, requires = "baseline")]
    pub by_order: bool,
    /// Practical margin: smaller differences from the baseline do not matter [default: 0.01, or 1 % of unbounded
    /// metrics]
    #[arg(long, value_name = "DIFFERENCE")]
    pub margin: Option<f64>,
    /// Metric for slices [default: accuracy, mae, exact_match, pass_at_1, loss, wer, ndcg, qini, mean_iou, map]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Confidence level of intervals
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    pub confidence: f64,
    /// Bootstrap resamples, for metrics without a closed-form interval
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub resamples: u32,
    /// Bootstrap every interval
    #[arg(long)]
    pub always_resample: bool,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Recall at which `precision_at_recall` is computed
    #[arg(long, value_name = "FRACTION", default_value_t = 0.9)]
    pub recall: f64,
    /// Minimum support: slices and groups with fewer rows are inconclusive
    #[arg(long, value_name = "ROWS", default_value_t = 30)]
    pub support_min: u64,
    /// Slices with a wider interval are inconclusive; for unbounded metrics, relative to the value
    #[arg(long, value_name = "WIDTH", default_value_t = 0.2)]
    pub width_max: f64,
    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write all numbers to a Parquet file
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}

/// Column names.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// Ground-truth column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Prediction column
    #[arg(long, value_name = "COLUMN")]
    pub prediction: Option<String>,
    /// Predicted probability (or score) of the positive class
    #[arg(long, value_name = "COLUMN")]
    pub score: Option<String>,
    /// Id of a row, or of the task of a completion
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Cluster column: rows with the same value are not independent, such as questions about one document
    #[arg(long = "group-by", value_name = "COLUMN")]
    pub group: Option<String>,
    /// Loss per row in nats; summed over tokens if there is a token count column
    #[arg(long, value_name = "COLUMN")]
    pub loss: Option<String>,
    /// Token count per row
    #[arg(long, value_name = "COLUMN")]
    pub tokens: Option<String>,
    /// Byte count per row
    #[arg(long, value_name = "COLUMN")]
    pub bytes: Option<String>,
    /// Whether a completion is correct
    #[arg(long, value_name = "COLUMN")]
    pub correct: Option<String>,
    /// Reference transcript
    #[arg(long, value_name = "COLUMN")]
    pub reference: Option<String>,
    /// Hypothesis (recognized text)
    #[arg(long, value_name = "COLUMN")]
    pub hypothesis: Option<String>,
    /// Query id
    #[arg(long, value_name = "COLUMN")]
    pub query: Option<String>,
    /// Relevance grade of a document; 0: not relevant
    #[arg(long, value_name = "COLUMN")]
    pub relevance: Option<String>,
    /// Rank of a document, from 1
    #[arg(long, value_name = "COLUMN")]
    pub rank: Option<String>,
    /// Whether a row was treated (1) or not (0), for uplift
    #[arg(long, value_name = "COLUMN")]
    pub treatment: Option<String>,
    /// Image of a row, for segmentation and object detection
    #[arg(long, value_name = "COLUMN")]
    pub image: Option<String>,
    /// Class of a box or of counted pixels
    #[arg(long, value_name = "COLUMN")]
    pub class: Option<String>,
}
