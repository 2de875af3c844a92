//! Which of the changes since the last good run fit the failure best: those that its evidence names, then those of the kind that causes such a
//! failure. A reason is only given where something shows it. Pure but for the text of the script.

use std::collections::BTreeSet;
use std::path::Path;

use trackway_api::changes::{Change, Diff, InputKind};
use trackway_api::explain::{ExplainedHealth, Termination};
use trackway_core::{Health, TerminationReason as Reason};
use trackway_engine::capture::Capture;
use trackway_engine::json_file;
use trackway_formats::layout::AttemptLayout;
use trackway_ledger::AttemptRow;

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

/// What is known of the failure.
#[derive(Debug, Clone, Default)]
pub(super) struct Failure {
    reason: Option<Reason>,
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
        Some(subject) if change.kind != InputKind::Commit || !has_files => fit(change, subject, failure),
        _ => (0, None),
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
    let files: BTreeSet<String> = diff.changes.iter().filter_map(read_file).map(str::to_owned).collect();
    if files.len() != 1 || diff.changes.iter().any(|change| change.fits_because.is_some()) {
        return diff;
    }
    for change in diff.changes.iter_mut().filter(|change| read_file(change).is_some()) {
        change.fits_because = Some("it is the only file of code or settings that changed".into());
    }
    diff.changes.sort_by_key(|change| change.fits_because.is_none());
    diff
}

/// The file of code or settings that the change is about.
fn read_file(change: &Change) -> Option<&str> {
    let path = file_of(change)?;
    let is_read =
        change.kind == InputKind::Script || ends_with(path, OF_CODE) || ends_with(path, OF_SETTINGS);
    is_read.then_some(path)
}

/// The file that the change is about, without the key in it.
fn file_of(change: &Change) -> Option<&str> {
    let is_file =
        matches!(change.kind, InputKind::Script | InputKind::File | InputKind::Code | InputKind::Uncommitted);
    let path = change.key.strip_suffix(UNTRACKED).unwrap_or(&change.key);
    is_file.then(|| path.split(": ").next().unwrap_or(path))
}

fn ends_with(path: &str, extensions: &[&str]) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| extensions.iter().any(|one| extension.eq_ignore_ascii_case(one)))
}

/// What to look at first; none: no change fits. A second change is named too, where it may be the cause as well.
pub(super) fn first_look(diff: &Diff) -> Option<String> {
    let fitting = diff.changes.iter().filter_map(|change| Some((change, change.fits_because.as_ref()?)));
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
        InputKind::Code | InputKind::Uncommitted => {
            file_of(change).is_some_and(|path| ends_with(path, OF_CODE))
        }
        _ => false,
    };
    let is_setting = matches!(change.kind, InputKind::Setting | InputKind::Parameter | InputKind::Variable)
        || change.kind == InputKind::File && change.key.contains(": ");
    let has = |words: &[&str]| is_setting && name_words(&change.key).any(|word| words.contains(&&*word));
    let is_data = change.kind == InputKind::Data;
    let is_package = matches!(change.kind, InputKind::Package | InputKind::Image);
    match subject {
        Subject::Numbers if has(OF_NUMBERS) => (60, Some("such a setting can make numbers diverge")),
        Subject::Numbers if is_data => (50, Some("other values can make numbers diverge")),
        Subject::Numbers if is_code => (40, Some("the code computes these numbers")),
        Subject::Memory if has(OF_MEMORY) => (60, Some("such a setting decides how much memory is needed")),
        Subject::Memory if is_code => (30, Some("the code may hold more memory than before")),
        Subject::Data if is_data => (60, Some("it is the data that the failure is about")),
        Subject::Data if is_code => (40, Some("it reads the data")),
        Subject::Checkpoint if has(OF_MODEL) => (60, Some("such a setting decides which checkpoint fits")),
        Subject::Checkpoint if is_code => (50, Some("the code loads the checkpoint")),
        Subject::Checkpoint if is_package => (40, Some("another version may read it otherwise")),
        Subject::Stall if has(OF_LIMITS) => (60, Some("this limit ended it")),
        Subject::Stall if has(OF_LOADING) => (50, Some("such a setting decides how long a step waits")),
        Subject::Stall if is_code => (40, Some("the code may wait where it did not")),
        Subject::Stall if is_data => (30, Some("reading it may take longer")),
        Subject::Code if is_code => (50, Some("the code failed")),
        Subject::Code if is_package => (40, Some("another version may behave otherwise")),
        Subject::Code if is_setting && given_by(change).is_some() => (35, given_by(change)),
        Subject::Code if is_data => (30, Some("the run file names it as data of the run")),
        _ if is_setting || read_file(change).is_some() => (20, None),
        _ => (10, None),
    }
}

/// How the script got a setting; none: nothing shows that it did.
fn given_by(change: &Change) -> Option<&'static str> {
    let is_passed_on = change.key.starts_with("run.command") || change.key.starts_with("run.environment");
    match change.kind {
        InputKind::Variable => Some("the script names it"),
        InputKind::Parameter => Some("the script recorded it"),
        InputKind::File => Some("the command names its file"),
        InputKind::Setting if is_passed_on => Some("the script is launched with it"),
        _ => None,
    }
}

/// Whether the text has the name as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    text.split(|at: char| !(at.is_alphanumeric() || at == '_')).any(|word| word == name)
}

/// Whether a line of the evidence has the name of what changed: the last part of a key, or a file.
fn is_named(change: &Change, evidence: &[String]) -> bool {
    let is_whole_file = matches!(change.kind, InputKind::File | InputKind::Uncommitted);
    if is_whole_file && !change.key.contains(": ") {
        let name = file_of(change).and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        return evidence.iter().any(|line| names_file(line, name));
    }
    let key = change.key.rsplit(": ").next().unwrap_or(&change.key);
    let name =
        key.rsplit(['.', '/']).find(|part| !part.is_empty() && !is_extension(part, key)).unwrap_or(key);
    let name = name.split('[').next().unwrap_or(name);
    let names_code = matches!(change.kind, InputKind::Script | InputKind::Code);
    // Each traceback names the script.
    if names_code || name.chars().count() < NAME_LETTERS_MIN {
        return false;
    }
    let is_word = |line: &String| {
        line.split(|at: char| !(at.is_alphanumeric() || matches!(at, '_' | '-'))).any(|word| word == name)
    };
    let is_quoted =
        |line: &String| ['\'', '"'].iter().any(|quote| line.contains(&format!("{quote}{name}{quote}")));
    match ORDINARY.contains(&name) {
        true => evidence.iter().any(is_quoted),
        false => evidence.iter().any(is_word),
    }
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

    /// Proves that a reason is given of code, not of a file that nothing executes, and of a variable only where the script names it; and that a
    /// text file is named by the evidence only with its whole name.
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
            health: None,
            evidence: vec![line.into()],
            script: Some("import os\nsplit = os.environ['SPLIT']\n".into()),
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

    /// Proves that the one file of code or settings that changed is looked at first where nothing else is known, also of an unknown end, that
    /// of two none is, and that a commit needs no reason beside its files.
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
