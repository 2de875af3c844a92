use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::{AttemptId, Step};
use trackway_store::testing::{FaultBackend, FaultDisk};
use trackway_store::{Backend, LocalBackend, Log};

use crate::history::entry::ClaimBody;
use crate::history::{CheckpointState, History};
use crate::reading::view::CheckpointView;
use crate::retention::Retention;
use crate::settings::Settings;
use crate::tests::{World, save};
use crate::{CheckpointError, CheckpointInfo, CheckpointRoot, Commit, Housekeeper};

/// How much newer the checkpoint is that is saved when all is over.
const STEPS_LATER: Step = 1_000;

/// What was acknowledged to a caller, and what a test broke on purpose.
#[derive(Debug, Clone, Default)]
pub(super) struct Promises {
    /// Numbers, hashes and steps of commits whose save returned.
    pub saved: Vec<(u64, String, Step)>,
    /// Commits whose pin was acknowledged and not taken away since.
    pub pinned: BTreeSet<u64>,
    /// Commits for which a process began to write a mark of suspicion.
    pub suspected: BTreeSet<u64>,
    /// Commits that do not verify any more because a test broke them.
    pub damaged: BTreeSet<u64>,
    /// A process began to record what an epoch continues from.
    pub adoption: bool,
    /// Some attempt may have continued from an older one because the newest could not be read just then.
    pub forked: bool,
}

impl Promises {
    fn is_good(&self, number: u64) -> bool {
        !self.damaged.contains(&number) && !self.suspected.contains(&number)
    }

    /// The newest commit that a resume must not fall behind.
    fn newest(&self) -> Option<u64> {
        self.saved.iter().map(|(number, ..)| *number).filter(|number| self.is_good(*number)).max()
    }
}

/// A root, the disk below it, and what was promised about it.
pub(super) struct Scene {
    pub world: World,
    /// The first process on that machine.
    pub disk: FaultDisk,
    /// Where the log is; `None`: on the same disk.
    log: Option<FaultBackend>,
    attempts: Mutex<BTreeMap<u64, AttemptId>>,
    promises: Mutex<Promises>,
}

impl Scene {
    /// Everything on one disk.
    pub fn local() -> Arc<Self> {
        Self::new(None)
    }

    /// The files on a disk, the log elsewhere.
    pub fn with_log(log: FaultBackend) -> Arc<Self> {
        let scene = Self::new(Some(log));
        std::fs::create_dir_all(scene.world.path()).unwrap();
        scene
    }

    fn new(log: Option<FaultBackend>) -> Arc<Self> {
        Arc::new(Self {
            world: World::new(),
            disk: FaultDisk::sound(),
            log,
            attempts: Mutex::default(),
            promises: Mutex::default(),
        })
    }

