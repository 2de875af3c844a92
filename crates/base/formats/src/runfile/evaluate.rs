//! `[evaluate]`: how committed checkpoints are evaluated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use trackway_core::{MissingPredictions, UnmatchedTasks};

use super::keys::tree::{Node, Value};
use super::keys::values::{amount, command, flag, list, one_of, positive_duration, text, whole};
use super::keys::walker::{Fault, Problems, Scope};
use super::read::{attempts_and_backoff, one_or_more_texts, rule};
use super::sections::{DataSpec, RetryRule, is_default};
use crate::rules::gate::{BLIND_SPOT, Number, PROBE};
use crate::text::shell::quoted;

/// How long one launch of the evaluator may take by default.
pub const DEFAULT_EVALUATION_TIMEOUT_SECONDS: f64 = 24.0 * 3600.0;

/// The most rows that a model is probed with.
pub const PROBE_ROWS_MAX: u64 = 100_000;

/// The word that means no baseline, to override one.
const NO_BASELINE: &str = "none";

/// The name by which the test set of `[evaluate]` itself is chosen.
pub const MAIN_TEST_SET: &str = "main";

/// The evaluation of committed checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvaluateSection {
    /// The evaluator's argument vector; empty where `scorer` is there.
    pub command: Vec<String>,
    /// The scoring command of the built-in evaluator, as a shell reads it.
    pub scorer: Option<String>,
    /// The rows that it scores: a file, a glob, a folder or a URL. They are the task set where none is named.
    pub rows: Option<String>,
    /// What it is given, in this order; every column but the label where empty.
    pub features: Vec<String>,
    /// Columns that it is not given.
    pub skip: Vec<String>,
    /// The file of tasks or prompts; a glob, a folder or a URL as well.
    pub task_set: Option<String>,
    /// Its version; derived from its name (`tasks-v3.jsonl`) when absent.
    pub task_set_version: Option<String>,
    /// Named parts of the rows.
    pub slices: BTreeMap<String, SliceSection>,
    /// The metric by which slices are compared; the task's default if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub metric: Option<String>,
    /// The recall at which precision is taken for `precision_at_recall`; 0.9 if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub recall: Option<f64>,
    /// Fewer rows than this decide nothing about a slice or a group; 30 if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub support_min: Option<u64>,
    /// A wider interval than this decides nothing about a slice; 0.2 if absent.
    #[serde(skip_serializing_if = "is_default")]
    pub width_max: Option<f64>,
    /// A smaller difference from the baseline does not matter.
    #[serde(skip_serializing_if = "is_default")]
    pub margin: Option<f64>,
    /// For each label the cost of each prediction, in any unit; a pair that is missing costs 0.
    #[serde(skip_serializing_if = "is_default")]
    pub costs: BTreeMap<String, BTreeMap<String, f64>>,
    /// Search the rows for slices where the model is worst; where `None`, if there are rows to search.
    #[serde(skip_serializing_if = "is_default")]
    pub blind_spots: Option<bool>,
    /// How many rows the model is probed with, 0: it is not; where `None`, as many as take little time. Only of the built-in
    /// evaluator.
    #[serde(skip_serializing_if = "is_default")]
    pub probe_rows: Option<u64>,
    /// Further test sets by name; each is a separate evaluation.
    #[serde(skip_serializing_if = "is_default")]
    pub test_sets: BTreeMap<String, TestSetSection>,
    /// Which checkpoint is evaluated: `latest`, `best`, or the best by a metric, such as `min val_loss`.
    #[serde(skip_serializing_if = "is_default")]
    pub checkpoint: Option<String>,
    /// Rules that block promotion.
    pub gates: Vec<String>,
    /// The column of the predictions that holds what is right.
    pub label: Option<String>,
    /// The class of the label whose probability is predicted; the last of two if absent.
    pub positive: Option<String>,
    /// The column that holds the answer of the model.
    pub prediction: Option<String>,
    /// The column that holds its score for the positive answer.
    pub score: Option<String>,
    /// How a row without a prediction counts.
    #[serde(skip_serializing_if = "is_default")]
    pub missing: MissingPredictions,
    /// How gates treat rows that cannot be matched with the task set.
    #[serde(skip_serializing_if = "is_default")]
    pub unmatched_tasks: UnmatchedTasks,
    /// The column whose equal values belong together, such as a person.
    pub group: Option<String>,
    /// Columns whose values define the groups of fairness.
    pub fairness: Vec<String>,
    /// What the result is compared with: `last`, `parent`, an evaluation's id, or `MODEL@ALIAS` of the registry.
    pub baseline: Option<String>,
    /// Decoding parameters, as they are.
    pub decoding: BTreeMap<String, Json>,
    /// The judge, if a model judges the answers.
    pub judge: Option<JudgeSection>,
    /// The evaluator's seed (`TRACKWAY_SEED`); the run's when absent.
    pub seed: Option<u64>,
    /// How long one launch may take.
    pub timeout_seconds: f64,
    /// How often the evaluator alone is launched again after it failed.
    pub retry: Option<RetryRule>,
    /// Evaluate when the run completed.
    pub after: bool,
}

