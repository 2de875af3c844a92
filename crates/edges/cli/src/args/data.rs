use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use trackway_flows::data::clean::{Duplicates, Protection};
use trackway_flows::data::split::SplitMethod;

use super::reading::{ReadingArgs, StrictArgs, TableArgs};
use super::snapshot::SnapshotArgs;
use super::{Word, one_of};

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Profile a data set in one pass: types, missing values, distributions, association with the label
    #[command(after_help = "Examples:
  trackway data profile train.parquet
  trackway data profile train.csv --label income --json
  trackway data profile 'data/*.csv' --column-names age,workclass,income --missing '?'
  trackway data profile train.parquet --out train.profile.json   for drift without the data")]
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
  trackway data check train.csv --label hired --fairness sex,race --json
  trackway data check users.parquet --sign-off approved.toml   who approved what
  trackway data check train.csv --label y --probabilities scores.csv --only data.label_noise")]
    Check(Box<CheckArgs>),
    /// Detect drift between two data sets, column by column, beyond the sampling noise of their sizes; exits with 3 if
    /// the data as a whole drifted
    #[command(after_help = "Examples:
  trackway data drift --reference train.parquet --current new.parquet
  trackway data drift --reference train.profile.json --current new.parquet --label income --json
  trackway data drift --reference snapshot:train --current new.parquet   its data is not read
  trackway data drift --reference train.parquet --current new.parquet --ignore batch,source
  trackway data drift --reference train.parquet --current new.parquet --joint   multivariate drift
  trackway data drift --reference train.parquet --current new.parquet --fail-on warn")]
    Drift(DriftArgs),
    /// Detect leakage: overlap between training and test data, and features that reveal the label; exits with 3 if a
    /// check blocks, or a requested check could not run
    #[command(
        after_help = "Checks: rows, groups, time, conflicts, near_duplicates, target, identifiers, preprocessing

Examples:
  trackway data leakage --train train.parquet --test test.parquet --label income
  trackway data leakage --train train.csv --test test.csv --group-by user_id --time created_at
  trackway data leakage --train train.parquet --test test.parquet --only rows,conflicts \\
    --label income
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
  trackway data snapshot images/ --keep-bytes --name images   keep the files, to restore them
  trackway data snapshot restore images --out restored/
  trackway data snapshot images/ --json

A path that is called like a command below is written with a folder: ./restore.")]
    Snapshot(Box<SnapshotArgs>),
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
  trackway data split all.csv --strategy stratified-group --label income --group-by household \\
    --parts train=0.8,test=0.2 --folds 5 --out split --write-rows
  trackway data split train.parquet --rungs 1%,10%,100% --out rungs")]
    Split(SplitArgs),
    /// Write a table without duplicates, invalid rows and personal data, with an account of every row
    #[command(
        after_help = "Rows read = rows written + duplicates dropped + rows quarantined; if they do not add up, nothing is written.

Examples:
  trackway data clean raw.csv --out clean.parquet
  trackway data clean raw.csv --out clean.csv --schema schema.toml --rule 'end >= start' \\
    --quarantine rejected.csv
  trackway data clean users.parquet --out users-clean.parquet --personal hash --key-file hash.key
  trackway data clean users.csv --out clean.csv --mask name --hash mail --drop phone \\
    --key-variable HASH_KEY"
    )]
    Clean(Box<CleanArgs>),
    /// Join features as they were known at the time of each row (point-in-time join), and count what a plain join would
    /// have leaked
    #[command(after_help = "Every left row is written, with nulls if nothing was known at its time.

Examples:
  trackway data as-of --left labels.parquet --right features.parquet --on user --left-time at \\
    --right-time updated --out joined.parquet
  trackway data as-of --left labels.csv --right features.csv --on user,shop --left-time at \\
    --right-time at --exclude-same-time --max-age 30d --out out.csv")]
    AsOf(AsOfArgs),
    /// Compare the feature values of the same keys in training and serving (train/serve skew); exits with 3 if a column
    /// is skewed
    #[command(after_help = "Examples:
  trackway data skew --train train.parquet --serve logged.parquet --on user
  trackway data skew --train train.parquet --serve logged.parquet --on user --time at \\
    --tolerance 0.001 --equal-min 0.95 --json")]
    Skew(SkewArgs),
}

