use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trackway_checkpoint::bulk::{Dtype, TensorRef, TensorSpec};
use trackway_checkpoint::{CheckpointError, Commit, ErrorKind, Kind};
use trackway_core::{AttemptId, Clock as _, ManualClock, RunId, SequentialIds, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::record::{Event, Frame, METRIC_NAMES_MAX, Origin, Segment, read_segment};
use trackway_system::{SystemClock, SystemIds};

use crate::checkpoints::cost;
use crate::settings::Settings;
use crate::signal::{self, Arrival};
use crate::{CONTROL_POLL_MICROS, Recorder, SegmentInfo, SegmentWriter};

/// How long a test waits for a save that takes milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An attempt with a clock that a test moves.
pub(crate) struct Attempt {
    pub folder: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub settings: Settings,
    pub sigterm: &'static Arrival,
}

impl Attempt {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ids = SequentialIds::default();
        let settings = Settings {
            record_folder: Some(folder.path().join("records")),
            run: RunId::new(&ids).to_string(),
            attempt: AttemptId::new(&ids).to_string(),
            control_file: Some(folder.path().join("control.jsonl")),
            checkpoint_root: Some(folder.path().join("checkpoints")),
            epoch: Some(1),
            ..Settings::default()
        };
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        Self { folder, clock, settings, sigterm: Box::leak(Box::new(Arrival::none())) }
    }

    pub fn attach(&self) -> Recorder {
        Recorder::with(
            self.settings.clone(),
            self.clock.clone(),
            Arc::new(SequentialIds::default()),
            self.sigterm,
        )
    }

    pub fn ask(&self, text: &str) {
        let path = self.settings.control_file.as_ref().unwrap();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self.clock.advance_micros(CONTROL_POLL_MICROS);
    }

    fn segments(&self) -> Vec<Segment> {
        let entries = std::fs::read_dir(self.settings.record_folder.as_ref().unwrap()).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| read_segment(&std::fs::read(path).unwrap()).unwrap()).collect()
    }

    /// Requests a stop, by SIGTERM or by the control file.
    pub fn stop(&self, by_signal: bool) {
        if by_signal {
            self.sigterm.note(self.clock.monotonic_micros());
        } else {
            self.ask("{\"version\":1,\"id\":1,\"command\":\"stop\"}\n");
        }
    }

    /// The events of a kind.
    pub fn events(&self, kind: &str) -> Vec<Event> {
        let event = |frame: &Frame| match frame {
            Frame::Event(event) if event.kind == kind => Some(event.clone()),
            _ => None,
        };
        self.segments()
            .iter()
            .flat_map(|segment| &segment.frames)
            .filter_map(|located| event(&located.frame))
            .collect()
    }

    /// Why each checkpoint was made.
    pub fn reasons(&self) -> Vec<(u64, String)> {
        let events = self.events(EventKind::CheckpointReason.as_str());
        events.into_iter().map(|event| (event.step.unwrap(), event.fields[0].1.clone())).collect()
    }

    /// The values of a metric with their steps.
    fn metric(&self, name: &str) -> Vec<(u64, f64)> {
        let segments = self.segments();
        let points = segments.iter().flat_map(Segment::metric_points);
        points.filter(|point| &*point.name == name).map(|point| (point.step, point.value)).collect()
    }

    /// Saves as a loop does whose save takes so long.
    fn save_for(&self, run: &Recorder, step: u64, seconds: i64) {
        run.save_checkpoint(step, &[], |writer| {
            self.clock.advance_micros(seconds * 1_000_000);
            writer.file("w.bin", Kind::Weights, b"state")
        })
        .unwrap();
    }

    pub fn acks(&self) -> Vec<(u64, &'static str, Option<u64>)> {
        let ack = |frame: &Frame| match frame {
            Frame::ControlAck(ack) => Some((ack.id, ack.outcome.as_str(), ack.step)),
            _ => None,
        };
        self.segments()
            .iter()
            .flat_map(|segment| &segment.frames)
            .filter_map(|located| ack(&located.frame))
            .collect()
    }
}

fn save(run: &Recorder, step: u64) -> Result<Commit, CheckpointError> {
    run.save_checkpoint(step, &[("loss", 0.5)], |writer| writer.file("w.bin", Kind::Weights, b"state"))
}

/// Proves that outside an attempt every call is harmless, and that the error of a save names what is missing.
#[test]
fn outside_an_attempt_nothing_happens() {
    let run =
        Recorder::with(Settings::default(), Arc::new(SystemClock), Arc::new(SystemIds), &signal::SIGTERM);
    run.log(1, &[("loss", 0.5)]);
    run.event("started", None, &[]);
    run.finish();
    assert!(!run.enabled() && !run.checkpoint_due(100) && run.resume().unwrap().is_none());
    let error = save(&run, 1).unwrap_err().to_string();
    assert!(error.contains("`TRACKWAY_CHECKPOINTS` is not set"), "{error}");
}

