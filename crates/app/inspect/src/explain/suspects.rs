//! Which of the changes since the last good run fit the failure best: those that its evidence names, then those of the
//! kind that causes such a failure. A reason is only given where something shows it. Pure but for the text of the
//! script.

use std::collections::BTreeSet;
use std::path::Path;

use trackway_api::runs::changes::{Change, Diff, InputKind};
use trackway_api::runs::explain::{ExplainedHealth, Termination};
use trackway_core::{Health, TerminationReason as Reason};
use trackway_engine::capture::{Capture, extension_is, is_plain, is_python, plain_settings};
use trackway_engine::json_file;
use trackway_engine::run::is_document;
use trackway_formats::layout::AttemptLayout;
use trackway_ledger::AttemptRow;

use super::signs::is_said_by_files;
use super::termination::advised_reason;

/// Letters of a name that is looked for in the evidence: shorter ones are in any sentence.
const NAME_LETTERS_MIN: usize = 3;
/// Names that are words of many messages: they count where they are quoted, as a `KeyError` does.
const ORDINARY: &[&str] = &[
    "loss", "step", "steps", "epoch", "epochs", "error", "data", "train", "test", "model", "file", "path",
    "name", "value", "line", "batch", "size", "index", "input", "output", "label", "labels", "metric",
    "seed", "memory", "time",
];
/// Changes that the advice names.
const LOOKS_MAX: usize = 2;
/// The weight of a change that the evidence names.
const NAMED: u8 = 100;
/// A larger script is not searched for the names of variables.
const SCRIPT_BYTES_MAX: u64 = 4 << 20;
/// What the names of code end with, and those of settings: no other file reads data or computes anything.
const OF_CODE: &[&str] = &[
    "py", "pyx", "ipynb", "sh", "bash", "rs", "c", "h", "cc", "cpp", "cu", "cuh", "go", "java", "jl", "r",
    "js", "ts", "lua", "scala", "pl", "so",
];
const OF_SETTINGS: &[&str] = &["json", "yaml", "yml", "toml", "ini", "cfg", "conf", "properties"];
/// What the names of tables end with that are texts.
const OF_TABLES: &[&str] = &["csv", "tsv", "jsonl", "ndjson"];
/// Those of tables that are none.
const OF_COLUMNS: &[&str] = &["parquet", "arrow", "feather", "npy"];
/// What the names of settings end with in which `#` begins a comment.
const OF_HASH_COMMENTS: &[&str] = &["yaml", "yml", "toml"];
/// A longer text between quotation marks names nothing.
const QUOTED_CHARS_MAX: usize = 64;
/// Behind the path of a file that git does not track.
const UNTRACKED: &str = " (untracked)";

/// What went wrong, as far as changes of one kind or another cause it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Numbers,
    Code,
    Data,
    Memory,
    Checkpoint,
    Stall,
}

/// The limits of the run file by which Trackway itself ends an attempt: the rule that says so, the key, and what the evidence calls it.
const LIMITS: &[(&str, &str, &str)] = &[
    ("own_action.hang_kill", "supervise.hang_after_seconds", "`supervise.hang_after`"),
    ("own_action.hang_kill", "supervise.start_within_seconds", "`supervise.start_within`"),
    ("own_action.timeout_kill", "supervise.timeout_seconds", "`supervise.timeout`"),
];

/// What is known of the failure.
#[derive(Debug, Clone, Default)]
pub(super) struct Failure {
    reason: Option<Reason>,
    /// The rule that decided the reason.
    rule: Option<String>,
    health: Option<Health>,
    /// Lines and findings, the deciding one first.
    evidence: Vec<String>,
    /// The text of the script, if it is still that of the attempt.
    script: Option<String>,
}

/// The failure of an attempt.
pub(super) fn failure(attempt: &AttemptRow, health: Option<&ExplainedHealth>) -> Failure {
    let stated = super::termination(attempt).map(stated).unwrap_or_default();
    let found = health.map(|health| health.report.findings.clone()).unwrap_or_default();
    Failure {
        reason: attempt.termination_reason.map(|reason| advised_reason(attempt, reason)),
        rule: attempt.termination_rule.clone(),
        health: attempt.health,
        evidence: stated.into_iter().chain(found.into_iter().map(|finding| finding.evidence)).collect(),
        script: script_text(attempt),
    }
}

/// The script that the attempt ran, where it was not edited since.
fn script_text(attempt: &AttemptRow) -> Option<String> {
    let files = AttemptLayout::new(Path::new(&attempt.log_directory));
    let captured: Capture = json_file::read_if_sound(&files.capture_json())?;
    let script = captured.script?;
    script.path.metadata().ok().filter(|found| found.is_file() && found.len() <= SCRIPT_BYTES_MAX)?;
    let text = std::fs::read_to_string(&script.path).ok()?;
    let hash = blake3::hash(text.as_bytes()).to_hex();
    (script.blake3.as_deref() == Some(hash.as_str())).then_some(text)
}

