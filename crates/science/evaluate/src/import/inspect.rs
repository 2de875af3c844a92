//! Logs of Inspect (`inspect_ai`), format 2: `.eval`, a ZIP archive of JSON, and `.json`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value as Json, json};
use trackway_core::RowCoverage;
use trackway_statistics::{mean, mean_with_interval, wilson};

use super::bounded::{Budget, Members};
use super::zip::Archive;
use super::{
    ForeignEvaluation, ImportError, content, flat, read_json, sha256_of, sha256_of_distinct, take, text_at,
    without_nan, word_at,
};
use crate::{Estimate, Method, Metrics};

/// Where the log of an evaluation that is still running, or was killed, begins.
const JOURNAL: &str = "_journal/start.json";

/// Means that differ by less are the same, written with fewer digits.
const SAME_WITHIN: f64 = 1e-3;
const CONFIDENCE: f64 = 0.95;
/// What is needed of the header.
const HEADER: &[&str] = &["status", "eval", "plan", "results", "stats", "error"];
/// What is needed of a sample.
const SAMPLE: &[&str] =
    &["id", "epoch", "input", "target", "output", "scores", "metadata", "error", "total_time"];
/// A log whose header and samples take more memory is not read.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Reads one log.
pub(super) fn read(path: &Path) -> Result<ForeignEvaluation, ImportError> {
    let is_archive = path.extension().is_some_and(|extension| extension == "eval");
    let (header, samples) = if is_archive { archive(path)? } else { whole(path)? };
    let status = text_at(&header, "status").unwrap_or_default();
    if !header.get("eval").is_some_and(Json::is_object) {
        return Err(content(path, "not an Inspect log: it has no `eval`".into()));
    }
    if status == "started" {
        let why = "the log is not finished: the evaluation is running or was killed; finish it with `inspect eval-retry`";
        return Err(content(path, why.into()));
    }
    Ok(evaluation(&header, &samples, &status))
}

fn whole(path: &Path) -> Result<(Json, Vec<Json>), ImportError> {
    let mut log = read_json(path)?;
    let samples = log.get_mut("samples").map(Json::take);
    let samples = match samples {
        Some(Json::Array(samples)) => samples,
        _ => Vec::new(),
    };
    Ok((log, samples))
}

fn archive(path: &Path) -> Result<(Json, Vec<Json>), ImportError> {
    let disk = |source| ImportError::Disk { path: path.to_owned(), source };
    let bad = |error: std::io::Error| content(path, error.to_string());
    let file = File::open(path).map_err(disk)?;
    let mut archive = Archive::open(file).map_err(bad)?;
    let Some(header) = archive.read("header.json").map_err(bad)? else {
        return match archive.read(JOURNAL).map_err(bad)? {
            Some(_) => Ok((serde_json::json!({ "status": "started", "eval": {} }), Vec::new())),
            None => Err(content(path, "not an Inspect log: it has no `header.json`".into())),
        };
    };
    let budget = Budget::new(KEPT_BYTES_MAX);
    let header = Json::Object(members(path, "header.json", &header, &budget, HEADER)?);
    let names: Vec<String> = archive
        .names()
        .filter(|name| name.starts_with("samples/") && name.ends_with(".json"))
        .map(str::to_owned)
        .collect();
    let mut samples = Vec::with_capacity(names.len());
    for name in names {
        if let Some(bytes) = archive.read(&name).map_err(bad)? {
            samples.push(kept(members(path, &name, &bytes, &budget, SAMPLE)?));
        }
    }
    Ok((header, samples))
}

fn evaluation(header: &Json, samples: &[Json], status: &str) -> ForeignEvaluation {
    let eval = &header["eval"];
    let version = eval["packages"]["inspect_ai"].as_str();
    let mut rows: Vec<Map<String, Json>> = samples.iter().map(|sample| row(sample, header)).collect();
    rows.sort_by_key(|row| (row["id"].to_string(), row["epoch"].to_string()));
    let (judge_model, judge_rubric) = judge(eval);
    let decoding = decoding(header);
    let mut notes = Vec::new();
    if samples.is_empty() {
        notes.push("the log contains no samples: only its metrics were imported".to_owned());
    }
    let epochs = eval["config"]["epochs"].as_u64().unwrap_or(1);
    if epochs > 1 {
        notes.push(format!("every example was answered {epochs} times"));
    }
    let metrics = metrics(&header["results"], samples, &mut notes);
    let why = || text_at(&header["error"], "message").unwrap_or_else(|| format!("it ended as `{status}`"));
    ForeignEvaluation {
        origin: "inspect".into(),
        origin_id: text_at(eval, "eval_id").or_else(|| text_at(eval, "task_id")).unwrap_or_default(),
        evaluator: format!("inspect_ai {}", version.unwrap_or("?")),
        code: revision(eval),
        task: text_at(eval, "task").unwrap_or_default(),
        task_version: word_at(eval, "task_version"),
        task_sha256: task_sha256(samples),
        model: text_at(eval, "model"),
        seed: decoding.get("seed").and_then(Json::as_u64),
        decoding,
        judge_model,
        judge_rubric,
        metrics,
        rows,
        times: (
            text_at(&header["stats"], "started_at").or_else(|| text_at(eval, "created")),
            text_at(&header["stats"], "completed_at"),
        ),
        failure: (status != "success").then(why),
        notes,
    }
}

