//! `[evaluate]`: how committed checkpoints are evaluated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use trackway_core::{MissingPredictions, UnmatchedTasks};

use super::read::{attempts_and_backoff, one_or_more_texts, rule};
use super::sections::{DataSpec, RetryRule};
use super::tree::{Node, Value};
use super::values::{command, flag, list, positive_duration, text, whole, word};
use super::walker::{Fault, Problems, Scope};
use crate::gate::Number;
use crate::shell::quoted;

/// How long one launch of the evaluator may take by default.
pub const DEFAULT_EVALUATION_TIMEOUT_SECONDS: f64 = 24.0 * 3600.0;

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
    /// Named predicates over rows.
    pub slices: BTreeMap<String, String>,
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
    /// What the result is compared with: `last`, an evaluation's id, or `MODEL@ALIAS` of the registry.
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

    /// The path of the tasks, by which uses are counted.
    #[must_use]
    pub fn tasks(&self) -> Option<&str> {
        self.task_set.as_deref().or(self.rows.as_deref())
    }
}

/// The digest of a config that does not name the policy is what it was before there was one.
fn is_default<T: Default + PartialEq>(policy: &T) -> bool {
    *policy == T::default()
}

pub(super) fn evaluate(
    scope: &Scope,
    data: &BTreeMap<String, DataSpec>,
    problems: &mut Problems,
) -> EvaluateSection {
    let section = keys(scope, problems);
    check_roles(&section, scope, problems);
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
    for key in ["rows", "features", "skip"] {
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
    let slices = scope.section("slices", problems);
    let retry = scope.section("retry", problems);
    EvaluateSection {
        command: scope.read("command", problems, command).unwrap_or_default(),
        scorer: scope.read("scorer", problems, scorer),
        rows: scope.read("rows", problems, text),
        features: scope.read("features", problems, list(1, text)).unwrap_or_default(),
        skip: scope.read("skip", problems, list(1, text)).unwrap_or_default(),
        task_set: scope.read("task_set", problems, text),
        task_set_version: scope.read("task_set_version", problems, text),
        slices: slices.map(|slices| predicates(&slices, problems)).unwrap_or_default(),
        gates: scope.read("gates", problems, list(0, rule::<Number>)).unwrap_or_default(),
        label: scope.read("label", problems, text),
        positive: scope.read("positive", problems, text),
        prediction: scope.read("prediction", problems, text),
        score: scope.read("score", problems, text),
        missing: scope.read("missing", problems, missing).unwrap_or_default(),
        unmatched_tasks: scope.read("unmatched_tasks", problems, unmatched_tasks).unwrap_or_default(),
        group: scope.read("group", problems, text),
        fairness: scope.read("fairness", problems, one_or_more_texts).unwrap_or_default(),
        baseline: scope.read("baseline", problems, text),
        decoding: scope.read("decoding", problems, decoding).unwrap_or_default(),
        judge: scope.section("judge", problems).map(|judge| judge_of(&judge, problems)),
        seed: scope.read("seed", problems, whole(0, u64::MAX)),
        timeout_seconds: scope
            .read("timeout", problems, positive_duration)
            .unwrap_or(DEFAULT_EVALUATION_TIMEOUT_SECONDS),
        retry: retry.map(|retry| attempts_and_backoff(&retry, problems)),
        after: scope.read("after", problems, flag).unwrap_or(true),
    }
}

fn missing(node: &Node) -> Result<MissingPredictions, Fault> {
    let known = word(&["wrong", "inconclusive"])(node)?;
    known.parse().map_err(|_| node.not("`wrong` or `inconclusive`"))
}

fn unmatched_tasks(node: &Node) -> Result<UnmatchedTasks, Fault> {
    let known = word(&["inconclusive", "accepted"])(node)?;
    known.parse().map_err(|_| node.not("`inconclusive` or `accepted`"))
}

fn predicates(scope: &Scope, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut predicates = BTreeMap::new();
    for (name, _) in scope.entries() {
        predicates.extend(scope.read(name, problems, text).map(|predicate| (name.clone(), predicate)));
    }
    predicates
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