/// Proves that without a cadence each call saves whose step the script chose, and that a loop which asks at each step
/// saves at the first one and then seldom enough; and that the record shows what decides.
#[test]
fn without_a_cadence_the_script_decides() {
    let attempt = Attempt::new();
    let run = attempt.attach();
    let mut saved = Vec::new();
    for step in [1000, 2000, 3000] {
        assert!(run.checkpoint_due(step) && run.checkpoint_due(step), "asked twice at one step");
        save(&run, step).unwrap();
        saved.push(step);
    }
    // From here on at each step, of a second; a save takes 0.02 s.
    for step in 3001..=4000 {
        attempt.clock.advance_micros(1_000_000);
        if run.checkpoint_due(step) {
            run.save_checkpoint(step, &[], |writer| {
                attempt.clock.advance_micros(20_000);
                writer.file("w.bin", Kind::Weights, b"state")
            })
            .unwrap();
            saved.push(step);
        }
    }
    let gaps: Vec<u64> = saved.windows(2).map(|pair| pair[1] - pair[0]).skip(2).collect();
    assert!((5..=14).contains(&gaps.len()), "{saved:?}");
    assert!(gaps.iter().all(|gap| *gap >= 60) && gaps.is_sorted(), "{gaps:?}");
    run.finish();
    let asked = attempt.events(EventKind::CheckpointAsked.as_str());
    assert_eq!((asked.len(), asked[0].step), (1, Some(1000)));
    assert_eq!(asked[0].fields, [("cadence".into(), "each call".into())]);
    let default = attempt.events(EventKind::CheckpointDefaultCadence.as_str());
    assert_eq!((default.len(), default[0].step), (1, Some(3001)));
    let again = attempt.attach();
    assert_eq!(again.resume().unwrap().unwrap().step, *saved.last().unwrap());
    assert!(!again.checkpoint_due(saved.last().unwrap() + 1), "a resume counts as a call");
}

/// Proves that a script that asks at each step, with a longer cadence, leaves a few events with its counts, however often it asks, the
/// last one complete; and that asking twice at a step counts once.
#[test]
fn how_often_a_script_asks_is_counted() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(50);
    let run = attempt.attach();
    for step in 1..=60 {
        if run.checkpoint_due(step) && run.checkpoint_due(step) {
            save(&run, step).unwrap();
        }
        assert!(!run.checkpoint_due(step), "it is saved, or was not due");
    }
    run.finish();
    let counts: Vec<[String; 3]> = attempt
        .events(EventKind::CheckpointAsks.as_str())
        .iter()
        .map(|event| ["asked", "not_due", "final"].map(|name| event.field(name).unwrap().to_owned()))
        .collect();
    let expected = [("2", "2"), ("4", "4"), ("8", "8"), ("16", "16"), ("32", "32"), ("60", "59")];
    let is_final = |asked: &str| if asked == "60" { "true" } else { "false" };
    assert_eq!(counts, expected.map(|(asked, not_due)| [asked, not_due, is_final(asked)].map(str::to_owned)));
}

/// Proves that the metric of `keep.best` is taken from what was logged at the step of a save, that one which is passed goes
/// before it, and that a save without a value is reported once.
#[test]
fn the_best_is_known_from_what_was_logged() {
    let mut attempt = Attempt::new();
    attempt.settings.best_metric = Some("val_accuracy".into());
    let run = attempt.attach();
    let metric_of = |step: u64, logged: Option<u64>, passed: &[(&str, f64)]| {
        if let Some(at) = logged {
            run.log(at, &[("loss", 1.0), ("val_accuracy", at as f64)]);
        }
        run.save_checkpoint(step, passed, |writer| writer.file("w.bin", Kind::Weights, b"state")).unwrap();
        let loaded = attempt.attach().resume().unwrap().unwrap();
        loaded.manifest.metrics.get("val_accuracy").copied()
    };
    assert_eq!(metric_of(10, Some(10), &[]), Some(10.0));
    assert_eq!(metric_of(20, Some(20), &[("val_accuracy", 0.5)]), Some(0.5));
    assert_eq!(metric_of(30, Some(29), &[]), None);
    assert_eq!(metric_of(40, None, &[("loss", 0.1)]), None);
    run.finish();
    assert_eq!(attempt.events(EventKind::CheckpointBestUnknown.as_str()).len(), 1);
}

/// Proves that without a checkpoint root no checkpoint is ever due, and that a request for one is refused.
#[test]
fn without_a_root_no_checkpoint_is_due() {
    let mut attempt = Attempt::new();
    attempt.settings.checkpoint_root = None;
    attempt.settings.every_steps = Some(1);
    let run = attempt.attach();
    attempt.ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\"}\n");
    assert!(!run.should_stop() && !run.checkpoint_due(5));
    assert_eq!(attempt.acks(), [(1, "refused", None)]);
}

