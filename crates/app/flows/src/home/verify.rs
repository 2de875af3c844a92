//! Recomputes every digest that the ledger and the home hold: receipts, evaluations, verdicts of gates, checkpoints,
//! outputs, artifacts, sources, kept bytes of data; and compares the rows of checkpoints with their logs, and rows with
//! the copies that are kept of them. What none of this proves is named.

mod checkpoints;
mod copies;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trackway_api::home::verify::{Differing, SealedKind, VerifiedKind, VerifyReport};
use trackway_core::{AttemptId, Clock as _, RunId};
use trackway_data::snapshot::{SnapshotId, SnapshotStore};
use trackway_engine::capture::named_files::blake3_of_whole;
use trackway_engine::capture::sources::{self, AttemptSource};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::file_digest::file_sha256;
use trackway_engine::{Context, attempt_files, row_copies};
use trackway_formats::EventKind;
use trackway_formats::layout::RowCopy;
use trackway_ledger::{AttemptRow, CheckedReceipt, EvaluationRow, KeptRows, Ledger, UnreadableRow, unproved};
use trackway_tables::pass::UNWATCHED;

use self::checkpoints::checkpoints;
use crate::data::snapshot::store;
use crate::evaluation::gates;

/// What else no hash proves.
const UNPROVED: [&str; 9] = [
    "rows of which no copy is kept",
    "that no copies of tests of gates, of their receipts and of approvals were deleted from `registry`",
    "requests, actions, stacks and writers of attempts",
    "files of attempts: not sealed, imported, deleted with `trackway gc`, or with a receipt that was kept later",
    "plans of runs, sizes and times of their data files, launches of evaluations, settings",
    "formats, rows, notes, statistics and names of snapshots of data",
    "`data/manifest-cache.json`: a cache; entries that do not fit are read again",
    "that no outputs of failed evaluations were deleted",
    "what of the entries of checkpoint logs is in no row, and the list of what `sources` leaves out",
];

/// What is not looked at for one run.
const OF_ALL: &str =
    "the registry, snapshots of data, outputs of failed evaluations and other runs (`trackway verify --all`)";
/// What is not read where only digests are recomputed.
const OF_FILES: &str = "files, and rows of which a copy is kept (`trackway verify`)";

/// Differences that are listed.
pub const LISTED_MAX: usize = 1_000;

/// How far it is: a kind, and how many of it were looked at.
pub type Watching<'w> = dyn Fn(SealedKind, u64) + 'w;

/// What was found so far.
struct VerifyFindings<'w> {
    watching: &'w Watching<'w>,
    kinds: BTreeMap<SealedKind, VerifiedKind>,
    differs: Vec<Differing>,
}

/// One thing that was looked at.
enum ItemVerdict {
    Holds,
    Differs(String),
    Open,
    Unknown,
}

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Rows and manifests.
    Digests,
    /// Every file that has a hash, too.
    Files,
}

/// Verifies everything, or what belongs to one run.
///
/// # Errors
/// When the ledger cannot be read; [`ErrorKind::Cancelled`], between two files.
pub fn verify(
    context: &Context,
    run: Option<RunId>,
    depth: Depth,
    watching: &Watching<'_>,
) -> Result<VerifyReport, AppError> {
    let began = context.clock.monotonic_micros();
    let mut found = VerifyFindings { watching, kinds: BTreeMap::new(), differs: Vec::new() };
    let attempts = receipts(context, run, depth, &mut found)?;
    let named = evaluations(context, run, depth, &mut found)?;
    gate_receipts(context, run, &mut found)?;
    checkpoints(context, run, depth, &mut found)?;
    if depth == Depth::Files {
        artifacts(context, &attempts, &mut found)?;
        kept_sources(context, &attempts, &mut found)?;
        kept_rows(context, run, &mut found)?;
        if run.is_none() {
            unnamed_outputs(context, &named, &mut found)?;
            snapshots(context, &mut found)?;
        }
    }
    context.request.check_cancelled()?;
    Ok(VerifyReport {
        run_id: run,
        holds: found.kinds.values().all(|kind| kind.differ_count == 0),
        kinds: found.kinds.into_values().collect(),
        differs: found.differs,
        not_covered: not_covered(run, depth),
        seconds: (context.clock.monotonic_micros() - began) as f64 / 1e6,
    })
}

