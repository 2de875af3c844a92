//! What a receipt says, and what is written down with it, part by part.

use serde_json::{Value, json};
use trackway_core::name::{Name, NameKind};
use trackway_core::{
    AttemptId, CheckpointState, Clock as _, LaunchKind, RunId, SequentialIds, TerminationReason,
};
use trackway_formats::layout::RowCopy;
use trackway_formats::record::CheckpointFrame;
use trackway_formats::runfile::{LadderSection, Plan};
use trackway_launch::{Observation, SignalReason, SignalSent, SpawnError};
use trackway_ledger::{CheckpointRow, RecordSegmentRow};
use trackway_rules::TerminationEvidence;
use trackway_rules::classify::{ActionKind, OwnAction};

use super::evidence::gather;
use super::*;
use crate::capture::{Capture, NamedFile};
use crate::ledger::row_copies;
use crate::run::record::earlier::EarlierAttempts;
use crate::testing::{SETTLES, World};

/// A run with one attempt that was launched, in a separate home.
struct EndedRun {
    context: Context,
    run: RunRow,
    row: AttemptRow,
    folder: tempfile::TempDir,
    _world: World,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

impl EndedRun {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let command = ["sh".to_owned(), "-c".to_owned(), "true".to_owned()];
        let mut plan = Plan::for_command(&command);
        plan.data.insert("train".into(), Default::default());
        let name = Name::renamed(NameKind::Run, "sealed");
        let mut run = RunRow::planned(RunId::new(&SequentialIds::default()), &name, "c", json!(plan), at(1));
        run.state = RunState::Running;
        context.ledger_write(|ledger| ledger.insert_run(&run, &[])).unwrap();
        let row = Self::attempt(&run, 1);
        context.ledger_write(|ledger| ledger.insert_attempt(&row)).unwrap();
        std::fs::create_dir_all(context.home.layout.attempt(row.attempt_id).folder()).unwrap();
        std::fs::create_dir_all(context.home.layout.run(run.run_id).folder()).unwrap();
        Self { context, run, row, folder, _world: world }
    }

    fn attempt(run: &RunRow, number: u32) -> AttemptRow {
        let id: AttemptId = format!("att_{number:026}").parse().unwrap();
        let mut row = AttemptRow::planned(id, number, LaunchKind::Train, run);
        row.started_at = Some(at(100));
        row
    }

    fn files(&self) -> AttemptLayout {
        self.context.home.layout.attempt(self.row.attempt_id)
    }

    fn verdict(&self) -> TerminationVerdict {
        classify(&TerminationEvidence::new(LaunchKind::Train))
    }

    fn receipt(&self, end: &End, closed: &ClosedRecords, checkpoints: &[CheckpointRow]) -> AttemptRow {
        receipt(&self.context, self.row.clone(), end, closed, &in_rung(checkpoints), &self.verdict())
    }

    fn checkpoint(&self, step: Step, state: CheckpointState, manifest: Option<&str>) -> CheckpointRow {
        CheckpointRow {
            run_id: self.run.run_id,
            attempt_id: self.row.attempt_id,
            step,
            epoch: 1,
            object_prefix: format!("{step}"),
            manifest_sha256: manifest.map(str::to_owned),
            state,
            location: "root".into(),
            size_bytes: None,
            verified: None,
            verified_at: None,
            committed_at: None,
            metrics_json: None,
            why: None,
            pins: None,
            uploaded_to: None,
            uploaded_at: None,
            unsafe_because: None,
        }
    }
}

fn in_rung(rows: &[CheckpointRow]) -> RungCheckpoints {
    RungCheckpoints { rows: rows.to_vec(), ..RungCheckpoints::default() }
}

fn frame(step: Step, state: CheckpointChange) -> CheckpointFrame {
    CheckpointFrame {
        at: at(150),
        step,
        epoch: 1,
        state,
        object_prefix: format!("{step}"),
        manifest_sha256: format!("manifest-{step}"),
        size_bytes: 12,
        seconds: 0.25,
    }
}

fn recorded() -> ExitRecord {
    ExitRecord {
        exit_code: Some(3),
        started_at: at(100),
        ended_at: at(200),
        wall_seconds: 90.0,
        cpu_seconds: 45.0,
        log_bytes_lost: 7,
        ..ExitRecord::default()
    }
}

fn segment(row: &AttemptRow, origin: &str) -> RecordSegmentRow {
    RecordSegmentRow {
        attempt_id: row.attempt_id,
        run_id: row.run_id,
        path: origin.into(),
        origin: Some(origin.into()),
        size_bytes: 0,
        frame_count: 0,
        lost_frame_count: 0,
        dropped_frame_count: 0,
        torn_bytes: 0,
        closed: true,
        parquet_path: None,
        unreadable: None,
    }
}

fn event(row: &AttemptRow, kind: EventKind, fields: Value) -> EventRow {
    EventRow { fields_json: Some(fields), ..EventRow::of_attempt(row, kind, at(110), String::new()) }
}

fn metric(row: &AttemptRow, name: &str, non_finite_end_count: Option<u64>) -> MetricSummaryRow {
    MetricSummaryRow {
        attempt_id: row.attempt_id,
        run_id: row.run_id,
        name: name.into(),
        point_count: 10,
        non_finite_count: non_finite_end_count.unwrap_or(0),
        non_finite_from_step: non_finite_end_count.map(|_| 4),
        non_finite_end_count,
        first_step: 1,
        last_step: 9,
        first_value: None,
        last_value: None,
        min_value: None,
        max_value: None,
        mean_value: None,
    }
}

