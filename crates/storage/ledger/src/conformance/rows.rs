//! Rows in, rows out; and the names by which they are found.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use trackway_core::checks::Verdict;
use trackway_core::detect::{DetectionPolicy, DetectionSeverity, Detector};
use trackway_core::name::{Name, NameKind};
use trackway_core::{
    AttemptId, CheckpointState, Confidence, Criticality, DiagnosisKind, DiagnosisVerdict, Domain, Ids,
    LaunchKind, ProofId, RetryOutlook, RunId, TerminationReason, Timestamp,
};

use crate::error::{ErrorKind, LedgerError};
use crate::kept::KeptRows;
use crate::ledger::{AttemptProgress, Ledger};
use crate::reading::find::{AttemptFilter, RunFilter};
use crate::reading::resolve::RunOrAttempt;
use crate::records::{
    AmendmentRow, AttemptDataRow, AttemptRow, AttemptState, CheckpointRow, DataSnapshotFileRow,
    DataSnapshotRow, Decision, DetectionRow, DiagnosisRow, DriftResultRow, EventRow, PreflightCheckRow,
    ProofVerdict, ResumeProofRow, RetryRow, RollBackRow, RunDataRow, RunRow, RunState, RungRow, RungVerdict,
    SubjectEventRow,
};
use crate::value::Record as _;

/// Ids that no other caller in this process gets, spread like real ones so that parts of them are unique.
#[derive(Debug)]
pub struct SpreadIds;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Ids for SpreadIds {
    fn next_ulid(&self) -> u128 {
        let number = NEXT_ID.fetch_add(1, Ordering::SeqCst);
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (u128::from(number) << 80) | u128::from(spread)
    }
}

/// A time so many seconds after a fixed one.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000 + seconds * 1_000_000 + 7)
}

/// A run that is stored.
pub fn stored_run(ledger: &Ledger, name: &str) -> RunRow {
    let mut run = RunRow::planned(
        RunId::new(&SpreadIds),
        &Name::renamed(NameKind::Run, name),
        "c0ffee",
        json!({ "lr": 0.1 }),
        at(0),
    );
    run.state = RunState::Running;
    run.model_family = Some("reasoning".into());
    run.seed = Some(17);
    run.project = Some("fraud".into());
    run.criticality = Some(Criticality::Standard);
    ledger.insert_run(&run, &[]).unwrap();
    run
}

/// An attempt of a run, not stored.
pub fn new_attempt(run: &RunRow, number: u32, kind: LaunchKind) -> AttemptRow {
    let mut attempt = AttemptRow::planned(AttemptId::new(&SpreadIds), number, kind, run);
    attempt.started_at = Some(at(1));
    attempt.state = AttemptState::Running;
    attempt
}

/// An attempt in the state in which it is ready to be sealed.
pub fn ended(mut attempt: AttemptRow) -> AttemptRow {
    attempt.state = AttemptState::Ended;
    attempt.ended_at = Some(at(100));
    attempt.wall_seconds = Some(98.999_993);
    attempt.gpu_seconds = Some(1.0 / 3.0);
    attempt.exit_code = Some(-1);
    attempt.signal = Some(9);
    attempt.termination_reason = Some(TerminationReason::HostOom);
    attempt.termination_rule = Some("process.oom_kill".into());
    attempt.termination_confidence = Some(Confidence::Certain);
    attempt.termination_domain = Some(Domain::Workload);
    attempt.retry_outlook = Some(RetryOutlook::RetryChanged);
    attempt.termination_evidence = Some(json!([{ "text": "Killed — „é“ \u{1F40E}", "line_number": 3 }]));
    attempt.git_dirty = Some(true);
    attempt.last_step = Some(i64::MAX as u64);
    attempt.cost_usd = Some(0.1 + 0.2);
    attempt.submitted_at = Some(at(-5));
    attempt.queued_seconds = Some(5.999_993);
    attempt.engine_instance = Some("juwels:7".into());
    attempt.completeness = Some("1 of 2 files".into());
    attempt.command = vec!["python".into(), "train.py".into(), "--name=a \"b\"".into()];
    attempt
}

