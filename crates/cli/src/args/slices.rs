use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::TableArgs;

#[derive(Debug, Subcommand)]
pub enum SlicesCommand {
    /// Search for blind spots: the slices of a table where a model is worse than on the whole, confirmed on rows that
    /// the search did not see
    #[command(
        after_help = "Slices are conjunctions such as `age in [25, 31) and sector = Private`. See docs/slices.md.

Examples:
  trackway slices find errors.parquet --error loss
  trackway slices find predictions.csv --label income --prediction predicted --skip id
  trackway slices find predictions.csv --label y --prediction new --worse-than old --group user_id
  trackway slices find errors.parquet --error loss --json > monday.json
  trackway slices find errors.parquet --error loss --since monday.json     what is new, gone, worse and better"
    )]
    Find(Box<SlicesFindArgs>),
}

#[derive(Debug, Args)]
pub struct SlicesFindArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// A column with the error of each row: a number of 0 or more
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["label", "prediction"], required_unless_present = "label")]
    pub error: Option<String>,
    /// What is true, where the error is to be computed
    #[arg(long, value_name = "COLUMN", requires = "prediction")]
    pub label: Option<String>,
    /// What was predicted
    #[arg(long, value_name = "COLUMN", requires = "label")]
    pub prediction: Option<String>,
    /// How far off a prediction is [default: zero-one for texts and classes, squared for other numbers]
    #[arg(long, value_enum, value_name = "LOSS", requires = "label")]
    pub loss: Option<SlicesLoss>,
    /// The baseline's error (with --label: its prediction): search where the candidate is worse than it
    #[arg(long, value_name = "COLUMN")]
    pub worse_than: Option<String>,
    /// Rows with the same value stay together, and count as one in every test
    #[arg(long, value_name = "COLUMN")]
    pub group: Option<String>,
    /// What slices are made of [default: every other column]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub features: Vec<String>,
    /// Columns that slices are not made of
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "features")]
    pub skip: Vec<String>,
    /// Columns of numbers that stand for categories: no bins
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub categorical: Vec<String>,
    /// How many slices
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Of slices with the same rows, answer only the one with the fewest predicates
    #[arg(long)]
    pub distinct: bool,
    /// The most predicates of a slice
    #[arg(long, value_name = "L", default_value_t = 3)]
    pub max_level: usize,
    /// The weight of error against size: at 0.5, twice the error pays for half the rows
    #[arg(long, value_name = "A", default_value_t = 0.95)]
    pub alpha: f64,
    /// The fewest searched rows of a slice [default: a hundredth of them, at least 32]
    #[arg(long, value_name = "N")]
    pub min_support: Option<u32>,
    /// Bins of about equally many rows for columns of numbers
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub bins: usize,
    /// The share of rows that are kept from the search, to measure what it finds
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    pub holdout: f64,
    /// Search all rows: nothing is confirmed, and there are no p-values
    #[arg(long, conflicts_with = "holdout")]
    pub no_holdout: bool,
    /// The share of false ones that is allowed among confirmed slices
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub fdr: f64,
    /// Decides which rows are held out
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// An earlier answer (--json): begin with its slices and bins, and say what changed
    #[arg(long, value_name = "FILE")]
    pub since: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SlicesLoss {
    /// 0 where it is right, else 1
    ZeroOne,
    /// The square of the difference
    Squared,
    /// The difference without its sign
    Absolute,
}
