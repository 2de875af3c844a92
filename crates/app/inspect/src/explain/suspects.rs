//! Which of the changes since the last good run fit the failure best: those that its evidence names, then those of the kind that causes such a
//! failure. Pure.

use trackway_api::changes::{Change, Diff, InputKind};
use trackway_api::explain::ExplainedHealth;
use trackway_core::{Health, TerminationReason as Reason};
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
}

/// The failure of an attempt.
pub(super) fn failure(attempt: &AttemptRow, health: Option<&ExplainedHealth>) -> Failure {
    let stated = super::termination(attempt).map(|termination| termination.evidence).unwrap_or_default();
    let found = health.map(|health| health.report.findings.clone()).unwrap_or_default();
    let lines = stated.into_iter().map(|item| item.text);
    Failure {
        reason: attempt.termination_reason.map(|reason| advised_reason(attempt, reason)),
        health: attempt.health,
        evidence: lines.chain(found.into_iter().map(|finding| finding.evidence)).collect(),
    }
}

/// The same difference with what fits best first, and why it does.
pub(super) fn ranked(mut diff: Diff, failure: &Failure) -> Diff {
    let Some(subject) = subject_of(failure) else { return diff };
    let mut weighed: Vec<(u8, Change)> = diff
        .changes
        .drain(..)
        .map(|change| {
            let (weight, why) = fit(&change, subject, &failure.evidence);
            (weight, Change { fits_because: why.map(str::to_owned), ..change })
        })
        .collect();
    weighed.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    diff.changes = weighed.into_iter().map(|(_, change)| change).collect();
    diff
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

fn fit(change: &Change, subject: Subject, evidence: &[String]) -> (u8, Option<&'static str>) {
    if is_named(change, evidence) {
        return (NAMED, Some("the evidence names it"));
    }
    let is_code = matches!(
        change.kind,
        InputKind::Script | InputKind::Code | InputKind::Uncommitted | InputKind::Commit
    );
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
        Subject::Code if is_setting => (35, Some("the code read it")),
        Subject::Code if is_data => (30, Some("the code read it")),
        _ if is_setting || change.kind == InputKind::File => (20, None),
        _ => (10, None),
    }
}

/// Whether a line of the evidence has the name of what changed: the last part of a key, or a file.
fn is_named(change: &Change, evidence: &[String]) -> bool {
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
        Change {
            kind,
            key: key.into(),
            before: Some("1".into()),
            after: Some("2".into()),
            lines: None,
            fits_because: None,
        }
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
        let failure = Failure { reason: Some(reason), health: None, evidence: vec![evidence.into()] };
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
