//! How a table is read.

use clap::Args;
use trackway_formats::runfile::DecimalMark;

use super::{Word, one_of};

/// Input files, and how to read them.
#[derive(Debug, Args)]
pub struct TableArgs {
    /// Files (.parquet, .csv, .tsv, .jsonl, .txt), globs or folders, read as one table
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Whether CSV files have a header.
const HEADERS: [Word<bool>; 2] =
    [("yes", true, "The first row names the columns"), ("no", false, "The first row is data")];

/// The decimal mark of numbers.
const DECIMAL_MARKS: [Word<DecimalMark>; 2] = [
    (".", DecimalMark::Point, "A point: 1234.50"),
    (",", DecimalMark::Comma, "A comma, with or without dots between thousands: 1234,50 and 1.234,50"),
];

/// How to read CSV.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// Column names, for CSV files without a header
    #[arg(long = "column-names", value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Whether the first row of CSV files is a header [default: detected]
    #[arg(long, value_name = "WHEN", value_parser = one_of(&HEADERS))]
    pub header: Option<bool>,
    /// Field separator of CSV files [default: detected]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<char>,
    /// Leave out lines of CSV files that begin with this character
    #[arg(long, value_name = "CHAR")]
    pub comment: Option<char>,
    /// Number of lines to skip at the beginning of CSV files, such as a title
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub skip_lines: u64,
    /// Rows of CSV files end with a separator
    #[arg(long)]
    pub trailing_separator: bool,
    /// Decimal mark of numbers in CSV files [default: .]
    #[arg(long, value_name = "CHAR", value_parser = one_of(&DECIMAL_MARKS))]
    pub decimal: Option<DecimalMark>,
    /// String that marks a missing value; repeatable [default: ?, NA, null and similar]
    #[arg(long, value_name = "TEXT")]
    pub missing: Vec<String>,
}

/// Whether what is not read as it is written is an error.
#[derive(Debug, Args)]
pub struct StrictArgs {
    /// Exit with 3 if anything is left out, cut, renamed or read otherwise than it is written
    #[arg(long)]
    pub strict: bool,
}
