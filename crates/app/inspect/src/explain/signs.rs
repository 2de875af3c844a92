//! What of an attempt speaks for a cause: what checks and detectors found in it, and what changed since the last good run. Pure.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use trackway_api::runs::changes::{Change, Diff, InputKind};
use trackway_api::runs::detections::Detection;
use trackway_api::runs::explain::{AttemptParameter, RecordedCheck};
use trackway_core::checks::Finding;
use trackway_core::detect::Detector;
use trackway_rules::trust::SAFE_AFTER;
use trackway_rules::{Need, Sign, joined, likely, ranked, symptom_of_detector};

/// Findings of data checks about values that are not finite.
const NOT_FINITE: [&str; 3] = ["values.nan", "values.infinite", "label.nan"];
/// The setting that is a command, whose options are settings too.
const COMMAND: &str = "run.command";
/// Files of a finding that are named.
const FILES_MAX: usize = 2;
/// How the cause of a detection begins that was seen in the reported numbers.
const RATE_ROSE: &str = "the learning rate rose";
/// Words in the names of settings.
const OF_RATE: &[&str] = &["lr", "learning"];
const OF_SIZE: &[&str] = &[
    "batch", "seq", "sequence", "length", "len", "context", "resolution", "hidden", "width", "dim", "layers",
    "depth", "vocab",
];
const OF_LOADER: &[&str] = &["workers", "prefetch", "loader"];
const OF_PRECISION: &[&str] = &["precision", "dtype", "amp", "fp16", "half"];

/// What is known of an attempt.
pub(super) struct SignEvidence<'k> {
    /// The checks before its launch, and what those that were skipped had found on the same data.
    pub(super) checks: &'k [RecordedCheck],
    pub(super) diff: Option<&'k Diff>,
    /// What was detected in it, oldest first.
    pub(super) detections: &'k [&'k Detection],
    pub(super) parameters: &'k [AttemptParameter],
}

/// The signs, each with what was seen.
pub(super) fn signs(known: &SignEvidence<'_>) -> Vec<(Sign, String)> {
    let checked = known.checks.iter().filter_map(not_finite);
    let changes = known.diff.into_iter().flat_map(changed);
    let detected = detected(known.detections).into_iter();
    checked.chain(detected).chain(changes).chain(halves(known.parameters)).collect()
}

/// What a detector found, with the causes that are likely for this attempt and what to try.
pub(super) fn with_evidence(
    found: Detection,
    signs: &[(Sign, String)],
    is_there: impl Fn(Need) -> bool,
) -> Detection {
    let symptom = symptom_of_detector(found.detector);
    let cause = match found.cause == joined(symptom.causes) {
        true => likely(symptom.causes, signs),
        false => found.cause,
    };
    let tries = ranked(symptom.try_first, signs, is_there);
    let advice = tries.iter().map(|it| it.line.text).collect::<Vec<&str>>().join("; ");
    Detection { cause, advice, ..found }
}

/// The finding, with the first places of it.
pub(super) fn with_places(finding: &Finding) -> String {
    let mut seen = BTreeSet::new();
    let places = finding.examples.iter().filter_map(|example| {
        let file = example.file.as_ref().filter(|file| seen.insert(file.as_str()))?;
        Some(example.row.map_or_else(|| file.clone(), |row| format!("{file} row {row}")))
    });
    let places: Vec<String> = places.take(FILES_MAX).collect();
    match places.is_empty() {
        true => finding.message.clone(),
        false => format!("{}, first in {}", finding.message, places.join(" and ")),
    }
}

/// Whether it is a data set of which the files that changed are listed as well.
pub(super) fn is_said_by_files(change: &Change, all: &[Change]) -> bool {
    let file_of = |other: &Change| {
        let file = other.key.strip_prefix(change.key.as_str())?.strip_prefix(": ")?;
        (other.kind == InputKind::Data && !file.starts_with("schema.")).then_some(())
    };
    change.kind == InputKind::Data && all.iter().any(|other| file_of(other).is_some())
}

fn not_finite(check: &RecordedCheck) -> Option<(Sign, String)> {
    let finding = check.findings.iter().find(|finding| NOT_FINITE.contains(&finding.check.as_str()))?;
    let skipped = if check.skipped_why.is_some() { ", which was skipped, had" } else { "" };
    Some((Sign::DataNotFinite, format!("`{}`{skipped} found: {}", check.name, with_places(finding))))
}

