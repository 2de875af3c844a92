//! Whether an unreadable or absent file is one of the settings: those are the code's matter, and no repair of the data helps.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use trackway_core::TerminationReason as Reason;

use crate::scan::{Hit, Phase};
use crate::signatures::data;

fn compiled(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).case_insensitive(true).build().expect("a fixed pattern")
}

/// Classes with which readers of settings reject their text.
static CLASSES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\byaml(\.\w+)*\.\w+Error\b|\b(ruamel|toml|tomllib|tomli|configparser|omegaconf|hydra)\.|TOMLDecodeError",
    )
});
/// What code that reads settings names, and their files.
static SETTINGS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"config|\bcfg|_cfg|\bconf\b|settings|hparams|hyper_?param|yaml|toml|\.(ya?ml|ini|cfg)\b")
});
/// What settings are kept in, and their usual names: of a value, not of a file.
static VALUES: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\bargs\b|params\b|options\b|\bopts?\b|environ|getenv|argv|\b(lr|learning_rate|batch_size|epochs|seed)\b",
    )
});
/// What code that reads data names, and lines of a file of records.
static DATA: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"data|\b(train|valid|val|test|dev)([_./-]|\b)|rows?\b|records?\b|samples?\b|\blines?\b|jsonl|corpus|shard|annot|labels?\b|examples?\b|caption|instances?\b|documents?\b|articles?\b|manifest|index|image|\bfor \w+ in\b|loads\(\w\b",
    )
});
/// The file that is not there, as the message names it.
static ABSENT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?:directory|found)\W{1,4}['"]?([^'"\n]+\.(?:json|ya?ml|toml|ini|cfg))\b"#));

/// Whether the error is one of the settings. A JSON file that code of the user reads outside of the data's loading may be either: then it is the
/// settings, since a run that waits for a repair of its data would wait in vain.
pub(super) fn are_at_fault(hit: &Hit) -> bool {
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
    let speaks_of = |words: &LazyLock<Regex>| code.is_some_and(|code| words.is_match(code));
    let reads_settings = speaks_of(&SETTINGS);
    let reads_data = is_in(Phase::LoadData) || speaks_of(&DATA);
    match hit.signature {
        data::ABSENT_FILE => absent_file(&hit.text).is_some_and(|path| {
            reads_settings || SETTINGS.is_match(path) || !(reads_data || DATA.is_match(path))
        }),
        data::JSON => reads_settings || (code.is_some() && !reads_data),
        data::DELIMITED_TEXT => (reads_settings || speaks_of(&VALUES)) && !reads_data,
        _ => false,
    }
}

/// Function and code of the frame of the user that raised it, without the file: `train.py` says nothing of what is read.
fn own_code(hit: &Hit) -> Option<&str> {
    let text = &hit.raised_at.as_ref()?.text;
    Some(text.split_once(" in ").map_or("", |(_, code)| code))
}

fn absent_file(text: &str) -> Option<&str> {
    Some(ABSENT.captures(text)?.get(1)?.as_str())
}
