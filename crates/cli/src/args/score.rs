use std::path::PathBuf;

use clap::Args;
use trackway_app::score::BATCH_ROWS;

use super::{ProbeBatches, TableArgs};

#[derive(Debug, Args)]
#[command(
    after_help = "The model is reached by a command that reads rows as CSV and answers each with a line; docs/scoring.md has the contract, and
`trackway.serve_scores` in Python keeps to it. The table that is written has all columns of the rows and `prediction`; where
answers are chances of --positive, `score` too.

Examples:
  trackway score test.parquet --command 'python score.py' --label income --positive '>50K' --out predictions.parquet
  trackway score 'data/*.csv' --command ./score --skip id,name --out scored.csv --json
  trackway score test.csv --command 'python score.py' --label y --batch-rows 1 --metrics latency.json --out scored.jsonl

Exit codes: 0 all rows answered; 2 wrong columns, or rows that the model refused; 4 interrupted; 6 no such file"
)]
pub struct ScoreArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// A shell command that scores rows
    #[arg(long, value_name = "COMMAND")]
    pub command: String,
    /// Where the table with the predictions goes: .parquet, .csv, .tsv or .jsonl
    #[arg(long, value_name = "FILE", required_unless_present = "evaluation_out")]
    pub out: Option<PathBuf>,
    /// What is true; the model is not given it
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// The class of the label whose chance the model answers
    #[arg(long, value_name = "CLASS", requires = "label")]
    pub positive: Option<String>,
    /// What the model is given, in this order [default: every column but the label]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub features: Vec<String>,
    /// Columns that the model is not given
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "features")]
    pub skip: Vec<String>,
    /// Rows that the model is asked about at once: 1 to 4096
    #[arg(long, value_name = "ROWS", default_value_t = BATCH_ROWS)]
    pub batch_rows: usize,
    /// How rows are written to the command
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ProbeBatches::Csv)]
    pub batches: ProbeBatches,
    /// Score the first rows only
    #[arg(long, value_name = "ROWS")]
    pub limit: Option<u64>,
    /// Write how fast the model answers, as JSON that an evaluator may leave as its metrics.json
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// How the rows are read, where their names do not tell it
    #[arg(long, value_name = "FORMAT", value_parser = ["parquet", "csv", "jsonl"], hide = true)]
    pub read_as: Option<String>,
    /// The folder of an evaluation, in place of --out
    #[arg(long, value_name = "FOLDER", env = "TRACKWAY_EVALUATION_OUT", hide = true)]
    pub evaluation_out: Option<PathBuf>,
}
