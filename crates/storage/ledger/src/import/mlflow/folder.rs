//! `mlruns/EXPERIMENT/RUN/{meta.yaml, metrics/NAME, params/NAME, tags/NAME}`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{OmittedCounts, end_of, take_tag};
use crate::error::LedgerError;
use crate::import::{
    ForeignPoint, ForeignRun, ForeignStore, OmissionKind, Omissions, at_millis, files_below, folders_among,
    name_of, note_objects, unreadable, walk,
};

const META: &str = "meta.yaml";
/// Parts of a run that have no place here.
const ARTIFACTS: &str = "artifacts";
const INPUTS: &str = "inputs";
const OUTPUTS: &str = "outputs";
/// Folders by which a run without its file is known.
const OF_RUN: [&str; 3] = ["metrics", "params", "tags"];
/// Folders that are parts of a run or of an experiment, and hold no runs.
const PARTS: [&str; 9] =
    ["metrics", "params", "tags", ARTIFACTS, INPUTS, OUTPUTS, "models", "traces", "datasets"];

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let walked = search(path)?;
    let mut store = ForeignStore { skipped: walked.skipped, ..ForeignStore::default() };
    for folder in walked.without_meta {
        store.skipped.add(OmissionKind::Run, &folder, format!("the run has no `{META}`"), 1);
    }
    let mut experiments: BTreeMap<String, String> = BTreeMap::new();
    let mut runs = Vec::new();
    for Meta { path: meta, has_parts } in walked.metas {
        let kind = if has_parts { OmissionKind::Run } else { OmissionKind::File };
        let keys = match fs::read(&meta) {
            Ok(bytes) => yaml_keys(&String::from_utf8_lossy(&bytes)),
            Err(error) => {
                store.skipped.add(kind, &meta, unreadable(&error), 1);
                continue;
            }
        };
        match (keys.get("run_id"), keys.get("experiment_id"), keys.get("name")) {
            (Some(_), ..) => runs.push((meta, keys)),
            (None, ..) if has_parts => store.skipped.add(kind, &meta, "it names no run", 1),
            (None, Some(id), Some(name)) if !keys.contains_key("model_id") => {
                experiments.insert(id.clone(), name.clone());
            }
            _ if keys.is_empty() => {
                store.skipped.add(kind, &meta, "there is nothing in it that can be read", 1)
            }
            // A registered model's.
            _ => {}
        }
    }
    let mut left_out = OmittedCounts::default();
    for (meta, keys) in runs {
        if keys.get("lifecycle_stage").is_some_and(|stage| stage == "deleted") {
            store.skipped.add(OmissionKind::Run, &meta, "the run was deleted", 1);
            continue;
        }
        store.runs.push(read_run(&meta, &keys, &experiments, &mut left_out));
    }
    note_objects(&mut store, path, &left_out.0);
    Ok(store)
}

/// The file of a run, an experiment or a model.
struct Meta {
    path: PathBuf,
    /// Whether the folders of a run are beside it.
    has_parts: bool,
}

struct MlflowFolders {
    metas: Vec<Meta>,
    /// Folders of runs without their file.
    without_meta: Vec<PathBuf>,
    skipped: Omissions,
}

/// Looks for the files of runs and experiments, and for runs without.
fn search(path: &Path) -> Result<MlflowFolders, LedgerError> {
    let (mut metas, mut without_meta) = (Vec::new(), Vec::new());
    let skipped = walk(path, &mut |folder, entries, _| {
        let mut inner = folders_among(entries);
        let has_meta = entries.iter().any(|(path, kind)| kind.is_file() && path.ends_with(META));
        let has = |name: &&str| inner.iter().any(|inner| inner.ends_with(name));
        let (any, all) = (OF_RUN[..2].iter().any(has), OF_RUN.iter().all(has));
        let outer = folder.parent().filter(|_| folder != path);
        let is_in_experiment = || outer.is_some_and(|outer| outer.join(META).is_file());
        let is_without = !has_meta && (all || any && is_in_experiment());
        if has_meta {
            metas.push(Meta { path: folder.join(META), has_parts: any });
        } else if is_without {
            without_meta.push(folder.to_owned());
        }
        if has_meta || is_without {
            inner.retain(|folder| !PARTS.contains(&name_of(folder).as_str()));
        }
        inner
    })?;
    metas.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(MlflowFolders { metas, without_meta, skipped })
}

