//! What the database itself enforces, tried with raw SQL.

use trackway_core::{LaunchKind, TerminationReason, Timestamp};

use super::rows::{at, checkpoint, ended, event, new_attempt, retry, stored_run};
use super::{Open, assert_refused, numbers};
use crate::backend::Backend;
use crate::error::ErrorKind;
use crate::ledger::{AttemptProgress, Ledger, OpenOptions};
use crate::receipts::seal::{AttemptSeal, SealOutcome};
use crate::records::{
    ArtifactRow, AttemptRow, CostRow, MetricSummaryRow, ParameterRow, RecordSegmentRow, RunRow,
    SubjectEventRow, TagRow,
};

fn is_postgres(ledger: &Ledger) -> bool {
    matches!(&*ledger.backend(), Backend::Postgres(_))
}

pub(super) fn complete_seal(run: &RunRow, attempt: AttemptRow) -> AttemptSeal {
    let (attempt_id, run_id) = (attempt.attempt_id, run.run_id);
    AttemptSeal {
        metric_summaries: vec![MetricSummaryRow {
            attempt_id,
            run_id,
            name: "loss".into(),
            point_count: 2,
            non_finite_count: 1,
            non_finite_from_step: None,
            non_finite_end_count: None,
            first_step: 1,
            last_step: 2,
            // SQLite has only one zero.
            first_value: Some(-0.0),
            last_value: None,
            min_value: Some(0.1),
            max_value: Some(f64::MIN_POSITIVE),
            mean_value: Some(1e300),
        }],
        parameters: vec![ParameterRow {
            attempt_id,
            run_id,
            name: "lr".into(),
            value: "0.1".into(),
            origin: Some("sdk".into()),
        }],
        tags: vec![TagRow { attempt_id, run_id, name: "team".into(), value: "search".into() }],
        artifacts: vec![ArtifactRow {
            attempt_id,
            run_id,
            name: "plot.png".into(),
            blake3: "b".repeat(64),
            size_bytes: 7,
            step: Some(2),
            at: at(5),
        }],
        segments: vec![RecordSegmentRow {
            attempt_id,
            run_id,
            path: "a.twr".into(),
            origin: Some("sdk".into()),
            size_bytes: 10,
            frame_count: 2,
            lost_frame_count: 0,
            dropped_frame_count: 0,
            torn_bytes: 3,
            closed: false,
            parquet_path: None,
            unreadable: None,
        }],
        costs: vec![CostRow {
            attempt_id,
            run_id,
            item: "gpu".into(),
            quantity: 1.5,
            unit: "gpu_seconds".into(),
            usd: Some(0.001),
        }],
        events: vec![event(run, &format!("sealed-{attempt_id}"))],
        checkpoints: vec![checkpoint(run, attempt_id, 20)],
        run: Some(run.clone()),
        ..AttemptSeal::of(attempt)
    }
}

/// A migration writes every rule again: the same ones are there afterwards, each once. What follows tries them.
pub(super) fn rules_are_renewed(ledger: &Ledger) {
    let triggers = match is_postgres(ledger) {
        true => "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal",
        false => "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'",
    };
    let before = numbers(ledger, triggers);
    ledger.backend().transaction(true, Backend::renew_rules).unwrap();
    assert_eq!(numbers(ledger, triggers), before);
    assert!(before[0] > 50, "{before:?}");
}

/// A receipt and what was sealed with it: no statement changes them, sealing again changes nothing, other content is
/// refused, and the hash proves that they are what was sealed.
pub(super) fn a_sealed_receipt_does_not_change(ledger: &Ledger) {
    let run_id = stored_run(ledger, "sealed").run_id;
    for kind in [LaunchKind::Train, LaunchKind::OneBatch] {
        let run = ledger.run(run_id).unwrap().unwrap();
        let attempt = new_attempt(&run, 1, kind);
        ledger.insert_attempt(&attempt).unwrap();
        let mut undecided = AttemptSeal::of(attempt.clone());
        assert_eq!(
            ledger.seal_attempt(&undecided, at(1)).unwrap_err().kind(),
            ErrorKind::Integrity,
            "no reason"
        );
        undecided.attempt = ended(attempt);
        let seal = complete_seal(&run, undecided.attempt);
        assert_eq!(ledger.seal_attempt(&seal, at(101)).unwrap(), SealOutcome::Now);
        assert_eq!(ledger.seal_attempt(&seal, at(102)).unwrap(), SealOutcome::Before);
        let stored = ledger.attempt(seal.attempt.attempt_id).unwrap().unwrap();
        assert_eq!(
            (stored.sealed_at, stored.receipt_sha256.as_deref()),
            (Some(at(101)), Some(seal.receipt_sha256().as_str()))
        );
        assert_eq!(ledger.verify_receipt(stored.attempt_id).unwrap(), Some(true));
        code_cannot_change(ledger, &seal);
        let table = AttemptRow::table_of(kind).name;
        raw_sql_cannot_change(ledger, table, &stored);
        assert_eq!(ledger.attempt(stored.attempt_id).unwrap(), Some(stored.clone()));
        assert_eq!(ledger.verify_receipt(stored.attempt_id).unwrap(), Some(true));
    }
}