/// Its lines, without the frame that raised what decided: code names much that is not the cause.
fn stated(termination: Termination) -> Vec<String> {
    let frame = termination.raised_at().cloned();
    let lines = termination.evidence.into_iter().filter(|item| Some(item) != frame.as_ref());
    lines.map(|item| item.text).collect()
}

/// The same difference with what fits best first, and why it does.
pub(super) fn ranked(mut diff: Diff, failure: &Failure) -> Diff {
    let subject = subject_of(failure);
    if subject.is_none() && failure.reason != Some(Reason::Unknown) {
        return diff;
    }
    // The files of a commit speak for themselves.
    let has_files = diff.changes.iter().any(|it| matches!(it.kind, InputKind::Script | InputKind::Code));
    let weigh = |change: &Change| match subject {
        _ if is_idle(change, failure) => (0, None),
        None => (1, None),
        Some(subject) if change.kind != InputKind::Commit || !has_files => fit(change, subject, failure),
        _ => (1, None),
    };
    let weighed = diff.changes.drain(..).map(|change| {
        let (weight, why) = weigh(&change);
        (weight, Change { fits_because: why.map(str::to_owned), ..change })
    });
    let mut weighed: Vec<(u8, Change)> = weighed.collect();
    weighed.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    diff.changes = weighed.into_iter().map(|(_, change)| change).collect();
    with_the_only_file(diff)
}

/// Where nothing is known to fit: the one file of code or settings that changed comes first.
fn with_the_only_file(mut diff: Diff) -> Diff {
    let files: BTreeSet<String> = diff.changes.iter().filter_map(run_file_of).map(str::to_owned).collect();
    if files.len() != 1 || diff.changes.iter().any(|change| change.fits_because.is_some()) {
        return diff;
    }
    for change in diff.changes.iter_mut().filter(|change| run_file_of(change).is_some()) {
        change.fits_because = Some("it is the only file of code or settings that changed".into());
    }
    diff.changes.sort_by_key(|change| change.fits_because.is_none());
    diff
}

/// Whether the change cannot be the cause: of comments and blank lines only, or of a document that the evidence does not name.
fn is_idle(change: &Change, failure: &Failure) -> bool {
    let is_document = file_of(change).is_some_and(is_document);
    changes_comments(change) || (is_document && !is_named(change, &failure.evidence))
}

/// Whether all that changed are comments and blank lines of Python or of settings, as the lines that are shown have it, or docstrings.
fn changes_comments(change: &Change) -> bool {
    let has_comments =
        file_of(change).is_some_and(|path| is_python(path) || extension_is(path, OF_HASH_COMMENTS));
    let is_comment = |line: &String| {
        let text = line.get(1..).unwrap_or_default().trim();
        text.is_empty() || text.starts_with('#')
    };
    let are_comments = !change.shown_lines.is_empty() && change.shown_lines.iter().all(is_comment);
    change.is_of_comments || (has_comments && are_comments)
}

/// The same, where the change may change what it does.
fn run_file_of(change: &Change) -> Option<&str> {
    read_file(change).filter(|_| !changes_comments(change))
}

/// Whether it is about a file of a table.
fn is_table(change: &Change) -> bool {
    file_of(change).is_some_and(|path| extension_is(path, OF_TABLES) || extension_is(path, OF_COLUMNS))
}

/// Whether it is about the names of the columns of a table.
fn is_header(change: &Change) -> bool {
    is_table(change) && change.key.ends_with(": header")
}

/// The file of code or settings that the change is about.
fn read_file(change: &Change) -> Option<&str> {
    let path = file_of(change)?;
    let is_read = change.kind == InputKind::Script || extension_is(path, OF_CODE) || is_of_settings(change);
    is_read.then_some(path)
}

/// Whether it is about a file of settings, or about a key in a text that has nothing else.
fn is_of_settings(change: &Change) -> bool {
    let Some(path) = file_of(change) else { return false };
    let is_key = || change.kind == InputKind::File && change.key.contains(": ");
    extension_is(path, OF_SETTINGS) || (is_plain(Path::new(path)) && (is_key() || assigns(change, path)))
}

/// Whether the one line that changed gives the same key another value.
fn assigns(change: &Change, path: &str) -> bool {
    let keys =
        |line: &str| plain_settings(Path::new(path), line).map(|found| found.into_keys().collect::<Vec<_>>());
    let sides = change.one_line().map(|(before, after)| (keys(before), keys(after)));
    sides.is_some_and(|(before, after)| before.is_some() && before == after)
}

/// Whether it is the limit that the rule which ended the attempt applied.
fn is_limit(change: &Change, failure: &Failure) -> bool {
    let is_said = |name: &str| failure.evidence.iter().any(|line| line.contains(name));
    let applied = |(rule, key, name): &(&str, &str, &str)| {
        failure.rule.as_deref() == Some(*rule) && change.key == *key && is_said(name)
    };
    change.kind == InputKind::Setting && LIMITS.iter().any(applied)
}

