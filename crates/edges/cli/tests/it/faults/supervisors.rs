//! Two supervisors of one run, where the lock file does not exclude one: as on two hosts of one ledger.

use nix::sys::signal::Signal;

use crate::harness::{Home, UNTIL_GO, answer, eventually, files_below, signal};

/// A run that waits for the test, and its supervisor; the lock file is gone, as if another host did not see the lock.
fn unlocked_run(home: &Home) -> std::process::Child {
    let script = format!("{UNTIL_GO}; echo '{{\"step\": 1, \"loss\": 2}}'");
    let supervisor = home.spawn(&["run", "--name", "shared", "--", "sh", "-c", &script]);
    eventually("a live attempt", || {
        let answer = home.trackway(&["sql", "--csv", "select state from training_attempts"]);
        answer.stdout.contains("running").then_some(())
    });
    let lock = files_below(&home.state()).into_iter().find(|path| path.ends_with("supervisor.lock"));
    std::fs::remove_file(lock.expect("a lock file")).unwrap();
    supervisor
}

/// Pauses a process that does not write to the ledger at that time: one that is paused within a transaction keeps all others
/// from writing.
fn pause_outside_a_write(home: &Home, process: &std::process::Child) {
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    ledger.busy_timeout(std::time::Duration::ZERO).unwrap();
    eventually("a time without a write", || {
        signal(process, Signal::SIGSTOP);
        let writes = ledger.execute_batch("begin immediate; rollback").is_err();
        if writes {
            signal(process, Signal::SIGCONT);
        }
        (!writes).then_some(())
    });
}

/// Proves that a run with a supervisor gets no second one while the lease is valid, even if the lock file permits it,
/// and that other commands leave its attempt to it.
#[test]
fn a_lease_keeps_a_second_supervisor_away() {
    let home = Home::new();
    let supervisor = unlocked_run(&home);
    let second = home.trackway(&["resume", "shared"]);
    assert_eq!(second.code, 2, "{}", second.stderr);
    let process = format!("process {}", supervisor.id());
    assert!(second.stderr.contains("already has a supervisor"), "{}", second.stderr);
    assert!(second.stderr.contains(&process), "{}", second.stderr);
    home.go();
    let first = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(first.code, 0, "{}", first.stderr);
    let rows = home.sql("select epoch, expires_at <= now() as given_back from supervisor_leases");
    assert_eq!((&rows[0]["epoch"], &rows[0]["given_back"]), (&1.into(), &true.into()), "{rows:?}");
}

/// Proves that a supervisor that was paused for longer than its lease lets another one have the run: when it wakes it
/// writes nothing more and reports the new one; the attempt is sealed once.
#[test]
fn a_supervisor_that_lost_its_lease_leaves_the_run_alone() {
    let home = Home::with(&[("TRACKWAY_LEASE_SECONDS".into(), "1".into())]);
    let first = unlocked_run(&home);
    pause_outside_a_write(&home, &first);
    let epoch = |condition: &str| {
        let rows = home.sql(&format!("select epoch from supervisor_leases where {condition}"));
        rows.first().and_then(|row| row["epoch"].as_u64())
    };
    eventually("the end of the lease", || epoch("expires_at < now()"));
    let mut second = home.spawn(&["resume", "shared"]);
    eventually("the second supervisor", || {
        let ended = second.try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?}: {}", crate::harness::rest(second.stderr.take()));
        epoch("epoch = 2")
    });
    signal(&first, Signal::SIGCONT);
    let first = answer(first.wait_with_output().unwrap());
    assert_eq!(first.code, 7, "{}", first.stderr);
    let now_supervised = format!("process {}", second.id());
    assert!(first.stderr.contains("is now supervised by"), "{}", first.stderr);
    assert!(first.stderr.contains(&now_supervised), "{}", first.stderr);
    home.go();
    let second = answer(second.wait_with_output().unwrap());
    assert_eq!(second.code, 0, "{}", second.stderr);
    let rows =
        home.sql("select r.state, a.sealed_at from runs r join training_attempts a on a.run_id = r.run_id");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["state"], "completed");
    assert!(rows[0]["sealed_at"].is_string(), "{rows:?}");
}

/// Proves that a command which holds the lock briefly, to see whether the run has ended, keeps no `resume` away.
#[test]
fn a_resume_waits_for_a_command_that_only_looks() {
    let home = Home::new();
    let script = "[ -e again ] || { touch again; exit 3; }; echo '{\"step\": 1, \"loss\": 2}'";
    let first = home.trackway(&["run", "--name", "looked-at", "--", "sh", "-c", script]);
    assert_eq!(first.code, 4, "{}", first.stderr);
    let path = files_below(&home.state()).into_iter().find(|path| path.ends_with("supervisor.lock"));
    let file = std::fs::File::open(path.expect("a lock file")).unwrap();
    let look = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusiveNonblock).unwrap();
    let second = home.spawn(&["resume", "looked-at"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(look);
    let second = answer(second.wait_with_output().unwrap());
    assert_eq!(second.code, 0, "{}", second.stderr);
}

/// Proves that a `resume` from a home that has no plan of the run is refused before it takes the lease, even one that has expired: the
/// supervisor that was paused continues the run to its end.
#[test]
fn a_resume_that_cannot_continue_takes_no_run_away() {
    let home = Home::with(&[("TRACKWAY_LEASE_SECONDS".into(), "1".into())]);
    let first = unlocked_run(&home);
    pause_outside_a_write(&home, &first);
    let leases =
        |condition: &str| home.sql(&format!("select epoch from supervisor_leases where {condition}"));
    eventually("the end of the lease", || (!leases("expires_at < now()").is_empty()).then_some(()));
    let ledger = home.state().join("ledger.db");
    let other = Home::with(&[("TRACKWAY_LEASE_SECONDS".into(), "1".into())]);
    let refused = other.trackway(&["--ledger", ledger.to_str().unwrap(), "resume", "shared"]);
    assert!(refused.code != 0 && refused.stderr.contains("plan.json"), "{}", refused.stderr);
    assert!(refused.stderr.contains("resume it with the home that it was started in"), "{}", refused.stderr);
    assert_eq!(leases("epoch = 1").len(), 1, "the lease is where it was");
    signal(&first, Signal::SIGCONT);
    home.go();
    let first = answer(first.wait_with_output().unwrap());
    assert_eq!(first.code, 0, "{}", first.stderr);
}
