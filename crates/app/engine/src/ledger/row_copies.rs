//! What a home keeps of its receipts beside the ledger: files in each run's folder, which `trackway gc` leaves alone and from
//! which `trackway_flows::home::rebuild` makes a ledger again.
//!
//! They are written after the ledger took the same rows. A kill in between loses nothing but the copy of an event: what else is not
//! kept of a run is computed again from the attempt's folder, and of a model with the next command that changes it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, RunId, Timestamp};
use trackway_files::{TempFile, make_folders};
use trackway_formats::layout::RowCopy;
use trackway_ledger::{
    AttemptRow, AttemptSeal, DeliveryEnd, DeliveryState, DetectionRow, EvaluationEnd, EvaluationRow,
    EventRow, KeptRows, Ledger, LedgerError, NoticeRow, OutboxRow, RunRow, RunState, SubjectEventRow,
};

use crate::Context;
use crate::attempt::attempt_files;
use crate::error::AppError;
use crate::home::Home;

impl Context {
    /// Keeps rows of a run, as far as the disk allows: the ledger has them already.
    pub fn keep(&self, run_id: RunId, copy: RowCopy<'_>, rows: &KeptRows) {
        let path = self.home.layout.run(run_id).row_copy(copy);
        let rows = self.ledger.kept(rows);
        match is_named_later(copy) {
            true => self.keep_beside(path, rows),
            false => write(&self.home, &path, rows),
        }
    }

    /// Keeps the state of a run. Only one that runs has a receipt after it: every other one may be the last of its run.
    pub(crate) fn keep_state(&self, run: &RunRow) {
        let path = self.home.layout.run(run.run_id).row_copy(RowCopy::State);
        let rows = self.ledger.kept(&KeptRows::of_run(run, &[], &[]));
        if runs_on(run.state) {
            return self.keep_beside(path, rows);
        }
        // The state before it has the same name.
        self.copies.finish();
        write(&self.home, &path, rows);
    }

    /// Keeps rows beside what follows.
    fn keep_beside(&self, path: PathBuf, rows: Result<KeptRows, LedgerError>) {
        let home = self.home.clone();
        self.copies.begin(move || write_by(TempFile::write_whole, &home, &path, rows));
    }

    /// Adds an event of a run of this home that is part of no receipt, and keeps it.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn append_run_event(&self, event: &EventRow) -> Result<(), AppError> {
        self.ledger_write(|ledger| ledger.append_event(event))?;
        self.keep_event(event);
        Ok(())
    }

    /// Keeps an event of a run that the ledger took.
    pub(crate) fn keep_event(&self, event: &EventRow) {
        let rows = KeptRows::of([&SubjectEventRow::from(event)]);
        self.keep(event.run_id, RowCopy::Event(&event.event_id), &rows);
    }

    /// Keeps a sealed receipt, with the decision that followed, what detectors found, and the hashes of the attempt's files.
    pub(crate) fn keep_sealed(&self, seal: &AttemptSeal, sealed_at: Timestamp, detections: &[DetectionRow]) {
        let AttemptRow { run_id, attempt_id, .. } = seal.attempt;
        let path = self.home.layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
        // Its name makes theirs durable.
        self.copies.finish();
        let rows = self.ledger.kept_receipt(seal, sealed_at, detections);
        let files = attempt_files::hashes(&self.home.layout, attempt_id);
        write(&self.home, &path, rows.map(|rows| rows.with_files(files)));
    }

    /// Keeps a sealed receipt that is not kept, from the rows of the ledger, and marked so: the process that sealed it
    /// was killed before it kept it, or its copy was deleted. What the attempt's files were at the seal nothing shows
    /// any more. Whether it is kept now, and was not.
    ///
    /// # Errors
    /// When the ledger cannot be read, or its rows have another digest than was sealed.
    pub fn keep_sealed_later(&self, run_id: RunId, attempt_id: AttemptId) -> Result<bool, AppError> {
        let path = self.home.layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
        // What was kept at the seal has the hashes of the files too, and is not replaced.
        if path.exists() {
            return Ok(false);
        }
        let rows = self.ledger_read(|ledger| ledger.kept_later(attempt_id))?;
        rows.into_iter().for_each(|rows| write(&self.home, &path, Ok(rows)));
        Ok(path.exists())
    }

    /// Takes the hashes of files that are deleted on purpose out of the kept receipt of their attempt, as far as the disk allows.
    pub fn forget_files(&self, run_id: RunId, attempt_id: AttemptId) {
        let layout = &self.home.layout;
        let path = layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
        let Ok(rows) = read(&path) else { return };
        let mut files = rows.files().clone();
        files.retain(|path, _| attempt_files::kept_by_gc(layout, path));
        if files != *rows.files() {
            write(&self.home, &path, Ok(rows.with_files(files)));
        }
    }

    /// Ends an evaluation in the ledger and keeps it with the run of its checkpoint. Returns the row as it was stored.
    pub fn end_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, AppError> {
        let stored = self.ledger_write(|ledger| ledger.end_evaluation(end))?;
        self.keep_evaluation(end);
        Ok(stored)
    }

    /// The same for one that ended elsewhere.
    pub fn take_ended_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, AppError> {
        let stored = self.ledger_write(|ledger| ledger.insert_ended_evaluation(end))?;
        self.keep_evaluation(end);
        Ok(stored)
    }

    fn keep_evaluation(&self, end: &EvaluationEnd) {
        let EvaluationRow { run_id, evaluation_id, .. } = &end.evaluation;
        let path = self.home.layout.run(*run_id).row_copy(RowCopy::Evaluation(evaluation_id));
        write(&self.home, &path, self.ledger.kept_evaluation(end));
    }

    /// Keeps rows of the registry under a name without separators of paths.
    pub fn keep_in_registry(&self, name: &str, rows: &KeptRows) {
        write(&self.home, &self.home.layout.registry_file(name), self.ledger.kept(rows));
    }

    /// Whether rows of the registry are kept under this name.
    pub fn is_kept_in_registry(&self, name: &str) -> bool {
        self.home.layout.registry_file(name).exists()
    }
}