/// Tables and files that nothing of this proves.
fn not_covered(run: Option<RunId>, depth: Depth) -> Vec<String> {
    let others = (run.is_some() && depth == Depth::Files).then_some(OF_ALL);
    let files = (depth == Depth::Digests).then_some(OF_FILES);
    let said = UNPROVED.into_iter().chain(others).chain(files);
    unproved().into_iter().chain(said.map(str::to_owned)).collect()
}

/// That a sealed receipt has no copy in the home that launched its attempt.
fn receipt_without_copy(
    context: &Context,
    checked: CheckedReceipt,
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    let CheckedReceipt { attempt_id, run_id, .. } = checked;
    let path = context.home.layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
    if is_of_here(context, run_id) && !path.exists() {
        let looked = lost_receipt(context, attempt_id).or_else(unreadable_or)?;
        found.take(SealedKind::Kept, run_id, &context.home.layout.below(&path), looked);
    }
    Ok(())
}

/// A copy that is gone took the hashes of the attempt's files with it: one deleted file must not hide that others were changed. Where the
/// files were deleted on purpose there is nothing to hide.
fn lost_receipt(context: &Context, attempt_id: AttemptId) -> Result<ItemVerdict, AppError> {
    let row = context.ledger_read(|ledger| ledger.attempt(attempt_id))?;
    let Some(row) = row.filter(|row| was_launched_here(context, row)) else {
        return Ok(ItemVerdict::Unknown);
    };
    Ok(match was_cleared(context, &row)? {
        true => ItemVerdict::Unknown,
        false => ItemVerdict::Differs(
            "it is missing: nothing shows whether the logs and records of the attempt are what was sealed. \
             `trackway doctor rebuild` writes it again from the ledger, without the hashes of these files"
                .into(),
        ),
    })
}

/// Whether the attempt was launched by this home. A ledger may have the attempts of several, and this one may have been moved.
pub(crate) fn was_launched_here(context: &Context, row: &AttemptRow) -> bool {
    let layout = &context.home.layout;
    let own = layout.attempt(row.attempt_id);
    let launch = layout.run(row.run_id).row_copy(RowCopy::Attempt(row.attempt_id));
    let is_imported = row.termination_rule.as_ref().is_some_and(|rule| rule.starts_with("import."));
    let is_own = Path::new(&row.log_directory) == own.folder();
    !is_imported && (is_own || own.folder().exists() || launch.exists())
}

