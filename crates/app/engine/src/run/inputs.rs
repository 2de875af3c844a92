//! What an attempt starts from, at the time of its launch: its data and its surroundings. A retry may come days after the
//! run was prepared.

use std::borrow::Cow;

use trackway_data::FileStates;
use trackway_formats::layout::RowCopy;
use trackway_formats::runfile::OnDataChange;
use trackway_launch::Container;
use trackway_ledger::{AttemptRow, DataSnapshotRow, KeptRows};

use super::job::data_sha256;
use super::prepare::{Prepared, keep_states, record_data, resolve_data};
use crate::Context;
use crate::capture::{self, Capture, ContainerSource, EnvironmentLock};
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;

/// What is known when an attempt is launched.
pub struct LaunchInputs<'p> {
    /// Its surroundings.
    pub capture: Cow<'p, Capture>,
    /// The hash of all data; none without data, and where it cannot be resolved now.
    pub data_sha256: Option<String>,
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

    /// Looks again at what may have changed since the attempt before. Unchanged files cost a stat each. `capture`: its surroundings, as they
    /// were captured just now.
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
            return Ok(Self { capture, data_sha256: prepared.run.data_sha256.clone() });
        };
        let (data_sha256, changed) = match resolve(context, prepared, reporter) {
            Ok(now) => {
                let changed = now != previous.data_sha256;
                let text = "its data is not what it was; the receipt has the hash of now";
                (now, changed.then(|| text.to_owned()))
            }
            Err(error) => {
                let why = error.message;
                let text =
                    format!("its data cannot be resolved any more, and the receipt has no hash: {why}");
                (None, Some(text))
            }
        };
        let Some(changed) = changed else { return Ok(Self { capture, data_sha256 }) };
        let message = format!("since attempt {} {changed}", previous.attempt_number);
        if prepared.job.plan.supervise.on_data_change == OnDataChange::Block {
            let error = AppError::new(ErrorKind::Blocked, format!("not launched: {message}")).hint(
                "restore the data, then `trackway resume`; or set `supervise.on_data_change = \"warn\"`",
            );
            return Err(context.fail_run(prepared.run.run_id, error));
        }
        reporter.note(message);
        Ok(Self { capture, data_sha256 })
    }
}

fn resolve(
    context: &Context,
    prepared: &Prepared,
    reporter: &dyn Reporter,
) -> Result<Option<String>, AppError> {
    let manifests = resolve_data(context, &prepared.job, reporter)?;
    let states = FileStates::of(&prepared.job.base, &manifests);
    let (run, now) = (&prepared.run, data_sha256(&manifests));
    keep_states(&context.home.layout.run(run.run_id).data_files_json(), &states)?;
    let found = record_data(context, &manifests)?;
    if now != run.data_sha256 {
        let used = context.ledger_read(|ledger| ledger.data_of_run(run.run_id))?;
        let before = context.ledger_read(|ledger| ledger.data_snapshots_of_run(run.run_id))?;
        let mut all: Vec<DataSnapshotRow> = before.into_iter().map(|(_, row)| row).chain(found).collect();
        all.sort_by(|left, right| left.data_sha256.cmp(&right.data_sha256));
        all.dedup_by(|left, right| left.data_sha256 == right.data_sha256);
        context.keep(run.run_id, RowCopy::Run, &KeptRows::of_run(run, &used, &all));
    }
    Ok(now)
}