/// The file that the change is about, without the key in it.
fn file_of(change: &Change) -> Option<&str> {
    let is_file =
        matches!(change.kind, InputKind::Script | InputKind::File | InputKind::Code | InputKind::Uncommitted);
    let path = change.key.strip_suffix(UNTRACKED).unwrap_or(&change.key);
    is_file.then(|| path.split(": ").next().unwrap_or(path))
}

/// What to look at first; none: no change fits. A second change is named too, where it may be the cause as well.
pub(super) fn first_look(diff: &Diff) -> Option<String> {
    let own = diff.changes.iter().filter(|change| !is_said_by_files(change, &diff.changes));
    let fitting = own.filter_map(|change| Some((change, change.fits_because.as_ref()?)));
    let named: Vec<String> =
        distinct(fitting).map(|(change, why)| format!("{} ({why})", change.sentence())).collect();
    if named.is_empty() {
        return None;
    }
    Some(format!("look first at what changed since {}: {}", diff.label, named.join("; then ")))
}

/// The first changes of different kinds, as many as are named.
fn distinct<'c>(
    changes: impl Iterator<Item = (&'c Change, &'c String)>,
) -> impl Iterator<Item = (&'c Change, &'c String)> {
    let mut seen = std::collections::BTreeSet::new();
    changes.filter(move |(_, why)| seen.insert(why.as_str())).take(LOOKS_MAX)
}

fn subject_of(failure: &Failure) -> Option<Subject> {
    let reason = failure.reason?;
    match reason {
        Reason::NumericDivergence | Reason::Unhealthy => Some(Subject::Numbers),
        Reason::CodeError | Reason::EvaluatorError => Some(Subject::Code),
        Reason::DataError | Reason::SchemaDrift => Some(Subject::Data),
        Reason::HostOom | Reason::DeviceOom => Some(Subject::Memory),
        Reason::CheckpointError => Some(Subject::Checkpoint),
        Reason::Hang | Reason::Timeout => Some(Subject::Stall),
        _ if reason.is_success() && !Health::is_good(failure.health) => Some(Subject::Numbers),
        _ => None,
    }
}

/// Words in the names of settings, and what such a setting does. The first that a name has counts.
const OF_NUMBERS: &[&str] = &[
    "lr", "learning", "rate", "warmup", "scale", "clip", "momentum", "beta", "beta1", "beta2", "eps",
    "decay", "precision", "dtype", "fp16", "bf16", "amp", "loss", "optimizer", "schedule", "scheduler",
    "batch", "accumulation",
];
const OF_MEMORY: &[&str] = &[
    "batch", "size", "seq", "sequence", "length", "len", "width", "hidden", "dim", "layers", "depth",
    "workers", "prefetch", "resolution", "image", "accumulation", "checkpointing", "precision", "dtype",
    "context",
];
const OF_MODEL: &[&str] = &[
    "model", "hidden", "width", "dim", "layers", "depth", "heads", "classes", "vocab", "embedding",
    "channels", "load", "resume", "init",
];

const OF_LIMITS: &[&str] = &["hang", "timeout", "within", "limit"];
const OF_LOADING: &[&str] = &["workers", "prefetch", "batch", "cache", "loader"];

