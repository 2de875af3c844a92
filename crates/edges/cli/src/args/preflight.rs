use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway preflight trackway.toml
  trackway preflight trackway.toml --only leakage,data.drift
  trackway preflight trackway.toml --skip data.drift --why 'the split is by time'
  trackway preflight trackway.toml --html report.html

A name is a check (`leakage.rows`) or a group of checks (`leakage`); docs/preflight.md lists them.

Exit codes: 0 the run may start; 3 blocked; 4 interrupted")]
pub struct PreflightArgs {
    /// Run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Override a key of the run file; the value is parsed as TOML, otherwise taken as a string
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Run only these checks
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    #[command(flatten)]
    pub skip: SkipArgs,
    /// Also list checks that do not apply to the run
    #[arg(long)]
    pub all: bool,
    /// Write a self-contained HTML report with histograms
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Checks to skip, with a reason.
#[derive(Debug, Args)]
pub struct SkipArgs {
    /// Skip these checks
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "why")]
    pub skip: Vec<String>,
    /// Reason for skipping checks, recorded in the receipt
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: Option<String>,
}
