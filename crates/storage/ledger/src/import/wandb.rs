//! W&B: offline run files.

use std::path::Path;

use serde_json::Value as Json;
use trackway_core::Timestamp;
use trackway_formats::wandb::{WandbRun, read_run};

use super::{ForeignEnd, ForeignPoint, ForeignRun, ForeignStore, at_seconds, files_below, read_file};
use crate::error::LedgerError;

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let mut store = ForeignStore::default();
    for file in files_below(path, &|name| name.ends_with(".wandb"))? {
        match read_run(&read_file(&file)?) {
            Some(run) if !run.run_id.is_empty() => store.runs.push(foreign(run)),
            _ => store.passed.push((file, "it contains no complete run".into())),
        }
    }
    Ok(store)
}

fn foreign(run: WandbRun) -> ForeignRun {
    let started_at = run.started_seconds.map(at_seconds);
    let mut last = started_at;
    let mut foreign = ForeignRun {
        key: format!("{}/{}/{}", run.project, run.run_id, run.started_seconds.unwrap_or(0.0)),
        end: match run.exit_code {
            Some(0) => ForeignEnd::Completed,
            Some(_) => ForeignEnd::Failed,
            None => ForeignEnd::Unknown,
        },
        name: if run.name.is_empty() { run.run_id } else { run.name },
        group: some(run.project),
        started_at,
        host: some(run.host),
        git_commit: some(run.git_commit),
        parameters: run.config.into_iter().map(|(name, value)| (name, text_of(value))).collect(),
        // A label has no value; having it is what counts.
        tags: run.labels.into_iter().map(|label| (label, "true".to_owned())).collect(),
        ..ForeignRun::default()
    };
    if let Some(group) = some(run.group) {
        foreign.tags.push(("group".into(), group));
    }
    for row in run.history {
        let at = row.seconds.map(at_seconds).or(last).unwrap_or(Timestamp::from_micros(0));
        last = Some(at);
        for (name, value) in row.values {
            foreign.metrics.entry(name).or_default().push(ForeignPoint { step: row.step, at, value });
        }
    }
    let ran = run.runtime_seconds.map(|seconds| seconds.saturating_mul(1_000_000));
    let counted = started_at.zip(ran).map(|(at, micros)| Timestamp::from_micros(at.as_micros() + micros));
    foreign.ended_at = counted.max(last);
    foreign
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn text_of(value: Json) -> String {
    match value {
        Json::String(text) => text,
        other => other.to_string(),
    }
}
