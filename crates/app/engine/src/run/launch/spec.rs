//! What a launcher is given.

use std::collections::BTreeMap;
use std::ffi::OsString;

use trackway_core::{RunId, with_fields_of};
use trackway_data::FileStates;
use trackway_formats::Variable;
use trackway_formats::runfile::DataSpec;
use trackway_launch::{LaunchDetails, LaunchSpec, Offer};
use trackway_ledger::AttemptRow;

use super::additions::Additions;
use super::adopted::Adoption;
use crate::Context;
use crate::checkpoints::keep_variables;
use crate::json_file::read_if_sound;
use crate::ledger::rows::rung_of;
use crate::run::job::{Job, requested};
use crate::run::ladder::warm_start::{WARM_START_VARIABLE, WarmStart};
use crate::run::prepare::begin::Prepared;

pub(super) fn spec_of(
    context: &Context,
    prepared: &Prepared,
    row: &AttemptRow,
    (additions, offer): (&Additions, &Offer),
    warm_start: Option<&WarmStart>,
    adoption: &Adoption,
) -> LaunchSpec {
    let plan = &prepared.job.plan;
    let words = |texts: &BTreeMap<String, String>| -> BTreeMap<String, OsString> {
        texts.iter().map(|(name, value)| (name.clone(), value.into())).collect()
    };
    // What comes later counts: a retry changes what the run file sets, and neither changes Trackway's own variables.
    let mut environment = words(&plan.run.environment);
    environment.extend(adoption.environment.clone());
    environment.extend(words(&additions.in_force.set));
    environment.extend(additions.own.clone());
    environment
        .extend(keep_variables(&plan.checkpoint).into_iter().map(|(name, value)| (name, value.into())));
    if !plan.data.is_empty() {
        environment.insert(Variable::Data.as_str().into(), data_paths(&prepared.job).into());
    }
    if let Some(remote) = &prepared.remote {
        environment
            .insert(Variable::CheckpointRemote.as_str().into(), remote.at(rung_of(row)).location().into());
    }
    if let Some(warm_start) = warm_start {
        environment.insert(WARM_START_VARIABLE.into(), warm_start.root.clone().into());
        let number = warm_start.number.map(|number| number.to_string().into());
        environment.extend(number.map(|number| (Variable::WarmStartNumber.as_str().to_owned(), number)));
    }
    LaunchSpec {
        directory: context.home.layout.attempt(row.attempt_id).folder().to_owned(),
        argv: plan.run.command.iter().map(OsString::from).chain(adoption.args.iter().cloned()).collect(),
        environment,
        terminal: additions.terminal.clone(),
        details: with_fields_of!(
            LaunchDetails,
            &row,
            [run_id, attempt_id, attempt_number, kind, config_sha256, data_sha256],
            rung: rung_of(row).fraction().to_string(),
            epoch: row.epoch.unwrap_or(1),
            working_directory: prepared.job.working_directory(),
            grace_seconds: plan.supervise.grace_seconds,
            linger_seconds: None,
            checkpoint_root: context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung),
            seed: plan.run.seed,
            data_files: states_of_run(context, row.run_id).unwrap_or_default().places_by_set(),
            adopt: adoption.adopt.clone(),
            isolation: additions.isolation.clone(),
            container: None,
            continues_from: adoption.continues_from.clone(),
            checkpoint_every_steps: plan.checkpoint.every_steps,
            checkpoint_every_seconds: plan.checkpoint.every_seconds,
            checkpoint_every_epochs: plan.checkpoint.every_epochs,
            devices: Vec::new(),
            request: requested(plan, &additions.in_force, &additions.exclude_hosts, offer),
        ),
    }
}

/// The path of each data set by its name, as JSON; of what is not a URL from the root.
fn data_paths(job: &Job) -> String {
    let path = |set: &DataSpec| match set.path.contains("://") {
        true => set.path.clone(),
        false => job.base.join(&set.path).to_string_lossy().into_owned(),
    };
    let paths: BTreeMap<&String, String> =
        job.plan.data.iter().map(|(name, set)| (name, path(set))).collect();
    serde_json::json!(paths).to_string()
}

/// The files of the run's data, as they were when they were hashed; none for a run without data.
pub(in crate::run) fn states_of_run(context: &Context, run_id: RunId) -> Option<FileStates> {
    // A file that is not there or cannot be read means that nothing is known of them.
    read_if_sound(&context.home.layout.run(run_id).data_files_json())
}
