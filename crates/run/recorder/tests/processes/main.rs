//! The recorder in real processes that are killed, forked, limited and run out of disk.
//!
//! A test starts this very program again with `TRACKWAY_TEST_ROLE`; the test `role` then plays the training process.

#![allow(clippy::disallowed_methods, reason = "it deletes what it made")]
#![allow(clippy::unwrap_used, reason = "helpers of tests stop the test, as the tests do")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

mod kills;
mod odd;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use trackway_core::{AttemptId, Clock as _, RunId};
use trackway_formats::frames::DamageKind;
use trackway_formats::record::{Frame, Segment, read_segment};
use trackway_recorder::{CheckpointView, ErrorKind, Kind, Origin, Recorder, SegmentInfo, SegmentWriter};
use trackway_system::{SystemClock, SystemIds};

const ROLE: &str = "TRACKWAY_TEST_ROLE";

/// Acts as a training process when another test starts it, and does nothing otherwise.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("log_forever") => kills::log_forever(),
        Ok("log_in_threads") => kills::log_in_threads(),
        Ok("read_only") => odd::read_only(),
        Ok("short_write") => short_write(),
        Ok("no_room_for_a_header") => no_room_for_a_header(),
        Ok("small_files") => small_files(),
        Ok("full_disk") => full_disk(),
        Ok("fork") => fork_and_log(),
        Ok("fork_under_load") => fork_under_load(),
        Ok("wait_for_sigterm") => wait_for_sigterm(),
        Ok("save_forever") => save_forever(),
        Ok(other) => panic!("no role `{other}`"),
        Err(_) => {}
    }
}

/// An attempt's folder with the environment of a training process.
struct Attempt {
    folder: tempfile::TempDir,
    run_id: RunId,
    epoch: u64,
}

impl Attempt {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("records")).unwrap();
        Self { folder, run_id: RunId::new(&SystemIds), epoch: 1 }
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join("records")
    }

    fn checkpoints(&self) -> PathBuf {
        self.folder.path().join("checkpoints")
    }

    fn command(&self, program: &Path, role: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env(ROLE, role)
            .env("TRACKWAY_RUN", self.run_id.to_string())
            .env("TRACKWAY_ATTEMPT", AttemptId::new(&SystemIds).to_string())
            .env("TRACKWAY_EPOCH", self.epoch.to_string())
            .env("TRACKWAY_RECORD", self.records())
            .env("TRACKWAY_CONTROL", self.folder.path().join("control.jsonl"))
            .env("TRACKWAY_CHECKPOINTS", self.checkpoints())
            .stdout(Stdio::piped());
        command
    }

    fn start(&self, role: &str) -> Child {
        let mut command = self.command(&std::env::current_exe().unwrap(), role);
        command.args(ROLE_ARGUMENTS).spawn().unwrap()
    }

    fn run(&self, role: &str) -> Vec<Segment> {
        let output = self.start(role).wait_with_output().unwrap();
        assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stdout));
        segments_in(&self.records())
    }
}

const ROLE_ARGUMENTS: [&str; 4] = ["--exact", "role", "--nocapture", "--test-threads=1"];

fn segments_in(folder: &Path) -> Vec<Segment> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read_segment(&std::fs::read(path).unwrap()).unwrap()).collect()
}

fn steps_of(segments: &[Segment]) -> Vec<u64> {
    let mut steps: Vec<_> =
        segments.iter().flat_map(Segment::metric_points).map(|point| point.step).collect();
    steps.sort_unstable();
    steps
}

fn events_of(segments: &[Segment], kind: &str) -> Vec<Vec<(String, String)>> {
    let frames = segments.iter().flat_map(|segment| &segment.frames);
    let event = |frame: &Frame| match frame {
        Frame::Event(event) if event.kind == kind => Some(event.fields.clone()),
        _ => None,
    };
    frames.filter_map(|located| event(&located.frame)).collect()
}

/// The numbers a child prints, one a line, until `enough` returns true. Other lines are the test harness's.
fn numbers_until(child: &mut Child, enough: impl Fn(u64) -> bool) -> u64 {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let numbers = lines.map_while(Result::ok).filter_map(|line| line.trim().parse::<u64>().ok());
    let mut last = 0;
    for number in numbers {
        last = number;
        if enough(number) {
            break;
        }
    }
    last
}

