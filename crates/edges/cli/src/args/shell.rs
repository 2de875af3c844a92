//! What surrounds the command line: its settings, and files for a shell and for `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway completions bash > ~/.local/share/bash-completion/completions/trackway
  trackway completions zsh > ~/.zfunc/_trackway
  trackway completions fish > ~/.config/fish/completions/trackway.fish")]
pub struct CompletionsArgs {
    /// Shell
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway config
  trackway config --json

The command line takes precedence, then the environment, the project's settings file
(`.trackway/config.toml`, the nearest from the working directory upwards), the user's
(`~/.config/trackway/config.toml`) and the default. See docs/settings.md.")]
pub struct ConfigArgs {}

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
  trackway man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Output folder; created if missing, existing pages of Trackway are replaced
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  TRACKWAY_WEBHOOK=https://hooks.example.org/T0/B0 trackway notify
  trackway notify trackway.toml            the webhook of its section [notify]
  trackway notify --json                   what is sent, as it is sent

Exit codes: 0 the webhook has taken it; 1 it has not; 2 no webhook is set")]
pub struct NotifyArgs {
    /// Run file whose `[notify]` names the webhook [default: the setting `webhook`]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}
