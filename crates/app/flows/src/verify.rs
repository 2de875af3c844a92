//! Recomputes every digest that the ledger holds: receipts, evaluations, verdicts of gates, manifests of checkpoints; and compares the
//! rows of checkpoints with their logs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use trackway_api::verify::{Differing, SealedKind, VerifiedKind, VerifyReport};
use trackway_core::{CheckpointState, Clock as _, RunId};
use trackway_engine::Context;
use trackway_engine::checkpoints::stale_rows;
use trackway_engine::error::AppError;
use trackway_formats::sha256_hex;
use trackway_ledger::CheckpointRow;

use crate::gates;

/// Differences that are listed.
const LISTED_MAX: usize = 1_000;
/// The file of a checkpoint's manifest.
const MANIFEST: &str = trackway_formats::checkpoint_manifest::MANIFEST_FILE_NAME;

/// How far it is: a kind, and how many of it were looked at.
pub type Watching<'w> = dyn Fn(SealedKind, u64) + 'w;

/// What was found so far.
struct Found<'w> {
    watching: &'w Watching<'w>,
    kinds: BTreeMap<SealedKind, VerifiedKind>,
    differs: Vec<Differing>,
}

/// One thing that was looked at.
enum Looked {
    Holds,
    Differs(String),
    Open,
    Unknown,
}

/// Verifies everything, or what belongs to one run.
pub fn verify(
    context: &Context,
    run: Option<RunId>,
    watching: &Watching<'_>,
) -> Result<VerifyReport, AppError> {
    let began = context.clock.monotonic_micros();
    let mut found = Found { watching, kinds: BTreeMap::new(), differs: Vec::new() };
    receipts(context, run, &mut found)?;
    evaluations(context, run, &mut found)?;
    gate_receipts(context, run, &mut found)?;
    checkpoints(context, run, &mut found)?;
    Ok(VerifyReport {
        run_id: run,
        holds: found.kinds.values().all(|kind| kind.differ_count == 0),
        kinds: found.kinds.into_values().collect(),
        differs: found.differs,
        seconds: (context.clock.monotonic_micros() - began) as f64 / 1e6,
    })
}

fn receipts(context: &Context, run: Option<RunId>, found: &mut Found<'_>) -> Result<(), AppError> {
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
    let all = all.into_inner();
    for checked in all {
        let looked = match checked.holds {
            Some(true) => Looked::Holds,
            Some(false) => Looked::Differs("its rows hash to another digest than was sealed".into()),
            None => Looked::Open,
        };
        found.take(SealedKind::Receipt, checked.run_id, &checked.attempt_id.to_string(), looked);
    }
    Ok(())
}

fn evaluations(context: &Context, run: Option<RunId>, found: &mut Found<'_>) -> Result<(), AppError> {
    let mut after = String::new();
    loop {
        let page = context.ledger_read(|ledger| ledger.evaluations_after(run, &after))?;
        let Some(last) = page.last() else { return Ok(()) };
        after.clone_from(&last.evaluation_id);
        for row in page {
            let holds = context.ledger_read(|ledger| ledger.verify_evaluation(&row.evaluation_id))?;
            let looked = match holds {
                Some(true) => Looked::Holds,
                Some(false) => Looked::Differs("its rows hash to another digest than was sealed".into()),
                None => Looked::Open,
            };
            found.take(SealedKind::Evaluation, row.run_id, &row.evaluation_id, looked);
        }
    }
}

fn gate_receipts(context: &Context, run: Option<RunId>, found: &mut Found<'_>) -> Result<(), AppError> {
    let mut after = String::new();
    loop {
        let page = context.ledger_read(|ledger| ledger.gate_receipts_after(run, &after))?;
        let Some(last) = page.last() else { return Ok(()) };
        after.clone_from(&last.gate_receipt_id);
        for row in page {
            let looked = match gates::digest_of(&row) == row.gate_receipt_id {
                true => Looked::Holds,
                false => {
                    Looked::Differs("its verdicts and evidence hash to another digest than its id".into())
                }
            };
            found.take(SealedKind::Gates, row.run_id, &row.gate_receipt_id, looked);
        }
    }
}

