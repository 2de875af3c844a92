use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway preflight trackway.toml
  trackway preflight trackway.toml --only leakage --only data.drift
  trackway preflight trackway.toml --skip data.drift --why 'the split is by time'
  trackway preflight trackway.toml --html report.html

A name is that of a check (`leakage.rows`) or of a family (`leakage`). docs/preflight.md lists them.

Exit codes: 0 the run may start; 3 it must not; 4 stopped before it was through")]
pub struct PreflightArgs {
    /// The run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Override a key of the run file; the value is read as TOML, or else as text
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Only this check; may be given several times
    #[arg(long, value_name = "CHECK")]
    pub only: Vec<String>,
    #[command(flatten)]
    pub skip: SkipArgs,
    /// Write a report with histograms: one file, which needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Checks that are left out. Whoever leaves one out says why.
#[derive(Debug, Args)]
pub struct SkipArgs {
    /// Leave this check out; may be given several times
    #[arg(long, value_name = "CHECK", requires = "why")]
    pub skip: Vec<String>,
    /// Why checks are left out; it stands in the receipt
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: Option<String>,
}
