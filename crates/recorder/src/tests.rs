use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use trackway_checkpoint::{CheckpointError, Commit, ErrorKind, Kind};
use trackway_core::{AttemptId, ManualClock, RunId, SequentialIds, Timestamp};
use trackway_formats::record::{Frame, Segment, read_segment};

use crate::settings::Settings;
use crate::{CONTROL_POLL_MICROS, Recorder, SystemClock, SystemIds};

/// An attempt with a clock that moves when told to.
struct Attempt {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    settings: Settings,
}

impl Attempt {
    fn new() -> Self {
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
        Self { folder, clock, settings }
    }

    fn attach(&self) -> Recorder {
        Recorder::with(self.settings.clone(), self.clock.clone(), Arc::new(SequentialIds::default()))
    }

    fn ask(&self, text: &str) {
        let path = self.settings.control_file.as_ref().unwrap();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self.clock.advance_micros(CONTROL_POLL_MICROS);
    }

    fn segments(&self) -> Vec<Segment> {
        let entries = std::fs::read_dir(self.folder.path().join("records")).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| read_segment(&std::fs::read(path).unwrap()).unwrap()).collect()
    }

    fn acks(&self) -> Vec<(u64, &'static str, Option<u64>)> {
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

/// Proves that outside an attempt every call is harmless, and that saving says what is missing.
#[test]
fn outside_an_attempt_nothing_happens() {
    let run = Recorder::with(Settings::default(), Arc::new(SystemClock), Arc::new(SystemIds));
    run.log(1, &[("loss", 0.5)]);
    run.event("started", None, &[]);
    run.finish();
    assert!(!run.enabled() && !run.checkpoint_due(100) && run.resume().unwrap().is_none());
    let error = save(&run, 1).unwrap_err().to_string();
    assert!(error.contains("`TRACKWAY_CHECKPOINTS` is not set"), "{error}");
}

/// Proves that without a checkpoint root no checkpoint is ever due, and that asking for one is refused.
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
    let attempt = Attempt::new();
    let run = attempt.attach();
    assert!(!run.should_stop() && !run.checkpoint_due(5));
    attempt.ask("{\"version\":1,\"id\":1,\"at\":\"-\",\"command\":\"checkpoint_now\",\"why\":\"-\"}\n{\"version\":1,\"id\":2,");
    assert!(run.checkpoint_due(5) && !run.should_stop());
    save(&run, 5).unwrap();
    assert!(!run.checkpoint_due(6));
    attempt.ask("\"command\":\"dance\"}\nnonsense\n\n{\"version\":1,\"id\":3,\"command\":\"stop\"}\n");
    assert!(run.should_stop() && !run.checkpoint_due(6));
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

/// Proves the cadence: a multiple of the steps that lies behind the last checkpoint, or the seconds since it,
/// also for a loop that does not ask at every step, and again after a resume.
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

/// Proves that a fenced writer is told to stop, that the record says why, and that a waiting command is refused.
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