/// Proves that commands are obeyed and acknowledged once each, that half a line waits for its other half, and
/// that lines that are no commands are answered too.
#[test]
fn commands_are_obeyed_and_acknowledged() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(1_000);
    let run = attempt.attach();
    assert!(!run.should_stop() && !run.checkpoint_due(5));
    attempt.ask("{\"version\":1,\"id\":1,\"at\":\"-\",\"command\":\"checkpoint_now\",\"why\":\"-\"}\n{\"version\":1,\"id\":2,");
    assert!(run.checkpoint_due(5) && !run.should_stop());
    save(&run, 5).unwrap();
    assert!(!run.checkpoint_due(6));
    attempt.ask("\"command\":\"dance\"}\nnonsense\n\n{\"version\":1,\"id\":3,\"command\":\"stop\"}\n");
    assert!(run.checkpoint_due(7) && run.should_stop(), "a stop is one to save before");
    run.finish();
    let acks = [
        (1, "accepted", None),
        (1, "done", Some(5)),
        (2, "unknown_command", None),
        (3, "accepted", None),
        (3, "done", None),
    ];
    assert_eq!(attempt.acks(), acks);
    let segment = &attempt.segments()[0];
    let unreadable =
        |frame: &Frame| matches!(frame, Frame::Event(event) if event.kind == "control_line_unreadable");
    assert_eq!(segment.frames.iter().filter(|located| unreadable(&located.frame)).count(), 1);
    assert!(segment.close.is_some());
}

/// Proves that the control file is not looked at more often than every 100 ms.
#[test]
fn the_control_file_is_polled_at_intervals() {
    let attempt = Attempt::new();
    let run = attempt.attach();
    assert!(!run.should_stop());
    attempt.ask("{\"version\":1,\"id\":1,\"command\":\"stop\"}\n");
    attempt.clock.advance_micros(-1);
    assert!(!run.should_stop());
    attempt.clock.advance_micros(1);
    assert!(run.should_stop());
}

/// Proves the cadence: a multiple of the steps passed since the last checkpoint, or the seconds since it, also for a
/// loop that does not check at every step, and again after a resume.
#[test]
fn checkpoints_are_due_by_steps_and_by_seconds() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(50);
    attempt.settings.every_seconds = Some(60.0);
    let run = attempt.attach();
    assert_eq!([1, 49, 50, 51, 99].map(|step| run.checkpoint_due(step)), [false, false, true, true, true]);
    save(&run, 51).unwrap();
    assert_eq!([51, 52, 99, 100].map(|step| run.checkpoint_due(step)), [false, false, false, true]);
    attempt.clock.advance_micros(59_999_999);
    assert!(!run.checkpoint_due(52));
    attempt.clock.advance_micros(1);
    assert!(run.checkpoint_due(52));
    drop(run);
    attempt.settings.every_seconds = None;
    let run = attempt.attach();
    assert_eq!(run.resume().unwrap().unwrap().step, 51);
    assert_eq!([52, 99, 100].map(|step| run.checkpoint_due(step)), [false, false, true]);
}

/// Proves the cadence of epochs: due once each second one has ended, at whichever step that is reported, not right after a resume within an
/// epoch; and that without a report an event says so and each call saves, as without a cadence.
#[test]
fn checkpoints_are_due_by_epochs() {
    let mut attempt = Attempt::new();
    attempt.settings.every_epochs = Some(2);
    let run = attempt.attach();
    assert!(run.lacks_epochs());
    run.epochs_finished(0);
    assert!(!run.checkpoint_due(3) && !run.lacks_epochs());
    run.epochs_finished(1);
    assert!(!run.checkpoint_due(5));
    run.epochs_finished(2);
    assert!(run.checkpoint_due(10));
    save(&run, 10).unwrap();
    run.epochs_finished(3);
    assert_eq!([11, 15, 16].map(|step| run.checkpoint_due(step)), [false; 3]);
    drop(run);
    let run = attempt.attach();
    assert_eq!(run.resume().unwrap().unwrap().step, 10);
    run.epochs_finished(2);
    assert!(!run.checkpoint_due(11));
    run.epochs_finished(4);
    assert!(run.checkpoint_due(20));
    drop(run);
    assert!(attempt.events(EventKind::CheckpointEpochsUnknown.as_str()).is_empty());
    let run = attempt.attach();
    assert!(run.checkpoint_due(21));
    drop(run);
    assert_eq!(attempt.events(EventKind::CheckpointEpochsUnknown.as_str()).len(), 1);
}

/// Proves what a proof needs: checkpoints exactly at the steps that are listed, whatever the cadence is; a stop from
/// the last step on, also for a loop that only logs; and the same after a resume.
#[test]
fn steps_are_listed_and_bounded() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(1);
    attempt.settings.at_steps = vec![4, 8];
    attempt.settings.max_steps = Some(8);
    let run = attempt.attach();
    assert_eq!([1, 3, 4, 5].map(|step| run.checkpoint_due(step)), [false, false, true, true]);
    save(&run, 4).unwrap();
    assert_eq!([4, 5, 7].map(|step| run.checkpoint_due(step)), [false; 3]);
    assert!(!run.should_stop());
    drop(run);
    let run = attempt.attach();
    assert_eq!(run.resume().unwrap().unwrap().step, 4);
    assert!(!run.checkpoint_due(7) && !run.should_stop());
    run.log(8, &[("loss", 0.1)]);
    assert!(run.should_stop() && run.checkpoint_due(8));
    save(&run, 8).unwrap();
    assert!(run.should_stop() && !run.checkpoint_due(8));
    assert_eq!(attempt.reasons(), [(4, "cadence".into()), (8, "end".into())]);
    assert_eq!(attempt.events(EventKind::MaxStepsReached.as_str()).len(), 1);
}

