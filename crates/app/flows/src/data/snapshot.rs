//! Snapshots of data: taken, listed, named, compared.

use std::path::Path;

use trackway_api::data::{
    DiffAnswer, SnapshotAnswer, SnapshotExpired, SnapshotList, SnapshotRestored, SnapshotVerified,
    StoredSnapshot,
};
use trackway_core::name::Name;
use trackway_core::{Clock as _, with_fields_of};
use trackway_data::drift::compare;
pub use trackway_data::snapshot::{Moved, SHORT_ID_LENGTH, SchemaChange};
use trackway_data::snapshot::{
    NameEntry, NamedSnapshot, ProfileKeeper, Snapshot, SnapshotError, SnapshotId, SnapshotStore,
};
use trackway_data::{DataManifest, HashCache, Mask, Resolver};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::home::Home;
use trackway_engine::{Context, run};
use trackway_tables::profile::Profile;

use super::table::{ReadObserver, TableRequest, data_error};

/// Marks a reference as a snapshot if a file has the same name.
const SNAPSHOT_MARK: &str = "snapshot:";

/// What to snapshot.
#[derive(Debug, Clone, Default)]
pub struct SnapshotRequest {
    /// The data.
    pub table: TableRequest,
    /// The column that others are compared with in the profile.
    pub label: Option<String>,
    /// A name that points to it from now on.
    pub name: Option<Name>,
    /// Whether the bytes of the files are kept.
    pub keep_bytes: bool,
}

/// The snapshots of a home.
#[must_use]
pub fn store(home: &Home) -> SnapshotStore {
    SnapshotStore::new(&home.layout.data())
}

/// Masks the profiles of a home.
///
/// # Errors
/// When its key can neither be read nor made.
pub fn mask(home: &Home) -> Result<Mask, AppError> {
    store(home).mask().map_err(snapshot_error)
}

/// Two profiles of which one may be masked, so that they can be compared.
///
/// # Errors
/// As [`mask`].
pub(crate) fn aligned(
    home: &Home,
    mut one: Profile,
    mut other: Profile,
) -> Result<(Profile, Profile), AppError> {
    if one.masked_with != other.masked_with {
        mask(home)?.align(&mut one, &mut other);
    }
    Ok((one, other))
}

/// The id of a reference that is not a path: `snapshot:NAME`, or a name or an id that no file has.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a marked reference that is not a snapshot, and for the beginning of several ids.
pub fn find(store: &SnapshotStore, base: &Path, word: &str) -> Result<Option<SnapshotId>, AppError> {
    let marked = word.strip_prefix(SNAPSHOT_MARK);
    if marked.is_none() && (word.contains("://") || base.join(word).exists()) {
        return Ok(None);
    }
    let found = store.find(marked.unwrap_or(word)).map_err(snapshot_error)?;
    match (marked, found) {
        (Some(name), None) => {
            let message = format!("there is no snapshot `{name}`");
            Err(AppError::new(ErrorKind::NotFound, message).hint("list them with: trackway data ls"))
        }
        (_, found) => Ok(found),
    }
}

/// The profile kept with the snapshot that the request names; `None` if it names data.
///
/// # Errors
/// As [`find`]; [`ErrorKind::Usage`] for a snapshot without a table.
pub fn kept_profile(
    store: &SnapshotStore,
    base: &Path,
    request: &TableRequest,
) -> Result<Option<Profile>, AppError> {
    let [word] = request.paths.as_slice() else { return Ok(None) };
    let Some(id) = find(store, base, word)? else { return Ok(None) };
    let profile = store.profile(&id, None).map_err(snapshot_error)?;
    let no_table = || AppError::new(ErrorKind::Usage, format!("the snapshot `{word}` contains no table"));
    profile.map(Some).ok_or_else(no_table)
}

/// The profile that is kept of the data with this hash, in a snapshot or because a run read it.
///
/// # Errors
/// When a stored profile cannot be read.
pub(crate) fn profile_of_data(
    store: &SnapshotStore,
    data_sha256: &str,
    label: Option<&str>,
) -> Result<Option<Profile>, AppError> {
    store.profile_of_data(data_sha256, label).map_err(snapshot_error)
}

/// Keeps the profile of data that a run reads, unless one is kept already.
pub(crate) fn keep_profile_of_data(
    store: &SnapshotStore,
    data_sha256: &str,
    profile: &Profile,
) -> Result<(), AppError> {
    store.keep_profile_of_data(data_sha256, profile).map_err(snapshot_error)
}

