//! The ledger's rows of checkpoints. The log of a root is the truth; after each change of it the rows follow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;
use trackway_adopt::models_beside;
use trackway_checkpoint::{CheckpointInfo, CheckpointView};
use trackway_core::{AttemptId, CheckpointState, Clock as _, Rung, Step, Timestamp, with_fields_of};
use trackway_formats::layout::checkpoint_root_name;
use trackway_ledger::{AttemptRow, CheckpointRow, RunRow};
use trackway_records::ValuesAtSteps;

use super::view;
use crate::Context;
use crate::error::{AppError, ErrorKind};

/// The checkpoints of a rung, in the order of its log.
#[derive(Debug, Default)]
pub(crate) struct RungCheckpoints {
    pub rows: Vec<CheckpointRow>,
    /// The models among them that the script cannot continue from, by their folders.
    pub models: BTreeSet<String>,
}

impl RungCheckpoints {
    /// As the log has them now, with what is known of their bytes.
    pub fn of(context: &Context, attempt: &AttemptRow) -> Result<Self, AppError> {
        let root = context.home.layout.checkpoint_root(attempt.run_id, attempt.kind, &attempt.rung);
        let known = context.ledger_read(|ledger| ledger.checkpoints_of_run(attempt.run_id))?;
        let view = view(&root)?;
        let rows = mirror_rows(context, &root, &view).into_iter().map(|row| {
            let before = before(&known, &row);
            with_what_the_log_lacks(row, (&BTreeMap::new(), context.clock.now()), before)
        });
        Ok(Self { rows: rows.collect(), models: models_beside(&view) })
    }

    /// The newest that the attempt committed, of those that the script can continue from. None: it committed nothing, also no model.
    pub fn newest_of(&self, attempt_id: AttemptId) -> Option<Option<&CheckpointRow>> {
        let own =
            || self.rows.iter().filter(|row| row.attempt_id == attempt_id && row.manifest_sha256.is_some());
        own().next().map(|_| own().filter(|row| !self.is_model(row)).max_by_key(|row| row.step))
    }

    /// The step that a resume continues from: that of the newest commit, or, if this is a model beside others, of the newest of those.
    pub fn resume_step(&self) -> Option<Step> {
        let newest = self.rows.iter().rev().find(|row| row.state == CheckpointState::Committed)?;
        if !self.is_model(newest) {
            return Some(newest.step);
        }
        let is_resumed = |row: &&CheckpointRow| {
            let is_safe = row.state == CheckpointState::Superseded && row.unsafe_because.is_none();
            is_safe && !self.is_model(row)
        };
        self.rows.iter().rev().find(is_resumed).map(|row| row.step)
    }

    fn is_model(&self, row: &CheckpointRow) -> bool {
        self.models.contains(&row.object_prefix)
    }
}

fn mirror_rows(context: &Context, root: &Path, view: &CheckpointView) -> Vec<CheckpointRow> {
    let location = context.home.layout.below(root);
    one_per_prefix(view.list()).into_iter().map(|info| row_of(&location, info)).collect()
}

/// The row of the same checkpoint as the ledger has it.
fn before<'k>(known: &'k [CheckpointRow], row: &CheckpointRow) -> Option<&'k CheckpointRow> {
    known.iter().find(|before| before.object_prefix == row.object_prefix)
}

/// Brings the rows of a run's checkpoints up to their logs, in all rungs that were launched. `checked`: what reading every byte
/// of some of them showed, whether they are what was committed, by the SHA-256 of their manifest.
///
/// # Errors
/// When a log cannot be read or the ledger cannot be written.
pub fn mirror_run(context: &Context, run: &RunRow, checked: &BTreeMap<String, bool>) -> Result<(), AppError> {
    if context.ledger_is_read_only() {
        return Ok(());
    }
    let known = context.ledger_read(|ledger| ledger.checkpoints_of_run(run.run_id))?;
    let changed = changed_rows(context, run, (&known, checked))?;
    // Before the write: the ledger may have the last trace of a commit.
    refuse_shortened(context, (&known, &changed))?;
    context.ledger_write(|ledger| ledger.upsert_checkpoints(&changed))
}

/// The same while an attempt is watched: now or, if the ledger is away, at the next change.
///
/// # Errors
/// As for [`mirror_run`].
pub(crate) fn mirror_now(context: &Context, run: &RunRow, rung: &str) -> Result<(), AppError> {
    let known = context.ledger_write_now(|ledger| ledger.checkpoints_of_run(run.run_id))?;
    let changed = changed_of_rung(context, run, rung, (&known, &BTreeMap::new()))?;
    refuse_shortened(context, (&known, &changed))?;
    context.ledger_write_now(|ledger| ledger.upsert_checkpoints(&changed))
}

