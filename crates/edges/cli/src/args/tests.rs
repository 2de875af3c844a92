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

/// Proves that no two arguments are in each other's way, and that defaults are values that are accepted.
#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}
