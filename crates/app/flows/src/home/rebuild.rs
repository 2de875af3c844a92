//! Makes a ledger again from the files of a home: kept rows first, then the attempts' folders. And the other way: a
//! receipt in the ledger that the home did not keep is kept.
//!
//! A ledger that can be read stays and gets what it lacks. One that is missing, empty or damaged is replaced by one
//! that is made beside it and renamed over it when it is complete; the old one is kept under another name.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_api::home::doctor::{LedgerState, RebuiltLedger};
use trackway_core::name::{Name, NameKind};
use trackway_core::text::counted;
use trackway_core::{AttemptId, EvaluationId, LaunchKind, RunId, Rung, Timestamp};
use trackway_engine::checkpoints::mirror_run;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::home::Home;
use trackway_engine::ledger_state::{self, REBUILDING_SUFFIX, attempt_folders, run_folders};
use trackway_engine::notify::is_too_old;
use trackway_engine::run::StoredJob;
use trackway_engine::run_lock::RunLock;
use trackway_engine::{Context, Dependencies, Request, row_copies};
use trackway_files::unlink;
use trackway_formats::layout::{RowCopy, RowCopyKind};
use trackway_launch::StoredLaunch;
use trackway_ledger::{AttemptRow, KeptRows, KnownAttempt, Ledger, RunRow};
use trackway_records::is_imported_record;

use crate::home::reconcile;
use crate::home::verify::{is_of_here, was_launched_here};
use crate::registry::keep_missing_of_all;

/// Rows of which no file shows whether the old ledger had any.
const NOT_KNOWN: [&str; 4] = [
    "events that are part of no receipt, such as pins that ended and notifications that failed",
    "events of queues of an earlier version, which kept no copies of them",
    "notices of a version before 27, which kept no copies of them",
    "imported runs whose records were deleted with `trackway gc`",
];

/// Makes the ledger of a home again, or adds what it lacks.
///
/// # Errors
/// [`ErrorKind::NotFound`] when the home holds no run; [`ErrorKind::Blocked`] while a run has a supervisor and the ledger would be
/// replaced; when the ledger's server does not answer.
pub fn rebuild(home: &Home, dependencies: Dependencies) -> Result<RebuiltLedger, AppError> {
    home.check_folder()?;
    let runs = run_folders(home);
    if runs.is_empty() {
        let message = format!("`{}` contains no run to rebuild a ledger from", home.folder().display());
        return Err(AppError::new(ErrorKind::NotFound, message).hint("name the home with --home"));
    }
    let (found, ledger, why) = ledger_state::open(home, !attempt_folders(home).is_empty());
    let unreachable = || AppError::new(ErrorKind::Unavailable, why.clone().unwrap_or_default());
    match (found, home.ledger_file()) {
        (LedgerState::Sound | LedgerState::Empty, None) | (LedgerState::Sound, Some(_))
            if ledger.is_some() =>
        {
            drop(ledger);
            fill(home, home, dependencies, found, &runs, &[])
        }
        (LedgerState::Unreachable, _) | (_, None) => Err(unreachable()),
        (_, Some(path)) => {
            drop(ledger);
            replace(home, &path, dependencies, found, &runs)
        }
    }
}

fn replace(
    home: &Home,
    path: &Path,
    dependencies: Dependencies,
    found: LedgerState,
    runs: &[RunId],
) -> Result<RebuiltLedger, AppError> {
    // A supervisor that has the old file open would continue writing to it.
    let locks = lock_all(home, runs)?;
    let beside = with_suffix(path, REBUILDING_SUFFIX);
    for part in parts(&beside) {
        match unlink(&part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(AppError::file("delete", &part, error));
            }
            _ => {}
        }
    }
    let elsewhere = Home::new(home.folder().to_owned(), Some(beside.to_string_lossy().into_owned()));
    let clock = Arc::clone(&dependencies.clock);
    let mut rebuilt = fill(home, &elsewhere, dependencies, found, runs, &locks)?;
    let stamp = clock.now().as_micros() / 1_000_000;
    let old = with_suffix(path, &format!(".before-{stamp}"));
    for (part, to) in parts(path).iter().zip(parts(&old)) {
        if part.exists() {
            rename(part, &to)?;
        }
    }
    rename(&beside, path)?;
    rebuilt.old_ledger = old.exists().then(|| old.display().to_string());
    rebuilt.ledger = path.display().to_string();
    Ok(rebuilt)
}

