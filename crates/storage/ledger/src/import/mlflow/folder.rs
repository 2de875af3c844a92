//! `mlruns/EXPERIMENT/RUN/{meta.yaml, metrics/NAME, params/NAME, tags/NAME}`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{end_of, take_tag, value_of};
use crate::error::LedgerError;
use crate::import::{ForeignPoint, ForeignRun, ForeignStore, at_millis, files_below, read_file};

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let mut store = ForeignStore::default();
    let mut experiments: BTreeMap<String, String> = BTreeMap::new();
    let mut runs = Vec::new();
    for meta in files_below(path, &|name| name == "meta.yaml")? {
        let keys = yaml_keys(&String::from_utf8_lossy(&read_file(&meta)?));
        match (keys.get("run_id"), keys.get("experiment_id"), keys.get("name")) {
            (Some(_), ..) => runs.push((meta, keys)),
            (None, Some(id), Some(name)) => {
                experiments.insert(id.clone(), name.clone());
            }
            // A registered model's.
            _ => {}
        }
    }
    for (meta, keys) in runs {
        if keys.get("lifecycle_stage").is_some_and(|stage| stage == "deleted") {
            store.passed.push((meta, "the run was deleted".into()));
            continue;
        }
        let folder = meta.parent().unwrap_or(path);
        store.runs.push(read_run(folder, &keys, &experiments)?);
    }
    Ok(store)
}

fn read_run(
    folder: &Path,
    keys: &BTreeMap<String, String>,
    experiments: &BTreeMap<String, String>,
) -> Result<ForeignRun, LedgerError> {
    let key = |name: &str| keys.get(name).cloned();
    let time = |name: &str| keys.get(name).and_then(|millis| millis.parse().ok()).map(at_millis);
    let mut run = ForeignRun {
        key: key("run_id").unwrap_or_default(),
        name: key("run_name").unwrap_or_default(),
        group: key("experiment_id").and_then(|id| experiments.get(&id).cloned()),
        end: end_of(&key("status").unwrap_or_default()),
        started_at: time("start_time"),
        ended_at: time("end_time"),
        owner: key("user_id"),
        ..ForeignRun::default()
    };
    for (name, text) in named_files(&folder.join("tags"))? {
        take_tag(&mut run, name, text);
    }
    run.parameters = named_files(&folder.join("params"))?;
    for (name, text) in named_files(&folder.join("metrics"))? {
        run.metrics.insert(name, text.lines().filter_map(point).collect());
    }
    Ok(run)
}

/// `TIMESTAMP VALUE STEP`; what MLflow 3 writes after it does not matter here.
fn point(line: &str) -> Option<ForeignPoint> {
    let mut parts = line.split_whitespace();
    let at = at_millis(parts.next()?.parse().ok()?);
    let value = value_of(parts.next()?.parse().ok()?);
    let step: i64 = parts.next().map_or(Some(0), |step| step.parse().ok())?;
    Some(ForeignPoint { step: u64::try_from(step).unwrap_or(0), at, value })
}

/// The files below a folder with their names, which contain slashes for folders.
fn named_files(folder: &Path) -> Result<Vec<(String, String)>, LedgerError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut named = Vec::new();
    for path in files_below(folder, &|_| true)? {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        named.push((name, String::from_utf8_lossy(&read_file(&path)?).into_owned()));
    }
    Ok(named)
}

/// The top-level keys of MLflow's flat YAML files; strings may be quoted.
fn yaml_keys(text: &str) -> BTreeMap<String, String> {
    let plain = |value: &str| {
        let value = value.trim();
        match value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            Some(inside) => inside.replace("''", "'"),
            None => match serde_json::from_str::<String>(value) {
                Ok(inside) if value.starts_with('"') => inside,
                _ => value.to_owned(),
            },
        }
    };
    text.lines()
        .filter(|line| !line.starts_with([' ', '-', '#']))
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim().to_owned(), plain(value)))
        .filter(|(_, value)| !matches!(value.as_str(), "" | "null" | "{}" | "[]"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that quoted strings are read and that lines without a key are skipped.
    #[test]
    fn flat_yaml() {
        let keys = yaml_keys("a: 'it''s'\nb: \"x: \\\"y\\\"\"\nc: null\nd: ''\n  e: 1\nf: plain: text\n");
        let found: Vec<(&str, &str)> = keys.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(found, [("a", "it's"), ("b", "x: \"y\""), ("f", "plain: text")]);
    }

    /// Proves that a torn line of a metric is skipped and that a file of the first version, without steps, is read.
    #[test]
    fn lines_of_metrics() {
        assert_eq!(point("1700000000000 0.5 3 x").map(|point| (point.step, point.value)), Some((3, 0.5)));
        assert_eq!(point("1700000000000 0.5").map(|point| point.step), Some(0));
        assert!(point("1700000000000 nan 1").is_some_and(|point| point.value.is_nan()));
        assert_eq!(point("17000000"), None);
    }
}
