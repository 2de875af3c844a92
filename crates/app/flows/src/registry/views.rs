//! What there is, and what happened.

use std::collections::BTreeMap;

use trackway_api::models::registry::{
    Approval, Model, ModelAt, ModelChangeEntry, ModelDetails, ModelVersion,
};
use trackway_core::registry::ModelStage;
use trackway_core::{Clock as _, RunId, Timestamp, with_fields_of};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::page::{Page, Paged};
use trackway_engine::stored::read_stored;
use trackway_ledger::{ApprovalRow, ModelChangeRow, ModelRow, ModelVersionRow};
use trackway_rules::registry::{ModelState, Version, refusals};

use crate::checkpoints::model_pin::pin_name;
use crate::registry::{self, evidence};

/// All models, by name.
pub fn models(context: &Context) -> Result<Vec<Model>, AppError> {
    let rows = context.ledger_read(trackway_ledger::Ledger::models)?;
    rows.into_iter().map(|row| model_of(context, row)).collect()
}

/// By its changes: the row has the policy as it was at the last change, when the default may have been another one.
fn model_of(context: &Context, row: ModelRow) -> Result<Model, AppError> {
    let standing = registry::model(context, &row.model)?.standing;
    Ok(with_fields_of!(
        Model,
        row,
        [model, project, created_at, change_number, version_count, production_version, production_since],
        stages: standing.stages,
        aliases: standing.aliases,
        policy: standing.policy,
    ))
}

/// A model with a page of its versions, newest first.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`], also when there is no version that the page comes after.
pub fn model_view(context: &Context, name: &str, page: &Page<Version>) -> Result<ModelDetails, AppError> {
    let model = registry::model(context, name)?;
    if let Some(after) = page.after {
        model.version(after)?;
    }
    let left = model.versions.iter().rev().filter(|row| page.after.is_none_or(|after| row.version < after));
    let Paged { entries, next, .. } = Paged::of_all(left.collect(), page.rows(), |row| row.version);
    let versions =
        entries.into_iter().map(|row| version_of(context, &model, row)).collect::<Result<_, _>>()?;
    let standing = model.standing;
    Ok(ModelDetails {
        model: model.name,
        project: model.row.and_then(|row| row.project),
        production_version: standing.production(),
        aliases: standing.aliases,
        policy: standing.policy,
        versions,
        next,
    })
}

/// A version with its stage, its aliases and its evidence.
pub(super) fn version_of(
    context: &Context,
    model: &registry::Model,
    row: &ModelVersionRow,
) -> Result<ModelVersion, AppError> {
    let standing = &model.standing;
    let evidence = evidence::evidence(context, model, row, None)?;
    let now = context.clock.now();
    let points = standing.aliases.iter().filter(|(_, version)| **version == row.version);
    let owner = || format!("version {} of model `{}`", row.version, row.model);
    let row = row.clone();
    Ok(with_fields_of!(
        ModelVersion,
        row,
        [
            model, version, run_id, attempt_id, rung, step, object_prefix, checkpoint_manifest_sha256,
            size_bytes, lineage_sha256, config_sha256, code_commit, environment_sha256, container_digest,
            description, registered_at, registered_by, duplicate_of,
        ],
        stage: standing.stages.get(&row.version).copied().unwrap_or(ModelStage::Candidate),
        aliases: points.map(|(alias, _)| alias.clone()).collect(),
        health: evidence.facts.attempt.as_ref().and_then(|attempt| attempt.health),
        warnings: evidence.facts.warnings(),
        evaluation_id: evidence.evaluation.map(|evaluation| evaluation.evaluation_id),
        gates: evidence.gates.as_ref().map(|gates| gates.verdict),
        gate_receipt_id: evidence.gates.map(|gates| gates.gate_receipt_id),
        approvals: evidence.approvals.into_iter().map(approval_of).collect(),
        refusals: refusals(ModelStage::Production, &evidence.facts, &standing.policy, now),
        pin: pin_name(&row.model, &row.checkpoint_manifest_sha256),
        data: read_stored(&row.data_json, "model_versions.data_json", owner)?,
        signature: row.signature_json,
    ))
}