/// Fills the ledger of `target` from the files of `home`.
fn fill(
    home: &Home,
    target: &Home,
    dependencies: Dependencies,
    found: LedgerState,
    runs: &[RunId],
    locks: &[RunLock],
) -> Result<RebuiltLedger, AppError> {
    let mut filling = Filling {
        home,
        ledger: Ledger::open(&target.ledger_location())?,
        receipt_count: 0,
        other_count: 0,
        failed: Vec::new(),
        missing: Vec::new(),
        may_be_sent_again_count: 0,
        now: dependencies.clock.now(),
    };
    let is_new = filling.ledger.is_empty()?;
    for run_id in runs {
        filling.run(*run_id);
    }
    // One is kept with the run of its checkpoint, and names the run of the evaluation, which is a later one.
    for run_id in runs {
        filling.evaluations(*run_id);
    }
    filling.other_count += filling.restore_all(&row_copies::files(&home.layout.registry()));
    filling.report_missing()?;
    let not_known = if is_new { filling.report_lost(runs)? } else { Vec::new() };
    let Filling { ledger, receipt_count, other_count, mut failed, mut missing, .. } = filling;
    let may_be_sent_again_count = filling.may_be_sent_again_count;
    let location = ledger.location();
    if ledger.is_empty()? {
        let why = failed.first().cloned().unwrap_or_else(|| "no reason is known".into());
        return Err(AppError::new(ErrorKind::Integrity, "no run could be restored").because(why));
    }
    drop(ledger);
    // Everything else is in the attempts' folders, and is sealed as after any crash.
    let context = Context::open_with(target.clone(), dependencies, Request::of_local_user(), false)?;
    let computed_count = reconcile::seal_ended(&context, locks)?;
    // Kept rows of checkpoints are those of a seal; pins, and what came later, are in the logs.
    for run_id in runs {
        let followed =
            context.run_by_id(*run_id).and_then(|run| mirror_run(&context, &run, &BTreeMap::new()));
        failed.extend(followed.err().map(|error| format!("the checkpoints of {run_id}: {error}")));
    }
    keep_receipts(&context, &mut failed, &mut missing)?;
    keep_missing_of_all(&context)?;
    row_copies::keep_waiting_notices(&context, false)?;
    failed.extend(context.set_aside().into_iter().map(|aside| format!("{}: {}", aside.id, aside.why)));
    Ok(RebuiltLedger {
        ledger: location,
        found,
        old_ledger: None,
        run_count: runs.len() as u64,
        receipt_count: receipt_count as u64,
        computed_count: computed_count as u64,
        other_count: other_count as u64,
        failed,
        missing,
        not_known,
        may_be_sent_again_count,
    })
}

/// Keeps the receipts that this home sealed and does not keep.
fn keep_receipts(
    context: &Context,
    failed: &mut Vec<String>,
    missing: &mut Vec<String>,
) -> Result<(), AppError> {
    let known = context.ledger_read(Ledger::known_attempts)?;
    for KnownAttempt { attempt_id, run_id, .. } in known.into_iter().filter(|attempt| attempt.sealed) {
        let copy = context.home.layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
        if copy.exists() || !is_of_here(context, run_id) {
            continue;
        }
        let kept = context.ledger_read(|ledger| ledger.attempt(attempt_id)).and_then(|row| {
            let is_own = row.is_some_and(|row| was_launched_here(context, &row));
            Ok(is_own && context.keep_sealed_later(run_id, attempt_id)?)
        });
        match kept {
            Ok(true) => missing.push(format!(
                "{attempt_id}: the hashes of its files at the seal; the copy of its receipt was missing and is written again from the ledger"
            )),
            Ok(false) => {}
            Err(error) => failed.push(format!("{attempt_id}: its receipt was not kept: {error}")),
        }
    }
    Ok(())
}

