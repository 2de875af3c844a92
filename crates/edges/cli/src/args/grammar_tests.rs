//! One grammar of flags: the command line compared with the table of `docs/cli-conventions.md`.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};
use trackway_flows::data::split::DEFAULT_SEED;

use super::Cli;
use super::values::{Bytes, Seconds};

/// Spellings for which the grammar has another word.
const REPLACED: [&str; 12] = [
    "output", "output-dir", "save", "write", "dest", "group", "groups", "min-support", "exclude", "author",
    "strict-reading", "no-dry-run",
];

/// Units belong to values, not to names.
const UNITS: [&str; 5] = ["-seconds", "-secs", "-minutes", "-hours", "-mib"];

/// Values that are lists: repeatable, and separated by commas.
const LISTS: [&str; 4] = ["COLUMNS", "NAMES", "PARTS", "FRACTIONS"];

/// Lists whose elements may have a comma in backticks: the command separates them.
const QUOTED: [(&str, &str); 2] = [("runs", "columns"), ("compare", "metrics")];

/// A visible flag of a command.
#[derive(Debug, Clone)]
struct Flag {
    command: String,
    name: String,
    short: Option<char>,
    /// The name of its value; none for a flag without one.
    value: Option<String>,
    delimiter: Option<char>,
    of: Option<TypeId>,
    defaults: Vec<String>,
}

impl Flag {
    fn of(command: &str, arg: &Arg) -> Option<Self> {
        let takes_value = arg.get_action().takes_values();
        let names = arg.get_value_names().unwrap_or_default();
        let known = [TypeId::of::<Seconds>(), TypeId::of::<Bytes>()];
        let type_id = arg.get_value_parser().type_id();
        Some(Self {
            command: command.to_owned(),
            name: arg.get_long()?.to_owned(),
            short: arg.get_short(),
            value: takes_value.then(|| names.first().map(ToString::to_string).unwrap_or_default()),
            delimiter: arg.get_value_delimiter(),
            of: known.into_iter().find(|known| type_id == *known),
            defaults: arg.get_default_values().iter().map(|it| it.to_string_lossy().into_owned()).collect(),
        })
    }

    fn is_list(&self) -> bool {
        self.delimiter == Some(',')
    }
}

/// A row of the table.
#[derive(Debug)]
struct Row {
    short: Option<char>,
    /// What its value may be; empty for a flag without one.
    values: Vec<String>,
    is_list: bool,
}

/// Every visible command with its path.
fn commands() -> Vec<(String, Command)> {
    fn walk(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = if path.is_empty() {
                below.get_name().to_owned()
            } else {
                format!("{path} {}", below.get_name())
            };
            walk(below, &path, found);
        }
    }
    let mut trackway = Cli::command();
    trackway.build();
    let mut found = Vec::new();
    walk(&trackway, "", &mut found);
    found
}

fn flags() -> Vec<Flag> {
    let of_command = |(path, command): &(String, Command)| -> Vec<Flag> {
        let visible = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional());
        visible.filter_map(|arg| Flag::of(path, arg)).collect()
    };
    commands().iter().flat_map(of_command).collect()
}

/// The table of the page, by flag.
fn table() -> BTreeMap<String, Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/cli-conventions.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [flag, short, values, list, meaning] = cells[..] else { panic!("5 cells: {line}") };
        assert!(!meaning.is_empty(), "{line}");
        let row = Row {
            short: short.trim_matches('`').chars().nth(1),
            values: values
                .split(" or ")
                .map(|it| it.trim_matches('`').to_owned())
                .filter(|it| !it.is_empty())
                .collect(),
            is_list: list == "`,`",
        };
        (flag.trim_matches('`').trim_start_matches("--").to_owned(), row)
    };
    let rows: Vec<(String, Row)> = page.lines().filter(|line| line.starts_with("| `--")).map(row).collect();
    let count = rows.len();
    let table: BTreeMap<String, Row> = rows.into_iter().collect();
    assert_eq!(table.len(), count, "a flag has two rows");
    table
}

