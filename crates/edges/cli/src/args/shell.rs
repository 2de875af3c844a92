//! What surrounds the command line: its settings, and files for a shell and for `man`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway config completions bash > ~/.local/share/bash-completion/completions/trackway
  trackway config completions zsh > ~/.zfunc/_trackway
  trackway config completions fish > ~/.config/fish/completions/trackway.fish")]
pub struct CompletionsArgs {
    /// Shell
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway config
  trackway config --json

The command line takes precedence, then the environment, the project's settings file \
(`.trackway/config.toml`, the nearest from the working directory upwards), the user's \
(`~/.config/trackway/config.toml`) and the default. See docs/settings.md.")]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Send a test notification to the webhook of a run file or of the settings
    Notify(NotifyArgs),
    /// Print a shell completion script
    Completions(CompletionsArgs),
    /// Write man pages
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway schema
  trackway schema runs > runs.schema.json

The documents are described in docs/json.md.")]
pub struct SchemaArgs {
    /// Document [default: list all documents]
    #[arg(value_name = "DOCUMENT")]
    pub document: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway config man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Output folder; created if missing, existing pages of Trackway are replaced
    #[arg(long, short = 'o', value_name = "DIR")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  TRACKWAY_WEBHOOK=https://hooks.example.org/T0/B0 trackway config notify
  trackway config notify trackway.toml            the webhook of its section [notify]
  trackway config notify --json                   what is sent, as it is sent

Exit codes: 0 the webhook accepted it; 1 it did not; 2 no webhook is set")]
pub struct NotifyArgs {
    /// Run file whose `[notify]` names the webhook [default: the setting `webhook`]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}