fn code_cannot_change(ledger: &Ledger, seal: &AttemptSeal) {
    let mut other = seal.clone();
    other.attempt.termination_reason = Some(TerminationReason::Completed);
    let error = ledger.seal_attempt(&other, at(103)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    assert_eq!(ledger.update_attempt(&other.attempt).unwrap_err().kind(), ErrorKind::Integrity);
    let progress = AttemptProgress { last_step: Some(1), ..AttemptProgress::default() };
    assert!(
        !ledger
            .touch_attempt(seal.attempt.run_id, (seal.attempt.attempt_id, seal.attempt.kind), &progress)
            .unwrap()
    );
}

fn raw_sql_cannot_change(ledger: &Ledger, table: &str, attempt: &AttemptRow) {
    let id = attempt.attempt_id;
    assert_refused(ledger, &format!("UPDATE {table} SET exit_code = 0 WHERE attempt_id = '{id}'"));
    assert_refused(
        ledger,
        &format!("UPDATE {table} SET sealed_at = NULL, state = 'ended' WHERE attempt_id = '{id}'"),
    );
    assert_refused(ledger, &format!("DELETE FROM {table} WHERE attempt_id = '{id}'"));
    for child in ["metric_summaries", "parameters", "tags", "artifacts", "record_segments", "costs"] {
        assert_eq!(numbers(ledger, &format!("SELECT count(*) FROM {child} WHERE attempt_id = '{id}'")), [1]);
        assert_refused(ledger, &format!("UPDATE {child} SET run_id = run_id WHERE attempt_id = '{id}'"));
        assert_refused(ledger, &format!("DELETE FROM {child} WHERE attempt_id = '{id}'"));
    }
    assert_refused(
        ledger,
        &format!(
            "INSERT INTO parameters (attempt_id, run_id, name, value) VALUES ('{id}', '{}', 'x', 'y')",
            attempt.run_id
        ),
    );
    if is_postgres(ledger) {
        return;
    }
    // SQLite deletes for REPLACE without firing DELETE triggers.
    assert_refused(
        ledger,
        &format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table} WHERE attempt_id = '{id}'"),
    );
    assert_refused(
        ledger,
        &format!("REPLACE INTO parameters SELECT * FROM parameters WHERE attempt_id = '{id}'"),
    );
}

/// Events, decisions and data: added once, never changed, stored twice without harm.
pub(super) fn history_is_only_added_to(ledger: &Ledger) {
    let run = stored_run(ledger, "history");
    let added = event(&run, "history-1");
    assert!(ledger.append_event(&added).unwrap());
    assert!(!ledger.append_event(&added).unwrap());
    let mut other = added.clone();
    other.message = "something else".into();
    assert_eq!(ledger.append_event(&other).unwrap_err().kind(), ErrorKind::Integrity);
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    ledger.insert_retry(&retry(&run, attempt.attempt_id)).unwrap();
    ledger.set_next_attempt(run.run_id, attempt.attempt_id, attempt.attempt_id).unwrap();
    // Once more, because the reply was lost.
    ledger.set_next_attempt(run.run_id, attempt.attempt_id, attempt.attempt_id).unwrap();
    let other = new_attempt(&run, 2, LaunchKind::Train).attempt_id;
    let again = ledger.set_next_attempt(run.run_id, attempt.attempt_id, other);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Integrity, "filled in once");
    for table in [
        "subject_events", "amendments", "run_amendments", "data_snapshots", "data_snapshot_files",
        "run_data", "attempt_data", "retries", "charges", "changes",
    ] {
        assert!(numbers(ledger, &format!("SELECT count(*) FROM {table}"))[0] > 0, "{table} is tried on rows");
        let column = match table {
            "subject_events" | "changes" => "subject_id = subject_id",
            _ if table.starts_with("data_") => "size_bytes = 0",
            _ => "run_id = run_id",
        };
        assert_refused(ledger, &format!("UPDATE {table} SET {column}"));
        if table != "changes" {
            assert_refused(ledger, &format!("DELETE FROM {table}"));
        }
    }
    assert_refused(ledger, "UPDATE runs SET config_sha256 = 'x'");
    assert_refused(ledger, "UPDATE checkpoints SET step = 1");
    assert_refused(ledger, "UPDATE checkpoints SET manifest_sha256 = 'x'");
    assert_refused(ledger, "DELETE FROM checkpoints");
    if is_postgres(ledger) {
        return raw_truncate_is_refused(ledger);
    }
    let columns =
        "subject_kind, subject_id, attempt_id, at, kind, step, fields_json, source, event_id, message";
    let replace = format!(
        "REPLACE INTO subject_events ({columns}) SELECT subject_kind, subject_id, attempt_id, at, kind, step, fields_json, source, event_id, 'x' FROM subject_events"
    );
    assert_refused(ledger, &replace);
}