/// The commit, marked where the folder had changes.
fn revision(eval: &Json) -> Option<String> {
    let revision = eval.get("revision")?;
    let commit = text_at(revision, "commit")?;
    Some(if revision["dirty"] == Json::Bool(true) { format!("{commit} (changed)") } else { commit })
}

/// The parameters of the plan, the task and the model; the model's override.
fn decoding(header: &Json) -> Map<String, Json> {
    let mut decoding = Map::new();
    for config in [&header["plan"]["config"], &header["eval"]["model_generate_config"]] {
        let given = config.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        decoding.extend(given.map(|(name, value)| (name.clone(), value.clone())));
    }
    decoding
}

/// The judge model, and the hash of its template.
fn judge(eval: &Json) -> (Option<String>, Option<String>) {
    let role = eval["model_roles"]["grader"]["model"].as_str().map(str::to_owned);
    let scorers = eval["scorers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let graded = scorers.iter().find(|scorer| {
        scorer["name"].as_str().is_some_and(|name| name.contains("model_graded"))
            || scorer["options"].get("model").is_some()
    });
    let Some(scorer) = graded else { return (role, None) };
    let options = &scorer["options"];
    let prompts: Vec<String> = ["template", "instructions", "grade_pattern"]
        .into_iter()
        .filter_map(|name| text_at(options, name).map(|text| format!("{name}={text}")))
        .collect();
    let model = role.or_else(|| text_at(options, "model"));
    let rubric = (!prompts.is_empty()).then(|| format!("sha256:{}", sha256_of(prompts)));
    (model, rubric.or_else(|| text_at(scorer, "name")))
}

/// Over id, input and target of every example, each once, sorted by id.
fn task_sha256(samples: &[Json]) -> Option<String> {
    let line = |sample: &Json| format!("{}\t{}\t{}", sample["id"], sample["input"], sample["target"]);
    sha256_of_distinct(samples.iter().map(line).collect())
}

