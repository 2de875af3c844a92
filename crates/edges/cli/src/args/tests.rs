use clap::CommandFactory as _;

use super::Cli;
use super::groups::grouped;

/// Columns that help is wrapped to.
const WIDTH: usize = 110;

/// Proves the `--help` of every command: a change of a word or an option shows in a review.
#[test]
fn help_of_every_command() {
    let mut command = grouped(Cli::command(), Some(WIDTH)).term_width(WIDTH);
    command.build();
    check_help(&mut command, "trackway");
}

fn check_help(command: &mut clap::Command, path: &str) {
    insta::assert_snapshot!(path.replace(' ', "_"), command.render_long_help());
    for subcommand in command.get_subcommands_mut().filter(|subcommand| !subcommand.is_hide_set()) {
        let path = format!("{path} {}", subcommand.get_name());
        check_help(subcommand, &path);
    }
}

/// Proves that no example of a help text is wrapped in a terminal of 100 columns.
#[test]
fn examples_fit_into_a_terminal() {
    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_example = |line: &&str| line.starts_with("  ");
        for line in help.lines().filter(is_example) {
            assert!(line.chars().count() <= 100, "`{}`: {line}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

/// Proves that no two arguments are in each other's way, and that defaults are values that are accepted.
#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}
