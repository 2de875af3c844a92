//! W&B: offline run files.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;
use trackway_core::Timestamp;
use trackway_formats::wandb::{WandbRun, read_run};

use super::{
    FolderContents, ForeignEnd, ForeignPoint, ForeignRun, ForeignStore, OmissionKind, at_seconds,
    files_below, name_of, note_objects, unreadable,
};
use crate::error::LedgerError;

/// What the names of run files end with.
const ENDING: &str = ".wandb";
/// What the names of the client's run folders begin with; a date follows.
const FOLDERS: [&str; 2] = ["offline-run-", "run-"];

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let mut found = files_below(path, &|name| name.ends_with(ENDING))?;
    let mut store = ForeignStore { skipped: std::mem::take(&mut found.skipped), ..ForeignStore::default() };
    let mut objects: BTreeMap<String, u64> = BTreeMap::new();
    for folder in without_file(&found) {
        store.skipped.add(OmissionKind::Run, folder, "the folder of the run has no file `run-ID.wandb`", 1);
    }
    for file in &found.files {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                store.skipped.add(OmissionKind::Run, file, unreadable(&error), 1);
                continue;
            }
        };
        match read_run(&bytes) {
            Some(run) if !run.run_id.is_empty() => {
                for (kind, count) in &run.objects {
                    *objects.entry(kind.clone()).or_default() += count;
                }
                store.runs.push(foreign(run, file));
            }
            Some(run) if run.torn_bytes + run.damage.iter().map(|damage| damage.bytes).sum::<u64>() > 0 => {
                let why = "the record that names the run is damaged or missing";
                store.skipped.add(OmissionKind::Run, file, why, 1);
            }
            _ => store.skipped.add(OmissionKind::Run, file, "it contains no complete run", 1),
        }
    }
    note_objects(&mut store, path, &objects);
    Ok(store)
}

/// The folders of runs in which there is no run file.
fn without_file(found: &FolderContents) -> impl Iterator<Item = &Path> {
    let has_file = |folder: &Path| found.files.iter().any(|file| file.parent() == Some(folder));
    let folders = found.folders.iter().filter(|folder| is_of_run(&name_of(folder)));
    folders.map(|folder| folder.as_path()).filter(move |folder| !has_file(folder))
}

/// `run-20261121_140102-ID`.
fn is_of_run(folder: &str) -> bool {
    let rest = FOLDERS.iter().find_map(|begin| folder.strip_prefix(begin)).unwrap_or_default();
    let shape: String = rest.chars().map(|char| if char.is_ascii_digit() { '0' } else { char }).collect();
    shape.starts_with("00000000_000000-")
}

fn foreign(run: WandbRun, file: &Path) -> ForeignRun {
    let started_at = run.started_seconds.map(at_seconds);
    let mut last = started_at;
    let mut foreign = ForeignRun {
        key: format!("{}/{}/{}", run.project, run.run_id, run.started_seconds.unwrap_or(0.0)),
        end: match run.exit_code {
            Some(0) => ForeignEnd::Completed,
            Some(_) => ForeignEnd::Failed,
            None => ForeignEnd::Unknown,
        },
        started_at,
        ..ForeignRun::default()
    };
    note_damage(&mut foreign, &run, file);
    let last_step = run.history.last().map_or(0, |row| row.step);
    for row in run.history {
        let at = row.seconds.map(at_seconds).or(last).unwrap_or(Timestamp::from_micros(0));
        last = Some(at);
        for (name, value) in row.values {
            foreign.metrics.entry(name).or_default().push(ForeignPoint { step: row.step, at, value });
        }
    }
    let at = last.unwrap_or(Timestamp::from_micros(0));
    for (name, value) in run.summary {
        foreign.metrics.entry(name).or_default().push(ForeignPoint { step: last_step, at, value });
    }
    let ran = run.runtime_seconds.map(|seconds| seconds.saturating_mul(1_000_000));
    let counted = started_at.zip(ran).map(|(at, micros)| at.as_micros().saturating_add(micros));
    foreign.ended_at = counted.map(Timestamp::from_micros).max(last);
    foreign.name = if run.name.is_empty() { run.run_id } else { run.name };
    foreign.group = some(run.project);
    foreign.host = some(run.host);
    foreign.git_commit = some(run.git_commit);
    foreign.parameters = run.config.into_iter().map(|(name, value)| (name, text_of(value))).collect();
    // A label has no value; having it is what counts.
    foreign.tags = run.labels.into_iter().map(|label| (label, "true".to_owned())).collect();
    if let Some(group) = some(run.group) {
        foreign.tags.push(("group".into(), group));
    }
    foreign
}

fn note_damage(foreign: &mut ForeignRun, run: &WandbRun, file: &Path) {
    for damage in &run.damage {
        let why = format!("{} bytes from byte {} on cannot be read", damage.bytes, damage.offset);
        foreign.skipped.add(OmissionKind::Record, file, why, 1);
    }
    let torn = format!("its last {} bytes are not a whole record", run.torn_bytes);
    foreign.skipped.add(OmissionKind::Record, file, torn, u64::from(run.torn_bytes > 0));
    let malformed = "records that are not what the client writes, and of which a part cannot be read";
    foreign.skipped.add(OmissionKind::Record, file, malformed, run.malformed_count);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what is damaged in a run file is named with its place, that the folder of a run without its file is
    /// named, and that a link to a run and a whole file are not.
    #[test]
    fn what_cannot_be_read_is_named() {
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../base/formats/tests/vectors/wandb");
        let root = tempfile::tempdir().unwrap();
        let [whole, gone] = ["offline-run-20261121_140102-abc0", "run-20261121_150000-gone"]
            .map(|name| root.path().join(name));
        std::fs::create_dir_all(&whole).unwrap();
        std::fs::create_dir_all(gone.join("files")).unwrap();
        let file = whole.join("run-abc0.wandb");
        let mut bytes = std::fs::read(vectors.join("run-abc0.wandb")).unwrap();
        std::fs::write(&file, &bytes).unwrap();
        let kinds = |store: &ForeignStore| -> Vec<(OmissionKind, String)> {
            let (skipped, _) = store.omissions();
            skipped.list().into_iter().map(|it| (it.kind, it.why)).collect()
        };
        let store = read(root.path()).unwrap();
        let texts = "only numbers, parameters and tags are imported, not: notes (1), text (5)".to_owned();
        let without = "the folder of the run has no file `run-ID.wandb`".to_owned();
        let expected = [(OmissionKind::Object, texts), (OmissionKind::Run, without)];
        assert_eq!(kinds(&store), expected);
        let points = |store: &ForeignStore| store.runs[0].metrics.values().map(Vec::len).sum::<usize>();
        let all = points(&store);

        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(&file, &bytes).unwrap();
        let store = read(root.path()).unwrap();
        let found = kinds(&store);
        let damage = found.iter().find(|(kind, _)| *kind == OmissionKind::Record).unwrap();
        assert!(damage.1.contains("from byte"), "{damage:?}");
        assert!((1..=all).contains(&points(&store)) && store.runs[0].end == ForeignEnd::Completed);
    }
}
