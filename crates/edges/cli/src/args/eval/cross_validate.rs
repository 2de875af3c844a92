use std::path::PathBuf;

use clap::Args;
use trackway_flows::data::split::{DEFAULT_SEED, SplitMethod};

use crate::args::data::SPLIT_METHODS;
use crate::args::one_of;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway eval cross-validate trackway.toml                5 folds
  trackway eval cross-validate trackway.toml --folds 10 --strategy stratified
  trackway eval cross-validate trackway.toml --set run.seed=7 --json

The rows of `[data.train]` are divided into folds. For each, the run file is trained on the other folds and its checkpoint \
evaluated on the fold with `[evaluate]`, without its gates. The script gets the rows of a fold as a file: in its command in \
place of the path of `[data.train]`, or with `run.data(\"train\")`. See docs/cross-validation.md.

Exit codes: 0 every fold was evaluated; 2 nothing was launched; 4 a fold did not train, or was not evaluated")]
pub struct CrossValidateArgs {
    /// Run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Number of folds
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub folds: usize,
    /// Split strategy of the folds [default: group if `[data.train]` has a `group`, otherwise hash]
    #[arg(long, value_name = "STRATEGY", value_parser = one_of(&SPLIT_METHODS))]
    pub strategy: Option<SplitMethod>,
    /// Random seed of the folds
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Folder for the rows of the folds [default: NAME-folds, next to the run file]
    #[arg(long, short = 'o', value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Override a key of the run file; the value is parsed as TOML, otherwise taken as a string
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}
