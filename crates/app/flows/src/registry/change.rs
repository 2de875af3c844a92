//! Promotion, going back, aliases, approvals and the policy of a model.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use trackway_api::models::registry::{Approved, ModelChanged};
use trackway_core::name::NameKind;
use trackway_core::registry::{ModelChange, ModelStage};
use trackway_core::{CheckpointUse, Clock as _, Rung, Timestamp, Unfit};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::good_runs::decided_otherwise;
use trackway_files::give_to_user;
use trackway_formats::model_policy::{self, ModelPolicyFile};
use trackway_formats::sha256_hex;
use trackway_formats::shell::quoted;
use trackway_ledger::{ApprovalRow, KeptRows, ModelChangeRow, ModelVersionRow};
use trackway_rules::registry::{Policy, Release, Version, folded, refusals};

use super::evidence::PromotionEvidence;
use super::{Model, check_name};
use crate::checkpoints::BytesProgress;
use crate::registry::{self, artifact, deploy, evidence, views};

/// Times in production that a refusal names.
const RELEASES_NAMED_MAX: usize = 4;

/// A version shall go to a stage.
#[derive(Debug, Clone)]
pub struct PromoteRequest {
    pub model: String,
    /// Its number, an alias or a stage.
    pub version: String,
    /// Where to.
    pub to: ModelStage,
    /// The version that must be in production now; `Some(None)`: none must be.
    pub expect: Option<Option<Version>>,
    /// Where copies of its files are kept, with `current` pointing to the one in production.
    pub deploy: Option<PathBuf>,
    pub why: Option<String>,
}

/// Production shall go back.
#[derive(Debug, Clone)]
pub struct RollBackModel {
    pub model: String,
    /// To which version; `None`: to the one before.
    pub to: Option<String>,
    /// As [`PromoteRequest::expect`].
    pub expect: Option<Option<Version>>,
    /// As [`PromoteRequest::deploy`].
    pub deploy: Option<PathBuf>,
    pub why: Option<String>,
}

/// A name shall point to a version, or to nothing.
#[derive(Debug, Clone)]
pub struct AliasRequest {
    pub model: String,
    /// The name.
    pub alias: String,
    /// The version; `None`: the name goes.
    pub version: Option<String>,
    /// What it must point to now; `Some(None)`: to nothing.
    pub expect: Option<Option<Version>>,
}

/// What promotions require; `None` leaves a rule as it is.
#[derive(Debug, Clone, Default)]
pub struct PolicyRequest {
    /// A policy file, which replaces the whole policy.
    pub file: Option<PathBuf>,
    pub approvals: Option<u32>,
    pub approval_seconds: Option<f64>,
    pub own_approval: Option<bool>,
}

/// The approval of a version by the actor of the request.
#[derive(Debug, Clone)]
pub struct Approve {
    pub model: String,
    /// Its number, an alias or a stage.
    pub version: String,
    /// How long it is valid; `None`: according to the policy.
    pub seconds: Option<f64>,
    pub why: Option<String>,
}

