//! Files for a shell and for `man`.

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
  trackway man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Output folder; created if missing, existing pages of Trackway are replaced
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