/// Whether `trackway gc` deleted the files of an attempt: they are gone, and the ledger has that it was done for its
/// run, or for the one that its run evaluated or diagnosed.
fn was_cleared(context: &Context, row: &AttemptRow) -> Result<bool, AppError> {
    if !attempt_files::are_gone(&context.home.layout, row.attempt_id) {
        return Ok(false);
    }
    let run = context.run_by_id(row.run_id)?;
    for run_id in [Some(run.run_id), run.for_run_id].into_iter().flatten() {
        let events = context.ledger_read(|ledger| ledger.events_of_run(run_id))?;
        if events.iter().any(|event| EventKind::RecordsCleared.is(&event.kind)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// That an evaluation that ended has no copy. One without a folder here was made in another home, or was deleted with `trackway gc`.
fn evaluation_without_copy(context: &Context, row: &EvaluationRow, found: &mut VerifyFindings<'_>) {
    let (layout, id) = (&context.home.layout, &row.evaluation_id);
    let path = layout.run(row.run_id).row_copy(RowCopy::Evaluation(id));
    if is_of_here(context, row.run_id) && !path.exists() {
        let looked = match layout.evaluation(id).folder().is_dir() {
            true => ItemVerdict::Differs("it is missing".into()),
            false => ItemVerdict::Unknown,
        };
        found.take(SealedKind::Kept, row.run_id, &layout.below(&path), looked);
    }
}

/// Whether this home launched the run: then what was kept of it should be here. A ledger may have the runs of several homes.
pub(crate) fn is_of_here(context: &Context, run_id: RunId) -> bool {
    context.home.layout.run(run_id).folder().is_dir()
}

/// Returns the attempts, also those whose receipts cannot be read.
fn receipts(
    context: &Context,
    run: Option<RunId>,
    depth: Depth,
    found: &mut VerifyFindings<'_>,
) -> Result<Vec<(AttemptId, RunId)>, AppError> {
    let all = RefCell::new(Vec::new());
    context.ledger_read(|ledger| {
        // A read that is made again begins again.
        all.borrow_mut().clear();
        ledger.check_receipts(run, &mut |checked| {
            let mut all = all.borrow_mut();
            (found.watching)(SealedKind::Receipt, all.len() as u64);
            all.push(checked);
        })
    })?;
    let mut attempts = Vec::new();
    for checked in all.into_inner() {
        match checked {
            Ok(checked) => {
                let id = checked.attempt_id.to_string();
                attempts.push((checked.attempt_id, checked.run_id));
                if depth == Depth::Files && checked.holds.is_some() {
                    receipt_without_copy(context, checked, found)?;
                }
                found.take(SealedKind::Receipt, checked.run_id, &id, of_digest(checked.holds));
            }
            Err(row) => {
                attempts.extend(row.id.parse().ok().zip(row.run_id));
                found.unreadable(SealedKind::Receipt, row);
            }
        }
    }
    Ok(attempts)
}

fn of_digest(holds: Option<bool>) -> ItemVerdict {
    match holds {
        Some(true) => ItemVerdict::Holds,
        Some(false) => ItemVerdict::Differs("its rows hash to another digest than was sealed".into()),
        None => ItemVerdict::Open,
    }
}

/// Returns where the outputs are that evaluations name.
fn evaluations(
    context: &Context,
    run: Option<RunId>,
    depth: Depth,
    found: &mut VerifyFindings<'_>,
) -> Result<BTreeSet<String>, AppError> {
    let mut after = String::new();
    let mut named = BTreeSet::new();
    loop {
        let page = context.ledger_read(|ledger| ledger.evaluations_after(run, &after))?;
        let Some(last) = page.last else { return Ok(named) };
        after = last;
        page.unreadable.into_iter().for_each(|row| found.unreadable(SealedKind::Evaluation, row));
        for row in page.rows {
            let id = &row.evaluation_id;
            let holds = context.ledger_read(|ledger| ledger.verify_evaluation(id));
            let has_ended = matches!(holds, Ok(Some(_)));
            let looked = holds.map_or_else(unreadable_or, |holds| Ok(of_digest(holds)))?;
            found.take(SealedKind::Evaluation, row.run_id, id, looked);
            if depth == Depth::Files {
                if has_ended {
                    evaluation_without_copy(context, &row, found);
                }
                if let Some(looked) = outputs(context, &row) {
                    found.take(SealedKind::Outputs, row.run_id, id, looked);
                    named.extend(row.raw_outputs_location.clone());
                }
            }
        }
    }
}

/// Rows that cannot be read differ; a ledger that does not answer is an error.
fn unreadable_or(error: AppError) -> Result<ItemVerdict, AppError> {
    match error.kind {
        ErrorKind::Unavailable | ErrorKind::Locked | ErrorKind::Cancelled => Err(error),
        _ => Ok(ItemVerdict::Differs(format!("its rows cannot be read: {error}"))),
    }
}

/// The rows that an evaluator wrote; `None`: none are kept.
fn outputs(context: &Context, row: &EvaluationRow) -> Option<ItemVerdict> {
    let (location, expected) = (row.raw_outputs_location.as_ref()?, row.raw_outputs_sha256.as_ref()?);
    let path = context.home.folder().join(location);
    Some(match file_sha256(&path) {
        Ok((sha256, _)) if sha256 == *expected => ItemVerdict::Holds,
        Ok(_) => ItemVerdict::Differs(format!("`{location}` has other bytes than were evaluated")),
        Err(_) if !is_of_here(context, row.run_id) => ItemVerdict::Unknown,
        Err(error) => ItemVerdict::Differs(format!("`{location}` cannot be read: {error}")),
    })
}

/// Outputs that no evaluation names: it failed after they were kept. Their names are their hashes.
fn unnamed_outputs(
    context: &Context,
    named: &BTreeSet<String>,
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    let layout = &context.home.layout;
    let entries = std::fs::read_dir(layout.evaluation_outputs()).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let location = layout.below(&path);
        let Some(expected) = hash_in_name(&path).filter(|_| !named.contains(&location)) else { continue };
        context.request.check_cancelled()?;
        let looked = match file_sha256(&path) {
            Ok((sha256, _)) if sha256 == expected => ItemVerdict::Holds,
            Ok(_) => ItemVerdict::Differs("its name is the hash of other bytes".into()),
            Err(error) => ItemVerdict::Differs(format!("it cannot be read: {error}")),
        };
        found.take(SealedKind::Outputs, None::<RunId>, &location, looked);
    }
    Ok(())
}

fn hash_in_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_suffix(".parquet")?;
    (name.len() == 64 && name.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(name)
}

fn gate_receipts(
    context: &Context,
    run: Option<RunId>,
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    let mut after = String::new();
    loop {
        let page = context.ledger_read(|ledger| ledger.gate_receipts_after(run, &after))?;
        let Some(last) = page.last else { return Ok(()) };
        after = last;
        page.unreadable.into_iter().for_each(|row| found.unreadable(SealedKind::Gates, row));
        for row in page.rows {
            let looked = match gates::digest_of(&row) == row.gate_receipt_id {
                true => ItemVerdict::Holds,
                false => ItemVerdict::Differs(
                    "its verdicts and evidence hash to another digest than its id".into(),
                ),
            };
            found.take(SealedKind::Gates, row.run_id, &row.gate_receipt_id, looked);
        }
    }
}

/// The runs with a folder of their name in this one, all or this one.
fn runs_in(folder: &Path, run: Option<RunId>) -> Vec<RunId> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let runs = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RunId>().ok());
    let mut runs: Vec<RunId> = runs.filter(|found| run.is_none_or(|run| *found == run)).collect();
    runs.sort_by_key(ToString::to_string);
    runs
}

