use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{SlicesLoss, TableArgs};

#[derive(Debug, Args)]
#[command(
    after_help = "The model is reached by a command that reads rows as CSV or Arrow and answers each with a line; docs/scoring.md has the contract, and
`trackway.serve_scores` in Python keeps to it.

Examples:
  trackway probe test.parquet --command 'python score.py' --label income --positive '>50K'
  trackway probe test.csv --command ./score --label price --only importance,dependence --json
  trackway probe test.csv --command 'python score.py' --skip id,name --only counterfactuals
  trackway probe test.parquet --command 'python score.py' --batches arrow --label price --html probe.html"
)]
pub struct ProbeArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// A shell command that scores rows
    #[arg(long, value_name = "COMMAND")]
    pub command: String,
    /// How rows are written to the command
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ProbeBatches::Csv)]
    pub batches: ProbeBatches,
    /// What is true; without it nothing is said of errors
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// The label whose chance is predicted
    #[arg(long, value_name = "VALUE", requires = "label")]
    pub positive: Option<String>,
    /// How far off a prediction is [default: zero-one for classes, squared for other numbers]
    #[arg(long, value_enum, value_name = "LOSS", requires = "label")]
    pub loss: Option<SlicesLoss>,
    /// The predicted chance from which on a row is decided [default: 0.5 where labels are 0 and 1 and predictions between]
    #[arg(long, value_name = "CHANCE")]
    pub threshold: Option<f64>,
    /// What the model is given, in this order [default: every column but the label]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub features: Vec<String>,
    /// Columns that the model is not given
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "features")]
    pub skip: Vec<String>,
    /// Find out these only
    #[arg(long, value_enum, value_name = "PARTS", value_delimiter = ',')]
    pub only: Vec<ProbeOnly>,
    /// Rows that are drawn at random, at most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub rows: usize,
    /// Shuffles of each feature for its importance
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeats: usize,
    /// Values of each feature at which predictions are averaged
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub grid: usize,
    /// Rows for which the smallest change of the decision is searched
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub counterfactuals: usize,
    /// Decides which rows are drawn, shuffles and typos
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Write it as one HTML page too, which needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ProbeBatches {
    /// Text, an empty line after each batch
    Csv,
    /// A stream of Arrow record batches
    Arrow,
}

/// What can be found out.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ProbeOnly {
    /// What predictions leave over, by prediction and by feature
    Residuals,
    /// Rows that stand apart, and what that does
    Leverage,
    /// What the model loses without a feature
    Importance,
    /// What it predicts for each value of a feature, on average and for single rows
    Dependence,
    /// What it makes of missing, mistyped and scaled values
    Perturbations,
    /// What small steps along the model's gradients do
    Sensitivity,
    /// The smallest change of a row that changes the decision
    Counterfactuals,
}