pub(super) fn event(run: &RunRow, id: &str) -> EventRow {
    EventRow {
        event_id: id.into(),
        run_id: run.run_id,
        attempt_id: None,
        at: at(5),
        kind: "note".into(),
        step: Some(3),
        message: "something happened".into(),
        fields_json: Some(json!({ "why": "?" })),
        source: "supervisor".into(),
    }
}

pub(super) fn retry(run: &RunRow, after: AttemptId) -> RetryRow {
    RetryRow {
        attempt_id: after,
        run_id: run.run_id,
        at: at(6),
        decision: Decision::Retry,
        rule: "retry.infrastructure".into(),
        why: "the node went away".into(),
        delay_seconds: Some(10.5),
        budget_name: Some("infrastructure".into()),
        budget_spent: Some(1.0),
        budget_limit: Some(5.0),
        changes_json: None,
        next_attempt_id: None,
    }
}

pub(super) fn checkpoint(run: &RunRow, attempt: AttemptId, step: u64) -> CheckpointRow {
    CheckpointRow {
        run_id: run.run_id,
        attempt_id: attempt,
        step,
        epoch: 1,
        object_prefix: format!("step-{step}/epoch-1-x"),
        manifest_sha256: Some("aa".into()),
        state: CheckpointState::Committed,
        location: "/checkpoints".into(),
        size_bytes: Some(10),
        verified: Some(true),
        verified_at: Some(at(9)),
        committed_at: Some(at(7)),
        metrics_json: Some(json!({ "loss": 0.5 })),
        why: None,
        pins: Some("best".into()),
        uploaded_to: Some("s3://bucket/run".into()),
        uploaded_at: Some(at(8)),
        unsafe_because: Some("`loss` is NaN from step 25 on".into()),
    }
}

/// What is read is what was written: no column lost, no value rounded.
pub(super) fn every_row_comes_back_as_it_was_written(ledger: &Ledger) {
    let mut run = stored_run(ledger, "rows");
    assert_eq!(ledger.run(run.run_id).unwrap().as_ref(), Some(&run));
    let changed = ledger.change_run(run.run_id, |run| {
        run.state = RunState::Stopped;
        run.ended_at = Some(at(9));
        run.cost_usd = Some(0.1 + 0.2);
    });
    assert_eq!(
        changed.unwrap(),
        RunRow {
            state: RunState::Stopped,
            ended_at: Some(at(9)),
            cost_usd: Some(0.1 + 0.2),
            revision: 1,
            ..run.clone()
        }
    );
    run = ledger.run(run.run_id).unwrap().unwrap();
    assert_eq!((run.state, run.revision), (RunState::Stopped, 1));
    for kind in [LaunchKind::Train, LaunchKind::Overfit] {
        let mut attempt = new_attempt(&run, 1, kind);
        ledger.insert_attempt(&attempt).unwrap();
        attempt = ended(attempt);
        ledger.update_attempt(&attempt).unwrap();
        let progress = AttemptProgress { last_committed_step: Some(40), ..AttemptProgress::default() };
        assert!(ledger.touch_attempt(run.run_id, (attempt.attempt_id, kind), &progress).unwrap());
        attempt.last_committed_step = Some(40);
        assert_eq!(ledger.attempt(attempt.attempt_id).unwrap(), Some(attempt));
    }
    assert_eq!(
        (
            ledger.attempts_of_run(run.run_id).unwrap().len(),
            ledger.launches_of_run(run.run_id).unwrap().len()
        ),
        (1, 1)
    );
    children_come_back(ledger, &run);
    proofs_come_back(ledger);
    checks_come_back(ledger);
    detections_come_back(ledger);
    roll_backs_come_back(ledger);
    diagnoses_come_back(ledger);
    data_comes_back(ledger);
}

