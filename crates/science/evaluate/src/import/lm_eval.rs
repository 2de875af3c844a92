//! Results of lm-evaluation-harness: `results_DATE.json` and, where `--log_samples` was given,
//! `samples_TASK_DATE.jsonl` beside it. Each task is a separate evaluation; groups of tasks are sums of them and are
//! skipped.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use trackway_core::{RowCoverage, Timestamp};

use super::{
    ForeignEvaluation, ImportError, content, flat, parse, read_json, sha256_of, sha256_of_distinct, take,
    text_at, word_at,
};
use crate::Metrics;

/// The filter that changes nothing.
const NO_FILTER: &str = "none";

/// Reads the tasks of one results file.
pub(super) fn read(path: &Path) -> Result<Vec<ForeignEvaluation>, ImportError> {
    let results = read_json(path)?;
    let Some(tasks) = results["results"].as_object() else {
        return Err(content(path, "not an lm-evaluation-harness result: it has no `results`".into()));
    };
    let groups = &results["group_subtasks"];
    let is_group = |task: &str| groups[task].as_array().is_some_and(|subtasks| !subtasks.is_empty());
    let mut found = Vec::new();
    for (task, numbers) in tasks.iter().filter(|(task, _)| !is_group(task)) {
        let samples = samples(path, task)?;
        found.push(evaluation(&results, task, numbers, samples.as_deref()));
    }
    Ok(found)
}

/// The rows of a task, where they were logged.
fn samples(path: &Path, task: &str) -> Result<Option<Vec<Json>>, ImportError> {
    let Some(file) = samples_file(path, task).filter(|file| file.is_file()) else { return Ok(None) };
    let disk = |source| ImportError::Disk { path: file.clone(), source };
    let reader = BufReader::new(std::fs::File::open(&file).map_err(disk)?);
    let mut rows = Vec::new();
    for (number, line) in reader.lines().enumerate() {
        let line = line.map_err(disk)?;
        if line.trim().is_empty() {
            continue;
        }
        let row = parse(&file, line.as_bytes())
            .map_err(|error| content(&file, format!("line {}: {error}", number + 1)))?;
        rows.push(row);
    }
    Ok(Some(rows))
}

/// `samples_TASK_DATE.jsonl` for `results_DATE.json`.
fn samples_file(path: &Path, task: &str) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let date = name.strip_prefix("results")?.strip_suffix(".json")?;
    Some(path.with_file_name(format!("samples_{task}{date}.jsonl")))
}

fn evaluation(results: &Json, task: &str, numbers: &Json, samples: Option<&[Json]>) -> ForeignEvaluation {
    let (config, of_task) = (&results["config"], &results["configs"][task]);
    let mut notes = Vec::new();
    if samples.is_none() {
        notes.push(
            "the examples were not logged (`--log_samples`): only the numbers were taken over".to_owned(),
        );
    }
    if let Some(limit) = config["limit"].as_f64() {
        notes.push(format!("only a part of the task was run: `--limit {limit}`"));
    }
    let metrics = metrics(numbers, &results["n-samples"][task], &mut notes);
    let version = results["lm_eval_version"].as_str();
    let began = results["date"].as_f64();
    let took = word_at(results, "total_evaluation_time_seconds").and_then(|text| text.parse::<f64>().ok());
    let time = |seconds: f64| Timestamp::from_micros((seconds * 1e6) as i64).to_rfc3339();
    let mut decoding = of_task["generation_kwargs"].as_object().cloned().unwrap_or_default();
    decoding.extend(config["gen_kwargs"].as_object().cloned().unwrap_or_default());
    let shots = results["n-shot"][task].as_u64();
    decoding.extend(shots.map(|shots| ("num_fewshot".to_owned(), shots.into())));
    for (name, key) in [
        ("system_instruction_sha256", "system_instruction_sha"),
        ("chat_template_sha256", "chat_template_sha"),
    ] {
        decoding.extend(text_at(results, key).map(|sha| (name.to_owned(), sha.into())));
    }
    let model = text_at(results, "model_name").or_else(|| text_at(config, "model"));
    ForeignEvaluation {
        origin: "lm_eval".into(),
        origin_id: sha256_of([results["date"].to_string(), task.to_owned(), numbers.to_string()]),
        evaluator: format!("lm_eval {}", version.unwrap_or("?")),
        code: text_at(results, "git_hash"),
        task: task.to_owned(),
        task_version: word_at(&results["versions"], task),
        task_sha256: text_at(&results["task_hashes"], task).or_else(|| hashed(samples?)),
        model,
        decoding,
        judge_model: None,
        judge_rubric: None,
        seed: config["random_seed"].as_u64(),
        metrics,
        rows: samples.unwrap_or_default().iter().map(row).collect(),
        times: (began.map(time), began.zip(took).map(|(began, took)| time(began + took))),
        failure: None,
        notes,
    }
}

