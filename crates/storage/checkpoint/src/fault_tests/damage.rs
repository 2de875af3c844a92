use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use trackway_core::{Clock, Rng as _, SplitMix64, Timestamp};
use trackway_store::testing::{FaultDisk, seeds, seeds_asked_for};

use super::deeds::number_of;
use super::scene::Scene;
use crate::history::entry::ClaimBody;
use crate::retention::Retention;
use crate::settings::Settings;
use crate::tests::save;
use crate::{CheckpointRoot, CheckpointView, Housekeeper};

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// What can be found wrong with a root.
fn faults_of(view: &CheckpointView) -> usize {
    let commits = view.list().into_iter().filter(|info| info.manifest_sha256.is_some());
    view.damaged_entries().len() + commits.filter(|info| view.verify(info.number).is_err()).count()
}

/// Proves that a flipped bit anywhere in a root, in an entry of any kind, a manifest or a file, is found; and that a
/// flipped bit of the hint, on which nothing relies, changes nothing.
#[test]
fn any_flipped_bit_is_found() {
    let scene = Scene::local();
    let mut root = scene.resumed(&scene.disk, 1, None);
    for step in [10, 20, 30] {
        scene.save(&mut root, step).unwrap();
    }
    let _ = root.save(35, &[], |_| Err(crate::CheckpointError::state("no")));
    let mut house = scene.house(&scene.disk).unwrap();
    house.pin("evaluation", number_of(&scene, 10), "it is read", None).unwrap();
    house.pin("promoted", number_of(&scene, 20), "in production", None).unwrap();
    house.unpin("promoted").unwrap();
    house.suspect(number_of(&scene, 30), "its loss is not a number").unwrap();
    house.uploaded(number_of(&scene, 20), "s3://bucket/run").unwrap();
    let path = scene.world.path();
    std::fs::write(path.join("log/hint.json"), b"{\"summary\":3}\n").unwrap();
    assert_eq!(faults_of(&scene.world.view()), 0);
    let stride = if seeds_asked_for().is_some() { 1 } else { 5 };
    let mut flipped = 0;
    for file in files_below(&path) {
        let is_hint = file.ends_with("log/hint.json");
        let original = std::fs::read(&file).unwrap();
        for position in (0..original.len()).step_by(stride) {
            let mut bytes = original.clone();
            bytes[position] ^= 1 << (flipped % 8);
            flipped += 1;
            std::fs::write(&file, &bytes).unwrap();
            let found = faults_of(&scene.world.view());
            assert_eq!(found == 0, is_hint, "byte {position} of {}", file.display());
            if is_hint {
                let view = scene.view_at(&scene.disk, scene.world_log()).unwrap();
                assert_eq!(view.list().len(), scene.world.view().list().len());
            }
        }
        std::fs::write(&file, &original).unwrap();
    }
    assert!(flipped > 1_000, "{flipped}");
}

/// Proves that a pin whose entry rotted still holds: what is older than an entry that cannot be read is not deleted.
#[test]
fn what_may_be_pinned_stays() {
    let scene = Scene::local();
    let mut root = scene.resumed(&scene.disk, 1, None);
    let first = scene.save(&mut root, 10).unwrap();
    let mut house = scene.house(&scene.disk).unwrap();
    house.pin("promoted", first.number, "in production", None).unwrap();
    let pin = scene.world.path().join(format!("log/{:08}.json", first.number + 1));
    assert!(std::fs::read_to_string(&pin).unwrap().contains("promoted"));
    std::fs::write(&pin, b"rotten").unwrap();
    for step in [20, 30, 40, 50] {
        scene.save(&mut root, step).unwrap();
    }
    let mut house = scene.house(&scene.disk).unwrap();
    house.collect(&Retention::default(), 0.0, false).unwrap();
    let view = scene.world.view();
    let left: Vec<_> =
        view.list().iter().filter(|info| view.verify(info.number).is_ok()).map(|info| info.step).collect();
    assert_eq!(left, [10, 40, 50]);
}

/// A wall clock that must not be trusted: every reading is another time within twenty years.
#[derive(Debug)]
pub(super) struct JumpyClock {
    seed: AtomicU64,
    monotonic_micros: AtomicI64,
}

impl JumpyClock {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { seed: AtomicU64::new(seed << 32), monotonic_micros: AtomicI64::new(0) })
    }
}

impl Clock for JumpyClock {
    fn now(&self) -> Timestamp {
        let draw = SplitMix64::new(self.seed.fetch_add(1, Ordering::SeqCst)).next_u64();
        Timestamp::from_micros((draw % (20 * 365 * 86_400_000_000)) as i64 + 1_500_000_000_000_000)
    }

    fn monotonic_micros(&self) -> i64 {
        self.monotonic_micros.fetch_add(1, Ordering::SeqCst)
    }

    fn sleep(&self, duration: std::time::Duration) {
        self.monotonic_micros.fetch_add(duration.as_micros() as i64, Ordering::SeqCst);
    }
}

/// Proves that nothing that a resume could take, and nothing pinned, depends on the wall clock: it may jump forwards
/// and backwards between and within saves, retention and collections.
#[test]
fn clocks_may_jump() {
    for seed in seeds(30) {
        let scene = Scene::local();
        let clock: Arc<dyn Clock> = JumpyClock::new(seed);
        let disk = FaultDisk::sound();
        for epoch in 1..=3 {
            let view = scene.view_at(&disk, scene.world_log()).unwrap();
            let (run_id, attempt_id) = (scene.world.run_id(), scene.attempt(epoch));
            let claim = ClaimBody { epoch, run_id, attempt_id };
            let settings = Settings { keep: Some(Retention::default()), ..Settings::default() };
            let ids = scene.world.ids.clone();
            let mut root = CheckpointRoot::open_over(view, claim, settings, clock.clone(), ids).unwrap();
            let resumed = root.resume_target().unwrap().map_or(0, |target| target.step);
            assert_eq!(resumed, (epoch - 1) * 30, "seed {seed}");
            let mut house =
                Housekeeper::over(scene.view_at(&disk, scene.world_log()).unwrap(), clock.clone()).unwrap();
            for step in [10, 20, 30] {
                let commit = save(&mut root, resumed + step).unwrap();
                scene.promise(&commit);
                if step == 10 {
                    house.pin(&format!("pin-{epoch}"), commit.number, "it is read", None).unwrap();
                    scene.promises().pinned.insert(commit.number);
                }
                house.collect(&Retention::default(), 86_400.0, false).unwrap();
            }
        }
        scene.go_on(&format!("seed {seed}"));
    }
}
