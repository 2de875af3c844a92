use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use trackway_core::Step;
use trackway_store::Disk;
use trackway_store::testing::{Fault, FaultDisk};

use crate::RankGroup;
use crate::ranks::tests::{each_rank, resume_step, save, sound};
use crate::tests::World;
use crate::{CheckpointError, CheckpointState};

const WORLD_SIZE: u32 = 3;
/// How long the living wait for the dead.
const HASTY_SECONDS: f64 = 0.2;
/// Without deaths, no rank waits that long.
const PATIENT_SECONDS: f64 = 60.0;
/// Cases at a time: most of them wait.
const CASE_THREADS: usize = 12;

/// Runs a case for every number below `count`, several at a time.
fn each_case(count: usize, case: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let worker = || {
            loop {
                match next.fetch_add(1, Ordering::SeqCst) {
                    number if number < count => case(number),
                    _ => return,
                }
            }
        };
        let workers: Vec<_> = (0..CASE_THREADS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

/// A root in which three ranks committed steps 10 and 20.
fn started() -> World {
    let world = World::new();
    let attempt = world.attempt();
    each_rank(WORLD_SIZE, |rank| {
        let mut root = world.rank(sound(), (1, attempt), group(rank, WORLD_SIZE, PATIENT_SECONDS)).unwrap();
        [10, 20].into_iter().for_each(|step| drop(save(&mut root, step).unwrap()));
    });
    world
}

fn group(rank: u32, world_size: u32, wait_seconds: f64) -> RankGroup {
    RankGroup::new(rank, world_size).unwrap().waiting(wait_seconds)
}

/// A second attempt, each rank on its disk, up to the first error. Returns the commits that each rank saw acknowledged.
fn attempt_on(
    world: &World,
    wait_seconds: f64,
    disk: impl Fn(u32) -> Arc<dyn Disk> + Sync,
) -> Vec<Vec<Step>> {
    let attempt = world.attempt();
    each_rank(WORLD_SIZE, |rank| {
        let mut committed = Vec::new();
        let mut run = || -> Result<(), CheckpointError> {
            let mut root = world.rank(disk(rank), (2, attempt), group(rank, WORLD_SIZE, wait_seconds))?;
            root.resume_target()?;
            for step in [30, 40] {
                save(&mut root, step)?;
                committed.push(step);
            }
            Ok(())
        };
        let _ = run();
        committed
    })
}

/// Every commit verifies and is of all ranks, nothing acknowledged is lost, and two ranks continue from the newest.
fn check(world: &World, committed: &[Vec<Step>], situation: &str) {
    let acknowledged = committed.iter().flatten().copied().max().unwrap_or(20);
    let view = world.view();
    let target = view.resume_target().unwrap_or_else(|error| panic!("{situation}: {error}")).unwrap();
    assert_eq!(target.fallbacks, vec![], "{situation}: something does not verify");
    assert!(target.step >= acknowledged, "{situation}: step {} was acknowledged", acknowledged);
    for info in view
        .list()
        .iter()
        .filter(|info| matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded))
    {
        let loaded = view.load(info.number).unwrap_or_else(|error| panic!("{situation}: {error}"));
        let owners = loaded.files().iter().filter(|file| file.name.ends_with("model.bin"));
        assert_eq!(owners.count(), WORLD_SIZE as usize, "{situation}: a commit without all votes");
    }
    let attempt = world.attempt();
    let steps = each_rank(WORLD_SIZE - 1, |rank| {
        let mut root =
            world.rank(sound(), (3, attempt), group(rank, WORLD_SIZE - 1, PATIENT_SECONDS)).unwrap();
        let resumed = resume_step(&mut root);
        save(&mut root, 60).unwrap_or_else(|error| panic!("{situation}: {error}"));
        resumed
    });
    assert!(steps.iter().all(|step| *step == target.step), "{situation}: {steps:?}");
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 60, "{situation}");
}

