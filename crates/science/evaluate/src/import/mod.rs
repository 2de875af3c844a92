//! Evaluations that other tools made: Inspect's logs and the results of lm-evaluation-harness. Only reading: what a log
//! lacks is absent.

mod bounded;
mod inspect;
mod lm_eval;
pub mod reported;
mod zip;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};
use trackway_core::RowCoverage;
use trackway_core::text::hex;

use crate::{Estimate, Metrics};
use reported::with_stderr;

/// Logs of more bytes are not read.
pub const LOG_BYTES_MAX: u64 = 4 << 30;

/// An evaluation as another tool wrote it down.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignEvaluation {
    /// `inspect` or `lm_eval`.
    pub origin: String,
    /// Its id, unique within the tool.
    pub origin_id: String,
    /// The tool and its version.
    pub evaluator: String,
    /// The commit of the evaluator's code, if the tool records it.
    pub code: Option<String>,
    pub task: String,
    pub task_version: Option<String>,
    /// SHA-256 of the task's content: the tool's own, or over the examples.
    pub task_sha256: Option<String>,
    /// What the tool calls the model.
    pub model: Option<String>,
    /// How answers were drawn.
    pub decoding: Map<String, Json>,
    pub judge_model: Option<String>,
    /// The rubric: SHA-256 of the judge's template.
    pub judge_rubric: Option<String>,
    pub seed: Option<u64>,
    /// Numbers with the tool's standard errors as intervals.
    pub metrics: Metrics,
    /// The examples: `id`, `label`, `prediction`, `correct`, `score` and what else the tool records.
    pub rows: Vec<Map<String, Json>>,
    /// When it began and ended: RFC 3339.
    pub times: (Option<String>, Option<String>),
    /// Why it did not end normally.
    pub failure: Option<String>,
    /// Notes for a reader.
    pub notes: Vec<String>,
}

/// Why a log cannot be taken over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    #[error("cannot read `{}`: {source}", .path.display())]
    Disk { path: PathBuf, source: std::io::Error },
    #[error("`{}`: {why}", .path.display())]
    Content { path: PathBuf, why: String },
    #[error(
        "`{}` contains no results: expected an Inspect log (.eval or .json) or `results_*.json` of lm-evaluation-harness", .path.display()
    )]
    Nothing { path: PathBuf },
}

/// How deep results are looked for below a folder.
const DEPTH_MAX: usize = 3;

/// Reads every evaluation of a file, or of the files below a folder.
///
/// # Errors
/// [`ImportError`]; nothing is skipped silently.
pub fn read(path: &Path) -> Result<Vec<ForeignEvaluation>, ImportError> {
    let mut files = Vec::new();
    collect(path, DEPTH_MAX, &mut files)?;
    files.sort();
    let mut found = Vec::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_json = name.ends_with(".json");
        if is_json && name.starts_with("results") {
            found.extend(lm_eval::read(file)?);
        } else if is_json || name.ends_with(".eval") {
            found.push(inspect::read(file)?);
        }
    }
    if found.is_empty() { Err(ImportError::Nothing { path: path.to_owned() }) } else { Ok(found) }
}

fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), ImportError> {
    let disk = |source| ImportError::Disk { path: path.to_owned(), source };
    if !path.is_dir() {
        path.metadata().map_err(disk)?;
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(disk)? {
        let entry = entry.map_err(disk)?.path();
        if entry.is_dir() && depth > 0 {
            collect(&entry, depth - 1, files)?;
        } else if entry.is_file() {
            files.push(entry);
        }
    }
    Ok(())
}

/// A JSON file of bounded size.
fn read_json(path: &Path) -> Result<Json, ImportError> {
    let disk = |source| ImportError::Disk { path: path.to_owned(), source };
    let size = path.metadata().map_err(disk)?.len();
    if size > LOG_BYTES_MAX {
        return Err(content(path, format!("it has {size} bytes; at most {LOG_BYTES_MAX} are read")));
    }
    let bytes = std::fs::read(path).map_err(disk)?;
    parse(path, &bytes)
}

/// Python writes NaN and Infinity, which JSON has not: they become null.
fn parse(path: &Path, bytes: &[u8]) -> Result<Json, ImportError> {
    serde_json::from_slice(bytes).or_else(|first| {
        let text = String::from_utf8_lossy(bytes);
        let plain = without_nan(&text);
        serde_json::from_str(&plain).map_err(|_| content(path, first.to_string()))
    })
}

/// The tokens `NaN` and `Infinity` outside of strings as null.
fn without_nan(text: &str) -> String {
    let (mut plain, mut rest, mut in_text) = (String::with_capacity(text.len()), text, false);
    while let Some(letter) = rest.chars().next() {
        let word =
            ["-Infinity", "Infinity", "NaN"].into_iter().find(|word| !in_text && rest.starts_with(word));
        let length = match (word, letter) {
            (Some(word), _) => {
                plain.push_str("null");
                word.len()
            }
            (None, '\\') if in_text => {
                let escaped = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                plain.push_str(&rest[..escaped]);
                escaped
            }
            (None, letter) => {
                in_text ^= letter == '"';
                plain.push(letter);
                letter.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    plain
}

/// Takes a number of a log over, or notes why it was left out.
fn take(
    metrics: &mut Metrics,
    notes: &mut Vec<String>,
    (key, name): (&str, &str),
    number: &Json,
    (stderr, coverage): (&Json, RowCoverage),
) {
    let Some(value) = number.as_f64() else {
        notes.push(format!("`{key}` is not a finite number in the log, and was left out"));
        return;
    };
    let support = Some(coverage.rows_used).filter(|rows| *rows > 0);
    match with_stderr(name, value, stderr.as_f64(), support) {
        Ok(estimate) => drop(metrics.insert(key.to_owned(), Estimate { coverage, ..estimate })),
        Err(why) => notes.push(format!("{why}; it was left out")),
    }
}

fn content(path: &Path, why: String) -> ImportError {
    ImportError::Content { path: path.to_owned(), why }
}

fn text_at(value: &Json, member: &str) -> Option<String> {
    value.get(member)?.as_str().map(str::to_owned)
}

/// A string or a number as a string.
fn word_at(value: &Json, member: &str) -> Option<String> {
    match value.get(member)? {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn sha256_of(parts: impl IntoIterator<Item = String>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([b'\n']);
    }
    hex(&hasher.finalize())
}

/// Of the lines, each once, in their order by text; `None` of no line.
fn sha256_of_distinct(mut lines: Vec<String>) -> Option<String> {
    lines.sort();
    lines.dedup();
    (!lines.is_empty()).then(|| sha256_of(lines))
}

/// Members that are one value each, with a prefix before their names; what is nested stays JSON text.
fn flat(prefix: &str, value: &Json) -> BTreeMap<String, Json> {
    let members = value.as_object().into_iter().flatten();
    let one = |(name, value): (&String, &Json)| {
        let value = match value {
            Json::Array(_) | Json::Object(_) => Json::String(value.to_string()),
            plain => plain.clone(),
        };
        (format!("{prefix}{name}"), value)
    };
    members.map(one).collect()
}

#[cfg(test)]
mod tests;