/// Artifacts whose attempt has its folder here: `trackway gc` keeps them with it.
fn artifacts(
    context: &Context,
    attempts: &[(AttemptId, RunId)],
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    for (attempt_id, run_id) in attempts {
        let folder = context.home.layout.attempt(*attempt_id).artifacts();
        let rows = match context.ledger_read(|ledger| ledger.artifacts_of(*attempt_id)) {
            Ok(rows) => rows,
            // Said of its receipt.
            Err(error) => {
                unreadable_or(error)?;
                continue;
            }
        };
        let mut hashes: Vec<String> = rows.into_iter().map(|row| row.blake3).collect();
        hashes.sort_unstable();
        hashes.dedup();
        for blake3 in hashes {
            context.request.check_cancelled()?;
            let looked = match folder.is_dir() {
                true => of_file(&folder.join(&blake3), &blake3),
                false => ItemVerdict::Unknown,
            };
            found.take(SealedKind::Artifact, *run_id, &format!("{attempt_id}/{blake3}"), looked);
        }
    }
    Ok(())
}

fn of_file(path: &Path, blake3: &str) -> ItemVerdict {
    match blake3_of_whole(path) {
        Ok(found) if found == blake3 => ItemVerdict::Holds,
        Ok(_) => ItemVerdict::Differs("it has other bytes than were kept".into()),
        Err(error) => ItemVerdict::Differs(format!("it cannot be read: {error}")),
    }
}