    pub fn promises(&self) -> MutexGuard<'_, Promises> {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn attempt(&self, epoch: u64) -> AttemptId {
        let mut attempts = self.attempts.lock().unwrap();
        *attempts.entry(epoch).or_insert_with(|| self.world.attempt())
    }

    /// The log as a process on a disk that works reaches it.
    pub fn world_log(&self) -> Arc<dyn Backend> {
        self.log_on(&FaultDisk::sound())
    }

    pub fn log_on(&self, disk: &FaultDisk) -> Arc<dyn Backend> {
        match &self.log {
            Some(log) => Arc::new(log.clone()),
            None => self.local_log(disk),
        }
    }

    fn local_log(&self, disk: &FaultDisk) -> Arc<dyn Backend> {
        Arc::new(LocalBackend::on_disk(&self.world.path(), Arc::new(disk.clone()), self.world.ids.clone()))
    }

    /// What a process on `disk` reads at a log.
    pub fn view_at(
        &self,
        disk: &FaultDisk,
        log: Arc<dyn Backend>,
    ) -> Result<CheckpointView, CheckpointError> {
        let log = Log::<History>::open(log, self.world.clock.clone(), self.world.ids.clone())?;
        Ok(CheckpointView::over(&self.world.path(), Arc::new(disk.clone()), log))
    }

    /// An attempt that claims its epoch, or opens its root again.
    pub fn open(&self, disk: &FaultDisk, epoch: u64) -> Result<CheckpointRoot, CheckpointError> {
        self.open_at(disk, self.log_on(disk), epoch, None)
    }

    pub fn open_at(
        &self,
        disk: &FaultDisk,
        log: Arc<dyn Backend>,
        epoch: u64,
        keep: Option<Retention>,
    ) -> Result<CheckpointRoot, CheckpointError> {
        let view = self.view_at(disk, log)?;
        let claim = ClaimBody { epoch, run_id: self.world.run_id(), attempt_id: self.attempt(epoch) };
        let settings = Settings { keep, world_size: 1, ..Settings::default() };
        CheckpointRoot::open_over(view, claim, settings, self.world.clock.clone(), self.world.ids.clone())
    }

    /// An attempt on a machine that works, and where it continues from.
    pub fn resumed(&self, disk: &FaultDisk, epoch: u64, keep: Option<Retention>) -> CheckpointRoot {
        let mut root = self.open_at(disk, self.log_on(disk), epoch, keep).unwrap();
        root.resume_target().unwrap();
        root
    }

    pub fn house(&self, disk: &FaultDisk) -> Result<Housekeeper, CheckpointError> {
        Housekeeper::over(self.view_at(disk, self.log_on(disk))?, self.world.clock.clone())
    }

    /// Saves, and remembers what was promised.
    pub fn save(&self, root: &mut CheckpointRoot, step: Step) -> Result<Commit, CheckpointError> {
        save(root, step).inspect(|commit| self.promise(commit))
    }

    pub fn promise(&self, commit: &Commit) {
        self.promises().saved.push((commit.number, commit.manifest_sha256.clone(), commit.step));
    }

    /// What a reader sees at the end. The log is read as a whole.
    pub fn reader(&self) -> CheckpointView {
        let disk = FaultDisk::sound();
        let log = self.log_on(&disk);
        let log = Log::open_whole(log, self.world.clock.clone(), self.world.ids.clone()).unwrap();
        CheckpointView::over(&self.world.path(), Arc::new(disk), log)
    }

    /// Breaks a file of a commit.
    pub fn damage(&self, number: u64) {
        let folder = self.reader().history().commit(number).unwrap().folder().to_owned();
        std::fs::write(self.world.path().join(folder).join("weights.bin"), b"bad").unwrap();
        self.promises().damaged.insert(number);
    }

    /// What must hold whatever happened: every commit that is not retired verifies, none is lost that was
    /// acknowledged, nothing that is pinned was deleted, nothing sound is called suspect, and two that verify stay
    /// where there were two.
    pub fn check(&self, situation: &str) -> CheckpointView {
        let view = self.reader();
        let promises = self.promises().clone();
        assert_eq!(view.damaged_entries(), vec![], "{situation}");
        for behind in 1..4 {
            let number = view.log.position().tail + behind;
            assert!(view.log.read(number).unwrap().is_none(), "{situation}: entry {number} follows a gap");
        }
        let list = view.list();
        let commits: BTreeMap<u64, &CheckpointInfo> = list
            .iter()
            .filter(|info| info.manifest_sha256.is_some())
            .map(|info| (info.number, info))
            .collect();
        let mut whole_on_branch = 0;
        for (number, info) in &commits {
            match info.state {
                CheckpointState::Committed | CheckpointState::Superseded
                    if !promises.damaged.contains(number) =>
                {
                    let verified = view.verify(*number);
                    verified.unwrap_or_else(|error| panic!("{situation}: commit {number}: {error}"));
                    whole_on_branch += usize::from(info.on_branch);
                }
                CheckpointState::Suspect => assert!(
                    !promises.is_good(*number),
                    "{situation}: commit {number} is called suspect: {:?}",
                    info.why
                ),
                _ => {}
            }
        }
        for (number, sha256, step) in &promises.saved {
            let found = commits.get(number).and_then(|info| info.manifest_sha256.as_ref());
            assert_eq!(found, Some(sha256), "{situation}: commit {number} of step {step} is lost");
        }
        for number in &promises.pinned {
            assert_ne!(
                commits[number].state,
                CheckpointState::Retired,
                "{situation}: commit {number} was pinned"
            );
        }
        // Marking a commit suspect after others had been deleted leaves fewer.
        let whole_on_branch = whole_on_branch + promises.suspected.len();
        let good = promises.saved.iter().filter(|(number, ..)| promises.is_good(*number)).count();
        assert!(
            promises.adoption || whole_on_branch >= good.min(2),
            "{situation}: {whole_on_branch} of {good} verify"
        );
        view
    }

    /// Checks that work can continue: a new attempt resumes from what was promised, saves, and all files that are no
    /// longer needed can be deleted.
    pub fn go_on(&self, situation: &str) {
        let disk = FaultDisk::sound();
        let epoch = self.check(situation).epoch().unwrap_or(0) + 1;
        let mut root = self.open(&disk, epoch).unwrap();
        let target = match root.resume_target() {
            Err(CheckpointError::HalfAdopted { .. }) if self.promises().adoption => {
                super::deeds::adopt_now(self, &disk, epoch).unwrap();
                root.resume_target()
            }
            target => target,
        };
        if let Err(CheckpointError::NothingVerifies { .. }) = target {
            assert_eq!(self.expected_target(), None, "{situation}");
            assert!(!self.promises().suspected.is_empty(), "{situation}: all that was good is gone");
            return;
        }
        let target = target.unwrap_or_else(|error| panic!("{situation}: {error}"));
        let promises = self.promises().clone();
        let number = target.as_ref().map(|target| target.info.number);
        if promises.adoption {
            assert!(number.is_some() || promises.saved.is_empty(), "{situation}: a fresh start in silence");
        } else {
            assert_eq!(number, self.expected_target(), "{situation}");
            assert!(number >= promises.newest() || promises.forked, "{situation}: resumed from {number:?}");
        }
        let step = target.as_ref().map_or(0, |target| target.step);
        let commit = self.save(&mut root, step + STEPS_LATER).unwrap();
        assert_eq!(commit.parent, number, "{situation}");
        assert_eq!(self.reader().resume_target().unwrap().unwrap().info.number, commit.number, "{situation}");
        self.house(&disk).unwrap().collect(&Retention::default(), 0.0, false).unwrap();
        let view = self.check(situation);
        if !promises.adoption && promises.damaged.is_empty() {
            self.check_nothing_is_left_over(&view, situation);
        }
    }

    /// What a resume must lead to, by rules that are stated here once more: the newest commit of the newest epoch that
    /// committed, or its nearest ancestor that is sound.
    fn expected_target(&self) -> Option<u64> {
        let promises = self.promises().clone();
        let list = self.reader().list();
        let commits = || list.iter().filter(|info| info.manifest_sha256.is_some());
        let mut next = commits().max_by_key(|info| (info.epoch, info.number));
        while let Some(info) = next {
            let gone = !matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded);
            if !gone && !promises.damaged.contains(&info.number) {
                return Some(info.number);
            }
            next = info.parent.and_then(|parent| commits().find(|info| info.number == parent));
        }
        None
    }

    /// Checks that there are no files that the log does not know.
    fn check_nothing_is_left_over(&self, view: &CheckpointView, situation: &str) {
        let list = view.list();
        let gone = |info: &&CheckpointInfo| !matches!(info.state, CheckpointState::Retired);
        let live: BTreeSet<_> =
            list.iter().filter(gone).map(|info| self.world.path().join(&info.folder)).collect();
        let found: BTreeSet<_> = folders(&self.world.path())
            .into_iter()
            .filter(|folder| folder.file_name().is_some_and(|name| name != "log"))
            .flat_map(|step_folder| folders(&step_folder))
            .collect();
        // Called swept because of a clock alone, before a writer that is fenced and alive had made its folder.
        let early: BTreeSet<_> = view
            .history()
            .begun()
            .filter(|(_, begun)| begun.swept && begun.abandoned.is_none())
            .map(|(_, begun)| self.world.path().join(&begun.body.object_prefix))
            .collect();
        let found: BTreeSet<_> = found.difference(&early).cloned().collect();
        // Where too few verify, nothing is deleted.
        if list.iter().filter(|info| info.on_branch).count() >= 2 {
            assert_eq!(found, live, "{situation}");
        }
    }
}

fn folders(path: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}