/// Moves a version to a stage, if its evidence allows it.
///
/// # Errors
/// [`ErrorKind::Usage`] for a deployment with another stage than production; [`ErrorKind::NotFound`];
/// [`ErrorKind::Integrity`] when `expect` does not hold, or the model changed meanwhile. A refusal is not an error but
/// a result.
pub fn promote_model(
    context: &Context,
    request: &PromoteRequest,
    watch: &BytesProgress,
) -> Result<ModelChanged, AppError> {
    refuse_deployment(request)?;
    let began = context.clock.now();
    let model = registry::model(context, &request.model)?;
    expected("production", model.standing.production(), request.expect)?;
    let version = model.named(&request.version)?;
    let checks = matches!(request.to, ModelStage::Staging | ModelStage::Production);
    let (damage, verify_seconds) = if checks { damage(context, version, watch)? } else { (None, 0.0) };
    let evidence = evidence::evidence(context, &model, version, damage)?;
    let refusals = refusals(request.to, &evidence.facts, &model.standing.policy, context.clock.now());
    let mut answer = unchanged(&model, Some(version));
    answer.verify_seconds = verify_seconds;
    let already_there = model.standing.stages.get(&version.version) == Some(&request.to);
    if !refusals.is_empty() && !already_there {
        answer.refusals = refusals;
        return Ok(answer);
    }
    answer.approvals = evidence.valid_approvals(context.clock.now());
    let change = ModelChangeRow {
        version: Some(version.version),
        stage: Some(request.to),
        was_version: model.standing.production().filter(|_| request.to == ModelStage::Production),
        gate_receipt_id: evidence.gates.map(|gates| gates.gate_receipt_id),
        approvals_json: Some(json!(answer.approvals)),
        why: request.why.clone(),
        ..registry::new_change(context, &model, ModelChange::Promote)
    };
    carry_out(context, &model, change, request.deploy.as_deref(), already_there, (began, watch), answer)
}

/// Refuses copies with a stage whose promotion makes none, so that no promotion looks like a deployment.
fn refuse_deployment(request: &PromoteRequest) -> Result<(), AppError> {
    let Some(folder) = request.deploy.as_deref().filter(|_| request.to != ModelStage::Production) else {
        return Ok(());
    };
    let (model, version) = (quoted(&request.model), quoted(&request.version));
    let folder = quoted(&folder.display().to_string());
    let message =
        format!("nothing was changed: `--deploy` deploys what goes to production, not to {}", request.to);
    Err(AppError::new(ErrorKind::Usage, message)
        .hint(format!("promote it without `--deploy`: trackway registry promote {model} {version} --to {}", request.to))
        .hint(format!("or deploy with the promotion to production: trackway registry promote {model} {version} --to production --deploy {folder}"))
        .hint(format!("or copy the files of any version: trackway registry export {model} {version} --out {folder}")))
}

/// Puts an earlier version back into production, its files verified first.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is nothing to go back to; [`ErrorKind::Integrity`] when its files do not verify, `expect`
/// does not hold, or the model changed meanwhile. Production stays as it is then.
pub fn roll_back_model(
    context: &Context,
    request: &RollBackModel,
    watch: &BytesProgress,
) -> Result<ModelChanged, AppError> {
    let began = context.clock.now();
    let model = registry::model(context, &request.model)?;
    expected("production", model.standing.production(), request.expect)?;
    let version = model.version_before(request.to.as_deref())?;
    let (damage, verify_seconds) = damage(context, version, watch)?;
    if let Some(why) = damage {
        let message = format!("version {} does not verify: {why}", version.version);
        return Err(AppError::new(ErrorKind::Integrity, message)
            .hint(format!("another one: trackway registry rollback {} --to-version VERSION", model.name)));
    }
    if let Some(why) = artifact::unsafe_because(context, version) {
        let message = format!("version {} is unsafe: {why}", version.version);
        let mut error = AppError::new(ErrorKind::Integrity, message)
            .hint(format!("another one: trackway registry rollback {} --to-version VERSION", model.name));
        let (run, step) = (version.run_id.to_string(), version.step.unwrap_or_default());
        error.hints.extend(decided_otherwise(&[Unfit::Unsafe], CheckpointUse::Release, &run, step));
        return Err(error);
    }
    let answer = ModelChanged { verify_seconds, ..unchanged(&model, Some(version)) };
    let change = ModelChangeRow {
        version: Some(version.version),
        stage: Some(ModelStage::Production),
        was_version: model.standing.production(),
        why: request.why.clone(),
        ..registry::new_change(context, &model, ModelChange::RollBack)
    };
    let already_there = model.standing.production() == Some(version.version);
    carry_out(context, &model, change, request.deploy.as_deref(), already_there, (began, watch), answer)
}

