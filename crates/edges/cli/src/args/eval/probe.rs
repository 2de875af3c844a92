use std::path::PathBuf;

use clap::Args;
use trackway_flows::data::split::DEFAULT_SEED;
use trackway_flows::evaluation::probe::BatchFormat;
use trackway_flows::evaluation::probe::parts::ProbePart;
use trackway_flows::evaluation::slices::Loss;

use super::slices::LOSSES;
use crate::args::{TableArgs, Word, one_of};

#[derive(Debug, Args)]
#[command(
    after_help = "The model is a command that reads rows as CSV or Arrow and writes one line per row; docs/scoring.md has the contract, and \
`trackway.serve_scores` implements it in Python.

Examples:
  trackway eval probe test.parquet --command 'python score.py' --label income --positive '>50K'
  trackway eval probe test.csv --command ./score --label price --only importance,dependence --json
  trackway eval probe test.csv --command 'python score.py' --ignore id,name --only perturbations
  trackway eval probe test.parquet --command 'python score.py' --batch-format arrow --label price \\
    --html probe.html"
)]
pub struct ProbeArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Shell command that scores rows
    #[arg(long, value_name = "COMMAND")]
    pub command: String,
    /// Format of the rows sent to the command
    #[arg(long = "batch-format", value_parser = one_of(&BATCH_FORMATS), value_name = "FORMAT", default_value = "csv")]
    pub batches: BatchFormat,
    /// Ground-truth column; without it no errors are computed
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Positive class, whose probability is predicted
    #[arg(long, value_name = "CLASS", requires = "label")]
    pub positive: Option<String>,
    /// Loss function [default: zero-one for classes, squared otherwise]
    #[arg(long, value_parser = one_of(&LOSSES), value_name = "LOSS", requires = "label")]
    pub loss: Option<Loss>,
    /// Decision threshold [default: 0.5 if labels are 0 and 1 and predictions are in between]
    #[arg(long, value_name = "PROBABILITY")]
    pub threshold: Option<f64>,
    /// Feature columns, in this order [default: all columns but the label]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub features: Vec<String>,
    /// Columns to withhold from the model
    #[arg(long = "ignore", value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "features")]
    pub skip: Vec<String>,
    /// Run only these probes
    #[arg(long, value_parser = one_of(&PARTS), value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<ProbePart>,
    /// Maximum number of rows, sampled at random
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub rows: usize,
    /// Permutations per feature, for importance
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub permutations: usize,
    /// Grid points per feature, for dependence
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub grid: usize,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Row format.
pub(super) const BATCH_FORMATS: [Word<BatchFormat>; 2] = [
    ("csv", BatchFormat::Csv, "CSV, with an empty line after each batch"),
    ("arrow", BatchFormat::Arrow, "A stream of Arrow record batches"),
];

/// Probes.
const PARTS: [Word<ProbePart>; 5] = [
    ("residuals", ProbePart::Residuals, "Residuals by prediction and by feature"),
    ("importance", ProbePart::Importance, "Permutation importance"),
    (
        "dependence",
        ProbePart::Dependence,
        "Partial dependence (PDP) and individual conditional expectation (ICE)",
    ),
    ("perturbations", ProbePart::Perturbations, "Robustness against missing, mistyped and rescaled values"),
    ("sensitivity", ProbePart::Sensitivity, "Sensitivity to small steps along the gradient"),
];
