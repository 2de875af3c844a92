//! Gathers what is known about an end from the attempt's folder. What it means is decided by the rules.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::Deserialize;
use trackway_core::{MetricStep, Step, Timestamp};
use trackway_files::open_regular;
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::rehearsal::loss_rank;
use trackway_launch::{ExitRecord, Observation, SignalReason};
use trackway_ledger::{AttemptRow, MetricSummaryRow};
use trackway_records::ClosedRecords;
use trackway_rules::classify::{
    ActionKind, ErrorFile, NonFiniteLoss, OwnAction, Progress, Stream, StreamLog,
};
use trackway_rules::{LogEvidence, LogScanner, TerminationEvidence};

use crate::attempt::actions;
use crate::capture::{Capture, NamedFile};
use crate::error::AppError;
use crate::json_file;

/// Bytes of a log scanned in one piece.
const PIECE_BYTES: usize = 1 << 20;
/// A larger file of settings is not searched for a value.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// What the names of such files end with.
const SETTINGS: [&str; 7] = ["yaml", "yml", "json", "toml", "ini", "cfg", "conf"];

/// How the attempt ended, as far as it was observed.
pub enum End {
    /// The shim wrote it down.
    Recorded(Box<ExitRecord>),
    /// It is proved to have ended, and there is no record of how.
    Lost {
        /// The proof.
        why: String,
        /// The machine rebooted since.
        rebooted: bool,
    },
    /// It was planned and never launched.
    NeverLaunched,
}

impl End {
    /// The end that was observed; none while the attempt may be alive.
    pub fn of(observation: Observation) -> Option<Self> {
        match observation {
            Observation::Exited(record) => Some(Self::Recorded(record)),
            Observation::Gone { why, rebooted } => Some(Self::Lost { why, rebooted }),
            Observation::Running(_) | Observation::Pending { .. } | Observation::CannotTell { .. } => None,
        }
    }
}

/// Everything that the rules need to name the reason.
pub fn gather(
    row: &AttemptRow,
    end: &End,
    closed: &ClosedRecords,
    files: &AttemptLayout,
) -> Result<TerminationEvidence, AppError> {
    let mut evidence = TerminationEvidence::of_launch(row.kind);
    evidence.own_actions = actions::read(files)?;
    evidence.progress.last_step = closed.last_step;
    evidence.progress.last_step_at = closed.last_recorded_step.map(|(_, at)| at);
    evidence.ranks.clone_from(&closed.ranks);
    evidence.non_finite_loss = non_finite_loss(&closed.summaries);
    let asked_to_end = [EventKind::MaxStepsReached.as_str(), EventKind::RehearsalTargetReached.as_str()];
    evidence.progress.reached_last_step =
        closed.events.iter().any(|event| asked_to_end.contains(&&*event.kind));
    match end {
        End::Recorded(record) => take_record(&mut evidence, record, closed),
        End::Lost { why, rebooted } => {
            evidence.shim_lost = Some(why.clone());
            evidence.rebooted = *rebooted;
        }
        End::NeverLaunched => {
            // Its lock is the first file of a shim.
            let why = match files.shim_lock().exists() {
                true => "its shim ended before the script began, as where the disk is full",
                false => "the supervisor ended before it launched the attempt",
            };
            evidence.shim_lost = Some(why.into());
        }
    }
    for (stream, log, times) in [
        (Stream::Stdout, files.stdout_log(), files.stdout_times()),
        (Stream::Stderr, files.stderr_log(), files.stderr_times()),
    ] {
        if let Some(log) = scan(&log, &times)? {
            evidence.logs.push(StreamLog { stream, log });
        }
    }
    evidence.take_settings(|| settings_texts(files));
    Ok(evidence)
}