fn read_run(
    meta: &Path,
    keys: &BTreeMap<String, String>,
    experiments: &BTreeMap<String, String>,
    left_out: &mut OmittedCounts,
) -> ForeignRun {
    let folder = meta.parent().unwrap_or(meta);
    left_out.see_artifacts(&folder.join(ARTIFACTS));
    left_out.add("dataset", folders_in(&folder.join(INPUTS)));
    left_out.add("model", folders_in(&folder.join(OUTPUTS)));
    let key = |name: &str| keys.get(name).cloned();
    let time = |name: &str| keys.get(name).map(|millis| millis.parse().ok().map(at_millis));
    let mut run = ForeignRun {
        key: key("run_id").unwrap_or_default(),
        name: key("run_name").unwrap_or_default(),
        group: key("experiment_id").and_then(|id| experiments.get(&id).cloned()),
        end: end_of(&key("status").unwrap_or_default()),
        started_at: time("start_time").flatten(),
        ended_at: time("end_time").flatten(),
        owner: key("user_id"),
        ..ForeignRun::default()
    };
    for name in ["start_time", "end_time"] {
        let count = u64::from(time(name) == Some(None));
        run.skipped.add(OmissionKind::Value, meta, format!("`{name}` is not a time in milliseconds"), count);
    }
    for MlflowFile { name, text, .. } in named_files(&folder.join("tags"), OmissionKind::Tag, &mut run) {
        left_out.see_tag(&name, &text);
        take_tag(&mut run, name, text);
    }
    for MlflowFile { name, text, .. } in
        named_files(&folder.join("params"), OmissionKind::Parameter, &mut run)
    {
        run.parameters.push((name, text));
    }
    for MlflowFile { name, path, text } in
        named_files(&folder.join("metrics"), OmissionKind::Metric, &mut run)
    {
        let read = read_points(&text);
        run.skipped.add(OmissionKind::Value, &path, read.sentence(), read.unreadable);
        run.skipped.add(OmissionKind::Metric, &path, "it is empty", u64::from(read.lines == 0));
        if !read.points.is_empty() {
            run.metrics.insert(name, read.points);
        }
    }
    run
}

/// How many folders there are in a folder, which may be absent.
fn folders_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).count() as u64
}

/// The lines of a metric.
#[derive(Default)]
struct Points {
    points: Vec<ForeignPoint>,
    lines: u64,
    unreadable: u64,
    /// The first line that cannot be read, counted from 1.
    first: u64,
}

impl Points {
    fn sentence(&self) -> String {
        format!(
            "{} of {} lines cannot be read, the first is line {}",
            self.unreadable, self.lines, self.first
        )
    }
}

fn read_points(text: &str) -> Points {
    let mut read = Points::default();
    for line in text.lines() {
        read.lines += 1;
        match point(line) {
            Some(point) => read.points.push(point),
            None => {
                read.unreadable += 1;
                read.first = if read.unreadable == 1 { read.lines } else { read.first };
            }
        }
    }
    read
}

/// `TIMESTAMP VALUE STEP`; what MLflow 3 writes after it does not matter here.
fn point(line: &str) -> Option<ForeignPoint> {
    let mut parts = line.split_whitespace();
    let at = at_millis(parts.next()?.parse().ok()?);
    let value = parts.next()?.parse().ok()?;
    let step = parts.next().map_or(Some(0), |step| step.parse().ok())?;
    Some(ForeignPoint { step, at, value })
}

/// A file whose name is that of a metric, parameter or tag.
struct MlflowFile {
    /// It has slashes for folders.
    name: String,
    path: PathBuf,
    text: String,
}