/// As the harness hashes a task, of the hashes of its documents.
fn hashed(samples: &[Json]) -> Option<String> {
    sha256_of_distinct(samples.iter().filter_map(|sample| text_at(sample, "doc_hash")).collect())
}

/// `acc,none` with `acc_stderr,none`. The harness's `acc` is scikit-learn's accuracy; other filters than `none` are
/// suffixes of the name.
fn metrics(numbers: &Json, samples: &Json, notes: &mut Vec<String>) -> Metrics {
    let rows_used = samples["effective"].as_u64().unwrap_or(0);
    let expected = samples["original"].as_u64().unwrap_or(rows_used).max(rows_used);
    let coverage = RowCoverage { rows_used, rows_expected: if rows_used > 0 { expected } else { 0 } };
    let mut metrics = Metrics::new();
    for (key, value) in numbers.as_object().into_iter().flatten() {
        let Some((name, filter)) = key.split_once(',') else { continue };
        if name.ends_with("_stderr") || value.is_string() {
            continue;
        }
        let stderr = &numbers[format!("{name}_stderr,{filter}")];
        take(&mut metrics, notes, (&named(name, filter), name), value, (stderr, coverage));
    }
    metrics
}

fn named(name: &str, filter: &str) -> String {
    let name = if name == "acc" { "accuracy" } else { name };
    if filter == NO_FILTER {
        return name.to_owned();
    }
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("{name}_{}", filter.chars().map(plain).collect::<String>())
}

/// One example under one filter.
fn row(sample: &Json) -> Map<String, Json> {
    let mut row = Map::new();
    row.insert("id".into(), sample["doc_id"].clone());
    row.insert("filter".into(), sample["filter"].clone());
    row.insert("label".into(), text_of(&sample["target"]));
    row.insert("prediction".into(), prediction(sample));
    let names = sample["metrics"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let scored: BTreeMap<&str, f64> = names.filter_map(|name| Some((name, sample[name].as_f64()?))).collect();
    let first = ["acc", "exact_match", "acc_norm"].into_iter().find_map(|name| scored.get(name));
    let right = first.or_else(|| scored.values().next()).copied();
    row.insert(
        "correct".into(),
        match right {
            Some(1.0) => true.into(),
            Some(0.0) => false.into(),
            _ => Json::Null,
        },
    );
    row.extend(scored.into_iter().map(|(name, value)| (format!("score.{name}"), value.into())));
    row.extend(flat("doc.", &sample["doc"]));
    for hash in ["doc_hash", "prompt_hash", "target_hash"] {
        row.insert(hash.into(), sample[hash].clone());
    }
    row
}

/// The text that was generated; of several choices the number of the likeliest one.
fn prediction(sample: &Json) -> Json {
    let answers = sample["filtered_resps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let likelihood = |answer: &Json| -> Option<f64> {
        let first = answer.as_array()?.first()?;
        first.as_f64().or_else(|| first.as_str()?.parse().ok())
    };
    let likelihoods: Vec<f64> = answers.iter().filter_map(likelihood).collect();
    if !likelihoods.is_empty() && likelihoods.len() == answers.len() {
        let mut best = 0;
        for (place, likelihood) in likelihoods.iter().enumerate() {
            if *likelihood > likelihoods[best] {
                best = place;
            }
        }
        return best.to_string().into();
    }
    answers.first().map_or(Json::Null, text_of)
}

fn text_of(value: &Json) -> Json {
    match value {
        Json::String(_) | Json::Null => value.clone(),
        other => other.to_string().into(),
    }
}
