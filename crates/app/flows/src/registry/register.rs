//! A checkpoint becomes a version of a model.

use serde_json::{Map, Value, json};
use trackway_api::models::registry::Registration;
use trackway_core::registry::ModelChange;
use trackway_core::{CheckpointUse, Clock as _, RunId, Step};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::{Context, run};
use trackway_formats::runfile::canonical_json;
use trackway_formats::sha256_hex;
use trackway_ledger::{AttemptRow, ModelChangeRow, ModelVersionRow, RunRow};

use super::{artifact, views};
use crate::checkpoints::model_pin::pin_name;
use crate::checkpoints::{self, BytesProgress, CheckedCheckpoint, CheckpointRef, Which};
use crate::registry;

/// How often a version is numbered again because another process registered one at the same time.
const NUMBERINGS_MAX: usize = 20;

/// What shall become a version.
#[derive(Debug, Clone)]
pub struct RegisterRequest {
    pub model: String,
    /// The run whose checkpoint it is.
    pub run: RunId,
    pub checkpoint: CheckpointRef,
    /// What the model takes and gives, as JSON.
    pub signature: Option<Value>,
    /// A user's description of it.
    pub description: Option<String>,
    /// Why it is registered although its checkpoint is unsafe; `None`: it must not be.
    pub accepts_unsafe: Option<String>,
}

/// Registers a committed checkpoint as the next version of a model, and pins it. Exactly these weights again are the
/// version they already are.
///
/// # Errors
/// [`ErrorKind::NotFound`]: no such run or checkpoint. [`ErrorKind::Integrity`]: it does not verify. [`ErrorKind::Usage`]: no
/// name for a model, or no signature.
pub fn register_model(
    context: &Context,
    request: &RegisterRequest,
    watch: &BytesProgress,
) -> Result<Registration, AppError> {
    check_signature(request.signature.as_ref())?;
    let model = registry::model_to_register(context, &request.model)?;
    let run = context.run_by_id(request.run)?;
    let rung = run::rung_now(context, &run)?;
    let checkpoints = checkpoints::checkpoints_at(context, run.clone(), rung)?;
    let accepted = request.accepts_unsafe.as_deref();
    let chosen = checkpoints.chosen_for(&request.checkpoint, CheckpointUse::Register, accepted)?;
    let checked = checkpoints.load_manifest(context, &chosen.manifest_sha256, watch)?;
    artifact::check_holds_weights(&checked.manifest)?;
    let manifest_sha256 = manifest_of(&checked)?;
    // Before anything names it: from here on nothing deletes it.
    let pin = pin_name(&model.name, &manifest_sha256);
    checkpoints.pin(
        &pin,
        Which::Step(checked.info.step),
        &format!("registered as model `{}`", model.name),
        None,
    )?;
    checkpoints.mirror(context)?;
    checkpoints.note_accepted(context, &chosen, CheckpointUse::Register, accepted)?;
    if let Some(known) = model.with_weights(&manifest_sha256) {
        return Ok(Registration { is_new: false, version: views::version_of(context, &model, known)? });
    }
    let lineage = lineage(context, &run, &rung.to_string(), &checked, manifest_sha256)?;
    let (version, known) = numbered(context, request, &lineage)?;
    let model = registry::model(context, &version.model)?;
    Ok(Registration { is_new: !known, version: views::version_of(context, &model, &version)? })
}

/// Stores it under the next free number. True: another process stored these weights meanwhile.
fn numbered(
    context: &Context,
    request: &RegisterRequest,
    lineage: &Lineage,
) -> Result<(ModelVersionRow, bool), AppError> {
    for _ in 1..NUMBERINGS_MAX {
        match number(context, request, lineage) {
            Err(error) if error.kind == ErrorKind::Integrity => {}
            answer => return answer,
        }
    }
    number(context, request, lineage)
}

fn number(
    context: &Context,
    request: &RegisterRequest,
    lineage: &Lineage,
) -> Result<(ModelVersionRow, bool), AppError> {
    let model = registry::model_or_new(context, &request.model)?;
    if let Some(known) = model.with_weights(&lineage.manifest_sha256) {
        return Ok((known.clone(), true));
    }
    let number = model.versions.last().map_or(0, |last| last.version) + 1;
    let row = version_row(context, request, lineage, number);
    let change = ModelChangeRow {
        version: Some(number),
        why: request.accepts_unsafe.as_deref().map(|why| context.redactor.text(why).into_owned()),
        ..registry::new_change(context, &model, ModelChange::Register)
    };
    registry::change_model(context, &model, change, Some(&row))?;
    Ok((row, false))
}

