//! What the files of earlier attempts say of a run's own checkpoints: who wrote them, and at which steps.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trackway_adopt::{History, Past, Steps};
use trackway_core::{Step, Timestamp};
use trackway_formats::layout::AttemptLayout;
use trackway_formats::record::{Frame, Item, Origin, SegmentReader};
use trackway_formats::writers::WritersRecord;
use trackway_launch::ExitRecord;
use trackway_ledger::AttemptRow;

use crate::Context;
use crate::error::AppError;

/// Most bytes read of one segment of a record.
const SEGMENT_BYTES_MAX: u64 = 256 << 20;

/// What the attempts of the run before this one are shown to have written, and what it committed.
pub(super) fn history_of(context: &Context, row: &AttemptRow) -> Result<History, AppError> {
    let mut before = context.attempts_of_kind(row.run_id, row.kind)?;
    before.retain(|one| one.attempt_number < row.attempt_number);
    let past = before.iter().map(|attempt| past_of(context, attempt)).collect();
    let roots = fs::read_dir(context.home.layout.checkpoints_of(row.run_id)).into_iter().flatten().flatten();
    let roots: Vec<PathBuf> = roots.map(|root| root.path()).collect();
    Ok(History::new(past, roots.iter().map(PathBuf::as_path)))
}

/// One attempt. Without a record of writers nothing but what was committed is its own.
pub(super) fn past_of(context: &Context, attempt: &AttemptRow) -> Past {
    let files = context.home.layout.attempt(attempt.attempt_id);
    let record = fs::read(files.writers_json()).ok();
    let record = record.and_then(|bytes| WritersRecord::from_bytes(&bytes).ok()).unwrap_or_default();
    let from_ns = attempt.started_at.map_or(i64::MAX, Timestamp::as_nanos);
    Past { from_ns, alive_until_ns: alive_until_ns(&files).unwrap_or(from_ns), record }
}

/// The last sign of life of an attempt that has ended: its end by its shim or, where that was killed, the last that it printed or recorded.
fn alive_until_ns(files: &AttemptLayout) -> Option<i64> {
    if let Ok(Some(exit)) = ExitRecord::read(files.folder()) {
        return Some(exit.ended_at.as_nanos());
    }
    let segments = fs::read_dir(files.records()).into_iter().flatten().flatten().map(|entry| entry.path());
    let written = segments.chain([files.stdout_log(), files.stderr_log()]);
    written.filter_map(|path| modified_ns(&path)).max()
}

fn modified_ns(path: &Path) -> Option<i64> {
    let modified = fs::metadata(path).and_then(|found| found.modified()).ok()?;
    let since_1970 = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since_1970.as_nanos()).ok()
}

/// The steps that an attempt recorded or printed, and when.
pub(super) fn steps_of(files: &AttemptLayout) -> Steps {
    let segments = fs::read_dir(files.records()).into_iter().flatten().flatten();
    let mut reached: Vec<(i64, Step)> = segments.flat_map(|entry| steps_in(&entry.path())).collect();
    reached.sort_unstable();
    let mut steps = Steps::default();
    reached.into_iter().for_each(|(at_ns, step)| steps.reached(at_ns, step));
    steps
}

/// A damaged frame, as at the end of a record that nothing finished, ends nothing: what is behind it counts.
fn steps_in(segment: &Path) -> Vec<(i64, Step)> {
    let mut bytes = Vec::new();
    let read = File::open(segment).and_then(|file| file.take(SEGMENT_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let (mut reader, mut found) = (SegmentReader::default(), Vec::new());
    reader.push(&bytes);
    while let Ok(Some(item)) = reader.next_item() {
        let Item::Frame(located) = item else { continue };
        match located.frame {
            // Its steps are the seconds of the attempt.
            Frame::Header(header) if header.origin == Origin::Telemetry => return Vec::new(),
            Frame::Metrics(metrics) => found.push((metrics.at.as_nanos(), metrics.step)),
            _ => {}
        }
    }
    found
}