pub(super) fn approval_of(row: ApprovalRow) -> Approval {
    with_fields_of!(
        Approval,
        row,
        [approval_id, model, version, digest, gate_receipt_id, approver, at, expires_at, why],
    )
}

/// Versions that a run's checkpoints became.
pub fn versions_of_run(context: &Context, run_id: RunId) -> Result<Vec<ModelVersion>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.versions_of_run(run_id))?;
    let mut models: BTreeMap<String, registry::Model> = BTreeMap::new();
    for row in &rows {
        if !models.contains_key(&row.model) {
            models.insert(row.model.clone(), registry::model(context, &row.model)?);
        }
    }
    let version = |row: &ModelVersionRow| Some(version_of(context, models.get(&row.model)?, row));
    rows.iter().filter_map(version).collect()
}

/// A page of what happened to a model, oldest first.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`], also when there is no change that the page comes after.
pub fn model_history(
    context: &Context,
    name: &str,
    page: &Page<u64>,
) -> Result<Paged<ModelChangeEntry, u64>, AppError> {
    let model = registry::model(context, name)?;
    if let Some(after) = page.after {
        model.change(after)?;
    }
    let left = model.rows.into_iter().filter(|row| page.after.is_none_or(|after| row.number > after));
    let Paged { entries, more_count, .. } = Paged::of_all(left.collect(), page.rows(), |row| row.number);
    let entries = entries.into_iter().map(entry_of).collect::<Result<_, _>>()?;
    Ok(Paged::new(entries, more_count, |entry: &ModelChangeEntry| entry.number))
}

fn entry_of(row: ModelChangeRow) -> Result<ModelChangeEntry, AppError> {
    let owner = || format!("change {} of model `{}`", row.number, row.model);
    let approvals = row.approvals_json.as_ref();
    let approvals = approvals.map(|ids| read_stored(ids, "model_changes.approvals_json", owner));
    let policy = row.policy_json.as_ref().map(|it| read_stored(it, "model_changes.policy_json", owner));
    Ok(with_fields_of!(
        ModelChangeEntry,
        row,
        [model, number, at, kind, version, stage, alias, was_version, gate_receipt_id, person, why],
        summary: summary(&row),
        next: None,
        approvals: approvals.transpose()?.unwrap_or_default(),
        policy: policy.transpose()?,
    ))
}

/// The state of a model at a time.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`].
pub fn model_at(context: &Context, name: &str, at: Timestamp) -> Result<ModelAt, AppError> {
    let model = registry::model(context, name)?;
    let standing = ModelState::at(&model.changes, at);
    let production = standing.production();
    let row = production.and_then(|number| model.versions.iter().find(|row| row.version == number));
    Ok(ModelAt {
        model: model.name.clone(),
        at,
        production_version: production,
        manifest_sha256: row.map(|row| row.checkpoint_manifest_sha256.clone()),
        stages: standing.stages,
        aliases: standing.aliases,
    })
}

/// A change, as a sentence.
fn summary(row: &ModelChangeRow) -> String {
    use trackway_core::registry::ModelChange::{DropAlias, Policy, Promote, Register, RollBack, SetAlias};
    let version = row.version.map_or_else(String::new, |version| format!("version {version}"));
    let instead = row.was_version.map(|version| format!(" (before: version {version})")).unwrap_or_default();
    let alias = row.alias.as_deref().unwrap_or_default();
    match row.kind {
        Register => format!("{version} registered"),
        Promote => format!("{version} to {}{instead}", row.stage.map_or("", ModelStage::as_str)),
        RollBack => format!("production back to {version}{instead}"),
        SetAlias => format!("alias `{alias}` to {version}{instead}"),
        DropAlias => format!("alias `{alias}` removed{instead}"),
        Policy => "policy changed".into(),
    }
}