/// The rows of a run's checkpoints that are not as their logs have them, and whether the log lacks a commit that the
/// ledger has: at no time is it behind. `None`: no log of it is on this machine.
///
/// # Errors
/// When a log or the ledger cannot be read.
pub fn stale_rows(context: &Context, run: &RunRow) -> Result<Option<Vec<(CheckpointRow, bool)>>, AppError> {
    let attempts = context.attempts_of_kind(run.run_id, run.kind)?;
    let is_here =
        |rung: &str| context.home.layout.checkpoint_root(run.run_id, run.kind, rung).join("log").is_dir();
    match attempts.iter().any(|attempt| is_here(&attempt.rung)) {
        true => {
            let known = context.ledger_read(|ledger| ledger.checkpoints_of_run(run.run_id))?;
            let stale = changed_rows(context, run, (&known, &BTreeMap::new()))?;
            let with_loss = |row: CheckpointRow| {
                let is_lost = is_lost(&known, &row);
                (row, is_lost)
            };
            Ok(Some(stale.into_iter().map(with_loss).collect()))
        }
        false => Ok(None),
    }
}

fn changed_rows(
    context: &Context,
    run: &RunRow,
    known_and_checked: (&[CheckpointRow], &BTreeMap<String, bool>),
) -> Result<Vec<CheckpointRow>, AppError> {
    let rungs = rungs_here(context, run);
    let changed = rungs.iter().map(|rung| changed_of_rung(context, run, rung, known_and_checked));
    changed.collect::<Result<Vec<_>, _>>().map(|rows| rows.concat())
}

/// The rungs of which a run has checkpoints on this disk. A folder beside their roots, such as a copy of one by a
/// person, is not one of them.
fn rungs_here(context: &Context, run: &RunRow) -> Vec<String> {
    let before_rung = checkpoint_root_name(run.kind, "");
    let roots = std::fs::read_dir(context.home.layout.checkpoints_of(run.run_id)).into_iter().flatten();
    let rung =
        |root: std::fs::DirEntry| Some(root.file_name().to_str()?.strip_prefix(&before_rung)?.to_owned());
    let names_one = |name: &String| name.parse::<Rung>().is_ok_and(|rung| rung.to_string() == *name);
    let mut rungs: Vec<String> = roots.flatten().filter_map(rung).filter(names_one).collect();
    rungs.sort_unstable();
    rungs
}

fn changed_of_rung(
    context: &Context,
    run: &RunRow,
    rung: &str,
    (known, checked): (&[CheckpointRow], &BTreeMap<String, bool>),
) -> Result<Vec<CheckpointRow>, AppError> {
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, rung);
    // The bytes of another machine's run are not here, and what its ledger has is what there is.
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let checked = (checked, context.clock.now());
    let changed = mirror_rows(context, &root, &view(&root)?).into_iter().filter_map(|row| {
        let before = before(known, &row);
        let row = with_what_the_log_lacks(row, checked, before);
        (before != Some(&row)).then_some(row)
    });
    Ok(changed.collect())
}

/// Whether a checkpoint was committed, as the ledger has it, and is not in the log as that.
fn is_lost(known: &[CheckpointRow], row: &CheckpointRow) -> bool {
    let committed = before(known, row).and_then(|before| before.manifest_sha256.as_ref());
    committed.is_some() && committed != row.manifest_sha256.as_ref()
}

/// A commit that the ledger has stays one: its log has lost or changed the entry, and the ledger may be all that is left of it.
fn refuse_shortened(
    context: &Context,
    (known, changed): (&[CheckpointRow], &[CheckpointRow]),
) -> Result<(), AppError> {
    let Some(row) = changed.iter().find(|row| is_lost(known, row)) else { return Ok(()) };
    let log = context.home.folder().join(&row.location).join("log");
    let says = match row.manifest_sha256 {
        Some(_) => "that another manifest was committed there",
        None => "only that it was begun",
    };
    let message = format!(
        "the checkpoint log `{}` is not what it was: `{}` of step {} was committed, as the ledger has it, and the log says {says}",
        log.display(),
        row.object_prefix,
        row.step
    );
    Err(AppError::new(ErrorKind::Integrity, message)
        .hint("put the entries of the log that are missing back from a copy of the home; without them nothing continues this run")
        .hint(format!("see what differs with: trackway verify {0}; trackway checkpoint doctor {0}", row.run_id))
        .hint("or start a new run: a script that keeps checkpoints itself still has its own"))
}