/// Each scorer's metrics; with several scorers their names are prefixes. A `stderr` becomes the interval of the mean it
/// belongs to. If the samples give another mean than the header, the samples count.
fn metrics(results: &Json, samples: &[Json], notes: &mut Vec<String>) -> Metrics {
    let scores = results["scores"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut metrics = Metrics::new();
    for score in scores {
        let scorer = score["name"].as_str().unwrap_or("score");
        let prefix = if scores.len() == 1 { String::new() } else { format!("{scorer}.") };
        let scored = score["scored_samples"].as_u64().or_else(|| results["completed_samples"].as_u64());
        let rows_used = scored.unwrap_or(0);
        let expected = results["total_samples"].as_u64().unwrap_or(0).max(rows_used);
        let coverage = RowCoverage { rows_used, rows_expected: if rows_used > 0 { expected } else { 0 } };
        let of_samples = of_samples(samples, scorer);
        for (name, metric) in score["metrics"].as_object().into_iter().flatten() {
            let key = format!("{prefix}{name}");
            let is_mean = matches!(name.as_str(), "accuracy" | "mean");
            let header = metric["value"].as_f64();
            match of_samples.filter(|_| is_mean) {
                Some(own) if header.is_none_or(|header| (header - own.value).abs() > SAME_WITHIN) => {
                    let stated = header.map_or_else(|| "no number".to_owned(), |header| header.to_string());
                    notes.push(format!(
                        "`{key}`: {stated} in the header, {} computed from the samples and used",
                        own.value
                    ));
                    metrics.insert(key, own);
                }
                _ if name == "stderr" => {}
                _ => {
                    let none = Json::Null;
                    let stderr = if is_mean { &score["metrics"]["stderr"]["value"] } else { &none };
                    take(&mut metrics, notes, (&key, name), &metric["value"], (stderr, coverage));
                }
            }
        }
    }
    metrics
}

/// The mean grade of a scorer over all samples, those of one example combined; none if nothing is graded.
fn of_samples(samples: &[Json], scorer: &str) -> Option<Estimate> {
    let mut examples: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let mut coverage = RowCoverage { rows_used: 0, rows_expected: samples.len() as u64 };
    for sample in samples {
        let Some(grade) = graded(&sample["scores"][scorer]["value"]).as_f64() else { continue };
        coverage.rows_used += 1;
        let example = examples.entry(sample["id"].to_string()).or_default();
        *example = (example.0 + grade, example.1 + 1.0);
    }
    let means: Vec<f64> = examples.values().map(|(sum, count)| sum / count).collect();
    let (count, mean) = (means.len() as f64, mean(&means));
    let interval = if means.iter().all(|mean| *mean == 0.0 || *mean == 1.0) {
        wilson(mean * count, count, CONFIDENCE)
    } else {
        mean_with_interval(&means, CONFIDENCE).1
    };
    let estimate = Estimate::new(mean, interval, means.len() as u64, Method::Analytic);
    mean.is_finite().then_some(Estimate { coverage, ..estimate })
}

/// The answer of a sample without the rest of the output.
fn kept(mut sample: Map<String, Json>) -> Json {
    let output = sample.get_mut("output").and_then(|output| output.get_mut("completion"));
    let completion = output.map(Json::take);
    sample.insert("output".into(), json!({ "completion": completion }));
    Json::Object(sample)
}

/// The members of an entry that are needed. Messages and events, which are most of a sample, are skipped.
fn members(
    path: &Path,
    name: &str,
    bytes: &[u8],
    budget: &Budget,
    needed: &[&str],
) -> Result<Map<String, Json>, ImportError> {
    let read = |text: &[u8]| {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let found = Members { budget, needed }.deserialize(&mut deserializer)?;
        deserializer.end().map(|()| found)
    };
    let found = read(bytes).or_else(|first| {
        let plain = without_nan(&String::from_utf8_lossy(bytes));
        read(plain.as_bytes()).map_err(|_| first)
    });
    found.map_err(|error| content(path, format!("`{name}`: {error}")))
}

/// One example. Its first score determines whether it is right, as far as it is a grade.
fn row(sample: &Json, header: &Json) -> Map<String, Json> {
    let mut row = Map::new();
    row.insert("id".into(), plain(&sample["id"]));
    row.insert("epoch".into(), sample["epoch"].clone());
    row.insert("input".into(), plain(&sample["input"]));
    row.insert("label".into(), plain(&sample["target"]));
    let completion = &sample["output"]["completion"];
    row.insert("prediction".into(), plain(completion));
    let first = header["results"]["scores"][0]["name"].as_str();
    let scores = sample["scores"].as_object();
    for (name, score) in scores.into_iter().flatten() {
        let value = &score["value"];
        if first.is_none_or(|first| first == name) && !row.contains_key("correct") {
            row.insert("correct".into(), correct(value));
        }
        row.insert(format!("score.{name}"), graded(value));
        row.insert(format!("answer.{name}"), plain(&score["answer"]));
        row.insert(format!("explanation.{name}"), plain(&score["explanation"]));
    }
    row.extend(flat("metadata.", &sample["metadata"]));
    row.insert("error".into(), plain(&sample["error"]["message"]));
    row.insert("seconds".into(), sample["total_time"].clone());
    row
}

/// Whether a grade is right; null where it is neither right nor wrong.
fn correct(value: &Json) -> Json {
    match graded(value).as_f64() {
        Some(1.0) => true.into(),
        Some(0.0) => false.into(),
        _ => Json::Null,
    }
}

/// A grade as Inspect's `value_to_float` has it: correct, incorrect, partial, no answer.
fn graded(value: &Json) -> Json {
    match value {
        Json::String(grade) => match grade.as_str() {
            "C" => 1.0.into(),
            "P" => 0.5.into(),
            "I" | "N" => 0.0.into(),
            other => match other.to_lowercase().as_str() {
                "yes" | "true" => 1.0.into(),
                "no" | "false" => 0.0.into(),
                number => number.parse::<f64>().map_or(Json::Null, Json::from),
            },
        },
        Json::Bool(right) => f64::from(u8::from(*right)).into(),
        Json::Number(number) => number.as_f64().map_or(Json::Null, Json::from),
        _ => Json::Null,
    }
}

/// One value; what is nested becomes JSON text.
fn plain(value: &Json) -> Json {
    match value {
        Json::Array(items) if items.len() == 1 && items[0].is_string() => items[0].clone(),
        Json::Array(_) | Json::Object(_) => value.to_string().into(),
        Json::Number(number) => number.to_string().into(),
        other => other.clone(),
    }
}