/// Where the copy of a notice is; none: it is about something else than a run.
pub fn notice_copy(home: &Home, notice: &NoticeRow) -> Option<PathBuf> {
    Some(home.layout.run(notice.run_id()?).row_copy(RowCopy::Notice(&notice.notice_id)))
}

/// Keeps a notice before the ledger gets it: so its copy is never older than one that says how its delivery ended. One
/// that the ledger has is kept as it has it. A copy that is there stays.
pub(crate) fn keep_new_notice(home: &Home, ledger: &Ledger, notice: &NoticeRow) {
    if notice_copy(home, notice).is_some_and(|path| !path.exists()) {
        let stored = ledger.delivery_of(&notice.notice_id).ok().flatten();
        let delivery = stored.unwrap_or_else(|| OutboxRow::of(notice, DeliveryState::Waiting));
        keep_first(home, ledger, notice, &delivery);
    }
}

/// Keeps that a notice is about to be sent, before it is: where nothing follows, it may have arrived.
pub(crate) fn keep_try(home: &Home, ledger: &Ledger, notice: &NoticeRow) {
    let stored = ledger.delivery_of(&notice.notice_id).ok().flatten();
    let delivery = stored.unwrap_or_else(|| OutboxRow::of(notice, DeliveryState::Waiting));
    keep_notice(home, ledger, notice, &delivery.while_tried());
}

/// Keeps how a try ended.
pub(crate) fn keep_end(home: &Home, ledger: &Ledger, notice: &NoticeRow, end: &DeliveryEnd) {
    let stored = ledger.delivery_of(&notice.notice_id).ok().flatten();
    keep_notice(home, ledger, notice, &after_try(stored, notice, end));
}

/// A delivery after a try, by what the ledger has of it: it may not have taken how the try ended, and it may know that
/// another one has ended it.
fn after_try(stored: Option<OutboxRow>, notice: &NoticeRow, end: &DeliveryEnd) -> OutboxRow {
    let (state, last_failure) = end.state_and_failure();
    let last_failure = last_failure.map(str::to_owned);
    match stored {
        Some(row) if row.state != DeliveryState::Waiting => row,
        Some(row) => OutboxRow { state, last_failure, ..row },
        None => OutboxRow { tries: 1, last_failure, ..OutboxRow::of(notice, state) },
    }
}

fn keep_notice(home: &Home, ledger: &Ledger, notice: &NoticeRow, delivery: &OutboxRow) {
    if let Some(path) = notice_copy(home, notice) {
        write(home, &path, ledger.kept(&KeptRows::of_notice(notice, delivery)));
    }
}