/// What the bytes showed when they were read is not in the log, nor what was logged at the step: the newest of each stays. A log that
/// says that a checkpoint is suspect has an answer itself. `checked` is what was read now, and when.
fn with_what_the_log_lacks(
    row: CheckpointRow,
    (checked, now): (&BTreeMap<String, bool>, Timestamp),
    before: Option<&CheckpointRow>,
) -> CheckpointRow {
    let read = row.manifest_sha256.as_ref().and_then(|manifest| checked.get(manifest)).copied();
    let (known, known_at) = before.map_or((None, None), |before| (before.verified, before.verified_at));
    let (verified, verified_at) = match read.or(row.verified) {
        Some(verified) if read.is_some() || known != Some(verified) => (Some(verified), Some(now)),
        _ => (known, known_at),
    };
    let logged = before.and_then(|before| before.metrics_json.clone());
    CheckpointRow { verified, verified_at, metrics_json: joined(logged, row.metrics_json), ..row }
}

/// The values of both; those of `over` where both have one.
fn joined(under: Option<Json>, over: Option<Json>) -> Option<Json> {
    match (under, over) {
        (Some(Json::Object(mut values)), Some(Json::Object(over))) => {
            values.extend(over);
            Some(Json::Object(values))
        }
        (under, over) => over.or(under),
    }
}

/// The rows of an attempt's own checkpoints with what it logged at their steps; a value that was given to the save counts.
pub(crate) fn with_values_at_steps(
    rows: Vec<CheckpointRow>,
    attempt_id: AttemptId,
    at_steps: &ValuesAtSteps,
) -> Vec<CheckpointRow> {
    let with = |row: CheckpointRow| {
        let logged = at_steps.get(&row.step).filter(|_| row.attempt_id == attempt_id);
        let metrics_json = joined(logged.map(|values| serde_json::json!(values)), row.metrics_json);
        CheckpointRow { metrics_json, ..row }
    };
    rows.into_iter().map(with).collect()
}

fn row_of(location: &str, info: CheckpointInfo) -> CheckpointRow {
    let is_committed = info.manifest_sha256.is_some();
    let unsafe_because = info.unsafe_evidence.as_ref().map(|found| found.why.clone());
    let state = if info.state == CheckpointState::Unsafe { CheckpointState::Superseded } else { info.state };
    with_fields_of!(
        CheckpointRow,
        info,
        [
            run_id, attempt_id, step, epoch, object_prefix, size_bytes, manifest_sha256, why, uploaded_to,
        ],
        state,
        unsafe_because,
        metrics_json: (!info.metrics.is_empty()).then(|| serde_json::json!(info.metrics)),
        location: location.to_owned(),
        verified: (info.state == CheckpointState::Suspect).then_some(false),
        verified_at: None,
        committed_at: info.at.parse().ok().filter(|_| is_committed),
        pins: (!info.pins.is_empty()).then(|| info.pins.join(",")),
        uploaded_at: info.uploaded_at.and_then(|at| at.parse().ok()),
    )
}