/// Proves that the charges of an attempt sum to the cost of its receipt, to the nano-dollar.
#[test]
fn a_receipt_is_charged_as_it_costs() {
    let mut ended = EndedRun::new();
    (ended.row.gpu_count, ended.row.usd_per_gpu_hour) = (Some(3), Some(1.37));
    let row = ended.receipt(&End::Recorded(Box::new(recorded())), &ClosedRecords::default(), &[]);
    let seal = AttemptSeal { costs: costs(&row), ..AttemptSeal::of(row.clone()) };
    ended.context.ledger_write(|ledger| ledger.seal_attempt(&seal, at(300))).unwrap();
    let charges = ended.context.ledger_read(|ledger| ledger.charges_of_attempt(row.attempt_id)).unwrap();
    let items: Vec<_> = charges.iter().map(|charge| (charge.item.as_str(), charge.quantity)).collect();
    assert_eq!(items, [("cpu", 45_000), ("gpu", 270_000)]);
    let sum: i64 = charges.iter().filter_map(|charge| charge.amount_nano_usd).sum();
    assert_eq!(Some(sum as f64), row.cost_usd.map(|usd| (usd * 1e9).round()));
}

/// Proves that a receipt has what the exit record measured, that GPU seconds and money follow from that, and that an attempt without a
/// record took at least until its last sign of life.
#[test]
fn a_receipt_has_what_was_measured() {
    let mut ended = EndedRun::new();
    (ended.row.gpu_count, ended.row.usd_per_gpu_hour) = (Some(4), Some(2.0));
    let row = ended.receipt(&End::Recorded(Box::new(recorded())), &ClosedRecords::default(), &[]);
    assert_eq!((row.exit_code, row.started_at, row.ended_at), (Some(3), Some(at(100)), Some(at(200))));
    assert_eq!((row.wall_seconds, row.cpu_seconds, row.log_bytes_lost), (Some(90.0), Some(45.0), Some(7)));
    assert_eq!((row.gpu_seconds, row.cost_usd), (Some(360.0), Some(0.2)));
    assert!(row.termination_evidence.is_some() && row.termination_secondary.is_some());
    assert_eq!(row.fingerprint, None, "nothing is known of a cause");
    let outlived = ExitRecord { main_ended_at: Some(at(155)), ..recorded() };
    let row = ended.receipt(&End::Recorded(Box::new(outlived)), &ClosedRecords::default(), &[]);
    assert_eq!(
        (row.ended_at, row.wall_seconds),
        (Some(at(200)), Some(45.0)),
        "not what came after the script"
    );
    assert_eq!((row.gpu_seconds, row.cost_usd), (Some(180.0), Some(0.1)));

    ended.row.heartbeat_at = Some(at(130));
    let closed = ClosedRecords { heartbeat_at: Some(at(160)), ..ClosedRecords::default() };
    let lost = End::Lost { why: "gone".into(), rebooted: false };
    let row = ended.receipt(&lost, &closed, &[]);
    assert_eq!((row.ended_at, row.wall_seconds), (Some(at(160)), Some(60.0)));
    let row = ended.receipt(&End::NeverLaunched, &ClosedRecords::default(), &[]);
    assert_eq!((row.ended_at, row.wall_seconds), (Some(at(130)), Some(30.0)));
}

/// Proves that an attempt whose exit was not recorded began when its shim did, where the ledger does not know it: its disk was full.
#[test]
fn a_start_that_only_the_shim_wrote_down_counts() {
    let mut ended = EndedRun::new();
    ended.row.started_at = None;
    let machine = json!({ "host": "h", "machine_id": null, "boot_id": "b", "pid_namespace": "p" });
    let shim = json!({
        "version": 1, "shim": { "pid": 1, "start_ticks": 1 }, "machine": machine, "child": null,
        "started_at": at(100), "main_ended_at": null,
    });
    std::fs::write(ended.files().shim_json(), shim.to_string()).unwrap();
    let closed = ClosedRecords { beside_at: Some(at(130)), ..ClosedRecords::default() };
    let lost = End::Lost { why: "gone".into(), rebooted: false };
    let row = ended.receipt(&lost, &closed, &[]);
    assert_eq!((row.started_at, row.wall_seconds), (Some(at(100)), Some(30.0)));
}

/// Proves that the last cause that is known has a fingerprint in the receipt.
#[test]
fn a_known_cause_has_a_fingerprint() {
    let ended = EndedRun::new();
    let verdict = TerminationVerdict { fingerprint: "out of memory".into(), ..ended.verdict() };
    let end = End::Recorded(Box::new(recorded()));
    let row =
        receipt(&ended.context, ended.row.clone(), &end, &ClosedRecords::default(), &in_rung(&[]), &verdict);
    assert_eq!(row.fingerprint.as_deref(), Some("out of memory"));
}

