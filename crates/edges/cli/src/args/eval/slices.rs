use std::path::PathBuf;

use clap::Args;
use trackway_flows::data::split::DEFAULT_SEED;
use trackway_flows::evaluation::slices::Loss;

use crate::args::{TableArgs, Word, one_of};

#[derive(Debug, Args)]
#[command(
    after_help = "Slices are conjunctions such as `age in [25, 31) and sector = Private`. See docs/slices.md.

Examples:
  trackway eval slices errors.parquet --error loss
  trackway eval slices predictions.csv --label income --prediction predicted --ignore id
  trackway eval slices pred.csv --label y --prediction new --worse-than old --group-by user_id
  trackway eval slices errors.parquet --error loss --json > monday.json
  trackway eval slices errors.parquet --error loss --since monday.json   what changed"
)]
pub struct SlicesArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Error column: a number of 0 or more per row
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["label", "prediction"], required_unless_present = "label")]
    pub error: Option<String>,
    /// Ground-truth column, to compute the error from
    #[arg(long, value_name = "COLUMN", requires = "prediction")]
    pub label: Option<String>,
    /// Prediction column
    #[arg(long, value_name = "COLUMN", requires = "label")]
    pub prediction: Option<String>,
    /// Loss function [default: zero-one for strings and classes, squared otherwise]
    #[arg(long, value_parser = one_of(&LOSSES), value_name = "LOSS", requires = "label")]
    pub loss: Option<Loss>,
    /// Error of a baseline (with --label: its prediction): find slices where the model is worse than the baseline
    #[arg(long, value_name = "COLUMN")]
    pub worse_than: Option<String>,
    /// Cluster column: rows with the same value stay together and count as one in every test
    #[arg(long = "group-by", value_name = "COLUMN")]
    pub group: Option<String>,
    /// Columns to build slices from [default: all others]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub features: Vec<String>,
    /// Columns not to build slices from
    #[arg(long = "ignore", value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "features")]
    pub skip: Vec<String>,
    /// Numeric columns to treat as categorical
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub categorical: Vec<String>,
    /// Number of slices
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Report only the simplest of slices with identical rows
    #[arg(long, conflicts_with = "repeats")]
    pub distinct: bool,
    /// List every slice by its score, also those that name the same rows, or 95 % of them, as one above
    #[arg(long)]
    pub repeats: bool,
    /// Maximum number of predicates per slice
    #[arg(long, value_name = "L", default_value_t = 3)]
    pub max_level: usize,
    /// Weight of error relative to slice size, from 0 to 1
    #[arg(long, value_name = "A", default_value_t = 0.95)]
    pub alpha: f64,
    /// Minimum support: number of rows of a slice [default: 1 % of the searched rows, at least 32]
    #[arg(long = "support-min", value_name = "ROWS")]
    pub min_support: Option<u32>,
    /// Number of quantile bins of numeric columns
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub bins: usize,
    /// Fraction of rows held out to confirm slices
    #[arg(long, value_name = "FRACTION", default_value_t = 0.5)]
    pub holdout: f64,
    /// Search all rows: no confirmation, no p-values
    #[arg(long, conflicts_with = "holdout")]
    pub no_holdout: bool,
    /// False discovery rate among confirmed slices
    #[arg(long, value_name = "FRACTION", default_value_t = 0.05)]
    pub fdr: f64,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Earlier output (--json): reuse its slices and bins, and report changes
    #[arg(long, value_name = "FILE")]
    pub since: Option<PathBuf>,
}

/// Loss function.
pub(super) const LOSSES: [Word<Loss>; 3] = [
    ("zero-one", Loss::ZeroOne, "0 if correct, otherwise 1"),
    ("squared", Loss::Squared, "Squared error"),
    ("absolute", Loss::Absolute, "Absolute error"),
];
