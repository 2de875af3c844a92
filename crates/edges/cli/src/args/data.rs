use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Profile a data set in one pass: types, missing values, distributions, association with the label
    #[command(after_help = "Examples:
  trackway data profile train.parquet
  trackway data profile train.csv --label income --json
  trackway data profile 'data/*.csv' --columns age,workclass,income --missing '?'
  trackway data profile train.parquet --save train.profile.json     for later drift checks without the data")]
    Profile(ProfileArgs),
    /// Infer a schema from data, to edit and to validate later data against
    #[command(after_help = "Examples:
  trackway data infer train.parquet > schema.toml
  trackway data infer 'data/*.csv' --missing '?' --out schema.toml")]
    Infer(InferArgs),
    /// Validate every row against a schema; exits with 3 if a rule with severity `block` is violated
    #[command(after_help = "Examples:
  trackway data validate new.parquet --schema schema.toml
  trackway data validate request.jsonl --schema schema.toml --environment serve --json")]
    Validate(ValidateArgs),
    /// Check data quality: columns, rows, labels, personal data, groups; exits with 3 if a check blocks
    #[command(after_help = "Examples:
  trackway data check train.parquet --label income --against test.parquet
  trackway data check train.csv --label hired --group-by sex,race --json
  trackway data check users.parquet --sign-off approved.toml          [[personal]] column, kinds, approved_by, why, until
  trackway data check train.csv --label y --probabilities scores.csv --only data.label_noise")]
    Check(Box<CheckArgs>),
    /// Detect drift between two data sets, column by column, beyond the sampling noise of their sizes; exits with 3 if
    /// the data as a whole drifted
    #[command(after_help = "Examples:
  trackway data drift --reference train.parquet --current new.parquet
  trackway data drift --reference train.profile.json --current new.parquet --label income --json
  trackway data drift --reference snapshot:train --current new.parquet        against a snapshot, without reading its data
  trackway data drift --reference train.parquet --current new.parquet --joint     multivariate drift
  trackway data drift --reference train.parquet --current new.parquet --fail-on warn     in CI: exit code 3 for any drift")]
    Drift(DriftArgs),
    /// Detect leakage: overlap between training and test data, and features that reveal the label; exits with 3 if a
    /// check blocks, or a requested check could not run
    #[command(
        after_help = "Checks: rows, groups, time, conflicts, near_duplicates, target, identifiers, preprocessing

Examples:
  trackway data leakage --train train.parquet --test test.parquet --label income
  trackway data leakage --train train.csv --test test.csv --group user_id --time created_at
  trackway data leakage --train train.parquet --test test.parquet --only rows,conflicts --label income
  trackway data leakage --train train.jsonl --test test.jsonl --skip near_duplicates"
    )]
    Leakage(LeakageArgs),
    /// Check images and text files: decoding errors, unusual sizes and modes, duplicates, mismatched masks and labels;
    /// exits with 3 if files cannot be read or labels name missing files
    #[command(after_help = "PNG, JPEG, BMP and WebP are decoded; text files must be UTF-8.

Examples:
  trackway data images data/train
  trackway data images data/images --masks data/masks
  trackway data images data/images --labels labels.csv --json")]
    Images(ImagesArgs),
    /// Record a snapshot of a data set: file hashes, schema and profile; unchanged files are not read again
    #[command(after_help = "Examples:
  trackway data snapshot data/train --name train
  trackway data snapshot 's3://bucket/train/*.parquet' --name train --label income
  trackway data snapshot images/ --json")]
    Snapshot(SnapshotArgs),
    /// List snapshots and their names
    #[command(after_help = "Examples:
  trackway data ls
  trackway data ls --json")]
    Ls,
    /// Compare two data sets: files, columns, rows, distributions; two snapshots are compared without reading data
    #[command(after_help = "Examples:
  trackway data diff train data/train        the snapshot `train` and the current data
  trackway data diff 3f9a81c2 snapshot:train --label income --json")]
    Diff(DiffArgs),
    /// Split rows into parts, folds and nested subsets; deterministic and verified to be disjoint
    #[command(after_help = "Examples:
  trackway data split all.parquet --parts train=0.8,test=0.2 --out split
  trackway data split all.csv --by stratified-group --label income --group household --parts train=0.8,test=0.2 --folds 5 --out split --write
  trackway data split train.parquet --rungs 1%,10%,100% --out rungs")]
    Split(SplitArgs),
}