/// Proves that what the script resumed from counts only where it records that itself, and that the newest own checkpoint with a manifest
/// is the last committed one.
#[test]
fn a_receipt_names_the_checkpoints_of_the_attempt() {
    let mut ended = EndedRun::new();
    ended.row.resumed_from_step = Some(1);
    let end = End::Recorded(Box::new(recorded()));
    let frames = vec![frame(5, CheckpointChange::Committed), frame(3, CheckpointChange::Resumed)];
    let mut closed = ClosedRecords {
        checkpoints: frames,
        segments: vec![segment(&ended.row, "stdout")],
        ..ClosedRecords::default()
    };
    assert_eq!(ended.receipt(&end, &closed, &[]).resumed_from_step, Some(1), "as it was expected");
    closed.segments.push(segment(&ended.row, "sdk"));
    let row = ended.receipt(&end, &closed, &[]);
    assert_eq!(row.resumed_from_step, Some(3));
    assert_eq!(row.resumed_from_manifest_sha256.as_deref(), Some("manifest-3"));

    let committed = CheckpointState::Committed;
    let of_other = CheckpointRow {
        attempt_id: EndedRun::attempt(&ended.run, 2).attempt_id,
        ..ended.checkpoint(9, committed, Some("other"))
    };
    let all = [
        ended.checkpoint(4, committed, Some("four")),
        ended.checkpoint(6, committed, Some("six")),
        ended.checkpoint(7, CheckpointState::Writing, None),
        of_other,
    ];
    let row = ended.receipt(&end, &ClosedRecords::default(), &all);
    assert_eq!(
        (row.last_committed_step, row.last_committed_manifest_sha256.as_deref()),
        (Some(6), Some("six"))
    );
}

/// Proves that a model which was committed beside the framework's checkpoints, and after them, is neither what the
/// receipt names as committed nor what the run continues from, and that what was touched meanwhile does not count once
/// the log is there.
#[test]
fn a_model_beside_checkpoints_is_not_continued_from() {
    let mut ended = EndedRun::new();
    ended.row.last_committed_step = Some(31);
    ended.context.change_run(ended.run.run_id, |run| run.run_file_path = Some("run.toml".into())).unwrap();
    let end = End::Recorded(Box::new(recorded()));
    let adopted = ended.checkpoint(30, CheckpointState::Superseded, Some("adopted"));
    let model = ended.checkpoint(31, CheckpointState::Committed, Some("model"));
    let seen = |rows: &[CheckpointRow], models: &[&CheckpointRow]| {
        let models = models.iter().map(|row| row.object_prefix.clone()).collect();
        let checkpoints = RungCheckpoints { rows: rows.to_vec(), models };
        let (context, closed) = (&ended.context, ClosedRecords::default());
        let row = receipt(context, ended.row.clone(), &end, &closed, &checkpoints, &ended.verdict());
        let after = RunAfter::of(context, &row, (&checkpoints, &closed), RunState::Failed).unwrap();
        let mut run = ended.run.clone();
        after.apply(&mut run);
        (row.last_committed_step, run.last_committed_step)
    };
    let both = [adopted.clone(), model.clone()];
    assert_eq!(seen(&both, &[&model]), (Some(30), Some(30)));
    assert_eq!(seen(&both, &[]), (Some(31), Some(31)), "it is more than a model");
    // The framework's checkpoint is of an attempt before.
    let before = CheckpointRow { attempt_id: EndedRun::attempt(&ended.run, 9).attempt_id, ..adopted };
    assert_eq!(seen(&[before, model.clone()], &[&model]), (None, Some(30)));
    assert_eq!(seen(&[], &[]).0, Some(31), "the log was lost");
}

/// Proves that a run has the sums of its attempts, each once, and the newest committed step of the log, of the run
/// before, or of the record.
#[test]
fn a_run_has_the_sums_of_its_attempts() {
    let ended = EndedRun::new();
    let mut first = ended.row.clone();
    (first.wall_seconds, first.termination_reason) = (Some(5.0), Some(TerminationReason::Hang));
    ended
        .context
        .ledger_write(|ledger| ledger.seal_attempt(&AttemptSeal::of(first.clone()), at(300)))
        .unwrap();
    let mut second = EndedRun::attempt(&ended.run, 2);
    ended.context.ledger_write(|ledger| ledger.insert_attempt(&second)).unwrap();
    (second.wall_seconds, second.gpu_seconds, second.cost_usd) = (Some(20.0), Some(40.0), Some(1.5));
    second.termination_reason = Some(TerminationReason::Hang);
    let committed = [
        ended.checkpoint(8, CheckpointState::Committed, Some("m")),
        ended.checkpoint(9, CheckpointState::Abandoned, Some("m")),
    ];
    let closed = ClosedRecords {
        checkpoints: vec![frame(5, CheckpointChange::Committed), frame(7, CheckpointChange::Resumed)],
        ..ClosedRecords::default()
    };
    let of = |checkpoints: &[CheckpointRow], state, before: Option<Step>| {
        let after = RunAfter::of(&ended.context, &second, (&in_rung(checkpoints), &closed), state).unwrap();
        let mut run = RunRow { last_committed_step: before, ..ended.run.clone() };
        after.apply(&mut run);
        run
    };
    let run = of(&committed, RunState::Completed, None);
    assert_eq!((run.state, run.attempt_count, run.last_committed_step), (RunState::Completed, 2, Some(8)));
    assert_eq!((run.wall_seconds, run.gpu_seconds, run.cost_usd), (25.0, 40.0, Some(1.5)));
    assert_eq!((run.started_at, run.ended_at), (Some(at(100)), Some(ended.context.clock.now())));
    assert_eq!(run.termination_reason, Some(TerminationReason::Hang));
    let waits = of(&[], RunState::Waiting, Some(6));
    assert_eq!((waits.ended_at, waits.last_committed_step), (None, Some(6)), "the log was lost");
    assert_eq!(of(&[], RunState::Waiting, None).last_committed_step, Some(5), "the record has it");
    let free = AttemptRow { cost_usd: None, ..second.clone() };
    let after = RunAfter::of(&ended.context, &free, (&in_rung(&[]), &closed), RunState::Waiting).unwrap();
    let mut run = ended.run.clone();
    after.apply(&mut run);
    assert_eq!(run.cost_usd, None, "what costs nothing known has no sum");
}

