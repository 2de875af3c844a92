//! What the attempt that wrote a version shows.

use std::collections::BTreeSet;

use trackway_core::registry::AttemptRequirement;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::good_runs::blessed_because;
use trackway_engine::rows::health_report;
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, ModelVersionRow, ProofVerdict};
use trackway_rules::registry::AttemptFacts;

use super::artifact;

/// The facts of the attempt that wrote the checkpoint of a version; none: the ledger does not have it.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn attempt_facts(
    context: &Context,
    version: &ModelVersionRow,
) -> Result<Option<AttemptFacts>, AppError> {
    let checkpoints = context.ledger_read(|ledger| ledger.checkpoints_of_run(version.run_id))?;
    let wanted = Some(version.checkpoint_manifest_sha256.as_str());
    let written = checkpoints.into_iter().find(|row| row.manifest_sha256.as_deref() == wanted);
    let Some(written) = written else { return Ok(None) };
    let Some(row) = context.ledger_read(|ledger| ledger.attempt(written.attempt_id))? else {
        return Ok(None);
    };
    let run = context.run_by_id(version.run_id)?;
    let findings = health_report(&row).map(|report| report.findings).unwrap_or_default();
    Ok(Some(AttemptFacts {
        health: row.health,
        findings: findings.into_iter().map(|finding| finding.evidence).collect(),
        is_blessed: blessed_because(context, &run)?.is_some(),
        shown: shown(context, &row, version)?,
    }))
}

fn shown(
    context: &Context,
    row: &AttemptRow,
    version: &ModelVersionRow,
) -> Result<BTreeSet<AttemptRequirement>, AppError> {
    let checks = context.ledger_read(|ledger| ledger.preflight_checks_of(row.run_id))?;
    let is_checked =
        !checks.is_empty() && checks.iter().all(|check| !check.blocks && check.skipped_why.is_none());
    let events = context.ledger_read(|ledger| ledger.events_of_attempt(row.attempt_id))?;
    let is_unchanged =
        row.data_sha256.is_some() && !events.iter().any(|event| EventKind::DataChanged.is(&event.kind));
    let proof = context.ledger_read(|ledger| ledger.newest_resume_proof(&row.config_sha256))?;
    let ended_well = row.termination_reason.is_some_and(|reason| reason.is_success());
    let opened = artifact::checkpoints_of(context, version)?;
    let opened = opened.open_manifest(&version.checkpoint_manifest_sha256).ok();
    let is_whole = opened.is_some_and(|opened| opened.manifest.missing().is_empty());
    let all = [
        (AttemptRequirement::EndedWell, ended_well),
        (AttemptRequirement::Preflight, is_checked),
        (AttemptRequirement::DataUnchanged, is_unchanged),
        (AttemptRequirement::ResumeProved, proof.is_some_and(|proof| proof.verdict == ProofVerdict::Equal)),
        (AttemptRequirement::WholeCheckpoint, is_whole),
    ];
    Ok(all.into_iter().filter(|(_, is_shown)| *is_shown).map(|(requirement, _)| requirement).collect())
}