/// Proves that a held loop continues when SIGTERM arrives, and that the record shows where it was held.
#[test]
fn a_held_loop_is_released() {
    let mut attempt = Attempt::new();
    attempt.settings.hold_at_step = Some(3);
    attempt.settings.every_steps = Some(1_000);
    let run = attempt.attach();
    let held = || {
        let here = |frame: &Frame| matches!(frame, Frame::Heartbeat(heartbeat) if heartbeat.step == 3);
        attempt.segments()[0].frames.iter().filter(|located| here(&located.frame)).count()
    };
    assert!(!run.checkpoint_due(2) && held() == 0);
    attempt.sigterm.note(0);
    assert!(run.checkpoint_due(3) && run.should_stop() && held() == 1);
}

/// Proves that SIGTERM makes one checkpoint due at the next step, also when an evaluation noticed it first; that none
/// is due once the last save's time no longer fits into the grace period; and that each case is recorded.
#[test]
fn sigterm_saves_what_fits_into_the_grace_period() {
    for (waited_seconds, fits) in [(10, true), (22, false)] {
        let mut attempt = Attempt::new();
        attempt.settings.grace_seconds = Some(30.0);
        attempt.settings.every_steps = Some(10);
        let run = attempt.attach();
        attempt.save_for(&run, 10, 8);
        assert!(!run.checkpoint_due(11));
        attempt.sigterm.note(attempt.clock.monotonic_micros());
        attempt.clock.advance_micros(waited_seconds * 1_000_000);
        run.log(12, &[("loss", 0.1)]);
        assert!(run.should_stop(), "asked within an evaluation");
        assert!(!run.checkpoint_due(10), "that step is saved");
        assert_eq!((run.checkpoint_due(12), run.checkpoint_due(20)), (fits, fits));
        save(&run, 20).unwrap();
        assert!(!run.checkpoint_due(21) && run.should_stop(), "once is enough");
        assert_eq!(attempt.events("sigterm_noticed").len(), 1);
        let refused = attempt.events("checkpoint_does_not_fit");
        assert_eq!(refused.len(), usize::from(!fits), "{refused:?}");
        assert_eq!(attempt.reasons(), [(10, "cadence".into()), (20, "sigterm".into())]);
    }
}

/// Proves that a stop which comes between the two questions of a loop's end is answered one step later, after a
/// checkpoint; by SIGTERM and by the control file alike; and that none is delayed twice.
#[test]
fn a_stop_between_two_questions_waits_for_a_checkpoint() {
    for by_signal in [true, false] {
        let mut attempt = Attempt::new();
        attempt.settings.every_steps = Some(3);
        let run = attempt.attach();
        assert!(run.checkpoint_due(3) && draft(&run, 3) && run.wait_for_checkpoint(PATIENCE));
        assert!(!run.checkpoint_due(5));
        attempt.stop(by_signal);
        assert!(!run.should_stop() && !run.should_stop(), "nothing of step 5 is saved");
        run.begin_step(6);
        assert!(run.should_stop(), "within step 6, such as in an evaluation");
        assert!(run.checkpoint_due(6) && draft(&run, 6) && run.should_stop());
        run.finish();
        let reason = if by_signal { "sigterm" } else { "end" };
        assert_eq!(attempt.reasons(), [(3, "cadence".into()), (6, reason.into())]);
    }
}

/// Proves when a stop is not delayed: nothing would be saved for it, this step is saved already, the loop never
/// checked, it is the last one, it was delayed once, or for too long.
#[test]
fn a_stop_is_put_off_only_for_a_checkpoint() {
    type Arrange = fn(&mut Settings);
    type Before = fn(&Attempt, &Recorder);
    let cases: [(&str, Arrange, Before); 6] = [
        ("not asked about", |_| (), |_, run| run.log(6, &[("loss", 0.1)])),
        ("the last step", |settings| settings.max_steps = Some(5), |_, _| ()),
        (
            "no room in the grace period",
            |settings| settings.grace_seconds = Some(1.0),
            |attempt, _| attempt.clock.advance_micros(2_000_000),
        ),
        ("saved by the script", |_| (), |_, run| save(run, 5).map(drop).unwrap()),
        ("nowhere to save", |settings| settings.checkpoint_root = None, |_, _| ()),
        (
            "for too long",
            |_| (),
            |attempt, run| {
                assert!(!run.should_stop());
                attempt.clock.advance_micros(61_000_000);
            },
        ),
    ];
    for (name, arrange, before) in cases {
        let mut attempt = Attempt::new();
        attempt.settings.every_steps = Some(1_000);
        arrange(&mut attempt.settings);
        let run = attempt.attach();
        if attempt.settings.checkpoint_root.is_some() {
            attempt.save_for(&run, 1, 1);
        }
        assert!(!run.checkpoint_due(5), "{name}");
        attempt.stop(true);
        before(&attempt, &run);
        assert!(run.should_stop(), "{name}");
    }
}

