#![allow(clippy::disallowed_methods, reason = "the folder is of the test")]

mod commits;
mod copies;
mod found;
mod kept;
mod limits;
mod names;
mod order;
mod parts;
mod restore;

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_checkpoint::{CheckpointRoot, CheckpointView, Kind};
use trackway_core::{AttemptId, Clock as _, ManualClock, RunId, SequentialIds, Timestamp};

use crate::{
    Adopter, AdopterSpec, Clearing, Company, Facts, History, Look, Past, Patterns, Saves, WriterEvidence,
    Writers,
};

const SECOND_NS: u64 = 1_000_000_000;

/// A working directory, a root for checkpoints, and a time that only the test moves.
struct World {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    ids: Arc<SequentialIds>,
    run_id: RunId,
    at_ns: u64,
    last_step: Option<u64>,
    /// The step that is recorded right after this file was written.
    next_step: Option<(PathBuf, u64)>,
    is_open: bool,
    ended: bool,
    /// How often a copy may continue before it is interrupted.
    interrupted_after: u32,
    saves: Saves,
    /// What is seen of the writers of every file.
    seen: WriterEvidence,
    /// What the attempts so far wrote.
    past: Past,
}

/// The kernel names the attempt as the writer.
fn own() -> WriterEvidence {
    let kernel = Writers { own: true, ..Writers::default() };
    WriterEvidence { kernel, open: Writers::default(), company: Company::Alone, less: None }
}

impl World {
    fn new() -> Self {
        let ids = Arc::new(SequentialIds::default());
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        let (folder, run_id) = (tempfile::tempdir().unwrap(), RunId::new(ids.as_ref()));
        fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            folder,
            clock,
            ids,
            run_id,
            at_ns: 0,
            last_step: None,
            next_step: None,
            is_open: false,
            ended: false,
            interrupted_after: u32::MAX,
            saves: Saves::default(),
            seen: own(),
            past: Past::default(),
        }
    }

    /// What the run is shown to have written.
    fn history(&mut self, adopter: &mut Adopter) -> History {
        if let Some(own) = adopter.own_if_changed() {
            self.past.record.own = own;
        }
        History::new(vec![Arc::new(self.past.clone())], [self.root().as_path()])
    }

    fn work(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn patterns(&self, patterns: &[&str]) -> Patterns {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Patterns::new(&self.work(""), &patterns, &self.work("home")).unwrap()
    }

    fn adopter(&self, epoch: u64, patterns: &[&str]) -> Adopter {
        self.adopter_of(epoch, self.patterns(patterns))
    }

    fn adopter_of(&self, epoch: u64, patterns: Patterns) -> Adopter {
        self.adopter_for(epoch, AttemptId::new(self.ids.as_ref()), patterns)
    }

    fn adopter_for(&self, epoch: u64, attempt_id: AttemptId, patterns: Patterns) -> Adopter {
        let there = (&patterns.places()[..], self.clock.now().as_nanos());
        Adopter::new(
            self.spec(epoch, attempt_id, patterns.clone()),
            there,
            self.clock.clone(),
            self.ids.clone(),
        )
    }

    fn spec(&self, epoch: u64, attempt_id: AttemptId, patterns: Patterns) -> AdopterSpec {
        let (checkpoint_root, run_id, quiet_ns) = (self.root(), self.run_id, 2 * SECOND_NS);
        AdopterSpec { patterns, checkpoint_root, run_id, attempt_id, epoch, parent: None, quiet_ns }
    }

    /// The root as the script opens it itself.
    fn own_root(&self, epoch: u64) -> CheckpointRoot {
        let attempt_id = AttemptId::new(self.ids.as_ref());
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        CheckpointRoot::open(&self.root(), epoch, self.run_id, attempt_id, clock, ids).unwrap()
    }

    /// Looks once each second, until something happens or nothing will.
    fn follow(&mut self, adopter: &mut Adopter, seconds: u64) -> Look {
        for _ in 0..seconds {
            let look = self.look(adopter);
            if !look.adopted.is_empty() || !look.not_adopted.is_empty() || look.is_fenced {
                return look;
            }
        }
        Look::default()
    }

    fn look(&mut self, adopter: &mut Adopter) -> Look {
        self.at_ns += SECOND_NS;
        let (is_open, last_step) = (self.is_open, self.last_step);
        let interrupted_after = Cell::new(self.interrupted_after);
        adopter.look(&Facts {
            at_ns: self.at_ns,
            saves: &self.saves,
            step_when_written: &|at_ns| match &self.next_step {
                Some((file, step)) if at_ns > modified_ns(file) => Some(*step),
                _ => last_step,
            },
            step_slack: 0,
            writers: &|_, _| self.seen.clone(),
            writers_ended: self.ended,
            is_open_for_writing: &|_| Some(is_open),
            is_interrupted: &|| {
                interrupted_after.get().checked_sub(1).map(|left| interrupted_after.set(left)).is_none()
            },
        })
    }

    fn view(&self) -> CheckpointView {
        CheckpointView::open(&self.root()).unwrap()
    }
}

/// When a file was last written to, in nanoseconds since 1970.
fn modified_ns(file: &Path) -> i64 {
    let found = fs::metadata(file).unwrap();
    found.mtime() * 1_000_000_000 + found.mtime_nsec()
}

/// A file of safetensors with one tensor of so many bytes.
fn tensors(bytes: usize, fill: u8) -> Vec<u8> {
    let header = format!("{{\"w\":{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":[0,{bytes}]}}}}");
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(vec![fill; bytes]);
    file
}

/// A pickle of an empty state.
const STATE: &[u8] = b"\x80\x02}.";

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}