/// A further test set, evaluated like the main one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TestSetSection {
    /// As [`EvaluateSection::rows`].
    pub rows: Option<String>,
    /// As [`EvaluateSection::task_set`].
    pub task_set: Option<String>,
    /// As [`EvaluateSection::task_set_version`].
    pub task_set_version: Option<String>,
    /// As [`EvaluateSection::slices`]; those of the main test set are not taken over.
    pub slices: BTreeMap<String, SliceSection>,
    /// Rules that block promotion, over the numbers of this test set.
    pub gates: Vec<String>,
}

/// A named part of the rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "StoredSlice", into = "StoredSlice")]
pub struct SliceSection {
    /// The condition, in SQL over the columns.
    pub predicate: String,
    /// The metric by which it is compared; that of all slices if absent.
    pub metric: Option<String>,
    /// As [`EvaluateSection::support_min`], of this slice.
    pub support_min: Option<u64>,
    /// As [`EvaluateSection::width_max`], of this slice.
    pub width_max: Option<f64>,
}

/// A slice that only has a condition is this condition, as in a run file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredSlice {
    Predicate(String),
    Whole {
        #[serde(rename = "where")]
        predicate: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metric: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        support_min: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        width_max: Option<f64>,
    },
}

impl From<StoredSlice> for SliceSection {
    fn from(stored: StoredSlice) -> Self {
        match stored {
            StoredSlice::Predicate(predicate) => Self { predicate, ..Self::default() },
            StoredSlice::Whole { predicate, metric, support_min, width_max } => {
                Self { predicate, metric, support_min, width_max }
            }
        }
    }
}

impl From<SliceSection> for StoredSlice {
    fn from(slice: SliceSection) -> Self {
        let SliceSection { predicate, metric, support_min, width_max } = slice;
        match (&metric, support_min, width_max) {
            (None, None, None) => Self::Predicate(predicate),
            _ => Self::Whole { predicate, metric, support_min, width_max },
        }
    }
}

/// A judge model and its rubric.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JudgeSection {
    /// Its name.
    pub model: String,
    /// The rubric: its version, or the file that holds it.
    pub rubric: Option<String>,
}

impl Default for EvaluateSection {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            scorer: None,
            rows: None,
            features: Vec::new(),
            skip: Vec::new(),
            task_set: None,
            task_set_version: None,
            slices: BTreeMap::new(),
            metric: None,
            recall: None,
            support_min: None,
            width_max: None,
            margin: None,
            costs: BTreeMap::new(),
            blind_spots: None,
            probe_rows: None,
            test_sets: BTreeMap::new(),
            checkpoint: None,
            gates: Vec::new(),
            label: None,
            positive: None,
            prediction: None,
            score: None,
            missing: MissingPredictions::default(),
            unmatched_tasks: UnmatchedTasks::default(),
            group: None,
            fairness: Vec::new(),
            baseline: None,
            decoding: BTreeMap::new(),
            judge: None,
            seed: None,
            timeout_seconds: DEFAULT_EVALUATION_TIMEOUT_SECONDS,
            retry: None,
            after: true,
        }
    }
}

impl EvaluateSection {
    /// How the rows of the built-in evaluator are read: like the data set of the same path, if there is one.
    #[must_use]
    pub fn rows_spec(&self, data: &BTreeMap<String, DataSpec>) -> Option<DataSpec> {
        let path = self.rows.as_ref()?;
        let known = data.values().find(|set| set.path == *path);
        Some(known.cloned().unwrap_or_else(|| DataSpec { path: path.clone(), ..DataSpec::default() }))
    }

