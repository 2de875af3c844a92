//! The row of an attempt: as it is planned, and what becomes known of it.

use trackway_core::{AttemptId, LaunchKind, Rung, Timestamp};
use trackway_formats::runfile::{PlanEntry, ResourcesSection, canonical_json};
use trackway_formats::sha256_hex;
use trackway_launch::{Instance, Observation, ObservedAttempt, Offer, Placement};
use trackway_ledger::{AttemptRow, AttemptState};

use super::additions::Additions;
use super::inputs::LaunchInputs;
use crate::Context;
use crate::capture::{Capture, EnvironmentLock};
use crate::context::launchers::engine_of;
use crate::ledger::rows::rung_of;
use crate::run::evaluator::evaluator_versions;
use crate::run::ladder::warm_start::WarmStart;
use crate::run::prepare::begin::Prepared;

pub(super) fn planned_row(
    context: &Context,
    prepared: &Prepared,
    previous: Option<&AttemptRow>,
    inputs: &LaunchInputs<'_>,
    (additions, offer): (&Additions, &Offer),
) -> AttemptRow {
    let attempt_id = AttemptId::new(&context.ids);
    let number = previous.map_or(1, |previous| previous.attempt_number + 1);
    let mut row = AttemptRow::planned(attempt_id, number, prepared.run.kind, &prepared.run);
    let rung = additions.rung.or_else(|| previous.map(rung_of));
    row.rung = rung.unwrap_or(Rung::FULL).to_string();
    row.parent_attempt_id = previous.map(|previous| previous.attempt_id);
    row.epoch = Some(u64::from(number));
    row.command.clone_from(&prepared.job.stored_plan.run.command);
    row.working_directory = prepared.job.working_directory().to_string_lossy().into_owned();
    row.log_directory = context.home.layout.attempt(attempt_id).folder().to_string_lossy().into_owned();
    let resources = additions.resources(&prepared.job.plan);
    row.usd_per_gpu_hour = resources.usd_per_gpu_hour;
    row.gpu_count = Some(resources.gpus);
    row.launcher = offer.launcher.into();
    row.engine_instance.clone_from(&offer.engine);
    // The row and its config are stored: secrets that a retry sets stay out of both.
    let set = context.redactor.settings(&additions.in_force.set);
    apply_changes(&mut row, &PlanEntry { set, ..additions.in_force.clone() }, &resources);
    row.data_sha256.clone_from(&inputs.data_sha256);
    row.evaluator_versions = evaluator_versions(&prepared.job).filter(|_| row.kind == LaunchKind::Train);
    note_capture(&mut row, &inputs.capture);
    row
}

/// The changes of a retry plan are part of the attempt, of its config and of its hash.
/// Makes the config of an attempt that of its changes, if there are any.
fn apply_changes(row: &mut AttemptRow, in_force: &PlanEntry, resources: &ResourcesSection) {
    let PlanEntry { set, resources: changed, .. } = in_force;
    if set.is_empty() && changed.is_empty() {
        return;
    }
    let mut config = row.config_json.clone();
    if !changed.is_empty() {
        config["resources"] = serde_json::json!(resources);
    }
    if let Some(run) = config.get_mut("run").and_then(serde_json::Value::as_object_mut) {
        let environment = run.entry("environment").or_insert_with(|| serde_json::json!({}));
        for (name, value) in set {
            environment[name.as_str()] = value.as_str().into();
        }
    }
    row.config_json = config;
    let other_gpus = changed.gpus.is_some() || changed.gpu.is_some();
    if set.is_empty() && !other_gpus {
        return; // Cores and memory decide no result.
    }
    let mut hashed = serde_json::json!({ "config": row.config_sha256, "set": set });
    if other_gpus {
        hashed["gpus"] = serde_json::json!([resources.gpus, resources.gpu]);
    }
    row.config_sha256 = sha256_hex(canonical_json(&hashed).as_bytes());
}