fn children_come_back(ledger: &Ledger, run: &RunRow) {
    let attempt = ledger.attempts_of_run(run.run_id).unwrap().remove(0).attempt_id;
    let added = event(run, "rows-1");
    assert!(ledger.append_event(&added).unwrap());
    assert_eq!(ledger.events_of_run(run.run_id).unwrap(), [added]);
    let mut decided = retry(run, attempt);
    ledger.insert_retry(&decided).unwrap();
    ledger.set_next_attempt(run.run_id, attempt, attempt).unwrap();
    decided.next_attempt_id = Some(attempt);
    assert_eq!(ledger.retries_of_run(run.run_id).unwrap(), [decided]);
    let mut stored = checkpoint(run, attempt, 10);
    ledger.upsert_checkpoints(&[stored.clone()]).unwrap();
    stored.state = CheckpointState::Superseded;
    stored.verified = Some(false);
    ledger.upsert_checkpoints(&[stored.clone()]).unwrap();
    assert_eq!(ledger.checkpoints_of_run(run.run_id).unwrap(), [stored]);
    rungs_come_back(ledger, run, attempt);
    let amendment = AmendmentRow {
        amendment_id: "amend-1".into(),
        attempt_id: attempt,
        run_id: run.run_id,
        at: at(8),
        author: "ana".into(),
        field: "termination_reason".into(),
        old_text: Some("unknown".into()),
        new_text: None,
        why: "the node's log was found".into(),
    };
    assert!(ledger.amend(&amendment).unwrap() && !ledger.amend(&amendment).unwrap());
    assert_eq!(ledger.amendments_of(attempt).unwrap(), [amendment]);
}

/// A rung is written with each seal of its attempts, and keeps its verdict once it has one.
fn rungs_come_back(ledger: &Ledger, run: &RunRow, attempt: AttemptId) {
    let mut rung = RungRow {
        run_id: run.run_id,
        rung: "10%".into(),
        fraction: 0.1,
        place: 2,
        verdict: RungVerdict::Open,
        attempt_count: 1,
        last_attempt_id: attempt,
        last_step: Some(40),
        wall_seconds: 9.5,
        gpu_seconds: 19.0,
        cost_usd: Some(0.1 + 0.2),
        warm_start_step: None,
        rule: Some("val_loss < 1".into()),
        why: None,
        values_json: None,
        metrics_json: Some(json!({ "val_loss": 0.5 })),
        rows: Some(101),
        rows_total: Some(1_000),
    };
    ledger.backend().upsert(&rung, &[]).unwrap();
    rung.verdict = RungVerdict::Rejected;
    rung.values_json = Some(json!({ "val_loss": 2.0 }));
    ledger.backend().upsert(&rung, &[]).unwrap();
    assert_eq!(ledger.rungs_of_run(run.run_id).unwrap(), [rung.clone()]);
    rung.verdict = RungVerdict::Promoted;
    let refused = ledger.backend().upsert(&rung, &[]);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Integrity);
}