fn fit(change: &Change, subject: Subject, failure: &Failure) -> (u8, Option<&'static str>) {
    if is_named(change, &failure.evidence) {
        return (NAMED, Some("the evidence names it"));
    }
    let is_in_script = || failure.script.as_ref().is_some_and(|text| has_word(text, &change.key));
    // Most variables are read by nothing.
    if change.kind == InputKind::Variable && !is_in_script() {
        return (10, None);
    }
    let is_code = match change.kind {
        InputKind::Script | InputKind::Commit => true,
        InputKind::Code | InputKind::Uncommitted | InputKind::File => {
            file_of(change).is_some_and(|path| extension_is(path, OF_CODE) && is_run(change, path, failure))
        }
        _ => false,
    };
    let is_of_settings = is_of_settings(change);
    let is_setting = matches!(change.kind, InputKind::Setting | InputKind::Parameter | InputKind::Variable)
        || change.kind == InputKind::File && is_of_settings && change.key.contains(": ");
    let has = |words: &[&str]| {
        let key = match is_setting {
            true => Some(change.key.as_str()),
            false => changed_key(change).filter(|_| is_of_settings),
        };
        key.is_some_and(|key| name_words(key).any(|word| words.contains(&&*word)))
    };
    // Of the limits in the run file Trackway knows which one ended it.
    let is_of_run_file = change.kind == InputKind::Setting;
    let is_named_data = change.kind == InputKind::Data;
    let is_data = is_named_data || is_table(change);
    let is_package = matches!(change.kind, InputKind::Package | InputKind::Image);
    let is_of_columns = is_named_data && change.key.contains(": schema.") || is_header(change);
    match subject {
        Subject::Numbers if has(OF_NUMBERS) => (60, Some("such a setting can make numbers diverge")),
        Subject::Numbers if is_data => (50, Some("other values can make numbers diverge")),
        Subject::Numbers if is_code => (40, Some("the code computes these numbers")),
        Subject::Memory if has(OF_MEMORY) => (60, Some("such a setting decides how much memory is needed")),
        Subject::Memory if is_code => (30, Some("the code may hold more memory than before")),
        Subject::Data if is_of_columns && failure.reason == Some(Reason::SchemaDrift) => {
            (70, Some("the failure is about its columns"))
        }
        Subject::Data if is_named_data => (60, Some("it is the data that the failure is about")),
        Subject::Data if is_data => (60, Some("it may be the data that the failure is about")),
        Subject::Data if is_code => (40, Some("it reads the data")),
        Subject::Checkpoint if has(OF_MODEL) => (60, Some("such a setting decides which checkpoint fits")),
        Subject::Checkpoint if is_code => (50, Some("the code loads the checkpoint")),
        Subject::Checkpoint if is_package => (40, Some("another version may read it otherwise")),
        Subject::Stall if is_limit(change, failure) => (60, Some("this limit ended it")),
        Subject::Stall if has(OF_LOADING) || (!is_of_run_file && has(OF_LIMITS)) => {
            (50, Some("such a setting decides how long a step waits"))
        }
        Subject::Stall if is_code => (40, Some("the code may wait where it did not")),
        Subject::Stall if is_data => (30, Some("reading it may take longer")),
        Subject::Code if is_code => (50, Some("the code failed")),
        Subject::Code if is_package => (40, Some("another version may behave otherwise")),
        Subject::Code if is_setting && given_by(change).is_some() => (35, given_by(change)),
        Subject::Code if is_named_data => (30, Some("the run file names it as data of the run")),
        Subject::Code if is_data => (30, Some("it is a table that the code may read")),
        _ if is_setting || read_file(change).is_some() => (20, None),
        _ => (10, None),
    }
}

/// Whether code is there since before, or the script names it: what is new and imported by nothing is not run.
fn is_run(change: &Change, path: &str, failure: &Failure) -> bool {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_new = change.before.is_none();
    !is_new || failure.script.as_ref().is_none_or(|text| has_word(text, stem))
}

/// The key of the one line that changed, as far as it is before what differs: of `{"steps": 9, "lr": 1}` the part `"lr": `.
fn changed_key(change: &Change) -> Option<&str> {
    let (before, after) = change.one_line()?;
    let pairs = before.char_indices().zip(after.chars());
    let differs = pairs.clone().find(|((_, one), other)| one != other).map(|((place, _), _)| place);
    let same = &before[..differs.unwrap_or_else(|| before.len().min(after.len()))];
    same.rsplit([',', '{', ';']).next()
}

/// How the script got a setting; none: nothing shows that it did.
fn given_by(change: &Change) -> Option<&'static str> {
    let is_passed_on = change.key.starts_with("run.command") || change.key.starts_with("run.environment");
    match change.kind {
        InputKind::Variable => Some("the script names it"),
        InputKind::Parameter => Some("the script recorded it"),
        InputKind::File => Some("the script may read it"),
        InputKind::Setting if is_passed_on => Some("the script is launched with it"),
        _ => None,
    }
}

/// Whether the text has the name as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    text.split(|at: char| !(at.is_alphanumeric() || at == '_')).any(|word| word == name)
}

/// Whether a line of the evidence names what changed: the last part of a key, a file, a value before or now, or a text
/// that a changed line has.
fn is_named(change: &Change, evidence: &[String]) -> bool {
    if is_header(change) {
        return has_named_column(change, evidence);
    }
    let is_code = file_of(change).is_some_and(|path| extension_is(path, OF_CODE));
    // Each traceback names code.
    let is_whole_file = matches!(change.kind, InputKind::File | InputKind::Uncommitted)
        || change.kind == InputKind::Code && !is_code;
    if is_whole_file && !change.key.contains(": ") {
        let name = file_of(change).and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        return evidence.iter().any(|line| names_file(line, name)) || has_named_line(change, evidence);
    }
    has_named_key(change, evidence) || has_named_value(change, evidence)
}

/// Whether it names a column that only one of the headers has.
fn has_named_column(change: &Change, evidence: &[String]) -> bool {
    let columns = |side: &Option<String>| -> BTreeSet<String> {
        let text = side.as_deref().unwrap_or_default();
        text.split([',', ';', '\t']).map(|name| name.trim().trim_matches('"').to_owned()).collect()
    };
    let (before, after) = (columns(&change.before), columns(&change.after));
    before.symmetric_difference(&after).any(|name| evidence.iter().any(|line| names(line, name)))
}

