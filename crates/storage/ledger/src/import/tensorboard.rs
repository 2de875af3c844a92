//! TensorBoard: each folder with event files is a run, as it is in TensorBoard.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trackway_formats::tensorboard::{EventItem, EventReader};

use super::{ForeignPoint, ForeignRun, ForeignStore, at_seconds, files_below, read_file};
use crate::error::LedgerError;

/// In the name of every event file.
const MARK: &str = "tfevents.";

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in files_below(path, &|name| name.contains(MARK))? {
        folders.entry(file.parent().unwrap_or(path).to_owned()).or_default().push(file);
    }
    let mut store = ForeignStore::default();
    for (folder, files) in folders {
        let run = read_folder(path, &folder, &files)?;
        match run.metrics.is_empty() {
            true => store.passed.push((folder, "its event files contain no scalars".into())),
            false => store.runs.push(run),
        }
    }
    Ok(store)
}

/// The names of event files begin with their time, so their order is that of their making.
fn read_folder(root: &Path, folder: &Path, files: &[PathBuf]) -> Result<ForeignRun, LedgerError> {
    let way = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned();
    let own_name = || folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let first = files[0].file_name().unwrap_or_default().to_string_lossy();
    let mut run = ForeignRun {
        // A writer's file name has time, host and process: the store may be moved and is still the same.
        key: format!("{}/{first}", own_name()),
        name: if way.is_empty() { own_name() } else { way },
        ..ForeignRun::default()
    };
    for file in files {
        let mut reader = EventReader::default();
        reader.push(&read_file(file)?, |item| take(&mut run, item));
    }
    Ok(run.with_times_of_points())
}

fn take(run: &mut ForeignRun, item: EventItem) {
    match item {
        EventItem::Scalar(scalar) => {
            let point =
                ForeignPoint { step: scalar.step, at: at_seconds(scalar.wall_seconds), value: scalar.value };
            run.metrics.entry(scalar.tag).or_default().push(point);
        }
        EventItem::Restart { step, .. } => {
            run.metrics.values_mut().for_each(|points| points.retain(|point| point.step < step));
            run.metrics.retain(|_, points| !points.is_empty());
        }
        EventItem::Parameter { name, value } => {
            run.parameters.retain(|(known, _)| *known != name);
            run.parameters.push((name, value));
        }
    }
}
