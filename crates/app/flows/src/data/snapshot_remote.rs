//! Snapshots with their bytes in an object store: pushed from one home, pulled into another one, verified and deleted there.
//!
//! ```text
//! URL/snapshots/ID.json     a snapshot: every object it needs is there
//! URL/objects/XX/BLAKE3     bytes of files, each content once
//! URL/names/NAME            the snapshot that a name points to: the last push decides
//! URL/pushing/ULID          a push that has not ended
//! URL/collecting            an expiry that has not ended
//! ```
//!
//! A push sends objects first and the snapshot last, so that a snapshot which can be found is whole. An expiry must not delete an
//! object that a push has just found there: each announces itself first and looks for the other one then, so that at
//! least one of two sees the other and ends without having changed anything.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use trackway_api::data::{SnapshotExpired, SnapshotPulled, SnapshotPushed, SnapshotVerified};
use trackway_core::name::{Name, NameKind, is_digest_prefix};
use trackway_core::{Clock as _, Ids as _};
use trackway_data::snapshot::{BytesFault, BytesProblem, NameEntry, Snapshot, SnapshotError, SnapshotFile};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_store::{
    Backend as _, Created, RealDisk, RemoteBackend, RemoteOptions, StoreError, Transfer, TransferObserver,
};

use super::snapshot::{known, snapshot_error, store};
use super::table::ReadObserver;

/// A stored snapshot is at most so large: of millions of files.
const SNAPSHOT_BYTES_MAX: usize = 1 << 30;
/// A name's object holds one id.
const NAME_BYTES_MAX: usize = 1024;
/// There while an expiry deletes.
const COLLECTING: &str = "collecting";

/// An object store of snapshots.
struct Remote {
    url: String,
    /// Of every name, as the storage lists it.
    prefix: String,
    backend: RemoteBackend,
    transfer: Transfer,
}

impl Remote {
    fn at(url: &str) -> Result<Self, AppError> {
        let url = url.trim_end_matches('/');
        let Some((_, rest)) = url.split_once("://") else {
            let message = format!("`{url}` is not the URL of an object store");
            return Err(AppError::new(ErrorKind::Usage, message)
                .hint("write it as s3://bucket/prefix, gs://… or az://…"));
        };
        let prefix = rest.split_once('/').map_or_else(String::new, |(_, prefix)| format!("{prefix}/"));
        let backend = RemoteBackend::new(url, &RemoteOptions::default()).map_err(failed)?;
        Ok(Self { url: url.to_owned(), prefix, transfer: backend.transfer(), backend })
    }

    /// The names of the objects below a folder, without the folder.
    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, AppError> {
        let below = format!("{}{folder}", self.prefix);
        let listed = self.backend.objects().list(&below).map_err(failed)?;
        let name = |full: &str| full.strip_prefix(&below)?.strip_prefix('/').map(str::to_owned);
        Ok(listed.into_iter().filter_map(|object| Some((name(&object.name)?, object.size_bytes))).collect())
    }

    fn ids(&self) -> Result<Vec<String>, AppError> {
        let names = self.list("snapshots")?.into_iter();
        Ok(names.filter_map(|(name, _)| name.strip_suffix(".json").map(str::to_owned)).collect())
    }

