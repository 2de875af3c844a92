//! Faults of the remote at every call.

use trackway_store::testing::BackendFault;

use super::*;

/// What a supervisor does from one launch to the next, with everything in it that calls the remote.
fn scenario(world: &World, backend: &Arc<dyn Backend>, saved: &mut Vec<Step>) -> Result<(), CheckpointError> {
    let policy = keep_last(2);
    let attempt = world.attempt();
    let fetched = world.replica(backend)?.fetch_target(world.run_id(), attempt, 1, None)?;
    let mut root = world.train(attempt, fetched.epoch);
    let from = fetched.target.map_or(0, |target| target.step);
    for step in [1, 2, 3] {
        save_shared(&mut root, from + step);
        saved.push(from + step);
        world.settle(backend, Some(&policy))?;
    }
    let attempt = world.attempt();
    world.replica(backend)?.fetch_target(world.run_id(), attempt, 1, None)?;
    Ok(())
}

/// Proves that one call to the remote that fails, whose answer is lost, that happens late or conflicts, and a kill or a
/// partition from there on, at any call of claiming, handing over, uploading, collecting and fetching, loses no commit:
/// what is uploaded according to the remote verifies, nothing that was saved is missing on this disk, and the next
/// supervisor completes everything.
#[test]
fn a_fault_at_any_call_loses_nothing() {
    let faults = [
        BackendFault::ErrorBefore,
        BackendFault::ErrorAfter,
        BackendFault::Late(3),
        BackendFault::Conflict,
        BackendFault::Refused,
    ];
    // One that lasts is what a kill or a partition looks like.
    let lasting = (BackendFault::ErrorBefore, true);
    let cases = faults.map(|fault| (fault, false)).into_iter().chain([lasting]);
    // They wait for the disk most of the time.
    std::thread::scope(|scope| {
        cases.for_each(|(fault, lasting)| drop(scope.spawn(move || fault_at_each_call(fault, lasting))))
    });
}

fn fault_at_each_call(fault: BackendFault, lasting: bool) {
    let mut call = 0;
    loop {
        let (world, memory) = (World::new(), memory());
        let mut saved = Vec::new();
        scenario(&world, &memory, &mut saved).unwrap();
        let calls = call..if lasting { u64::MAX } else { call + 1 };
        let faulty = FaultBackend::storm(Arc::clone(&memory), calls, fault);
        let outcome = scenario(&world, &(Arc::new(faulty.clone()) as Arc<dyn Backend>), &mut saved);
        if faulty.calls() <= call {
            outcome.unwrap();
            break;
        }
        let situation = format!("{fault:?} at call {call}, lasting: {lasting}");
        check_remote(&world, &memory, &situation);
        check_completion(&world, &memory, &saved, &situation);
        call += 1;
    }
    println!("{fault:?}, lasting: {lasting}: {call} calls");
    assert!(call > 100, "only {call} calls: the scenario does not do what it should");
}

fn check_completion(world: &World, remote: &Arc<dyn Backend>, saved: &[Step], situation: &str) {
    let newest = *saved.last().unwrap();
    let (attempt, fetched) =
        world.fetch_target(remote).unwrap_or_else(|error| panic!("{situation}: {error}"));
    assert_eq!(fetched.fenced, [], "{situation}");
    assert_eq!(fetched.fallbacks, [], "{situation}");
    let target = fetched.target.unwrap_or_else(|| panic!("{situation}: nothing to resume from"));
    assert_eq!(target.step, newest, "{situation}");
    save_shared(&mut world.train(attempt, fetched.epoch), newest + 1);
    world.settle(remote, Some(&keep_last(2))).unwrap();
    assert_eq!(check_remote(world, remote, situation), [newest, newest + 1], "{situation}");
    let (_, fetched) = world.other_machine().fetch_target(remote).unwrap();
    assert_eq!(fetched.target.unwrap().step, newest + 1, "{situation}");
}