fn version_row(
    context: &Context,
    request: &RegisterRequest,
    lineage: &Lineage,
    version: u32,
) -> ModelVersionRow {
    let attempt = lineage.attempt.as_ref();
    let text = |text: &Option<String>| text.as_ref().map(|text| context.redactor.text(text).into_owned());
    ModelVersionRow {
        model: request.model.clone(),
        version,
        run_id: lineage.run_id,
        attempt_id: attempt.map(|attempt| attempt.attempt_id),
        rung: lineage.rung.clone(),
        step: Some(lineage.step),
        object_prefix: lineage.object_prefix.clone(),
        checkpoint_manifest_sha256: lineage.manifest_sha256.clone(),
        size_bytes: lineage.size_bytes,
        lineage_sha256: sha256_hex(canonical_json(&lineage.as_json()).as_bytes()),
        config_sha256: lineage.config_sha256.clone(),
        code_commit: attempt.and_then(|attempt| attempt.git_commit.clone()),
        environment_sha256: attempt.and_then(|attempt| attempt.environment_lock_sha256.clone()),
        container_digest: attempt.and_then(|attempt| attempt.container_digest.clone()),
        data_json: Value::Object(lineage.data.clone()),
        signature_json: request.signature.clone(),
        description: text(&request.description),
        registered_at: context.clock.now(),
        registered_by: context.request.actor.name.clone(),
        duplicate_of: None,
    }
}

/// Where a checkpoint came from.
fn lineage(
    context: &Context,
    run: &RunRow,
    rung: &str,
    checked: &CheckedCheckpoint,
    manifest_sha256: String,
) -> Result<Lineage, AppError> {
    let attempt_id = checked.info.attempt_id;
    let attempt = context.ledger_read(|ledger| ledger.attempt(attempt_id))?;
    let data = context.sets_read(run, attempt.as_ref())?.sets;
    let config_sha256 =
        attempt.as_ref().map_or_else(|| run.config_sha256.clone(), |attempt| attempt.config_sha256.clone());
    Ok(Lineage {
        run_id: run.run_id,
        rung: rung.to_owned(),
        step: checked.info.step,
        object_prefix: checked.info.object_prefix.clone(),
        manifest_sha256,
        size_bytes: checked.manifest.files.iter().map(|file| file.size_bytes).sum(),
        config_sha256,
        data: data.into_iter().map(|(row, _)| (row.name, json!(row.data_sha256))).collect(),
        attempt,
    })
}

struct Lineage {
    run_id: RunId,
    rung: String,
    step: Step,
    object_prefix: String,
    manifest_sha256: String,
    size_bytes: u64,
    config_sha256: String,
    data: Map<String, Value>,
    attempt: Option<AttemptRow>,
}

impl Lineage {
    fn as_json(&self) -> Value {
        let attempt = self.attempt.as_ref();
        json!({
            "run_id": self.run_id,
            "attempt_id": attempt.map(|attempt| attempt.attempt_id),
            "rung": self.rung,
            "step": self.step,
            "checkpoint_manifest_sha256": self.manifest_sha256,
            "config_sha256": self.config_sha256,
            "code_commit": attempt.and_then(|attempt| attempt.git_commit.clone()),
            "environment_sha256": attempt.and_then(|attempt| attempt.environment_lock_sha256.clone()),
            "container_digest": attempt.and_then(|attempt| attempt.container_digest.clone()),
            "data": self.data,
        })
    }
}

pub(super) fn manifest_of(checked: &CheckedCheckpoint) -> Result<String, AppError> {
    let missing = || {
        AppError::new(
            ErrorKind::Integrity,
            format!("the commit of step {} names no manifest", checked.info.step),
        )
    };
    checked.info.manifest_sha256.clone().ok_or_else(missing)
}

/// A signature has the names and types of inputs and outputs.
fn check_signature(signature: Option<&Value>) -> Result<(), AppError> {
    let Some(signature) = signature else { return Ok(()) };
    let wrong = |why: String| {
        AppError::new(ErrorKind::Usage, "invalid signature")
            .because(why)
            .hint(r#"such as {"inputs": [{"name": "age", "type": "integer"}], "outputs": [{"name": "income", "type": "text"}]}"#)
    };
    let object = signature.as_object().ok_or_else(|| wrong("it is not a JSON object".into()))?;
    for part in ["inputs", "outputs"] {
        let list = object
            .get(part)
            .and_then(Value::as_array)
            .ok_or_else(|| wrong(format!("`{part}` is not a list")))?;
        let is_named =
            |entry: &Value| entry.get("name").is_some_and(Value::is_string) && entry.get("type").is_some();
        if let Some(at) = list.iter().position(|entry| !is_named(entry)) {
            return Err(wrong(format!("`{part}[{at}]` lacks a `name` or a `type`")));
        }
    }
    match object.keys().find(|key| !matches!(key.as_str(), "inputs" | "outputs")) {
        Some(key) => Err(wrong(format!("it has `{key}`"))),
        None => Ok(()),
    }
}