/// Reads data, as far as it changed since it was last read, and keeps what it consists of: in the home, and in the
/// ledger under the hash that runs over the same data record.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that cannot be read, lacks the
/// label, or an invalid name; when it cannot be kept.
pub fn snapshot_data(
    context: &Context,
    base: &Path,
    request: &SnapshotRequest,
    observer: &ReadObserver<'_>,
) -> Result<SnapshotAnswer, AppError> {
    let store = store(&context.home);
    let label = request.label.as_deref();
    let set = request.name.as_ref().map_or("data", Name::as_str);
    let taken = SnapshotRead::read(&context.home, base, (set, &request.table), label, observer)?;
    let snapshot = taken.snapshot;
    let kept = store.put(&snapshot, taken.profile.as_ref());
    let is_new = kept.map_err(snapshot_error)?;
    let bytes = match request.keep_bytes {
        true => {
            let from = (base, &request.table.read_context);
            let kept = store.keep_bytes(&snapshot, &taken.manifest, from, &observer.watch());
            Some(kept.map_err(snapshot_error)?)
        }
        false => None,
    };
    if let Some(name) = &request.name {
        let entry = NameEntry {
            data_sha256: snapshot.data_sha256.clone(),
            at: context.clock.now(),
            paths: request.table.paths.clone(),
        };
        store.point(name, &entry).map_err(snapshot_error)?;
    }
    let project = run::project_of(base);
    run::record_data(context, std::slice::from_ref(&taken.manifest), project.as_deref())?;
    let reading = taken.manifest.files.iter().flat_map(|file| file.reading.clone()).collect();
    Ok(with_fields_of!(
        SnapshotAnswer,
        snapshot,
        [size_bytes, rows, rows_rejected, data_sha256, schema, notes],
        is_new,
        name: request.name.clone().map(String::from),
        files: snapshot.files.len() as u64,
        files_read: taken.files_read,
        bytes,
        reading,
    ))
}

/// Writes the files of a snapshot into a folder that does not exist or is empty. `word` is a name, an id or the beginning of
/// one.
///
/// # Errors
/// [`ErrorKind::NotFound`] for what is not a snapshot; [`ErrorKind::Usage`] for one without bytes, and a folder that is not
/// empty; [`ErrorKind::Integrity`] for bytes that are missing or different: nothing is restored then.
pub fn restore(
    home: &Home,
    word: &str,
    folder: &Path,
    observer: &ReadObserver<'_>,
) -> Result<SnapshotRestored, AppError> {
    let store = store(home);
    let id = known(&store, word)?;
    folder
        .parent()
        .map_or(Ok(()), trackway_files::make_folders_of_user)
        .map_err(|error| AppError::file("make the folder of", folder, error))?;
    let restored = store.restore(&id, folder, &observer.watch()).map_err(snapshot_error)?;
    Ok(SnapshotRestored {
        data_sha256: id.as_str().to_owned(),
        folder: folder.to_owned(),
        files: restored.files,
        size_bytes: restored.size_bytes,
    })
}

/// Hashes the kept bytes of a snapshot again.
///
/// # Errors
/// [`ErrorKind::NotFound`] for what is not a snapshot; [`ErrorKind::Usage`] for one without bytes.
pub fn verify(home: &Home, word: &str, observer: &ReadObserver<'_>) -> Result<SnapshotVerified, AppError> {
    let store = store(home);
    let id = known(&store, word)?;
    let verified = store.verify_bytes(&id, &observer.watch()).map_err(snapshot_error)?;
    Ok(SnapshotVerified {
        data_sha256: id.as_str().to_owned(),
        intact: verified.faults.is_empty(),
        files: verified.files,
        bytes_read: verified.bytes_read,
        faults: verified.faults,
    })
}

/// Deletes the kept bytes of snapshots unless another snapshot needs them.
///
/// # Errors
/// [`ErrorKind::NotFound`] for what is not a snapshot; [`ErrorKind::Integrity`] for a snapshot that cannot be read: what it
/// needs is not known, and nothing is deleted.
pub fn expire(home: &Home, words: &[String], dry_run: bool) -> Result<SnapshotExpired, AppError> {
    let store = store(home);
    let ids: Vec<SnapshotId> = words.iter().map(|word| known(&store, word)).collect::<Result<_, _>>()?;
    let collected = store.expire_bytes(&ids, dry_run).map_err(snapshot_error)?;
    Ok(SnapshotExpired {
        dry_run,
        expired: ids.iter().map(|id| id.as_str().to_owned()).collect(),
        files: collected.files,
        freed_bytes: collected.size_bytes,
    })
}

/// The snapshot of a name, an id or the beginning of one.
pub(super) fn known(store: &SnapshotStore, word: &str) -> Result<SnapshotId, AppError> {
    let word = word.strip_prefix(SNAPSHOT_MARK).unwrap_or(word);
    store.find(word).map_err(snapshot_error)?.ok_or_else(|| {
        AppError::new(ErrorKind::NotFound, format!("there is no snapshot `{word}`"))
            .hint("list them with: trackway data ls")
    })
}

/// A data set that was read for a snapshot.
struct SnapshotRead {
    manifest: DataManifest,
    snapshot: Snapshot,
    profile: Option<Profile>,
    files_read: u64,
}

