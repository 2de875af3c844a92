//! The post-mortem of a run. Evidence is read here; what follows from it is a pure function, and so is its text.

mod build;
mod inputs;
mod markdown;

use trackway_api::home::verify::VerifyReport;
use trackway_api::runs::explain::{Amendment, Explanation};
use trackway_api::runs::postmortem::Postmortem;
use trackway_core::{Clock as _, LaunchKind, RunId, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_flows::home::verify::{Depth, Watching, verify};
use trackway_flows::runs::amend::amendments_of;
use trackway_ledger::{AttemptRow, RunOrAttempt};

pub use self::build::build;
pub use self::markdown::markdown;
use crate::explain::explain;

/// Everything that a post-mortem is made from.
#[derive(Debug)]
pub struct Evidence {
    /// The explanation of the run's last attempt.
    pub explanation: Explanation,
    /// The receipts of its attempts with their late facts, oldest first.
    pub attempts: Vec<(AttemptRow, Vec<Amendment>)>,
    pub verified: VerifyReport,
    /// When it was read.
    pub made_at: Timestamp,
}

/// The post-mortem of a run. `watching` is called while digests are recomputed.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`]; when the ledger cannot be read.
pub fn postmortem(context: &Context, run_id: RunId, watching: &Watching<'_>) -> Result<Postmortem, AppError> {
    let run = context.run_by_id(run_id)?;
    let kind: LaunchKind = run.kind;
    let explanation = explain(context, RunOrAttempt::Run(Box::new(run)))?;
    let attempts = context.attempts_of_kind(run_id, kind)?;
    let attempts = attempts.into_iter().map(|attempt| {
        let amendments = amendments_of(context, attempt.attempt_id)?;
        Ok((attempt, amendments))
    });
    let attempts = attempts.collect::<Result<Vec<_>, AppError>>()?;
    let verified = verify(context, Some(run_id), Depth::Digests, watching)?;
    Ok(build(Evidence { explanation, attempts, verified, made_at: context.clock.now() }))
}