/// Proves that a mirror of checkpoints which disagrees with its log does not keep a receipt open: it is sealed without the mirror, with an
/// event that says so; and that what is sealed already with other contents stays as it is.
#[test]
fn a_damaged_mirror_does_not_keep_a_receipt_open() {
    let ended = EndedRun::new();
    let stored = ended.checkpoint(4, CheckpointState::Committed, Some("four"));
    ended.context.ledger_write(|ledger| ledger.upsert_checkpoints(std::slice::from_ref(&stored))).unwrap();
    let other = CheckpointRow { manifest_sha256: Some("another".into()), step: 5, ..stored };
    let row = ended.receipt(&End::Recorded(Box::new(recorded())), &ClosedRecords::default(), &[]);
    let mut seal = AttemptSeal { checkpoints: vec![other], ..AttemptSeal::of(row) };
    seal_rows(&ended.context, &mut seal).unwrap();
    let events = ended.context.ledger_read(|ledger| ledger.events_of_attempt(ended.row.attempt_id)).unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, [EventKind::CheckpointLogDamaged.as_str()]);
    assert!(
        events[0].message.starts_with("the checkpoint log disagrees with the ledger"),
        "{}",
        events[0].message
    );

    let mut again =
        AttemptSeal { attempt: AttemptRow { exit_code: Some(4), ..seal.attempt.clone() }, ..seal };
    assert_eq!(seal_rows(&ended.context, &mut again).unwrap_err().kind, ErrorKind::Integrity);
    let unknown =
        AttemptRow { attempt_id: EndedRun::attempt(&ended.run, 2).attempt_id, ..again.attempt.clone() };
    let checkpoints = vec![ended.checkpoint(9, CheckpointState::Committed, Some("nine"))];
    let mut unknown = AttemptSeal { checkpoints, ..AttemptSeal::of(unknown) };
    assert_eq!(seal_rows(&ended.context, &mut unknown).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(unknown.checkpoints.len(), 1, "another fault is not the mirror's");
}

/// Proves that a seal is tried again while other processes change the run, that one which another process sealed before has no time,
/// and that another fault ends it at once.
#[test]
fn a_seal_is_tried_again_while_the_run_changes() {
    let ended = EndedRun::new();
    let row = ended.receipt(&End::Recorded(Box::new(recorded())), &ClosedRecords::default(), &[]);
    let after =
        RunAfter::of(&ended.context, &row, (&in_rung(&[]), &ClosedRecords::default()), RunState::Failed)
            .unwrap();
    let (seal, sealed_at) = seal_with_run(&ended.context, AttemptSeal::of(row.clone()), &after).unwrap();
    assert_eq!((seal.run.unwrap().state, sealed_at), (RunState::Failed, Some(ended.context.clock.now())));
    let again = seal_with_run(&ended.context, AttemptSeal::of(row.clone()), &after).unwrap();
    assert_eq!(again.1, None);
    let other = AttemptSeal::of(AttemptRow { exit_code: Some(9), ..row });
    let refused = seal_with_run(&ended.context, other, &after).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Integrity);
    assert!(is_tried_again(ErrorKind::Changed, 1));
    assert!(!is_tried_again(ErrorKind::Changed, 0) && !is_tried_again(ErrorKind::Integrity, 1));
}

/// Proves that what was done to an attempt and what it lost is its history: actions, checkpoints, output without room, fetches, what its
/// rung began with, and data that changed.
#[test]
fn what_happened_to_an_attempt_is_its_history() {
    let ended = EndedRun::new();
    let (context, row) = (&ended.context, &ended.row);
    let closed = ClosedRecords {
        checkpoints: vec![frame(5, CheckpointChange::Committed)],
        ..ClosedRecords::default()
    };
    let events = checkpoint_events(row, &closed);
    assert_eq!(
        (events.len(), events[0].step, events[0].message.as_str()),
        (1, Some(5), "12 bytes in 0.250 s")
    );

    assert!(action_events(context, row).unwrap().is_empty());
    let action = OwnAction {
        at: at(140),
        kind: ActionKind::HangKill,
        kill_sent: false,
        why: "no sign of life".into(),
    };
    actions::append(&ended.files(), &action).unwrap();
    let events = action_events(context, row).unwrap();
    assert_eq!((events.len(), events[0].message.as_str(), events[0].at), (1, "no sign of life", at(140)));

    let lost = |bytes| lost_output(&AttemptRow { log_bytes_lost: bytes, ..row.clone() });
    assert_eq!((lost(None), lost(Some(0))), (None, None));
    assert_eq!(lost(Some(1)).unwrap().message, "1 bytes of output could not be stored: the disk was full");

    assert!(warm_start_event(context, row).is_none());
    let began = json!({ "rung": "10%", "root": "/r", "step": 4, "manifest_sha256": null });
    std::fs::write(ended.files().warm_start_json(), began.to_string()).unwrap();
    assert_eq!(warm_start_event(context, row).unwrap().message, "begins with the weights of step 4 of 10%");

    assert!(fetch_events(context, row).is_empty());
    let report = json!({
        "at": "x", "location": "s3://b", "epoch": 1, "step": 5, "manifest_sha256": null, "fetched_bytes": 9, "skipped": ["one"],
        "lost_steps": 0, "lost_gpu_hours": 0.0, "fenced": [], "fenced_steps": 0, "fenced_gpu_hours": 0.0,
    });
    std::fs::write(ended.files().fetch_json(), report.to_string()).unwrap();
    let messages: Vec<_> =
        fetch_events(context, row).into_iter().map(|event| (event.step, event.message)).collect();
    assert_eq!(messages[1], (Some(5), "one".into()));
    assert!(messages[0].1.starts_with("step 5 was brought from s3://b"), "{messages:?}");
}