#[derive(Debug, Args)]
pub struct InferArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Write to this file instead of stdout; an existing file is not overwritten
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Schema file, as written by `trackway data infer`
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// Environment, `train` or `serve`: columns of the other one are not required
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Target column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Group columns, such as sex or age band: reports row counts and label rates per group
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub group_by: Vec<String>,
    /// Column that does not count when rows are compared, besides identifiers; repeatable
    #[arg(long, value_name = "COLUMN")]
    pub ignore: Vec<String>,
    /// Data that the model will be used on: labels and categories that are new there are reported
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub against: Vec<String>,
    /// Approvals of personal data (TOML); unapproved personal data blocks
    #[arg(long, value_name = "FILE")]
    pub sign_off: Option<PathBuf>,
    /// Predicted class probabilities from your own model, for label-error detection: one column per class, named after
    /// it
    #[arg(long, num_args = 1.., value_name = "PATH", requires = "label")]
    pub probabilities: Vec<String>,
    /// Run only these checks; exits with 3 if one of them cannot run
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Skip these checks
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub skip: Vec<String>,
}

/// From which verdict on a comparison fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A column is gone or of another type, the label has new values, or half of the features drifted
    Block,
    /// Anything drifted
    Warn,
}

#[derive(Debug, Args)]
pub struct DriftArgs {
    /// Reference data: files, a snapshot, or a saved profile (.json)
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub reference: Vec<String>,
    /// Current data: files, a snapshot, or a saved profile (.json)
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub current: Vec<String>,
    /// Target column (label shift is reported separately)
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Train a domain classifier to detect multivariate drift; needs the rows of both data sets
    #[arg(long)]
    pub joint: bool,
    /// Exit with 3 from this verdict on
    #[arg(long, value_name = "VERDICT", value_enum, default_value_t = FailOn::Block)]
    pub fail_on: FailOn,
    /// Compare numeric columns on all rows instead of a sample of at least 200,000
    #[arg(long)]
    pub all_rows: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Args)]
pub struct LeakageArgs {
    /// Training data: files, globs or folders
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub train: Vec<String>,
    /// Test data: files, globs or folders
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub test: Vec<String>,
    /// Target column; rows are compared without it
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Group column whose values must not appear in both, such as a user id
    #[arg(long, value_name = "COLUMN")]
    pub group: Option<String>,
    /// Timestamp column: test rows must be later than training rows
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Column that does not count when rows are compared, besides identifiers; repeatable
    #[arg(long, value_name = "COLUMN")]
    pub ignore: Vec<String>,
    /// Run only these checks [default: all]
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Skip these checks
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    pub skip: Vec<String>,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Args)]
pub struct ImagesArgs {
    /// Files, globs or folders
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// Folder with a mask or a label file per image, with the same file stem
    #[arg(long, value_name = "PATH")]
    pub masks: Option<String>,
    /// Table with a column of file names
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,
}

#[derive(Debug, Args)]
pub struct SnapshotArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Name of the snapshot; an existing name moves, and its history is kept
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Target column; the profile then includes associations with it
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
}

/// Split strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitBy {
    /// By hash of the row or of --key: equal rows stay together
    Hash,
    /// Whole groups (--group)
    Group,
    /// Equal label fractions in every part (--label)
    Stratified,
    /// Whole groups, with label fractions as equal as possible
    StratifiedGroup,
    /// By time: later parts hold later rows (--time)
    Time,
}

#[derive(Debug, Args)]
pub struct SplitArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Split strategy [default: group with --group, time with --time, otherwise hash]
    #[arg(long, value_enum)]
    pub by: Option<SplitBy>,
    /// Parts and their fractions, which sum to 1: `train=0.8,test=0.2`
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub parts: Vec<String>,
    /// Number of cross-validation folds of the first part
    #[arg(long, value_name = "K")]
    pub folds: Option<usize>,
    /// Key column that identifies a row [default: all columns]
    #[arg(long, value_name = "COLUMN")]
    pub key: Option<String>,
    /// Target column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Group column whose values stay in one part, such as a user id
    #[arg(long, value_name = "COLUMN")]
    pub group: Option<String>,
    /// Timestamp column
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = trackway_flows::data::split::DEFAULT_SEED)]
    pub seed: u64,
    /// Fractions of nested subsets: each contains the smaller ones
    #[arg(long, value_name = "FRACTIONS", value_delimiter = ',')]
    pub rungs: Vec<String>,
    /// Output folder
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Also write the rows of each part as a Parquet file
    #[arg(long)]
    pub write: bool,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Snapshot (name, id or prefix of an id), or file, glob or folder
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// Snapshot, file, glob or folder to compare with
    #[arg(value_name = "AFTER")]
    pub after: String,
    /// Target column (label shift is reported separately)
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Target column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Save the profile to this file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Header {
    /// The first row names the columns
    Yes,
    /// The first row is data
    No,
}

/// How to read CSV.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    /// Column names, for CSV files without a header
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Whether the first row of CSV files is a header [default: detected]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub header: Option<Header>,
    /// Field separator of CSV files [default: detected]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<char>,
    /// String that marks a missing value; repeatable [default: ?, NA, null and similar]
    #[arg(long, value_name = "TEXT")]
    pub missing: Vec<String>,
}