fn has_named_key(change: &Change, evidence: &[String]) -> bool {
    let key = change.key.rsplit(": ").next().unwrap_or(&change.key);
    let name =
        key.rsplit(['.', '/']).find(|part| !part.is_empty() && !is_extension(part, key)).unwrap_or(key);
    let name = name.split('[').next().unwrap_or(name);
    let names_code = matches!(change.kind, InputKind::Script | InputKind::Code);
    // Each traceback names the script.
    !names_code && evidence.iter().any(|line| names(line, name))
}

/// Whether a text that the change replaced or brought is in quotation marks there, or is the name of a column.
fn has_named_value(change: &Change, evidence: &[String]) -> bool {
    let is_column = change.kind == InputKind::Data && change.key.ends_with(".name");
    let sides = [&change.before, &change.after].into_iter().flatten();
    let mut texts = sides.map(|value| value.trim_matches(['"', '\''])).filter(|text| is_text(text));
    texts.any(|text| evidence.iter().any(|line| quotes(line, text) || (is_column && names(line, text))))
}

/// Whether a changed line of settings or of a table has a text that the evidence has in quotation marks.
fn has_named_line(change: &Change, evidence: &[String]) -> bool {
    let has_values =
        file_of(change).is_some_and(|path| extension_is(path, OF_SETTINGS) || extension_is(path, OF_TABLES));
    let is_in = |text: &str| change.shown_lines.iter().any(|line| holds(line, text));
    has_values && evidence.iter().flat_map(|line| quoted(line)).any(is_in)
}

/// What is between quotation marks, and between two quotations, where it may be a name.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let parts = ['\'', '"'].into_iter().flat_map(move |quote| {
        let mut parts: Vec<&str> = line.split(quote).skip(1).collect();
        parts.pop();
        parts
    });
    parts.filter(|text| is_text(text) && text.trim() == *text && text.chars().count() <= QUOTED_CHARS_MAX)
}

/// Whether it is not a number: numbers are in many messages.
fn is_text(text: &str) -> bool {
    !text.is_empty() && text.parse::<f64>().is_err()
}

/// Whether the line has the text, not as a part of a longer word.
fn holds(line: &str, text: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(text).any(|(place, _)| {
        !line[..place].ends_with(is_letter) && !line[place + text.len()..].starts_with(is_letter)
    })
}

/// Whether the line has the name: as a word, or in quotation marks where it is short or a word of many messages.
fn names(line: &str, name: &str) -> bool {
    let is_common = name.chars().count() < NAME_LETTERS_MIN || ORDINARY.contains(&name);
    let mut words = line.split(|at: char| !(at.is_alphanumeric() || matches!(at, '_' | '-')));
    if is_common { quotes(line, name) } else { words.any(|word| word == name) }
}

fn quotes(line: &str, name: &str) -> bool {
    !name.is_empty() && ['\'', '"'].iter().any(|quote| line.contains(&format!("{quote}{name}{quote}")))
}

/// Whether the line has the name of a file, alone or at the end of a path.
fn names_file(line: &str, name: &str) -> bool {
    let mut words = line.split(|at: char| !(at.is_alphanumeric() || matches!(at, '_' | '-' | '.')));
    name.chars().count() >= NAME_LETTERS_MIN && words.any(|word| word.trim_end_matches('.') == name)
}

/// Whether the part is the extension of a file's name.
fn is_extension(part: &str, key: &str) -> bool {
    key.contains('/') && key.ends_with(&format!(".{part}"))
        || ["json", "yaml", "yml", "toml", "csv", "parquet", "jsonl", "py"].contains(&part)
}