/// Proves that an older save which is committed after the stop was noticed is not taken for the one before the stop,
/// and that a stop after a skipped save waits for the next one.
#[test]
fn an_older_save_is_not_the_one_before_the_stop() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(3);
    attempt.settings.hold_in_save = Some(3);
    let run = attempt.attach();
    assert!(run.checkpoint_due(3) && draft(&run, 3));
    while attempt.events(EventKind::HeldInSave.as_str()).is_empty() {
        std::thread::yield_now();
    }
    assert!(run.checkpoint_due(6) && !draft(&run, 6), "step 3 is still being written");
    attempt.stop(true);
    assert!(!run.should_stop(), "step 6 was skipped");
    assert!(run.wait_for_checkpoint(PATIENCE), "SIGTERM lets the held save go");
    assert!(run.checkpoint_due(7) && draft(&run, 7) && run.should_stop());
    run.finish();
    assert_eq!(attempt.reasons().iter().map(|reason| reason.0).collect::<Vec<_>>(), [3, 7]);
}

/// Proves that the record contains why each checkpoint was made, with the requester's description.
#[test]
fn the_record_says_why_a_checkpoint_was_made() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(10);
    let run = attempt.attach();
    save(&run, 3).unwrap();
    attempt.ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\",\"why\":\"by hand\"}\n");
    attempt.ask("{\"version\":1,\"id\":2,\"command\":\"checkpoint_now\",\"reason\":\"anomaly\",\"why\":\"a spike\"}\n");
    assert!(run.checkpoint_due(4));
    save(&run, 4).unwrap();
    save(&run, 10).unwrap();
    attempt.ask("{\"version\":1,\"id\":3,\"command\":\"stop\"}\n");
    assert!(run.should_stop() && run.checkpoint_due(11));
    save(&run, 11).unwrap();
    let reasons = [(3, "script"), (4, "anomaly"), (10, "cadence"), (11, "end")];
    assert_eq!(attempt.reasons(), reasons.map(|(step, reason)| (step, reason.to_owned())));
    let why = attempt.events(EventKind::CheckpointReason.as_str())[1].fields[1].clone();
    assert_eq!(why, ("why".into(), "by hand; a spike".into()));
}

/// Proves that the cost of every save is recorded, that a step's time is measured between saves only, and that a
/// cadence shorter than the save and a save longer than the grace period are each reported once.
#[test]
fn saves_leave_their_cost() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(2);
    attempt.settings.grace_seconds = Some(5.0);
    let run = attempt.attach();
    for step in 1..=6 {
        attempt.clock.advance_micros(1_500_000);
        run.log(step, &[("loss", 0.5)]);
        if run.checkpoint_due(step) {
            attempt.save_for(&run, step, 4);
        }
    }
    assert_eq!(attempt.metric(cost::STALL_SECONDS), [(2, 4.0), (4, 4.0), (6, 4.0)]);
    assert_eq!(attempt.metric(cost::COMMIT_LAG_SECONDS), [(2, 4.0), (4, 4.0), (6, 4.0)]);
    assert_eq!(attempt.metric(cost::INTERVAL_SECONDS), [(2, 3.0), (4, 3.0), (6, 3.0)]);
    assert_eq!(attempt.metric(cost::STEP_SECONDS), [(4, 1.5), (6, 1.5)]);
    assert_eq!(attempt.metric(cost::SIZE_BYTES), [(2, 5.0), (4, 5.0), (6, 5.0)]);
    assert!(attempt.metric(cost::SLOWDOWN).is_empty(), "nothing went on behind the loop");
    attempt.ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\"}\n");
    assert!(run.checkpoint_due(7));
    save(&run, 7).unwrap();
    assert_eq!(attempt.metric(cost::STALL_SECONDS).len(), 4);
    assert_eq!(attempt.metric(cost::INTERVAL_SECONDS).len(), 3, "asked for is no cadence");
    for event in ["checkpoint_cadence_too_short", "checkpoint_exceeds_grace"] {
        assert!(attempt.events(event).is_empty() == (event == "checkpoint_exceeds_grace"), "{event}");
    }
    attempt.save_for(&run, 8, 6);
    attempt.save_for(&run, 10, 6);
    assert_eq!(attempt.events("checkpoint_cadence_too_short").len(), 1);
    assert_eq!(attempt.events("checkpoint_exceeds_grace").len(), 1);
}

