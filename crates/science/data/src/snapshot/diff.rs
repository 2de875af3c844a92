//! What changed between two snapshots: files, columns, rows. Nothing is read but the two manifests.

use std::collections::{BTreeMap, BTreeSet};

use trackway_results::snapshot::{FilesDiff, Moved, SchemaChange, SnapshotDiff};
use trackway_tables::Column;

use super::{Snapshot, SnapshotFile};

/// Compares two snapshots by their manifests.
#[must_use]
pub fn diff(before: &Snapshot, after: &Snapshot) -> SnapshotDiff {
    SnapshotDiff {
        same: before.data_sha256 == after.data_sha256,
        files: files(&before.files, &after.files),
        schema: schema(before.schema.as_deref().unwrap_or(&[]), after.schema.as_deref().unwrap_or(&[])),
        rows: [before.rows, after.rows],
        rows_rejected: [before.rows_rejected, after.rows_rejected],
        size_bytes: [before.size_bytes, after.size_bytes],
    }
}

fn files(before: &[SnapshotFile], after: &[SnapshotFile]) -> FilesDiff {
    fn by_path(files: &[SnapshotFile]) -> BTreeMap<&str, &str> {
        files.iter().map(|file| (file.path.as_str(), file.blake3.as_str())).collect()
    }
    let (was, is) = (by_path(before), by_path(after));
    let mut found = FilesDiff::default();
    // Files that only the first has, by content, so that each is one move at most.
    let mut gone: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, content) in &was {
        match is.get(path) {
            Some(now) if now == content => found.unchanged += 1,
            Some(_) => found.changed.push((*path).to_owned()),
            None => drop(gone.entry(content).or_default().insert(path)),
        }
    }
    for (path, content) in is.iter().filter(|(path, _)| !was.contains_key(*path)) {
        match gone.get_mut(content).and_then(BTreeSet::pop_first) {
            Some(from) => found.moved.push(Moved { from: from.to_owned(), to: (*path).to_owned() }),
            None => found.added.push((*path).to_owned()),
        }
    }
    found.removed = gone.into_values().flatten().map(str::to_owned).collect();
    found.removed.sort();
    found
}

fn schema(before: &[Column], after: &[Column]) -> Vec<SchemaChange> {
    let kind = |columns: &[Column], name: &str| {
        columns.iter().find(|column| column.name == name).map(|column| column.kind)
    };
    let added = after.iter().filter(|column| kind(before, &column.name).is_none());
    let change = |column: &Column| SchemaChange {
        column: column.name.clone(),
        before: kind(before, &column.name),
        after: kind(after, &column.name),
    };
    before.iter().chain(added).map(change).filter(|change| change.before != change.after).collect()
}