/// Copies first, then changes, then points to the copy: whatever ends in between, the same command again ends it.
fn carry_out(
    context: &Context,
    model: &Model,
    change: ModelChangeRow,
    deploy: Option<&std::path::Path>,
    already_there: bool,
    (began, watch): (Timestamp, &BytesProgress),
    mut answer: ModelChanged,
) -> Result<ModelChanged, AppError> {
    let version = change.version.and_then(|number| model.versions.iter().find(|row| row.version == number));
    let is_released = change.stage == Some(ModelStage::Production);
    let mut deployed = match (deploy.filter(|_| is_released), version) {
        (Some(folder), Some(version)) => Some(deploy::deploy(context, model, version, folder, watch)?),
        _ => None,
    };
    answer.stage = change.stage;
    answer.was_version = change.was_version;
    answer.gate_receipt_id.clone_from(&change.gate_receipt_id);
    let released_by = if already_there {
        registry::keep_missing(context, model);
        model.newest_release()
    } else {
        let number = registry::change_model(context, model, change, None)?.number;
        answer.change_number = Some(number);
        Some(number)
    };
    if let (Some(deployed), Some(version), Some(number)) = (&mut deployed, version, released_by) {
        deploy::point_to(deployed, &model.name, version.version, number)?;
        deploy::remember(context, &model.name, deployed);
    }
    if let (true, None, Some(version)) = (is_released, deploy, version) {
        answer.warnings = deploy::still_served(context, &model.name, version.version);
    }
    let copy_seconds = deployed.as_ref().map_or(0.0, |deployed| deployed.copy_seconds);
    answer.deployed = deployed;
    let seconds = context.clock.now().seconds_since(began) - answer.verify_seconds - copy_seconds;
    answer.control_seconds = seconds.max(0.0);
    Ok(answer)
}

/// Why the files of a version do not verify, and the seconds that took.
fn damage(
    context: &Context,
    version: &ModelVersionRow,
    watch: &BytesProgress,
) -> Result<(Option<String>, f64), AppError> {
    let began = context.clock.now();
    let damage = match artifact::verified(context, version, watch) {
        Ok(_) => None,
        Err(error) if matches!(error.kind, ErrorKind::Integrity | ErrorKind::NotFound) => {
            Some(error.to_string())
        }
        Err(error) => return Err(error),
    };
    Ok((damage, context.clock.now().seconds_since(began)))
}

/// Sets or drops an alias.
///
/// # Errors
/// [`ErrorKind::Usage`] for a name that means something else; [`ErrorKind::NotFound`]; [`ErrorKind::Integrity`] when `expect` does
/// not hold, or the model changed meanwhile.
pub fn set_model_alias(context: &Context, request: &AliasRequest) -> Result<ModelChanged, AppError> {
    let model = registry::model(context, &request.model)?;
    let was_version = model.standing.aliases.get(&request.alias).copied();
    // One that an older program set may go, and point elsewhere until then.
    if was_version.is_none() {
        check_name(NameKind::Alias, &request.alias)?;
    }
    expected(&format!("alias `{}`", request.alias), was_version, request.expect)?;
    let version = request.version.as_deref().map(|text| model.named(text)).transpose()?;
    let number = version.map(|row| row.version);
    let mut answer = ModelChanged { was_version, ..unchanged(&model, version) };
    if number == was_version {
        return Ok(answer);
    }
    let kind = if version.is_some() { ModelChange::SetAlias } else { ModelChange::DropAlias };
    let change = ModelChangeRow {
        version: number,
        alias: Some(request.alias.clone()),
        was_version,
        ..registry::new_change(context, &model, kind)
    };
    answer.change_number = Some(registry::change_model(context, &model, change, None)?.number);
    Ok(answer)
}

