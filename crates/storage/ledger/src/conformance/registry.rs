//! Checks that models change one change after the other, and that verdicts of gates and approvals stay as they were
//! stored.

use serde_json::json;
use trackway_core::registry::{GateVerdict, ModelChange, ModelStage};

use super::rows::{at, stored_run};
use crate::error::ErrorKind;
use crate::ledger::Ledger;
use crate::records::{
    ApprovalRow, GateReceiptRow, GateTestRow, ModelChangeRow, ModelRow, ModelVersionRow, RunRow,
};

fn change(number: u64) -> ModelChangeRow {
    ModelChangeRow {
        model: "income".into(),
        number,
        at: at(i64::try_from(number).unwrap()),
        kind: if number == 1 { ModelChange::Register } else { ModelChange::Promote },
        version: Some(1),
        stage: Some(ModelStage::Production),
        alias: None,
        was_version: None,
        gate_receipt_id: Some("g".into()),
        approvals_json: Some(json!(["a"])),
        policy_json: None,
        person: Some("ana".into()),
        why: None,
    }
}

fn standing(change_number: u64) -> ModelRow {
    ModelRow {
        model: "income".into(),
        created_at: at(0),
        change_number,
        version_count: 1,
        production_version: (change_number > 1).then_some(1),
        production_since: (change_number > 1).then(|| at(2)),
        stages_json: json!({ "1": "production" }),
        aliases_json: json!({}),
        policy_json: json!({ "approvals": 0 }),
        project: Some("fraud".into()),
    }
}

fn version(run: &RunRow) -> ModelVersionRow {
    ModelVersionRow {
        model: "income".into(),
        version: 1,
        run_id: run.run_id,
        attempt_id: None,
        rung: "100%".into(),
        step: Some(400),
        object_prefix: "step-400/epoch-1-x".into(),
        checkpoint_manifest_sha256: "abc".into(),
        size_bytes: 10,
        lineage_sha256: "def".into(),
        config_sha256: run.config_sha256.clone(),
        code_commit: None,
        environment_sha256: Some("env".into()),
        container_digest: None,
        data_json: json!({ "train": "d" }),
        signature_json: None,
        description: None,
        registered_at: at(1),
        registered_by: Some("ana".into()),
        duplicate_of: None,
    }
}

/// Checks that a change is accepted only directly after the one it was decided on, even under concurrency.
pub(super) fn models_change_one_after_the_other(ledger: &Ledger) {
    let run = stored_run(ledger, "registered");
    let version = version(&run);
    ledger.change_model(&change(1), &standing(1), Some(&version)).unwrap();
    ledger.change_model(&change(2), &standing(2), None).unwrap();
    // Once more, because the reply was lost.
    ledger.change_model(&change(2), &standing(2), None).unwrap();
    let other = ModelChangeRow { person: Some("ben".into()), ..change(2) };
    let refused = ledger.change_model(&other, &standing(2), None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Integrity, "{refused}");
    for stale in [1, 4] {
        let refused = ledger.change_model(&change(stale), &standing(stale), None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Integrity, "{refused}");
    }
    assert_eq!(ledger.model("income").unwrap(), Some(standing(2)));
    assert_eq!(ledger.models().unwrap(), [standing(2)]);
    assert_eq!(ledger.changes_of_model("income").unwrap(), [change(1), change(2)]);
    assert_eq!(ledger.versions_of_model("income").unwrap(), std::slice::from_ref(&version));
    // A second version of the same number stores nothing of its change either.
    let refused = ledger.change_model(&change(3), &standing(3), Some(&version)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Integrity, "{refused}");
    assert_eq!(ledger.model("income").unwrap(), Some(standing(2)));

    // The same weights under another number store nothing either.
    let again = ModelVersionRow { version: 2, ..version.clone() };
    let refused = ledger.change_model(&change(3), &standing(3), Some(&again)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Integrity, "{refused}");
    assert_eq!(ledger.versions_of_model("income").unwrap().len(), 1);

    let racers: Vec<_> = (0..8)
        .map(|racer| (ledger.clone(), ModelChangeRow { person: Some(format!("racer {racer}")), ..change(3) }))
        .map(|(ledger, change)| {
            std::thread::spawn(move || ledger.change_model(&change, &standing(3), None).is_ok())
        })
        .collect();
    let won = racers.into_iter().map(|racer| racer.join().unwrap()).filter(|won| *won).count();
    assert_eq!((won, ledger.changes_of_model("income").unwrap().len()), (1, 3));
}

/// Receipts of gates, tests of gates and approvals come back, and no other row takes their place.
pub(super) fn what_gates_said_stays(ledger: &Ledger) {
    let run = stored_run(ledger, "gated");
    let receipt = GateReceiptRow {
        gate_receipt_id: "g".into(),
        evaluation_id: "ev-g".into(),
        run_id: run.run_id,
        checkpoint_manifest_sha256: "abc".into(),
        baseline_evaluation_id: None,
        baseline_manifest_sha256: Some("def".into()),
        compares: true,
        verdict: GateVerdict::Inconclusive,
        gates_json: json!([]),
        evidence_json: json!({ "numbers": {} }),
        judged_at: at(3),
        person: None,
    };
    assert!(ledger.insert_gate_receipt(&receipt).unwrap() && !ledger.insert_gate_receipt(&receipt).unwrap());
    let better = GateReceiptRow { verdict: GateVerdict::Pass, ..receipt.clone() };
    assert_eq!(ledger.insert_gate_receipt(&better).unwrap_err().kind(), ErrorKind::Integrity);
    assert_eq!(ledger.gate_receipt("g").unwrap(), Some(receipt.clone()));
    assert_eq!(ledger.gate_receipts_of_evaluation("ev-g").unwrap(), [receipt]);

    let test = |id: &str, verdict| GateTestRow {
        gate_test_id: id.into(),
        rule: "accuracy > 0.5".into(),
        fixture: "bad".into(),
        fixture_sha256: "f".into(),
        verdict,
        why: "too low".into(),
        at: at(4),
    };
    let tests = [test("1", GateVerdict::Fail), test("2", GateVerdict::Pass)];
    ledger.insert_gate_tests(&tests).unwrap();
    assert_eq!(ledger.gate_tests_of_rule("accuracy > 0.5").unwrap(), tests);
    let refused = ledger.insert_gate_tests(&[test("3", GateVerdict::Fail), test("2", GateVerdict::Fail)]);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Integrity);
    assert_eq!(ledger.gate_tests_of_rule("accuracy > 0.5").unwrap().len(), 2);

    let approval = ApprovalRow {
        approval_id: "a".into(),
        model: "income".into(),
        version: 1,
        digest: "d".into(),
        gate_receipt_id: "g".into(),
        approver: "ben".into(),
        at: at(5),
        expires_at: at(500),
        why: Some("looked at it".into()),
    };
    assert!(ledger.insert_approval(&approval).unwrap());
    let longer = ApprovalRow { expires_at: at(5_000), ..approval.clone() };
    assert_eq!(ledger.insert_approval(&longer).unwrap_err().kind(), ErrorKind::Integrity);
    assert_eq!(ledger.approvals_of_model("income").unwrap(), [approval]);
}
