use std::path::{Path, PathBuf};

use proptest::prelude::*;
use trackway_core::Timestamp;
use trackway_store::Writer;

use super::{Diagnosis, Remedy, RootFinding, RootSeverity, diagnose};
use crate::history::entry::{Begin, Body, ClaimBody, CommitBody, PinBody};
use crate::housekeeping::keeper::append;
use crate::tests::{World, save};
use crate::{CheckpointView, Kind};

const NOW: Timestamp = Timestamp::from_micros(1_795_244_400_000_000);

fn vector_root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats/vectors/checkpoint/root"))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

fn copy_of(root: &Path) -> tempfile::TempDir {
    let copy =
        tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    for file in files_below(root) {
        let to = copy.path().join(file.strip_prefix(root).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(file, to).unwrap();
    }
    copy
}

fn diagnosed(root: &Path) -> Diagnosis {
    diagnose(root, NOW, &|_, _| {}).unwrap()
}

fn about<'a>(diagnosis: &'a Diagnosis, path: &str) -> Vec<&'a RootFinding> {
    diagnosis.findings.iter().filter(|finding| finding.path.as_deref() == Some(path)).collect()
}

/// Lines as a person would see them, for tables.
fn lines(diagnosis: &Diagnosis) -> Vec<String> {
    let line = |finding: &RootFinding| {
        let path = finding.path.as_deref().unwrap_or("-");
        format!("{} {} {path}: {}", finding.severity.as_str(), finding.check, finding.message)
    };
    diagnosis.findings.iter().map(line).collect()
}

/// Carries a remedy out, where it is one of bytes.
fn carry_out(root: &Path, remedy: &Remedy) -> bool {
    match remedy {
        Remedy::SetByte { path, offset, byte } => {
            let mut bytes = std::fs::read(root.join(path)).unwrap();
            bytes[*offset as usize] = *byte;
            std::fs::write(root.join(path), bytes).unwrap();
        }
        Remedy::CutTo { path, size_bytes } => {
            let mut bytes = std::fs::read(root.join(path)).unwrap();
            bytes.truncate(*size_bytes as usize);
            std::fs::write(root.join(path), bytes).unwrap();
        }
        Remedy::CopyFrom { from, to } => drop(std::fs::copy(root.join(from), root.join(to)).unwrap()),
        Remedy::Remove { path } if root.join(path).is_dir() => {
            std::fs::remove_dir_all(root.join(path)).unwrap()
        }
        Remedy::Remove { path } => std::fs::remove_file(root.join(path)).unwrap(),
        _ => return false,
    }
    true
}

#[derive(Debug, Clone)]
enum Damage {
    Flip { place: usize, bits: u8 },
    Truncate { size: usize },
    Delete,
    Duplicate { name: usize },
    Append { bytes: Vec<u8> },
    Zero { from: usize },
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<usize>(), 1u8..=255).prop_map(|(place, bits)| Damage::Flip { place, bits }),
        any::<usize>().prop_map(|size| Damage::Truncate { size }),
        Just(Damage::Delete),
        (0usize..4).prop_map(|name| Damage::Duplicate { name }),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(|bytes| Damage::Append { bytes }),
        any::<usize>().prop_map(|from| Damage::Zero { from }),
    ]
}