impl SnapshotRead {
    fn read(
        home: &Home,
        base: &Path,
        (set, table): (&str, &TableRequest),
        label: Option<&str>,
        observer: &ReadObserver<'_>,
    ) -> Result<Self, AppError> {
        // A cache that cannot be kept costs time only.
        let _ = std::fs::create_dir_all(home.layout.data());
        let cache = HashCache::load(&home.layout.data_cache());
        let watch = observer.watch();
        let context = &table.read_context;
        let resolver = Resolver { base, context, cache: Some(&cache), clock: observer.clock, watch: &watch };
        let (kept, mask) = (store(home).profiles(), mask(home)?);
        let keeper = ProfileKeeper { folder: &kept, label, mask: &mask };
        let spec = trackway_tables::DataSpec {
            path: table.paths.join(" "),
            label: label.map(str::to_owned),
            ..table.spec()
        };
        let resolved = resolver.resolve_with_profile(set, &spec, &table.paths, &keeper);
        let (manifest, profile) = resolved.map_err(data_error)?;
        let _ = cache.save();
        let snapshot = Snapshot::of(&manifest, &spec.missing);
        let files_read = (manifest.files.len() as u64).saturating_sub(cache.hits());
        Ok(Self { manifest, snapshot, profile, files_read })
    }
}

/// Every snapshot and every name of a home.
///
/// # Errors
/// When the names cannot be read.
pub fn list(home: &Home) -> Result<SnapshotList, AppError> {
    let store = store(home);
    let names = store.names().map_err(snapshot_error)?;
    let mut list = SnapshotList { snapshots: Vec::new(), names, damaged: Vec::new() };
    for id in store.ids() {
        match store.snapshot(&id) {
            Ok(snapshot) => list.snapshots.push(kept(&list.names, &snapshot, store.has_bytes(&id))),
            Err(error) => list.damaged.push(error.to_string()),
        }
    }
    list.snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.named_at));
    Ok(list)
}

fn kept(names: &[NamedSnapshot], snapshot: &Snapshot, has_bytes: bool) -> StoredSnapshot {
    let id = &snapshot.data_sha256;
    let points_here =
        |named: &&NamedSnapshot| named.history.last().is_some_and(|last| last.data_sha256 == *id);
    let entries = names.iter().flat_map(|named| &named.history);
    StoredSnapshot {
        data_sha256: id.clone(),
        names: names.iter().filter(points_here).map(|named| named.name.clone()).collect(),
        named_at: entries.filter(|entry| entry.data_sha256 == *id).map(|entry| entry.at).max(),
        files: snapshot.files.len() as u64,
        size_bytes: snapshot.size_bytes,
        rows: snapshot.rows,
        rows_rejected: snapshot.rows_rejected,
        has_bytes,
    }
}

/// Compares two data sets, each a snapshot (name, id, beginning of an id) or paths that are read now. Of two snapshots
/// no data is read.
///
/// # Errors
/// [`ErrorKind::NotFound`] for what is neither; [`ErrorKind::Usage`] for data that cannot be read.
pub fn diff(
    home: &Home,
    base: &Path,
    (before, after): (&TableRequest, &TableRequest),
    label: Option<&str>,
    observer: &ReadObserver<'_>,
) -> Result<DiffAnswer, AppError> {
    let side = |request: &TableRequest, set: &str| -> Result<(Snapshot, Option<Profile>, u64), AppError> {
        let store = store(home);
        let named = match request.paths.as_slice() {
            [word] => find(&store, base, word)?,
            _ => None,
        };
        if let Some(id) = named {
            let read = store.snapshot(&id).and_then(|snapshot| Ok((snapshot, store.profile(&id, label)?, 0)));
            return read.map_err(snapshot_error);
        }
        let taken = SnapshotRead::read(home, base, (set, request), None, observer)?;
        Ok((taken.snapshot, taken.profile, taken.files_read))
    };
    let (before, was, read_before) = side(before, "before")?;
    let (after, is, read_after) = side(after, "after")?;
    let differ = before.data_sha256 != after.data_sha256;
    let drift = match was.zip(is).filter(|_| differ) {
        Some((was, is)) => {
            let (was, is) = aligned(home, was, is)?;
            Some(compare(&was, &is, label))
        }
        None => None,
    };
    Ok(DiffAnswer {
        diff: trackway_data::snapshot::diff(&before, &after),
        before: before.data_sha256,
        after: after.data_sha256,
        drift,
        files_read: read_before + read_after,
    })
}

pub(super) fn snapshot_error(error: SnapshotError) -> AppError {
    let kind = match &error {
        SnapshotError::Ambiguous { .. } => ErrorKind::NotFound,
        SnapshotError::Damaged { .. } | SnapshotError::Lost { .. } => ErrorKind::Integrity,
        SnapshotError::NoBytes { .. }
        | SnapshotError::Occupied { .. }
        | SnapshotError::Outside { .. }
        | SnapshotError::Changed { .. } => ErrorKind::Usage,
        SnapshotError::Busy { .. } => ErrorKind::Locked,
        SnapshotError::Cancelled => ErrorKind::Cancelled,
        _ => ErrorKind::Fault,
    };
    AppError::of(kind, error)
}