fn say(number: u64) {
    let mut out = std::io::stdout().lock();
    // On a separate line: the harness has written the test's name without a line end.
    writeln!(out, "\n{number}").and_then(|()| out.flush()).unwrap();
}

fn limit_file_size(bytes: u64) {
    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, bytes, hard).unwrap();
}

fn short_write() {
    let run = Recorder::attach();
    let log = |steps: std::ops::Range<u64>| steps.for_each(|step| run.log(step, &[("loss", step as f64)]));
    log(0..50);
    let folder = PathBuf::from(std::env::var_os("TRACKWAY_RECORD").unwrap());
    let segment = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    // The next frame gets 10 bytes of room: the kernel writes those and reports the count.
    limit_file_size(segment.metadata().unwrap().len() + 10);
    log(50..400);
    run.finish();
}

/// Proves that a write that the kernel cuts short leaves a torn tail that is passed, that the frame is written whole
/// into the next segment, and that a file size limit never becomes the SIGXFSZ that kills a process.
#[test]
fn a_short_write_begins_another_segment() {
    let segments = Attempt::new().run("short_write");
    assert!(segments.len() > 2, "the limit holds for {} segments", segments.len());
    assert_eq!(steps_of(&segments), (0..400).collect::<Vec<_>>());
    assert_eq!(segments[0].damage.len(), 1);
    assert_eq!((segments[0].damage[0].kind, segments[0].damage[0].skipped_bytes), (DamageKind::TornTail, 10));
    assert!(segments[1..].iter().all(|segment| segment.damage.is_empty() && segment.close.is_some()));
    let sequences: Vec<_> =
        segments.iter().map(|segment| segment.header.as_ref().unwrap().segment_sequence).collect();
    assert_eq!(sequences, (0..segments.len() as u32).collect::<Vec<_>>());
    assert!(segments.iter().all(|segment| segment.lost_frames == 0), "no gap is in any sequence");
    assert_eq!(segments.last().unwrap().close.unwrap().dropped_frames, 0);
}

fn no_room_for_a_header() {
    let run = Recorder::attach();
    run.log(1, &[("loss", 1.0)]);
    let (soft, _) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    limit_file_size(0);
    (2..=9).for_each(|step| run.log(step, &[("loss", 1.0)]));
    limit_file_size(soft);
    std::thread::sleep(Duration::from_micros(trackway_recorder::RETRY_INTERVAL_MICROS as u64 + 50_000));
    run.log(10, &[("loss", 1.0)]);
    run.finish();
}

/// Proves that frames that find no room are counted, that recording continues when there is room again, and that the
/// record contains how many are missing.
#[test]
fn dropped_frames_are_counted_and_reported() {
    let attempt = Attempt::new();
    let mut command = attempt.command(Path::new("/bin/sh"), "no_room_for_a_header");
    // The open segment meets a limit that was lowered meanwhile, which raises SIGXFSZ. Ignored, as Python does, the
    // write fails with EFBIG instead.
    let program = std::env::current_exe().unwrap();
    let output = command
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(program)
        .args(ROLE_ARGUMENTS)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let segments = segments_in(&attempt.records());
    assert_eq!(steps_of(&segments), [1, 10]);
    let events = events_of(&segments, "frames_dropped");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0][0], ("count".into(), "8".into()));
    assert_eq!(segments.last().unwrap().close.unwrap().dropped_frames, 8);
}

fn small_files() {
    limit_file_size(1024);
    let info = SegmentInfo { run_id: "run".into(), attempt_id: "attempt".into(), origin: Origin::Stdout };
    let folder = PathBuf::from(std::env::var_os("TRACKWAY_RECORD").unwrap());
    let mut writer = SegmentWriter::create(&folder, info, Arc::new(SystemClock));
    writer.hold();
    let at = SystemClock.now();
    let names = ["loss", "accuracy", "learning_rate"].map(String::from);
    let (steps, values): (Vec<u64>, Vec<f64>) = ((0..1_024).collect(), vec![0.5; 3 * 1_024]);
    writer.series_at(at, &names, &steps, &values);
    let many: Vec<(String, f64)> = (0..300).map(|number| (format!("metric_{number}"), 0.5)).collect();
    let names: Vec<String> = many.iter().map(|(name, _)| name.clone()).collect();
    writer.series_at(at, &names, &[2_000, 2_001], &[0.5; 600]);
    writer.metrics_at(at, 2_002, &many);
    writer.write_held();
    writer.finish();
    assert_eq!((writer.dropped_frames(), trackway_recorder::unnamed_drops()), (0, 0));
    // Nothing at all fits, and no segment can say so.
    limit_file_size(64);
    writer.metrics_at(at, 2_003, &many[..1]);
    writer.finish();
    assert_eq!((writer.unnamed_drops(), trackway_recorder::unnamed_drops()), (1, 1));
}