struct Filling<'a> {
    home: &'a Home,
    ledger: Ledger,
    receipt_count: usize,
    other_count: usize,
    failed: Vec<String>,
    missing: Vec<String>,
    may_be_sent_again_count: u64,
    now: Timestamp,
}

/// What files of a home show of rows of which it keeps no copies.
#[derive(Debug, Clone, Copy, Default)]
struct Traces {
    /// Runs of `trackway prove`.
    proof_run_count: u64,
    /// Data sets whose files are counted and not listed.
    unlisted_data_count: u64,
}

/// What the old ledger had and no file has, and of what that cannot be known.
fn lost(traces: Traces) -> (Vec<String>, Vec<String>) {
    let Traces { proof_run_count, unlisted_data_count } = traces;
    let data = (unlisted_data_count > 0).then(|| {
        format!(
            "the lists of files of {} (`data_snapshot_files`): `trackway data snapshot` records them again",
            counted(unlisted_data_count, "data set")
        )
    });
    let proofs = (proof_run_count > 0).then(|| {
        format!("resume proofs of {} of `trackway prove`: prove again", counted(proof_run_count, "run"))
    });
    (data.into_iter().collect(), proofs.into_iter().chain(NOT_KNOWN.map(str::to_owned)).collect())
}

impl Filling<'_> {
    /// Receipts come in the order of their attempts, so that the run ends where the last one left it.
    fn run(&mut self, run_id: RunId) {
        let files = row_copies::files(&self.home.layout.run(run_id).row_copies());
        let about = |kind| -> Vec<PathBuf> {
            files.iter().filter(|path| kind_of_copy(path) == Some(kind)).cloned().collect()
        };
        let kept_run = about(RowCopyKind::Run);
        match kept_run.is_empty() {
            true => self.run_of_plan(run_id),
            false => drop(self.restore_all(&kept_run)),
        }
        let mut receipts = about(RowCopyKind::Receipt);
        receipts.sort_by_key(|path| number_of(path));
        self.receipt_count += self.restore_all(&receipts);
        self.restore_all(&about(RowCopyKind::Attempt));
        self.attempts_of_folders(run_id);
        self.restore_all(&about(RowCopyKind::State));
        for kind in [
            RowCopyKind::RollBack,
            RowCopyKind::Amendment,
            RowCopyKind::AmendedRun,
            RowCopyKind::Diagnosis,
            RowCopyKind::Checks,
            RowCopyKind::Event,
        ] {
            self.other_count += self.restore_all(&about(kind));
        }
        self.notices(&about(RowCopyKind::Notice));
    }

    /// A notice that was being sent when its copy was last written may have arrived: it waits again, and is counted unless
    /// it is too old to be sent.
    fn notices(&mut self, files: &[PathBuf]) {
        for path in files {
            let added_count = self.restore_all(std::slice::from_ref(path));
            let kept = row_copies::read(path).ok().and_then(|rows| rows.notice().ok().flatten());
            let is_in_doubt = kept
                .is_some_and(|(notice, delivery)| delivery.is_in_doubt() && !is_too_old(&notice, self.now));
            self.may_be_sent_again_count += u64::from(added_count > 0 && is_in_doubt);
            self.other_count += added_count;
        }
    }

    fn evaluations(&mut self, run_id: RunId) {
        let mut files = row_copies::files(&self.home.layout.run(run_id).row_copies());
        files.retain(|path| kind_of_copy(path) == Some(RowCopyKind::Evaluation));
        self.other_count += self.restore_all(&files);
    }

    /// Puts back the rows of files; returns how many added something. One that is damaged, or that has a row which the ledger has
    /// otherwise, is named, and the others continue.
    fn restore_all(&mut self, files: &[PathBuf]) -> usize {
        let mut count = 0;
        for path in files {
            let restored = row_copies::read(path)
                .map_err(|error| error.to_string())
                .and_then(|rows| self.ledger.restore(&rows).map_err(|error| error.to_string()));
            let file = self.home.layout.below(path);
            match restored {
                Ok(restored) => {
                    count += usize::from(restored.added);
                    let differs = restored.differs.iter().map(|why| format!("`{file}`: {why}"));
                    self.failed.extend(differs);
                }
                Err(why) => self.failed.push(format!("`{file}` was not taken: {why}")),
            }
        }
        count
    }

    /// A run of a version that kept no rows: its plan describes it.
    fn run_of_plan(&mut self, run_id: RunId) {
        let path = self.home.layout.run(run_id).plan_json();
        let run = std::fs::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice::<StoredJob>(&bytes).map_err(|error| error.to_string()))
            .and_then(|job| run_of(run_id, &job).map_err(|error| error.to_string()))
            .and_then(|mut run| {
                run.kind = self.kind_of(run_id);
                self.ledger.restore(&KeptRows::of_run(&run, &[], &[])).map_err(|error| error.to_string())
            });
        if let Err(why) = run {
            self.failed
                .push(format!("run {run_id}: `{}` cannot be used: {why}", self.home.layout.below(&path)));
        }
    }

    fn kind_of(&self, run_id: RunId) -> LaunchKind {
        let launches = attempt_folders(self.home).into_iter().filter_map(|attempt_id| {
            StoredLaunch::read(self.home.layout.attempt(attempt_id).folder()).ok().flatten()
        });
        launches
            .filter(|launch| launch.run_id == run_id)
            .map(|launch| launch.kind)
            .next()
            .unwrap_or(LaunchKind::Train)
    }

    /// Attempts that are known by their folders alone.
    fn attempts_of_folders(&mut self, run_id: RunId) {
        for attempt_id in attempt_folders(self.home) {
            let files = self.home.layout.attempt(attempt_id);
            let Ok(Some(launch)) = StoredLaunch::read(files.folder()) else { continue };
            if launch.run_id != run_id || self.ledger.attempt(attempt_id).ok().flatten().is_some() {
                continue;
            }
            let Ok(Some(run)) = self.ledger.run(run_id) else { continue };
            let row = attempt_of(&run, &launch, files.folder());
            match self.ledger.restore(&KeptRows::of([&row])) {
                Ok(_) => self.missing.push(format!(
                    "{attempt_id}: its code, environment and price were in the ledger only; `capture.json` in its folder has some"
                )),
                Err(error) => self.failed.push(format!("{attempt_id}: {error}")),
            }
        }
    }

    /// What is named in the files and is not in the ledger.
    fn report_missing(&mut self) -> Result<(), trackway_ledger::LedgerError> {
        let known: HashSet<AttemptId> =
            self.ledger.known_attempts()?.into_iter().map(|attempt| attempt.attempt_id).collect();
        let unknown = attempt_folders(self.home).into_iter().filter(|id| !known.contains(id));
        let (imported, unknown): (Vec<AttemptId>, Vec<AttemptId>) =
            unknown.partition(|id| is_imported_record(&self.home.layout.attempt(*id).records()));
        if !imported.is_empty() {
            let runs = counted(imported.len() as u64, "imported run");
            let them = if imported.len() == 1 { "it" } else { "them" };
            self.missing.push(format!("{runs}: import {them} again with `trackway import`"));
        }
        self.failed
            .extend(unknown.iter().map(|id| format!("{id}: neither its run nor its launch is in the files")));
        let evaluations = self.ledger.evaluation_ids()?;
        let folders = std::fs::read_dir(self.home.layout.evaluations()).into_iter().flatten().flatten();
        for name in folders.filter_map(|entry| entry.file_name().into_string().ok()) {
            if name.starts_with(EvaluationId::PREFIX) && !evaluations.contains(&name) {
                self.missing.push(format!(
                    "evaluation {name}: no receipt of it was kept, or it had not ended; evaluate again"
                ));
            }
        }
        Ok(())
    }

    /// What a ledger that began empty lacks; returns of what that cannot be known.
    fn report_lost(&mut self, runs: &[RunId]) -> Result<Vec<String>, trackway_ledger::LedgerError> {
        let mut traces =
            Traces { unlisted_data_count: self.ledger.data_without_files()?, ..Traces::default() };
        for run_id in runs {
            let run = self.ledger.run(*run_id)?;
            traces.proof_run_count += u64::from(run.is_some_and(|run| run.kind == LaunchKind::Prove));
        }
        let (missing, not_known) = lost(traces);
        self.missing.extend(missing);
        Ok(not_known)
    }
}