    /// The request for a further test set: its rows, slices and gates in place of the main one's. It is compared with the baseline
    /// only where a gate names that.
    #[must_use]
    pub fn of_test_set(&self, name: &str) -> Option<Self> {
        let set = self.test_sets.get(name)?;
        let compares = set.gates.iter().any(|gate| gate.contains("baseline"));
        Some(Self {
            rows: set.rows.clone(),
            task_set: set.task_set.clone(),
            task_set_version: set.task_set_version.clone(),
            slices: set.slices.clone(),
            gates: set.gates.clone(),
            fairness: Vec::new(),
            probe_rows: Some(0),
            baseline: self.baseline.clone().filter(|_| compares),
            test_sets: BTreeMap::new(),
            ..self.clone()
        })
    }

    /// The path of the tasks, by which uses are counted.
    #[must_use]
    pub fn tasks(&self) -> Option<&str> {
        self.task_set.as_deref().or(self.rows.as_deref())
    }
}

pub(super) fn evaluate(
    scope: &Scope,
    data: &BTreeMap<String, DataSpec>,
    problems: &mut Problems,
) -> EvaluateSection {
    let section = keys(scope, problems);
    check_roles(&section, scope, problems);
    check_test_sets(&section, scope, problems);
    match scope.node("scorer") {
        None => without_scorer(scope, problems),
        Some(node) => return with_scorer(section, scope, node, data, problems),
    }
    section
}

/// A column that is compared with itself is always right.
fn check_roles(section: &EvaluateSection, scope: &Scope, problems: &mut Problems) {
    let Some(label) = &section.label else { return };
    for (key, column) in [("prediction", &section.prediction), ("score", &section.score)] {
        if column.as_ref() == Some(label)
            && let Some(node) = scope.node(key)
        {
            let message = format!("`evaluate.{key}` and `evaluate.label` name the same column `{label}`");
            let hint = format!("name the column with the model's predictions, as `{key} = \"…\"`");
            problems.add(node.place.clone(), message, Some(hint));
        }
    }
}

fn without_scorer(scope: &Scope, problems: &mut Problems) {
    scope.require("command", "[\"python\", \"eval.py\"]", problems);
    for key in ["rows", "features", "skip", "probe_rows"] {
        if let Some(node) = scope.node(key) {
            let message = format!(
                "`{}` is for the built-in evaluator, but `evaluate.scorer` is not set",
                scope.path_of(key)
            );
            let hint = "add `scorer = \"python score.py\"` in place of `command`".to_owned();
            problems.add(node.place.clone(), message, Some(hint));
        }
    }
}

/// What the built-in evaluator needs, and what it decides by itself.
fn with_scorer(
    section: EvaluateSection,
    scope: &Scope,
    scorer: &Node,
    data: &BTreeMap<String, DataSpec>,
    problems: &mut Problems,
) -> EvaluateSection {
    scope.require("rows", "\"data/test.csv\"", problems);
    if scope.node("command").is_some() {
        let message = "`evaluate.command` and `evaluate.scorer` are both set".to_owned();
        let hint =
            "`command` is your own evaluator, `scorer` only predicts rows for the built-in one; remove one of them".to_owned();
        problems.add(scorer.place.clone(), message, Some(hint));
    }
    let column = |key: &str| scope.node(key).map(|node| (key.to_owned(), node));
    for (key, node) in ["prediction", "score"].into_iter().filter_map(column) {
        let message = format!("`evaluate.{key}` is only for your own evaluator (`evaluate.command`)");
        let hint = format!("remove it: the built-in evaluator calls the column `{key}`");
        problems.add(node.place.clone(), message, Some(hint));
    }
    if let (Some(_), Some(node)) = (scope.node("features"), scope.node("skip")) {
        let message = "`evaluate.features` and `evaluate.skip` are both set".to_owned();
        let hint = "name the columns the model is given, or those it is not given".to_owned();
        problems.add(node.place.clone(), message, Some(hint));
    }
    let label = section.label.clone().or_else(|| section.rows_spec(data)?.label);
    if label.is_none() && section.rows.is_some() {
        let hint = "add `label = \"…\"`, the ground-truth column, which the model is not given".to_owned();
        problems.add(scorer.place.clone(), "`evaluate.label` is missing".to_owned(), Some(hint));
    }
    EvaluateSection { label, ..section }
}