/// Checkpoints without the older entries of those that were adopted: an adopted one has two for one prefix.
pub fn one_per_prefix(infos: Vec<CheckpointInfo>) -> Vec<CheckpointInfo> {
    let newest: BTreeMap<String, u64> =
        infos.iter().map(|info| (info.object_prefix.clone(), info.number)).collect();
    infos.into_iter().filter(|info| newest[&info.object_prefix] == info.number).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trackway_checkpoint::{CheckpointRoot, Kind};
    use trackway_core::name::{Name, NameKind};
    use trackway_core::{LaunchKind, RunId, SequentialIds};
    use trackway_formats::checkpoint_origin::ORIGIN_FILE_NAME;

    use super::*;
    use crate::testing::{SETTLES, World};

    /// A run with one attempt, and its root.
    fn attempt_with_root(context: &Context) -> (AttemptRow, CheckpointRoot) {
        let ids = SequentialIds::default();
        let name = Name::renamed(NameKind::Run, "kept");
        let run =
            RunRow::planned(RunId::new(&ids), &name, "c", serde_json::json!({}), Timestamp::from_micros(1));
        context.ledger_write(|ledger| ledger.insert_run(&run, &[])).unwrap();
        let attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        context.ledger_write(|ledger| ledger.insert_attempt(&attempt)).unwrap();
        let path = context.home.layout.checkpoint_root(run.run_id, attempt.kind, &attempt.rung);
        let (clock, ids) = (Arc::clone(&context.clock), Arc::clone(&context.ids));
        let root = CheckpointRoot::open(&path, 1, run.run_id, attempt.attempt_id, clock, ids).unwrap();
        (attempt, root)
    }

    fn save(root: &mut CheckpointRoot, step: Step, beside: Option<(&str, Kind)>) {
        root.save(step, &[], |writer| {
            beside.map(|(name, kind)| writer.file(name, kind, b"{}")).transpose()?;
            writer.file("model.safetensors", Kind::Weights, &step.to_le_bytes())
        })
        .unwrap();
    }

    /// Proves that a log which lost its last commit, or has another one in its place, is named with what to do, that the ledger keeps the
    /// commit, and that the rows differ for `verify`.
    #[test]
    fn a_log_that_lost_a_commit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let (attempt, mut root) = attempt_with_root(&context);
        save(&mut root, 10, None);
        save(&mut root, 20, None);
        let run = context.run_by_id(attempt.run_id).unwrap();
        let mirrored = || mirror_run(&context, &run, &BTreeMap::new());
        mirrored().unwrap();
        let rows = || context.ledger_read(|ledger| ledger.checkpoints_of_run(run.run_id)).unwrap();
        let before = rows();
        drop(root);
        let log = context.home.layout.checkpoint_root(run.run_id, attempt.kind, &attempt.rung).join("log");
        let mut entries: Vec<_> = std::fs::read_dir(&log).unwrap().map(|it| it.unwrap().path()).collect();
        entries.sort();
        std::fs::rename(entries.last().unwrap(), folder.path().join("taken")).unwrap();
        for refused in [mirrored(), mirror_now(&context, &run, &attempt.rung)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Integrity);
            assert!(error.to_string().contains(&log.display().to_string()), "{error:?}");
            assert!(error.to_string().contains("of step 20 was committed"), "{error:?}");
            assert!(error.hints[0].contains("back from a copy"), "{error:?}");
        }
        assert_eq!(rows(), before);
        // The step before is the newest commit of the log again.
        let stale = stale_rows(&context, &run).unwrap().unwrap();
        let lost: Vec<(Step, bool)> = stale.iter().map(|(row, is_lost)| (row.step, *is_lost)).collect();
        assert_eq!(
            lost.iter().filter(|(_, is_lost)| *is_lost).collect::<Vec<_>>(),
            [&(20, true)],
            "{lost:?}"
        );
    }

    /// Proves that a copy of a checkpoint root beside it, such as one that a person made, takes no part: the rows are those of the root.
    #[test]
    fn a_copy_beside_a_root_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let (attempt, mut root) = attempt_with_root(&context);
        save(&mut root, 10, None);
        drop(root);
        let root = context.home.layout.checkpoint_root(attempt.run_id, attempt.kind, &attempt.rung);
        let copy = root.with_file_name(checkpoint_root_name(attempt.kind, "100%.bak"));
        std::fs::create_dir_all(copy.join("log")).unwrap();
        for entry in std::fs::read_dir(root.join("log")).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.join("log").join(entry.file_name())).unwrap();
        }
        let run = context.run_by_id(attempt.run_id).unwrap();
        mirror_run(&context, &run, &BTreeMap::new()).unwrap();
        let rows = context.ledger_read(|ledger| ledger.checkpoints_of_run(run.run_id)).unwrap();
        let locations: Vec<&str> = rows.iter().map(|row| row.location.as_str()).collect();
        assert_eq!(locations, [context.home.layout.below(&root)]);
    }

    /// Proves with a real log that of a model which a script commits after its own checkpoint, the newest of the attempt and the step of
    /// a resume are those of the checkpoint, that a model alone is resumed from, and that a state saved through Trackway counts as newer.
    #[test]
    fn a_log_with_a_model_beside_checkpoints() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let (attempt, mut root) = attempt_with_root(&context);
        let seen = || {
            let found = RungCheckpoints::of(&context, &attempt).unwrap();
            let newest = found.newest_of(attempt.attempt_id).map(|row| row.map(|row| row.step));
            (found.rows.len(), found.models.len(), newest, found.resume_step())
        };
        assert_eq!(seen(), (0, 0, None, None));
        save(&mut root, 10, None);
        assert_eq!(seen(), (1, 0, Some(Some(10)), Some(10)), "a model is all there is");
        save(&mut root, 20, Some((ORIGIN_FILE_NAME, Kind::Other)));
        save(&mut root, 30, None);
        assert_eq!(seen(), (3, 2, Some(Some(20)), Some(20)));
        mirror_run(&context, &context.run_by_id(attempt.run_id).unwrap(), &BTreeMap::new()).unwrap();
        let rows = context.ledger_read(|ledger| ledger.checkpoints_of_run(attempt.run_id)).unwrap();
        assert_eq!(rows.iter().filter(|row| row.state == CheckpointState::Committed).count(), 1);
        assert_eq!(rows.len(), 3, "the ledger has the models too");
        save(&mut root, 40, Some(("optimizer.safetensors", Kind::Optimizer)));
        assert_eq!(seen(), (4, 2, Some(Some(40)), Some(40)));
    }
}
