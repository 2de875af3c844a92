//! The commands as `trackway --help` shows them: in groups under headings.

use clap::Command;

/// Headings, and the commands under each in the order in which they are shown.
pub const GROUPS: [(&str, &[&str]); 4] = [
    ("Run", &["init", "run", "preflight", "memory", "rehearse", "prove", "resume", "stop", "rollback"]),
    (
        "Inspect",
        &[
            "runs", "attempts", "watch", "logs", "explain", "diagnose", "postmortem", "compare", "export",
            "sql", "classify", "verify", "reproduce", "amend",
        ],
    ),
    ("Data and models", &["data", "checkpoint", "eval", "gates", "registry"]),
    ("Housekeeping", &["config", "gc", "doctor", "tick", "import", "schema"]),
];

/// `command` with the groups in its help, wrapped to `width` columns; to those of the terminal where none is given.
pub fn grouped(command: Command, width: Option<usize>) -> Command {
    let header = command.get_styles().get_header();
    let groups = GROUPS.map(|(heading, names)| {
        format!("{header}{heading}:{header:#}\n{}\n", listed(&command, names, width))
    });
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{header}Options:{header:#}\n{{options}}{{after-help}}",
        groups.concat()
    );
    command.help_template(template)
}

/// A line for each of the commands, in clap's own layout.
fn listed(command: &Command, names: &[&'static str], width: Option<usize>) -> String {
    let about = |name: &'static str| {
        let about = command.find_subcommand(name).and_then(Command::get_about).cloned();
        Command::new(name).about(about.unwrap_or_default())
    };
    let mut group = Command::new("group")
        .disable_help_subcommand(true)
        .help_template("{subcommands}")
        .subcommands(names.iter().copied().map(about));
    if let Some(width) = width {
        group = group.term_width(width);
    }
    group.render_help().ansi().to_string()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    /// Proves that every command that may be shown is in one group, once, and that a group holds nothing else.
    #[test]
    fn every_command_is_in_one_group() {
        let cli = Cli::command();
        let visible = cli.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
    }
}