/// Proves that values which are written many at once are in the record also where no file may have the size of such a
/// frame, and that what then fits into none is counted for the process.
#[test]
fn small_files_take_all_values() {
    let segments = Attempt::new().run("small_files");
    assert_eq!(steps_of(&segments).len(), 3 * 1_024 + 3 * 300);
    assert!(segments.iter().all(|segment| segment.damage.is_empty() && segment.lost_frames == 0));
}

fn full_disk() {
    let records = PathBuf::from(std::env::var_os("TRACKWAY_RECORD").unwrap());
    let filler = records.join("filler");
    let filled = std::fs::File::create(&filler).and_then(|mut file| file.write_all(&[7; 24 << 10]));
    filled.unwrap();
    let run = Recorder::attach();
    (1..=3_000).for_each(|step| run.log(step, &[("loss", 1.0), ("rate", 2.0)]));
    std::fs::remove_file(&filler).unwrap();
    std::thread::sleep(Duration::from_micros(trackway_recorder::RETRY_INTERVAL_MICROS as u64 + 50_000));
    run.log(3_001, &[("loss", 1.0), ("rate", 2.0)]);
    run.finish();
    let out = PathBuf::from(std::env::var_os("TRACKWAY_TEST_OUT").unwrap());
    for entry in std::fs::read_dir(&records).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), out.join(entry.file_name())).unwrap();
    }
}

/// Proves the same on a disk that is really full: a 64 KiB memory disk in a separate mount namespace. Skipped with a
/// printed line where such namespaces are not allowed.
#[test]
fn a_full_disk_drops_frames_and_recovers() {
    let attempt = Attempt::new();
    let out = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=64k none \"$TRACKWAY_RECORD\"";
    let records = attempt.records();
    let may =
        Command::new("unshare").args(["-rm", "sh", "-c", mount]).env("TRACKWAY_RECORD", &records).output();
    if !may.is_ok_and(|output| output.status.success()) {
        trackway_skip::skip!("no mount namespace for a test of a full disk");
        return;
    }
    let output = attempt
        .command(Path::new("unshare"), "full_disk")
        .env("TRACKWAY_TEST_OUT", out.path())
        .args(["-rm", "sh", "-c", &format!("{mount} && exec \"$@\""), "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(ROLE_ARGUMENTS)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let segments = segments_in(out.path());
    let steps = steps_of(&segments);
    let written = steps.iter().collect::<BTreeSet<_>>().len();
    assert!(written > 300 && steps.contains(&3_001), "{written} steps");
    let events = events_of(&segments, "frames_dropped");
    let counted: usize = events.iter().map(|fields| fields[0].1.parse::<usize>().unwrap()).sum();
    assert_eq!(counted + written, 3_001, "every step is either there or counted: {events:?}");
    assert!(counted > 0);
}

fn fork_and_log() {
    let run = Recorder::attach();
    run.log(1, &[("loss", 1.0)]);
    // SAFETY: the child only logs and ends; it takes no lock that another thread may hold.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            (100..110).for_each(|step| run.log(step, &[("loss", 2.0)]));
            run.finish();
            std::process::exit(0);
        }
        ForkResult::Parent { child } => {
            (2..10).for_each(|step| run.log(step, &[("loss", 1.0)]));
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            run.finish();
        }
    }
}

/// Proves that a forked child writes a separate segment under its pid, and that neither disturbs the other.
#[test]
fn a_fork_writes_its_own_segment() {
    let mut segments = Attempt::new().run("fork");
    segments.sort_by_key(|segment| steps_of(std::slice::from_ref(segment))[0]);
    let pids: BTreeSet<_> = segments.iter().map(|segment| segment.header.as_ref().unwrap().pid).collect();
    assert_eq!((segments.len(), pids.len()), (2, 2));
    assert_eq!(steps_of(&segments[..1]), (1..10).collect::<Vec<_>>());
    assert_eq!(steps_of(&segments[1..]), (100..110).collect::<Vec<_>>());
    assert!(segments.iter().all(|segment| segment.damage.is_empty() && segment.close.is_some()));
}