    fn text(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<u8>>, AppError> {
        let read = self.backend.read(name, bytes_max).map_err(failed)?;
        if read.as_ref().is_some_and(|bytes| bytes.len() > bytes_max) {
            let message = format!("`{}/{name}` is larger than {bytes_max} bytes", self.url);
            return Err(AppError::new(ErrorKind::Integrity, message));
        }
        Ok(read)
    }

    /// The id of a name, of an id or of the beginning of one.
    fn find(&self, word: &str) -> Result<String, AppError> {
        let absent = || {
            let message = format!("there is no snapshot `{word}` at {}", self.url);
            AppError::new(ErrorKind::NotFound, message)
        };
        if !is_digest_prefix(word) {
            let name = Name::new(NameKind::Snapshot, word).map_err(|_| absent())?;
            let read = self.text(&name_object(&name), NAME_BYTES_MAX)?.ok_or_else(absent)?;
            return Ok(String::from_utf8_lossy(&read).trim().to_owned());
        }
        let word = word.to_ascii_lowercase();
        let mut found: Vec<String> = self.ids()?.into_iter().filter(|id| id.starts_with(&word)).collect();
        match (found.pop(), found.len()) {
            (Some(id), 0) => Ok(id),
            (Some(_), more) => {
                let message = format!("`{word}` matches {} snapshots; use a longer prefix", more + 1);
                Err(AppError::new(ErrorKind::NotFound, message))
            }
            (None, _) => Err(absent()),
        }
    }

    fn snapshot(&self, id: &str) -> Result<Snapshot, AppError> {
        let name = snapshot_object(id);
        let read = self.text(&name, SNAPSHOT_BYTES_MAX)?.ok_or_else(|| {
            AppError::new(ErrorKind::NotFound, format!("there is no snapshot `{id}` at {}", self.url))
        })?;
        Snapshot::from_json(&read, id).map_err(|why| {
            AppError::new(ErrorKind::Integrity, format!("`{}/{name}` is damaged", self.url)).because(why)
        })
    }

    fn busy(&self, what: &str, object: &str) -> AppError {
        let message = format!("{what} `{}` has not ended; nothing was changed", self.url);
        AppError::new(ErrorKind::Locked, message).hint(format!(
            "wait for it; if its process was killed, delete the object `{}/{object}`",
            self.url
        ))
    }
}

/// Sends a snapshot with its bytes. What is there already is not sent again.
///
/// # Errors
/// [`ErrorKind::NotFound`], [`ErrorKind::Usage`] for a snapshot without bytes; [`ErrorKind::Integrity`] for kept bytes that are
/// not what was kept; [`ErrorKind::Locked`] while snapshots are deleted there; when the storage does not answer.
pub fn push(
    context: &Context,
    word: &str,
    url: &str,
    observer: &ReadObserver<'_>,
) -> Result<SnapshotPushed, AppError> {
    let store = store(&context.home);
    let id = known(&store, word)?;
    let snapshot = store.with_bytes(&id).map_err(snapshot_error)?;
    let remote = Remote::at(url)?;
    let sign = format!("pushing/{:026X}", context.ids.next_ulid());
    remote.backend.create(&sign, id.as_str().as_bytes()).map_err(failed)?;
    let sent = match remote.text(COLLECTING, NAME_BYTES_MAX) {
        Ok(None) => send(&remote, &store, &snapshot, observer),
        Ok(Some(_)) => Err(remote.busy("an expiry at", COLLECTING)),
        Err(error) => Err(error),
    };
    let sent = sent.and_then(|sent| {
        let stored = serde_json::to_vec(&snapshot).expect("a snapshot is plain data");
        let name = snapshot_object(id.as_str());
        remote.backend.replace(&name, &stored).map_err(failed)?;
        if let (false, Ok(name)) = (is_digest_prefix(word), Name::new(NameKind::Snapshot, word)) {
            let bytes = id.as_str().as_bytes();
            remote.backend.replace(&name_object(&name), bytes).map_err(failed)?;
        }
        Ok(sent)
    });
    // What cannot be removed is named by the next expiry.
    remote.backend.remove(&sign).ok();
    sent
}

fn send(
    remote: &Remote,
    store: &trackway_data::snapshot::SnapshotStore,
    snapshot: &Snapshot,
    observer: &ReadObserver<'_>,
) -> Result<SnapshotPushed, AppError> {
    let watch = observer.watch();
    let mut pushed = SnapshotPushed {
        data_sha256: snapshot.data_sha256.clone(),
        url: remote.url.clone(),
        files: snapshot.files.len() as u64,
        size_bytes: snapshot.size_bytes,
        files_sent: 0,
        bytes_sent: 0,
    };
    let mut done = 0;
    for file in &snapshot.files {
        let name = object_name(file);
        let there = remote.transfer.head(&name).map_err(failed)?;
        if there.is_none_or(|head| head.size_bytes != file.size_bytes) {
            let mut hasher = blake3::Hasher::new();
            let before = done;
            let mut transfer_observer = TransferObserver {
                progress: &mut |sent, _| (watch.progress)(before + sent, snapshot.size_bytes),
                bytes: &mut |bytes| {
                    hasher.update(bytes);
                },
                cancelled: watch.cancelled,
            };
            let from = store.object(file);
            remote.transfer.upload(&RealDisk, &from, &name, &mut transfer_observer).map_err(failed)?;
            if hasher.finalize().to_hex().as_str() != file.blake3 {
                remote.transfer.remove(&name).map_err(failed)?;
                let lost = SnapshotError::Lost { path: file.path.clone(), problem: BytesProblem::Different };
                return Err(snapshot_error(lost));
            }
            pushed.files_sent += 1;
            pushed.bytes_sent += file.size_bytes;
        }
        done += file.size_bytes;
        (watch.progress)(done, snapshot.size_bytes);
    }
    Ok(pushed)
}

/// Brings a snapshot with its bytes into this home. `word`: a name, an id or the beginning of one, at the URL; a name points to it
/// here, too.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Integrity`] for bytes that are missing or different: what is whole stays for the next
/// time; when the storage does not answer.
pub fn pull(
    context: &Context,
    word: &str,
    url: &str,
    observer: &ReadObserver<'_>,
) -> Result<SnapshotPulled, AppError> {
    let remote = Remote::at(url)?;
    let id = remote.find(word)?;
    let snapshot = remote.snapshot(&id)?;
    let store = store(&context.home);
    let is_new = store.put(&snapshot, None).map_err(snapshot_error)?;
    let watch = observer.watch();
    // The transfer's own error says more than that of the sink.
    let refused = RefCell::new(None);
    let mut fetch = |file: &SnapshotFile, to: &File| {
        let mut transfer_observer =
            TransferObserver { progress: &mut |_, _| {}, bytes: &mut |_| {}, cancelled: watch.cancelled };
        let path = store.object(file);
        let mut write = |offset: u64, bytes: &[u8]| {
            to.write_all_at(bytes, offset).map_err(StoreError::io("write", &path))
        };
        let fetched =
            remote.transfer.download(&object_name(file), file.size_bytes, &mut write, &mut transfer_observer);
        fetched.map_err(|error| {
            let message = error.to_string();
            *refused.borrow_mut() = Some(failed(error));
            SnapshotError::NotFetched { path: file.path.clone(), message }
        })
    };
    let kept = store.take_bytes(&snapshot, &mut fetch, &watch);
    let kept = kept.map_err(|error| refused.take().unwrap_or_else(|| snapshot_error(error)))?;
    if let (false, Ok(name)) = (is_digest_prefix(word), Name::new(NameKind::Snapshot, word)) {
        let (at, paths) = (context.clock.now(), vec![remote.url.clone()]);
        let entry = NameEntry { data_sha256: id.clone(), at, paths };
        store.point(&name, &entry).map_err(snapshot_error)?;
    }
    Ok(SnapshotPulled {
        data_sha256: id,
        url: remote.url,
        is_new,
        files: snapshot.files.len() as u64,
        size_bytes: snapshot.size_bytes,
        files_fetched: kept.files_added,
        bytes_fetched: kept.bytes_added,
    })
}

/// Reads the bytes of a snapshot at the URL, and compares them with their hashes.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when the storage does not answer.
pub fn verify_at(word: &str, url: &str, observer: &ReadObserver<'_>) -> Result<SnapshotVerified, AppError> {
    let remote = Remote::at(url)?;
    let id = remote.find(word)?;
    let snapshot = remote.snapshot(&id)?;
    let watch = observer.watch();
    let (mut faults, mut bytes_read) = (Vec::new(), 0);
    for file in &snapshot.files {
        let name = object_name(file);
        let problem = match remote.transfer.head(&name).map_err(failed)? {
            None => Some(BytesProblem::Missing),
            Some(head) if head.size_bytes != file.size_bytes => Some(BytesProblem::Different),
            Some(_) => {
                let mut hasher = blake3::Hasher::new();
                let before = bytes_read;
                let mut transfer_observer = TransferObserver {
                    progress: &mut |read, _| (watch.progress)(before + read, snapshot.size_bytes),
                    bytes: &mut |_| {},
                    cancelled: watch.cancelled,
                };
                let mut sink = |_: u64, bytes: &[u8]| {
                    hasher.update(bytes);
                    Ok(())
                };
                remote
                    .transfer
                    .download(&name, file.size_bytes, &mut sink, &mut transfer_observer)
                    .map_err(failed)?;
                bytes_read += file.size_bytes;
                (hasher.finalize().to_hex().as_str() != file.blake3).then_some(BytesProblem::Different)
            }
        };
        faults.extend(problem.map(|problem| BytesFault {
            path: file.path.clone(),
            blake3: file.blake3.clone(),
            problem,
        }));
    }
    let (intact, files) = (faults.is_empty(), snapshot.files.len() as u64);
    Ok(SnapshotVerified { data_sha256: id, intact, files, bytes_read, faults })
}

/// Deletes snapshots at the URL, and the objects that no other snapshot there needs. A dry run deletes nothing.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Locked`] while something is pushed there; [`ErrorKind::Integrity`] for a snapshot that
/// cannot be read: then nothing is deleted; when the storage does not answer.
pub fn expire_at(words: &[String], url: &str, dry_run: bool) -> Result<SnapshotExpired, AppError> {
    let remote = Remote::at(url)?;
    let expired: Vec<String> = words.iter().map(|word| remote.find(word)).collect::<Result<_, _>>()?;
    if remote.backend.create(COLLECTING, b"").map_err(failed)? == Created::Exists {
        return Err(remote.busy("an expiry at", COLLECTING));
    }
    let collected = match remote.list("pushing") {
        Ok(pushes) => match pushes.first() {
            Some((push, _)) => Err(remote.busy("a push to", &format!("pushing/{push}"))),
            None => collect(&remote, &expired, dry_run),
        },
        Err(error) => Err(error),
    };
    // What cannot be removed is named by the next push.
    remote.backend.remove(COLLECTING).ok();
    let (files, freed_bytes) = collected?;
    Ok(SnapshotExpired { dry_run, expired, files, freed_bytes })
}

fn collect(remote: &Remote, expired: &[String], dry_run: bool) -> Result<(u64, u64), AppError> {
    let mut needed = BTreeSet::new();
    for id in remote.ids()?.into_iter().filter(|id| !expired.contains(id)) {
        needed.extend(remote.snapshot(&id)?.files.into_iter().map(|file| file.blake3));
    }
    let unneeded = |(name, _): &(String, u64)| {
        name.split_once('/').is_some_and(|(_, blake3)| blake3.len() == 64 && !needed.contains(blake3))
    };
    let unneeded: Vec<(String, u64)> = remote.list("objects")?.into_iter().filter(unneeded).collect();
    if !dry_run {
        // Snapshots go first: one that can be found is whole.
        let snapshots = expired.iter().map(|id| snapshot_object(id));
        let objects = unneeded.iter().map(|(name, _)| format!("objects/{name}"));
        for name in snapshots.chain(objects) {
            remote.transfer.remove(&name).map_err(failed)?;
        }
    }
    Ok((unneeded.len() as u64, unneeded.iter().map(|(_, size_bytes)| size_bytes).sum()))
}

fn snapshot_object(id: &str) -> String {
    format!("snapshots/{id}.json")
}

fn name_object(name: &Name) -> String {
    format!("names/{name}")
}

fn object_name(file: &SnapshotFile) -> String {
    format!("objects/{}/{}", file.blake3.get(..2).unwrap_or("_"), file.blake3)
}

fn failed(error: StoreError) -> AppError {
    let kind = match error.kind() {
        trackway_store::ErrorKind::Input => ErrorKind::Usage,
        trackway_store::ErrorKind::Cancelled => ErrorKind::Cancelled,
        trackway_store::ErrorKind::Damaged => ErrorKind::Integrity,
        _ => ErrorKind::Fault,
    };
    AppError::of(kind, error)
}