/// The same where there is no copy: another process may write a newer one at the same time, and that stays. Whether it was written.
fn keep_first(home: &Home, ledger: &Ledger, notice: &NoticeRow, delivery: &OutboxRow) -> bool {
    let rows = ledger.kept(&KeptRows::of_notice(notice, delivery)).ok();
    let text = rows.and_then(|rows| serde_json::to_vec(&rows).ok());
    let Some((path, text)) = notice_copy(home, notice).zip(text) else { return false };
    let written = path.parent().map_or(Ok(()), make_folders).and_then(|()| {
        let (temporary, mut file) = TempFile::beside(&path)?;
        file.write_all(&text)?;
        // Before it has its name: a power cut must not leave an empty copy under it.
        file.sync_all()?;
        temporary.persist_new(&path)
    });
    written.is_ok()
}

/// Notices that are looked at together.
const NOTICES_AT_ONCE: u32 = 500;

/// Keeps the notices of runs of this home that wait and have no copy: a version before 27 wrote none, and the disk may
/// have been full. Returns how many were written; with `dry_run` how many would be.
///
/// # Errors
/// When the ledger cannot be read.
pub fn keep_waiting_notices(context: &Context, dry_run: bool) -> Result<u64, AppError> {
    let (home, mut count, mut after) = (&context.home, 0, String::new());
    loop {
        let page = context.ledger_read(|ledger| ledger.waiting_notices(&after, NOTICES_AT_ONCE))?;
        let Some((last, _)) = page.last() else { return Ok(count) };
        after.clone_from(&last.notice_id);
        for (notice, delivery) in &page {
            let is_here = notice.run_id().is_some_and(|run_id| home.layout.run(run_id).folder().is_dir());
            if is_here && notice_copy(home, notice).is_some_and(|path| !path.exists()) {
                count += u64::from(dry_run || keep_first(home, &context.ledger, notice, delivery));
            }
        }
    }
}

/// Writes a file whole.
type Writer = fn(&Path, &[u8]) -> std::io::Result<()>;

/// Whether a copy is written beside what follows, and waits for the disk once, not twice: it is one of those of a launch. The ledger has
/// their rows, and their names are durable with that of the receipt beside them: a power cut before it takes them away, as does a kill
/// before they are written.
const fn is_named_later(copy: RowCopy<'_>) -> bool {
    matches!(copy, RowCopy::Run | RowCopy::Attempt(_))
}

/// The same of a state: a receipt follows that of a run that runs.
const fn runs_on(state: RunState) -> bool {
    matches!(state, RunState::Running)
}

fn write(home: &Home, path: &Path, rows: Result<KeptRows, LedgerError>) {
    write_by(TempFile::write, home, path, rows);
}

/// As the ledger holds them, or not at all. What a kill left of writing others beside them goes.
fn write_by(write: Writer, home: &Home, path: &Path, rows: Result<KeptRows, LedgerError>) {
    let text = rows.ok().and_then(|rows| serde_json::to_vec(&rows).ok());
    if let (Some(text), Some(folder)) = (text, path.parent()) {
        let written = make_folders(folder).and_then(|()| write(path, &text));
        // The ledger has the rows: a copy that cannot be written stops nothing.
        let _ = written.and_then(|()| home.clear_abandoned(folder));
    }
}

/// The rows of a file.
pub fn read(path: &Path) -> std::io::Result<KeptRows> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