/// Proves that a fenced writer gets a request to stop, that the reason is recorded, and that a waiting command is
/// refused.
#[test]
fn a_fenced_recorder_asks_for_a_stop() {
    let mut attempt = Attempt::new();
    let zombie = attempt.attach();
    save(&zombie, 1).unwrap();
    attempt.settings.epoch = Some(2);
    attempt.settings.attempt = AttemptId::new(&SystemIds).to_string();
    assert_eq!(attempt.attach().resume().unwrap().unwrap().step, 1);
    attempt.ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\"}\n");
    assert!(zombie.checkpoint_due(2) && !zombie.should_stop());
    assert_eq!(save(&zombie, 2).unwrap_err().kind(), ErrorKind::Fenced);
    assert!(zombie.should_stop() && !zombie.checkpoint_due(2));
    assert_eq!(attempt.acks().last(), Some(&(1, "refused", Some(2))));
}

/// Proves that a wall clock that goes backwards is recorded as it is, and that the order of frames is kept.
#[test]
fn a_clock_going_backwards_keeps_the_order() {
    let attempt = Attempt::new();
    let run = attempt.attach();
    for (step, seconds) in [(1, 100), (2, 50), (3, 70)] {
        attempt.clock.set_wall(Timestamp::from_micros(seconds * 1_000_000));
        run.log(step, &[("loss", f64::NAN)]);
    }
    run.finish();
    let segments = attempt.segments();
    let points: Vec<_> =
        segments[0].metric_points().map(|point| (point.step, point.at.as_micros())).collect();
    assert_eq!(points, [(1, 100_000_000), (2, 50_000_000), (3, 70_000_000)]);
    assert_eq!(segments[0].lost_frames, 0);
}

/// Proves that names without end begin new segments instead of growing a table for ever, and lose nothing.
#[test]
fn too_many_names_begin_another_segment() {
    let attempt = Attempt::new();
    let run = attempt.attach();
    for step in 0..10_500u64 {
        run.log(step, &[(&format!("loss_at_{step}"), 1.0)]);
    }
    run.finish();
    let segments = attempt.segments();
    assert_eq!(segments.len(), 2);
    assert_eq!(segments.iter().map(|segment| segment.metric_points().count()).sum::<usize>(), 10_500);
}

/// Proves that names beyond the bound are refused, their values counted and the first of them named, and that known names continue.
#[test]
fn names_without_end_are_refused() {
    let attempt = Attempt::new();
    let run = attempt.attach();
    for step in 0..METRIC_NAMES_MAX as u64 + 10 {
        run.log(step, &[(&format!("loss_at_{step}"), 1.0), ("loss_at_0", 2.0)]);
    }
    run.finish();
    let segments = attempt.segments();
    let points = segments.iter().flat_map(Segment::metric_points);
    let names: std::collections::BTreeSet<String> = points.map(|point| point.name.into_owned()).collect();
    assert_eq!(names.len(), METRIC_NAMES_MAX);
    let count = segments.iter().map(|segment| segment.metric_points().count()).sum::<usize>();
    assert_eq!(count, 2 * METRIC_NAMES_MAX + 10, "a known name goes on");
    let reported = attempt.events(EventKind::MetricNamesFull.as_str());
    let last = reported.last().unwrap();
    let fields = ["names_max", "name", "values"].map(|name| last.field(name).unwrap());
    assert_eq!(fields, ["20000", "loss_at_20000", "10"]);
    assert_eq!(reported.len(), 2, "at the first value, and at the end");
}

/// Proves that a step whose values are all refused is recorded all the same, as a sign of life.
#[test]
fn a_step_without_recorded_values_is_a_heartbeat() {
    let folder = tempfile::tempdir().unwrap();
    let info = SegmentInfo { run_id: "r".into(), attempt_id: "a".into(), origin: Origin::Stdout };
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
    let mut writer = SegmentWriter::create(folder.path(), info, clock);
    for step in 0..METRIC_NAMES_MAX as u64 + 5 {
        writer.metrics(step, &[(&format!("m{step}"), 1.0)]);
    }
    let path = writer.path().unwrap().to_owned();
    drop(writer);
    let segment = read_segment(&std::fs::read(path).unwrap()).unwrap();
    let beats = segment.frames.iter().filter_map(|located| match &located.frame {
        Frame::Heartbeat(heartbeat) => Some(heartbeat.step),
        _ => None,
    });
    let first = METRIC_NAMES_MAX as u64;
    assert_eq!(beats.collect::<Vec<_>>(), (first..first + 5).collect::<Vec<_>>());
}