/// Proves that a rank which is killed at any operation on its disk, rank 0 or another, never yields a commit without
/// all votes, loses nothing that was acknowledged to any rank, and leaves a root from which fewer ranks continue.
#[test]
fn a_rank_killed_at_any_operation_leaves_no_half() {
    // Torn is a kill in the middle of an operation; between two of them is the next one not begun.
    for victim in [0, 1] {
        let counted = FaultDisk::sound();
        let disk = |rank| if rank == victim { Arc::new(counted.clone()) } else { sound() };
        let committed = attempt_on(&started(), PATIENT_SECONDS, disk);
        assert!(committed.iter().all(|steps| *steps == [30, 40]), "{committed:?}");
        assert!(counted.operations() > 40, "only {} operations", counted.operations());
        each_case(counted.operations(), |operation| {
            let world = started();
            let faulty = FaultDisk::new(Fault::Torn, operation);
            let disk = |rank| if rank == victim { Arc::new(faulty.clone()) } else { sound() };
            let committed = attempt_on(&world, HASTY_SECONDS, disk);
            faulty.after_crash();
            check(&world, &committed, &format!("rank {victim} killed at operation {operation}"));
        });
    }
}

/// Proves the same for a machine that goes down with all ranks on it, at any operation of any of them, whatever of what
/// was not synced is left.
#[test]
fn a_machine_that_goes_down_with_all_ranks_loses_nothing() {
    let counted = FaultDisk::sound();
    attempt_on(&started(), PATIENT_SECONDS, |_| Arc::new(counted.clone()));
    let operations = counted.operations();
    assert!(operations > 150, "only {operations} operations");
    each_case(operations, |operation| {
        let seed = operation as u64;
        for fault in [Fault::PowerLosesAll, Fault::PowerReorders { seed }] {
            let world = started();
            let disk = FaultDisk::new(fault, operation);
            let committed = attempt_on(&world, HASTY_SECONDS, |_| Arc::new(disk.clone()));
            disk.after_crash();
            check(&world, &committed, &format!("{fault:?} at operation {operation}"));
        }
    });
}

/// Proves that an operation which fails on the disk of one rank, which survives, costs the group at most one save, and
/// does not block the others until the timeout.
#[test]
fn a_failing_operation_costs_one_save() {
    for victim in [0, 1] {
        for fault in [Fault::Full, Fault::InputOutput] {
            let counted = FaultDisk::sound();
            let disk = |rank| if rank == victim { Arc::new(counted.clone()) } else { sound() };
            // Counted without the last save: when rank 0 cannot begin that one, the others are not notified.
            stubborn_attempt_on(&started(), &[30, 40], disk);
            each_case(counted.operations(), |operation| {
                let world = started();
                let faulty = FaultDisk::new(fault, operation);
                let disk = |rank| if rank == victim { Arc::new(faulty.clone()) } else { sound() };
                let committed = stubborn_attempt_on(&world, &[30, 40, 50], disk);
                let situation = format!("{fault:?} of rank {victim} at operation {operation}");
                assert!(committed.iter().all(|steps| steps.len() >= 2), "{situation}: {committed:?}");
                check(&world, &committed, &situation);
            });
        }
    }
}

/// As [`attempt_on`], by ranks that continue after any failure.
fn stubborn_attempt_on(
    world: &World,
    steps: &[Step],
    disk: impl Fn(u32) -> Arc<dyn Disk> + Sync,
) -> Vec<Vec<Step>> {
    let attempt = world.attempt();
    each_rank(WORLD_SIZE, |rank| {
        let open = || world.rank(disk(rank), (2, attempt), group(rank, WORLD_SIZE, PATIENT_SECONDS));
        let mut root = open().or_else(|_| open()).unwrap();
        root.resume_target().or_else(|_| root.resume_target()).unwrap();
        steps.iter().filter(|step| save(&mut root, **step).is_ok()).copied().collect()
    })
}
