use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway init train.py
  trackway init train.py -- --lr 0.001 --data data/train.csv
  trackway init train.py --out jobs/income.toml
  trackway init --from last

It looks at the script's imports, at data files that the arguments or the script name or that are in the \
folder and in `data`, at the column that is predicted, at git and at the GPUs of this machine. In a \
terminal it prompts for command, name and data; Enter accepts what it found. With --from it takes command, \
variables, parameters and checkpoints of a run that was started without a run file, and prompts for nothing. \
See docs/run-file.md.

Exit codes: 0 written; 2 the file exists, or no script was found; 6 the script or the run does not exist")]
pub struct InitArgs {
    /// Script that trains [default: `train.py`, `main.py`, `run.py`, or the only Python file]
    #[arg(value_name = "SCRIPT")]
    pub script: Option<PathBuf>,
    /// Run without a run file whose command, variables, parameters and checkpoints are taken: its id or name, or `last`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["script", "arguments"])]
    pub from: Option<String>,
    /// Run file to write
    #[arg(long, short = 'o', value_name = "FILE", default_value = "trackway.toml")]
    pub out: PathBuf,
    /// Replace an existing file
    #[arg(long, short = 'f')]
    pub force: bool,
    /// Arguments of the script
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}