/// The texts of the files of settings that the command names, as they are now.
fn settings_texts(files: &AttemptLayout) -> Vec<String> {
    let captured: Option<Capture> = json_file::read_if_sound(&files.capture_json());
    let named = captured.map(|captured| captured.named_files).unwrap_or_default();
    let is_read = |file: &&NamedFile| {
        let extension = file.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        file.size_bytes <= SETTINGS_BYTES_MAX && SETTINGS.contains(&extension)
    };
    named.iter().filter(is_read).filter_map(|file| text_of(&file.path)).collect()
}

fn text_of(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(path).ok()?.take(SETTINGS_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A step below 0 is from before the first one.
fn from_the_start(step: MetricStep) -> Step {
    Step::try_from(step).unwrap_or(0)
}

/// The training loss, if it is NaN or infinite to the end. Of several that are as likely the training loss by name, each
/// must be.
fn non_finite_loss(summaries: &[MetricSummaryRow]) -> Option<NonFiniteLoss> {
    let likely = summaries.iter().map(|row| loss_rank(&row.name)).max().filter(|likely| *likely > 0)?;
    let mut losses = summaries.iter().filter(|row| loss_rank(&row.name) == likely).map(|row| {
        Some(NonFiniteLoss {
            metric: row.name.clone(),
            from_step: from_the_start(row.non_finite_from_step?),
            last_step: from_the_start(row.last_step),
            count: row.non_finite_end_count?,
            point_count: row.point_count,
        })
    });
    let first = losses.next()??;
    losses.all(|loss| loss.is_some()).then_some(first)
}

fn take_record(evidence: &mut TerminationEvidence, record: &ExitRecord, closed: &ClosedRecords) {
    evidence.exit_code = record.exit_code;
    evidence.signal = record.signal;
    let before_its_end = |why| why != SignalReason::Leftover;
    evidence.was_signalled = Some(record.signals.iter().any(|sent| before_its_end(sent.why)));
    evidence.oom_kill_delta = record.oom_kill_delta;
    evidence.spawn_error = record.spawn_error.as_ref().map(|error| error.message.clone());
    evidence.error_file = record.error_file.as_deref().and_then(error_file);
    let since = closed.heartbeat_at.map(|heartbeat| record.ended_at.seconds_since(heartbeat).max(0.0));
    evidence.progress = Progress { seconds_since_last_heartbeat: since, ..evidence.progress };
    evidence.killed_after_grace = record.killed_after_grace;
    evidence.own_actions.retain(|action| !is_after_success(record, action));
    // A stop that was requested again did not wait for the grace period of the first one.
    let killed_at_once = record.signals.iter().any(|sent| sent.why == SignalReason::KillRequested);
    for action in &mut evidence.own_actions {
        let is_stop = action.kind == ActionKind::StopRequested;
        action.kill_sent |= record.killed_after_grace || killed_at_once && is_stop;
    }
}

/// Whether a limit was reached only after the script itself had ended well: its exit decides, and the limit ended what it left behind.
fn is_after_success(record: &ExitRecord, action: &OwnAction) -> bool {
    let is_limit =
        matches!(action.kind, ActionKind::HangKill | ActionKind::TimeoutKill | ActionKind::BudgetStop);
    let ended_before = record.main_ended_at.is_some_and(|ended_at| ended_at < action.at);
    is_limit && ended_before && record.exit_code == Some(0)
}

/// What `torch.distributed.elastic`'s `@record` leaves: a message that is a text or an object.
#[derive(Deserialize)]
struct Elastic {
    message: ElasticMessage,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ElasticMessage {
    Text(String),
    Detailed {
        message: String,
        #[serde(rename = "extraInfo", default)]
        extra_info: ElasticExtra,
    },
}

#[derive(Default, Deserialize)]
struct ElasticExtra {
    #[serde(default)]
    py_callstack: String,
    #[serde(default)]
    timestamp: serde_json::Value,
}

/// A file that is not such JSON is taken as the message itself: it was left there as one.
fn error_file(text: &str) -> Option<ErrorFile> {
    if text.trim().is_empty() {
        return None;
    }
    Some(match serde_json::from_str::<Elastic>(text).map(|elastic| elastic.message) {
        Ok(ElasticMessage::Detailed { message, extra_info }) => {
            let seconds = match &extra_info.timestamp {
                serde_json::Value::String(text) => text.parse::<f64>().ok(),
                other => other.as_f64(),
            };
            let at = seconds.map(|seconds| Timestamp::from_micros((seconds * 1e6) as i64));
            ErrorFile { message, traceback: extra_info.py_callstack, at }
        }
        Ok(ElasticMessage::Text(message)) => ErrorFile { message, traceback: String::new(), at: None },
        Err(_) => ErrorFile { message: text.into(), traceback: String::new(), at: None },
    })
}

/// Scans a log in one pass and bounded memory, and gives every hit its time. None when there is no log.
fn scan(log: &Path, times: &Path) -> Result<Option<LogEvidence>, AppError> {
    let mut file = match File::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AppError::file("read", log, error)),
    };
    let mut scanner = LogScanner::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => scanner.feed(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(AppError::file("read", log, error)),
        }
    }
    let mut found = scanner.finish();
    // Without times the hits keep their order within the stream, which is what counts most.
    if let Ok(times) = File::open(times) {
        found.set_times(|offset| time_of(&times, offset));
    }
    Ok(Some(found))
}

