//! One process of one node: a supervisor, its uploads, a trainer, or the housekeeper at the remote.

use std::sync::Arc;
use std::thread::Scope;

use trackway_core::{AttemptId, Clock, Rng as _, SplitMix64, Step};
use trackway_store::testing::{Fault, FaultBackend, FaultDisk};
use trackway_store::{Backend, Log, Writer};

use super::super::damage::JumpyClock;
use super::link::{Link, weather};
use super::{ATTEMPTS, Launch, Node, Play, Saved, actors_of_attempt, run_as};
use crate::history::History;
use crate::history::entry::{Body, PinBody};
use crate::remote::tests::BackendFiles;
use crate::remote::{Fetched, Replica};
use crate::retention::Retention;
use crate::{CheckpointError, CheckpointRoot, ErrorKind, Kind};

/// How often a process tries what failed.
const MAX_TRIES: u32 = 4;
/// How often a supervisor looks for what it may hand over, and for what it may upload.
const ROUNDS: u64 = 8;
/// Saves of an attempt.
const SAVES: u64 = 4;
/// Operations on the disk until an armed fault strikes, at most.
const MAX_OPERATIONS: u64 = 150;
/// The most turns an actor waits before it continues, and a supervisor before it launches: enough for an attempt of the
/// other node to save, or for none.
const MAX_IDLE_TURNS: u64 = 60;
const MAX_TURNS_BEFORE_LAUNCH: u64 = 1_000;

/// A process, as long as it lives.
pub(super) struct Process {
    play: Arc<Play>,
    node: usize,
    actor: usize,
    rng: SplitMix64,
    disk: FaultDisk,
    clock: Arc<dyn Clock>,
    /// Clones of the link share the results of late writes, so reopened logs see them.
    link: Arc<dyn Backend>,
    replica: Option<Replica>,
}

impl Process {
    /// A process of a node that runs on its machine from now on.
    pub fn start(play: &Arc<Play>, node: usize, actor: usize, seed: u64) -> Self {
        let disk = play.nodes[node].new_process();
        let mut rng = SplitMix64::new(seed);
        let baton = Arc::clone(&play.baton);
        disk.watch(move |_| baton.pass(actor));
        let odds = weather(&mut rng);
        let inner = FaultBackend::mixed(Arc::clone(&play.remote) as _, rng.next_u64(), odds);
        play.links.lock().unwrap().push(inner.clone());
        let link = Arc::new(Link {
            inner,
            remote: Arc::clone(&play.remote),
            disk: disk.clone(),
            baton: Arc::clone(&play.baton),
            actor,
            time: Arc::clone(&play.time),
            partition: play.nodes[node].partition.clone(),
            slowness: [1, 1, 1, 6][(rng.next_u64() % 4) as usize],
        });
        let clock: Arc<dyn Clock> = match rng.next_u64() % 3 {
            0 => JumpyClock::new(rng.next_u64()),
            _ => play.nodes[node].world.clock.clone(),
        };
        Self { play: Arc::clone(play), node, actor, rng, disk, clock, link, replica: None }
    }

    /// One out of so many.
    fn draw(&mut self, out_of: u64) -> u64 {
        self.rng.next_u64() % out_of
    }

    /// Lets the others go first for a while.
    fn idle(&mut self) {
        self.idle_up_to(MAX_IDLE_TURNS);
    }

    fn idle_up_to(&mut self, turns: u64) {
        let turns = self.draw(turns);
        self.play.baton.sleep(self.actor, turns);
    }

    /// Does something until it is done, or it is of no use to try again.
    fn insist<T>(
        &mut self,
        what: &str,
        mut attempt: impl FnMut(&mut Self) -> Result<T, CheckpointError>,
    ) -> Result<T, CheckpointError> {
        for tries in 1.. {
            let result = attempt(self);
            let outcome =
                result.as_ref().map_or_else(|error| format!("{:?}", error.kind()), |_| "done".into());
            self.play.trace(format!("{}.{}: {what}: {outcome}", self.node, self.actor));
            match result {
                Err(error) if matches!(error.kind(), ErrorKind::Storage | ErrorKind::Retry) => {
                    if tries == MAX_TRIES || self.disk.is_dead() {
                        return Err(error);
                    }
                }
                settled => return settled,
            }
        }
        unreachable!("tries are bounded")
    }

    /// Chooses how and when this process or its machine fails, if it does.
    fn arm(&mut self) {
        let at = self.draw(MAX_OPERATIONS) as usize;
        let fault = match self.draw(14) {
            0 | 1 => Fault::Kill,
            2 => Fault::Torn,
            3 => Fault::InputOutput,
            4 => Fault::Full,
            5 => Fault::ShortWrite,
            6 => Fault::PowerReorders { seed: self.draw(u64::MAX) },
            _ => return,
        };
        self.disk.arm(fault, at);
    }