fn run_of(run_id: RunId, job: &StoredJob) -> serde_json::Result<RunRow> {
    let plan = &job.plan;
    let created_at = run_id.created_at();
    let mut run = RunRow::planned(
        run_id,
        &Name::renamed(NameKind::Run, &plan.run.name),
        &job.config_sha256,
        serde_json::to_value(plan)?,
        created_at,
    );
    run.model_family.clone_from(&plan.run.model_family);
    run.owner.clone_from(&plan.owner.name);
    run.team.clone_from(&plan.owner.team);
    run.seed = plan.run.seed;
    run.data_sha256.clone_from(&job.data_sha256);
    run.run_file_path = job.run_file.as_ref().map(|path| path.to_string_lossy().into_owned());
    Ok(run)
}

fn attempt_of(run: &RunRow, launch: &StoredLaunch, folder: &Path) -> AttemptRow {
    let mut row = AttemptRow::planned(launch.attempt_id, launch.attempt_number, launch.kind, run);
    let rung = launch.rung.parse().ok().and_then(Rung::new);
    row.rung = rung.unwrap_or(Rung::FULL).to_string();
    row.epoch = Some(launch.epoch);
    row.command.clone_from(&launch.argv);
    row.working_directory = launch.working_directory.to_string_lossy().into_owned();
    row.log_directory = folder.to_string_lossy().into_owned();
    row.config_sha256.clone_from(&launch.config_sha256);
    row
}

