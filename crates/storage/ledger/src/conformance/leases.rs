//! Two supervisors of one run, and two writers of one row.

use trackway_core::{LaunchKind, RunId};

use super::Open;
use super::rows::{checkpoint, ended, event, new_attempt, retry, stored_run};
use crate::error::{ErrorKind, LedgerError};
use crate::leases::{Holder, LeaseAnswer};
use crate::ledger::{AttemptProgress, Ledger, OpenOptions, update_run};
use crate::receipts::seal::AttemptSeal;
use crate::records::{RunRow, RunState, Subject, SubjectKind};

/// How long a lease of these tests is valid, in seconds: long enough for the slowest machine.
const LONG_SECONDS: f64 = 600.0;

fn holder(instance: &str, lock_id: &str) -> Holder {
    Holder {
        name: format!("`{instance}`, process 1"),
        instance: instance.into(),
        boot_id: "boot".into(),
        lock_id: lock_id.into(),
    }
}

/// A lease has one holder; it changes hands when it is given back, when it expired, and with the lock file; each grant
/// has a larger epoch.
pub(super) fn a_lease_has_one_holder(open: Open<'_>, ledger: &Ledger) {
    let run_id = stored_run(ledger, "leased").run_id;
    let other = open(&OpenOptions::default()).unwrap();
    let (one, two) = (holder("one", "8:1"), holder("two", "8:2"));
    let granted = |epoch| LeaseAnswer::Granted { epoch };
    assert_eq!(ledger.acquire_lease(run_id, &one, LONG_SECONDS).unwrap(), granted(1));
    match other.acquire_lease(run_id, &two, LONG_SECONDS).unwrap() {
        LeaseAnswer::HeldBy { holder, seconds_left } => {
            assert_eq!(holder, one.name);
            assert!(seconds_left > 0.0 && seconds_left <= LONG_SECONDS, "{seconds_left}");
        }
        answer => panic!("{answer:?}"),
    }
    // Its own request again, because the reply was lost.
    assert_eq!(ledger.acquire_lease(run_id, &one, LONG_SECONDS).unwrap(), granted(2));
    ledger.renew_lease(run_id, LONG_SECONDS).unwrap();
    ledger.release_lease(run_id).unwrap();
    ledger.release_lease(run_id).unwrap();
    assert_eq!(other.acquire_lease(run_id, &two, 0.0).unwrap(), granted(3), "given back");
    assert_eq!(ledger.acquire_lease(run_id, &one, LONG_SECONDS).unwrap(), granted(4), "expired");
    let successor = Holder { instance: "three".into(), ..one };
    assert_eq!(other.acquire_lease(run_id, &successor, LONG_SECONDS).unwrap(), granted(5), "same lock");
    let unknown: RunId = "run_0000000000000000000000ZZZZ".parse().unwrap();
    assert_eq!(other.acquire_lease(unknown, &two, 1.0).unwrap_err().kind(), ErrorKind::Integrity);
}

/// Every subject has its own lease: a trigger with the id of a run too.
pub(super) fn subjects_are_leased_apart(open: Open<'_>, ledger: &Ledger) {
    let run_id = stored_run(ledger, "leased apart").run_id;
    let trigger = Subject::new(SubjectKind::Trigger, run_id.to_string());
    let (one, two) = (holder("one", "8:1"), holder("two", "8:2"));
    let other = open(&OpenOptions::default()).unwrap();
    let granted = |epoch| LeaseAnswer::Granted { epoch };
    assert_eq!(ledger.acquire_lease(run_id, &one, LONG_SECONDS).unwrap(), granted(1));
    assert_eq!(other.acquire_lease(trigger.clone(), &two, LONG_SECONDS).unwrap(), granted(1));
    assert!(matches!(
        ledger.acquire_lease(trigger.clone(), &one, LONG_SECONDS).unwrap(),
        LeaseAnswer::HeldBy { .. }
    ));
    other.release_lease(trigger).unwrap();
    let model = Subject::new(SubjectKind::Model, "no such model");
    assert_eq!(other.acquire_lease(model, &two, 1.0).unwrap_err().kind(), ErrorKind::Integrity);
    let runs = "SELECT count(*) FROM supervisor_leases WHERE run_id = (SELECT run_id FROM runs WHERE name = 'leased apart')";
    assert_eq!(super::numbers(ledger, runs), [1], "the view has the run alone");
}

