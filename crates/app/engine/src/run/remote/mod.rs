//! The remote of a run: which attempt may write, what it continues from, and the bytes on their way there.
//!
//! The training process uses only its local root. The supervisor does here what concerns the remote: before a launch
//! (`fetch`), and beside it and after it (`replication`).

pub(crate) mod fetch;
pub(crate) mod replication;
mod settle;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trackway_checkpoint::remote::{Replica, TransferFiles};
use trackway_checkpoint::{CheckpointError, Housekeeper, Retention};
use trackway_core::{Clock, Ids, LaunchKind, RunId, Rung};
use trackway_formats::Variable;
use trackway_formats::layout::{RunLayout, checkpoint_root_name};
use trackway_formats::runfile::CheckpointSection;
use trackway_ledger::RunRow;
use trackway_store::{Backend as _, Disk, RealDisk, RemoteBackend, RemoteOptions, SelfTest, selftest};
use trackway_system::Cancel;

use crate::Context;
use crate::checkpoints::{keep_variables, policy_of};
use crate::error::{AppError, ErrorKind};
use crate::ledger::stored::stored_plan;
pub use settle::settle_remote;
pub use status::read_status;

/// How long the end of a run waits for its uploads, unless the run file sets it.
const UPLOAD_WAIT_SECONDS: f64 = 1_800.0;
/// How long a call to a remote that does not answer is repeated, in seconds, before it counts as failed.
const RETRY_VARIABLE: &str = Variable::RemoteRetrySeconds.as_str();
/// How soon the end of what is done at a remote is noticed: it is a matter of milliseconds when everything is here already.
const LOOK_TURN: Duration = Duration::from_millis(5);
/// How long a person at a terminal waits for a remote that does not answer.
const IMPATIENT: Duration = Duration::from_secs(5);

/// The remote of a run and the root whose truth it holds.
#[derive(Debug, Clone)]
pub struct RemotePlan {
    /// As the run file names it.
    base: String,
    url: String,
    pub run_id: RunId,
    root: PathBuf,
    /// The files of the run.
    pub run: RunLayout,
    /// What it keeps, and what is worth sending there; `None`: everything.
    policy: Option<Retention>,
    /// How long the end of the run waits for its uploads.
    pub wait_seconds: f64,
    /// What ends transfers.
    pub cancel: Cancel,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// As a supervisor does, which has nothing else to do.
    Long,
    /// As a command does that a person waits for.
    Short,
}

impl RemotePlan {
    /// The remote that a run file names, for all of the data; `None`: it names none.
    pub fn of(context: &Context, run_id: RunId, section: &CheckpointSection) -> Option<Self> {
        let base = section.remote.clone()?;
        Some(Self {
            url: below(&base, run_id, Rung::FULL),
            base,
            run_id,
            root: context.home.layout.checkpoint_root(run_id, LaunchKind::Train, &Rung::FULL.to_string()),
            run: context.home.layout.run(run_id),
            policy: Some(policy_of(section)).filter(|_| !keep_variables(section).is_empty()),
            wait_seconds: section.upload_wait_seconds.unwrap_or(UPLOAD_WAIT_SECONDS),
            cancel: context.request.cancel.clone(),
            clock: Arc::clone(&context.clock),
            ids: Arc::clone(&context.ids),
        })
    }

    /// The remote of a rung of a run of the ledger, whose stored plan has no secrets.
    pub fn of_run(context: &Context, run: &RunRow, rung: Rung) -> Result<Option<Self>, AppError> {
        let Some(plan) = stored_plan(run)? else { return Ok(None) };
        Ok(Self::of(context, run.run_id, &plan.checkpoint).map(|remote| remote.at(rung)))
    }

    /// The same for another rung of the run: each has a separate root, here and there.
    pub fn at(&self, rung: Rung) -> Self {
        let root = self.root.with_file_name(checkpoint_root_name(LaunchKind::Train, &rung.to_string()));
        Self { url: below(&self.base, self.run_id, rung), root, ..self.clone() }
    }

    /// What the remote keeps, and what is worth sending there; `None`: everything.
    pub fn policy(&self) -> Option<&Retention> {
        self.policy.as_ref()
    }

    /// Opens the logs of the local root and of the remote. Transfers end once `cancelled` is set. A remote that was
    /// never written to is tried out first, and refused when it cannot do what the log needs.
    pub fn open(&self, patience: Patience, cancelled: &Arc<AtomicBool>) -> Result<Replica, CheckpointError> {
        self.open_on(Arc::new(RealDisk), patience, cancelled)
    }