fn name_words(key: &str) -> impl Iterator<Item = String> + '_ {
    key.split(|at: char| !at.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: InputKind, key: &str) -> Change {
        Change::new(kind, key, Some("1".into()), Some("2".into()))
    }

    fn order(reason: Reason, evidence: &str) -> Vec<String> {
        let changes = vec![
            change(InputKind::Script, "t.py"),
            change(InputKind::File, "c.json: optimizer.lr"),
            change(InputKind::File, "c.json: steps"),
            change(InputKind::Data, "train"),
            change(InputKind::Setting, "training.batch_size"),
            change(InputKind::Package, "torch"),
        ];
        let diff =
            Diff { against: "r".into(), label: "the last good run".into(), changes, unknown: Vec::new() };
        let failure = Failure { reason: Some(reason), evidence: vec![evidence.into()], ..Failure::default() };
        ranked(diff, &failure).changes.into_iter().map(|change| change.key).collect()
    }

    /// Proves that what the evidence names comes first, then what causes such a failure, and that an end from outside ranks nothing.
    #[test]
    fn what_fits_the_failure_comes_first() {
        assert_eq!(order(Reason::CodeError, "KeyError: 'steps'")[..2], ["c.json: steps", "t.py"]);
        assert_eq!(
            order(Reason::NumericDivergence, "`loss` is NaN at step 5")[..4],
            ["c.json: optimizer.lr", "training.batch_size", "train", "t.py"]
        );
        assert_eq!(order(Reason::DeviceOom, "CUDA out of memory")[0], "training.batch_size");
        assert_eq!(order(Reason::DataError, "could not convert string to float")[..2], ["train", "t.py"]);
        assert_eq!(order(Reason::CheckpointError, "size mismatch for fc.weight")[..2], ["t.py", "torch"]);
        assert_eq!(order(Reason::Preempted, "the machine was reclaimed")[0], "t.py", "as they are");
    }

    /// What the changes are called, best first, each with why it fits.
    fn reasons(changes: Vec<Change>, failure: &Failure) -> Vec<(String, Option<String>)> {
        let label = "the last good run".into();
        let diff = Diff { against: "r".into(), label, changes, unknown: Vec::new() };
        ranked(diff, failure).changes.into_iter().map(|change| (change.key, change.fits_because)).collect()
    }

    /// Proves that a reason is given of code, not of a file that nothing executes, and of a variable only where the
    /// script names it; and that a text file is named by the evidence only with its whole name.
    #[test]
    fn a_reason_needs_evidence() {
        let changes = || {
            vec![
                change(InputKind::Uncommitted, "gone.txt"),
                change(InputKind::Uncommitted, "notes.yaml"),
                change(InputKind::Uncommitted, "load.py (untracked)"),
                change(InputKind::Variable, "MY_THEME"),
                change(InputKind::Variable, "SPLIT"),
                change(InputKind::Setting, "retry.unknown.attempts"),
            ]
        };
        let failure = |reason, line: &str| Failure {
            reason: Some(reason),
            evidence: vec![line.into()],
            script: Some("import os\nsplit = os.environ['SPLIT']\n".into()),
            ..Failure::default()
        };
        let fitting = |reason, line| -> Vec<(String, Option<String>)> {
            reasons(changes(), &failure(reason, line)).into_iter().filter(|(_, why)| why.is_some()).collect()
        };
        let pair = |key: &str, why: &str| (key.to_owned(), Some(why.to_owned()));
        assert_eq!(
            fitting(Reason::DataError, "could not convert string to float"),
            [pair("load.py (untracked)", "it reads the data")]
        );
        assert_eq!(
            fitting(Reason::CodeError, "KeyError: 'k'"),
            [pair("load.py (untracked)", "the code failed"), pair("SPLIT", "the script names it")]
        );
        let named = fitting(Reason::DataError, "No such file or directory: '/w/gone.txt'");
        assert_eq!(named[0], pair("gone.txt", "the evidence names it"));
        let other = fitting(Reason::DataError, "No such file or directory: '/w/other.txt'");
        assert_eq!(other, [pair("load.py (untracked)", "it reads the data")]);
    }

    /// Proves that a column, a key and a value of settings come first where the evidence names them, however short they
    /// are, also those of a changed line of a file that is not committed; and that a column comes before other changes
    /// of the data where the failure is about columns.
    #[test]
    fn what_the_evidence_names_comes_first() {
        let change = |kind, key: &str, before: &str, after: &str| {
            Change::new(kind, key, Some(before.into()), Some(after.into()))
        };
        let lines = ["-scale: 0.1", "+scale: 0,1"].map(str::to_owned).to_vec();
        let changes = || {
            vec![
                change(InputKind::Script, "t.py", "1", "2"),
                change(InputKind::File, "c.json: lr", "0.1", "0.2"),
                change(InputKind::File, "c.json: mode", "\"a\"", "\"b c\""),
                change(InputKind::Uncommitted, "README.md", "1", "2"),
                Change {
                    shown_lines: lines.clone(),
                    ..change(InputKind::Uncommitted, "s.yaml", "as committed", "+1 −1")
                },
                change(InputKind::Data, "train", "200 rows, 3", "200 rows, 4"),
                change(InputKind::Data, "train: d.csv", "3", "4"),
                change(InputKind::Data, "train: schema.[0].name", "\"x\"", "\"xx\""),
                change(InputKind::Data, "train: schema.[1].name", "\"price\"", "\"cost\""),
            ]
        };
        let first = |reason, line: &str| {
            let failure = Failure { reason: Some(reason), evidence: vec![line.into()], ..Failure::default() };
            reasons(changes(), &failure).remove(0)
        };
        for (reason, line, key) in [
            (Reason::CodeError, "KeyError: 'x'", "train: schema.[0].name"),
            (Reason::SchemaDrift, "KeyError: \"['x'] not in index\"", "train: schema.[0].name"),
            (Reason::SchemaDrift, "feature price is missing", "train: schema.[1].name"),
            (Reason::CodeError, "KeyError: 'lr'", "c.json: lr"),
            (Reason::CodeError, "ValueError: 'b c' is not a mode", "c.json: mode"),
            (Reason::CodeError, "could not convert string to float: '0,1'", "s.yaml"),
            (Reason::CodeError, "can't open 'scale'", "s.yaml"),
        ] {
            let why = Some("the evidence names it".to_owned());
            assert_eq!(first(reason, line), (key.to_owned(), why), "{line}");
        }
        let of_columns =
            ("train: schema.[0].name".to_owned(), Some("the failure is about its columns".to_owned()));
        assert_eq!(first(Reason::SchemaDrift, "the columns do not fit"), of_columns);
        assert_eq!(first(Reason::CodeError, "TypeError: x").0, "t.py");
    }

    /// Proves that comments and documents come last without a reason, that a committed line of settings and of a table
    /// are what a failure is about, and that new code which the script does not name is not said to have failed.
    #[test]
    fn comments_and_documents_come_last() {
        let lines = |kind, key: &str, lines: &[&str]| Change {
            shown_lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..change(kind, key)
        };
        let changes = || {
            vec![
                lines(InputKind::Script, "train.py", &["+# a comment", "+"]),
                lines(InputKind::Code, "README.md", &["-one", "+two"]),
                lines(
                    InputKind::Code,
                    "config.json",
                    &["-{\"seed\": 1, \"lr\": 0.1}", "+{\"seed\": 1, \"lr\": 5.0}"],
                ),
                lines(InputKind::Code, "data/train.csv", &["-x,y", "+xx,y"]),
                Change::new(InputKind::File, "plot.py", None, Some("1".into())),
            ]
        };
        let failure = |reason, line: &str| Failure {
            reason: Some(reason),
            evidence: vec![line.into()],
            script: Some("import os\n".into()),
            ..Failure::default()
        };
        let order = |reason, line: &str| reasons(changes(), &failure(reason, line));
        let named = ("data/train.csv".to_owned(), Some("the evidence names it".to_owned()));
        let found = order(Reason::CodeError, "KeyError: 'x'");
        assert_eq!(found[0], named);
        assert!(found[1..].iter().all(|(_, why)| why.as_deref() != Some("the code failed")), "{found:?}");
        let last: Vec<&str> = found[3..].iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(last, ["train.py", "README.md"]);
        let found = order(Reason::NumericDivergence, "`loss` is NaN at step 5");
        let setting = Some("such a setting can make numbers diverge".to_owned());
        assert_eq!(found[0], ("config.json".to_owned(), setting));
    }

    /// Proves that of changed limits the one that ended the run is said to have done so, by its rule and its evidence,
    /// and that no setting of retries and no time-out of the script is.
    #[test]
    fn the_limit_that_ended_it_is_named() {
        let changes = || {
            vec![
                change(InputKind::Setting, "retry.rules.hang.attempts"),
                change(InputKind::Setting, "retry.rules.timeout.plan"),
                change(InputKind::Setting, "supervise.start_within_seconds"),
                change(InputKind::Setting, "supervise.hang_after_seconds"),
                change(InputKind::Setting, "supervise.timeout_seconds"),
                change(InputKind::File, "c.json: store_timeout"),
            ]
        };
        let of = |reason, rule: &str, line: &str| {
            let failure = Failure {
                reason: Some(reason),
                rule: Some(rule.into()),
                evidence: vec![line.into()],
                ..Failure::default()
            };
            let found = reasons(changes(), &failure);
            let ended = found.iter().filter(|(_, why)| why.as_deref() == Some("this limit ended it"));
            (ended.map(|(key, _)| key.clone()).collect::<Vec<_>>(), found)
        };
        for (reason, rule, line, key) in [
            (
                Reason::Hang,
                "own_action.hang_kill",
                "no step for 4 s (`supervise.hang_after` is 4 s)",
                "supervise.hang_after_seconds",
            ),
            (
                Reason::Hang,
                "own_action.hang_kill",
                "no step for 4 s since the launch (`supervise.start_within` is 4 s)",
                "supervise.start_within_seconds",
            ),
            (
                Reason::Timeout,
                "own_action.timeout_kill",
                "`supervise.timeout` of 9 s is reached",
                "supervise.timeout_seconds",
            ),
        ] {
            let (ended, found) = of(reason, rule, line);
            assert_eq!(ended, [key]);
            assert_eq!(found[0].0, key);
            let others = found.iter().filter(|(key, why)| key.starts_with("retry.") && why.is_some());
            assert_eq!(others.count(), 0, "{found:?}");
        }
        assert!(of(Reason::Hang, "collective.watchdog", "watchdog caught a timeout").0.is_empty());
    }

    /// Proves that a setting in a plain text comes before the script where it can cause the failure, with a repository
    /// and without one, and that both are looked at first.
    #[test]
    fn a_setting_in_a_text_comes_before_the_script() {
        let of_key = Change::new(InputKind::File, "cfg.txt: lr", Some("0.02".into()), Some("2.4".into()));
        let of_line = Change {
            shown_lines: vec!["-lr=0.02".into(), "+lr=2.4".into()],
            ..change(InputKind::Uncommitted, "cfg.txt")
        };
        let of_number = Change::new(InputKind::File, "lr.txt: lr", Some("0.02".into()), Some("2.4".into()));
        let failure = Failure { reason: Some(Reason::NumericDivergence), ..Failure::default() };
        for setting in [of_key, of_line, of_number] {
            let key = setting.key.clone();
            let changes = vec![change(InputKind::Script, "t.py"), setting];
            let diff =
                Diff { against: "r".into(), label: "the last good run".into(), changes, unknown: Vec::new() };
            let ranked = ranked(diff, &failure);
            assert_eq!(ranked.changes[0].key, key);
            let said = first_look(&ranked).unwrap();
            assert!(said.contains("such a setting can make numbers diverge); then t.py"), "{said}");
        }
        let text = Change {
            shown_lines: vec!["-the rate is low".into(), "+the rate is high".into()],
            ..change(InputKind::Uncommitted, "cfg.txt")
        };
        assert_eq!(reasons(vec![text], &failure)[0].1, None);
    }

    /// Proves that a table which the command does not name is what a failure of data is about, and that a column which
    /// only one of its headers has is named by the evidence.
    #[test]
    fn tables_of_the_folder_fit_a_failure_of_data() {
        let changes = || {
            let of = |key: &str, before: &str, after: &str| {
                Change::new(InputKind::File, key, Some(before.into()), Some(after.into()))
            };
            vec![
                of("c.json: depth", "1", "2"),
                of("d.csv: header", "x,y", "xx,y"),
                of("e.csv", "3", "4 lines"),
            ]
        };
        let first = |reason, line: &str| {
            let failure = Failure { reason: Some(reason), evidence: vec![line.into()], ..Failure::default() };
            reasons(changes(), &failure).remove(0)
        };
        let named = ("d.csv: header".to_owned(), Some("the evidence names it".to_owned()));
        assert_eq!(first(Reason::CodeError, "KeyError: 'x'"), named);
        assert_ne!(first(Reason::CodeError, "KeyError: 'y'"), named, "both have it");
        let may_be = Some("it may be the data that the failure is about".to_owned());
        assert_eq!(first(Reason::DataError, "could not convert string to float: 'abc'").1, may_be);
    }

    /// Proves that the one file of code or settings that changed is looked at first where nothing else is known, also
    /// of an unknown end, that of two none is, and that a commit needs no reason beside its files.
    #[test]
    fn the_only_file_is_looked_at_first() {
        let unknown = Failure { reason: Some(Reason::Unknown), ..Failure::default() };
        let of = |keys: &[(InputKind, &str)], failure: &Failure| {
            let changes = keys.iter().map(|(kind, key)| change(*kind, key)).collect();
            reasons(changes, failure).into_iter().find(|(_, why)| why.is_some()).map(|(key, _)| key)
        };
        let noise = [(InputKind::Uncommitted, "README.md"), (InputKind::Variable, "MY_THEME")];
        for key in ["t.py", "c.yaml"] {
            let changes = [noise[0], noise[1], (InputKind::Uncommitted, key)];
            assert_eq!(of(&changes, &unknown).as_deref(), Some(key));
        }
        let keys = [(InputKind::File, "c.json: lr"), (InputKind::File, "c.json: steps"), noise[0]];
        assert_eq!(of(&keys, &unknown).as_deref(), Some("c.json: lr"));
        assert_eq!(of(&[(InputKind::Script, "t.py"), (InputKind::Code, "m.py")], &unknown), None);
        assert_eq!(of(&noise, &unknown), None);
        let data = Failure { reason: Some(Reason::DataError), ..Failure::default() };
        assert_eq!(of(&[noise[0], (InputKind::Uncommitted, "c.yaml")], &data).as_deref(), Some("c.yaml"));
        let of_commit = [(InputKind::Commit, "commit"), (InputKind::Code, "README.md")];
        assert_eq!(of(&of_commit, &data), None);
        assert_eq!(of(&[(InputKind::Commit, "commit")], &data).as_deref(), Some("commit"));
    }

    /// Proves that the advice names the change with its values and why it fits, and that there is none where nothing fits.
    #[test]
    fn the_first_look() {
        let diff = |key: &str| Diff {
            against: "r".into(),
            label: "the last good run".into(),
            changes: vec![change(InputKind::File, key)],
            unknown: Vec::new(),
        };
        let failure = |reason| Failure { reason: Some(reason), ..Failure::default() };
        let said = first_look(&ranked(diff("c.json: lr"), &failure(Reason::NumericDivergence)));
        assert_eq!(
            said.as_deref(),
            Some(
                "look first at what changed since the last good run: c.json: lr: 1 → 2 (such a setting can make numbers diverge)"
            )
        );
        assert_eq!(first_look(&ranked(diff("c.json: lr"), &failure(Reason::Preempted))), None);
        assert_eq!(first_look(&ranked(diff("notes.txt"), &failure(Reason::NumericDivergence))), None);
    }
}