/// Changes what promotions to production require.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] for a policy file with mistakes; [`ErrorKind::Integrity`] when the model
/// changed meanwhile.
pub fn set_model_policy(context: &Context, name: &str, request: &PolicyRequest) -> Result<Policy, AppError> {
    let model = registry::model(context, name)?;
    let before = &model.standing.policy;
    let of_file = request.file.as_deref().map(|path| policy_of_file(path, name)).transpose()?;
    let base = of_file.as_ref().unwrap_or(before);
    let policy = Policy {
        approvals: request.approvals.unwrap_or(base.approvals),
        approval_seconds: request.approval_seconds.unwrap_or(base.approval_seconds),
        own_approval: request.own_approval.unwrap_or(base.own_approval),
        ..base.clone()
    };
    if policy != *before {
        let change = ModelChangeRow {
            policy_json: Some(json!(policy)),
            ..registry::new_change(context, &model, ModelChange::Policy)
        };
        registry::change_model(context, &model, change, None)?;
    }
    Ok(policy)
}

/// Writes a policy as a file that `--file` reads, to be edited. A file that exists is not touched.
///
/// # Errors
/// [`ErrorKind::Usage`] for a file that exists; when it cannot be written.
pub fn write_model_policy(name: &str, policy: &Policy, path: &Path) -> Result<(), AppError> {
    let file = ModelPolicyFile {
        model: Some(name.to_owned()),
        approvals: Some(policy.approvals),
        approval_seconds: Some(policy.approval_seconds),
        own_approval: Some(policy.own_approval),
        approvers: Some(policy.approvers.clone()),
        gates: Some(policy.gates.clone()),
        baseline: Some(policy.baseline),
        rung: Rung::new(policy.rung_fraction_min),
        receipt: Some(policy.receipt.clone()),
        test_set_uses_max: policy.test_set_uses_max,
        test_sets: Some(policy.test_sets.clone()),
        health: Some(policy.health),
        attempt: Some(policy.attempt.clone()),
    };
    let written = File::create_new(path).and_then(|mut created| created.write_all(file.text().as_bytes()));
    written.and_then(|()| give_to_user(path)).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            AppError::new(ErrorKind::Usage, format!("`{}` exists already", path.display()))
                .hint("name a file that does not exist")
        }
        _ => AppError::file("write", path, error),
    })
}

/// The whole policy of a file: what it does not set has its default.
fn policy_of_file(path: &Path, model: &str) -> Result<Policy, AppError> {
    let source = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            AppError::new(ErrorKind::NotFound, format!("there is no file `{}`", path.display()))
        }
        _ => AppError::file("read", path, error),
    })?;
    let shown = path.display().to_string();
    let file = model_policy::parse(&source, &shown)
        .map_err(|errors| AppError::run_file(&errors, &String::from_utf8_lossy(&source)))?;
    if let Some(other) = file.model.as_deref().filter(|named| *named != model) {
        let message = format!("`{}` is the policy of `{other}`, not of `{model}`", path.display());
        return Err(AppError::new(ErrorKind::Usage, message));
    }
    let usual = Policy::default();
    Ok(Policy {
        approvals: file.approvals.unwrap_or(usual.approvals),
        approval_seconds: file.approval_seconds.unwrap_or(usual.approval_seconds),
        own_approval: file.own_approval.unwrap_or(usual.own_approval),
        approvers: file.approvers.unwrap_or(usual.approvers),
        gates: file.gates.unwrap_or(usual.gates),
        baseline: file.baseline.unwrap_or(usual.baseline),
        rung_fraction_min: file.rung.map_or(usual.rung_fraction_min, Rung::fraction),
        receipt: file.receipt.unwrap_or(usual.receipt),
        test_set_uses_max: file.test_set_uses_max,
        test_sets: file.test_sets.unwrap_or_default(),
        health: file.health.unwrap_or(usual.health),
        attempt: file.attempt.unwrap_or(usual.attempt),
    })
}