    /// The same, reading local bytes through a given disk.
    pub fn open_on(
        &self,
        disk: Arc<dyn Disk>,
        patience: Patience,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Replica, CheckpointError> {
        let backend = RemoteBackend::new(&self.url, &options(patience))?;
        let files = Arc::new(TransferFiles::new(backend.transfer(), Arc::clone(cancelled)));
        let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
        Replica::open_on(disk, &self.root, Arc::new(backend), files, clock, ids)
    }

    /// Deletes on this disk what only stayed because it was not at the remote yet. The script does so at each save; what
    /// arrived there after its last one is left for this, once no attempt lives.
    pub fn release_here(&self) -> Result<(), CheckpointError> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let mut keeper = Housekeeper::open(&self.root, Arc::clone(&self.clock), Arc::clone(&self.ids))?;
        // Nothing is that old: what is suspect, or was left by a fenced attempt, stays.
        keeper.collect(policy, f64::INFINITY, false).map(drop)
    }

    /// Tries out whether the remote can do what the log needs.
    pub fn selftest(&self, patience: Patience) -> Result<SelfTest, CheckpointError> {
        let backend = RemoteBackend::new(&self.url, &options(patience))?;
        Ok(selftest(&backend, &self.clock, &self.ids))
    }

    /// Works at the remote in a separate thread, so that a request to stop ends transfers.
    pub fn interruptibly<T: Send>(&self, work: impl FnOnce(&Arc<AtomicBool>) -> T + Send) -> T {
        let cancelled = Arc::new(AtomicBool::new(false));
        let asked_before = self.cancel.stop_requests();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| work(&cancelled));
            while !worker.is_finished() {
                if self.cancel.stop_requests() > asked_before {
                    cancelled.store(true, Ordering::SeqCst);
                }
                std::thread::sleep(LOOK_TURN);
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Where it is, without secrets.
    pub fn location(&self) -> String {
        RemoteBackend::new(&self.url, &RemoteOptions::default())
            .map_or_else(|_| "the remote".into(), |backend| backend.location())
    }
}

fn options(patience: Patience) -> RemoteOptions {
    let default = RemoteOptions::default();
    let asked = std::env::var(RETRY_VARIABLE).ok().and_then(|text| text.parse::<f64>().ok());
    let asked = asked.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match patience {
        Patience::Long => RemoteOptions { retry_time: asked.unwrap_or(default.retry_time), ..default },
        Patience::Short => RemoteOptions {
            request_timeout: IMPATIENT,
            retry_time: asked.unwrap_or(IMPATIENT).min(IMPATIENT),
            ..default
        },
    }
}

/// One root per run, kind and rung, as on the local disk. What follows a `?` stays after the path.
fn below(url: &str, run_id: RunId, rung: Rung) -> String {
    let (path, query) = url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
    let (path, kind) = (path.trim_end_matches('/'), LaunchKind::Train.as_str());
    let root = format!("{path}/{run_id}/{kind}-{}", rung.fraction());
    match query {
        Some(query) => format!("{root}?{query}"),
        None => root,
    }
}

/// An error of a remote or of the root below it, by what the caller should do.
pub fn remote_error(what: impl Into<String>, error: CheckpointError) -> AppError {
    use trackway_checkpoint::ErrorKind as Kind;
    let kind = match error.kind() {
        Kind::Integrity | Kind::Fenced => ErrorKind::Integrity,
        Kind::Input => ErrorKind::Usage,
        Kind::Retry | Kind::Storage | Kind::State => ErrorKind::Fault,
    };
    AppError::new(kind, what).because(error)
}

/// Whether waiting may help: the remote did not answer, or others were faster.
pub fn is_passing(error: &CheckpointError) -> bool {
    use trackway_store::ErrorKind as Kind;
    matches!(error, CheckpointError::Store(error) if matches!(error.kind(), Kind::Unavailable | Kind::Contended))
}

#[cfg(test)]
mod tests {
    use trackway_system::SystemIds;

    use super::*;

    /// Proves that the root of a run is below the URL's path, whatever follows it.
    #[test]
    fn a_run_has_a_root_of_its_own() {
        let run_id = RunId::new(&SystemIds);
        let full = |url: &str| below(url, run_id, Rung::FULL);
        assert_eq!(full("s3://bucket/a/"), format!("s3://bucket/a/{run_id}/train-1"));
        assert_eq!(full("az://c/a?sig=x/y"), format!("az://c/a/{run_id}/train-1?sig=x/y"));
        let tenth = Rung::new(0.1).unwrap();
        assert_eq!(below("s3://bucket/a", run_id, tenth), format!("s3://bucket/a/{run_id}/train-0.1"));
    }
}