fn detected(detections: &[&Detection]) -> Vec<(Sign, String)> {
    let lost = detections.iter().find(|found| found.detector == Detector::NonFinite);
    let precedes = |found: &Detection| {
        lost.is_none_or(|lost| {
            found.first_step < lost.first_step && lost.first_step - found.first_step <= u64::from(SAFE_AFTER)
        })
    };
    let sign = |found: &&Detection| {
        let sign = match found.detector {
            _ if found.cause.starts_with(RATE_ROSE) => return Some((Sign::RateRaised, found.cause.clone())),
            Detector::GradientExplosion | Detector::LossSpike | Detector::LossShift if precedes(found) => {
                Sign::NumbersGrew
            }
            Detector::MemoryCreep => Sign::MemoryGrew,
            Detector::DeadInput | Detector::SeenBefore => Sign::BatchesRepeat,
            Detector::DataStarvation => Sign::Starved,
            Detector::LossScaleCollapse => Sign::Halves,
            _ => return None,
        };
        Some((sign, format!("`{}` from step {} on", found.detector, found.first_step)))
    };
    detections.iter().filter_map(sign).collect()
}

fn changed(diff: &Diff) -> Vec<(Sign, String)> {
    let said = |change: &Change| format!("changed since {}: {}", diff.label, change.sentence());
    let sign = |change: &Change| match change.kind {
        InputKind::Data => (!is_said_by_files(change, &diff.changes)).then_some(Sign::DataChanged),
        InputKind::Package | InputKind::Image => Some(Sign::PackageChanged),
        _ => values_of(change).iter().find_map(sign_of_value),
    };
    diff.changes.iter().filter_map(|change| Some((sign(change)?, said(change)))).collect()
}

/// A setting that has another value now.
struct Value {
    name: String,
    /// How its number compares with that before; none where these are not two numbers.
    now: Option<Ordering>,
}

fn sign_of_value(value: &Value) -> Option<Sign> {
    let has = |words: &[&str]| {
        let mut of_name = value.name.split(|at: char| !at.is_alphanumeric());
        of_name.any(|word| words.contains(&word.to_lowercase().as_str()))
    };
    match value.now {
        Some(Ordering::Greater) if has(OF_RATE) => Some(Sign::RateRaised),
        Some(Ordering::Less) if has(OF_RATE) => Some(Sign::RateLowered),
        _ if has(OF_LOADER) => Some(Sign::LoaderChanged),
        Some(Ordering::Greater) if has(OF_SIZE) => Some(Sign::SizeRaised),
        _ => None,
    }
}

/// The settings that a change gives other values: itself, the options of a command, or those that lines of a file
/// assign. Most variables are read by nothing.
fn values_of(change: &Change) -> Vec<Value> {
    if change.kind == InputKind::Setting && change.key == COMMAND {
        return values_of_command(change).unwrap_or_default();
    }
    let is_file =
        matches!(change.kind, InputKind::Script | InputKind::File | InputKind::Code | InputKind::Uncommitted);
    let is_setting = matches!(change.kind, InputKind::Setting | InputKind::Parameter)
        || change.kind == InputKind::Variable && change.fits_because.is_some();
    let in_file = change.key.split_once(": ").filter(|_| is_file).map(|(_, key)| key);
    if let Some(name) = in_file.or_else(|| is_setting.then_some(change.key.as_str())) {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        return vec![Value { name: name.to_owned(), now: order(before, after) }];
    }
    if !is_file || change.is_of_comments {
        return Vec::new();
    }
    let side = |sign: char| -> Vec<(&str, &str)> {
        change.shown_lines.iter().filter_map(|line| line.strip_prefix(sign)).flat_map(assigned).collect()
    };
    let (before, after) = (side('-'), side('+'));
    let value = |(name, now): &(&str, &str)| {
        let (_, was) = before.iter().find(|(other, was)| other == name && was != now)?;
        Some(Value { name: (*name).to_owned(), now: order(Some(was), Some(now)) })
    };
    after.iter().filter_map(value).collect()
}

/// The options that have another value in the command now; none where one of the two is not known.
fn values_of_command(change: &Change) -> Option<Vec<Value>> {
    let words = |side: Option<&str>| serde_json::from_str::<Vec<String>>(side?).ok();
    let (before, after) = (words(change.before.as_deref())?, words(change.after.as_deref())?);
    let (before, after) = (options(&before), options(&after));
    let value = |(name, now): (&&str, &&str)| {
        let was = before.get(*name).filter(|was| *was != now)?;
        Some(Value { name: (*name).to_owned(), now: order(Some(was), Some(now)) })
    };
    Some(after.iter().filter_map(value).collect())
}