#[derive(Debug, Args)]
pub struct InferArgs {
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
    /// Write to this file instead of stdout; an existing file is not overwritten
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
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
    #[command(flatten)]
    pub strict: StrictArgs,
    /// Target column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Columns of protected groups, such as sex or age band: reports row counts and label rates per group
    #[arg(long = "fairness", value_name = "COLUMNS", value_delimiter = ',')]
    pub group_by: Vec<String>,
    /// Columns that do not count when rows are compared, besides identifiers
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
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
    /// A column is gone, of another type or empty, the label has new values, or half of the features drifted
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
    /// Columns not to compare; identifiers, times and free texts are set apart anyway
    #[arg(long = "ignore", value_name = "COLUMNS", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Train a domain classifier to detect multivariate drift; needs the rows of both data sets
    #[arg(long)]
    pub joint: bool,
    /// Exit with 3 from this verdict on
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = FailOn::Block)]
    pub fail_on: FailOn,
    /// Compare numeric columns on all rows instead of a sample of at least 200,000
    #[arg(long)]
    pub all_rows: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
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
    #[arg(long = "group-by", value_name = "COLUMN")]
    pub group: Option<String>,
    /// Timestamp column: test rows must be later than training rows
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Columns that do not count when rows are compared, besides identifiers
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Run only these checks [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Skip these checks
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub skip: Vec<String>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
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

/// Split strategy.
pub(super) const SPLIT_METHODS: [Word<SplitMethod>; 5] = [
    ("hash", SplitMethod::Hash, "By hash of the row or of --key: equal rows stay together"),
    ("group", SplitMethod::Group, "Whole groups (--group-by)"),
    ("stratified", SplitMethod::Stratified, "Equal label fractions in every part (--label)"),
    (
        "stratified-group",
        SplitMethod::StratifiedGroup,
        "Whole groups, with label fractions as equal as possible",
    ),
    ("time", SplitMethod::Time, "By time: later parts hold later rows (--time)"),
];

#[derive(Debug, Args)]
pub struct SplitArgs {
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
    /// Split strategy [default: group with --group-by, time with --time, otherwise hash]
    #[arg(long, value_name = "STRATEGY", value_parser = one_of(&SPLIT_METHODS))]
    pub strategy: Option<SplitMethod>,
    /// Parts and their fractions, which sum to 1: `train=0.8,test=0.2`
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub parts: Vec<String>,
    /// Number of cross-validation folds of the first part
    #[arg(long, value_name = "N")]
    pub folds: Option<usize>,
    /// Key column that identifies a row [default: all columns]
    #[arg(long, value_name = "COLUMN")]
    pub key: Option<String>,
    /// Target column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Group column whose values stay in one part, such as a user id
    #[arg(long = "group-by", value_name = "COLUMN")]
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
    #[arg(long, short = 'o', value_name = "DIR")]
    pub out: PathBuf,
    /// Also write the rows of each part as a Parquet file
    #[arg(long)]
    pub write_rows: bool,
}

/// What becomes of a row that equals an earlier one.
const DUPLICATES: [Word<Duplicates>; 2] =
    [("drop", Duplicates::Drop, "Leave it out"), ("keep", Duplicates::Keep, "Write it, and count it")];

/// What becomes of a column with personal data.
const PROTECTIONS: [Word<Protection>; 3] = [
    (
        "mask",
        Protection::Mask,
        "Hide all but the ends of personal data, all but the first letter of other values",
    ),
    ("hash", Protection::Hash, "HMAC-SHA256 with the key: equal values stay equal"),
    ("drop", Protection::Drop, "Leave the column out"),
];

#[derive(Debug, Args)]
pub struct CleanArgs {
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
    /// Cleaned table (.parquet, .csv, .tsv, .jsonl)
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: PathBuf,
    /// Rows that are set aside, with the reason of each [default: OUT with `.quarantine` before its extension]
    #[arg(long, value_name = "FILE")]
    pub quarantine: Option<PathBuf>,
    /// Schema file; rows that break it are set aside
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// SQL condition; rows for which it is false are set aside; repeatable
    #[arg(long, value_name = "SQL")]
    pub rule: Vec<String>,
    /// How to treat rows that equal an earlier row in every cell
    #[arg(long, value_name = "WHAT", value_parser = one_of(&DUPLICATES), default_value = "drop")]
    pub duplicates: Duplicates,
    /// Search for personal data and protect the columns that have some
    #[arg(long, value_name = "HOW", value_parser = one_of(&PROTECTIONS))]
    pub personal: Option<Protection>,
    /// Columns to mask
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub mask: Vec<String>,
    /// Columns to hash with the key
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub hash: Vec<String>,
    /// Columns to leave out
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub drop: Vec<String>,
    /// File with the key of hashed columns, of at least 16 bytes
    #[arg(long, value_name = "FILE", conflicts_with = "key_variable")]
    pub key_file: Option<PathBuf>,
    /// Environment variable with the key of hashed columns
    #[arg(long, value_name = "NAME")]
    pub key_variable: Option<String>,
}

#[derive(Debug, Args)]
pub struct AsOfArgs {
    /// Rows with a time, such as labels: files, globs or folders
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub left: Vec<String>,
    /// Rows that become known at a time, such as features
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub right: Vec<String>,
    /// Key columns, which both sides have
    #[arg(long, required = true, value_name = "COLUMNS", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Time of a left row: a timestamp or a whole number
    #[arg(long, value_name = "COLUMN")]
    pub left_time: String,
    /// Time at which a right row becomes known
    #[arg(long, value_name = "COLUMN")]
    pub right_time: String,
    /// Take only right rows from before the left row's time, not those of the same time
    #[arg(long = "exclude-same-time")]
    pub strict: bool,
    /// How much older a right row may be: `30d` or `12h`, or a whole number for times that are whole numbers
    #[arg(long = "max-age", value_name = "AGE")]
    pub tolerance: Option<String>,
    /// Joined table (.parquet, .csv, .tsv, .jsonl)
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Exit with 3 if anything is left out, cut, renamed or read otherwise than it is written
    #[arg(long = "strict")]
    pub strict_reading: bool,
}

#[derive(Debug, Args)]
pub struct SkewArgs {
    /// Features in training: files, globs or folders
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub train: Vec<String>,
    /// Features in serving, such as a log of requests
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub serve: Vec<String>,
    /// Key columns, which both sides have
    #[arg(long, required = true, value_name = "COLUMNS", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Time column that must be the same on both sides, besides the key
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Relative difference up to which numbers are equal
    #[arg(long, value_name = "FRACTION", default_value_t = 1e-6)]
    pub tolerance: f64,
    /// A column with a smaller fraction of equal rows is skewed
    #[arg(long, value_name = "FRACTION", default_value_t = 0.99)]
    pub equal_min: f64,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
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
    #[command(flatten)]
    pub strict: StrictArgs,
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub strict: StrictArgs,
    /// Target column
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Save the profile to this file
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
}