fn note_capture(row: &mut AttemptRow, capture: &Capture) {
    row.git_commit.clone_from(&capture.git.commit);
    row.git_branch.clone_from(&capture.git.branch);
    row.git_dirty = capture.git.dirty;
    row.git_diff_blake3.clone_from(&capture.git.dirty_diff_blake3);
    row.script_blake3 = capture.script.as_ref().and_then(|script| script.blake3.clone());
    row.environment_lock_sha256.clone_from(&capture.environment_lock.sha256);
    row.environment_lock_source = lock_source(&capture.environment_lock);
    row.container_digest.clone_from(&capture.container.digest);
    row.host_cpu_count = capture.host.cpu_count.and_then(|count| u32::try_from(count).ok());
    row.host_memory_bytes = capture.host.memory_bytes;
    let names: Vec<String> = capture.gpus.gpus.iter().filter_map(|gpu| gpu.name.clone()).collect();
    row.gpu_names = listed(&names);
}

/// `python 3.11.7, 42 packages` or the path of a lock file.
fn lock_source(lock: &EnvironmentLock) -> Option<String> {
    match (&lock.python_version, lock.package_count) {
        (Some(version), Some(count)) => Some(format!("python {version}, {count} packages")),
        _ => lock.path.clone(),
    }
}

pub(super) fn note_warm_start(row: &mut AttemptRow, warm_start: Option<&WarmStart>) {
    if let Some(from) = warm_start {
        row.warm_start_run_id = from.run_id;
        row.warm_start_rung = Some(from.rung.clone());
        row.warm_start_step = Some(from.step);
        row.warm_start_manifest_sha256.clone_from(&from.manifest_sha256);
    }
}

/// Where an attempt was put, in the columns of its row.
pub fn note_placement(row: &mut AttemptRow, placement: &Placement) {
    row.launcher.clone_from(&placement.launcher);
    row.job_id = Some(placement.job_id.clone());
    row.queue.clone_from(&placement.queue);
    row.placement_json = serde_json::to_value(placement).ok();
}

/// What an attempt was given, in the columns of its row; what is not known leaves them as they are.
pub fn note_seen(row: &mut AttemptRow, seen: &ObservedAttempt) {
    row.hosts = listed(&seen.hosts).or(row.hosts.take());
    row.devices = listed(&seen.devices).or(row.devices.take());
    row.submitted_at = seen.submitted_at.or(row.submitted_at);
    row.engine_instance = instance_of(row, seen).or(row.engine_instance.take());
    let has_not_begun = matches!(seen.state, Observation::Pending { .. }) || seen.never_started();
    row.started_at = if has_not_begun { None } else { seen.started_at.or(row.started_at) };
    row.queued_seconds = queued_seconds(row.submitted_at, row.started_at);
}

/// The engine of an attempt and its name for a start of it; none where it has none: only an engine starts something again.
pub(in crate::run) fn instance_of(row: &AttemptRow, seen: &ObservedAttempt) -> Option<String> {
    let Instance(start) = seen.instance.as_ref()?;
    seen.engine_state.as_ref().map(|_| format!("{}:{start}", engine_of(row).unwrap_or(&row.launcher)))
}

/// How long it was in the queue of its engine; none before it left that, or where there is no queue.
pub(in crate::run) fn queued_seconds(
    submitted_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
) -> Option<f64> {
    // Clocks of two machines may disagree.
    Some(started_at?.seconds_since(submitted_at?).max(0.0))
}

/// The state of an attempt that was seen alive.
pub(in crate::run) fn live_state(seen: &Observation) -> Option<AttemptState> {
    match seen {
        Observation::Pending { .. } => Some(AttemptState::Queued),
        Observation::Running(_) => Some(AttemptState::Running),
        Observation::Exited(_) | Observation::Gone { .. } | Observation::CannotTell { .. } => None,
    }
}

/// Names in one column; none if there are none.
pub fn listed(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(","))
}
