//! Whether an unreadable or absent file, or a value that cannot be read, is one of the settings: those are the code's
//! matter, and no repair of the data helps.

use trackway_core::TerminationReason as Reason;

use crate::pattern::{Pattern, any_of};
use crate::scan::{Hit, Phase};
use crate::signatures::data;

/// Classes with which readers of settings reject their text.
static CLASSES: Pattern = Pattern::new(
    r"\byaml(\.\w+)*\.\w+Error\b|\b(ruamel|toml|tomllib|tomli|configparser|omegaconf|hydra)\.|TOMLDecodeError",
);
/// What code that reads settings names, and their files.
static SETTINGS: Pattern =
    Pattern::new(r"config|\bcfg|_cfg|\bconf\b|settings|hparams|hyper_?param|yaml|toml|\.(ya?ml|ini|cfg)\b");
/// What settings are kept in, and their usual names: of a value, not of a file.
static VALUES: Pattern = Pattern::new(
    r"\bargs\b|params\b|options\b|\bopts?\b|environ|getenv|argv|json\.load\(|\b(lr|learning_rate|batch_size|epochs|seed)\b",
);
/// A conversion of what is kept there, whatever the code around it names.
static CONVERTED: Pattern = Pattern::new(
    r"\b(float|int)\(\s*(self\.)?((\w+_)?(cfg|config|conf|settings|hparams|hyper_?params|params|args|opts?|environ|getenv)\b|(os\.environ|os\.getenv|sys\.argv|yaml\.\w+\(|tomllib\.\w+\())",
);
/// What code that reads data names, and lines of a file of records.
static DATA: Pattern = Pattern::new(any_of! {
    "data", r"\b(train|valid|val|test|dev)([_./-]|\b)", r"rows?\b", r"records?\b", r"samples?\b", r"\blines?\b",
    "jsonl", "corpus", "shard", "annot", r"labels?\b", r"examples?\b", "caption", r"instances?\b", r"documents?\b",
    r"articles?\b", "manifest", "index", "image", r"\bfor \w+ in\b", r"loads\(\w\b",
});
/// Functions that train or test: their names say nothing of what a line of them reads.
static TRAINS: Pattern = Pattern::new(r"\b(train|valid|val|test|dev)(_\w+)?\b");
/// The value that cannot be read, as the message quotes it.
static REJECTED: Pattern = Pattern::new(
    r#"(?:string to (?:float|int)|int\(\)[^\n'"]*base \d+|parse string)\b[^\n'"]*(?:'([^'\n]+)'|"([^"\n]+)")"#,
);
/// The file that is not there, as the message names it.
static ABSENT: Pattern =
    Pattern::new(r#"(?:directory|found)\W{1,4}['"]?([^'"\n]+\.(?:json|ya?ml|toml|ini|cfg))\b"#);

/// Whether the error is one of the settings. A JSON file that code of the user reads outside of the data's loading may
/// be either: then it is the settings, since a run that waits for a repair of its data would wait in vain. `rejected`:
/// values that files of settings have and that the log rejects.
pub(super) fn are_at_fault(hit: &Hit, rejected: &[String]) -> bool {
    let is_in = |phase| hit.phases.contains(&phase);
    let in_worker = hit.text.contains("DataLoader worker");
    if hit.reason != Reason::DataError || is_in(Phase::LoadSample) || in_worker {
        return false;
    }
    // A parser's own frames look like a reader's of data.
    if CLASSES.is_match(&hit.text) {
        return true;
    }
    let code = own_code(hit);
    let speaks_of = |words: &Pattern| code.is_some_and(|code| words.is_match(code));
    let reads_settings = speaks_of(&SETTINGS);
    let reads_data = is_in(Phase::LoadData) || speaks_of(&DATA);
    match hit.signature {
        data::ABSENT_FILE => absent_file(&hit.text).is_some_and(|path| {
            reads_settings || SETTINGS.is_match(path) || !(reads_data || DATA.is_match(path))
        }),
        data::JSON => reads_settings || (code.is_some() && !reads_data),
        data::DELIMITED_TEXT => {
            let is_set = || rejected_value(hit).is_some_and(|value| rejected.iter().any(|one| one == value));
            let in_reader = is_in(Phase::LoadData);
            let of_rows = code.map_or(in_reader, |code| reads_rows(code, in_reader));
            speaks_of(&CONVERTED) || ((reads_settings || speaks_of(&VALUES) || is_set()) && !of_rows)
        }
        _ => false,
    }
}

/// Whether code that converts a value has it from data: by its line, or by the function around it, unless that reads
/// settings. `in_reader`: a frame looks like a reader of data, as that function may.
fn reads_rows(code: &str, in_reader: bool) -> bool {
    let (function, line) = code.split_once(": ").unwrap_or((code, ""));
    let of_settings = SETTINGS.is_match(function);
    let of_data = || in_reader || DATA.is_match(&*TRAINS.replaced(function, ""));
    DATA.is_match(line) || (!of_settings && of_data())
}

/// The value that the line says cannot be read.
pub(super) fn rejected_value(hit: &Hit) -> Option<&str> {
    let found = REJECTED.captures(&hit.text).filter(|_| hit.signature == data::DELIMITED_TEXT)?;
    found.text(1).or_else(|| found.text(2))
}

/// Whether a file of settings has the value: behind a key, or behind a sign of assignment.
pub(super) fn has_value(text: &str, value: &str) -> bool {
    let is_before = |letter: char| letter.is_whitespace() || ":='\"".contains(letter);
    let is_behind = |letter: char| letter.is_whitespace() || "'\",#}".contains(letter);
    text.match_indices(value).any(|(place, found)| {
        let (before, behind) = (&text[..place], &text[place + found.len()..]);
        before.chars().next_back().is_some_and(is_before) && behind.chars().next().is_none_or(is_behind)
    })
}

/// Function and code of the frame of the user that raised it, without the file: `train.py` says nothing of what is read.
pub(super) fn own_code(hit: &Hit) -> Option<&str> {
    let text = &hit.raised_at.as_ref()?.text;
    Some(text.split_once(" in ").map_or("", |(_, code)| code))
}

fn absent_file(text: &str) -> Option<&str> {
    ABSENT.captures(text)?.text(1)
}
