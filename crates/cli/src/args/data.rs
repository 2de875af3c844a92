use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Read data once and say what is in it: types, missing values, distributions, how columns go with the label
    #[command(after_help = "Examples:
  trackway data profile train.parquet
  trackway data profile train.csv --label income --json
  trackway data profile 'data/*.csv' --columns age,workclass,income --missing '?'
  trackway data profile train.parquet --save train.profile.json     to compare with later, without the data")]
    Profile(ProfileArgs),
    /// Write down what data is like, as rules to edit and to check later data against
    #[command(after_help = "Examples:
  trackway data infer train.parquet > schema.toml
  trackway data infer 'data/*.csv' --missing '?' --out schema.toml")]
    Infer(InferArgs),
    /// Check every row of data against a schema; ends with 3 where a rule with severity `block` does not hold
    #[command(after_help = "Examples:
  trackway data validate new.parquet --schema schema.toml
  trackway data validate request.jsonl --schema schema.toml --environment serve --json")]
    Validate(ValidateArgs),
    /// Look for what makes data unfit to learn from: columns, rows, labels, personal data, groups; ends with 3 where a
    /// run would be wasted
    #[command(after_help = "Examples:
  trackway data check train.parquet --label income --against test.parquet
  trackway data check train.csv --label hired --group-by sex,race --json
  trackway data check users.parquet --sign-off approved.toml          [[personal]] column, kinds, approved_by, why, until
  trackway data check train.csv --label y --probabilities scores.csv --only data.label_noise")]
    Check(Box<CheckArgs>),
    /// Compare the distributions of two data sets, each column against the noise that samples of these sizes show
    #[command(after_help = "Examples:
  trackway data drift --reference train.parquet --current new.parquet
  trackway data drift --reference train.profile.json --current new.parquet --label income --json
  trackway data drift --reference snapshot:train --current new.parquet        against a snapshot, whose data is not read
  trackway data drift --reference train.parquet --current new.parquet --joint     what no single column shows")]
    Drift(DriftArgs),
    /// Look for what the test data shares with the training data, and for features that know the label; ends with 3
    /// where a check blocks, or could not be made that was asked for
    #[command(
        after_help = "Checks: rows, groups, time, conflicts, near_duplicates, target, identifiers, preprocessing

Examples:
  trackway data leakage --train train.parquet --test test.parquet --label income
  trackway data leakage --train train.csv --test test.csv --group user_id --time created_at
  trackway data leakage --train train.parquet --test test.parquet --only rows,conflicts --label income
  trackway data leakage --train train.jsonl --test test.jsonl --skip near_duplicates"
    )]
    Leakage(LeakageArgs),
    /// Read every image and text of a folder: what does not decode, odd sizes and modes, copies, masks and labels that do
    /// not fit; ends with 3 where files cannot be read or labels name files that are not there
    #[command(after_help = "PNG, JPEG, BMP and WebP are decoded; text files must be UTF-8.

Examples:
  trackway data images data/train
  trackway data images data/images --masks data/masks
  trackway data images data/images --labels labels.csv --json")]
    Images(ImagesArgs),
    /// Keep what data consists of, for good: every file's hash, the schema, the profile; files that did not change are not read again
    #[command(after_help = "Examples:
  trackway data snapshot data/train --name train
  trackway data snapshot 's3://bucket/train/*.parquet' --name train --label income
  trackway data snapshot images/ --json")]
    Snapshot(SnapshotArgs),
    /// List snapshots and the names that point to them
    #[command(after_help = "Examples:
  trackway data ls
  trackway data ls --json")]
    Ls,
    /// Say what is different in the second of two data sets: files, columns, rows, distributions; of two snapshots no data is read
    #[command(after_help = "Examples:
  trackway data diff train data/train        the snapshot `train` and the data as it is now
  trackway data diff 3f9a81c2 snapshot:train --label income --json")]
    Diff(DiffArgs),
    /// Share rows out to parts, folds and stages; always the same, proved disjoint, written down as Parquet
    #[command(after_help = "Examples:
  trackway data split all.parquet --parts train=0.8,test=0.2 --out split
  trackway data split all.csv --by stratified-group --label income --group household --parts train=0.8,test=0.2 --folds 5 --out split --write
  trackway data split train.parquet --stages 1%,10%,100% --out stages")]
    Split(SplitArgs),
}

