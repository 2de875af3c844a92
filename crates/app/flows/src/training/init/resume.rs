//! The option by which a script continues from a checkpoint, as its text declares it. Pure.

use super::literals::literals;

/// Calls that declare an option: argparse, click and typer, absl.
const DECLARING: [&str; 5] = ["add_argument(", "option(", "Option(", "DEFINE_string(", "DEFINE_bool("];
/// Names of options that name the checkpoint to continue from, or request it; the earlier, the likelier.
const NAMES: [&str; 12] = [
    "resume_from_checkpoint", "resume_from", "resume_path", "resume_checkpoint", "resume", "continue_from",
    "continue_training", "load_checkpoint", "restore_from", "restore", "ckpt_path", "load_ckpt",
];
/// What follows a declaration without a value.
const FLAGS: [&str; 3] = ["store_true", "is_flag=True", "BooleanOptionalAction"];
/// Lines of one declaration at most.
const DECLARATION_LINES_MAX: usize = 6;

/// The arguments that make the script continue, with `{path}` for the checkpoint; none: its text declares no such option.
pub(super) fn resume_arguments(script: &str) -> Option<Vec<String>> {
    let lines: Vec<&str> = script.lines().collect();
    let found = (0..lines.len()).filter_map(|at| declared_at(&lines[at..]));
    let declared = found.min_by_key(|(place, _)| *place).map(|(_, arguments)| arguments);
    declared.or_else(|| takes_init_from(&lines).then(|| vec!["--init_from=resume".to_owned()]))
}

/// The option that the first line declares, with its place among the names.
fn declared_at(lines: &[&str]) -> Option<(usize, Vec<String>)> {
    let start = lines.first()?;
    if !DECLARING.iter().any(|call| start.contains(call)) {
        return None;
    }
    let statement = statement(lines);
    let is_absl = start.contains("DEFINE_");
    let (place, option) = statement.lines().flat_map(literals).find_map(|(_, literal)| {
        let bare = literal.strip_prefix("--").or_else(|| is_absl.then_some(literal))?;
        let place = NAMES.iter().position(|name| *name == bare.replace('-', "_"))?;
        Some((place, format!("--{bare}")))
    })?;
    let is_flag = start.contains("DEFINE_bool") || FLAGS.iter().any(|mark| statement.contains(mark));
    let value = (!is_flag).then(|| "{path}".to_owned());
    Some((place, std::iter::once(option).chain(value).collect()))
}

/// The lines of a call, up to the bracket that closes it.
fn statement(lines: &[&str]) -> String {
    let mut depth = 0_i64;
    let mut taken = Vec::new();
    for line in lines.iter().take(DECLARATION_LINES_MAX) {
        taken.push(*line);
        let count = |bracket: char| line.matches(bracket).count() as i64;
        depth += count('(') - count(')');
        if depth <= 0 {
            break;
        }
    }
    taken.join("\n")
}

/// nanoGPT's way: a global whose value the command line replaces, `init_from = 'scratch' # 'scratch' or 'resume'`.
fn takes_init_from(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.starts_with("init_from") && line.contains('=') && line.contains("scratch"))
        && lines
            .iter()
            .any(|line| line.contains("init_from == 'resume'") || line.contains("init_from == \"resume\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> String {
        resume_arguments(script).map(|words| words.join(" ")).unwrap_or_default()
    }

    /// Proves that options of argparse, click and absl are found, with or without a value, over several lines, and the
    /// likeliest of several.
    #[test]
    fn options_to_continue_are_found() {
        for (script, expected) in [
            ("p.add_argument('--resume', default=None)\n", "--resume {path}"),
            ("p.add_argument(\"--resume\", action=\"store_true\")\n", "--resume"),
            ("p.add_argument(\n    '-r', '--resume-from',\n    type=str,\n)\n", "--resume-from {path}"),
            (
                "p.add_argument(\n    '--resume',\n    help='go on (from the newest)',\n    action='store_true',\n)\n",
                "--resume",
            ),
            ("@click.option('--ckpt-path', type=click.Path())\n", "--ckpt-path {path}"),
            ("flags.DEFINE_string('restore', None, 'a checkpoint')\n", "--restore {path}"),
            (
                "p.add_argument('--resume')\np.add_argument('--resume_from_checkpoint')\n",
                "--resume_from_checkpoint {path}",
            ),
            (
                "init_from = 'scratch' # 'scratch' or 'resume' or 'gpt2*'\nif init_from == 'resume':\n    pass\n",
                "--init_from=resume",
            ),
        ] {
            assert_eq!(found(script), expected, "{script}");
        }
    }

    /// Proves that what only speaks of it declares nothing.
    #[test]
    fn other_text_declares_nothing() {
        for script in [
            "",
            "# p.add_argument('--resume')\n",
            "print('--resume')\n",
            "p.add_argument('--epochs')\nprint('use --resume to continue')\n",
            "p.add_argument('resume_dir')\n",
            "init_from = 'scratch'\n",
        ] {
            assert_eq!(found(script), "", "{script}");
        }
    }
}