fn fork_under_load() {
    let run = Recorder::attach();
    let logger = {
        let run = run.clone();
        std::thread::spawn(move || (1..=100_000).for_each(|step| run.log(step, &[("loss", 1.0)])))
    };
    for child_number in 0..30 {
        // SAFETY: the child logs and ends at once, without running destructors.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                run.log(1_000_000 + child_number, &[("loss", 2.0)]);
                // SAFETY: ends the process; nothing of the parent's is touched.
                unsafe { nix::libc::_exit(0) };
            }
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
            }
        }
    }
    logger.join().unwrap();
}

/// Proves that a child forked while another thread is in the middle of logging does not wait for a lock that is never
/// released.
#[test]
fn a_fork_while_another_thread_logs_does_not_hang() {
    let segments = Attempt::new().run("fork_under_load");
    let steps = steps_of(&segments);
    assert_eq!(segments.len(), 31);
    assert_eq!(steps.len(), 100_030);
    assert_eq!(steps.iter().filter(|step| **step >= 1_000_000).count(), 30);
}

fn wait_for_sigterm() {
    let run = Recorder::attach();
    run.stop_on_sigterm();
    for step in 1.. {
        run.heartbeat(step);
        if run.should_stop() {
            run.save_checkpoint(step, &[], |writer| writer.file("w", Kind::Weights, b"state")).unwrap();
            break;
        }
        say(step);
        std::thread::sleep(Duration::from_millis(5));
    }
    // No call of `finish`: dropping the recorder ends the record in order.
}

/// Proves that SIGTERM lets the loop save and end by itself, and that the record then ends in order.
#[test]
fn sigterm_asks_for_a_stop() {
    let attempt = Attempt::new();
    let mut child = attempt.start("wait_for_sigterm");
    numbers_until(&mut child, |step| step >= 3);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    // The pipe is read to its end, so that the child never waits for room in it.
    numbers_until(&mut child, |_| false);
    assert!(child.wait().unwrap().success());
    let segments = segments_in(&attempt.records());
    assert!(segments[0].close.is_some());
    assert!(segments[0].frames.iter().any(|located| matches!(&located.frame, Frame::Checkpoint(_))));
}

fn save_forever() {
    let run = Recorder::attach();
    let mut first = 1;
    if let Some(loaded) = run.resume().unwrap() {
        let state = loaded.read("state.bin").unwrap();
        assert_eq!(state, loaded.step.to_le_bytes().repeat(1_000), "the state is of another step");
        first = loaded.step + 1;
    }
    for step in first.. {
        let bytes = step.to_le_bytes().repeat(1_000);
        let saved = run.save_checkpoint(step, &[("loss", 1.0)], |writer| {
            writer.file("state.bin", Kind::Weights, &bytes)
        });
        match saved {
            Ok(commit) => say(commit.step),
            Err(error) if error.kind() == ErrorKind::Fenced => {
                assert!(run.should_stop(), "a fenced process is told to stop");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Proves that a training process killed while it saves resumes in the next attempt at or after the last step that was
/// acknowledged, over several attempts, and that one that continues as a zombie is fenced.
#[test]
fn killed_saves_resume_and_zombies_are_fenced() {
    let mut attempt = Attempt::new();
    let mut reported = 0;
    for epoch in 1..=4 {
        attempt.epoch = epoch;
        let mut child = attempt.start("save_forever");
        let target = reported + 3;
        reported = numbers_until(&mut child, |step| step >= target);
        child.kill().unwrap();
        child.wait().unwrap();
        let resumable =
            CheckpointView::open(&attempt.checkpoints()).unwrap().resume_target().unwrap().unwrap();
        assert!(
            resumable.step >= reported,
            "step {reported} was committed, and {} is the newest",
            resumable.step
        );
        assert_eq!(resumable.fallbacks, vec![]);
    }
    attempt.epoch = 5;
    let mut zombie = attempt.start("save_forever");
    numbers_until(&mut zombie, |_| true);
    attempt.epoch = 6;
    let mut next = attempt.start("save_forever");
    numbers_until(&mut zombie, |_| false);
    assert!(zombie.wait().unwrap().success(), "the zombie ends by itself, fenced");
    next.kill().unwrap();
    next.wait().unwrap();
}
