//! Data sets in, snapshots out: the same everywhere, whole after a crash, cheap the second time.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use trackway_core::name::{Name, NameKind};
use trackway_core::{ManualClock, Timestamp};
use trackway_formats::runfile::DataSpec;
use trackway_redact::Redactor;
use trackway_tables::ReadContext;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::profile::Profile;

use super::*;
use crate::{HashCache, KEY_BYTES, Mask, Resolver};

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Snapshots `data` below the folder, with cache and profiles of files kept beside it; with the cache's hits.
fn take(folder: &Path, label: Option<&str>) -> (Snapshot, Profile, u64) {
    let clock = ManualClock::at(Timestamp::from_micros(4_000_000_000_000_000));
    let cache = HashCache::load(&folder.join("cache.json"));
    let resolver = Resolver {
        base: folder,
        context: &ReadContext::default(),
        cache: Some(&cache),
        clock: &clock,
        watch: &UNWATCHED,
    };
    let kept = folder.join("kept");
    let mask = Mask::new([7; KEY_BYTES], Arc::new(Redactor::of_shapes()));
    let keeper = ProfileKeeper { folder: &kept, label, mask: &mask };
    let spec = DataSpec { path: "data".into(), ..DataSpec::default() };
    let (manifest, profile) =
        resolver.resolve_with_profile("data", &spec, &["data".into()], &keeper).unwrap();
    assert_eq!(
        manifest.data_sha256,
        resolver.resolve("train", &spec).unwrap().data_sha256,
        "a run over the same data records the same hash"
    );
    let hits = cache.hits();
    cache.save().unwrap();
    (Snapshot::of(&manifest, &[]), profile.unwrap(), hits)
}

const FILES: [(&str, &str); 3] = [
    ("data/a.csv", "age,plan\n31,free\n45,pro\n52\n"),
    ("data/b.csv", "age,plan\n28.5,free\n"),
    ("data/logo.png", "no table"),
];

/// Proves that the same data gives the same snapshot and profile to the byte wherever it is and whatever is cached,
/// that files that did not change are not read again, and that every row is in the account.
#[test]
fn the_same_data_gives_the_same_bytes() {
    let (one, two) = (folder(&FILES), folder(&FILES));
    let (first, profile, _) = take(one.path(), Some("plan"));
    let (second, elsewhere, _) = take(two.path(), Some("plan"));
    let bytes = |snapshot: &Snapshot, profile: &Profile| {
        (serde_json::to_string(snapshot).unwrap(), serde_json::to_string(profile).unwrap())
    };
    assert_eq!(bytes(&first, &profile), bytes(&second, &elsewhere));
    let (again, from_kept, hits) = take(one.path(), Some("plan"));
    assert_eq!((bytes(&again, &from_kept), hits), (bytes(&first, &profile), 6));
    assert_eq!((first.rows, first.rows_rejected, profile.rows, profile.rows_rejected), (Some(3), 1, 3, 1));
    assert_eq!(
        first.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["a.csv", "b.csv", "logo.png"]
    );
    let text = bytes(&first, &profile).0;
    assert!(!text.contains(one.path().to_str().unwrap()), "{text}");
}

/// Proves that a changed file alone is read again, and that the profile then is that of the new whole.
#[test]
fn only_changed_files_are_read_again() {
    let folder = folder(&FILES);
    let (first, ..) = take(folder.path(), None);
    write(folder.path(), "data/b.csv", "age,plan\n28.5,free\n90,pro\n");
    let (second, profile, hits) = take(folder.path(), None);
    // Two of three files, and all three when only the manifest is requested.
    assert_eq!((hits, profile.rows), (5, 4));
    assert_ne!(first.data_sha256, second.data_sha256);
    let age = profile.column("age").unwrap().summary();
    assert_eq!(age.max.map(|it| it.to_string()).as_deref(), Some("90"));
}