/// A command line for a shell; of a list each word as it is.
fn scorer(node: &Node) -> Result<String, Fault> {
    match &node.value {
        Value::List(_) => Ok(command(node)?.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
        Value::Text(_) => text(node),
        _ => Err(node.not("a command: one string, which a shell reads, or a list of strings")),
    }
}

fn keys(scope: &Scope, problems: &mut Problems) -> EvaluateSection {
    EvaluateSection {
        command: scope.read("command", problems, command).unwrap_or_default(),
        scorer: scope.read("scorer", problems, scorer),
        rows: scope.read("rows", problems, text),
        features: scope.read("features", problems, list(1, text)).unwrap_or_default(),
        skip: scope.read("skip", problems, list(1, text)).unwrap_or_default(),
        task_set: scope.read("task_set", problems, text),
        task_set_version: scope.read("task_set_version", problems, text),
        slices: scope.part("slices", problems, slices_of).unwrap_or_default(),
        metric: scope.read("metric", problems, text),
        recall: scope.read("recall", problems, recall),
        support_min: scope.read("support_min", problems, whole(1, u64::MAX)),
        width_max: scope.read("width_max", problems, amount(false)),
        margin: scope.read("margin", problems, amount(false)),
        costs: scope.part("costs", problems, costs_of).unwrap_or_default(),
        blind_spots: scope.read("blind_spots", problems, flag),
        probe_rows: scope.read("probe_rows", problems, whole(0, PROBE_ROWS_MAX)),
        test_sets: scope.part("test_sets", problems, test_sets_of).unwrap_or_default(),
        checkpoint: scope.read("checkpoint", problems, checkpoint),
        gates: scope.read("gates", problems, list(0, rule::<Number>)).unwrap_or_default(),
        label: scope.read("label", problems, text),
        positive: scope.read("positive", problems, text),
        prediction: scope.read("prediction", problems, text),
        score: scope.read("score", problems, text),
        missing: scope.read("missing", problems, one_of(MissingPredictions::WORDS)).unwrap_or_default(),
        unmatched_tasks: scope
            .read("unmatched_tasks", problems, one_of(UnmatchedTasks::WORDS))
            .unwrap_or_default(),
        group: scope.read("group", problems, text),
        fairness: scope.read("fairness", problems, one_or_more_texts).unwrap_or_default(),
        baseline: scope.read("baseline", problems, text).filter(|named| named != NO_BASELINE),
        decoding: scope.read("decoding", problems, decoding).unwrap_or_default(),
        judge: scope.part("judge", problems, judge_of),
        seed: scope.read("seed", problems, whole(0, u64::MAX)),
        timeout_seconds: scope
            .read("timeout", problems, positive_duration)
            .unwrap_or(DEFAULT_EVALUATION_TIMEOUT_SECONDS),
        retry: scope.part("retry", problems, attempts_and_backoff),
        after: scope.read("after", problems, flag).unwrap_or(true),
    }
}

/// A fraction above 0, up to 1.
fn recall(node: &Node) -> Result<f64, Fault> {
    let value = amount(false)(node)?;
    if value <= 1.0 { Ok(value) } else { Err(node.fault(format!("must be at most 1, not {value}"))) }
}

/// A table of tables of numbers.
fn costs_of(scope: &Scope, problems: &mut Problems) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut costs = BTreeMap::new();
    for (label, _) in scope.entries() {
        let Some(row) = scope.table_of(label, "evaluate.costs.*", problems) else { continue };
        let cost = |(prediction, _): (&String, _)| {
            Some((prediction.clone(), row.read(prediction, problems, number)?))
        };
        costs.insert(label.clone(), row.entries().filter_map(cost).collect());
    }
    costs
}

/// A finite number.
fn number(node: &Node) -> Result<f64, Fault> {
    match node.value {
        Value::Integer(number) => Ok(number as f64),
        Value::Float(number) if number.is_finite() => Ok(number),
        _ => Err(node.not("a finite number")),
    }
}

/// `latest`, `best`, or the best by a metric.
fn checkpoint(node: &Node) -> Result<String, Fault> {
    let words = text(node)?;
    let is_known = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
        [word] => matches!(*word, "latest" | "best"),
        [goal, _] => matches!(*goal, "min" | "max"),
        _ => false,
    };
    match is_known {
        true => Ok(words),
        false => {
            Err(node.fault(format!("must be `latest`, `best`, `min METRIC` or `max METRIC`, not `{words}`")))
        }
    }
}