/// The files of kept rows in a folder, by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::Clock as _;
    use trackway_core::name::{Name, NameKind};

    use super::*;
    use crate::testing::{SETTLES, World, arrived, notice, posted};

    fn kept(context: &Context, notice: &NoticeRow) -> Option<OutboxRow> {
        let rows = read(&notice_copy(&context.home, notice).unwrap()).ok()?;
        rows.notice().unwrap().map(|(_, delivery)| delivery)
    }

    /// Proves that what a launch waits for leaves its names to the receipt, which is durable when it is there, as is
    /// what no receipt follows.
    #[test]
    fn the_receipt_makes_the_names_before_it_durable() {
        let attempt = AttemptId::new(&trackway_core::SequentialIds::default());
        for copy in [RowCopy::Run, RowCopy::Attempt(attempt)] {
            assert!(is_named_later(copy), "{copy:?}");
        }
        for copy in
            [RowCopy::Receipt(attempt), RowCopy::RollBack(attempt), RowCopy::Checks, RowCopy::Event("e")]
        {
            assert!(!is_named_later(copy), "{copy:?}");
        }
        assert!(runs_on(RunState::Running));
        for state in [RunState::Waiting, RunState::Failed, RunState::Stopped, RunState::Completed] {
            assert!(!runs_on(state), "{state}");
        }
    }

    /// Proves that the copy of a run's state is that of its last change, although that of a run that runs is written beside what follows.
    #[test]
    fn the_last_state_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = world.run(&context, "exit 0", "").run_id;
        let path = context.home.layout.run(run_id).row_copy(RowCopy::State);
        for _ in 0..20 {
            context.set_run_state(run_id, RunState::Running).unwrap();
            context.set_run_state(run_id, RunState::Stopped).unwrap();
            let kept = std::fs::read_to_string(&path).unwrap();
            assert!(kept.contains("\"stopped\""), "{kept}");
        }
    }

    /// Proves that a notice which waits without a copy gets one, as the ledger has it, once and not in a dry run; that
    /// those of other homes get none; and that one which a copy was written of meanwhile keeps that.
    #[test]
    fn waiting_notices_get_their_copies() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let here = world.run(&context, "exit 0", "").run_id;
        let elsewhere = RunId::new(&context.ids);
        let name = Name::renamed(NameKind::Run, "theirs");
        let run = RunRow::planned(elsewhere, &name, "c", json!({}), context.clock.now());
        context.ledger_write(|ledger| ledger.insert_run(&run, &[])).unwrap();
        let (waits, theirs) = (posted(&context, here, "end:1"), posted(&context, elsewhere, "end:1"));
        let sent = posted(&context, here, "end:2");
        arrived(&context, &sent);
        for (dry_run, count) in [(true, 1), (false, 1), (true, 0), (false, 0)] {
            assert_eq!(keep_waiting_notices(&context, dry_run).unwrap(), count, "{dry_run}");
        }
        let stored = context.ledger_read(|ledger| ledger.delivery_of(&waits.notice_id)).unwrap();
        assert_eq!(kept(&context, &waits), stored);
        assert!(!notice_copy(&context.home, &theirs).unwrap().exists() && kept(&context, &sent).is_none());
        let newer = OutboxRow::of(&waits, DeliveryState::Delivered);
        assert!(!keep_first(&context.home, &context.ledger, &waits, &newer));
        assert_eq!(kept(&context, &waits), stored);
    }

    /// Proves that a copy says that a notice is being sent before it is, and then what came of it; and that one which
    /// has arrived is kept as such also where its copy was gone.
    #[test]
    fn a_copy_follows_its_delivery() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = world.run(&context, "exit 0", "").run_id;
        let (home, ledger) = (&context.home, &context.ledger);
        let sent = notice(run_id, "end:1");
        keep_new_notice(home, ledger, &sent);
        assert!(ledger.post_notice(&sent).unwrap());
        assert!(!kept(&context, &sent).unwrap().is_in_doubt());
        let later = DeliveryEnd::Later { seconds: 0.0, why: "500".into() };
        for (end, state) in
            [(later, DeliveryState::Waiting), (DeliveryEnd::Delivered, DeliveryState::Delivered)]
        {
            assert!(ledger.take_notice(&sent.notice_id, 0.0).unwrap());
            keep_try(home, ledger, &sent);
            assert!(kept(&context, &sent).unwrap().is_in_doubt());
            ledger.end_notice(&sent.notice_id, &end).unwrap();
            keep_end(home, ledger, &sent, &end);
            let delivery = kept(&context, &sent).unwrap();
            assert_eq!((delivery.state, delivery.is_in_doubt()), (state, false));
        }
        context.home.remove(&notice_copy(home, &sent).unwrap()).unwrap();
        keep_new_notice(home, ledger, &sent);
        assert_eq!(kept(&context, &sent).unwrap().state, DeliveryState::Delivered);
    }

    /// Proves what a copy says after a try that the ledger did not take, and after one that another process was ahead of.
    #[test]
    fn a_try_is_kept_without_the_ledger() {
        let run_id: RunId = "run_00000000000000000000000001".parse().unwrap();
        let notice = notice(run_id, "end:1");
        let waiting = OutboxRow { tries: 3, ..OutboxRow::of(&notice, DeliveryState::Waiting) };
        let delivered = OutboxRow { tries: 3, ..OutboxRow::of(&notice, DeliveryState::Delivered) };
        let later = DeliveryEnd::Later { seconds: 60.0, why: "500".into() };
        for (stored, end, state, tries) in [
            (None, &later, DeliveryState::Waiting, 1),
            (None, &DeliveryEnd::Delivered, DeliveryState::Delivered, 1),
            (Some(waiting.clone()), &DeliveryEnd::Delivered, DeliveryState::Delivered, 3),
            (Some(waiting), &later, DeliveryState::Waiting, 3),
            (Some(delivered), &later, DeliveryState::Delivered, 3),
        ] {
            let row = after_try(stored, &notice, end);
            assert_eq!((row.state, row.tries, row.is_in_doubt()), (state, tries, false));
        }
    }
}