/// The files below a folder; those that cannot be read are noted.
fn named_files(folder: &Path, kind: OmissionKind, run: &mut ForeignRun) -> Vec<MlflowFile> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let found = match files_below(folder, &|_| true) {
        Ok(found) => found,
        Err(error) => {
            run.skipped.add(OmissionKind::Folder, folder, error.to_string(), 1);
            return Vec::new();
        }
    };
    run.skipped.merge(found.skipped);
    let mut named = Vec::new();
    for path in found.files {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                run.skipped.add(kind, &path, unreadable(&error), 1);
                continue;
            }
        };
        let text = String::from_utf8(bytes).unwrap_or_else(|error| {
            run.changed.add(kind, &path, "it is not UTF-8: characters of it are replaced", 1);
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        named.push(MlflowFile { name, path, text });
    }
    named
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

    /// Proves that a line that cannot be read is left out, that a file of the first version, without steps, is read,
    /// and that a step below 0 is that step.
    #[test]
    fn lines_of_metrics() {
        assert_eq!(point("1700000000000 0.5 3 x").map(|point| (point.step, point.value)), Some((3, 0.5)));
        assert_eq!(point("1700000000000 0.5").map(|point| point.step), Some(0));
        assert_eq!(point("1700000000000 0.5 -1").map(|point| point.step), Some(-1));
        assert!(point("1700000000000 nan 1").is_some_and(|point| point.value.is_nan()));
        for line in ["17000000", "", "1700000000000 x 1", "1700000000000 0.5 1.5"] {
            assert_eq!(point(line), None, "{line}");
        }
        let read = read_points("1700000000000 0.9 1\n17000\n\n1700000000001 0.5 3\n");
        assert_eq!((read.points.len(), read.unreadable), (2, 2));
        assert_eq!(read.sentence(), "2 of 4 lines cannot be read, the first is line 2");
    }

    /// Files below a folder, with their content.
    fn store(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn listed(root: &Path, list: &Omissions) -> Vec<(OmissionKind, String, u64)> {
        let below = |path: &Path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        list.list().into_iter().map(|it| (it.kind, below(&it.path), it.count)).collect()
    }

    const EXPERIMENT: &str = "experiment_id: '0'\nname: Default\n";

    /// Proves that a run without its file, one whose file names none, a line, an empty metric and a time that cannot be read are named with
    /// their places and numbers, and that everything else of the store is read.
    #[test]
    fn what_cannot_be_read_is_named() {
        let point = "1700000000000 0.9 1\n";
        let root = store(&[
            ("0/meta.yaml", EXPERIMENT),
            ("0/aaaa/meta.yaml", "run_id: aaaa\nexperiment_id: '0'\nstart_time: soon\n"),
            ("0/aaaa/metrics/loss", "1700000000000 0.9 -1\n17000\n1700000000001 0.5 3\n"),
            ("0/aaaa/metrics/val/acc", ""),
            ("0/aaaa/params/lr", "0.1"),
            ("0/bbbb/metrics/loss", point),
            ("0/cccc/meta.yaml", ""),
            ("0/cccc/metrics/loss", point),
            ("0/dddd/meta.yaml", "run_id: dddd\nlifecycle_stage: deleted\n"),
        ]);
        let found = read(root.path()).unwrap();
        let expected = [
            (OmissionKind::Run, "0/bbbb", 1),
            (OmissionKind::Run, "0/cccc/meta.yaml", 1),
            (OmissionKind::Run, "0/dddd/meta.yaml", 1),
        ];
        let expected = expected.map(|(kind, path, count)| (kind, path.to_owned(), count));
        assert_eq!(listed(root.path(), &found.skipped), expected);
        let [run] = &found.runs[..] else { panic!("{}", found.runs.len()) };
        let expected = [
            (OmissionKind::Value, "0/aaaa/meta.yaml", 1),
            (OmissionKind::Value, "0/aaaa/metrics/loss", 1),
            (OmissionKind::Metric, "0/aaaa/metrics/val/acc", 1),
        ];
        let expected = expected.map(|(kind, path, count)| (kind, path.to_owned(), count));
        assert_eq!(listed(root.path(), &run.skipped), expected);
        let steps: Vec<i64> = run.metrics["loss"].iter().map(|point| point.step).collect();
        assert_eq!((steps, run.parameters.len(), run.group.as_deref()), (vec![-1, 3], 1, Some("Default")));
    }

    /// Proves that a description, artifacts, data sets, models and the parent of runs are counted as left out, and an
    /// empty description is not.
    #[test]
    fn what_has_no_place_is_counted() {
        let run = |id: &str| format!("run_id: {id}\nexperiment_id: '0'\n");
        let (first, second) = (run("aaaa"), run("bbbb"));
        let root = store(&[
            ("0/meta.yaml", EXPERIMENT),
            ("0/aaaa/meta.yaml", &first),
            ("0/aaaa/tags/mlflow.note.content", "the first try"),
            ("0/aaaa/artifacts/plot.png", "x"),
            ("0/aaaa/artifacts/model/weights.bin", "x"),
            ("0/aaaa/inputs/d-1/meta.yaml", "source_type: DATASET\n"),
            ("0/bbbb/meta.yaml", &second),
            ("0/bbbb/tags/mlflow.note.content", ""),
            ("0/bbbb/tags/mlflow.parentRunId", "aaaa"),
            ("0/bbbb/outputs/m-1/meta.yaml", "source_type: RUN_OUTPUT\n"),
        ]);
        let found = read(root.path()).unwrap();
        let listed = found.skipped.list();
        let [left_out] = &listed[..] else { panic!("{listed:?}") };
        let why = "only numbers, parameters and tags are imported, not: artifact (2), dataset (1), description (1), \
                   model (1), parent run (1)";
        assert_eq!((left_out.kind, &*left_out.why, left_out.count), (OmissionKind::Object, why, 6));
    }

    /// Proves that what is beside the runs of a whole store is not taken for a run without its file, nor for an experiment: models, traces,
    /// artifacts with such names, and metrics named like folders. Its artifacts are counted.
    #[test]
    fn a_whole_store_has_nothing_left_out() {
        let root = store(&[
            ("0/meta.yaml", EXPERIMENT),
            ("0/tags/note", "x"),
            ("0/aaaa/meta.yaml", "run_id: aaaa\nexperiment_id: '0'\n"),
            ("0/aaaa/metrics/params/metrics/loss", "1700000000000 0.9 1\n"),
            ("0/aaaa/artifacts/model/metrics/a", "x"),
            ("0/aaaa/artifacts/model/params/a", "x"),
            ("0/models/m-1/meta.yaml", "model_id: m-1\nexperiment_id: '0'\nname: tree\n"),
            ("0/models/m-1/metrics/loss", "x"),
            ("0/traces/tr-1/tags/a", "x"),
            ("models/tree/meta.yaml", "name: tree\n"),
        ]);
        let found = read(root.path()).unwrap();
        assert_eq!(listed(root.path(), &found.skipped), [(OmissionKind::Object, String::new(), 2)]);
        assert_eq!((found.runs.len(), found.runs[0].group.as_deref()), (1, Some("Default")));
        assert_eq!(found.runs[0].metrics.keys().collect::<Vec<_>>(), ["params/metrics/loss"]);
        assert!(found.runs[0].skipped.is_empty() && found.runs[0].changed.is_empty());
    }
}