/// Once its lease was granted to another process, a supervisor changes nothing about the run, whatever it writes; about
/// other runs it may.
pub(super) fn a_superseded_supervisor_changes_nothing(open: Open<'_>, ledger: &Ledger) {
    let run = stored_run(ledger, "superseded");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let (run_id, id) = (run.run_id, attempt.attempt_id);
    assert_eq!(
        ledger.acquire_lease(run_id, &holder("old", "8:1"), 0.0).unwrap(),
        LeaseAnswer::Granted { epoch: 1 }
    );
    let state = |run: &mut RunRow| run.state = RunState::Waiting;
    ledger.change_run(run_id, state).unwrap();
    let next = open(&OpenOptions::default()).unwrap();
    next.acquire_lease(run_id, &holder("new", "9:1"), LONG_SECONDS).unwrap();
    let before = ledger.run(run_id).unwrap();
    let progress = AttemptProgress { last_step: Some(7), ..AttemptProgress::default() };
    let second = new_attempt(&run, 2, LaunchKind::Train);
    let at = super::rows::at(1);
    let refused: [(&str, Result<(), LedgerError>); 10] = [
        ("renew", ledger.renew_lease(run_id, LONG_SECONDS)),
        ("run", ledger.change_run(run_id, |run| run.state = RunState::Stopped).map(|_| ())),
        ("attempt", ledger.insert_attempt(&second)),
        ("row", ledger.update_attempt(&ended(attempt.clone()))),
        ("touch", ledger.touch_attempt(run_id, (id, LaunchKind::Train), &progress).map(|_| ())),
        ("event", ledger.append_event(&event(&run, "superseded-1")).map(|_| ())),
        ("decision", ledger.insert_retry(&retry(&run, id)).map(|_| ())),
        ("next", ledger.set_next_attempt(run_id, id, second.attempt_id)),
        ("checkpoint", ledger.upsert_checkpoints(&[checkpoint(&run, id, 5)])),
        ("seal", ledger.seal_attempt(&AttemptSeal::of(ended(attempt.clone())), at).map(|_| ())),
    ];
    for (what, done) in refused {
        match done {
            Err(LedgerError::Superseded { holder, .. }) => assert_eq!(holder, "`new`, process 1", "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    }
    assert_eq!(ledger.run(run_id).unwrap(), before);
    assert_eq!(ledger.attempts_of_run(run_id).unwrap(), std::slice::from_ref(&attempt));
    assert!(ledger.events_of_run(run_id).unwrap().is_empty());
    assert!(ledger.retries_of_run(run_id).unwrap().is_empty());
    let another = stored_run(ledger, "another run");
    ledger.change_run(another.run_id, state).unwrap();
    next.append_event(&event(&run, "superseded-2")).unwrap();
    next.seal_attempt(&AttemptSeal::of(ended(attempt)), at).unwrap();
    assert!(matches!(ledger.release_lease(run_id), Err(LedgerError::Superseded { .. })));
    assert!(matches!(
        next.acquire_lease(run_id, &holder("third", "9:9"), 1.0).unwrap(),
        LeaseAnswer::HeldBy { .. }
    ));
}

/// Changes of one run by many processes at once are all kept, and a row that was read before another change is not
/// written back.
pub(super) fn no_change_of_a_run_is_lost(open: Open<'_>, ledger: &Ledger) {
    const WRITERS: u32 = 4;
    const CHANGES: u32 = 10;
    let run = stored_run(ledger, "changed");
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let own = open(&OpenOptions::default()).unwrap();
                for _ in 0..CHANGES {
                    own.change_run(run.run_id, |run| run.attempt_count += 1).unwrap();
                }
            });
        }
    });
    let stored = ledger.run(run.run_id).unwrap().unwrap();
    assert_eq!((stored.attempt_count, stored.revision), (WRITERS * CHANGES, u64::from(WRITERS * CHANGES)));
    let stale = RunRow { name: "stale".into(), ..run.clone() };
    let error = update_run(&mut ledger.backend(), &stale).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let decision = retry(&run, attempt.attempt_id);
    let sealed = AttemptSeal { decision: Some(decision.clone()), ..AttemptSeal::of(ended(attempt.clone())) };
    let seal = AttemptSeal { run: Some(stale), ..sealed.clone() };
    let error = ledger.seal_attempt(&seal, super::rows::at(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    assert_eq!(ledger.attempt(attempt.attempt_id).unwrap(), Some(attempt), "nothing is half sealed");
    assert_eq!(ledger.run(run.run_id).unwrap(), Some(stored));
    assert!(ledger.retries_of_run(run.run_id).unwrap().is_empty(), "nothing is decided without its receipt");
    ledger.seal_attempt(&sealed, super::rows::at(1)).unwrap();
    assert_eq!(ledger.retries_of_run(run.run_id).unwrap(), [decision]);
}
