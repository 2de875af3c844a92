//! Where checkpoints go: whether it does what the log needs of it, and whether there is room.

use trackway_checkpoint::MIN_KEPT;
use trackway_core::RunId;
use trackway_core::checks::{CheckResult, Finding, NoRows, Severity};
use trackway_engine::error::AppError;
use trackway_engine::run::remote::{Patience, RemotePlan, remote_error};
use trackway_ledger::RunFilter;
use trackway_store::{Outcome, SelfTest};

use super::{Looker, Work};
use crate::checkpoints::try_out_file_system;
use crate::training::preflight::facts::PlanFacts;

const STORE: &str = "checkpoint.store";
const SPACE: &str = "checkpoint.space";
/// With less than this, logs and records have no room either.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Runs of the same config that are searched for the size of their checkpoints.
const RUNS_ASKED_MAX: usize = 5;

pub fn has_checkpoints(facts: &PlanFacts<'_>) -> Result<(), String> {
    let section = &facts.plan.checkpoint;
    if section.has_cadence() || section.remote.is_some() {
        Ok(())
    } else {
        Err("the run file has no `[checkpoint]` cadence".into())
    }
}

/// Tries out the local root and the remote, and looks for room.
pub fn storage(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    Ok(vec![store(work), space(work)?])
}

fn store(work: &Work<'_>) -> CheckResult {
    let folder = work.context.home.layout.checkpoints();
    if let Err(error) = std::fs::create_dir_all(&folder) {
        let message = format!("cannot create `{}`: {error}", folder.display());
        let finding = Finding::new(STORE, Severity::Block, message);
        return CheckResult::about(
            STORE,
            NoRows::Storage,
            vec![finding.action("choose another place with --home")],
        );
    }
    let context = work.context;
    let tested = try_out_file_system(&folder, context.clock.as_ref(), &context.ids);
    let local = tried(&tested, "this file system", "use one such as ext4 or xfs");
    let run_id = RunId::new(&context.ids);
    let Some(remote) = RemotePlan::of(context, run_id, &work.job.plan.checkpoint) else { return local };
    let there = match remote.selftest(Patience::Short) {
        Ok(tested) => tried(&tested, &remote.location(), "use a store that does"),
        Err(error) => {
            let error = remote_error("the remote cannot be used", error);
            let action = "fix `checkpoint.remote` or its credentials: nothing is launched without it";
            CheckResult::about(
                STORE,
                NoRows::Storage,
                vec![Finding::new(STORE, Severity::Block, error.to_string()).action(action)],
            )
        }
    };
    super::data::together(STORE, &[local, there])
}

/// What a storage does not do. If it did not answer, that is unknown.
fn tried(tested: &SelfTest, storage: &str, action: &str) -> CheckResult {
    let required = tested.primitives.iter().filter(|primitive| primitive.required);
    let silent = required.clone().find_map(|primitive| match &primitive.outcome {
        Outcome::NotTested { why, .. } => Some(why),
        Outcome::Holds | Outcome::Fails { .. } => None,
    });
    let finding = |primitive: &trackway_store::Primitive| {
        let Outcome::Fails { why } = &primitive.outcome else { return None };
        let severity = if primitive.required { Severity::Block } else { Severity::Warn };
        let message = format!("{storage} lacks `{}`, which the checkpoint log needs: {why}", primitive.name);
        Some(Finding::new(STORE, severity, message).action(action))
    };
    let findings: Vec<Finding> = tested.primitives.iter().filter_map(finding).collect();
    match silent {
        Some(why) if findings.is_empty() => {
            CheckResult::not_run(STORE, format!("{storage} could not be tested: {why}"))
        }
        _ => CheckResult::about(STORE, NoRows::Storage, findings).because(storage),
    }
}

/// Room for what retention keeps, and for the one that is being written.
fn space(work: &Work<'_>) -> Result<CheckResult, AppError> {
    let folder = work.context.home.folder();
    let Ok(found) = nix::sys::statvfs::statvfs(folder) else {
        return Ok(CheckResult::not_run(
            SPACE,
            format!("cannot determine the free space in `{}`", folder.display()),
        ));
    };
    let free_bytes = found.blocks_available().saturating_mul(found.fragment_size());
    let gib = |bytes: u64| bytes as f64 / 1_073_741_824.0;
    let free = format!("{:.1} GiB free", gib(free_bytes));
    let Some((size_bytes, source)) = size_of_one(work)? else {
        if free_bytes < FREE_BYTES_MIN {
            let finding = Finding::new(SPACE, Severity::Warn, free)
                .action("free space, or choose another place with --home");
            return Ok(CheckResult::about(SPACE, NoRows::Storage, vec![finding]));
        }
        return Ok(CheckResult::pass(
            SPACE,
            NoRows::Storage,
            format!("{free}; the size of a checkpoint is not known yet"),
        ));
    };
    let kept = work.job.plan.checkpoint.keep_last.map_or(MIN_KEPT as u64, u64::from).max(MIN_KEPT as u64) + 1;
    let needed_bytes = size_bytes.saturating_mul(kept);
    let message = format!(
        "{free}; {kept} checkpoints of {:.2} GiB ({source}) need {:.1}",
        gib(size_bytes),
        gib(needed_bytes)
    );
    if needed_bytes <= free_bytes {
        return Ok(CheckResult::pass(SPACE, NoRows::Storage, message));
    }
    let severity = if size_bytes > free_bytes { Severity::Block } else { Severity::Warn };
    let action = "free space, keep fewer (`checkpoint.keep`), or choose another place with --home";
    Ok(CheckResult::about(
        SPACE,
        NoRows::Storage,
        vec![Finding::new(SPACE, severity, message).action(action)],
    ))
}

/// The largest checkpoint of earlier runs of the same config, else what the model's states take.
fn size_of_one(work: &Work<'_>) -> Result<Option<(u64, &'static str)>, AppError> {
    let same = RunFilter {
        config_sha256: Some(work.job.config_sha256.clone()),
        limit: Some(RUNS_ASKED_MAX),
        ..RunFilter::default()
    };
    let mut largest = None;
    for run in work.context.ledger_read(|ledger| ledger.list_runs(&same))? {
        let checkpoints = work.context.ledger_read(|ledger| ledger.checkpoints_of_run(run.run_id))?;
        largest = checkpoints.iter().filter_map(|checkpoint| checkpoint.size_bytes).max().max(largest);
    }
    if let Some(bytes) = largest {
        return Ok(Some((bytes, "as in earlier runs")));
    }
    let parts = work.shared.memory.get().map(|report| report.estimate.parts);
    Ok(parts
        .map(|parts| (parts.parameters + parts.optimizer + parts.master_weights, "weights and optimizer")))
}