/// Proves that a store gives back what it kept, by id, beginning of an id and name; that names move and keep their
/// history, past a torn line too; and that what a crash leaves half done is never seen.
#[test]
fn a_store_keeps_snapshots_and_names() {
    let folder = folder(&FILES);
    let (first, profile, _) = take(folder.path(), None);
    let store = SnapshotStore::new(&folder.path().join("store"));
    assert!(store.ids().is_empty() && store.find("train").unwrap().is_none());
    assert!(store.put(&first, Some(&profile)).unwrap());
    assert!(!store.put(&first, Some(&profile)).unwrap(), "it is there already");
    let id = &store.find(&first.data_sha256).unwrap().unwrap();
    assert_eq!(store.snapshot(id).unwrap(), first);
    assert_eq!(store.profile(id, Some("plan")).unwrap().unwrap().rows, profile.rows);
    let (_, labelled, _) = take(folder.path(), Some("plan"));
    store.put(&first, Some(&labelled)).unwrap();
    assert_eq!(store.profile(id, Some("plan")).unwrap().unwrap().label.as_deref(), Some("plan"));
    assert_eq!(store.profile(id, None).unwrap().unwrap().label, None);

    write(folder.path(), "data/c.csv", "age,plan\n1,free\n");
    let (second, ..) = take(folder.path(), None);
    store.put(&second, None).unwrap();
    let entry = |snapshot: &Snapshot| NameEntry {
        data_sha256: snapshot.data_sha256.clone(),
        at: Timestamp::from_micros(7),
        paths: vec!["data".into()],
    };
    let name = |word| Name::new(NameKind::Snapshot, word).unwrap();
    assert!(store.point(&name("train"), &entry(&first)).unwrap());
    assert!(!store.point(&name("train"), &entry(&first)).unwrap(), "it points there already");
    let names = folder.path().join("store/names/train.jsonl");
    fs::write(&names, fs::read_to_string(&names).unwrap() + "{\"data_sha").unwrap();
    assert_eq!(store.find("train").unwrap().as_ref(), Some(id));
    assert!(store.point(&name("train"), &entry(&second)).unwrap());
    assert_eq!(store.find("train").unwrap().unwrap().as_str(), second.data_sha256);
    assert_eq!(store.names().unwrap()[0].history, [entry(&first), entry(&second)]);
    assert_eq!(store.find(&id.as_str()[..8]).unwrap().as_ref(), Some(id));
    assert_eq!(store.find("../names/train").unwrap(), None);

    let hex = id.as_str();
    write(folder.path(), &format!("store/snapshots/.new-{hex}-1/manifest.json"), "{");
    assert_eq!(store.ids().len(), 2);
    write(folder.path(), &format!("store/snapshots/{hex}/manifest.json"), "{");
    assert!(matches!(store.snapshot(id), Err(SnapshotError::Damaged { .. })));
}

/// Proves that an id never moves: a name that an older program took and that reads as an id is found only by its
/// changed form.
#[test]
fn an_id_is_never_a_name() {
    let folder = folder(&FILES);
    let store = SnapshotStore::new(&folder.path().join("store"));
    let (first, ..) = take(folder.path(), None);
    store.put(&first, None).unwrap();
    write(folder.path(), "data/c.csv", "age,plan\n1,free\n");
    let (second, ..) = take(folder.path(), None);
    store.put(&second, None).unwrap();
    let line = |snapshot: &Snapshot| {
        format!(
            "{{\"data_sha256\":\"{}\",\"at\":\"2026-01-01T00:00:00Z\",\"paths\":[]}}\n",
            snapshot.data_sha256
        )
    };
    let (id, prefix) = (first.data_sha256.clone(), first.data_sha256[..6].to_owned());
    for old in [&id, &prefix] {
        write(folder.path(), &format!("store/names/{old}.jsonl"), &line(&second));
        assert_eq!(store.find(old).unwrap().unwrap().as_str(), id);
        let renamed = store.find(&format!("{old}-renamed")).unwrap().unwrap();
        assert_eq!(renamed.as_str(), second.data_sha256);
        assert!(store.names().unwrap().iter().any(|named| named.name == format!("{old}-renamed")));
    }
}

/// Proves that a diff distinguishes changed, moved, added and removed files, and columns that came, went or changed.
#[test]
fn a_diff_tells_what_changed() {
    let folder = folder(&FILES);
    let (before, ..) = take(folder.path(), None);
    assert!(diff(&before, &before).same);
    write(folder.path(), "data/deep/b.csv", FILES[1].1);
    fs::remove_file(folder.path().join("data/b.csv")).unwrap();
    write(folder.path(), "data/a.csv", "age,city\nold,Ulm\n");
    fs::rename(folder.path().join("data/logo.png"), folder.path().join("data/mark.png")).unwrap();
    write(folder.path(), "data/mark.png", "another");
    let (after, ..) = take(folder.path(), None);
    let found = diff(&before, &after);
    let moved = Moved { from: "b.csv".into(), to: "deep/b.csv".into() };
    assert_eq!(
        found.files,
        FilesDiff {
            unchanged: 0,
            changed: vec!["a.csv".into()],
            moved: vec![moved],
            added: vec!["mark.png".into()],
            removed: vec!["logo.png".into()],
        }
    );
    let columns: Vec<_> = found.schema.iter().map(|change| change.column.as_str()).collect();
    assert_eq!((columns, found.rows), (vec!["age", "city"], [Some(3), Some(2)]));
}