/// Proves that frames which are written together are those that are written one by one, also across segments.
#[test]
fn frames_written_together_are_the_same() {
    let points = |together: bool| {
        let folder = tempfile::tempdir().unwrap();
        let info = SegmentInfo { run_id: "r".into(), attempt_id: "a".into(), origin: Origin::Stdout };
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        let mut writer = SegmentWriter::create(folder.path(), info, clock);
        let record = |writer: &mut SegmentWriter| {
            (0..12_000u64).for_each(|step| {
                writer.metrics(step, &[(format!("m{step}").as_str(), 0.5), ("loss", step as f64)])
            });
            writer.heartbeat(7);
        };
        if together {
            writer.hold();
        }
        record(&mut writer);
        if together {
            writer.write_held();
        }
        writer.finish();
        assert_eq!(writer.dropped_frames(), 0);
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let segments = paths.iter().map(|path| read_segment(&std::fs::read(path).unwrap()).unwrap());
        segments.map(|segment| (segment.frames, segment.close, segment.damage)).collect::<Vec<_>>()
    };
    let apart = points(false);
    assert_eq!(apart.len(), 2);
    assert_eq!(points(true), apart);
}

/// Every point of a folder's segments, in order, by name and bit for bit; and how large the segments are.
fn points_of(folder: &Path) -> (Vec<(u64, String, u64)>, u64) {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut points, mut size) = (Vec::new(), 0);
    for path in paths {
        let bytes = std::fs::read(path).unwrap();
        size += bytes.len() as u64;
        let segment = read_segment(&bytes).unwrap();
        assert!(segment.close.is_some() && segment.damage.is_empty() && segment.lost_frames == 0);
        points.extend(
            segment
                .metric_points()
                .map(|point| (point.step, point.name.clone().into_owned(), point.value.to_bits())),
        );
    }
    (points, size)
}

/// Proves that values of many steps which are recorded as a series give the same points as those that are recorded step by step, in
/// fewer bytes: of one name and of many, of one step and of many, where a name holds a secret or is one too many, over several segments.
#[test]
fn a_series_has_the_same_points() {
    let record = |is_series: bool| {
        let folder = tempfile::tempdir().unwrap();
        let info = SegmentInfo { run_id: "r".into(), attempt_id: "a".into(), origin: Origin::Sdk };
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        let mut writer = SegmentWriter::create(folder.path(), info, Arc::<ManualClock>::clone(&clock));
        writer.hold();
        let secret = "aws AKIAQX3LMN7OPQRS2TUV".to_owned();
        let several = [
            (vec!["loss".to_owned()], 1),
            (vec!["loss".to_owned()], 5_000),
            (vec!["lr".to_owned(), "loss".to_owned()], 3_000),
            ((0..300).map(|number| format!("measure of layer {number}")).collect(), 70),
            (vec!["loss".to_owned(), secret], 3),
        ];
        // More names than a segment may have, and then more than a process may.
        let many = (0..METRIC_NAMES_MAX + 5_000).map(|number| format!("m{number}")).collect::<Vec<_>>();
        let many = many.chunks(2_500).map(|names| (names.to_vec(), 3));
        for (names, steps) in several.into_iter().chain(many) {
            let steps: Vec<u64> = (0..steps).collect();
            let values: Vec<f64> =
                (0..steps.len() * names.len()).map(|number| -(number as f64) / 7.0).collect();
            match is_series {
                true => writer.series_at(clock.now(), &names, &steps, &values),
                false => steps.iter().zip(values.chunks(names.len())).for_each(|(step, values)| {
                    let values: Vec<(&str, f64)> =
                        names.iter().map(String::as_str).zip(values.iter().copied()).collect();
                    writer.metrics_at(clock.now(), *step, &values);
                }),
            }
        }
        writer.write_held();
        writer.finish();
        assert_eq!(writer.dropped_frames(), 0);
        points_of(folder.path())
    };
    let ((apart, large), (series, small)) = (record(false), record(true));
    assert!(apart == series, "{} and {} points", apart.len(), series.len());
    assert!(small < large, "{small} of {large} bytes");
}

/// Fills a draft with a state derived from the step, and submits it; false: it was skipped.
fn draft(run: &Recorder, step: u64) -> bool {
    let Some(mut draft) = run.draft_checkpoint(step).unwrap() else { return false };
    let bytes: Vec<u8> = [step as f32; 4].iter().flat_map(|value| value.to_le_bytes()).collect();
    let spec = TensorSpec::new("weight", Dtype::F32, [4u64]);
    draft.tensors("model", Kind::Weights, &[TensorRef { spec, bytes: &bytes }], &BTreeMap::new()).unwrap();
    draft.bytes("cursor.json", Kind::DataCursor, b"{}").unwrap();
    draft.submit(&[("loss", 0.5)]);
    true
}

/// Proves that a draft is committed in the background, with the same record, acknowledgement and cost as a blocking
/// one; that it opens as safetensors and is what a resume gives back; and that the end waits for it.
#[test]
fn a_draft_is_committed_behind_the_loop() {
    let mut attempt = Attempt::new();
    attempt.settings.every_steps = Some(10);
    let run = attempt.attach();
    attempt.ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\"}\n");
    assert!(run.checkpoint_due(7));
    assert!(draft(&run, 7));
    assert!(!run.checkpoint_due(8), "what was asked for is under way");
    assert!(run.wait_for_checkpoint(PATIENCE));
    assert_eq!(attempt.acks(), [(1, "accepted", None), (1, "done", Some(7))]);
    assert_eq!(attempt.metric(cost::SIZE_BYTES).len(), 1);
    assert!(run.checkpoint_due(10) && draft(&run, 10));
    run.finish();
    assert_eq!(attempt.reasons(), [(7, "asked".into()), (10, "cadence".into())]);
    let loaded = attempt.attach().resume().unwrap().unwrap();
    assert_eq!(loaded.step, 10);
    let file = loaded.read("model.safetensors").unwrap();
    let (again, files) = attempt.attach().resume_read().unwrap().unwrap();
    assert_eq!((again.step, files.len()), (10, 2));
    assert!(file.ends_with(&[0, 0, 32, 65].repeat(4)), "10.0 four times");
}