    /// Does something with both logs open, which they may be since long ago or were not before.
    fn with_logs<T>(
        &mut self,
        what: &str,
        mut act: impl FnMut(&mut Replica) -> Result<T, CheckpointError>,
    ) -> Result<T, CheckpointError> {
        if self.draw(8) == 0 {
            self.replica = None;
        }
        self.insist(what, |it| {
            let mut replica = match it.replica.take() {
                Some(replica) => replica,
                None => it.open()?,
            };
            let result = act(&mut replica);
            it.replica = Some(replica);
            result
        })
    }

    fn open(&self) -> Result<Replica, CheckpointError> {
        let files = Arc::new(BackendFiles(Arc::clone(&self.link)));
        let (clock, ids) = (Arc::clone(&self.clock), self.node().world.ids.clone());
        let disk = Arc::new(self.disk.clone());
        Replica::open_on(disk, &self.node().world.path(), Arc::clone(&self.link), files, clock, ids)
    }

    /// A supervisor that launches one attempt after the other; in between its machine may have lost its power.
    pub fn supervise<'scope>(mut self, scope: &'scope Scope<'scope, '_>) {
        for number in 0..ATTEMPTS {
            self.idle_up_to(MAX_TURNS_BEFORE_LAUNCH);
            if self.node().power_went() {
                self.come_up();
            }
            let seed = self.draw(u64::MAX);
            self = Self::start(&self.play, self.node, self.actor, seed);
            self.arm();
            self.launch_one(scope, number);
        }
    }

    fn node(&self) -> &Node {
        &self.play.nodes[self.node]
    }

    /// Boots the machine again, once its processes have noticed that it was down.
    fn come_up(&self) {
        self.play.trace(format!("{}.{}: its power went", self.node, self.actor));
        for number in 0..ATTEMPTS {
            actors_of_attempt(self.node, number).into_iter().for_each(|actor| self.wait_for(actor));
        }
        self.node().come_up();
    }

    /// Lets the others act until that one is done.
    fn wait_for(&self, actor: usize) {
        while self.play.baton.runs(actor) {
            self.play.baton.sleep(self.actor, MAX_IDLE_TURNS);
        }
    }

    /// One attempt: its checkpoint fetched, launched, and what it commits handed over.
    fn launch_one<'scope>(&mut self, scope: &'scope Scope<'scope, '_>, number: usize) {
        let attempt_id = self.node().world.attempt();
        self.node().attempts.lock().unwrap().push(attempt_id);
        let (run_id, policy) = (self.node().world.run_id(), self.play.policy.clone());
        let Ok(fetched) =
            self.with_logs("fetch", |replica| replica.fetch_target(run_id, attempt_id, 1, policy.as_ref()))
        else {
            return;
        };
        let [trainer, uploads] = actors_of_attempt(self.node, number);
        let trainer_disk = self.launch(scope, trainer, attempt_id, &fetched);
        let seed = self.draw(u64::MAX);
        let process = Self::start(&self.play, self.node, uploads, seed);
        let uploads_disk = process.disk.clone();
        run_as(scope, &self.play, uploads, move || process.upload());
        let fenced = self.follow();
        match self.draw(3) {
            // A zombie: it continues whatever happens to the next one.
            0 => drop(self.node().zombies.lock().unwrap().insert(fetched.epoch)),
            1 if !fenced => {
                self.wait_for(trainer);
                let _ = self.with_logs("last hand over", Replica::hand_over);
            }
            _ => trainer_disk.kill(),
        }
        // The supervisor ends, and its uploads with it.
        uploads_disk.kill();
        self.disk.kill();
    }

    /// Launches the trainer in a separate process.
    fn launch<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        actor: usize,
        attempt_id: AttemptId,
        fetched: &Fetched,
    ) -> FaultDisk {
        let target = fetched.target.as_ref();
        let source = target.map(|target| target.source);
        self.play.trace(format!("{}.{}: launched from {source:?}", self.node, self.actor));
        let launch =
            Launch { epoch: fetched.epoch, attempt_id, from: target.map(|target| target.number_there) };
        self.play.launches.lock().unwrap().push(launch);
        let seed = self.draw(u64::MAX);
        let process = Self::start(&self.play, self.node, actor, seed);
        let disk = process.disk.clone();
        let (epoch, step) = (fetched.epoch, target.map_or(0, |target| target.step));
        run_as(scope, &self.play, actor, move || drop(process.train(epoch, attempt_id, step)));
        disk
    }

    /// Hands over what the trainer commits. Whether it is fenced.
    fn follow(&mut self) -> bool {
        for _ in 0..ROUNDS {
            self.idle();
            let result = self.with_logs("hand over", Replica::hand_over);
            match result {
                Err(CheckpointError::Fenced { .. }) => return true,
                Err(_) if self.disk.is_dead() => return false,
                _ => {}
            }
        }
        false
    }

    /// Uploads what was handed over, and deletes at the remote what is no longer needed.
    fn upload(mut self) {
        for _ in 0..ROUNDS {
            self.idle();
            let policy = self.play.policy.clone();
            let _ = self.with_logs("upload", |it| it.upload_next(policy.as_ref(), &|_, _| {}));
            let _ = self.with_logs("collect", |it| it.collect(policy.as_ref(), None, false));
            if self.disk.is_dead() {
                return;
            }
        }
    }

    /// An attempt: continues from what was put there for it, and saves until it is fenced or dead.
    fn train(mut self, epoch: u64, attempt_id: AttemptId, from: Step) -> Result<(), CheckpointError> {
        self.idle();
        self.arm();
        let play = Arc::clone(&self.play);
        let keep = play.policy.clone().map(|policy| Retention { only_uploaded: true, ..policy });
        let mut root = self.insist("open", |it| {
            let world = &play.nodes[it.node].world;
            let claim = crate::history::entry::ClaimBody { epoch, run_id: world.run_id(), attempt_id };
            let settings =
                crate::settings::Settings { keep: keep.clone(), world_size: 1, ..Default::default() };
            let (disk, clock) = (Arc::new(it.disk.clone()), Arc::clone(&it.clock));
            CheckpointRoot::open_on(disk, &world.path(), claim, settings, clock, world.ids.clone())
        })?;
        let target = self.insist("resume", |_| root.resume_target())?;
        let passed = target.as_ref().is_some_and(|target| !target.fallbacks.is_empty());
        let step = target.map_or(0, |target| target.step);
        assert!(step == from || passed, "{}: launched from {from}, resumed from {step}", play.situation);
        for save in 1..=SAVES {
            self.idle();
            let frozen = self.draw(3) > 0;
            self.insist("save", |it| it.save(&mut root, epoch, step + save * 10, frozen))?;
        }
        Ok(())
    }

    fn save(
        &self,
        root: &mut CheckpointRoot,
        epoch: u64,
        step: Step,
        frozen: bool,
    ) -> Result<(), CheckpointError> {
        let commit = root.save(step, &[("loss", 1.0 / step as f64)], |writer| {
            let backbone = if frozen { *b"frozen.." } else { step.to_le_bytes() };
            writer.file("backbone.bin", Kind::Weights, &backbone)?;
            writer.file("head.bin", Kind::Weights, &step.to_le_bytes())
        })?;
        let saved = Saved { number: commit.number, sha256: commit.manifest_sha256, epoch };
        self.node().saved.lock().unwrap().push(saved);
        Ok(())
    }

    /// Keeps house at the remote for a while: collects, pins, takes pins away.
    pub fn keep_house(mut self) {
        for round in 0..ROUNDS {
            self.idle();
            let older_than_seconds = [None, Some(0.0), Some(86_400.0)][self.draw(3) as usize];
            let any = self.draw(u64::MAX);
            let name = format!("pin-{}", round % 3);
            let _ = match self.draw(4) {
                0 => self.insist("pin", |it| it.pin(&name, any)).map(drop),
                1 => self.insist("unpin", |it| it.unpin(&name)).map(drop),
                _ => {
                    let policy = Retention::default();
                    let collect = |it: &mut Replica| it.collect(Some(&policy), older_than_seconds, false);
                    self.with_logs("collect", collect).map(drop)
                }
            };
        }
    }

    fn remote_log(&self) -> Result<Log<History>, CheckpointError> {
        Ok(Log::open(Arc::clone(&self.link), Arc::clone(&self.clock), self.node().world.ids.clone())?)
    }

    fn pin(&self, name: &str, any: u64) -> Result<Option<u64>, CheckpointError> {
        self.remote_log()?.append(Writer::Housekeeper, |history: &History| {
            let live: Vec<u64> =
                history.commits().filter(|(_, it)| !it.retired).map(|(number, _)| number).collect();
            let commit = live.get((any % live.len().max(1) as u64) as usize);
            let pin = |commit: &u64| PinBody {
                name: name.into(),
                commit: *commit,
                why: "it is read".into(),
                until: None,
            };
            Ok::<_, CheckpointError>(commit.map(|commit| Body::Pin(pin(commit))))
        })
    }

    fn unpin(&self, name: &str) -> Result<Option<u64>, CheckpointError> {
        self.remote_log()?.append(Writer::Housekeeper, |history: &History| {
            let pinned = history.pin(name).is_some();
            Ok::<_, CheckpointError>(pinned.then(|| Body::Unpin { name: name.into() }))
        })
    }
}
