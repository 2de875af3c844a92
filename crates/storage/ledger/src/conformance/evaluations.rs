//! Evaluations, and how often a task set was looked at.

use serde_json::json;
use trackway_core::LaunchKind;

use super::assert_refused;
use super::rows::{at, new_attempt, stored_run};
use crate::error::ErrorKind;
use crate::ledger::Ledger;
use crate::records::{EvaluationMetricRow, EvaluationRow, EvaluationSliceRow, EvaluationState, RunRow};
use crate::writing::evaluations::{EvaluationEnd, GATE_TEST_ORIGIN};

fn begun(run: &RunRow, id: &str, task_set: Option<&str>) -> EvaluationRow {
    EvaluationRow {
        evaluator_name: "accuracy".into(),
        task_set_sha256: task_set.map(str::to_owned),
        task_set_version: task_set.map(|_| "v3".into()),
        decoding_json: Some(json!({ "temperature": 0.0 })),
        ..EvaluationRow::begun(format!("evl_{id}"), run.run_id, "aa".repeat(32), at(3))
    }
}

fn ended(row: &EvaluationRow) -> EvaluationEnd {
    let id = &row.evaluation_id;
    let metric = |slice: &str, value, rows_used| EvaluationMetricRow {
        evaluation_id: id.clone(),
        slice: slice.into(),
        metric: "accuracy".into(),
        value,
        low: Some(0.25),
        high: Some(1.0 / 3.0),
        support: Some(30),
        method: "analytic".into(),
        rows_used,
        rows_expected: rows_used.map(|rows| rows + 10),
    };
    let slice = EvaluationSliceRow {
        evaluation_id: id.clone(),
        slice: "women".into(),
        predicate: "sex = 'Female'".into(),
        support: 30,
        verdict: Some("inconclusive".into()),
    };
    EvaluationEnd {
        evaluation: EvaluationRow {
            state: EvaluationState::Completed,
            ended_at: Some(at(4)),
            step: Some(20),
            raw_outputs_rows: Some(30),
            metrics_json: Some(json!({ "accuracy": { "value": 0.9 } })),
            ..row.clone()
        },
        metrics: vec![metric("", Some(0.3), Some(20)), metric("women", None, None)],
        slices: vec![slice],
        gate_receipt: None,
    }
}

/// What is written comes back, with its receipt's hash, by id, by a part of it and by `last`; uses of a task set are
/// counted, also of what failed.
pub(super) fn evaluations_come_back(ledger: &Ledger) {
    let run = stored_run(ledger, "judged");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let row = EvaluationRow { attempt_id: Some(attempt.attempt_id), ..begun(&run, "first", Some("content")) };
    ledger.begin_evaluation(&row).unwrap();
    assert_eq!(ledger.running_evaluations().unwrap(), std::slice::from_ref(&row));
    assert_eq!(ledger.verify_evaluation("evl_first").unwrap(), None);
    let end = ended(&row);
    let stored = ledger.end_evaluation(&end).unwrap();
    assert_eq!(stored.receipt_sha256, Some(end.receipt_sha256()));
    assert_eq!(ledger.evaluations_of_run(run.run_id).unwrap(), std::slice::from_ref(&stored));
    assert_eq!(ledger.metrics_of_evaluation("evl_first").unwrap(), end.metrics);
    assert_eq!(ledger.slices_of_evaluation("evl_first").unwrap(), end.slices);
    assert_eq!(ledger.verify_evaluation("evl_first").unwrap(), Some(true));
    let failed = begun(&run, "second", Some("content"));
    ledger.begin_evaluation(&failed).unwrap();
    let failed = EvaluationEnd {
        evaluation: EvaluationRow {
            state: EvaluationState::Failed,
            ended_at: Some(at(5)),
            failure: Some("it crashed".into()),
            ..failed
        },
        metrics: Vec::new(),
        slices: Vec::new(),
        gate_receipt: None,
    };
    ledger.end_evaluation(&failed).unwrap();
    let imported = ended(&EvaluationRow { origin: "inspect".into(), ..begun(&run, "third", None) });
    ledger.insert_ended_evaluation(&imported).unwrap();
    assert_eq!(ledger.verify_evaluation("evl_third").unwrap(), Some(true));
    assert!(ledger.running_evaluations().unwrap().is_empty());
    assert_eq!(ledger.evaluations_on("content").unwrap(), std::slice::from_ref(&stored));
    for (reference, id) in [("evl_first", "evl_first"), ("FIRST", "evl_first"), ("econd", "evl_second")] {
        assert_eq!(ledger.resolve_evaluation(reference, at(9)).unwrap().evaluation_id, id);
    }
    let newer = EvaluationRow { started_at: at(8), ..begun(&run, "fourth", None) };
    let known_bad = ended(&EvaluationRow { origin: GATE_TEST_ORIGIN.into(), ..newer });
    ledger.insert_ended_evaluation(&known_bad).unwrap();
    assert_eq!(ledger.newest_evaluations(1).unwrap()[0].evaluation_id, "evl_fourth", "it is listed");
    let first = ledger.evaluations_page(None, None, 1).unwrap();
    assert_eq!(first.rows[0].evaluation_id, "evl_fourth");
    let rest = ledger.evaluations_page(None, first.rows.first(), 1_000).unwrap();
    assert_eq!((rest.rows.len() as u64, rest.more_count), (first.more_count, 0));
    assert!(rest.rows.iter().all(|row| row.evaluation_id != "evl_fourth"));
    assert!(rest.rows.is_sorted_by(
        |one, next| (next.started_at, &next.evaluation_id) < (one.started_at, &one.evaluation_id)
    ));
    for now in [at(9), at(0)] {
        assert_eq!(ledger.resolve_evaluation("last", now).unwrap().evaluation_id, "evl_third");
    }
    for (reference, expected) in [("evl_", "is ambiguous"), ("%%%%", "`trackway eval ls`"), ("none", "none")]
    {
        let error = ledger.resolve_evaluation(reference, at(9)).unwrap_err();
        assert!(error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::Usage, "{error}");
        assert!(reference == "evl_" || error.to_string().contains(expected), "{reference}: {error}");
    }
    let counted = ledger.test_sets(&["content"]).unwrap();
    assert_eq!((counted[0].use_count, counted[0].checkpoint_count, counted[0].run_count), (2, 1, 1));
    assert_eq!((counted[0].first_used_at, counted[0].last_used_at), (at(3), at(3)));
}