/// Records the approval of a version with the verdicts of its gates.
///
/// # Errors
/// [`ErrorKind::NotFound`]: no such version, or it has no verdicts of gates yet, so that there is nothing to approve.
/// [`ErrorKind::Usage`]: the actor has no name.
pub fn approve_model(context: &Context, request: &Approve) -> Result<Approved, AppError> {
    let model = registry::model(context, &request.model)?;
    let version = model.named(&request.version)?;
    let named = context.request.actor.name.as_deref().map(|name| name.trim().to_owned());
    let approver = named.filter(|name| !folded(name).is_empty()).ok_or_else(|| {
        AppError::new(ErrorKind::Usage, "no approver given").hint("name one with --by NAME")
    })?;
    let evidence = evidence::evidence(context, &model, version, None)?;
    let gates = evidence.gates.as_ref().ok_or_else(|| {
        let message =
            format!("no gate was evaluated for version {}: there is nothing to approve", version.version);
        AppError::new(ErrorKind::NotFound, message).hint("run: trackway gates judge EVALUATION")
    })?;
    let at = context.clock.now();
    let digest = evidence.facts.approval_digest.clone();
    let approval = ApprovalRow {
        approval_id: sha256_hex(format!("{digest} {approver} {}", at.as_micros()).as_bytes())[..26]
            .to_owned(),
        model: model.name.clone(),
        version: version.version,
        digest,
        gate_receipt_id: gates.gate_receipt_id.clone(),
        approver,
        at,
        expires_at: at.plus_seconds(request.seconds.unwrap_or(model.standing.policy.approval_seconds)),
        why: request.why.as_ref().map(|why| context.redactor.text(why).into_owned()),
    };
    context.ledger_write(|ledger| ledger.insert_approval(&approval))?;
    context.keep_in_registry(&format!("approval-{}", approval.approval_id), &KeptRows::of([&approval]));
    let facts = evidence::evidence(context, &model, version, None)?.facts;
    let refusals = refusals(ModelStage::Production, &facts, &model.standing.policy, at);
    Ok(Approved { approval: views::approval_of(approval), refusals })
}

/// The answer before anything changed.
fn unchanged(model: &Model, version: Option<&ModelVersionRow>) -> ModelChanged {
    let number = version.map(|row| row.version);
    ModelChanged {
        model: model.name.clone(),
        version: number,
        stage: number.and_then(|number| model.standing.stages.get(&number).copied()),
        was_version: None,
        manifest_sha256: version.map(|row| row.checkpoint_manifest_sha256.clone()),
        change_number: None,
        gate_receipt_id: None,
        approvals: Vec::new(),
        refusals: Vec::new(),
        deployed: None,
        warnings: Vec::new(),
        verify_seconds: 0.0,
        control_seconds: 0.0,
    }
}

impl PromotionEvidence {
    /// The ids of the approvals of what is promoted that have not expired.
    fn valid_approvals(&self, now: Timestamp) -> Vec<String> {
        let digest = &self.facts.approval_digest;
        let valid = self.approvals.iter().filter(|row| row.digest == *digest && row.expires_at > now);
        valid.map(|row| row.approval_id.clone()).collect()
    }
}

impl Model {
    /// The number of the change that put into production what is there.
    fn newest_release(&self) -> Option<u64> {
        let releases = self.rows.iter().filter(|change| change.stage == Some(ModelStage::Production));
        releases.map(|change| change.number).max()
    }

    /// The version to go back to: one that was in production before.
    fn version_before(&self, named: Option<&str>) -> Result<&ModelVersionRow, AppError> {
        let Some(text) = named else {
            return self.version(self.standing.before_production().ok_or_else(|| self.nothing_before())?);
        };
        let version = self.named(text)?;
        if self.standing.was_released(version.version) {
            return Ok(version);
        }
        let message = format!("version {} was never in production", version.version);
        Err(AppError::new(ErrorKind::Usage, message)
            .hint(format!("promote it: trackway registry promote {} {}", self.name, version.version)))
    }