/// Proves that data which changed after it was hashed is an event that names the first file and counts the others, and lists at most 20.
#[test]
fn changed_data_is_named_and_counted() {
    let ended = EndedRun::new();
    assert!(changed_data(&ended.context, &ended.row).is_none());
    let path = ended.context.home.layout.run(ended.run.run_id).data_files_json();
    for (count, said) in
        [(1, "`f0` changed"), (2, "`f0` and 1 more file changed"), (23, "`f0` and 22 more files changed")]
    {
        let identity = json!(null);
        let state = |number: usize| {
            let file = ended.folder.path().join(format!("f{number}"));
            std::fs::write(&file, "x").unwrap();
            json!({ "set": "train", "path": format!("f{number}"), "file": file, "identity": identity })
        };
        std::fs::write(&path, Value::from_iter((0..count).map(state)).to_string()).unwrap();
        let event = changed_data(&ended.context, &ended.row).unwrap();
        assert!(event.message.contains(said), "{}", event.message);
        let fields = event.fields_json.unwrap();
        assert_eq!(
            (&fields["count"], fields["files"].as_array().unwrap().len()),
            (&json!(count), count.min(20))
        );
    }
}

/// Proves that training data which nothing opened is an event, of a training attempt with steps only.
#[test]
fn unopened_data_is_an_event_of_training() {
    let ended = EndedRun::new();
    let row = AttemptRow { last_step: Some(3), ..ended.row.clone() };
    let unopened = |row: &AttemptRow, by: &str| {
        let events = [event(row, EventKind::DataOpened, json!({ "data": "train", "by": by }))];
        inputs::unopened_data(&ended.context, row, &events).unwrap()
    };
    assert!(
        unopened(&row, "none").unwrap().message.starts_with("data `train`: none of its files was opened")
    );
    assert!(unopened(&row, "attempt").is_none());
    assert!(unopened(&ended.row, "none").is_none(), "it took no step");
    assert!(unopened(&AttemptRow { kind: LaunchKind::Prove, ..row.clone() }, "none").is_none());
}

/// Proves that an effective batch is compared with that of the attempt before, on the same rung.
#[test]
fn a_changed_batch_is_an_event() {
    let ended = EndedRun::new();
    let mut first = ended.row.clone();
    (first.effective_batch, first.termination_reason) = (Some(64), Some(TerminationReason::Hang));
    ended
        .context
        .ledger_write(|ledger| ledger.seal_attempt(&AttemptSeal::of(first.clone()), at(300)))
        .unwrap();
    let batch = |samples: Option<u64>| {
        let second = AttemptRow { effective_batch: samples, ..EndedRun::attempt(&ended.run, 2) };
        inputs::changed_batch(&ended.context, &second).unwrap()
    };
    assert!(batch(None).is_none() && batch(Some(64)).is_none());
    assert_eq!(batch(Some(32)).unwrap().fields_json, Some(json!({ "before": 64, "now": 32 })));
}

/// Proves that only what was used costs something, and that the first piece of evidence is named.
#[test]
fn costs_and_the_first_evidence() {
    let ended = EndedRun::new();
    let row = AttemptRow { gpu_seconds: Some(0.0), cpu_seconds: Some(0.5), ..ended.row.clone() };
    let items: Vec<_> = costs(&row).into_iter().map(|cost| (cost.item, cost.quantity)).collect();
    assert_eq!(items, [("cpu".to_owned(), 0.5)]);
    assert_eq!(first_evidence(&row), "no evidence");
    let row = AttemptRow { termination_evidence: Some(json!([{ "text": "exit code 3" }])), ..row };
    assert_eq!(first_evidence(&row), "exit code 3");
}