#[derive(Debug, Args)]
pub struct InferArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// Write it there instead of printing it; a file that exists is not overwritten
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// The rules, as `trackway data infer` writes them
    #[arg(long, value_name = "FILE")]
    pub schema: PathBuf,
    /// `train` or `serve`: columns of the other one are not asked for
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// The column to be predicted
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Columns that tell who a row is about: rows and label by group
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub group_by: Vec<String>,
    /// Data that the model will meet: its labels and categories must be known here
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub against: Vec<String>,
    /// Who allowed which personal data (TOML); what nobody signed for blocks
    #[arg(long, value_name = "FILE")]
    pub sign_off: Option<PathBuf>,
    /// A probability for each class (a column named like it) and row, from your own model, in place of the quick one
    #[arg(long, num_args = 1.., value_name = "PATH", requires = "label")]
    pub probabilities: Vec<String>,
    /// Run these checks only; one that cannot run then ends with 3 too
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave these checks out
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub skip: Vec<String>,
}

#[derive(Debug, Args)]
pub struct DriftArgs {
    /// What the data was: files, a snapshot, or a profile that was saved (.json)
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub reference: Vec<String>,
    /// What the data is now: files, a snapshot, or a profile
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub current: Vec<String>,
    /// The column to be predicted: its shift is told apart
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Let a model tell rows of the two apart: finds shifts that no single column shows; needs the rows of both
    #[arg(long)]
    pub joint: bool,
    /// Compare the numbers of every row, not of a sample of at least 200,000
    #[arg(long)]
    pub all_rows: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Args)]
pub struct LeakageArgs {
    /// Files, globs or folders that are learnt from
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub train: Vec<String>,
    /// Files, globs or folders that are tested with
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    pub test: Vec<String>,
    /// The column to be predicted: rows are compared without it
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// A column whose values must not be on both sides, such as a user
    #[arg(long, value_name = "COLUMN")]
    pub group: Option<String>,
    /// A column that says when: what is tested must be later than what is learnt
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Make these checks only [default: all]
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave these checks out
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
    /// A folder with a mask, or a text with labels, for each image, of the same name but for the ending
    #[arg(long, value_name = "PATH")]
    pub masks: Option<String>,
    /// A table with a column that names the files
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,
}

#[derive(Debug, Args)]
pub struct SnapshotArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// A name that points to it from now on; where it pointed before is remembered
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The column to be predicted: the profile then says how others go with it
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
}

/// By what rows are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitBy {
    /// By the hash of the row, or of --key: equal rows stay together
    Hash,
    /// Groups (--group) stay whole
    Group,
    /// Every part has every label's share (--label)
    Stratified,
    /// Groups stay whole, and labels are shared out as evenly as that allows
    StratifiedGroup,
    /// Later parts hold later rows (--time)
    Time,
}

#[derive(Debug, Args)]
pub struct SplitArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// By what rows are shared out [default: group where --group is named, time where --time is, else hash]
    #[arg(long, value_enum)]
    pub by: Option<SplitBy>,
    /// Names and shares, which sum to 1: `train=0.8,test=0.2`
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub parts: Vec<String>,
    /// So many folds of the first part
    #[arg(long, value_name = "K")]
    pub folds: Option<usize>,
    /// The column that identifies a row [default: its whole content]
    #[arg(long, value_name = "COLUMN")]
    pub key: Option<String>,
    /// The column to be predicted
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// The column whose values must each stay on one side, such as a user
    #[arg(long, value_name = "COLUMN")]
    pub group: Option<String>,
    /// The column that says when a row is from
    #[arg(long, value_name = "COLUMN")]
    pub time: Option<String>,
    /// Another seed gives another split
    #[arg(long, value_name = "N", default_value_t = trackway_app::data::split::DEFAULT_SEED)]
    pub seed: u64,
    /// Nested subsets: each holds the smaller ones
    #[arg(long, value_name = "SHARES", value_delimiter = ',')]
    pub stages: Vec<String>,
    /// The folder that the files go to
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write the parts themselves too, each as a Parquet file
    #[arg(long)]
    pub write: bool,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A snapshot (its name, its id or the beginning of it), or a file, glob or folder
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// The same of what it is compared with
    #[arg(value_name = "AFTER")]
    pub after: String,
    /// The column to be predicted: its shift is told apart
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub table: TableArgs,
    /// The column to be predicted
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
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
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How CSV is read.
#[derive(Debug, Args)]
pub struct ReadingArgs {
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
