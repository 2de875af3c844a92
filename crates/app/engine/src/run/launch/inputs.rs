//! What an attempt starts from, at the time of its launch: its data and its surroundings. A retry may come days after the
//! run was prepared.

use std::borrow::Cow;

use trackway_data::FileStates;
use trackway_formats::runfile::OnDataChange;
use trackway_launch::Container;
use trackway_ledger::{AttemptDataRow, AttemptRow, DataSnapshotRow, RunDataRow};

use crate::Context;
use crate::attempt::attempt_data::SetsRead;
use crate::capture::{self, Capture, ContainerSource, EnvironmentLock, Folder};
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;
use crate::run::job::data_sha256;
use crate::run::prepare::begin::{Prepared, keep_states, record_data, resolve_data, used_by};

/// What a capture says for as long as the files beside the script were not read.
const INCOMPLETE: &str =
    "the files beside the script: they were not read before the supervisor ended, or could not be";

/// What is known when an attempt is launched.
pub struct LaunchInputs<'p> {
    /// Its surroundings.
    pub capture: Cow<'p, Capture>,
    /// The hash of all data; none without data, and where it cannot be resolved now.
    pub data_sha256: Option<String>,
    /// The data sets of that hash.
    pub sets: Vec<RunDataRow>,
    /// What is in them.
    pub snapshots: Vec<DataSnapshotRow>,
}

impl<'p> LaunchInputs<'p> {
    /// The script runs in a container: its image is known, and the packages of this machine are not its own.
    pub fn runs_in(&mut self, container: &Container) {
        let capture = self.capture.to_mut();
        let digest = container.image.split_once('@').map(|(_, digest)| digest.to_owned());
        capture.container =
            capture::Container { digest, source: Some(ContainerSource::Engine), why_missing: None };
        capture.environment_lock =
            EnvironmentLock::missing("the packages are those of the container's image");
    }

    /// Takes out the files beside the script that were listed and not read, to be read while it runs; none where all is captured.
    pub fn take_unread(&mut self) -> Option<Folder> {
        self.capture.folder.as_ref().filter(|folder| !folder.unread.is_empty())?;
        let capture = self.capture.to_mut();
        capture.incomplete = Some(INCOMPLETE.to_owned());
        capture.folder.take()
    }

    /// Looks again at what may have changed since the attempt before. Unchanged files cost a stat each. `capture`: its
    /// surroundings, as they were captured just now.
    ///
    /// # Errors
    /// [`ErrorKind::Blocked`] when the data changed and the run file forbids that; when something cannot be stored.
    pub fn now(
        context: &Context,
        prepared: &Prepared,
        previous: Option<&AttemptRow>,
        capture: Cow<'p, Capture>,
        reporter: &dyn Reporter,
    ) -> Result<Self, AppError> {
        let Some(previous) = previous.filter(|_| !prepared.job.plan.data.is_empty()) else {
            let SetsRead { sets, .. } = context.sets_read(&prepared.run, None)?;
            let (sets, snapshots) = sets.into_iter().unzip();
            return Ok(Self { capture, data_sha256: prepared.run.data_sha256.clone(), sets, snapshots });
        };
        let mut now = Self { capture, data_sha256: None, sets: Vec::new(), snapshots: Vec::new() };
        let changed = match resolve(context, prepared, reporter) {
            Ok((data_sha256, sets, snapshots)) => {
                (now.data_sha256, now.sets, now.snapshots) = (data_sha256, sets, snapshots);
                let changed = now.data_sha256 != previous.data_sha256;
                changed.then(|| "its data changed; the receipt has the current hash".to_owned())
            }
            Err(error) => {
                Some(format!("its data cannot be resolved any more, and the receipt has no hash: {error}"))
            }
        };
        let Some(changed) = changed else { return Ok(now) };
        let message = format!("since attempt {} {changed}", previous.attempt_number);
        if prepared.job.plan.supervise.on_data_change == OnDataChange::Block {
            let error = AppError::new(ErrorKind::Blocked, format!("not launched: {message}")).hint(
                "restore the data, then `trackway resume`; or set `supervise.on_data_change = \"warn\"`",
            );
            return Err(context.fail_run(prepared.run.run_id, error));
        }
        reporter.note(message.clone());
        let is_checked = now.data_sha256.is_none() || prepared.checked_data_sha256 == now.data_sha256;
        if let Some(recheck) = prepared.recheck.as_ref().filter(|_| !is_checked) {
            recheck(context, prepared, &message, reporter)
                .map_err(|error| context.fail_run(prepared.run.run_id, error))?;
        }
        Ok(now)
    }

    /// What the attempt is recorded to read.
    pub fn data_of(&self, attempt: &AttemptRow) -> Vec<AttemptDataRow> {
        let row = |set: &RunDataRow| {
            let RunDataRow { name, path, data_sha256, role, .. } = set.clone();
            let AttemptRow { attempt_id, run_id, .. } = *attempt;
            AttemptDataRow { attempt_id, run_id, name, path, data_sha256, role }
        };
        self.sets.iter().map(row).collect()
    }
}

/// The hash of all data as it is now, its sets and what is in them.
type Resolved = (Option<String>, Vec<RunDataRow>, Vec<DataSnapshotRow>);

fn resolve(context: &Context, prepared: &Prepared, reporter: &dyn Reporter) -> Result<Resolved, AppError> {
    let manifests = resolve_data(context, &prepared.job, reporter)?;
    let states = FileStates::of(&prepared.job.base, &manifests);
    let run_id = prepared.run.run_id;
    // The seal compares the files with their state at this launch, not at that of the first attempt.
    keep_states(&context.home.layout.run(run_id).data_files_json(), &states)?;
    let sets = manifests.iter().map(|manifest| used_by(run_id, &prepared.job, manifest)).collect();
    let snapshots = record_data(context, &manifests, prepared.run.project.as_deref())?;
    Ok((data_sha256(&manifests), sets, snapshots))
}