/// The options of a command by their names: `--NAME VALUE`, `--NAME=VALUE` and `NAME=VALUE`. Of one that is given twice the last counts.
fn options(command: &[String]) -> BTreeMap<&str, &str> {
    let is_value = |word: &str| !word.starts_with('-') || word.parse::<f64>().is_ok();
    let option = |place: usize| {
        let word = command.get(place)?.as_str();
        let name = word.trim_start_matches('-');
        if let Some(pair) = name.split_once('=') {
            return Some(pair);
        }
        let value = command.get(place + 1).filter(|value| name != word && is_value(value))?;
        Some((name, value.as_str()))
    };
    (0..command.len()).filter_map(option).collect()
}

fn order(before: Option<&str>, after: Option<&str>) -> Option<Ordering> {
    let number = |text: Option<&str>| text?.trim_matches(['"', '\'']).replace('_', "").parse::<f64>().ok();
    number(after)?.partial_cmp(&number(before)?)
}

/// What a line assigns: each name before `=` or `:`, with the word behind it.
fn assigned(line: &str) -> Vec<(&str, &str)> {
    let is_name = |at: char| at.is_alphanumeric() || matches!(at, '_' | '-');
    let pair = |(place, _): (usize, &str)| {
        let name = line[..place].trim_end().trim_end_matches(['"', '\'']);
        let begins = name.rfind(|at: char| !is_name(at)).map_or(0, |before| before + 1);
        let value = line[place + 1..].trim_start().split([',', ')', '}', '#', ' ', ';']).next()?;
        let name = name.get(begins..).filter(|name| !name.is_empty() && !value.is_empty())?;
        Some((name, value))
    };
    line.match_indices(['=', ':']).filter_map(pair).collect()
}

/// That it computed in fp16, as a parameter says.
fn halves(parameters: &[AttemptParameter]) -> Option<(Sign, String)> {
    let is_half = |parameter: &&AttemptParameter| {
        let (name, value) = (parameter.name.to_lowercase(), parameter.value.to_lowercase());
        let words = || name.split(|at: char| !at.is_alphanumeric());
        let is_named = words().any(|word| OF_PRECISION.contains(&word));
        let is_on = matches!(value.as_str(), "true" | "1" | "yes") && words().any(|word| word == "fp16");
        is_named && (is_on || matches!(value.as_str(), "fp16" | "float16" | "half" | "16" | "16-mixed"))
    };
    let found = parameters.iter().find(is_half)?;
    Some((Sign::Halves, format!("`{}` is {}", found.name, found.value)))
}

#[cfg(test)]
mod tests {
    use trackway_core::checks::{Example, Severity, Verdict};

    use super::*;

    fn change(kind: InputKind, key: &str, before: &str, after: &str) -> Change {
        Change::new(kind, key, Some(before.into()), Some(after.into()))
    }

    fn of_changes(changes: Vec<Change>) -> Vec<(Sign, String)> {
        let diff =
            Diff { against: "r".into(), label: "the last good run".into(), changes, unknown: Vec::new() };
        signs(&SignEvidence { checks: &[], diff: Some(&diff), detections: &[], parameters: &[] })
    }

    /// Proves that a value speaks for a cause in the direction in which it causes it, wherever it is set, and that
    /// other values and names do not.
    #[test]
    fn changes_speak_for_what_they_cause() {
        let line = |before: &str, after: &str| Change {
            shown_lines: vec![format!("-{before}"), format!("+{after}")],
            ..change(InputKind::Script, "t.py", "1a", "2b")
        };
        for (change, expected) in [
            (change(InputKind::File, "c.json: optimizer.lr", "0.1", "10"), Some(Sign::RateRaised)),
            (change(InputKind::Parameter, "learning_rate", "1e-3", "1e-6"), Some(Sign::RateLowered)),
            (change(InputKind::Setting, "training.batch_size", "8", "64"), Some(Sign::SizeRaised)),
            (change(InputKind::Setting, "training.batch_size", "64", "8"), None),
            (change(InputKind::Variable, "LR", "1", "2"), None),
            (
                line("o = SGD(p, lr=0.1, momentum=0.9)", "o = SGD(p, lr=3.0, momentum=0.9)"),
                Some(Sign::RateRaised),
            ),
            (line("o = SGD(p, lr=0.1, momentum=0.9)", "o = SGD(p, lr=0.1, momentum=0.5)"), None),
            (line("for batch in rows: f()", "for batch in rows: g()"), None),
            (change(InputKind::Package, "torch", "1", "2"), Some(Sign::PackageChanged)),
        ] {
            let key = change.key.clone();
            assert_eq!(of_changes(vec![change]).first().map(|(sign, _)| *sign), expected, "{key}");
        }
    }

