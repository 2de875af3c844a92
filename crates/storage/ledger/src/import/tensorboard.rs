//! TensorBoard: each folder with event files is a run, as it is in TensorBoard. The folder that `add_hparams` makes in that of its writer
//! is of the same run, where there is one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use trackway_formats::tensorboard::{EventItem, EventReader, OF_SESSION, ObjectKind, Scalar, is_time_stamp};

use super::{
    ForeignPoint, ForeignRun, ForeignStore, OmissionKind, at_seconds, files_below, name_of, note_objects,
    unreadable,
};
use crate::error::LedgerError;

/// In the name of every event file.
const MARK: &str = "tfevents.";
/// One read takes at most this much.
const READ_BYTES: u64 = 1 << 20;

type Objects = BTreeMap<ObjectKind, u64>;

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let found = files_below(path, &|name| name.contains(MARK))?;
    let mut store = ForeignStore { skipped: found.skipped, ..ForeignStore::default() };
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in found.files {
        folders.entry(file.parent().unwrap_or(path).to_owned()).or_default().push(file);
    }
    let (mut runs, mut objects) = (BTreeMap::new(), Objects::new());
    for (folder, files) in folders {
        let run = read_folder(path, &folder, &files, &mut objects);
        runs.insert(folder, run);
    }
    join_sessions(&mut runs);
    for (folder, run) in runs {
        if run.metrics.is_empty() {
            store.skipped.merge(run.skipped);
            store.skipped.add(OmissionKind::Run, &folder, "its event files contain no scalars", 1);
        } else {
            store.runs.push(run.with_times_of_points());
        }
    }
    note_objects(&mut store, path, &objects);
    Ok(store)
}

/// The names of event files begin with their time, so their order is that of their making.
fn read_folder(root: &Path, folder: &Path, files: &[PathBuf], objects: &mut Objects) -> ForeignRun {
    let way = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned();
    let mut run = ForeignRun {
        // A writer's file name has time, host and process: the store may be moved and is still the same.
        key: format!("{}/{}", name_of(folder), name_of(&files[0])),
        name: if way.is_empty() { name_of(folder) } else { way },
        ..ForeignRun::default()
    };
    for file in files {
        if let Err(error) = read_file(file, |item| take(&mut run, file, item, objects)) {
            run.skipped.add(OmissionKind::File, file, unreadable(&error), 1);
        }
    }
    run
}

fn read_file(path: &Path, mut found: impl FnMut(EventItem)) -> io::Result<()> {
    let (mut file, mut reader, mut bytes) = (File::open(path)?, EventReader::default(), Vec::new());
    loop {
        bytes.clear();
        if file.by_ref().take(READ_BYTES).read_to_end(&mut bytes)? == 0 {
            reader.finish(found);
            return Ok(());
        }
        reader.push(&bytes, &mut found);
    }
}

fn take(run: &mut ForeignRun, file: &Path, item: EventItem, objects: &mut Objects) {
    match item {
        EventItem::Scalar(Scalar { tag, step, wall_seconds, value }) => {
            let point = ForeignPoint { step, at: at_seconds(wall_seconds), value };
            run.metrics.entry(tag).or_default().push(point);
        }
        EventItem::Restart { step } => {
            run.metrics.values_mut().for_each(|points| points.retain(|point| point.step < step));
            run.metrics.retain(|_, points| !points.is_empty());
        }
        EventItem::Parameter { name, value } => {
            run.parameters.retain(|(known, _)| *known != name);
            run.parameters.push((name, value));
        }
        EventItem::Object(kind) => *objects.entry(kind).or_default() += 1,
        EventItem::Damage(damage) => {
            run.skipped.add(OmissionKind::Record, file, damage.to_string(), 1);
        }
    }
}