/// Proves that a flag of several commands, or with a short form, is in the table of the page, and that every command has it with
/// the value, the separator and the short form of the table.
#[test]
fn a_flag_means_the_same_in_every_command() {
    let (flags, table) = (flags(), table());
    let mut faults = Vec::new();
    let mut uses: BTreeMap<&str, Vec<&Flag>> = BTreeMap::new();
    for flag in &flags {
        uses.entry(&flag.name).or_default().push(flag);
    }
    for (name, uses) in &uses {
        match table.get(*name) {
            None if uses.len() > 1 || uses[0].short.is_some() => {
                let commands: Vec<&str> = uses.iter().map(|flag| flag.command.as_str()).collect();
                faults.push(format!("`--{name}` of {commands:?} is missing in docs/cli-conventions.md"));
            }
            None => {}
            Some(row) => faults.extend(uses.iter().filter_map(|flag| differs(flag, row))),
        }
    }
    let unused = table.keys().filter(|name| !uses.contains_key(name.as_str()));
    faults.extend(unused.map(|name| format!("`--{name}` of docs/cli-conventions.md is not a flag")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// How a flag differs from its row.
fn differs(flag: &Flag, row: &Row) -> Option<String> {
    let has_value = match &flag.value {
        None => row.values.is_empty(),
        Some(value) => row.values.contains(value),
    };
    let is_same = has_value && flag.short == row.short && flag.is_list() == row.is_list;
    (!is_same).then(|| format!("`{} --{}`: {flag:?}, in the table {row:?}", flag.command, flag.name))
}

/// Proves that a short flag belongs to one long flag.
#[test]
fn a_short_flag_has_one_meaning() {
    let mut longs: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    for flag in flags() {
        if let Some(short) = flag.short {
            longs.entry(short).or_default().insert(flag.name);
        }
    }
    let shared: Vec<_> = longs.iter().filter(|(_, longs)| longs.len() > 1).collect();
    assert!(shared.is_empty(), "{shared:?}");
    let shorts: String = longs.keys().collect();
    assert_eq!(shorts, "Vfhjnov");
}

/// Proves that durations, sizes, lists and seeds are read in one way, and that no name has a unit or a spelling that the grammar
/// replaces.
#[test]
fn values_are_read_in_one_way() {
    let mut faults = Vec::new();
    for flag in flags() {
        let value = flag.value.as_deref().unwrap_or_default();
        let expected = match value {
            "DURATION" => Some(TypeId::of::<Seconds>()),
            "BYTES" => Some(TypeId::of::<Bytes>()),
            _ => None,
        };
        let is_quoted = QUOTED.contains(&(flag.command.as_str(), flag.name.as_str()));
        let rules = [
            (flag.of == expected, "DURATION is `Seconds` and BYTES is `Bytes`"),
            (flag.is_list() == (LISTS.contains(&value) && !is_quoted), "a list is separated by commas"),
            (flag.name != "seed" || flag.defaults == [DEFAULT_SEED.to_string()], "seeds have one default"),
            (!REPLACED.contains(&flag.name.as_str()), "the grammar has another word"),
            (!UNITS.iter().any(|unit| flag.name.ends_with(unit)), "a name has no unit"),
        ];
        let broken = rules.into_iter().filter(|(holds, _)| !holds);
        faults.extend(broken.map(|(_, rule)| format!("`{} --{}`: {rule}", flag.command, flag.name)));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Proves that a command which deletes has both `--dry-run` and `--yes`, and that no command takes the folder that it writes as
/// a positional argument.
#[test]
fn deletion_and_output_have_one_form() {
    for (path, command) in commands() {
        let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
        // A tick deletes nothing that was kept for a person: it acts unless it is asked not to.
        assert!(has("yes") == has("dry-run") || path == "tick", "`{path}`");
        for positional in command.get_positionals() {
            let names = positional.get_value_names().unwrap_or_default();
            let is_output = names.iter().any(|name| ["DIR", "FOLDER", "OUT"].contains(&name.as_str()));
            assert!(!is_output, "`{path}` writes to a positional {names:?}: name it with `--out`");
        }
    }
}