/// Damages a file and returns what a finding must name; none when nothing changed.
fn inflict(root: &Path, path: &Path, damage: &Damage) -> Option<PathBuf> {
    let mut bytes = std::fs::read(path).unwrap();
    let before = bytes.clone();
    match damage {
        Damage::Flip { place, bits } => {
            let place = place % bytes.len();
            bytes[place] ^= bits;
        }
        Damage::Truncate { size } => bytes.truncate(size % bytes.len()),
        Damage::Append { bytes: more } => bytes.extend(more),
        Damage::Zero { from } => {
            let from = from % bytes.len();
            bytes[from..].fill(0);
        }
        Damage::Delete => {
            std::fs::remove_file(path).unwrap();
            return Some(path.strip_prefix(root).unwrap().to_owned());
        }
        Damage::Duplicate { name } => {
            let stem = path.file_name().unwrap().to_str().unwrap();
            let names = ["00000019.json".into(), format!("{stem}.copy"), format!(".{stem}"), "copy".into()];
            let copy = path.with_file_name(&names[*name]);
            std::fs::copy(path, &copy).unwrap();
            return Some(copy.strip_prefix(root).unwrap().to_owned());
        }
    }
    std::fs::write(path, &bytes).unwrap();
    (bytes != before).then(|| path.strip_prefix(root).unwrap().to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that any single change to any file of the published root is found and names that file, that doctor never
    /// panics, that it predicts what a resume does, and that its remedies repair the bytes.
    #[test]
    fn any_single_damage_is_named(index in any::<prop::sample::Index>(), damage in damage()) {
        let copy = copy_of(&vector_root());
        let files = files_below(copy.path());
        let victim = index.get(&files).clone();
        let last_entry = victim.ends_with("log/00000018.json");
        let healthy = lines(&diagnosed(copy.path()));
        let Some(changed) = inflict(copy.path(), &victim, &damage) else { return Ok(()) };
        let changed = changed.to_str().unwrap();
        let diagnosis = diagnosed(copy.path());
        if last_entry && matches!(damage, Damage::Delete) {
            // The last entry is missed by what it was about: its number is named as where the log ends.
            let missed = lines(&diagnosis).iter().any(|line| line.contains("the log ends before `log/00000018.json`"));
            prop_assert!(missed, "{:#?}", lines(&diagnosis));
        } else {
            let named = about(&diagnosis, changed);
            prop_assert!(!named.is_empty(), "`{changed}` is not named: {:#?}", lines(&diagnosis));
        }
        let view = CheckpointView::open(copy.path()).unwrap();
        let resumed = view.resume_target().ok().flatten().map(|target| target.info.number);
        prop_assert_eq!(diagnosis.resume.map(|sound| sound.number), resumed);
        let healing = about(&diagnosis, changed).into_iter().find(|finding| carry_out(copy.path(), &finding.remedy));
        let byte_for_byte = matches!(healing.map(|it| &it.remedy), Some(Remedy::SetByte { .. } | Remedy::CutTo { .. } | Remedy::CopyFrom { .. }));
        if byte_for_byte && !victim.to_str().unwrap().contains("step-00000020") {
            prop_assert_eq!(lines(&diagnosed(copy.path())), healthy);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that doctor lives through any bytes in any two files at once.
    #[test]
    fn two_damages_do_not_panic(
        first in (any::<prop::sample::Index>(), damage()),
        second in (any::<prop::sample::Index>(), damage()),
    ) {
        let copy = copy_of(&vector_root());
        for (index, damage) in [first, second] {
            let files = files_below(copy.path());
            let victim = index.get(&files);
            if std::fs::metadata(victim).unwrap().len() > 0 {
                inflict(copy.path(), victim, &damage);
            }
        }
        let diagnosis = diagnosed(copy.path());
        let resumed = CheckpointView::open(copy.path()).unwrap().resume_target();
        prop_assert_eq!(diagnosis.resume.map(|sound| sound.number), resumed.ok().flatten().map(|target| target.info.number));
    }
}

/// Proves that a healthy root has no error and no warning, and that the published root's one damage is reported in
/// full.
#[test]
fn a_healthy_root_is_healthy() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    for step in [10, 20, 30] {
        save(&mut root, step).unwrap();
    }
    let diagnosis = diagnosed(&world.path());
    assert_eq!(lines(&diagnosis), [] as [&str; 0]);
    assert_eq!(diagnosis.sound.iter().map(|sound| sound.step).collect::<Vec<_>>(), [30, 20, 10]);
    assert_eq!(diagnosis.resume.map(|sound| sound.step), Some(30));
    let published = diagnosed(&vector_root());
    let errors: Vec<_> = lines(&published);
    println!("{errors:#?}");
    assert_eq!(published.findings.iter().filter(|it| it.severity == RootSeverity::Error).count(), 1);
    assert_eq!(published.findings[0].check, "file_changed");
}

/// Proves that each kind of damage to a file is reported: cut, longer, zero, another's bytes, in the wrong place, one
/// bit, gone; that a shared file is damaged under all of its names; and that an intact copy is offered where there is
/// one.
#[test]
fn what_happened_to_a_file_is_reported() {
    let world = World::new();
    let mut root =
        world.open_as(std::sync::Arc::new(trackway_store::RealDisk), 1, world.attempt(), None).unwrap();
    let large = |seed: u8| (0..50_000u32).map(|index| (index as u8) ^ seed | 1).collect::<Vec<u8>>();
    for step in [10u64, 20] {
        root.save(step, &[], |writer| {
            writer.file("backbone.bin", Kind::Weights, &large(64))?;
            writer.file("head.bin", Kind::Weights, &large(step as u8))?;
            writer.file("twin.bin", Kind::Other, &large(64))?;
            writer.file("rng.bin", Kind::Rng, &large(step as u8)[..600])
        })
        .unwrap();
    }
    let infos = world.view().list();
    let [first, second] = [&infos[0].object_prefix, &infos[1].object_prefix];
    let path = |prefix: &str, name: &str| world.path().join(prefix).join(name);
    let head = std::fs::read(path(second, "head.bin")).unwrap();
    let reported = |bytes: &[u8]| {
        std::fs::write(path(second, "head.bin"), bytes).unwrap();
        let diagnosis = diagnosed(&world.path());
        std::fs::write(path(second, "head.bin"), &head).unwrap();
        diagnosis.findings[0].clone()
    };
    let mut zero_tail = head.clone();
    zero_tail[40_960..].fill(0);
    let table: [(&[u8], &str, &str); 6] = [
        (
            &head[..100],
            "file_short",
            "has 100 bytes and was committed with 50000: 49900 are missing at its end",
        ),
        (
            &[&head[..], b"more"].concat(),
            "file_long",
            "the first 50000 are the committed ones, the rest was added",
        ),
        (
            &zero_tail,
            "file_changed",
            "it is zero from byte 40960 on: its last 9040 bytes never reached the disk",
        ),
        (&vec![0; 50_000], "file_changed", "every byte of it is zero"),
        (&large(10), "file_changed", "it has the bytes of `head.bin` of step 10 (entry 3)"),
        (&large(64), "file_changed", "it has the bytes of `backbone.bin` of the same checkpoint"),
    ];
    for (bytes, check, words) in table {
        let finding = reported(bytes);
        assert_eq!(finding.check, check, "{finding:?}");
        assert!(finding.message.contains(words), "`{words}` is not in `{}`", finding.message);
        assert_eq!(
            finding.safe.as_deref(),
            Some("a resume falls back to step 10 (entry 3), which verifies; steps to repeat: 10")
        );
    }
    let mut rng = std::fs::read(path(second, "rng.bin")).unwrap();
    rng[123] ^= 0x40;
    std::fs::write(path(second, "rng.bin"), &rng).unwrap();
    let finding = diagnosed(&world.path()).findings[0].clone();
    assert!(finding.message.contains("byte 123 is 0x"), "{finding:?}");
    assert!(carry_out(&world.path(), &finding.remedy));
    assert_eq!(lines(&diagnosed(&world.path())), [] as [&str; 0]);

    std::fs::write(path(second, "backbone.bin"), &head).unwrap();
    let diagnosis = diagnosed(&world.path());
    let shared = about(&diagnosis, &format!("{first}/backbone.bin"));
    assert!(
        shared[0].message.contains(&format!("it is hard-linked to `{second}/backbone.bin`")),
        "{shared:?}"
    );
    assert_eq!(
        shared[0].remedy,
        Remedy::CopyFrom { from: format!("{first}/twin.bin"), to: format!("{first}/backbone.bin") }
    );
    assert!(carry_out(&world.path(), &shared[0].remedy));
    assert_eq!(lines(&diagnosed(&world.path())), [] as [&str; 0], "both names are healed at once");
}

/// A root of two commits, to which anything may be added without the writer.
struct Bent {
    world: World,
    root: crate::CheckpointRoot,
}

impl Bent {
    fn new() -> Self {
        let world = World::new();
        let mut root = world.open(1).unwrap();
        for step in [10, 20] {
            save(&mut root, step).unwrap();
        }
        Self { world, root }
    }

    /// Adds an entry that no sound writer would.
    fn add(&mut self, body: Body) -> u64 {
        append(self.root.view_mut(), Writer::Housekeeper, |_| Some(body.clone())).unwrap().unwrap()
    }

    fn commit(&self, number: u64) -> CommitBody {
        self.world.view().history().commit(number).unwrap().body.clone()
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.world.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn reported(&self) -> Vec<String> {
        lines(&diagnosed(&self.world.path()))
    }
}

fn assert_reported(reported: &[String], expected: &[&str]) {
    assert_eq!(reported.len(), expected.len(), "{reported:#?}");
    for (line, words) in reported.iter().zip(expected) {
        assert!(line.contains(words), "`{words}` is not in `{line}`");
    }
}

/// Proves that each kind of error in the log is reported with its entry: foreign runs and prefixes, claims and commits
/// after a fence, parents that do not exist, entries about nothing.
#[test]
fn what_is_wrong_with_the_log_is_reported() {
    let mut bent = Bent::new();
    let (sound, attempt) = (bent.commit(5), bent.world.attempt());
    let other_run = trackway_core::RunId::new(bent.world.ids.as_ref());
    let claim = |epoch, run_id| Body::Claim(ClaimBody { epoch, run_id, attempt_id: attempt });
    bent.add(claim(1, sound.run_id));
    bent.add(claim(3, other_run));
    bent.add(claim(2, sound.run_id));
    bent.add(Body::Commit(sound.clone()));
    bent.add(Body::Commit(CommitBody { epoch: 3, parent: Some(6), ..sound.clone() }));
    bent.add(Body::Commit(CommitBody { object_prefix: "step-00000020/../../etc".into(), ..sound.clone() }));
    bent.add(Body::suspect(1, "why not"));
    let reported = bent.reported();
    assert_reported(
        &reported,
        &[
            "error two_claims log/00000006.json: epoch 1 is claimed twice, by att_",
            "error wrong_run log/00000007.json: it belongs to run_",
            "error claim_behind log/00000008.json: epoch 2 is claimed by att_",
            "error fenced_writer log/00000009.json: step 20 is committed by att_",
            "error log_entry_damaged log/00000010.json: log entry 10 cannot be used: its prefix",
            "error log_entry_damaged log/00000011.json: log entry 11 cannot be used: its prefix `step-00000020/../../etc` is invalid",
            "warning entry_names_nothing log/00000012.json: it names entry 1, which is not a commit",
        ],
    );
    let prefix = sound.object_prefix.replace("epoch-0001", "epoch-0003");
    bent.add(Body::Commit(CommitBody { epoch: 3, parent: Some(6), object_prefix: prefix, ..sound }));
    let reported = bent.reported();
    let about_parent = reported.iter().find(|line| line.contains("parent_missing")).unwrap();
    assert!(about_parent.contains("continues from entry 6, which is not a commit"), "{about_parent}");
    assert!(
        reported.iter().any(|line| line.contains("checkpoint_missing") && line.contains("epoch-0003")),
        "{reported:#?}"
    );
}

/// Proves that a gap, a lost log, wrong hints, foreign and left-over files and folders are reported, and which of them
/// are harmless.
#[test]
fn what_is_missing_or_foreign_is_reported() {
    let bent = Bent::new();
    bent.write("log/hint.json", b"{\"summary\":3}\n");
    bent.write("log/.new-01jd8c4w9m7n2q5r8t0v3x6y9z", b"half an ent");
    bent.write("log/3.json", b"{}");
    bent.write("notes.txt", b"mine");
    bent.write("step-00000030/epoch-0001-01jd8c4w9m7n2q5r8t0v3x6y9z/weights.bin", b"who wrote this");
    assert_reported(
        &bent.reported(),
        &[
            "warning hint_wrong log/hint.json: the hint cannot be used (it names entry 3, which is not a summary)",
            "warning orphan_folder step-00000030/epoch-0001-01jd8c4w9m7n2q5r8t0v3x6y9z: no log entry names this folder (14 bytes)",
            "note left_over_file log/.new-01jd8c4w9m7n2q5r8t0v3x6y9z: left over",
            "note foreign_file log/3.json",
            "note foreign_file notes.txt",
        ],
    );
    let bent = Bent::new();
    std::fs::remove_file(bent.world.path().join("log/00000003.json")).unwrap();
    let reported = bent.reported();
    assert!(reported[0].starts_with("error log_entry_missing log/00000003.json: log entry 3 is missing although later ones exist: no reader sees the 2 numbers after it, including the commits of step 20"), "{reported:#?}");
    std::fs::remove_dir_all(bent.world.path().join("log")).unwrap();
    let reported = bent.reported();
    assert!(reported[0].starts_with("error log_missing log: the log is missing"), "{reported:#?}");
    let diagnosis = diagnosed(&bent.world.path());
    let safe = diagnosis.findings[0].safe.as_deref().unwrap();
    assert!(safe.starts_with("the files in 2 folders with a manifest"), "{safe}");
    assert!(about_orphans(&diagnosis).all(|finding| finding.remedy == Remedy::Keep), "{diagnosis:#?}");
    let refused = diagnose(&bent.world.path().join("absent"), NOW, &|_, _| {}).map(drop).unwrap_err();
    assert_eq!(refused.kind(), crate::ErrorKind::Storage, "{refused}");
}

fn about_orphans(diagnosis: &Diagnosis) -> impl Iterator<Item = &RootFinding> {
    diagnosis.findings.iter().filter(|finding| finding.check == "orphan_folder")
}

/// Proves that a folder which was moved is known again, with the way back, and is not called a stranger's.
#[test]
fn a_moved_folder_is_known_again() {
    let bent = Bent::new();
    let prefix = bent.commit(5).object_prefix;
    let name = prefix.rsplit('/').next().unwrap();
    let elsewhere = format!("step-00000010/{name}");
    std::fs::rename(bent.world.path().join(&prefix), bent.world.path().join(&elsewhere)).unwrap();
    let diagnosis = diagnosed(&bent.world.path());
    let [finding] = diagnosis.findings.as_slice() else { panic!("{diagnosis:#?}") };
    assert_eq!(finding.check, "checkpoint_missing");
    assert!(finding.message.contains(&format!("moved to `{elsewhere}`")), "{}", finding.message);
    assert_eq!(finding.remedy, Remedy::MoveTo { from: elsewhere, to: prefix });
}

/// Proves that what housekeeping left unfinished is reported: pins on nothing and pins that ended, bytes of retired or
/// abandoned checkpoints, suspects, and a save that is being written.
#[test]
fn what_housekeeping_left_is_reported() {
    let mut bent = Bent::new();
    let first = bent.commit(3);
    let pin = |name: &str, commit, until: Option<&str>| {
        Body::Pin(PinBody { name: name.into(), commit, why: String::new(), until: until.map(Into::into) })
    };
    bent.add(pin("gone", 3, None));
    bent.add(pin("over", 5, Some("2020-01-01T00:00:00Z")));
    bent.add(Body::Retire { commits: vec![3], swept: vec![] });
    bent.add(Body::suspect(5, "its load crashed"));
    let prefix = "step-00000030/epoch-0001-01jd8c4w9m7n2q5r8t0v3x6y9z";
    let begin = Begin {
        epoch: 1,
        run_id: first.run_id,
        attempt_id: first.attempt_id,
        step: 30,
        object_prefix: prefix.into(),
        ranks: None,
    };
    bent.add(Body::Begin(begin));
    bent.write(&format!("{prefix}/weights.bin"), b"half");
    let suspect = &bent.commit(5).object_prefix;
    assert_reported(
        &bent.reported(),
        &[
            "error nothing_verifies -: checkpoints were committed, but none that a resume could use verifies",
            "warning pin_on_nothing log/00000003.json: the pin `gone` holds entry 3, whose files are deleted",
            &format!("warning retired_not_deleted {}: step 10 was retired", first.object_prefix),
            &format!(
                "warning suspect {suspect}: step 20 (written by {}, epoch 1) is marked suspect although its bytes verify; a resume skips it: its load crashed",
                first.attempt_id
            ),
            "note pin_expired log/00000005.json: the pin `over` on entry 5 expired at 2020-01-01T00:00:00Z",
            &format!("note begun_not_committed {prefix}: step 30 was begun by"),
        ],
    );
    bent.world.open(2).unwrap();
    let reported = bent.reported();
    assert!(
        reported.iter().any(|line| line.starts_with(&format!("warning begun_not_committed {prefix}"))),
        "{reported:#?}"
    );
}

/// Proves that a summary that does not mean what the entries before it mean is found.
#[test]
fn a_wrong_summary_is_reported() {
    let mut bent = Bent::new();
    let right = trackway_store::Fold::summary(bent.world.view().history());
    bent.add(right.clone());
    assert_eq!(bent.reported(), [] as [&str; 0]);
    bent.add(Body::suspect(5, "no"));
    bent.add(right);
    let reported = bent.reported();
    assert!(reported[0].contains("summary_wrong log/00000008.json"), "{reported:#?}");
}