/// Proves that progress is counted from the attempt before on the same rung: how long coming back took, the steps that
/// were committed for the first time, and what each cost.
#[test]
fn progress_is_counted_from_the_attempt_before() {
    let ended = EndedRun::new();
    let before = |number: u32, ended_at: i64, committed: Option<Step>| AttemptRow {
        ended_at: Some(at(ended_at)),
        last_committed_step: committed,
        ..EndedRun::attempt(&ended.run, number)
    };
    let mut earlier = EarlierAttempts::default();
    [before(1, 500, Some(40)), before(2, 700, None)].iter().for_each(|attempt| earlier.take(attempt));
    let of = |first_step_at: Option<i64>,
              last: Option<Step>,
              committed: Option<Step>,
              gpu_seconds: Option<f64>| {
        let mut row = EndedRun::attempt(&ended.run, 3);
        (row.last_step, row.last_committed_step, row.gpu_seconds) = (last, committed, gpu_seconds);
        work::note_progress(&mut row, first_step_at.map(at), &earlier);
        (row.recovery_seconds, row.new_committed_steps, row.gpu_hours_per_committed_step)
    };
    assert_eq!(of(Some(760), Some(90), Some(50), Some(7200.0)), (Some(60.0), Some(10), Some(0.2)));
    assert_eq!(of(Some(700), Some(90), Some(40), Some(7200.0)), (Some(0.0), Some(0), None), "nothing new");
    assert_eq!(of(Some(699), None, None, Some(0.0)), (None, None, None), "clocks that disagree");
    assert_eq!(of(None, Some(90), None, None), (None, Some(0), None));
    assert_eq!(of(None, Some(90), Some(42), Some(0.0)), (None, Some(2), None));
    assert_eq!(of(None, Some(90), Some(42), Some(0.5)).2, Some(0.5 / 3600.0 / 2.0));
}

/// Proves that the seed, the rows of the rung, the opened data and the skipped batches are read from the events.
#[test]
fn what_an_attempt_took_is_read_from_its_events() {
    let ended = EndedRun::new();
    let mut row = ended.row.clone();
    let events = [
        event(&row, EventKind::SeedTaken, json!({ "seed": "7" })),
        event(&row, EventKind::DataOpened, json!({ "data": "train", "by": "attempt" })),
        event(&row, EventKind::DataOpened, json!({ "data": "test", "by": "none" })),
    ];
    work::note_inputs(&mut row, &events);
    assert_eq!(row.seed_seen, Some(7));
    assert_eq!((row.data_opened.as_deref(), row.data_not_opened.as_deref()), (Some("train"), Some("test")));
}

/// Proves that only earlier attempts of the same rung count as the ones before.
#[test]
fn earlier_attempts_are_those_of_the_rung() {
    let ended = EndedRun::new();
    let mut first = ended.row.clone();
    (first.last_committed_step, first.termination_reason) = (Some(30), Some(TerminationReason::Hang));
    ended
        .context
        .ledger_write(|ledger| ledger.seal_attempt(&AttemptSeal::of(first.clone()), at(300)))
        .unwrap();
    let closed = ClosedRecords::default();
    let new_steps = |row: AttemptRow| {
        let row = AttemptRow { last_committed_step: Some(50), ..row };
        worked(&ended.context, row, &closed).unwrap().new_committed_steps
    };
    let second = EndedRun::attempt(&ended.run, 2);
    assert_eq!(new_steps(second.clone()), Some(20));
    assert_eq!(new_steps(AttemptRow { rung: "10%".into(), ..second }), Some(50), "of another rung");
    assert_eq!(new_steps(first), Some(50), "an attempt is not before itself");
}

/// Proves that an end is evidence as it was observed, and that nothing is an end while the attempt may be alive.
#[test]
fn an_end_is_evidence_as_it_was_observed() {
    let ended = EndedRun::new();
    let (row, files) = (&ended.row, ended.files());
    let of = |end: &End, closed: &ClosedRecords| gather(row, end, closed, &files).unwrap();
    let closed = ClosedRecords { heartbeat_at: Some(at(190)), ..ClosedRecords::default() };
    let record = |more: fn(&mut ExitRecord)| {
        let mut record = recorded();
        more(&mut record);
        of(&End::Recorded(Box::new(record)), &closed)
    };
    let sent = |why| SignalSent { at: at(150), signal: 15, why };
    let plain = record(|_| {});
    assert_eq!((plain.exit_code, plain.was_signalled, plain.logs.len()), (Some(3), Some(false), 0));
    assert_eq!(plain.progress.seconds_since_last_heartbeat, Some(10.0));
    assert!(!plain.progress.reached_last_step);
    let signalled = |why| {
        let record = ExitRecord { signals: vec![sent(why)], ..recorded() };
        of(&End::Recorded(Box::new(record)), &closed).was_signalled
    };
    assert_eq!(signalled(SignalReason::Leftover), Some(false), "after its end");
    assert_eq!(signalled(SignalReason::Forwarded), Some(true));
    let spawn =
        record(|it| it.spawn_error = Some(SpawnError { errno: None, message: "no such file".into() }));
    assert_eq!(spawn.spawn_error.as_deref(), Some("no such file"));

    let lost = of(&End::Lost { why: "rebooted".into(), rebooted: true }, &closed);
    assert_eq!((lost.shim_lost.as_deref(), lost.rebooted, lost.exit_code), (Some("rebooted"), true, None));
    let never = || of(&End::NeverLaunched, &closed).shim_lost.unwrap();
    assert!(never().starts_with("the supervisor ended before"));
    std::fs::write(files.shim_lock(), "").unwrap();
    assert!(never().starts_with("its shim ended before"));
    let recorded = End::of(Observation::Exited(Box::new(recorded())));
    assert!(matches!(recorded, Some(End::Recorded(_))));
    assert!(End::of(Observation::CannotTell { why: String::new(), is_lasting: false }).is_none());
}

