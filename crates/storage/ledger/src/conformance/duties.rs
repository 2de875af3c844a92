//! Duties are done by one process at a time, and notices are sent until they arrive.

use serde_json::json;

use super::rows::{at, stored_run};
use super::{Open, assert_refused};
use crate::claims::duties::DutyAnswer;
use crate::claims::outbox::DeliveryEnd;
use crate::kept::KeptRows;
use crate::ledger::{Ledger, OpenOptions};
use crate::reading::feed::KeptBounds;
use crate::records::{DeliveryState, NoticeRow, OutboxRow, RunRow, Subject, SubjectKind};
use crate::text::KEY_BYTES_MAX;
use crate::value::Record as _;

/// Of several processes that would do a duty at once one does it; it is due again as long after it as was said, and a process that took
/// too long does not end what is another one's.
pub(super) fn a_duty_is_done_by_one(open: Open<'_>, ledger: &Ledger) {
    let engine = &Subject::new(SubjectKind::Engine, "local:/srv/ana");
    let take =
        |ledger: &Ledger, holder: &str, bound: u64| ledger.take_duty("reap", engine, holder, bound).unwrap();
    let taken = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn(move || {
                    take(&open(&OpenOptions::default()).unwrap(), &format!("taker {number}"), 600)
                })
            })
            .collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(taken.iter().filter(|answer| **answer == DutyAnswer::Mine).count(), 1, "{taken:?}");
    assert_eq!(taken.iter().filter(|answer| matches!(answer, DutyAnswer::HeldBy { .. })).count(), 3);
    let other = &Subject::new(SubjectKind::Engine, "local:/srv/ben");
    assert_eq!(ledger.duty_now("reap", other).unwrap(), DutyAnswer::Mine, "another home's");
    let row = ledger.duties().unwrap().into_iter().find(|duty| duty.subject_id == engine.id).unwrap();
    let holder = row.holder.unwrap();
    assert!(!ledger.end_duty("reap", engine, "another one", (0, None)).unwrap());
    assert!(ledger.end_duty("reap", engine, &holder, (0, Some("a disk is full"))).unwrap());
    let row = ledger.duties().unwrap().into_iter().find(|duty| duty.subject_id == engine.id).unwrap();
    assert_eq!((row.holder, row.last_failure.as_deref()), (None, Some("a disk is full")));
    assert_eq!(take(ledger, "slow", 0), DutyAnswer::Mine);
    assert_eq!(take(ledger, "next", 600), DutyAnswer::Mine, "its bound is over");
    assert!(!ledger.end_duty("reap", engine, "slow", (0, None)).unwrap());
    assert!(ledger.end_duty("reap", engine, "next", (600, None)).unwrap());
    assert!(
        matches!(take(ledger, "early", 600), DutyAnswer::NotDue { seconds_left } if seconds_left > 500.0)
    );
    // A path that is longer than a key takes is found again as it was stored.
    let deep = &Subject::new(SubjectKind::Engine, format!("local:/{}", "d".repeat(2 * KEY_BYTES_MAX)));
    assert_eq!(ledger.take_duty("reap", deep, "deep", 600).unwrap(), DutyAnswer::Mine);
    assert!(ledger.end_duty("reap", deep, "deep", (600, None)).unwrap());
    assert!(matches!(ledger.duty_now("reap", deep).unwrap(), DutyAnswer::NotDue { .. }));
}

fn notice_of(run: &RunRow, key: &str) -> NoticeRow {
    NoticeRow {
        notice_id: format!("{}:{key}", run.run_id),
        subject_kind: SubjectKind::Run,
        subject_id: run.run_id.to_string(),
        project: None,
        at: at(1),
        about: "end".into(),
        document_json: json!({ "text": "run ended" }),
    }
}

/// A notice is stored once, tried by one process at a time, tried again after a failure, and not after it arrived.
pub(super) fn a_notice_is_delivered_once(open: Open<'_>, ledger: &Ledger) {
    let run = stored_run(ledger, "noticed");
    let notice = notice_of(&run, "end:1");
    let id = notice.notice_id.as_str();
    assert!(ledger.post_notice(&notice).unwrap());
    assert!(!ledger.post_notice(&NoticeRow { at: at(2), ..notice.clone() }).unwrap(), "the same notice");
    let due = |ledger: &Ledger| -> Vec<NoticeRow> {
        ledger.due_notices(10).unwrap().into_iter().map(|(notice, _)| notice).collect()
    };
    assert_eq!(due(ledger), [NoticeRow { project: run.project.clone(), ..notice.clone() }]);
    let other = open(&OpenOptions::default()).unwrap();
    assert!(ledger.take_notice(id, 600.0).unwrap());
    assert!(!other.take_notice(id, 600.0).unwrap() && due(&other).is_empty(), "another process tries it");
    let later = |seconds: f64| DeliveryEnd::Later { seconds, why: "it answered with status 500".into() };
    ledger.end_notice(id, &later(0.0)).unwrap();
    assert_eq!(due(&other).len(), 1);
    // One that cannot be tried here lets the others go first, and that does not count as a try.
    let next = NoticeRow { notice_id: format!("{}:end:0", run.run_id), ..notice.clone() };
    assert!(ledger.post_notice(&next).unwrap());
    assert!(ledger.pass_over_notice(id).unwrap());
    let waiting: Vec<String> = due(&other).into_iter().map(|notice| notice.notice_id).collect();
    assert_eq!(waiting, [next.notice_id.as_str(), id]);
    assert!(ledger.take_notice(&next.notice_id, 600.0).unwrap());
    assert!(!ledger.pass_over_notice(&next.notice_id).unwrap(), "another process tries it");
    ledger.end_notice(&next.notice_id, &DeliveryEnd::Delivered).unwrap();
    assert!(other.take_notice(id, 0.0).unwrap());
    assert!(other.end_notice(id, &DeliveryEnd::Delivered).unwrap());
    assert!(!ledger.end_notice(id, &later(0.0)).unwrap(), "it stays delivered");
    let delivery = ledger.delivery_of(id).unwrap().unwrap();
    assert_eq!((delivery.state, delivery.tries), (DeliveryState::Delivered, 2));
    assert!(due(ledger).is_empty() && !ledger.take_notice(id, 1.0).unwrap());
    assert_refused(ledger, &format!("UPDATE notices SET about = 'x' WHERE notice_id = '{id}'"));
}

