//! The registry: versions of models with their lineage, how far each has come, and going back.
//!
//! `trackway_rules::registry` decides; this gathers the evidence, and records the decision. A model changes by
//! compare-and-swap: a process that read an older state is refused ([`ErrorKind::Integrity`]) and has changed nothing.

mod artifact;
mod attempt;
mod card;
mod change;
mod deploy;
mod evidence;
mod place;
mod register;
mod views;

use std::str::FromStr as _;

use trackway_core::name::{Name, NameError, NameKind};
use trackway_core::registry::{ModelChange, ModelStage};
use trackway_core::{Clock as _, Timestamp, with_fields_of};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::stored::read_stored;
use trackway_ledger::{KeptRows, ModelChangeRow, ModelRow, ModelVersionRow};
pub use trackway_rules::registry::Policy;
use trackway_rules::registry::{Change, ModelState, Version};

pub use card::model_card;
pub use change::{
    AliasRequest, Approve, PolicyRequest, PromoteRequest, RollBackModel, approve_model, promote_model,
    roll_back_model, set_model_alias, set_model_policy, write_model_policy,
};
pub use deploy::export_model;
pub use register::{RegisterRequest, register_model};
pub use views::{model_at, model_history, model_view, models, versions_of_run};

/// A model and everything that happened to it.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    name: String,
    row: Option<ModelRow>,
    versions: Vec<ModelVersionRow>,
    changes: Vec<Change>,
    rows: Vec<ModelChangeRow>,
    standing: ModelState,
}

impl Model {
    fn version(&self, number: Version) -> Result<&ModelVersionRow, AppError> {
        self.versions.iter().find(|row| row.version == number).ok_or_else(|| {
            let message = format!("`{}` has no version {number}", self.name);
            AppError::new(ErrorKind::NotFound, message).hint(self.see())
        })
    }

    fn change(&self, number: u64) -> Result<&ModelChangeRow, AppError> {
        self.rows.iter().find(|row| row.number == number).ok_or_else(|| {
            let message = format!("`{}` has no change {number}", self.name);
            let hint = format!("see its changes with: trackway registry history {}", self.name);
            AppError::new(ErrorKind::NotFound, message).hint(hint)
        })
    }

    /// A number, `v3`, an alias, or a stage with one version in it.
    fn named(&self, text: &str) -> Result<&ModelVersionRow, AppError> {
        if let Ok(number) = text.strip_prefix('v').unwrap_or(text).parse() {
            return self.version(number);
        }
        if let Some(version) = self.standing.aliases.get(text) {
            return self.version(*version);
        }
        let unknown = |why: String| Err(AppError::new(ErrorKind::NotFound, why).hint(self.see()));
        if text == "latest" {
            return self
                .versions
                .last()
                .map_or_else(|| unknown(format!("`{}` has no version", self.name)), Ok);
        }
        let Ok(stage) = ModelStage::from_str(text) else {
            return unknown(format!("`{}` has no version, alias or stage `{text}`", self.name));
        };
        let mut there = self.standing.stages.iter().filter(|(_, at)| **at == stage);
        match (there.next(), there.next()) {
            (Some((version, _)), None) => self.version(*version),
            (None, _) => unknown(format!("no version of `{}` is in {stage}", self.name)),
            _ => {
                unknown(format!("several versions of `{}` are in {stage}: name one by its number", self.name))
            }
        }
    }

    fn with_weights(&self, manifest_sha256: &str) -> Option<&ModelVersionRow> {
        self.versions.iter().find(|row| row.checkpoint_manifest_sha256 == manifest_sha256)
    }

    fn see(&self) -> String {
        format!("see its versions with: trackway registry show {}", self.name)
    }
}

/// A model that exists.
fn model(context: &Context, name: &str) -> Result<Model, AppError> {
    let model = model_or_new(context, name)?;
    if model.row.is_some() {
        return Ok(model);
    }
    let known = context.ledger_read(trackway_ledger::Ledger::models)?;
    let names: Vec<String> = known.into_iter().map(|row| format!("`{}`", row.model)).collect();
    let hint = match names.is_empty() {
        true => "register a version with: trackway registry register MODEL --run RUN".into(),
        false => format!("there are {}", names.join(", ")),
    };
    Err(AppError::new(ErrorKind::NotFound, format!("there is no model `{name}`")).hint(hint))
}

/// A model, new ones under a name that is free to give.
fn model_to_register(context: &Context, name: &str) -> Result<Model, AppError> {
    let model = model_or_new(context, name)?;
    if model.row.is_none() {
        check_name(NameKind::Model, name)?;
    }
    Ok(model)
}

/// A model, with nothing in it where it does not exist yet.
fn model_or_new(context: &Context, name: &str) -> Result<Model, AppError> {
    let (rows, row, versions) = context.ledger_read(|ledger| {
        // The changes first: what is registered meanwhile is missing from both then, and the swap refuses.
        let rows = ledger.changes_of_model(name)?;
        Ok((rows, ledger.model(name)?, ledger.versions_of_model(name)?))
    })?;
    let changes = rows.iter().map(change_of).collect::<Result<Vec<Change>, AppError>>()?;
    let standing = ModelState::after(&changes);
    Ok(Model { name: name.to_owned(), row, versions, changes, rows, standing })
}

