use std::collections::BTreeMap;
use std::sync::Mutex;

use trackway_core::{AttemptId, LaunchKind, RunId, SequentialIds};
use trackway_launch::conformance::Faults as _;
use trackway_launch::testing::FakeEngine;
use trackway_launch::{Adopt, EngineRequest, LaunchDetails, LaunchSpec};
use trackway_redact::Redactor;
use trackway_system::SystemClock;

use super::*;
use crate::reporter::{Progress, Stream};

/// Longer than the supervisor's own turn.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Keeps what it is given.
#[derive(Default)]
struct RecordingReporter {
    notes: Mutex<Vec<String>>,
    output: Mutex<Vec<u8>>,
}

impl Reporter for RecordingReporter {
    fn notice(&self, notice: &Notice) {
        if let Notice::Note { text } = notice {
            self.notes.lock().unwrap().push(text.clone());
        }
    }

    fn output(&self, _: Stream, bytes: &[u8]) {
        self.output.lock().unwrap().extend(bytes);
    }

    fn progress(&self, _: &Progress) {}

    fn reading_data(&self, _: u64, _: u64) {}
}

/// An attempt in a separate folder, on a separate engine.
struct Attempt {
    folder: tempfile::TempDir,
    engine: FakeEngine,
    kept: RecordingReporter,
    cancel: Cancel,
}

impl Attempt {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            engine: FakeEngine::default(),
            kept: RecordingReporter::default(),
            cancel: Cancel::default(),
        }
    }

    fn spec(&self, script: &str) -> LaunchSpec {
        let ids = SequentialIds::default();
        LaunchSpec {
            directory: self.folder.path().join("attempt"),
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            environment: BTreeMap::new(),
            terminal: None,
            details: LaunchDetails {
                run_id: RunId::new(&ids),
                attempt_id: AttemptId::new(&ids),
                attempt_number: 1,
                kind: LaunchKind::Train,
                rung: "1".into(),
                epoch: 1,
                working_directory: "/".into(),
                grace_seconds: 30.0,
                linger_seconds: None,
                checkpoint_root: self.folder.path().join("checkpoints"),
                seed: None,
                config_sha256: String::new(),
                data_sha256: None,
                data_files: BTreeMap::new(),
                adopt: Adopt::Nothing,
                isolation: None,
                container: None,
                continues_from: None,
                checkpoint_every_steps: None,
                checkpoint_every_seconds: None,
                checkpoint_every_epochs: None,
                devices: Vec::new(),
                request: EngineRequest::default(),
            },
        }
    }

    /// Launches the script, spoils the engine's answers, and supervises the attempt.
    fn supervise(
        &self,
        script: &str,
        patience_seconds: f64,
        limits: Limits,
        hidden_polls: u32,
    ) -> SuperviseEnd {
        let launcher = self.engine.launcher().polled_every(POLL_INTERVAL);
        let spec = self.spec(script);
        let placement = launcher.launch(&spec, &Redactor::from_own_environment()).unwrap();
        self.engine.hide(hidden_polls);
        let watched = WatchedAttempt {
            resume: None,
            wrong_resume: &|_| {},
            placement: &placement,
            files: AttemptLayout::new(&spec.directory),
            channel: launcher.channel(&placement).unwrap(),
            limits,
            grace_seconds: 30.0,
            patience_seconds,
            sigterm_preempts: false,
            losses: None,
            injection: None,
            attached: false,
            terminal: None,
            running_seconds: 0.0,
            fenced: &|| None,
            superseded_by: &|| None,
            cancel: &self.cancel,
            launcher: &launcher,
            clock: &SystemClock,
            reporter: &self.kept,
        };
        let ended = supervise(watched, None, &mut |_, _| {});
        launcher.stop(&placement, StopMode::Kill).unwrap();
        ended
    }

    fn notes(&self) -> Vec<String> {
        self.kept.notes.lock().unwrap().clone()
    }
}

/// Proves that an attempt whose engine does not answer for a while is watched to its end, and that this is reported
/// once.
#[test]
fn an_engine_that_pauses_ends_nothing() {
    let attempt = Attempt::new();
    let ended = attempt.supervise("echo begun; sleep 3; echo done", 60.0, Limits::default(), 3);
    assert!(matches!(ended, SuperviseEnd::Attempt), "{ended:?}");
    assert_eq!(*attempt.kept.output.lock().unwrap(), b"begun\ndone\n");
    let notes = attempt.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert_eq!(notes[0], "the attempt cannot be observed now, trying again: the engine does not answer");
    assert!(notes[1].starts_with("the attempt is observed again after "), "{notes:?}");
}

/// Proves that patience has an end, and that the attempt is not taken for ended then.
#[test]
fn an_engine_that_stays_away_is_given_up() {
    let attempt = Attempt::new();
    let ended = attempt.supervise("exec sleep 60", 1.0, Limits::default(), u32::MAX);
    assert!(
        matches!(&ended, SuperviseEnd::OutOfSight(why) if why == "the engine does not answer"),
        "{ended:?}"
    );
    assert_eq!(attempt.notes().len(), 1);
}

/// Proves that the second request to stop does not wait for an engine that does not answer.
#[test]
fn two_requests_to_stop_end_the_wait() {
    let attempt = Attempt::new();
    attempt.cancel.stop(15);
    attempt.cancel.stop(15);
    let ended = attempt.supervise("exec sleep 60", 600.0, Limits::default(), u32::MAX);
    assert!(matches!(ended, SuperviseEnd::OutOfSight(_)), "{ended:?}");
}

/// Proves that the time in the queue is not counted as the attempt's, and that its engine is polled no more often than
/// its interval.
#[test]
fn a_queue_takes_no_time_and_few_polls() {
    let attempt = Attempt::new();
    attempt.engine.hold(8);
    let begun_micros = SystemClock.monotonic_micros();
    let limits = Limits { timeout_seconds: Some(1.5), ..Limits::default() };
    let ended = attempt.supervise("exit 0", 60.0, limits, 0);
    assert!(matches!(ended, SuperviseEnd::Attempt), "{ended:?}");
    assert!(attempt.notes().is_empty(), "{:?}", attempt.notes());
    let seconds = (SystemClock.monotonic_micros() - begun_micros) as f64 / 1e6;
    let polls_max = seconds / POLL_INTERVAL.as_secs_f64() + 2.0;
    assert!(f64::from(attempt.engine.polls()) <= polls_max, "{} in {seconds} s", attempt.engine.polls());
    assert!(seconds > 1.5, "8 polls take longer than the limit: {seconds} s");
}