/// A proof is found by its config, and its runs are no training runs: not by name, not as `last`, not in lists.
fn proofs_come_back(ledger: &Ledger) {
    let mut run = RunRow::planned(
        RunId::new(&SpreadIds),
        &Name::renamed(NameKind::Run, "proved"),
        "proved config",
        json!({ "lr": 0.1 }),
        at(3),
    );
    run.kind = LaunchKind::Prove;
    ledger.insert_run(&run, &[]).unwrap();
    assert_eq!(ledger.run(run.run_id).unwrap().as_ref(), Some(&run));
    let attempt = new_attempt(&run, 1, LaunchKind::Prove);
    ledger.insert_attempt(&attempt).unwrap();
    assert_eq!(ledger.attempts_of_kind(run.run_id, LaunchKind::Prove).unwrap(), [attempt]);
    assert!(ledger.attempts_of_kind(run.run_id, LaunchKind::Train).unwrap().is_empty());
    assert_eq!(ledger.resolve("proved", at(9)).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(ledger.resolve("last", at(9)).unwrap().run_id() != run.run_id);
    let by_id = ledger.resolve(&run.run_id.to_string(), at(9)).unwrap();
    assert_eq!(by_id, RunOrAttempt::Run(Box::new(run.clone())), "but by its id");
    let filter = RunFilter { kind: LaunchKind::Prove, ..RunFilter::default() };
    assert_eq!(ledger.list_runs(&filter).unwrap(), [run.clone()]);
    let proof = proof(&run);
    assert!(ledger.insert_resume_proof(&proof).unwrap() && !ledger.insert_resume_proof(&proof).unwrap());
    assert_eq!(ledger.newest_resume_proof("proved config").unwrap().as_ref(), Some(&proof));
    let other = ResumeProofRow { verdict: ProofVerdict::Equal, ..proof };
    assert_eq!(ledger.insert_resume_proof(&other).unwrap_err().kind(), ErrorKind::Integrity);
}

/// Checks come back in the order of the report, may be stored twice, and cannot be changed later.
fn checks_come_back(ledger: &Ledger) {
    let run = stored_run(ledger, "checked");
    let check = |place: u32, name: &str, verdict| PreflightCheckRow {
        run_id: run.run_id,
        check_name: name.into(),
        place,
        verdict,
        blocks: verdict == Verdict::Block,
        seconds: Some(0.25),
        why: Some("3 rows read".into()),
        skipped_why: None,
        finding_count: 1,
        findings_json: Some(json!([{ "message": "no label" }])),
        at: at(3),
    };
    let checks = [check(1, "data.readable", Verdict::Pass), check(2, "data.label", Verdict::Block)];
    ledger.insert_preflight_checks(&[checks[1].clone(), checks[0].clone()]).unwrap();
    ledger.insert_preflight_checks(&checks).unwrap();
    assert_eq!(ledger.preflight_checks_of(run.run_id).unwrap(), checks);
    let softened = PreflightCheckRow { verdict: Verdict::Warn, ..checks[1].clone() };
    assert_eq!(ledger.insert_preflight_checks(&[softened]).unwrap_err().kind(), ErrorKind::Integrity);
    let drifted = |name: &str, verdict| DriftResultRow {
        run_id: run.run_id,
        data_set: "train".into(),
        compared_with: "last_good_run".into(),
        column_name: name.into(),
        reference: "train".into(),
        reference_run_id: Some(run.run_id),
        reference_rows: 900,
        rows: 1_000,
        role: "feature".into(),
        test: Some("kolmogorov_smirnov".into()),
        statistic: Some(0.25),
        threshold: Some(0.05),
        p_value: Some(1e-9),
        missing_change: Some(0.0),
        verdict,
        why: None,
        at: at(3),
    };
    let results =
        [drifted("age", Verdict::Warn), drifted("gone", Verdict::Block), drifted("plan", Verdict::Pass)];
    ledger.insert_drift_results(&results).unwrap();
    ledger.insert_drift_results(&results).unwrap();
    assert_eq!(ledger.drift_results_of(run.run_id).unwrap(), results);
    let softened = DriftResultRow { verdict: Verdict::Pass, ..results[0].clone() };
    assert_eq!(ledger.insert_drift_results(&[softened]).unwrap_err().kind(), ErrorKind::Integrity);
}

/// Detections come back oldest first, may be stored twice, and cannot be changed later; a value that is not finite is
/// none.
fn detections_come_back(ledger: &Ledger) {
    let run = stored_run(ledger, "watched");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let detection = |second: i64, detector: Detector| DetectionRow {
        detection_id: format!("{}:{detector}:0:{second}", attempt.attempt_id),
        run_id: run.run_id,
        attempt_id: attempt.attempt_id,
        at: at(second),
        detector,
        severity: DetectionSeverity::Critical,
        policy: DetectionPolicy::Checkpoint,
        rank: 3,
        first_step: 39,
        step: 41,
        metric: Some("loss".into()),
        value: None,
        threshold: 6.0,
        batch_digest: Some(1 << 52),
        last_committed_step: Some(30),
        evidence: "`loss` is NaN from step 39 on".into(),
        cause: "learning rate too high".into(),
        advice: "clip gradients".into(),
        first_batch: Some(38),
        last_batch: Some(40),
        data_epoch: Some(0),
        stacks_path: Some("stacks/dump-1.json".into()),
    };
    let detections = [detection(4, Detector::LossSpike), detection(5, Detector::NonFinite)];
    for row in detections.iter().rev() {
        assert!(ledger.insert_detection(row).unwrap());
        assert!(!ledger.insert_detection(row).unwrap());
    }
    assert_eq!(ledger.detections_of_run(run.run_id).unwrap(), detections);
    assert_eq!(ledger.detections_of_attempt(attempt.attempt_id).unwrap(), detections);
    let softened = DetectionRow { severity: DetectionSeverity::Note, ..detections[0].clone() };
    assert_eq!(ledger.insert_detection(&softened).unwrap_err().kind(), ErrorKind::Integrity);
}

/// Diagnoses come back oldest first, may be stored twice, and cannot be changed later; their runs are no training runs.
fn diagnoses_come_back(ledger: &Ledger) {
    let run = stored_run(ledger, "diagnosed");
    let mut own = RunRow::planned(
        RunId::new(&SpreadIds),
        &Name::renamed(NameKind::Run, "diagnosed"),
        "diagnosed config",
        json!({}),
        at(3),
    );
    own.kind = LaunchKind::Diagnose;
    ledger.insert_run(&own, &[]).unwrap();
    let launch = new_attempt(&own, 1, LaunchKind::Diagnose);
    ledger.insert_attempt(&launch).unwrap();
    assert!(ledger.resolve("diagnosed", at(9)).unwrap().run_id() == run.run_id);
    let diagnosis = DiagnosisRow {
        diagnosis_run_id: own.run_id,
        attempt_id: AttemptId::new(&SpreadIds),
        run_id: run.run_id,
        launch_id: launch.attempt_id,
        kind: DiagnosisKind::Numeric,
        why: "numeric_divergence".into(),
        verdict: DiagnosisVerdict::Found,
        finding: "the first NaN is the output of `layers.2`".into(),
        from_step: Some(10),
        until_step: 43,
        step: Some(23),
        batch: Some(22),
        facts_json: Some(json!({ "step": 23 })),
        at: at(7),
        wall_seconds: 1.5,
        gpu_seconds: 0.1 + 0.2,
        cost_usd: None,
    };
    assert!(ledger.insert_diagnosis(&diagnosis).unwrap() && !ledger.insert_diagnosis(&diagnosis).unwrap());
    assert_eq!(ledger.diagnoses_of_run(run.run_id).unwrap(), std::slice::from_ref(&diagnosis));
    let other = DiagnosisRow { verdict: DiagnosisVerdict::NotReproduced, ..diagnosis };
    assert_eq!(ledger.insert_diagnosis(&other).unwrap_err().kind(), ErrorKind::Integrity);
}

/// Rollbacks come back oldest first, may be stored twice, and cannot be changed later.
fn roll_backs_come_back(ledger: &Ledger) {
    let run = stored_run(ledger, "rolled back");
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let roll_back = |second: i64| RollBackRow {
        roll_back_id: format!("{}:{second}", attempt.attempt_id),
        run_id: run.run_id,
        attempt_id: attempt.attempt_id,
        rung: "100%".into(),
        at: at(second),
        detector: Some(Detector::LossSpike),
        person: None,
        first_step: Some(500),
        from_step: Some(510),
        to_step: (second > 4).then_some(400),
        skip_first_batch: Some(449),
        skip_end_batch: Some(503),
        left_steps: Some("450,500".into()),
        why: "a spike".into(),
    };
    for second in [5, 4] {
        assert!(ledger.insert_roll_back(&roll_back(second)).unwrap());
        assert!(!ledger.insert_roll_back(&roll_back(second)).unwrap());
    }
    assert_eq!(ledger.roll_backs_of_run(run.run_id).unwrap(), [roll_back(4), roll_back(5)]);
    let other = RollBackRow { to_step: None, ..roll_back(5) };
    assert_eq!(ledger.insert_roll_back(&other).unwrap_err().kind(), ErrorKind::Integrity);
}

fn proof(run: &RunRow) -> ResumeProofRow {
    ResumeProofRow {
        proof_id: ProofId::new(&SpreadIds),
        name: run.name.clone(),
        model_family: Some("reasoning".into()),
        verdict: ProofVerdict::Different,
        why: Some("`adam.safetensors` differs".into()),
        differing_kinds: Some("optimizer,weights".into()),
        steps: 600,
        killed_at_step: Some(450),
        resumed_from_step: Some(300),
        config_sha256: run.config_sha256.clone(),
        data_sha256: None,
        seed: Some(17),
        git_commit: Some("abc".into()),
        git_dirty: Some(false),
        git_diff_blake3: None,
        environment_lock_sha256: None,
        container_digest: None,
        control_run_id: run.run_id,
        repeated_run_id: Some(run.run_id),
        resumed_run_id: None,
        control_state_digest: Some("d1".into()),
        repeated_state_digest: Some("d1".into()),
        resumed_state_digest: Some("d2".into()),
        started_at: at(3),
        ended_at: at(9),
        wall_seconds: 0.1 + 0.2,
        gpu_seconds: 0.0,
        cost_usd: None,
        digests_json: Some(json!({ "weights": { "control": "w" } })),
    }
}

/// Ends are counted by reason and domain: of the family if there is one, else of the runs of the same name; and only
/// those of the requested launcher and time.
pub(super) fn ends_are_counted(ledger: &Ledger) {
    let mut run = stored_run(ledger, "counted");
    for (number, launcher, started) in
        [(1, "local", 1), (2, "local", 50), (3, "slurm", 50), (4, "local", -50)]
    {
        let mut attempt = ended(new_attempt(&run, number, LaunchKind::Train));
        attempt.launcher = launcher.into();
        attempt.started_at = Some(at(started));
        attempt.model_family = Some("counted family".into());
        ledger.insert_attempt(&attempt).unwrap();
    }
    for family in [None, Some("counted family".to_owned())] {
        run.model_family = family;
        let counted = ledger.ends_like(&run, "local", at(0)).unwrap();
        assert_eq!(counted.len(), 1, "{counted:?}");
        assert_eq!(
            (counted[0].reason, counted[0].domain),
            (TerminationReason::HostOom, Some(Domain::Workload))
        );
        assert_eq!(counted[0].attempt_count, 2);
        assert!((counted[0].wall_seconds - 2.0 * 98.999_993).abs() < 1e-9);
    }
    run.model_family = Some("unassigned".into());
    assert!(ledger.ends_like(&run, "local", at(0)).unwrap().is_empty());
}

fn data_comes_back(ledger: &Ledger) {
    let snapshot = DataSnapshotRow {
        data_sha256: "d1".into(),
        name: "train".into(),
        path: "data/*.csv".into(),
        split: Some("train".into()),
        file_count: 1,
        size_bytes: 99,
        rows: Some(3),
        first_seen_at: at(1),
        schema_json: Some(json!([["age", "integer"]])),
        notes_json: None,
        project: Some("fraud".into()),
    };
    let file = DataSnapshotFileRow {
        data_sha256: "d1".into(),
        path: "data/a.csv".into(),
        size_bytes: 99,
        blake3: "b3".into(),
        format: "csv".into(),
        rows: Some(3),
        schema_json: None,
    };
    assert!(ledger.insert_data_snapshot(&snapshot, std::slice::from_ref(&file)).unwrap());
    assert!(
        !ledger.insert_data_snapshot(&snapshot, std::slice::from_ref(&file)).unwrap(),
        "content is stored once"
    );
    assert_eq!(ledger.data_snapshot_files("d1").unwrap(), [file]);
    let mut reader = RunRow::planned(
        RunId::new(&SpreadIds),
        &Name::renamed(NameKind::Run, "reader"),
        "c",
        json!({}),
        at(2),
    );
    reader.attempt_count = 1;
    let data = RunDataRow {
        run_id: reader.run_id,
        name: "train".into(),
        path: "data/*.csv".into(),
        data_sha256: "d1".into(),
        role: Some("validation".into()),
    };
    ledger.insert_run(&reader, std::slice::from_ref(&data)).unwrap();
    // One that was never launched was not steered by it.
    let blocked = RunRow::planned(
        RunId::new(&SpreadIds),
        &Name::renamed(NameKind::Run, "blocked"),
        "d",
        json!({}),
        at(3),
    );
    ledger.insert_run(&blocked, &[RunDataRow { run_id: blocked.run_id, ..data.clone() }]).unwrap();
    assert_eq!(ledger.data_of_run(reader.run_id).unwrap(), [data]);
    let used = ledger.validation_set("d1").unwrap().unwrap();
    assert_eq!((used.run_count, used.config_count, used.first_used_at), (1, 1, at(2)));
    assert_eq!(ledger.validation_set("d2").unwrap(), None);
    assert_eq!(ledger.data_snapshot("d1").unwrap(), Some(snapshot));
    assert_eq!(ledger.data_snapshot("d9").unwrap(), None);
    let attempt = new_attempt(&reader, 1, LaunchKind::Train);
    let RunDataRow { run_id, name, path, data_sha256, role } =
        ledger.data_of_run(reader.run_id).unwrap().remove(0);
    let read = AttemptDataRow { attempt_id: attempt.attempt_id, run_id, name, path, data_sha256, role };
    for _ in 0..2 {
        ledger.insert_launch(&attempt, std::slice::from_ref(&read)).unwrap();
    }
    assert_eq!(ledger.data_of_attempt(attempt.attempt_id).unwrap(), [read]);
}

/// What several runs keep of one data set is put back whatever the order and however often, also after an attempt on other data; a row
/// that the ledger has otherwise stays and is named, and the rest of its file is put back.
pub(super) fn kept_rows_are_restored_again(ledger: &Ledger) {
    let snapshot = |sha256: &str, seconds: i64| DataSnapshotRow {
        data_sha256: sha256.into(),
        name: "train".into(),
        file_count: 1,
        size_bytes: 99,
        first_seen_at: at(seconds),
        ..DataSnapshotRow::blank()
    };
    let run = |name: &str| {
        RunRow::planned(RunId::new(&SpreadIds), &Name::renamed(NameKind::Run, name), "c", json!({}), at(2))
    };
    let used = |run: &RunRow| RunDataRow {
        run_id: run.run_id,
        name: "train".into(),
        data_sha256: "k1".into(),
        ..RunDataRow::blank()
    };
    let (first, second) = (run("kept-1"), run("kept-2"));
    let attempt = new_attempt(&second, 2, LaunchKind::Train);
    let RunDataRow { run_id, name, path, role, .. } = used(&second);
    let (attempt_id, data_sha256) = (attempt.attempt_id, "k2".to_owned());
    let read = AttemptDataRow { attempt_id, run_id, name, path, data_sha256, role };
    let kept = [
        KeptRows::of_run(&first, &[used(&first)], &[snapshot("k1", 1)]),
        KeptRows::of_run(&second, &[used(&second)], &[snapshot("k1", 5)]),
        KeptRows::of_launch(&attempt, std::slice::from_ref(&read), &[snapshot("k2", 7)]),
    ];
    for is_new in [true, false] {
        for rows in &kept {
            let restored = ledger.restore(rows).unwrap();
            assert_eq!((restored.added, restored.differs), (is_new, Vec::new()));
        }
    }
    assert_eq!(ledger.data_snapshot("k1").unwrap().unwrap().first_seen_at, at(1), "the first one counts");
    assert_eq!(ledger.data_of_run(second.run_id).unwrap(), [used(&second)]);
    assert_eq!(ledger.data_of_attempt(attempt.attempt_id).unwrap(), [read]);
    let joined = event(&second, "kept-event");
    let of_event = KeptRows::of([&SubjectEventRow::from(&joined)]);
    for is_new in [true, false] {
        assert_eq!(ledger.restore(&of_event).unwrap().added, is_new);
        assert_eq!(ledger.events_of_run(second.run_id).unwrap(), std::slice::from_ref(&joined));
    }
    let orphan = SubjectEventRow::from(&event(&run("kept-4"), "kept-orphan"));
    assert_eq!(ledger.restore(&KeptRows::of([&orphan])).unwrap_err().kind(), ErrorKind::Integrity);
    let third = run("kept-3");
    let other = DataSnapshotRow { file_count: 2, ..snapshot("k1", 1) };
    let restored = ledger.restore(&KeptRows::of_run(&third, &[used(&third)], &[other])).unwrap();
    assert!(restored.added && ledger.run(third.run_id).unwrap().is_some());
    assert_eq!(restored.differs.len(), 1);
    assert!(restored.differs[0].contains("another `file_count`"), "{:?}", restored.differs);
    assert_eq!(ledger.data_snapshot("k1").unwrap().unwrap().file_count, 1);
    // The list of files is in no kept row: who reads the data again brings it.
    let file = DataSnapshotFileRow {
        data_sha256: "k1".into(),
        path: "a.csv".into(),
        ..DataSnapshotFileRow::blank()
    };
    for _ in 0..2 {
        assert!(!ledger.insert_data_snapshot(&snapshot("k1", 9), std::slice::from_ref(&file)).unwrap());
        assert_eq!(ledger.data_snapshot_files("k1").unwrap(), std::slice::from_ref(&file));
    }
}

/// A reference has one meaning: `last`, a whole id, `RUN/NUMBER`, a name, a part of an id; several meanings and none
/// are errors that name the nearest ones.
pub(super) fn words_mean_one_thing(ledger: &Ledger) {
    let first = stored_run(ledger, "income");
    let second = RunRow { created_at: at(1), run_id: RunId::new(&SpreadIds), ..first.clone() };
    ledger.insert_run(&second, &[]).unwrap();
    let attempt = new_attempt(&second, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let resolve = |word: &str| ledger.resolve(word, at(9));
    let run = |row: &RunRow| RunOrAttempt::Run(Box::new(row.clone()));
    assert_eq!(resolve("income").unwrap(), run(&second), "the newest of a name");
    let id = first.run_id.to_string();
    for word in [id.as_str(), &id[..29], &id[id.len() - 8..], &id[id.len() - 8..].to_uppercase()] {
        assert_eq!(resolve(word).unwrap(), run(&first), "{word}");
    }
    let attempt_id = attempt.attempt_id.to_string();
    for word in ["income/1", attempt_id.as_str(), &attempt_id[..29], &attempt_id[attempt_id.len() - 8..]] {
        assert_eq!(resolve(word).unwrap(), RunOrAttempt::Attempt(Box::new(attempt.clone())), "{word}");
        assert_eq!(resolve(word).unwrap().run_id(), second.run_id);
    }
    assert!(matches!(resolve("run_0").unwrap_err(), LedgerError::Ambiguous { more: true, .. }));
    let error = resolve("incone").unwrap_err().to_string();
    assert!(error.contains("did you mean `income`?"), "{error}");
    // Five letters of an id are no part of it: names are that short.
    for name in ["", "%", "______", "income/7", "att_01", &id[id.len() - 5..], "'; drop table runs; --"] {
        let error = resolve(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{name}: {error}");
    }
    let part = &id[id.len() - 8..];
    let namesake = stored_run(ledger, part);
    let error = resolve(part).unwrap_err().to_string();
    for meaning in [id.as_str(), &namesake.run_id.to_string()] {
        assert!(error.contains(meaning), "a name and a part of an id: {error}");
    }
    let filter =
        RunFilter { name: Some("income".into()), seed: Some(17), limit: Some(1), ..RunFilter::default() };
    assert_eq!(ledger.list_runs(&filter).unwrap(), std::slice::from_ref(&second));
    let filter = AttemptFilter { run_id: Some(second.run_id), ..AttemptFilter::default() };
    assert_eq!(ledger.list_attempts(&filter).unwrap().len(), 1);
    assert!(ledger.unsealed_attempts().unwrap().iter().any(|row| row.run_id == second.run_id));
    let is_open = || ledger.open_runs().unwrap().iter().any(|row| row.run_id == second.run_id);
    assert!(is_open());
    let end = |run: &mut RunRow| (run.state, run.ended_at) = (RunState::Completed, Some(at(5)));
    ledger.change_run(second.run_id, end).unwrap();
    assert!(!is_open());
}

/// A run that is dated in the future is neither `last` nor the newest of its name, unless it is the only one.
pub(super) fn a_run_of_tomorrow_is_not_last(ledger: &Ledger) {
    let today = RunRow { created_at: at(50), ..stored_run(ledger, "unstored") };
    let today = RunRow { run_id: RunId::new(&SpreadIds), name: "dated".into(), ..today };
    let tomorrow = RunRow { run_id: RunId::new(&SpreadIds), created_at: at(100_000), ..today.clone() };
    ledger.insert_run(&tomorrow, &[]).unwrap();
    let resolved = |word: &str| ledger.resolve(word, at(60)).unwrap().run_id();
    assert_eq!(resolved("dated"), tomorrow.run_id, "there is no other");
    ledger.insert_run(&today, &[]).unwrap();
    assert_eq!((resolved("dated"), resolved("last")), (today.run_id, today.run_id));
    assert_eq!(ledger.resolve("last", at(100_000)).unwrap().run_id(), tomorrow.run_id);
}