/// The time of the last mark at or before a byte offset, by bisection in the `.times` file.
fn time_of(times: &File, offset: u64) -> Option<Timestamp> {
    const MARK_BYTES: u64 = 16;
    let mark_at = |index: u64| -> Option<(u64, i64)> {
        let mut mark = [0; MARK_BYTES as usize];
        times.read_exact_at(&mut mark, index * MARK_BYTES).ok()?;
        let (start, at) = mark.split_at(8);
        Some((u64::from_le_bytes(start.try_into().ok()?), i64::from_le_bytes(at.try_into().ok()?)))
    };
    // The number of marks is not known: double until there is none, or a later one.
    let (mut low, mut high) = (0, 1);
    while mark_at(high).is_some_and(|(start, _)| start <= offset) {
        (low, high) = (high, high * 2);
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match mark_at(middle) {
            Some((start, _)) if start <= offset => low = middle,
            _ => high = middle,
        }
    }
    mark_at(low).filter(|(start, _)| *start <= offset).map(|(_, at)| Timestamp::from_micros(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each offset gets the time of the line it is in, at both ends of the file and between.
    #[test]
    fn offsets_get_the_time_of_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.times");
        for count in [0_u64, 1, 2, 3, 7, 8, 9, 1000] {
            let marks: Vec<u8> = (0..count)
                .flat_map(|line| [(line * 10).to_le_bytes(), (line + 100).to_le_bytes()].concat())
                .collect();
            std::fs::write(&path, marks).unwrap();
            let times = File::open(&path).unwrap();
            for line in 0..count {
                for offset in [line * 10, line * 10 + 9] {
                    let at = time_of(&times, offset).map(Timestamp::as_micros);
                    assert_eq!(at, Some(line as i64 + 100), "{count} marks, offset {offset}");
                }
            }
            assert_eq!(time_of(&times, 5).is_some(), count > 0);
        }
    }

    /// Proves that all three forms of an error file are understood.
    #[test]
    fn error_files_are_read_in_every_form() {
        let detailed = r#"{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback", "timestamp": "1700000000"}}}"#;
        let read = error_file(detailed).unwrap();
        assert_eq!((read.message.as_str(), read.traceback.as_str()), ("ValueError: x", "Traceback"));
        assert_eq!(read.at, Some(Timestamp::from_micros(1_700_000_000_000_000)));
        assert_eq!(error_file(r#"{"message": "plain"}"#).unwrap().message, "plain");
        assert_eq!(error_file("not json").unwrap().message, "not json");
        assert_eq!(error_file("  "), None);
    }
}