/// What a file with copies of rows is about.
pub(super) fn kind_of_copy(path: &Path) -> Option<RowCopyKind> {
    RowCopyKind::of_file(path.file_name()?.to_str()?)
}

fn number_of(path: &Path) -> u32 {
    let attempts = row_copies::read(path).ok().and_then(|rows| rows.attempts().ok()).unwrap_or_default();
    attempts.first().map_or(u32::MAX, |attempt| attempt.attempt_number)
}

fn lock_all(home: &Home, runs: &[RunId]) -> Result<Vec<RunLock>, AppError> {
    let mut locks = Vec::with_capacity(runs.len());
    for run_id in runs {
        let files = home.layout.run(*run_id);
        let lock =
            RunLock::try_take(&files).map_err(|error| AppError::file("lock", files.folder(), error))?;
        let Some(lock) = lock else {
            // They would be taken for those of other processes.
            drop(locks);
            return Err(supervised(home, *run_id));
        };
        lock.note_rebuild();
        locks.push(lock);
    }
    Ok(locks)
}

/// That a supervisor has the ledger open, with all of them and how they are ended.
fn supervised(home: &Home, run_id: RunId) -> AppError {
    let message = format!("run {run_id} has a supervisor, which has the old ledger open");
    let error = AppError::new(ErrorKind::Blocked, message);
    ledger_state::supervisor_hints(home)
        .into_iter()
        .fold(error, AppError::hint)
        .hint("or wait until it ends; then again: trackway doctor rebuild")
}

/// A SQLite file and what SQLite keeps beside it.
fn parts(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| with_suffix(path, suffix))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn rename(from: &Path, to: &Path) -> Result<(), AppError> {
    std::fs::rename(from, to).map_err(|error| AppError::file("rename", from, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only what left a trace is named as lost, and that the rest is named as not known.
    #[test]
    fn what_was_not_there_is_not_lost() {
        let (missing, not_known) = lost(Traces::default());
        assert_eq!((missing, not_known), (Vec::new(), NOT_KNOWN.map(str::to_owned).to_vec()));
        let (missing, not_known) = lost(Traces { proof_run_count: 3, unlisted_data_count: 1 });
        assert!(missing.len() == 1 && missing[0].contains("files of 1 data set ("), "{missing:?}");
        assert_eq!(not_known.len(), NOT_KNOWN.len() + 1);
        assert!(not_known[0].contains("3 runs of `trackway prove`"), "{not_known:?}");
    }
}