/// Checks that a metric has the number of rows it covers.
pub(super) fn metrics_cover_their_rows(ledger: &Ledger) {
    let run = stored_run(ledger, "covered");
    let row = begun(&run, "covered", None);
    let end = ended(&row);
    ledger.begin_evaluation(&row).unwrap();
    ledger.end_evaluation(&end).unwrap();
    assert_eq!(ledger.metrics_of_evaluation("evl_covered").unwrap(), end.metrics);
}

/// No statement changes what ended, adds to it, or takes back that a task set was used.
pub(super) fn an_ended_evaluation_does_not_change(ledger: &Ledger) {
    let run = stored_run(ledger, "judged for good");
    let row = begun(&run, "sealed", Some("other"));
    ledger.begin_evaluation(&row).unwrap();
    // Once more, because the reply was lost.
    ledger.begin_evaluation(&row).unwrap();
    let other = EvaluationRow { evaluator_name: "other".into(), ..row.clone() };
    assert_eq!(ledger.begin_evaluation(&other).unwrap_err().kind(), ErrorKind::Integrity);
    let mut early = ended(&row);
    early.evaluation.state = EvaluationState::Running;
    early.evaluation.ended_at = None;
    assert_eq!(ledger.end_evaluation(&early).unwrap_err().kind(), ErrorKind::Integrity);
    assert!(ledger.metrics_of_evaluation("evl_sealed").unwrap().is_empty(), "all or nothing");
    let end = ended(&row);
    ledger.end_evaluation(&end).unwrap();
    ledger.end_evaluation(&end).unwrap();
    let mut other = end.clone();
    other.evaluation.evaluator_name = "other".into();
    assert_eq!(ledger.end_evaluation(&other).unwrap_err().kind(), ErrorKind::Integrity);
    for statement in [
        "UPDATE evaluations SET failure = 'x' WHERE evaluation_id = 'evl_sealed'",
        "DELETE FROM evaluations WHERE evaluation_id = 'evl_sealed'",
        "UPDATE evaluation_metrics SET value = 1 WHERE evaluation_id = 'evl_sealed'",
        "DELETE FROM evaluation_metrics WHERE evaluation_id = 'evl_sealed'",
        "INSERT INTO evaluation_metrics (evaluation_id, slice, metric, method) VALUES ('evl_sealed', '', 'f1', 'none')",
        "UPDATE evaluation_slices SET support = 1 WHERE evaluation_id = 'evl_sealed'",
        "DELETE FROM evaluation_slices WHERE evaluation_id = 'evl_sealed'",
        "INSERT INTO evaluation_slices (evaluation_id, slice, predicate, support) VALUES ('evl_sealed', 'x', 'x', 1)",
        "UPDATE test_set_uses SET task_set_sha256 = 'x' WHERE evaluation_id = 'evl_sealed'",
        "DELETE FROM test_set_uses WHERE evaluation_id = 'evl_sealed'",
    ] {
        assert_refused(ledger, statement);
    }
    assert_eq!(ledger.verify_evaluation("evl_sealed").unwrap(), Some(true));
}
