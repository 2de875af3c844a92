//! What is written is noted in the order of the commits, and what an attempt costs is charged.

use std::sync::atomic::{AtomicBool, Ordering};

use trackway_core::LaunchKind;

use super::rows::{at, checkpoint, ended, event, new_attempt, stored_run};
use super::{Open, assert_refused, numbers};
use crate::error::ErrorKind;
use crate::kept::KeptRows;
use crate::ledger::{AttemptProgress, Ledger, OpenOptions};
use crate::reading::feed::{FeedPage, KeptBounds};
use crate::receipts::charges::nano_usd;
use crate::receipts::seal::{AttemptSeal, SealOutcome};
use crate::records::{
    AttemptState, ChangeRow, ChargeRow, CostRow, DataSnapshotRow, EventRow, Subject, SubjectEventRow,
    SubjectKind,
};
use crate::value::Record as _;

/// Events of a model are kept as those of runs are, and the view of events has those of runs alone.
pub(super) fn events_are_of_any_subject(ledger: &Ledger) {
    let run = stored_run(ledger, "subjects");
    let of_model = SubjectEventRow {
        subject_kind: SubjectKind::Model,
        subject_id: "income".into(),
        ..SubjectEventRow::from(&event(&run, "subject-1"))
    };
    assert!(ledger.append_subject_event(&of_model).unwrap());
    assert!(!ledger.append_subject_event(&of_model).unwrap());
    let subject = Subject::new(SubjectKind::Model, "income");
    assert_eq!(ledger.events_of_subject(&subject).unwrap(), std::slice::from_ref(&of_model));
    assert_eq!(numbers(ledger, "SELECT count(*) FROM events WHERE event_id = 'subject-1'"), [0]);
    let unknown = SubjectEventRow { subject_id: "unknown".into(), event_id: "subject-2".into(), ..of_model };
    assert_eq!(ledger.append_subject_event(&unknown).unwrap_err().kind(), ErrorKind::Integrity);
    let orphan =
        EventRow { run_id: "run_7zzzzzzzzzzzzzzzzzzzzzzzzz".parse().unwrap(), ..event(&run, "subject-3") };
    assert_eq!(ledger.append_event(&orphan).unwrap_err().kind(), ErrorKind::Integrity, "no such run");
    // A monitor has no table here: its writer knows it.
    let of_monitor = SubjectEventRow { subject_kind: SubjectKind::Monitor, ..unknown };
    assert!(ledger.append_subject_event(&of_monitor).unwrap());
}

/// The charges of an attempt are written when it is sealed, once, sum to the cost of its receipt, and come back with the kept receipt.
pub(super) fn a_receipt_is_charged_once(ledger: &Ledger) {
    let run = stored_run(ledger, "charged");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let (attempt_id, run_id) = (attempt.attempt_id, run.run_id);
    let cost = |item: &str, usd| CostRow {
        attempt_id,
        run_id,
        item: item.into(),
        quantity: 1.5,
        unit: format!("{item}_seconds"),
        usd,
    };
    let seal = AttemptSeal {
        costs: vec![cost("gpu", Some(0.2)), cost("cpu", None)],
        ..AttemptSeal::of(ended(attempt))
    };
    assert!(ledger.charges_of_attempt(attempt_id).unwrap().is_empty());
    assert_eq!(ledger.seal_attempt(&seal, at(101)).unwrap(), SealOutcome::Now);
    assert_eq!(ledger.seal_attempt(&seal, at(102)).unwrap(), SealOutcome::Before);
    let charges = ledger.charges_of_attempt(attempt_id).unwrap();
    let items: Vec<_> = charges.iter().map(|charge| (charge.item.as_str(), charge.amount_nano_usd)).collect();
    assert_eq!(items, [("cpu", None), ("gpu", Some(200_000_000)), ("rest", Some(100_000_000))]);
    assert_eq!(charges[1].quantity, 1_500);
    assert!(charges.iter().all(|charge| charge.project == run.project && charge.at == at(101)));
    let sum: i64 = charges.iter().filter_map(|charge| charge.amount_nano_usd).sum();
    assert_eq!(Some(sum), seal.attempt.cost_usd.map(nano_usd));
    let kept = ledger.kept_later(attempt_id).unwrap().unwrap();
    assert!(ledger.differences(&kept).unwrap().is_empty());
    assert!(serde_json::to_string(&kept).unwrap().contains("\"charges\""));
}