fn kept_sources(
    context: &Context,
    attempts: &[(AttemptId, RunId)],
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    for (attempt_id, run_id) in attempts {
        context.request.check_cancelled()?;
        let path = context.home.layout.attempt_source(*attempt_id);
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let looked = match serde_json::from_slice::<AttemptSource>(&bytes) {
            Err(error) => ItemVerdict::Differs(format!("`{}` is damaged: {error}", path.display())),
            Ok(source) => match sources::differences(&context.home.layout, &source).first() {
                None => ItemVerdict::Holds,
                Some((path, why)) => ItemVerdict::Differs(format!("`{}`: {why}", path.display())),
            },
        };
        found.take(SealedKind::Source, *run_id, &attempt_id.to_string(), looked);
    }
    Ok(())
}

/// The rows that the home keeps copies of.
fn kept_rows(context: &Context, run: Option<RunId>, found: &mut VerifyFindings<'_>) -> Result<(), AppError> {
    let layout = &context.home.layout;
    for run_id in runs_in(&layout.runs(), run) {
        for path in row_copies::files(&layout.run(run_id).row_copies()) {
            let rows = kept_file(context, Some(run_id), &path, found)?;
            attempt_files(context, run_id, (&path, &rows), found)?;
        }
        match copies::missing_of_run(context, run_id) {
            Ok(missing) => found.missing(context, Some(run_id), missing),
            Err(error) => drop(unreadable_or(error)?),
        }
    }
    if run.is_none() {
        for model in context.ledger_read(Ledger::model_names)? {
            match copies::missing_of_model(context, &model) {
                Ok(missing) => found.missing(context, None, missing),
                Err(error) => found.take(SealedKind::Kept, None::<RunId>, &model, unreadable_or(error)?),
            }
        }
        for path in row_copies::files(&layout.registry()) {
            kept_file(context, None, &path, found)?;
        }
        for model in context.ledger_read(|ledger| ledger.models_without_change())? {
            let why = "its state is not that after its newest change".into();
            found.take(SealedKind::Kept, None::<RunId>, &model, ItemVerdict::Differs(why));
        }
    }
    Ok(())
}

/// Compares a file of kept rows with the ledger, and returns what is in it.
fn kept_file(
    context: &Context,
    run_id: Option<RunId>,
    path: &Path,
    found: &mut VerifyFindings<'_>,
) -> Result<KeptRows, AppError> {
    let (rows, looked) = match row_copies::read(path) {
        Err(error) => (KeptRows::default(), ItemVerdict::Differs(format!("it cannot be read: {error}"))),
        Ok(rows) => {
            let looked = match context.ledger_read(|ledger| ledger.differences(&rows)) {
                Ok(differences) => {
                    differences.into_iter().next().map_or(ItemVerdict::Holds, ItemVerdict::Differs)
                }
                Err(error) => unreadable_or(error)?,
            };
            (rows, looked)
        }
    };
    found.take(SealedKind::Kept, run_id, &context.home.layout.below(path), looked);
    Ok(rows)
}

/// The files of a sealed attempt: logs, exit record, flight record, Parquet. Of a receipt that was kept later nothing is known of them.
fn attempt_files(
    context: &Context,
    run_id: RunId,
    (path, rows): (&Path, &KeptRows),
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    if rows.is_later() {
        found.take(SealedKind::Files, run_id, &context.home.layout.below(path), ItemVerdict::Unknown);
    }
    for (path, blake3) in rows.files() {
        context.request.check_cancelled()?;
        let looked = of_file(&context.home.folder().join(path), blake3);
        found.take(SealedKind::Files, run_id, path, looked);
    }
    Ok(())
}

/// Snapshots of data: whether what they say has the hash that is their id, and the bytes of those that keep them.
fn snapshots(context: &Context, found: &mut VerifyFindings<'_>) -> Result<(), AppError> {
    let store = store(&context.home);
    for id in store.ids() {
        context.request.check_cancelled()?;
        found.take(SealedKind::Snapshot, None::<RunId>, id.as_str(), snapshot(&store, &id));
    }
    Ok(())
}