/// Proves that a draft takes a file that another program wrote beside what is in memory, also when it was deleted meanwhile, and
/// refuses a name that is used already and a file that is missing; that the step reached is that of all recorders of the process.
#[test]
fn a_draft_takes_files_of_others() {
    let attempt = Attempt::new();
    let run = attempt.attach();
    let path = attempt.folder.path().join("model.ubj");
    std::fs::write(&path, b"trees").unwrap();
    run.log(7, &[("loss", 0.5)]);
    assert_eq!(run.reached_step(), 7);
    attempt.attach().log(40, &[("loss", 0.1)]);
    assert_eq!(run.reached_step(), 40, "a callback has a recorder of its own");
    assert_eq!(Attempt::new().attach().reached_step(), 0, "another attempt");
    let mut draft = run.draft_checkpoint(7).unwrap().unwrap();
    draft.bytes("cursor.json", Kind::DataCursor, b"{}").unwrap();
    draft.file("model.ubj", Kind::Weights, &path).unwrap();
    for (name, kind) in
        [("model.ubj", ErrorKind::Input), ("cursor.json", ErrorKind::Input), ("a/b", ErrorKind::Input)]
    {
        assert_eq!(draft.file(name, Kind::Weights, &path).unwrap_err().kind(), kind, "{name}");
    }
    let missing = attempt.folder.path().join("missing.ubj");
    let error = draft.file("missing.ubj", Kind::Weights, &missing).unwrap_err().to_string();
    assert!(error.contains("missing.ubj"), "{error}");
    std::fs::remove_file(&path).unwrap();
    draft.submit(&[]);
    run.finish();
    let loaded = attempt.attach().resume().unwrap().unwrap();
    assert_eq!(loaded.read("model.ubj").unwrap(), b"trees");
    assert_eq!(loaded.read("cursor.json").unwrap(), b"{}");
}

/// Proves that a checkpoint that comes due while the one before is still being written is skipped, which is recorded
/// once, and that the loop never waits for it; but that the last one before an end waits instead.
#[test]
fn a_checkpoint_behind_a_slow_one_is_skipped() {
    let mut attempt = Attempt::new();
    attempt.settings.hold_in_save = Some(10);
    let run = attempt.attach();
    assert!(draft(&run, 10));
    while attempt.events(EventKind::HeldInSave.as_str()).is_empty() {
        std::thread::yield_now();
    }
    assert!(!draft(&run, 20) && !draft(&run, 30));
    assert_eq!(attempt.events(EventKind::CheckpointSkipped.as_str()).len(), 1);
    attempt.sigterm.note(0);
    assert!(draft(&run, 40), "the held one is let go, and this one waited for it");
    run.finish();
    let steps: Vec<_> = attempt.reasons().into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, [10, 40]);
}

/// Proves that the error of a draft's save is recorded when it happens and returned by the next call, that a fence
/// stops the loop, and that an acknowledgement contains it.
#[test]
fn a_failed_save_of_a_draft_is_reported() {
    let attempt = Attempt::new();
    let run = attempt.attach();
    assert!(draft(&run, 1) && run.wait_for_checkpoint(PATIENCE));
    let mut newer = Attempt {
        folder: tempfile::tempdir().unwrap(),
        settings: attempt.settings.clone(),
        ..Attempt::new()
    };
    newer.settings.epoch = Some(2);
    newer.settings.attempt = AttemptId::new(&SystemIds).to_string();
    newer.settings.record_folder = Some(newer.folder.path().join("records"));
    save(&newer.attach(), 1).unwrap();
    attempt.ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\"}\n");
    assert!(run.checkpoint_due(2) && draft(&run, 2) && run.wait_for_checkpoint(PATIENCE));
    assert!(run.should_stop(), "fenced");
    assert_eq!(attempt.acks().last(), Some(&(1, "refused", Some(2))));
    assert_eq!(attempt.events("checkpoint_failed").len(), 1);
    assert_eq!(run.draft_checkpoint(3).err().unwrap().kind(), ErrorKind::Fenced);
    assert!(draft(&run, 4) && run.wait_for_checkpoint(PATIENCE));
    assert_eq!(
        run.checkpoint_failure().unwrap().kind(),
        ErrorKind::Fenced,
        "for who waits instead of going on"
    );
    assert!(run.checkpoint_failure().is_none(), "once");
}