/// Joins the folder of a session of `add_hparams` with that of its writer. A writer that has several such sessions has as many runs.
fn join_sessions(runs: &mut BTreeMap<PathBuf, ForeignRun>) {
    let mut sessions: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for (folder, run) in runs.iter() {
        if let Some(outer) = folder.parent().filter(|outer| runs.contains_key(*outer))
            && is_of_session(&name_of(folder), run)
        {
            sessions.entry(outer.to_owned()).or_default().push(folder.clone());
        }
    }
    for (outer, inner) in sessions {
        let [inner] = &inner[..] else { continue };
        if let Some(session) = runs.remove(inner)
            && let Some(run) = runs.get_mut(&outer)
        {
            join(run, session, inner);
        }
    }
}

/// `add_hparams` writes parameters, and each of its metrics once, in a folder that is named by the time or by the script.
fn is_of_session(folder: &str, run: &ForeignRun) -> bool {
    let is_named = is_time_stamp(folder) || !run.parameters.is_empty();
    is_named && run.metrics.values().all(|points| points.len() == 1)
}

fn join(run: &mut ForeignRun, session: ForeignRun, folder: &Path) {
    for (name, value) in session.parameters {
        run.parameters.retain(|(known, _)| *known != name);
        run.parameters.push((name, value));
    }
    for (name, points) in session.metrics {
        let new = if run.metrics.contains_key(&name) { format!("{OF_SESSION}{name}") } else { name.clone() };
        if new != name {
            let why = format!("`{name}` is `{new}`: the run has a curve of that name");
            run.changed.add(OmissionKind::Metric, folder, why, 1);
        }
        run.metrics.entry(new).or_default().extend(points);
    }
    run.skipped.merge(session.skipped);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(metrics: &[(&str, usize)], parameters: &[(&str, &str)]) -> ForeignRun {
        let points = |count| (0..count).map(|step| ForeignPoint { step, at: at_seconds(0.0), value: 0.5 });
        ForeignRun {
            metrics: metrics
                .iter()
                .map(|(name, count)| ((*name).to_owned(), points(*count as i64).collect()))
                .collect(),
            parameters: parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..ForeignRun::default()
        }
    }

    fn joined(runs: &[(&str, ForeignRun)]) -> Vec<(String, Vec<String>, usize)> {
        let mut runs = runs.iter().map(|(folder, run)| (PathBuf::from(folder), run.clone())).collect();
        join_sessions(&mut runs);
        let names = |run: &ForeignRun| run.metrics.keys().cloned().collect::<Vec<String>>();
        let shown = |(folder, run): (&PathBuf, &ForeignRun)| {
            (folder.to_string_lossy().into_owned(), names(run), run.parameters.len())
        };
        runs.iter().map(shown).collect()
    }

    /// Proves that the parameters and metrics of a session are those of the run of its writer, that a metric which both have stays two, and
    /// that several sessions, a sub-run and a run whose folder is named by a time stay runs.
    #[test]
    fn a_session_is_of_its_writer() {
        let (outer, inner) = ("runs/abc", "runs/abc/1795851751.9");
        let writer = run(&[("loss", 3)], &[]);
        let session = run(&[("hparam/best", 1), ("loss", 1)], &[("lr", "0.1")]);
        let found = joined(&[(outer, writer.clone()), (inner, session.clone())]);
        let names = ["hparam/best", "hparam/loss", "loss"].map(str::to_owned).to_vec();
        assert_eq!(found, [(outer.to_owned(), names, 1)]);
        let second = "runs/abc/1795851760.1";
        assert_eq!(
            joined(&[(outer, writer.clone()), (inner, session.clone()), (second, session.clone())]).len(),
            3
        );
        assert_eq!(joined(&[(outer, writer.clone()), ("runs/abc/tuned", session.clone())]).len(), 1);
        assert_eq!(joined(&[(outer, writer.clone()), ("runs/abc/val", run(&[("loss", 1)], &[]))]).len(), 2);
        assert_eq!(joined(&[(outer, writer.clone()), (inner, writer)]).len(), 2);
        assert_eq!(joined(&[("runs/1795851751.9", session)]).len(), 1);
    }
}