/// Takes the data as [`take`] does and keeps its bytes.
fn take_with_bytes(folder: &Path, store: &SnapshotStore) -> (SnapshotId, Result<KeptBytes, SnapshotError>) {
    let clock = ManualClock::at(Timestamp::from_micros(4_000_000_000_000_000));
    let context = ReadContext::default();
    let resolver =
        Resolver { base: folder, context: &context, cache: None, clock: &clock, watch: &UNWATCHED };
    let spec = DataSpec { path: "data".into(), ..DataSpec::default() };
    let manifest = resolver.resolve("data", &spec).unwrap();
    let snapshot = Snapshot::of(&manifest, &[]);
    store.put(&snapshot, None).unwrap();
    let kept = store.keep_bytes(&snapshot, &manifest, (folder, &context), &UNWATCHED);
    (store.find(&snapshot.data_sha256).unwrap().unwrap(), kept)
}

/// Proves that kept bytes are restored as they were after the data is gone, that equal files are kept once, that a folder with
/// something in it is not restored into, and that a snapshot without bytes says so.
#[test]
fn kept_bytes_bring_the_data_back() {
    let folder = folder(&[("data/a.csv", "x\n1\n"), ("data/b/a.csv", "x\n1\n"), ("data/c.bin", "\0\u{1}")]);
    let store = SnapshotStore::new(&folder.path().join("kept"));
    let (id, kept) = take_with_bytes(folder.path(), &store);
    let kept = kept.unwrap();
    assert_eq!((kept.files_added, kept.bytes_added), (2, 6));
    assert_eq!(
        take_with_bytes(folder.path(), &store).1.unwrap(),
        KeptBytes::default(),
        "nothing is copied twice"
    );
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    let out = folder.path().join("out");
    assert_eq!(store.restore(&id, &out, &UNWATCHED).unwrap(), RestoredBytes { files: 3, size_bytes: 10 });
    assert_eq!(fs::read_to_string(out.join("b/a.csv")).unwrap(), "x\n1\n");
    assert_eq!(fs::read(out.join("c.bin")).unwrap(), [0, 1]);
    let again = store.restore(&id, &out, &UNWATCHED).unwrap_err();
    assert!(matches!(again, SnapshotError::Occupied { .. }), "{again}");
    write(folder.path(), "other/data/a.csv", "x\n2\n");
    let (snapshot, profile, _) = take(&folder.path().join("other"), None);
    store.put(&snapshot, Some(&profile)).unwrap();
    let bare = store.find(&snapshot.data_sha256).unwrap().unwrap();
    assert!(matches!(store.verify_bytes(&bare, &UNWATCHED), Err(SnapshotError::NoBytes { .. })));
}

/// Proves that verifying names the file of which one byte is another one, and one that is gone, and that neither is restored.
#[test]
fn kept_bytes_that_differ_are_named() {
    let folder = folder(&[("data/a.csv", "x\n1\n"), ("data/b.csv", "x\n2\n"), ("data/c.csv", "x\n3\n")]);
    let store = SnapshotStore::new(&folder.path().join("kept"));
    let (id, kept) = take_with_bytes(folder.path(), &store);
    kept.unwrap();
    assert_eq!(store.verify_bytes(&id, &UNWATCHED).unwrap().faults, []);
    let object = |text: &str| {
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        folder.path().join("kept/objects").join(&hash[..2]).join(&hash)
    };
    fs::write(object("x\n1\n"), "x\n7\n").unwrap();
    fs::remove_file(object("x\n3\n")).unwrap();
    let found = store.verify_bytes(&id, &UNWATCHED).unwrap();
    let faults: Vec<_> = found.faults.iter().map(|it| (it.path.as_str(), it.problem)).collect();
    assert_eq!(faults, [("a.csv", BytesProblem::Different), ("c.csv", BytesProblem::Missing)]);
    assert_eq!((found.files, found.bytes_read), (3, 8));
    let out = folder.path().join("out");
    let lost = store.restore(&id, &out, &UNWATCHED).unwrap_err();
    assert!(matches!(lost, SnapshotError::Lost { .. }) && !out.exists(), "{lost}");
}

