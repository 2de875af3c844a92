//! `docs/commands.md`: every command, what it does, and the page that describes it, written from the command line itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory as _};

use super::groups::GROUPS;
use super::{Cli, GLOBAL};

/// What describes a command: a page of `docs/` and a heading on it. The longest entry with which a command begins counts.
const SECTIONS: &[(&str, &str)] = &[
    ("init", "run-file.md"),
    ("run", "run-file.md"),
    ("preflight", "preflight.md"),
    ("memory", "memory.md"),
    ("rehearse", "rehearsals.md"),
    ("prove", "resume-proof.md"),
    ("resume", "checkpoints.md#resuming"),
    ("stop", "unattended.md#without-a-terminal"),
    ("rollback", "detectors.md#rolling-back"),
    ("runs", "tracking.md#finding-runs"),
    ("runs bless", "health.md#a-person-knows-better"),
    ("attempts", "ledger.md#training_attempts"),
    ("watch", "unattended.md#without-a-terminal"),
    ("logs", "tracking.md#terminal-output"),
    ("explain", "termination-reasons.md"),
    ("diagnose", "diagnosis.md"),
    ("postmortem", "json.md#postmortem"),
    ("compare", "tracking.md#comparing-runs"),
    ("export", "tracking.md#export"),
    ("sql", "ledger.md#tables"),
    ("classify", "termination-reasons.md#rules-of-terminations"),
    ("verify", "ledger.md#what-verify-covers"),
    ("reproduce", "json.md#reproduce"),
    ("amend", "tracking.md#names-notes-tags-and-hidden-runs"),
    ("data profile", "data.md#profile"),
    ("data snapshot", "data.md#snapshot"),
    ("data ls", "data.md#snapshot"),
    ("data diff", "data.md#snapshot"),
    ("data infer", "data.md#schema"),
    ("data validate", "data.md#schema"),
    ("data check", "data.md#integrity"),
    ("data drift", "data.md#drift"),
    ("data leakage", "data.md#leakage"),
    ("data images", "data.md#images-and-texts"),
    ("data split", "data.md#split"),
    ("data clean", "data.md#clean"),
    ("data as-of", "data.md#as-of-join"),
    ("data skew", "data.md#as-of-join"),
    ("checkpoint", "checkpoints.md"),
    ("checkpoint now", "checkpoint-cadence.md#when-a-checkpoint-is-made"),
    ("checkpoint gc", "checkpoints.md#retention"),
    ("checkpoint pin", "checkpoints.md#retention"),
    ("checkpoint unpin", "checkpoints.md#retention"),
    ("checkpoint clear", "checkpoints.md#unsafe-checkpoints"),
    ("checkpoint resume-target", "checkpoints.md#resuming"),
    ("eval", "evaluations.md"),
    ("eval import", "evaluations.md#results-of-other-tools"),
    ("eval metrics", "metrics.md"),
    ("eval slices", "slices.md"),
    ("eval cross-validate", "cross-validation.md"),
    ("eval score", "scoring.md#predictions-for-a-table"),
    ("eval probe", "scoring.md#probing-a-model"),
    ("gates judge", "gates.md#receipts"),
    ("gates test", "gates.md#verifying-a-gate"),
    ("gates fixture", "gates.md#verifying-a-gate"),
    ("registry", "registry.md"),
    ("registry approve", "registry.md#approvals"),
    ("registry policy", "registry.md#the-policy"),
    ("registry promote", "registry.md#stages"),
    ("registry rollback", "registry.md#rolling-back"),
    ("registry export", "registry.md#files"),
    ("config", "settings.md"),
    ("config notify", "unattended.md#notifications"),
    ("config completions", "building.md#binary-without-python"),
    ("config man", "building.md#binary-without-python"),
    ("gc", "tracking.md#retention"),
    ("doctor", "ledger.md#when-the-ledger-is-lost"),
    ("tick", "unattended.md#tick"),
    ("import", "tracking.md#import"),
    ("schema", "json.md"),
];

const BEGINNING: &str = "\
# Commands