fn slices_of(scope: &Scope, problems: &mut Problems) -> BTreeMap<String, SliceSection> {
    let mut slices = BTreeMap::new();
    for (name, entry) in scope.entries() {
        for reserved in [BLIND_SPOT, PROBE].into_iter().filter(|reserved| name.starts_with(reserved)) {
            let message = format!("`{}` is the name of a slice that is found", scope.path_of(name));
            let hint = format!("another name, without `{reserved}` before it");
            problems.add(entry.key_place.clone(), message, Some(hint));
        }
        if !matches!(entry.node.value, Value::Table(_)) {
            let predicate = scope.read(name, problems, text);
            slices.extend(
                predicate
                    .map(|predicate| (name.clone(), SliceSection { predicate, ..SliceSection::default() })),
            );
            continue;
        }
        let Some(slice) = scope.table_of(name, "evaluate.slices.*", problems) else { continue };
        slice.require("where", "\"sex = 'Female'\"", problems);
        let section = SliceSection {
            predicate: slice.read("where", problems, text).unwrap_or_default(),
            metric: slice.read("metric", problems, text),
            support_min: slice.read("support_min", problems, whole(1, u64::MAX)),
            width_max: slice.read("width_max", problems, amount(false)),
        };
        slices.insert(name.clone(), section);
    }
    slices
}

/// What each test set holds in place of the main one's.
fn test_sets_of(scope: &Scope, problems: &mut Problems) -> BTreeMap<String, TestSetSection> {
    let mut sets = BTreeMap::new();
    for (name, entry) in scope.entries() {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name == MAIN_TEST_SET || !name.chars().all(letter) {
            let message = format!("`{}` cannot be the name of a test set", scope.path_of(name));
            let hint = format!("use letters, digits, `-` and `_`; `{MAIN_TEST_SET}` is `[evaluate]` itself");
            problems.add(entry.key_place.clone(), message, Some(hint));
        }
        let Some(set) = scope.table_of(name, "evaluate.test_sets.*", problems) else { continue };
        let slices = set.table_of("slices", "evaluate.test_sets.*.slices", problems);
        let section = TestSetSection {
            rows: set.read("rows", problems, text),
            task_set: set.read("task_set", problems, text),
            task_set_version: set.read("task_set_version", problems, text),
            slices: slices.map(|slices| slices_of(&slices, problems)).unwrap_or_default(),
            gates: set.read("gates", problems, list(0, rule::<Number>)).unwrap_or_default(),
        };
        sets.insert(name.clone(), section);
    }
    sets
}

/// The key with which a test set names its rows or tasks is there, and the other evaluator's is not.
fn check_test_sets(section: &EvaluateSection, scope: &Scope, problems: &mut Problems) {
    let (wanted, other) = match section.scorer {
        Some(_) => ("rows", None),
        None => ("task_set", Some("rows")),
    };
    let Some(node) = scope.node("test_sets") else { return };
    for (name, set) in &section.test_sets {
        let (rows, tasks) = (set.rows.is_some(), set.task_set.is_some());
        if (wanted == "rows" && !rows) || (wanted == "task_set" && !tasks) {
            let message = format!("`evaluate.test_sets.{name}.{wanted}` is missing");
            problems.add(node.place.clone(), message, Some(format!("add `{wanted} = \"eval/{name}.csv\"`")));
        }
        if other.is_some() && rows {
            let message = format!(
                "`evaluate.test_sets.{name}.rows` is for the built-in evaluator, but `evaluate.scorer` is not set"
            );
            problems.add(node.place.clone(), message, Some("name the tasks as `task_set`".to_owned()));
        }
    }
}

fn judge_of(scope: &Scope, problems: &mut Problems) -> JudgeSection {
    scope.require("model", "\"…\"", problems);
    JudgeSection {
        model: scope.read("model", problems, text).unwrap_or_default(),
        rubric: scope.read("rubric", problems, text),
    }
}

/// A table whose values are kept as they are.
fn decoding(node: &Node) -> Result<BTreeMap<String, Json>, Fault> {
    let Value::Table(table) = &node.value else {
        return Err(node.not("a table such as `{ temperature = 0.0, max_tokens = 256 }`"));
    };
    table.iter().map(|(name, entry)| Ok((name.clone(), json(&entry.node)?))).collect()
}

fn json(node: &Node) -> Result<Json, Fault> {
    Ok(match &node.value {
        Value::Text(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) if number.is_finite() => (*number).into(),
        Value::Bool(flag) => (*flag).into(),
        Value::List(items) => items.iter().map(json).collect::<Result<Vec<_>, _>>()?.into(),
        Value::Table(table) => {
            let members = table.iter().map(|(name, entry)| Ok((name.clone(), json(&entry.node)?)));
            Json::Object(members.collect::<Result<_, _>>()?)
        }
        Value::Float(_) | Value::Other(_) => {
            return Err(node.not("a string, a finite number, a boolean, a list or a table"));
        }
    })
}