/// A run and charges that an older version put back have no project: their copies bring it, once, and it does not change then.
pub(super) fn projects_come_back_from_copies(ledger: &Ledger) {
    let run = stored_run(ledger, "put back");
    let run_id = run.run_id;
    let forget = format!("UPDATE runs SET project = NULL, criticality = NULL WHERE run_id = '{run_id}'");
    assert_eq!(ledger.backend().execute("raw SQL", &forget, &[]).unwrap(), 1);
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let attempt_id = attempt.attempt_id;
    ledger.seal_attempt(&AttemptSeal::of(ended(attempt)), at(101)).unwrap();
    let charges = ledger.charges_of_attempt(attempt_id).unwrap();
    assert!(!charges.is_empty() && charges.iter().all(|charge| charge.project.is_none()));
    let with_project = |charge: &ChargeRow| ChargeRow { project: run.project.clone(), ..charge.clone() };
    let expected: Vec<ChargeRow> = charges.iter().map(with_project).collect();
    let kept = KeptRows::of_run(&run, &[], &[]).and(&expected);
    assert_eq!(ledger.differences(&kept).unwrap().len(), expected.len());
    for is_new in [true, false] {
        let restored = ledger.restore(&kept).unwrap();
        assert_eq!((restored.added, restored.differs), (is_new, Vec::new()));
    }
    assert!(ledger.differences(&kept).unwrap().is_empty());
    assert_eq!(ledger.charges_of_attempt(attempt_id).unwrap(), expected);
    let stored = ledger.run(run_id).unwrap().unwrap();
    assert_eq!((&stored.project, stored.criticality), (&run.project, run.criticality));
    let of_attempt = format!("WHERE attempt_id = '{attempt_id}'");
    assert_refused(ledger, &format!("UPDATE charges SET project = 'other' {of_attempt}"));
    assert_refused(ledger, &format!("UPDATE charges SET quantity = 7 {of_attempt}"));
    let snapshot = DataSnapshotRow { data_sha256: "put back".into(), ..DataSnapshotRow::blank() };
    assert!(ledger.insert_data_snapshot(&snapshot, &[]).unwrap());
    let known = DataSnapshotRow { project: run.project.clone(), ..snapshot };
    let kept = KeptRows::of_run(&run, &[], std::slice::from_ref(&known));
    for is_new in [true, false] {
        assert_eq!(ledger.restore(&kept).unwrap().added, is_new);
    }
    assert_eq!(ledger.data_snapshot("put back").unwrap(), Some(known));
    assert_refused(ledger, "UPDATE data_snapshots SET project = 'other' WHERE data_sha256 = 'put back'");
}

/// The changes after a number, none of which was removed.
fn after(ledger: &Ledger, number: u64, project: Option<&str>, limit: u32) -> Vec<ChangeRow> {
    match ledger.changes_after(number, project, limit).unwrap() {
        FeedPage::Changes(changes) => changes,
        FeedPage::RemovedUpTo(removed) => panic!("the changes up to {removed} were removed"),
    }
}

/// Each write is noted once, with its subject and its project; a write that changes nothing, and how far an attempt is, are not.
pub(super) fn what_is_written_is_noted(ledger: &Ledger) {
    let before = ledger.newest_change().unwrap();
    let mut run = stored_run(ledger, "noted");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    let said = event(&run, "noted-1");
    let stored = checkpoint(&run, attempt.attempt_id, 3);
    for _ in 0..2 {
        ledger.insert_run(&run, &[]).unwrap();
        ledger.insert_attempt(&attempt).unwrap();
        ledger.append_event(&said).unwrap();
        ledger.upsert_checkpoints(std::slice::from_ref(&stored)).unwrap();
    }
    let touch = |progress: AttemptProgress| {
        let of = (attempt.attempt_id, LaunchKind::Train);
        assert!(ledger.touch_attempt(run.run_id, of, &progress).unwrap());
    };
    touch(AttemptProgress { last_step: Some(7), ..AttemptProgress::default() });
    touch(AttemptProgress { state: Some(AttemptState::Ended), ..AttemptProgress::default() });
    run = ledger.change_run(run.run_id, |run| run.attempt_count = 1).unwrap();
    let changes = after(ledger, before, None, 100);
    let kinds: Vec<&str> = changes.iter().map(|change| change.kind.as_str()).collect();
    let expected =
        ["runs", "training_attempts", "subject_events", "checkpoints", "training_attempts", "runs"];
    assert_eq!(kinds, expected);
    let numbered: Vec<u64> = changes.iter().map(|change| change.number).collect();
    assert_eq!(numbered, (before + 1..=before + 6).collect::<Vec<_>>());
    let subject = run.run_id.to_string();
    let is_of_run = |change: &ChangeRow| {
        (change.subject_kind, &change.subject_id, &change.project)
            == (SubjectKind::Run, &subject, &run.project)
    };
    assert!(changes.iter().all(is_of_run), "{changes:?}");
    assert_eq!(after(ledger, before, Some("fraud"), 2), changes[..2]);
    assert!(after(ledger, before, Some("other"), 100).is_empty());
    assert_eq!(ledger.newest_change().unwrap(), before + 6);
}