    /// Proves that an option of the command speaks as a setting of its name does, however it is written, and that one
    /// which is only moved, new or taken back by a later one does not.
    #[test]
    fn options_of_a_command_speak() {
        let command = |words: &str| {
            let words: Vec<&str> = ["python", "t.py"].into_iter().chain(words.split_whitespace()).collect();
            serde_json::to_string(&words).unwrap()
        };
        for (before, after, expected) in [
            ("--lr 0.1", "--lr 5.0", Some(Sign::RateRaised)),
            ("--lr 0.1", "-v --lr=5.0", Some(Sign::RateRaised)),
            ("optimizer.lr=0.1 --epochs 3", "--epochs 3 optimizer.lr=0.01", Some(Sign::RateLowered)),
            ("--learning-rate -1", "--learning-rate 1", Some(Sign::RateRaised)),
            ("--batch_size 8", "--batch_size 64", Some(Sign::SizeRaised)),
            ("--num-workers 8", "--num-workers 2", Some(Sign::LoaderChanged)),
            ("--lr 0.1 --epochs 3", "--epochs 9 --lr 0.1", None),
            ("--epochs 3", "--epochs 3 --lr 5", None),
            ("--lr 0.1", "--lr 5 --lr 0.1", None),
            ("--lr --epochs 3", "--lr --epochs 9", None),
        ] {
            let changed = change(InputKind::Setting, "run.command", &command(before), &command(after));
            let found = of_changes(vec![changed]);
            assert_eq!(found.first().map(|(sign, _)| *sign), expected, "{before} and {after}");
        }
        let unread = change(InputKind::Setting, "run.command", "null", "[\"t.py\"]");
        assert!(of_changes(vec![unread]).is_empty());
    }

    /// Proves that a label that is NaN speaks for data that are not finite, as another column does.
    #[test]
    fn labels_that_are_not_finite_speak() {
        let of = |found_by: &str| {
            let check = RecordedCheck {
                name: "data.label".into(),
                verdict: Verdict::NotRun,
                blocks: false,
                seconds: None,
                why: None,
                skipped_why: Some("x".into()),
                findings: vec![Finding::new(found_by, Severity::Block, "the label `y` is NaN")],
            };
            let known = SignEvidence { checks: &[check], diff: None, detections: &[], parameters: &[] };
            signs(&known).first().map(|(sign, _)| *sign)
        };
        assert_eq!(of("label.nan"), Some(Sign::DataNotFinite));
        assert_eq!(of("label.one_class"), None);
    }

    /// Proves that of changed data the file is named and not the set, and that what a skipped check had found is named
    /// with the file and the row.
    #[test]
    fn data_is_named_by_its_file() {
        let data = |key: &str| change(InputKind::Data, key, "1", "2");
        let found = of_changes(vec![data("train"), data("train: d/shard-1.csv")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].1.contains("train: d/shard-1.csv: 1 → 2"), "{found:?}");
        let example = |row| Example { file: Some("d/shard-1.csv".into()), row: Some(row), value: None };
        let finding = Finding {
            examples: vec![example(20), example(21)],
            ..Finding::new("values.nan", Severity::Block, "`x` is NaN in 21 of 180 rows")
        };
        let check = RecordedCheck {
            name: "data.values".into(),
            verdict: Verdict::NotRun,
            blocks: false,
            seconds: None,
            why: None,
            skipped_why: Some("x".into()),
            findings: vec![finding],
        };
        let known = SignEvidence { checks: &[check], diff: None, detections: &[], parameters: &[] };
        let said = "`data.values`, which was skipped, had found: `x` is NaN in 21 of 180 rows, first in d/shard-1.csv row 20";
        assert_eq!(signs(&known), [(Sign::DataNotFinite, said.to_owned())]);
    }
}