fn snapshot(store: &SnapshotStore, id: &SnapshotId) -> ItemVerdict {
    let snapshot = match store.snapshot(id) {
        Err(error) => return ItemVerdict::Differs(error.to_string()),
        Ok(snapshot) => snapshot,
    };
    if store.has_bytes(id) {
        let fault = match store.verify_bytes(id, &UNWATCHED) {
            Err(error) => Some(error.to_string()),
            Ok(verified) => {
                let fault = verified.faults.first();
                fault.map(|fault| format!("the bytes of `{}` are {}", fault.path, fault.problem))
            }
        };
        if let Some(why) = fault {
            return ItemVerdict::Differs(why);
        }
    }
    // Of paths that are not UTF-8 the hash cannot be made again.
    snapshot.content_sha256().map_or(ItemVerdict::Unknown, |_| ItemVerdict::Holds)
}

impl VerifyFindings<'_> {
    fn unreadable(&mut self, kind: SealedKind, row: UnreadableRow) {
        self.take(
            kind,
            row.run_id,
            &row.id,
            ItemVerdict::Differs(format!("its row cannot be read: {}", row.why)),
        );
    }

    /// Copies of rows that should be there.
    fn missing(&mut self, context: &Context, run_id: Option<RunId>, paths: Vec<PathBuf>) {
        for path in paths {
            let why = "it is missing, and a rebuilt ledger would lack its rows".into();
            self.take(SealedKind::Kept, run_id, &context.home.layout.below(&path), ItemVerdict::Differs(why));
        }
    }

    /// One thing that differs in one or several places, each with why: it is counted once.
    fn differs_in(
        &mut self,
        kind: SealedKind,
        run_id: RunId,
        places: impl Iterator<Item = (String, String)>,
    ) {
        for (number, (id, why)) in places.enumerate() {
            match number {
                0 => self.take(kind, run_id, &id, ItemVerdict::Differs(why)),
                _ => self.list(Differing { kind, run_id: Some(run_id), id, why }),
            }
        }
    }

    fn list(&mut self, differing: Differing) {
        if self.differs.len() < LISTED_MAX {
            self.differs.push(differing);
        }
    }

    fn take(&mut self, kind: SealedKind, run_id: impl Into<Option<RunId>>, id: &str, looked: ItemVerdict) {
        let counts = self.kinds.entry(kind).or_insert(VerifiedKind {
            kind,
            hold_count: 0,
            differ_count: 0,
            open_count: 0,
            unknown_count: 0,
        });
        let count = match &looked {
            ItemVerdict::Holds => &mut counts.hold_count,
            ItemVerdict::Differs(_) => &mut counts.differ_count,
            ItemVerdict::Open => &mut counts.open_count,
            ItemVerdict::Unknown => &mut counts.unknown_count,
        };
        *count += 1;
        (self.watching)(kind, *count);
        if let ItemVerdict::Differs(why) = looked {
            self.list(Differing { kind, run_id: run_id.into(), id: id.into(), why });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a log with several faults is one log that differs, and that each fault is listed.
    #[test]
    fn what_differs_is_counted_once() {
        let run_id: RunId = "run_00000000000000000000000001".parse().unwrap();
        let watching = |_: SealedKind, _: u64| {};
        let mut found = VerifyFindings { watching: &watching, kinds: BTreeMap::new(), differs: Vec::new() };
        let faults =
            ["entry 2 is damaged", "entry 5 is missing"].map(|why| ("log".to_owned(), why.to_owned()));
        found.differs_in(SealedKind::Mirror, run_id, faults.into_iter());
        found.differs_in(SealedKind::Mirror, run_id, std::iter::empty());
        assert_eq!((found.kinds[&SealedKind::Mirror].differ_count, found.differs.len()), (1, 2));
        assert!(found.differs.iter().all(|one| one.run_id == Some(run_id)));
    }
}