/// A reader that follows the feed while others write misses nothing: no number appears below one that it has read.
pub(super) fn numbers_follow_the_commits(open: Open<'_>, ledger: &Ledger) {
    const WRITERS: u64 = 4;
    const EVENTS: u64 = 15;
    let run = &stored_run(ledger, "followed");
    let before = ledger.newest_change().unwrap();
    let done = &AtomicBool::new(false);
    let read: Vec<u64> = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let own = open(&OpenOptions::default()).unwrap();
            let (mut last, mut read) = (before, Vec::new());
            loop {
                let all_written = done.load(Ordering::SeqCst);
                let changes = after(&own, last, None, 100);
                read.extend(changes.iter().map(|change| change.number));
                last = read.last().copied().unwrap_or(last);
                if all_written && changes.is_empty() {
                    return read;
                }
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let own = open(&OpenOptions::default()).unwrap();
                    for number in 0..EVENTS {
                        let id = format!("followed-{writer}-{number}");
                        assert!(own.append_event(&event(run, &id)).unwrap());
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert_eq!(read, (before + 1..=before + WRITERS * EVENTS).collect::<Vec<_>>());
}

/// Old changes are removed from the first one on, and the newest one stays, so that numbers continue from it; a reader that has not read
/// what was removed is answered so, also where no change is left for it, and another one misses nothing.
pub(super) fn old_changes_are_removed(ledger: &Ledger) {
    let run = &stored_run(ledger, "removed");
    for number in 0..6 {
        assert!(ledger.append_event(&event(run, &format!("removed-{number}"))).unwrap());
    }
    let newest = ledger.newest_change().unwrap();
    assert!(ledger.changes_beyond(&KeptBounds::CHANGES).unwrap().is_empty());
    let bounds = KeptBounds { count: 4, ..KeptBounds::CHANGES };
    let beyond = ledger.changes_beyond(&bounds).unwrap();
    assert_eq!(beyond, 1..newest - 3);
    assert_eq!(ledger.remove_changes(beyond.end).unwrap(), newest - 4);
    assert_eq!(ledger.remove_changes(beyond.end).unwrap(), 0);
    let removed = newest - 4;
    for (read, project) in [(0, None), (removed - 1, None), (0, Some("no such project"))] {
        let answer = ledger.changes_after(read, project, 100).unwrap();
        assert_eq!(answer, FeedPage::RemovedUpTo(removed), "{read}");
    }
    let numbered: Vec<u64> = after(ledger, removed, None, 100).iter().map(|change| change.number).collect();
    assert_eq!(numbered, (removed + 1..=newest).collect::<Vec<_>>());
    // Whatever is removed, the newest one is not, and the next one has the number after it.
    let all = KeptBounds { days: 0.0, count: 0 };
    assert_eq!(ledger.changes_beyond(&all).unwrap(), removed + 1..newest);
    assert_eq!(ledger.remove_changes(u64::MAX >> 1).unwrap(), 3);
    assert_eq!(ledger.newest_change().unwrap(), newest);
    assert!(ledger.append_event(&event(run, "removed-6")).unwrap());
    assert_eq!(ledger.newest_change().unwrap(), newest + 1);
    assert_eq!(after(ledger, newest - 1, None, 100).len(), 2);
}
