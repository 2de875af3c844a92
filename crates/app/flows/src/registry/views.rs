//! What there is, and what happened.

use std::collections::BTreeMap;

use serde::Serialize;
use trackway_core::registry::{GateVerdict, ModelStage};
use trackway_core::{Clock as _, RunId, Step, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_ledger::{ApprovalRow, ModelChangeRow, ModelRow, ModelVersionRow};
use trackway_tower::registry::{Policy, Refusal, Standing, Version, refusals};

use crate::registry::{self, evidence};

/// A model. Field names are the JSON contract of `trackway registry show`.
#[derive(Debug, Clone, Serialize)]
pub struct ModelView {
    /// Its name.
    pub model: String,
    /// The version in production.
    pub production_version: Option<Version>,
    /// What each alias points to.
    pub aliases: BTreeMap<String, Version>,
    /// What a promotion to production asks for beside evaluation and gates.
    pub policy: Policy,
    /// Newest first.
    pub versions: Vec<VersionView>,
}

/// A version of a model.
#[derive(Debug, Clone, Serialize)]
pub struct VersionView {
    /// What was registered.
    #[serde(flatten)]
    pub row: ModelVersionRow,
    /// Where it stands.
    pub stage: ModelStage,
    /// What points to it.
    pub aliases: Vec<String>,
    /// Its evaluation.
    pub evaluation_id: Option<String>,
    /// Its newest gate receipt.
    pub gate_receipt_id: Option<String>,
    /// What gates say of it.
    pub gates: Option<GateVerdict>,
    /// Who approved it, valid or not.
    pub approvals: Vec<ApprovalRow>,
    /// What stands against production; its files are not read for this.
    pub refusals: Vec<Refusal>,
}

/// What a checkpoint of a run became.
#[derive(Debug, Clone, Serialize)]
pub struct RegisteredVersion {
    /// The model.
    pub model: String,
    /// The version.
    pub version: Version,
    /// The step of the checkpoint.
    pub step: Option<Step>,
    /// Where it stands.
    pub stage: ModelStage,
    /// What points to it.
    pub aliases: Vec<String>,
}

/// A model at a moment.
#[derive(Debug, Clone, Serialize)]
pub struct StandingAt {
    /// The model.
    pub model: String,
    /// The moment.
    pub at: String,
    /// What was in production.
    pub production_version: Option<Version>,
    /// SHA-256 of the manifest of that version.
    pub manifest_sha256: Option<String>,
    /// The stage of each version.
    pub stages: BTreeMap<Version, ModelStage>,
    /// What each alias pointed to.
    pub aliases: BTreeMap<String, Version>,
}

/// A change, in words too.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryEntry {
    /// What was written down.
    #[serde(flatten)]
    pub row: ModelChangeRow,
    /// In words.
    pub summary: String,
}

/// All models, by name.
///
/// # Errors
/// When the ledger cannot be read.
pub fn models(context: &Context) -> Result<Vec<ModelRow>, AppError> {
    context.ledger_read(trackway_ledger::Ledger::models)
}

/// A model with its versions.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`].
pub fn model_view(context: &Context, name: &str) -> Result<ModelView, AppError> {
    let model = registry::model(context, name)?;
    let standing = &model.standing;
    let mut versions = Vec::new();
    for row in model.versions.iter().rev() {
        let evidence = evidence::evidence(context, &model, row, None)?;
        let now = context.clock.now();
        let points = standing.aliases.iter().filter(|(_, version)| **version == row.version);
        versions.push(VersionView {
            row: row.clone(),
            stage: standing.stages.get(&row.version).copied().unwrap_or(ModelStage::Candidate),
            aliases: points.map(|(alias, _)| alias.clone()).collect(),
            evaluation_id: evidence.evaluation.map(|evaluation| evaluation.evaluation_id),
            gates: evidence.gates.as_ref().map(|gates| gates.verdict),
            gate_receipt_id: evidence.gates.map(|gates| gates.gate_receipt_id),
            approvals: evidence.approvals,
            refusals: refusals(ModelStage::Production, &evidence.facts, &standing.policy, now),
        });
    }
    Ok(ModelView {
        model: model.name.clone(),
        production_version: standing.production(),
        aliases: standing.aliases.clone(),
        policy: standing.policy,
        versions,
    })
}

/// Versions that a run's checkpoints became.
pub fn versions_of_run(context: &Context, run_id: RunId) -> Result<Vec<RegisteredVersion>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.versions_of_run(run_id))?;
    let mut standings: BTreeMap<String, Standing> = BTreeMap::new();
    for row in &rows {
        if !standings.contains_key(&row.model) {
            standings.insert(row.model.clone(), registry::model(context, &row.model)?.standing);
        }
    }
    let registered = |row: ModelVersionRow| {
        let standing = standings.get(&row.model)?;
        let points = standing.aliases.iter().filter(|(_, version)| **version == row.version);
        Some(RegisteredVersion {
            stage: standing.stages.get(&row.version).copied().unwrap_or(ModelStage::Candidate),
            aliases: points.map(|(alias, _)| alias.clone()).collect(),
            model: row.model,
            version: row.version,
            step: row.step,
        })
    };
    Ok(rows.into_iter().filter_map(registered).collect())
}

/// What happened to a model, oldest first.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`].
pub fn model_history(context: &Context, name: &str) -> Result<Vec<HistoryEntry>, AppError> {
    let model = registry::model(context, name)?;
    Ok(model.rows.into_iter().map(|row| HistoryEntry { summary: told(&row), row }).collect())
}

/// The state of a model at a time.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`].
pub fn model_at(context: &Context, name: &str, at: Timestamp) -> Result<StandingAt, AppError> {
    let model = registry::model(context, name)?;
    let standing = Standing::at(&model.changes, at);
    let production = standing.production();
    let row = production.and_then(|number| model.versions.iter().find(|row| row.version == number));
    Ok(StandingAt {
        model: model.name.clone(),
        at: at.to_rfc3339(),
        production_version: production,
        manifest_sha256: row.map(|row| row.checkpoint_manifest_sha256.clone()),
        stages: standing.stages,
        aliases: standing.aliases,
    })
}

fn told(row: &ModelChangeRow) -> String {
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