<!-- Written from the command line: run the tests of crates/edges/cli with TRACKWAY_BLESS=1 after a change. -->

`trackway COMMAND --help` shows the options of a command, with examples. Runs and attempts are named by id, part of an id, name or
`last` ([names](names.md)).
";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

/// A heading as the part of a link behind `#`.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The heading that a section names; the page's title, up to a colon, if it names none.
fn heading(section: &str) -> String {
    let (page, wanted) = section.split_once('#').unwrap_or((section, ""));
    let text = std::fs::read_to_string(docs().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let found = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
        .find(|heading| wanted.is_empty() || anchor(heading) == wanted)
        .unwrap_or_else(|| panic!("docs/{section} does not exist"));
    found.split(':').next().unwrap_or(found).to_owned()
}

/// The entry of `SECTIONS` for a command, such as `data drift`.
fn entry(command: &str) -> (&'static str, &'static str) {
    let begins = |words: &str| {
        command.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let entries = SECTIONS.iter().filter(|(words, _)| begins(words));
    *entries.max_by_key(|(words, _)| words.len()).unwrap_or_else(|| panic!("`{command}` has no section"))
}

/// How a command is called, without the options that may be left out.
fn usage(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    let first = usage.lines().next().unwrap_or_default().trim_start_matches("Usage: ");
    first.replace(" [OPTIONS]", "").replace(" [COMMAND]", "").replace('|', "\\|")
}

/// What a command does, and its other names.
fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: String = command.get_visible_aliases().map(|alias| format!("; also `{alias}`")).collect();
    format!("{about}{aliases}").replace('|', "\\|")
}

/// A row for a command that does something itself, and the rows of those below it.
fn write_rows(command: &mut Command, words: &str, page: &mut String, used: &mut Vec<&'static str>) {
    if !command.is_subcommand_required_set() {
        let (entry, section) = entry(words);
        used.push(entry);
        let _ = writeln!(
            page,
            "| `{}` | {} | [{}]({section}) |",
            usage(command),
            about(command),
            heading(section)
        );
    }
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        let words = format!("{words} {}", below.get_name());
        write_rows(below, &words, page, used);
    }
}

/// An option of every command.
fn option_row(option: &Arg) -> String {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let variable = option.get_env().map(|name| format!("; the variable `{}`", name.to_string_lossy()));
    format!("| `{option}` | {help}{} |\n", variable.unwrap_or_default())
}

/// The page, and the entries of `SECTIONS` that it uses.
fn page() -> (String, Vec<&'static str>) {
    let mut trackway = Cli::command();
    trackway.build();
    let mut page = BEGINNING.to_owned();
    let mut used = Vec::new();
    for (title, commands) in GROUPS {
        let _ = write!(page, "\n## {title}\n| command | what it does | described in |\n|---|---|---|\n");
        for name in commands {
            let command =
                trackway.find_subcommand_mut(name).unwrap_or_else(|| panic!("`{name}` is not a command"));
            write_rows(command, name, &mut page, &mut used);
        }
    }
    page.push_str("\n## Options of every command\n| option | meaning |\n|---|---|\n");
    page.extend(
        trackway.get_arguments().filter(|option| option.get_help_heading() == Some(GLOBAL)).map(option_row),
    );
    let help = trackway.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    let _ = write!(page, "\n## Exit codes\n```text\n{}\n```\n", codes.trim_end());
    (page, used)
}

/// Proves that `docs/commands.md` has every command as the command line has it, with a section that exists
/// (`TRACKWAY_BLESS=1` writes it), and that no section is listed for a command that does not exist.
#[test]
fn the_page_of_commands_is_the_command_line() {
    let (page, used) = page();
    let path = docs().join("commands.md");
    if std::env::var_os("TRACKWAY_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page, "run with TRACKWAY_BLESS=1");
    let unused: Vec<&str> =
        SECTIONS.iter().map(|(words, _)| *words).filter(|words| !used.contains(words)).collect();
    assert_eq!(unused, Vec::<&str>::new(), "sections of no command");
}
