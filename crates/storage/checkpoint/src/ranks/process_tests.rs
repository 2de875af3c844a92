//! Ranks as real processes: this test binary, started again.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use trackway_core::{AttemptId, Ids, ManualClock, Rng as _, RunId, SplitMix64, Step, Timestamp};

use crate::RankGroup;
use crate::ranks::RankedRoot;
use crate::ranks::tests::{each_rank, resume_step, save, shard, sound};
use crate::tests::World;
use crate::{CheckpointError, CheckpointState};

/// How many groups lose a rank; `TRACKWAY_KILLS` overrides it.
const KILLS: u64 = 50;
const WORLD_SIZE: u32 = 4;
const ROOT: &str = "TRACKWAY_TEST_RANK_ROOT";
const RUN: &str = "TRACKWAY_TEST_RANK_RUN";
const ATTEMPT: &str = "TRACKWAY_TEST_RANK_ATTEMPT";
/// How long ranks wait for each other once all of them have come.
const WAIT: &str = "TRACKWAY_TEST_RANK_WAIT_SECONDS";
const CHILD: &str = "ranks::process_tests::a_rank_in_its_own_process";
/// Groups at a time.
const GROUPS: u64 = 2;
/// A rank that is not killed ends by itself.
const LAST_STEP: Step = 400;

/// Ids that no other process has.
#[derive(Debug)]
struct ProcessIds(AtomicU64);

impl Ids for ProcessIds {
    fn next_ulid(&self) -> u128 {
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        (u128::from(std::process::id()) << 64) | u128::from(count) | (1 << 120)
    }
}

/// Not a test by itself: the rank's process that another test starts. It saves every step until it is killed or asked
/// to stop.
#[test]
fn a_rank_in_its_own_process() {
    let text = |name| std::env::var(name).ok();
    let (Some(root), Some(run), Some(attempt), Some(wait)) =
        (text(ROOT), text(RUN), text(ATTEMPT), text(WAIT))
    else {
        return;
    };
    let train = || -> Result<(), CheckpointError> {
        let group = RankGroup::from_environment()?;
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        let ids = Arc::new(ProcessIds(AtomicU64::new(0)));
        let (run_id, attempt_id) = (run.parse().unwrap(), attempt.parse().unwrap());
        let mut root = RankedRoot::open(root.as_ref(), 1, run_id, attempt_id, group, clock, ids)?;
        let resumed = root.resume_target()?.map_or(0, |checkpoint| checkpoint.step);
        root.group = group.waiting(wait.parse().unwrap());
        (resumed + 1..=LAST_STEP).try_for_each(|step| save(&mut root, step).map(drop))
    };
    train().unwrap();
}

fn start(world: &World, attempt: AttemptId, rank: u32, wait_seconds: f64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--test-threads=1"])
        .env(ROOT, world.path())
        .env(RUN, RunId::to_string(&world.run_id()))
        .env(ATTEMPT, attempt.to_string())
        .env(WAIT, wait_seconds.to_string())
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", WORLD_SIZE.to_string())
        .env("TRACKWAY_CHECKPOINT_KEEP_LAST", "3")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills one rank of a group at a random point of its saves; the others are killed soon after, as torchrun does, or
/// find out by themselves.
fn lose_a_rank(world: &World, rng: &mut SplitMix64) {
    let mut below = |bound: u64| rng.next_u64() % bound;
    let attempt = world.attempt();
    let others_live = below(5) == 0;
    let wait_seconds = if others_live { 0.5 } else { 60.0 };
    let mut ranks: Vec<_> = (0..WORLD_SIZE).map(|rank| start(world, attempt, rank, wait_seconds)).collect();
    let commits = 1 + below(5) as usize;
    let committed = || world.view().list().iter().filter(|info| info.manifest_sha256.is_some()).count();
    while committed() < commits && ranks.iter_mut().all(|rank| rank.try_wait().unwrap().is_none()) {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_micros(below(30_000)));
    let victim = below(u64::from(WORLD_SIZE)) as usize;
    ranks[victim].kill().unwrap();
    if !others_live {
        thread::sleep(Duration::from_micros(below(20_000)));
        ranks.iter_mut().for_each(|rank| rank.kill().unwrap());
    }
    for rank in &mut ranks {
        rank.wait().unwrap();
    }
}

/// No commit without all votes, all of them verify, and three ranks continue from the newest.
fn check(world: &World, situation: &str) {
    let view = world.view();
    let target = view.resume_target().unwrap_or_else(|error| panic!("{situation}: {error}"));
    let target = target.unwrap_or_else(|| panic!("{situation}: nothing was committed"));
    assert_eq!(target.fallbacks, vec![], "{situation}: something does not verify");
    for info in view
        .list()
        .iter()
        .filter(|info| matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded))
    {
        let loaded = view.load(info.number).unwrap_or_else(|error| panic!("{situation}: {error}"));
        for rank in 0..WORLD_SIZE {
            let read = loaded.read(&format!("rank-{rank:04}-model.bin"));
            assert_eq!(
                read.unwrap(),
                shard(rank, info.step),
                "{situation}: step {} of rank {rank}",
                info.step
            );
        }
    }
    let attempt = world.attempt();
    let steps = each_rank(WORLD_SIZE - 1, |rank| {
        let group = RankGroup::new(rank, WORLD_SIZE - 1).unwrap().waiting(60.0);
        let mut root = world.rank(sound(), (2, attempt), group).unwrap();
        let resumed = resume_step(&mut root);
        save(&mut root, resumed + 1).unwrap_or_else(|error| panic!("{situation}: {error}"));
        resumed
    });
    assert!(steps.iter().all(|step| *step == target.step), "{situation}: {steps:?}");
    assert!(
        world.view().list().iter().all(|info| info.state != CheckpointState::Writing),
        "{situation}: a save is half done"
    );
}

/// Proves with real processes that SIGKILL of any rank at any point of a save yields no commit without all votes, and
/// that fewer ranks continue from the newest commit.
#[test]
fn a_killed_rank_leaves_no_half() {
    let kills = std::env::var("TRACKWAY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let worker = || {
            loop {
                let seed = next.fetch_add(1, Ordering::SeqCst);
                if seed >= kills {
                    return;
                }
                let world = World::new();
                lose_a_rank(&world, &mut SplitMix64::new(seed));
                check(&world, &format!("seed {seed}"));
            }
        };
        let workers: Vec<_> = (0..GROUPS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    println!("{kills} kills of a rank");
}