/// Adds a change to a model in the state `model`, of which it has the next number.
fn change_model(
    context: &Context,
    model: &Model,
    row: ModelChangeRow,
    version: Option<&ModelVersionRow>,
) -> Result<ModelChangeRow, AppError> {
    let row = ModelChangeRow { why: row.why.map(|why| context.redactor.text(&why).into_owned()), ..row };
    let changes = model.changes.iter().cloned().chain([change_of(&row)?]);
    let standing = ModelState::after(&changes.collect::<Vec<_>>());
    let project = match &model.row {
        Some(row) => row.project.clone(),
        None => project_of(context, version)?,
    };
    let standing = standing_row(model, &standing, row.at, version.is_some(), project);
    context.ledger_write(|ledger| ledger.change_model(&row, &standing, version))?;
    context.keep_in_registry(&kept_name(&row), &KeptRows::of_change(&row, &standing, version));
    keep_missing(context, model);
    Ok(row)
}

/// Keeps the changes of all models that are in the ledger alone.
///
/// # Errors
/// When the ledger cannot be read.
pub(crate) fn keep_missing_of_all(context: &Context) -> Result<(), AppError> {
    for row in context.ledger_read(trackway_ledger::Ledger::models)? {
        keep_missing(context, &model_or_new(context, &row.model)?);
    }
    Ok(())
}

/// Keeps changes of a model that are in the ledger alone, because a kill came between both.
fn keep_missing(context: &Context, model: &Model) {
    if model.rows.iter().all(|row| context.is_kept_in_registry(&kept_name(row))) {
        return;
    }
    let mut past = Model { row: None, versions: Vec::new(), changes: Vec::new(), ..model.clone() };
    for row in &model.rows {
        let Ok(change) = change_of(row) else { return };
        past.changes.push(change);
        let registers = row.kind == ModelChange::Register;
        let version = model.versions.iter().find(|it| registers && Some(it.version) == row.version);
        let project = model.row.as_ref().and_then(|row| row.project.clone());
        let standing =
            standing_row(&past, &ModelState::after(&past.changes), row.at, version.is_some(), project);
        if !context.is_kept_in_registry(&kept_name(row)) {
            context.keep_in_registry(&kept_name(row), &KeptRows::of_change(row, &standing, version));
        }
        past.versions.extend(version.cloned());
        past.row = Some(standing);
    }
}

/// The next change of a model, by the acting user and now.
fn new_change(context: &Context, model: &Model, kind: ModelChange) -> ModelChangeRow {
    ModelChangeRow {
        model: model.name.clone(),
        number: model.standing.number + 1,
        at: context.clock.now(),
        kind,
        version: None,
        stage: None,
        alias: None,
        was_version: None,
        gate_receipt_id: None,
        approvals_json: None,
        policy_json: None,
        person: context.request.actor.name.clone(),
        why: None,
    }
}

/// The name under which a change is kept.
pub(crate) fn kept_name(row: &ModelChangeRow) -> String {
    format!("change-{}-{}", row.model, row.number)
}

/// The project of the run that trained a version.
fn project_of(context: &Context, version: Option<&ModelVersionRow>) -> Result<Option<String>, AppError> {
    let Some(version) = version else { return Ok(None) };
    let run = context.ledger_read(|ledger| ledger.run(version.run_id))?;
    Ok(run.and_then(|run| run.project))
}

fn standing_row(
    model: &Model,
    standing: &ModelState,
    at: Timestamp,
    registers: bool,
    project: Option<String>,
) -> ModelRow {
    let before = model.row.as_ref();
    let stays = before.is_some_and(|row| row.production_version == standing.production());
    let since = if stays { before.and_then(|row| row.production_since) } else { Some(at) };
    ModelRow {
        model: model.name.clone(),
        created_at: before.map_or(at, |row| row.created_at),
        change_number: standing.number,
        version_count: u32::try_from(model.versions.len()).unwrap_or(u32::MAX) + u32::from(registers),
        production_version: standing.production(),
        production_since: standing.production().and(since),
        stages_json: serde_json::json!(standing.stages),
        aliases_json: serde_json::json!(standing.aliases),
        policy_json: serde_json::json!(standing.policy),
        project,
    }
}

fn change_of(row: &ModelChangeRow) -> Result<Change, AppError> {
    let owner = || format!("change {} of model `{}`", row.number, row.model);
    let policy =
        row.policy_json.as_ref().map(|policy| read_stored(policy, "model_changes.policy_json", owner));
    Ok(with_fields_of!(
        Change,
        &row,
        [number, at, kind, version, stage, alias],
        policy: policy.transpose()?,
    ))
}

/// Refuses a name that a person gives and that means something else already, or cannot be part of a name of a folder.
fn check_name(named: NameKind, name: &str) -> Result<(), AppError> {
    let refused = |error: NameError| {
        let hint = error.hint();
        AppError::of(ErrorKind::Usage, error).hint(hint)
    };
    Name::new(named, name).map(drop).map_err(refused)
}
