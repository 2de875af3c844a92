//! In which order checkpoints are committed: a retry continues from the last one of the log.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use super::*;
use crate::look::IsOpen;

impl World {
    /// Looks once more, with other facts than those of [`World::look`].
    fn look_with(
        &mut self,
        adopter: &mut Adopter,
        is_open: &IsOpen<'_>,
        interrupted: &dyn Fn() -> bool,
    ) -> Look {
        self.at_ns += SECOND_NS;
        adopter.look(&Facts {
            at_ns: self.at_ns,
            saves: &self.saves,
            step_when_written: &|_| None,
            step_slack: 0,
            writers: &|_, _| own(),
            writers_ended: self.ended,
            is_open_for_writing: is_open,
            is_interrupted: interrupted,
        })
    }

    /// A checkpoint whose file was last written to at a time in seconds.
    pub(super) fn finished(&self, path: &str, bytes: &[u8], seconds: u64) {
        write(&self.work(path), bytes);
        let file = fs::File::options().write(true).open(self.work(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)).unwrap();
    }

    /// The steps in the order of the log.
    fn log(&self) -> Vec<u64> {
        self.view().list().iter().filter(|one| one.manifest_sha256.is_some()).map(|one| one.step).collect()
    }
}

fn steps(look: &Look) -> Vec<u64> {
    look.adopted.iter().map(|one| one.commit.step).collect()
}

/// Proves that of two saves of DeepSpeed that are seen by one look the older one, which the tracker does not name any
/// more and which therefore must stay as it is for a while, is committed first, and that a retry continues from the
/// newer one.
#[test]
fn an_older_save_is_waited_for() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["ds/global_step*"]);
    for step in [10, 20] {
        write(&world.work(&format!("ds/global_step{step}/mp_rank_00_model_states.pt")), STATE);
        write(&world.work("ds/latest"), format!("global_step{step}").as_bytes());
    }
    assert!(world.look(&mut adopter).is_waiting, "the newer one is complete and the older one is not yet");
    assert_eq!(steps(&world.follow(&mut adopter, 9)), [10, 20]);
    assert_eq!(world.log(), [10, 20]);
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 20);
}

/// Proves that checkpoints without a step are committed in the order in which they were finished, not in that of their names.
#[test]
fn without_steps_the_times_decide() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["*.safetensors"]);
    world.finished("best.safetensors", &tensors(100, 1), 2);
    world.finished("last.safetensors", &tensors(100, 2), 1);
    let look = world.follow(&mut adopter, 9);
    let paths: Vec<&str> = look.adopted.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["last.safetensors", "best.safetensors"]);
}

/// Proves that a copy which is interrupted keeps later ones from being committed by the same look, though nothing interrupts these.
#[test]
fn what_was_interrupted_comes_first() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    for step in [10, 20] {
        write(&world.work(&format!("out/step-{step}.safetensors")), &tensors(100, 1));
    }
    world.ended = true;
    let asked = Cell::new(0);
    let at_first = || asked.replace(asked.get() + 1) < 2;
    let look = world.look_with(&mut adopter, &|_| Some(false), &at_first);
    assert!(look.adopted.is_empty() && look.is_waiting, "{look:?}");
    assert_eq!(steps(&world.look(&mut adopter)), [10, 20]);
}

/// Proves that what becomes complete only after a later checkpoint was committed is refused with the step of that one, and that a training
/// which began again, with lower steps in later files, is committed.
#[test]
fn what_comes_too_late_is_refused() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    world.finished("out/step-10.safetensors", &tensors(100, 1), 1);
    world.finished("out/step-20.safetensors", &tensors(100, 2), 2);
    let first = fs::metadata(world.work("out/step-10.safetensors")).unwrap().ino();
    let is_open = |files: &[(u64, u64)]| Some(files.iter().any(|(_, inode)| *inode == first));
    for _ in 0..5 {
        world.look_with(&mut adopter, &is_open, &|| false);
    }
    assert_eq!(world.log(), [20], "the other one is open, and may be so until the end");
    world.ended = true;
    let look = world.look(&mut adopter);
    let [refused] = look.not_adopted.as_slice() else { panic!("{look:?}") };
    assert_eq!(refused.path, "out/step-10.safetensors");
    assert!(refused.why.contains("older than that of step 20"), "{}", refused.why);
    world.finished("out/step-5.safetensors", &tensors(100, 3), 3);
    world.look(&mut adopter);
    assert_eq!(world.log(), [20, 5]);
}

/// Proves that a checkpoint of which it is never known whether it is complete delays later ones for a bounded time.
#[test]
fn nothing_is_waited_for_without_end() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    world.finished("out/step-10.bin", b"not a format", 1);
    world.finished("out/step-20.safetensors", &tensors(100, 2), 2);
    let committed_at =
        (1..40).find(|_| !world.look_with(&mut adopter, &|_| None, &|| false).adopted.is_empty());
    assert_eq!((committed_at, world.log()), (Some(16), vec![20]));
}
