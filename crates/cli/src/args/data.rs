use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Read data once and say what is in it: types, missing values, distributions, how columns go with the label
    #[command(after_help = "Examples:
  trackway data profile train.parquet
  trackway data profile train.csv --label income --json
  trackway data profile 'data/*.csv' --columns age,workclass,income --missing '?'
  trackway data profile train.parquet --save train.profile.json     to compare with later, without the data")]
    Profile(ProfileArgs),
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Keep the profile in this file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// Which data, and how it is read.
#[derive(Debug, Args)]
pub struct TableArgs {
    /// Files (.parquet, .csv, .tsv, .jsonl, .txt), globs or folders, read as one table
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// The column to be predicted
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Names of the columns, for CSV files without a header
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// The separator of CSV files [default: detected]
    #[arg(long, value_name = "LETTER")]
    pub delimiter: Option<char>,
    /// A text that stands for a missing value; may be repeated [default: ?, NA, null and the like]
    #[arg(long, value_name = "TEXT")]
    pub missing: Vec<String>,
}