/// Proves that a stop was followed by a kill where the grace period ended, or where the end was requested at once.
#[test]
fn a_kill_belongs_to_the_action_that_it_followed() {
    let ended = EndedRun::new();
    let action = |kind| OwnAction { at: at(140), kind, kill_sent: false, why: "test".into() };
    for kind in [ActionKind::StopRequested, ActionKind::HangKill] {
        actions::append(&ended.files(), &action(kind)).unwrap();
    }
    let killed = |killed_after_grace, signals: Vec<SignalReason>| -> Vec<bool> {
        let sent = |why| SignalSent { at: at(150), signal: 9, why };
        let signals = signals.into_iter().map(sent).collect();
        let end = End::Recorded(Box::new(ExitRecord { killed_after_grace, signals, ..recorded() }));
        let evidence = gather(&ended.row, &end, &ClosedRecords::default(), &ended.files()).unwrap();
        evidence.own_actions.iter().map(|action| action.kill_sent).collect()
    };
    assert_eq!(killed(false, Vec::new()), [false, false]);
    assert_eq!(killed(false, vec![SignalReason::StopRequested]), [false, false]);
    assert_eq!(killed(false, vec![SignalReason::KillRequested]), [true, false]);
    assert_eq!(killed(true, Vec::new()), [true, true]);
}

/// Proves that a limit which is reached after the script itself ended well does not count as the reason of its end, and
/// that one before it does, as does a person's request, and one after a failure.
#[test]
fn a_limit_after_a_good_end_is_no_reason() {
    let kept = |kind: ActionKind, exit_code: i32, main_ended_at: Timestamp| {
        let ended = EndedRun::new();
        let action = OwnAction { at: at(140), kind, kill_sent: false, why: "test".into() };
        actions::append(&ended.files(), &action).unwrap();
        let (exit_code, main_ended_at) = (Some(exit_code), Some(main_ended_at));
        let end = End::Recorded(Box::new(ExitRecord { exit_code, main_ended_at, ..recorded() }));
        let evidence = gather(&ended.row, &end, &ClosedRecords::default(), &ended.files()).unwrap();
        !evidence.own_actions.is_empty()
    };
    for kind in [ActionKind::HangKill, ActionKind::TimeoutKill, ActionKind::BudgetStop] {
        assert!(!kept(kind, 0, at(130)), "{kind:?}");
        assert!(kept(kind, 0, at(150)) && kept(kind, 1, at(130)), "{kind:?}");
    }
    assert!(kept(ActionKind::StopRequested, 0, at(130)));
}

/// Proves that the last step was reached where an event says so.
#[test]
fn progress_is_what_the_record_shows() {
    let ended = EndedRun::new();
    let closed = |origin: &str, kind: EventKind| ClosedRecords {
        segments: vec![segment(&ended.row, origin)],
        events: vec![event(&ended.row, kind, Value::Null)],
        ..ClosedRecords::default()
    };
    let progress = |closed: &ClosedRecords| {
        let end = End::Recorded(Box::new(recorded()));
        let progress = gather(&ended.row, &end, closed, &ended.files()).unwrap().progress;
        progress.reached_last_step
    };
    assert!(progress(&closed("sdk", EventKind::MaxStepsReached)));
    assert!(!progress(&closed("stdout", EventKind::SeedTaken)));
}

/// Proves that a training loss that is not finite to the end is evidence, if every metric that is as likely the training loss is.
#[test]
fn a_loss_is_not_finite_if_all_likely_ones_are() {
    let ended = EndedRun::new();
    let found = |metrics: &[(&str, Option<u64>)]| {
        let summaries = metrics.iter().map(|(name, count)| metric(&ended.row, name, *count)).collect();
        let closed = ClosedRecords { summaries, ..ClosedRecords::default() };
        let end = End::Recorded(Box::new(recorded()));
        gather(&ended.row, &end, &closed, &ended.files()).unwrap().non_finite_loss.map(|loss| loss.metric)
    };
    assert_eq!(found(&[("train_loss", Some(3)), ("accuracy", None)]).as_deref(), Some("train_loss"));
    assert_eq!(found(&[("train_loss", None), ("accuracy", Some(3))]), None);
    assert_eq!(found(&[("accuracy", Some(3))]), None, "it is not a loss");
    assert_eq!(found(&[("train_loss", Some(3)), ("train/loss", None)]), None);
    assert_eq!(found(&[("train/loss", Some(3)), ("train_loss", Some(2))]).as_deref(), Some("train/loss"));
}

/// Proves that both logs are scanned, and that lines get their times where these are kept.
#[test]
fn logs_are_scanned_with_their_times() {
    let ended = EndedRun::new();
    let files = ended.files();
    let line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
    std::fs::create_dir_all(files.stderr_log().parent().unwrap()).unwrap();
    std::fs::write(files.stderr_log(), line).unwrap();
    let marks: Vec<u8> = [0_i64.to_le_bytes(), 42_i64.to_le_bytes()].concat();
    std::fs::write(files.stderr_times(), marks).unwrap();
    let end = End::Recorded(Box::new(recorded()));
    let evidence = gather(&ended.row, &end, &ClosedRecords::default(), &files).unwrap();
    assert_eq!(evidence.logs.len(), 1);
    let shown = format!("{:?}", evidence.logs[0]);
    assert!(shown.contains("OutOfMemoryError") && shown.contains("42"), "{shown}");
}