    /// Why production does not go back, with what was in production when.
    fn nothing_before(&self) -> AppError {
        let (name, in_production) = (&self.name, self.standing.production());
        let releases = self.standing.releases();
        let newest_other = releases.iter().rev().find(|release| Some(release.version) != in_production);
        let Some(Release { version, .. }) = newest_other else {
            let message = match in_production {
                Some(version) => {
                    format!("no version of `{name}` but version {version} was ever in production")
                }
                None => format!("no version of `{name}` was ever in production"),
            };
            return AppError::new(ErrorKind::NotFound, message)
                .hint(format!("promote another version: trackway registry promote {name} VERSION"))
                .hint(self.see());
        };
        let message = format!(
            "no version of `{name}` is left to go back to: a rollback skips those that were rolled back from and those that were moved to \
             another stage; in production were {}",
            listed(releases)
        );
        AppError::new(ErrorKind::NotFound, message)
            .hint(format!(
                "put one of them back by its number: trackway registry rollback {name} --to-version {version}"
            ))
            .hint(format!("or promote a version on its evidence: trackway registry promote {name} {version}"))
    }
}

/// The newest of the times in which versions were in production, and how many there are more.
fn listed(releases: &[Release]) -> String {
    let one = |release: &Release| match release.until {
        Some(until) => format!("version {} ({} to {until})", release.version, release.from),
        None => format!("version {} (since {})", release.version, release.from),
    };
    let named: Vec<String> = releases.iter().rev().take(RELEASES_NAMED_MAX).map(one).collect();
    let more = match releases.len().saturating_sub(RELEASES_NAMED_MAX) {
        0 => String::new(),
        count => format!(", and {count} more before"),
    };
    format!("{}{more}", named.join(", "))
}

fn expected(what: &str, is: Option<Version>, expect: Option<Option<Version>>) -> Result<(), AppError> {
    let Some(expect) = expect.filter(|expect| *expect != is) else { return Ok(()) };
    let named = |version: Option<Version>| version.map_or("nothing".into(), |it| format!("version {it}"));
    let message = format!("{what} is {}, not {}", named(is), named(expect));
    Err(AppError::new(ErrorKind::Integrity, message)
        .hint("it was changed in the meantime: check it, then try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the newest times in production are named, newest first, and how many there are before them.
    #[test]
    fn the_newest_times_in_production_are_named() {
        let at = |day: i64| Timestamp::from_micros(day * 86_400_000_000);
        let release = |version: Version, from: i64, until: Option<i64>| Release {
            version,
            from: at(from),
            until: until.map(at),
        };
        assert_eq!(listed(&[release(2, 3, None)]), format!("version 2 (since {})", at(3)));
        let all = [1, 2, 3, 4, 5, 6].map(|version: Version| {
            let day = i64::from(version);
            release(version, day, Some(day + 1))
        });
        let said = listed(&all);
        let newest = format!("version 6 ({} to {}), version 5 (", at(6), at(7));
        assert!(said.starts_with(&newest) && said.ends_with(", and 2 more before"), "{said}");
        assert!(!said.contains("version 2 "), "{said}");
    }

    /// Proves that a change is refused where another one was made before it, with both versions, and not where none was
    /// expected.
    #[test]
    fn a_change_in_the_meantime_is_refused() {
        let refused =
            |is, expect| expected("production", is, expect).map_err(|error| error.to_string()).err();
        assert_eq!(refused(Some(2), None), None);
        assert_eq!(refused(Some(2), Some(Some(2))), None);
        let other = refused(None, Some(Some(3)));
        assert_eq!(other.as_deref(), Some("production is nothing, not version 3"));
        let first = refused(Some(2), Some(None));
        assert_eq!(first.as_deref(), Some("production is version 2, not nothing"));
    }
}
