use clap::{Args, ValueEnum};

use super::data::TableArgs;

/// What kind of predictions a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum TaskName {
    /// One of a few classes
    Classification,
    /// An amount
    Regression,
    /// Losses, exact answers, or several completions of a task
    LanguageModel,
    /// What was heard against what was said
    Transcription,
    /// Documents in an order for each query
    Ranking,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Columns are found by their names (label, prediction, score, score_CLASS, quantile_0.9, loss, tokens, bytes, task_id,
correct, reference, hypothesis, query, relevance, rank, id) where none is named; what was guessed is told.

Examples:
  trackway metrics predictions.parquet
  trackway metrics predictions.csv --label income --score p --positive '>50K' --json
  trackway metrics predictions.parquet --slice women=\"sex = 'Female'\" --slice older='age >= 60' --fairness sex,race
  trackway metrics new.parquet --baseline old.parquet --id id          better, worse, no difference shown, inconclusive?
  trackway metrics answers.parquet --group document                    rows of one document are drawn together

Exit codes: 0 judged, whatever the numbers say; 2 columns or predicates that make no sense; 6 no such file"
)]
pub struct MetricsArgs {
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// What kind of predictions they are [default: by the columns]
    #[arg(long, value_enum)]
    pub task: Option<TaskName>,
    /// The positive one of two classes [default: the last one]
    #[arg(long, value_name = "CLASS")]
    pub positive: Option<String>,
    /// A part of the rows, by a condition on columns in SQL; may be repeated
    #[arg(long = "slice", value_name = "NAME=PREDICATE")]
    pub slices: Vec<String>,
    /// Columns whose values are groups that should fare alike
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub fairness: Vec<String>,
    /// Predictions of another model for the same rows
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub baseline: Vec<String>,
    /// Pair rows with the baseline's by their place, not by --id
    #[arg(long, requires = "baseline")]
    pub by_order: bool,
    /// A difference from the baseline below this does not matter [default: 0.01, or 1 % of what is no share]
    #[arg(long, value_name = "AMOUNT")]
    pub margin: Option<f64>,
    /// The metric by which slices are judged [default: accuracy, mae, exact_match, pass_at_1, loss, wer, ndcg]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// How sure intervals are
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    pub confidence: f64,
    /// How often rows are drawn again, for intervals without a formula
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub resamples: u32,
    /// Draw rows again for every interval, also where there is a formula
    #[arg(long)]
    pub always_resample: bool,
    /// Another seed draws other rows
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// The share of positives to be found for `precision_at_recall`
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    pub recall: f64,
    /// Slices and groups with fewer rows are inconclusive
    #[arg(long, value_name = "ROWS", default_value_t = 30)]
    pub support_min: u64,
    /// Slices with a wider interval are inconclusive; of a metric that is no share, as a part of its value
    #[arg(long, value_name = "WIDTH", default_value_t = 0.2)]
    pub width_max: f64,
}

/// Which column holds what.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// What is true
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// What the model said
    #[arg(long, value_name = "COLUMN")]
    pub prediction: Option<String>,
    /// How sure it is of the positive class
    #[arg(long, value_name = "COLUMN")]
    pub score: Option<String>,
    /// What names a row, or the task of a completion
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Rows that share a value are not independent, such as questions about one text
    #[arg(long, value_name = "COLUMN")]
    pub group: Option<String>,
    /// Loss of a row in nats: summed over its tokens where there is a column of tokens
    #[arg(long, value_name = "COLUMN")]
    pub loss: Option<String>,
    /// Tokens of a row
    #[arg(long, value_name = "COLUMN")]
    pub tokens: Option<String>,
    /// Bytes of a row's text
    #[arg(long, value_name = "COLUMN")]
    pub bytes: Option<String>,
    /// Whether a completion is right
    #[arg(long, value_name = "COLUMN")]
    pub correct: Option<String>,
    /// What was said
    #[arg(long, value_name = "COLUMN")]
    pub reference: Option<String>,
    /// What was heard
    #[arg(long, value_name = "COLUMN")]
    pub hypothesis: Option<String>,
    /// What is searched for
    #[arg(long, value_name = "COLUMN")]
    pub query: Option<String>,
    /// How relevant a document is; 0 is not
    #[arg(long, value_name = "COLUMN")]
    pub relevance: Option<String>,
    /// The place of a document, 1 first
    #[arg(long, value_name = "COLUMN")]
    pub rank: Option<String>,
}