/// Proves that a value which the log rejects is looked for in the files of settings that the command names, and in no other file.
#[test]
fn a_rejected_value_is_looked_for_in_the_settings() {
    let ended = EndedRun::new();
    let files = ended.files();
    let named = |name: &str, text: &str| {
        let path = ended.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        NamedFile { path, size_bytes: text.len() as u64, blake3: None, modified_at: None }
    };
    let capture = Capture {
        git: Default::default(),
        script: None,
        named_files: vec![named("c.yaml", "lr: 0,1\n"), named("d.csv", "x\n0,2\n")],
        folder: None,
        outputs: Vec::new(),
        environment_lock: Default::default(),
        container: Default::default(),
        host: Default::default(),
        gpus: Default::default(),
        owner_default: None,
        incomplete: None,
    };
    std::fs::write(files.capture_json(), serde_json::to_vec(&capture).unwrap()).unwrap();
    let error = |value: &str| format!("ValueError: could not convert string to float: '{value}'\n");
    std::fs::create_dir_all(files.stderr_log().parent().unwrap()).unwrap();
    std::fs::write(files.stderr_log(), error("0,1") + &error("0,2")).unwrap();
    let end = End::Recorded(Box::new(recorded()));
    let evidence = gather(&ended.row, &end, &ClosedRecords::default(), &files).unwrap();
    assert_eq!(evidence.rejected_settings, ["0,1"]);
}

/// Proves that a sealed attempt is answered with its stored decision, that a receipt which was not kept before a kill is kept then without
/// hashes of files and restores as it was sealed, and that sealing what is not in the ledger is an error.
#[test]
fn sealing_again_answers_with_what_is_stored() {
    let ended = EndedRun::new();
    let unknown: AttemptId = format!("att_{:026}", 9).parse().unwrap();
    assert_eq!(seal(&ended.context, &unknown).err().unwrap().kind, ErrorKind::NotFound);
    let row = ended.receipt(&End::Recorded(Box::new(recorded())), &ClosedRecords::default(), &[]);
    ended.context.ledger_write(|ledger| ledger.seal_attempt(&AttemptSeal::of(row.clone()), at(300))).unwrap();
    let first = seal(&ended.context, &row.attempt_id).unwrap();
    assert_eq!((first.row.state, first.row.exit_code), (AttemptState::Sealed, Some(3)));
    let stored = ended.context.ledger_read(|ledger| ledger.retries_of_run(ended.run.run_id)).unwrap();
    assert_eq!(stored.len(), 1, "the decision was made now, and written down");
    let path = ended.context.home.layout.run(ended.run.run_id).row_copy(RowCopy::Receipt(row.attempt_id));
    let kept = row_copies::read(&path).unwrap();
    assert!(kept.is_later() && kept.files().is_empty());
    assert_eq!(kept.attempts().unwrap()[0].sealed_at, Some(at(300)));
    assert_eq!(ended.context.ledger_read(|ledger| ledger.differences(&kept)).unwrap(), Vec::<String>::new());
    assert!(!ended.context.keep_sealed_later(ended.run.run_id, row.attempt_id).unwrap(), "it stays as it is");
    // As after a kill between the seal, which has the decision, and its copy.
    ended.context.home.remove(&path).unwrap();
    let again = seal(&ended.context, &row.attempt_id).unwrap();
    assert_eq!((&again.decision, path.exists()), (&stored[0], true));
    let second = EndedRun::attempt(&ended.run, 2);
    ended.context.ledger_write(|ledger| ledger.insert_attempt(&second)).unwrap();
    assert_eq!(seal(&ended.context, &second.attempt_id).unwrap().decision.attempt_id, second.attempt_id);
    assert_eq!(decision_of(&ended.context, &again.row).unwrap(), stored[0], "each attempt has its own");
}

/// Proves that an attempt that was never launched is sealed as such, with its run, and that its receipt is kept beside the run.
#[test]
fn an_attempt_that_was_never_launched_is_sealed() {
    let ended = EndedRun::new();
    let sealed = seal(&ended.context, &ended.row.attempt_id).unwrap();
    assert_eq!((sealed.row.state, sealed.row.exit_code), (AttemptState::Sealed, None));
    let copies = ended.context.home.layout.run(ended.run.run_id).row_copies();
    assert!(std::fs::read_dir(copies).unwrap().count() > 0);
    let stored = ended.context.ledger_read(|ledger| ledger.verify_receipt(ended.row.attempt_id)).unwrap();
    assert_eq!(stored, Some(true));
}

/// Proves that a rung of a ladder is judged, and that a plan which cannot be read keeps no receipt open.
#[test]
fn a_rung_is_judged_by_the_stored_plan() {
    let ended = EndedRun::new();
    let command = ["sh".to_owned()];
    let mut plan = Plan::for_command(&command);
    plan.ladder = Some(LadderSection { rungs: vec![0.1, 1.0], promote: None, warm_start: false });
    let row = AttemptRow { rung: "10%".into(), ..ended.row.clone() };
    let is_judged = |plan: Value| {
        let run = RunRow { config_json: plan, ..ended.run.clone() };
        judged(&ended.context, &run, &row, (&[], &[])).unwrap().is_some()
    };
    assert!(is_judged(json!(plan)));
    assert!(!is_judged(json!({ "damaged": true })));
}

/// Proves that a log which cannot be read is an error, and no log without findings.
#[test]
fn a_log_that_cannot_be_read_is_an_error() {
    let ended = EndedRun::new();
    let files = ended.files();
    std::fs::create_dir_all(files.stdout_log()).unwrap();
    let end = End::Recorded(Box::new(recorded()));
    let refused = gather(&ended.row, &end, &ClosedRecords::default(), &files).map(drop).unwrap_err();
    assert!(refused.to_string().contains("stdout.log"), "{refused}");
}