/// A copy that says more than the ledger, one that was put back from a backup, is believed: what arrived is not sent
/// again, and one that was being sent is in doubt. A copy that says less changes nothing.
pub(super) fn a_copy_may_know_more(ledger: &Ledger) {
    let run = stored_run(ledger, "notices of a backup");
    let [first, second] = ["1", "2"].map(|key| notice_of(&run, key));
    let waiting = |notice: &NoticeRow| {
        let found = ledger.waiting_notices("", 1_000).unwrap().into_iter();
        found.filter(|(found, _)| found.notice_id == notice.notice_id).map(|(_, row)| row).next()
    };
    for notice in [&first, &second] {
        assert!(ledger.post_notice(notice).unwrap());
    }
    let new = waiting(&first).unwrap();
    assert!(!new.is_in_doubt());
    let behind = ledger.waiting_notices(&first.notice_id, 1_000).unwrap();
    assert!(behind.iter().any(|(notice, _)| notice.notice_id == second.notice_id));
    let restore = |notice: &NoticeRow, row: &OutboxRow| {
        ledger.restore(&KeptRows::of_notice(notice, row)).unwrap().added
    };
    let tried = waiting(&second).unwrap().while_tried();
    assert!(tried.is_in_doubt() && restore(&second, &tried) && !restore(&second, &tried));
    assert!(waiting(&second).unwrap().is_in_doubt());
    let arrived = OutboxRow { tries: 1, ..OutboxRow::of(&first, DeliveryState::Delivered) };
    assert!(restore(&first, &arrived) && waiting(&first).is_none());
    assert!(!restore(&first, &new) && waiting(&first).is_none());
    let kept = KeptRows::of_notice(&first, &arrived);
    assert_eq!(kept.notice().unwrap(), Some((first, arrived)));
    assert_eq!(KeptRows::default().notice().unwrap(), None);
}

/// A notice goes some time after it ended, or when too many newer ones did, with its delivery; one that waits stays,
/// whatever is tried. From its copy it comes back as it was: one that waited is sent, one that was delivered is not.
pub(super) fn a_notice_that_ended_is_removed(ledger: &Ledger) {
    let run = stored_run(ledger, "removed notices");
    let [first, second, waits] = ["1", "2", "3"].map(|key| notice_of(&run, key));
    for notice in [&first, &second, &waits] {
        assert!(ledger.post_notice(notice).unwrap());
    }
    for notice in [&first, &second] {
        assert!(ledger.take_notice(&notice.notice_id, 0.0).unwrap());
        ledger.end_notice(&notice.notice_id, &DeliveryEnd::Delivered).unwrap();
        // The clock of SQLite counts milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let beyond = |bounds: &KeptBounds| -> Vec<String> {
        let found = ledger.notices_beyond(bounds, 100).unwrap().into_iter();
        found.filter(|notice| notice.subject_id == run.run_id.to_string()).map(|row| row.notice_id).collect()
    };
    assert!(beyond(&KeptBounds::NOTICES).is_empty());
    let ended = [first.notice_id.clone(), second.notice_id.clone()];
    assert_eq!(beyond(&KeptBounds { days: 0.0, ..KeptBounds::NOTICES }), ended);
    assert_eq!(beyond(&KeptBounds { count: 1, ..KeptBounds::NOTICES }), ended[..1]);
    let kept = |notice: &NoticeRow| {
        KeptRows::of_notice(notice, &ledger.delivery_of(&notice.notice_id).unwrap().unwrap())
    };
    let (of_first, of_waiting) = (kept(&first), kept(&waits));
    for (notice, is_removed) in [(&first, true), (&first, false), (&waits, false)] {
        assert_eq!(ledger.remove_notice(&notice.notice_id).unwrap(), is_removed);
    }
    assert_eq!(ledger.delivery_of(&first.notice_id).unwrap(), None);
    let id = &waits.notice_id;
    assert_refused(ledger, &format!("DELETE FROM outbox WHERE notice_id = '{id}'"));
    for (rows, is_new) in [(&of_first, true), (&of_first, false), (&of_waiting, false)] {
        let restored = ledger.restore(rows).unwrap();
        assert_eq!((restored.added, restored.differs), (is_new, Vec::new()));
    }
    assert_eq!(ledger.delivery_of(&first.notice_id).unwrap().unwrap().state, DeliveryState::Delivered);
    // As in a ledger that was lost.
    let lost = NoticeRow { notice_id: format!("{}:4", run.run_id), ..waits };
    let waiting = OutboxRow { notice_id: lost.notice_id.clone(), next_try_at: at(1), ..OutboxRow::blank() };
    assert!(ledger.restore(&KeptRows::of_notice(&lost, &waiting)).unwrap().added);
    let due = ledger.due_notices(100).unwrap();
    assert!(due.iter().any(|(notice, _)| *notice == lost), "{due:?}");
}
