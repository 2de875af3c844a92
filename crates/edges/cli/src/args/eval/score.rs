use std::path::PathBuf;

use clap::Args;
use trackway_flows::evaluation::probe::BatchFormat;
use trackway_flows::evaluation::score::BATCH_ROWS;
use trackway_formats::Variable;

use super::probe::BATCH_FORMATS;
use crate::args::{TableArgs, one_of};

#[derive(Debug, Args)]
#[command(
    after_help = "The model is a command that reads rows as CSV and writes one line per row; docs/scoring.md has the contract, and \
`trackway.serve_scores` implements it in Python. The output has all input columns and `prediction`; `score` too where the model \
returns probabilities of --positive.

Examples:
  trackway eval score test.parquet --command 'python score.py' --label income --positive '>50K' \\
    --out predictions.parquet
  trackway eval score 'data/*.csv' --command ./score --ignore id,name --out scored.csv --json
  trackway eval score test.csv --command 'python score.py' --label y --batch-rows 1 \\
    --latency latency.json --out scored.jsonl

Exit codes: 0 all rows scored; 2 invalid columns, or rows that the model rejected; 4 interrupted; 6 file not found"
)]
pub struct ScoreArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Shell command that scores rows
    #[arg(long, value_name = "COMMAND")]
    pub command: String,
    /// Output file: .parquet, .csv, .tsv or .jsonl
    #[arg(long, short = 'o', value_name = "FILE", required_unless_present = "evaluation_out")]
    pub out: Option<PathBuf>,
    /// Ground-truth column; withheld from the model
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Positive class, whose probability the model returns
    #[arg(long, value_name = "CLASS", requires = "label")]
    pub positive: Option<String>,
    /// Feature columns, in this order [default: all columns but the label]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub features: Vec<String>,
    /// Columns to withhold from the model
    #[arg(long = "ignore", value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "features")]
    pub skip: Vec<String>,
    /// Rows per batch: 1 to 4096
    #[arg(long, value_name = "ROWS", default_value_t = BATCH_ROWS)]
    pub batch_rows: usize,
    /// Format of the rows sent to the command
    #[arg(long = "batch-format", value_parser = one_of(&BATCH_FORMATS), value_name = "FORMAT", default_value = "csv")]
    pub batches: BatchFormat,
    /// Score only the first N rows
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Write latency and throughput as JSON, usable as the metrics.json of an evaluator
    #[arg(long, value_name = "FILE")]
    pub latency: Option<PathBuf>,
    /// Input format, if file names do not show it
    #[arg(long, value_name = "FORMAT", value_parser = ["parquet", "csv", "jsonl"], hide = true)]
    pub read_as: Option<String>,
    /// Rows with which the model of an evaluation is probed
    #[arg(long, value_name = "ROWS", hide = true)]
    pub probe_rows: Option<u64>,
    /// Folder of an evaluation, instead of --out
    #[arg(long, value_name = "FOLDER", env = Variable::EvaluationOut.as_str(), hide = true)]
    pub evaluation_out: Option<PathBuf>,
}