fn checkpoints(context: &Context, run: Option<RunId>, found: &mut Found<'_>) -> Result<(), AppError> {
    let mut after: Option<CheckpointRow> = None;
    let mut mirrored: Option<RunId> = None;
    loop {
        let page = context.ledger_read(|ledger| ledger.checkpoints_after(run, after.as_ref()))?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        for row in &page {
            if mirrored.replace(row.run_id) != Some(row.run_id) {
                mirror(context, row.run_id, found)?;
            }
            if let Some(looked) = manifest(context, row) {
                found.take(SealedKind::Manifest, row.run_id, &row.object_prefix, looked);
            }
        }
    }
}

/// The rows of a run's checkpoints against their logs.
fn mirror(context: &Context, run_id: RunId, found: &mut Found<'_>) -> Result<(), AppError> {
    let run = context.run_by_id(run_id)?;
    if !run.state.is_final() {
        // The log moves on while its rows are compared.
        found.take(SealedKind::Mirror, run_id, &run_id.to_string(), Looked::Open);
        return Ok(());
    }
    match stale_rows(context, &run) {
        Ok(None) => found.take(SealedKind::Mirror, run_id, &run_id.to_string(), Looked::Unknown),
        Ok(Some(stale)) if stale.is_empty() => {
            found.take(SealedKind::Mirror, run_id, &run_id.to_string(), Looked::Holds);
        }
        Ok(Some(stale)) => {
            for row in stale {
                let why = format!("the log of its root says `{}`, and the ledger another thing", row.state);
                found.take(SealedKind::Mirror, run_id, &row.object_prefix, Looked::Differs(why));
            }
        }
        Err(error) => {
            let why = format!("the log of its checkpoints: {}", error.message);
            found.take(SealedKind::Mirror, run_id, &run_id.to_string(), Looked::Differs(why));
        }
    }
    Ok(())
}

/// The manifest of a checkpoint whose files should be there; `None`: it has none, or they were deleted on purpose.
fn manifest(context: &Context, row: &CheckpointRow) -> Option<Looked> {
    let expected = row.manifest_sha256.as_ref()?;
    if row.state == CheckpointState::Retired {
        return None;
    }
    let root = context.home.folder().join(&row.location);
    if !root.is_dir() {
        return Some(Looked::Unknown);
    }
    let path = root.join(&row.object_prefix).join(MANIFEST);
    Some(match std::fs::read(&path) {
        Ok(bytes) if sha256_hex(&bytes) == *expected => Looked::Holds,
        Ok(_) => Looked::Differs(format!("`{}` is not the one that was committed", path.display())),
        Err(error) if row.state == CheckpointState::Suspect => {
            Looked::Differs(format!("it is suspect, and `{}` cannot be read: {error}", path.display()))
        }
        Err(error) => Looked::Differs(format!("`{}` cannot be read: {error}", path.display())),
    })
}

impl Found<'_> {
    fn take(&mut self, kind: SealedKind, run_id: RunId, id: &str, looked: Looked) {
        let counts = self.kinds.entry(kind).or_insert(VerifiedKind {
            kind,
            hold_count: 0,
            differ_count: 0,
            open_count: 0,
            unknown_count: 0,
        });
        let count = match &looked {
            Looked::Holds => &mut counts.hold_count,
            Looked::Differs(_) => &mut counts.differ_count,
            Looked::Open => &mut counts.open_count,
            Looked::Unknown => &mut counts.unknown_count,
        };
        *count += 1;
        (self.watching)(kind, *count);
        if let Looked::Differs(why) = looked
            && self.differs.len() < LISTED_MAX
        {
            self.differs.push(Differing { kind, run_id, id: id.into(), why });
        }
    }
}
