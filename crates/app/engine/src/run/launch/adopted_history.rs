//! What the files of earlier attempts say of a run's own checkpoints: who wrote them, and at which steps.

use std::fs::{self, File};
use std::io::{ErrorKind::NotFound, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use trackway_adopt::{History, Past, Steps};
use trackway_core::{AttemptId, Step, Timestamp};
use trackway_formats::layout::AttemptLayout;
use trackway_formats::record::{Frame, Item, Origin, SegmentReader};
use trackway_formats::writers::WritersRecord;
use trackway_launch::ExitRecord;
use trackway_ledger::AttemptRow;

use crate::Context;
use crate::error::AppError;

/// Most bytes read of one segment of a record.
const SEGMENT_BYTES_MAX: u64 = 256 << 20;

/// An earlier attempt.
#[derive(Debug, Clone)]
enum EarlierAttempt {
    /// It ended by its shim, or its files are gone, so that nothing of what they say changes.
    Ended(Arc<Past>),
    /// What is left of it may still write, or its record could not be read.
    WithoutEnd(AttemptId, Option<Timestamp>),
}

impl EarlierAttempt {
    fn of(context: &Context, attempt: &AttemptRow) -> Self {
        let files = context.home.layout.attempt(attempt.attempt_id);
        // A record that cannot be read just now is read again.
        let is_hidden = File::open(files.writers_json()).is_err_and(|error| error.kind() != NotFound);
        let is_over = files.exit_json().exists() || !files.folder().exists();
        match is_over && !is_hidden {
            true => Self::Ended(Arc::new(past_of(context, attempt.attempt_id, attempt.started_at))),
            false => Self::WithoutEnd(attempt.attempt_id, attempt.started_at),
        }
    }

    fn past(&self, context: &Context) -> Arc<Past> {
        match self {
            Self::Ended(past) => Arc::clone(past),
            Self::WithoutEnd(attempt_id, started_at) => Arc::new(past_of(context, *attempt_id, *started_at)),
        }
    }
}

/// What the attempts of the run before this one are shown to have written, and what it committed.
pub(super) fn history_of(context: &Context, row: &AttemptRow) -> Result<History, AppError> {
    let past = pasts_before(context, row)?;
    let roots = fs::read_dir(context.home.layout.checkpoints_of(row.run_id)).into_iter().flatten().flatten();
    let roots: Vec<PathBuf> = roots.map(|root| root.path()).collect();
    Ok(History::new(past, roots.iter().map(PathBuf::as_path)))
}

/// What the attempts of the run before this one are shown to have written, oldest first.
fn pasts_before(context: &Context, row: &AttemptRow) -> Result<Vec<Arc<Past>>, AppError> {
    let take = |known: &mut Vec<EarlierAttempt>, attempt: &AttemptRow| {
        known.push(EarlierAttempt::of(context, attempt));
        Ok(())
    };
    let known = context.fold_attempts((row.run_id, row.kind), row.attempt_number, take)?;
    Ok(known.iter().map(|earlier| earlier.past(context)).collect())
}

/// One attempt. Without a record of writers nothing but what was committed is its own.
pub(super) fn past_of(context: &Context, attempt_id: AttemptId, started_at: Option<Timestamp>) -> Past {
    let files = context.home.layout.attempt(attempt_id);
    let record = fs::read(files.writers_json()).ok();
    let record = record.and_then(|bytes| WritersRecord::from_bytes(&bytes).ok()).unwrap_or_default();
    let from_ns = started_at.map_or(i64::MAX, Timestamp::as_nanos);
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

#[cfg(test)]
mod tests {
    use trackway_ledger::RunRow;

    use super::*;
    use crate::testing::{SETTLES, World};

    /// A run whose first attempt ended by its shim, and the files of that attempt.
    fn ended_run(world: &World, context: &Context) -> (RunRow, AttemptLayout) {
        let run = context.run_by_id(world.run(context, "exit 0", "").run_id).unwrap();
        let ended = context.last_attempt_of(run.run_id).unwrap().unwrap();
        let files = context.home.layout.attempt(ended.attempt_id);
        fs::create_dir_all(files.folder()).unwrap();
        fs::write(files.exit_json(), "{}").unwrap();
        (run, files)
    }

    /// Proves that the files of an attempt which ended by its shim are read once, however many follow, and so are those
    /// that are gone, and those of one without an end each time.
    #[test]
    fn an_attempt_that_ended_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let (run, _) = ended_run(&world, &context);
        World::add_sealed(&context, &run, 2..4, |row| row);
        let without_end = context.last_attempt_of(run.run_id).unwrap().unwrap();
        fs::create_dir_all(context.home.layout.attempt(without_end.attempt_id).folder()).unwrap();
        let next = |number| AttemptRow::planned(AttemptId::new(&context.ids), number, run.kind, &run);
        let (first, again) =
            (pasts_before(&context, &next(4)).unwrap(), pasts_before(&context, &next(4)).unwrap());
        let is_kept: Vec<bool> =
            first.iter().zip(&again).map(|(one, other)| Arc::ptr_eq(one, other)).collect();
        assert_eq!(is_kept, [true, true, false]);
        assert_ne!(first[0].from_ns, i64::MAX);
    }

    /// Proves that a record which cannot be read at first counts as soon as it can: what its attempt wrote is not
    /// another's for as long as this process lives.
    #[test]
    fn a_record_that_cannot_be_read_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let (run, files) = ended_run(&world, &context);
        // A link to itself cannot be opened, and is there.
        std::os::unix::fs::symlink(files.writers_json(), files.writers_json()).unwrap();
        let next = AttemptRow::planned(AttemptId::new(&context.ids), 2, run.kind, &run);
        let looked_until_ns = || pasts_before(&context, &next).unwrap()[0].record.looked_until_ns;
        assert_eq!(looked_until_ns(), None);
        fs::rename(files.writers_json(), folder.path().join("unreadable")).unwrap();
        let record = WritersRecord { looked_until_ns: Some(5), ..WritersRecord::default() };
        fs::write(files.writers_json(), record.to_bytes()).unwrap();
        assert_eq!(looked_until_ns(), Some(5));
    }
}
