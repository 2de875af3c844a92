//! `[evaluate]`: how committed checkpoints are judged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::read::{attempts_and_backoff, one_or_more_texts, positive_duration, rule};
use super::sections::RetryRule;
use super::tree::{Node, Value};
use super::values::{command, flag, list, text, whole};
use super::walker::{Fault, Problems, Scope};
use crate::gate::Number;

/// How long one launch of the evaluator may take when the run file does not say it.
pub const DEFAULT_EVALUATION_TIMEOUT_SECONDS: f64 = 24.0 * 3600.0;

/// The evaluation of committed checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvaluateSection {
    /// The evaluator's argument vector.
    pub command: Vec<String>,
    /// The file of tasks or prompts; a glob, a folder or a URL as well.
    pub task_set: Option<String>,
    /// Its version; told by its name (`tasks-v3.jsonl`) when absent.
    pub task_set_version: Option<String>,
    /// Named predicates over rows.
    pub slices: BTreeMap<String, String>,
    /// Rules that block promotion.
    pub gates: Vec<String>,
    /// The column of the predictions that holds what is right.
    pub label: Option<String>,
    /// The column that holds the answer of the model.
    pub prediction: Option<String>,
    /// The column that holds its score for the positive answer.
    pub score: Option<String>,
    /// The column whose equal values belong together, such as a person.
    pub group: Option<String>,
    /// Columns by whose values fairness is judged.
    pub fairness: Vec<String>,
    /// What the result is compared with: `last`, an evaluation's id, or `MODEL@ALIAS` of the registry.
    pub baseline: Option<String>,
    /// Decoding parameters, as they are.
    pub decoding: BTreeMap<String, Json>,
    /// Who judges the answers, where a model does.
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

/// A model that judges, and by what.
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
            task_set: None,
            task_set_version: None,
            slices: BTreeMap::new(),
            gates: Vec::new(),
            label: None,
            prediction: None,
            score: None,
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

pub(super) fn evaluate(scope: &Scope, problems: &mut Problems) -> EvaluateSection {
    scope.require("command", "[\"python\", \"eval.py\"]", problems);
    let slices = scope.section("slices", problems);
    let retry = scope.section("retry", problems);
    EvaluateSection {
        command: scope.read("command", problems, command).unwrap_or_default(),
        task_set: scope.read("task_set", problems, text),
        task_set_version: scope.read("task_set_version", problems, text),
        slices: slices.map(|slices| predicates(&slices, problems)).unwrap_or_default(),
        gates: scope.read("gates", problems, list(0, rule::<Number>)).unwrap_or_default(),
        label: scope.read("label", problems, text),
        prediction: scope.read("prediction", problems, text),
        score: scope.read("score", problems, text),
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
            return Err(node.not("a text, a finite number, true or false, a list or a table"));
        }
    })
}