/// Proves that bytes go when the last snapshot that needs them expires and not before, that a dry run changes nothing, that
/// what a killed process left goes, and that the snapshot itself stays.
#[test]
fn bytes_go_with_the_last_snapshot_that_needs_them() {
    let folder = folder(&[("data/a.csv", "x\n1\n"), ("data/b.csv", "x\n2\n")]);
    let store = SnapshotStore::new(&folder.path().join("kept"));
    let first = take_with_bytes(folder.path(), &store).0;
    write(folder.path(), "data/b.csv", "x\n3\n");
    let second = take_with_bytes(folder.path(), &store).0;
    let gone = |ids: &[SnapshotId], dry_run| {
        let collected = store.expire_bytes(ids, dry_run).unwrap();
        (collected.files, collected.size_bytes)
    };
    let of_first = std::slice::from_ref(&first);
    assert_eq!(gone(&[], false), (0, 0));
    assert_eq!((gone(of_first, true), store.has_bytes(&first)), ((1, 4), true));
    let hash = blake3::hash(b"x\n1\n").to_hex().to_string();
    let shard = folder.path().join("kept/objects").join(&hash[..2]);
    fs::write(shard.join(format!(".{hash}.part-1-0")), "half").unwrap();
    assert_eq!((gone(of_first, false), store.has_bytes(&first)), ((1, 4), false));
    assert_eq!(entries_of(&shard), 1, "the file of a killed process is gone");
    assert!(store.verify_bytes(&second, &UNWATCHED).unwrap().faults.is_empty());
    assert_eq!(store.snapshot(&first).unwrap().data_sha256, first.as_str());
    assert_eq!(gone(&[second], false), (2, 8));
}

fn entries_of(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Proves that a file which is written to between hashing and copying is an error that names it, and that the snapshot is not
/// taken for one with bytes.
#[test]
fn a_file_that_changes_meanwhile_is_not_kept() {
    let folder = folder(&[("data/a.csv", "x\n1\n")]);
    let store = SnapshotStore::new(&folder.path().join("kept"));
    let context = ReadContext::default();
    let clock = ManualClock::at(Timestamp::from_micros(0));
    let resolver =
        Resolver { base: folder.path(), context: &context, cache: None, clock: &clock, watch: &UNWATCHED };
    let manifest =
        resolver.resolve("data", &DataSpec { path: "data".into(), ..DataSpec::default() }).unwrap();
    let snapshot = Snapshot::of(&manifest, &[]);
    store.put(&snapshot, None).unwrap();
    write(folder.path(), "data/a.csv", "x\n2\n");
    let error = store.keep_bytes(&snapshot, &manifest, (folder.path(), &context), &UNWATCHED).unwrap_err();
    assert!(matches!(error, SnapshotError::Changed { .. }), "{error}");
    let id = store.find(&snapshot.data_sha256).unwrap().unwrap();
    assert!(!store.has_bytes(&id));
    assert_eq!(store.expire_bytes(&[], true).unwrap(), Collected::default());
}

/// Proves that a snapshot of which a path, a size, a schema or a missing value was edited is not read, verified or restored, whatever its
/// files are.
#[test]
fn an_edited_snapshot_is_damaged() {
    let folder = folder(&FILES);
    let store = SnapshotStore::new(&folder.path().join("kept"));
    let (id, kept) = take_with_bytes(folder.path(), &store);
    kept.unwrap();
    let manifest = format!("kept/snapshots/{}/manifest.json", id.as_str());
    let out = folder.path().join("out");
    let text = fs::read_to_string(folder.path().join(&manifest)).unwrap();
    for (from, to) in [
        ("\"path\":\"a.csv\"", "\"path\":\"c.csv\""),
        ("\"size_bytes\":", "\"size_bytes\":1"),
        ("\"type\":\"text\"", "\"type\":\"int\""),
        ("\"missing\":[]", "\"missing\":[\"?\"]"),
    ] {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text, "{from}");
        write(folder.path(), &manifest, &edited);
        let read = store.snapshot(&id).map(drop);
        let verified = store.verify_bytes(&id, &UNWATCHED).map(drop);
        let restored = store.restore(&id, &out, &UNWATCHED).map(drop);
        for answer in [read, verified, restored] {
            assert!(matches!(answer, Err(SnapshotError::Damaged { .. })), "{from}: {answer:?}");
        }
        assert!(!out.exists(), "{from}");
    }
    write(folder.path(), &manifest, &text);
    assert_eq!(store.restore(&id, &out, &UNWATCHED).unwrap().files, 3);
}