fn raw_truncate_is_refused(ledger: &Ledger) {
    for table in ["subject_events", "training_attempts", "amendments", "run_amendments"] {
        assert_refused(ledger, &format!("TRUNCATE {table} CASCADE"));
    }
}

/// A kind in the wrong table and an end without a final state are refused; a word that is in no list is taken, so that a new one needs
/// no migration, and a program that does not know it says so.
pub(super) fn words_and_states_fit(ledger: &Ledger) {
    let run = stored_run(ledger, "lists");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let id = attempt.attempt_id;
    for table in ["training_attempts", "runs"] {
        let set = |word: &str| format!("UPDATE {table} SET state = '{word}' WHERE run_id = '{}'", run.run_id);
        assert_eq!(ledger.backend().execute("raw SQL", &set("paused"), &[]).unwrap(), 1);
        let read = match table {
            "runs" => ledger.run(run.run_id).map(drop),
            _ => ledger.attempt(id).map(drop),
        };
        let error = read.unwrap_err();
        assert!(error.is_about_rows() && error.to_string().contains("paused"), "{table}: {error}");
        ledger.backend().execute("raw SQL", &set("running"), &[]).unwrap();
    }
    assert_refused(ledger, &format!("UPDATE training_attempts SET kind = 'prove' WHERE attempt_id = '{id}'"));
    assert_refused(
        ledger,
        &format!("UPDATE training_attempts SET state = 'sealed' WHERE attempt_id = '{id}'"),
    );
    assert_refused(ledger, &format!("UPDATE runs SET state = 'completed' WHERE run_id = '{}'", run.run_id));
    let ended = ledger.change_run(run.run_id, |run| run.ended_at = Some(Timestamp::from_micros(1)));
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Integrity, "an end while it runs");
    let duplicate = new_attempt(&run, 1, LaunchKind::Train);
    assert_eq!(
        ledger.insert_attempt(&duplicate).unwrap_err().kind(),
        ErrorKind::Integrity,
        "a number is given once"
    );
    let mut orphan = new_attempt(&run, 2, LaunchKind::Train);
    orphan.run_id = "run_7zzzzzzzzzzzzzzzzzzzzzzzzz".parse().unwrap();
    assert_eq!(ledger.insert_attempt(&orphan).unwrap_err().kind(), ErrorKind::Integrity, "no such run");
}

/// Four writers with separate connections lose nothing.
pub(super) fn writers_take_turns(open: Open<'_>, ledger: &Ledger) {
    let run = stored_run(ledger, "turns");
    let run = &run;
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                let own = open(&OpenOptions::default()).unwrap();
                for number in 0..25 {
                    assert!(own.append_event(&event(run, &format!("turn-{writer}-{number}"))).unwrap());
                }
            });
        }
    });
    assert_eq!(ledger.events_of_run(run.run_id).unwrap().len(), 100);
}

/// A writer that cannot get the ledger reports it within its time-out, and the holder's work is complete.
pub(super) fn a_held_ledger_times_out(open: Open<'_>, ledger: &Ledger) {
    let run = stored_run(ledger, "held");
    let waiting = open(&OpenOptions { busy_timeout_millis: 50, ..OpenOptions::default() }).unwrap();
    ledger
        .backend()
        .transaction(true, |backend| {
            if matches!(backend, Backend::Postgres(_)) {
                backend.execute("holding", "LOCK TABLE subject_events IN ACCESS EXCLUSIVE MODE", &[])?;
            }
            backend.insert(&SubjectEventRow::from(&event(&run, "held-1")))?;
            let error = waiting.append_event(&event(&run, "held-2")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
            assert!(error.to_string().contains("locked by another process"), "{error}");
            Ok(())
        })
        .unwrap();
    assert!(waiting.append_event(&event(&run, "held-2")).unwrap(), "free again");
    assert_eq!(ledger.events_of_run(run.run_id).unwrap().len(), 2);
}
