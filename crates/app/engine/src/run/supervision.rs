//! One supervisor per run: a lock file among the processes of one machine, a lease of the ledger among machines.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use trackway_core::{Clock as _, Ids as _, RunId};
use trackway_formats::Variable;
use trackway_launch::MachineIdentity;
use trackway_ledger::{Holder, LeaseAnswer, Ledger, LedgerError};

use super::lock::RunLock;
use crate::Context;
use crate::error::{AppError, ErrorKind};

/// How long a lease is valid unless it is renewed, unless [`LEASE_VARIABLE`] sets it: after so long without a sign of a
/// supervisor another host may take its run.
const LEASE_SECONDS: f64 = 60.0;
/// The environment variable with the seconds of a lease, 1 or more.
pub const LEASE_VARIABLE: &str = Variable::LeaseSeconds.as_str();
/// A lease is renewed so often while it is valid: some renewals may fail.
const RENEWALS_PER_LEASE: f64 = 4.0;
/// How often a lock that another command holds briefly is tried again, and after which time.
const LOOKS_WAITED_FOR: u32 = 20;
const LOOK_TURN: Duration = Duration::from_millis(50);

/// This process supervises a run, until this is dropped.
#[derive(Debug)]
pub struct Supervision {
    run_id: RunId,
    ledger: Ledger,
    renewal: Option<Renewal>,
    /// The new holder of the lease, once this process lost it.
    lost_to: Arc<OnceLock<String>>,
    _lock: RunLock,
}

/// The thread that renews the lease.
#[derive(Debug)]
struct Renewal {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

/// An attempt to supervise a run.
pub enum SupervisionClaim {
    /// This process does.
    Mine(Supervision),
    /// Another one does; a description of it.
    By(String),
}

impl SupervisionClaim {
    /// The supervision; none when another process has it.
    pub fn mine(self) -> Option<Supervision> {
        match self {
            Self::Mine(supervision) => Some(supervision),
            Self::By(_) => None,
        }
    }
}

/// Becomes the supervisor of a run in the ledger, unless another process is.
pub fn try_supervise(context: &Context, run_id: RunId) -> Result<SupervisionClaim, AppError> {
    let files = context.home.layout.run(run_id);
    let failed = |error| AppError::file("lock", files.folder(), &error);
    match RunLock::try_take(&files).map_err(failed)? {
        Some(lock) => supervise_with(context, run_id, lock),
        None => Ok(SupervisionClaim::By("another process on this machine".into())),
    }
}

/// Whether a process supervises a run: on this machine by its lock, on another one by a lease that is valid. What cannot be looked at is taken for supervised.
///
/// # Errors
/// When the ledger cannot be read.
pub fn is_supervised(context: &Context, run_id: RunId) -> Result<bool, AppError> {
    if RunLock::is_held(&context.home.layout.run(run_id)).unwrap_or(true) {
        return Ok(true);
    }
    let Ok(machine) = MachineIdentity::current() else { return Ok(true) };
    let lease = context.ledger_read(|ledger| ledger.valid_lease(run_id))?;
    // A process that holds the lease by this very lock would hold the lock. Another home on this machine has another one.
    let lock = RunLock::id_of(&context.home.layout.run(run_id)).ok().flatten();
    Ok(lease.is_some_and(|lease| lease.boot_id != machine.boot_id || Some(lease.lock_id) != lock))
}

/// [`try_supervise`] with time for a command that only looks whether the run has ended: it holds the lock briefly.
pub fn supervise_after_others(context: &Context, run_id: RunId) -> Result<SupervisionClaim, AppError> {
    for _ in 0..LOOKS_WAITED_FOR {
        if let SupervisionClaim::Mine(supervision) = try_supervise(context, run_id)? {
            return Ok(SupervisionClaim::Mine(supervision));
        }
        context.clock.sleep(LOOK_TURN);
    }
    try_supervise(context, run_id)
}

/// [`try_supervise`] with the lock of the run's folder in hand.
pub fn supervise_with(context: &Context, run_id: RunId, lock: RunLock) -> Result<SupervisionClaim, AppError> {
    let files = context.home.layout.run(run_id);
    let machine = MachineIdentity::current()
        .map_err(|error| AppError::fault("this machine cannot be identified", &error))?;
    let holder = Holder {
        name: format!("`{}`, process {}", machine.host, std::process::id()),
        instance: format!("{:032x}", context.ids.next_ulid()),
        boot_id: machine.boot_id,
        lock_id: lock.id().map_err(|error| AppError::file("look at the lock in", files.folder(), &error))?,
    };
    let answer = context.ledger_write(|ledger| ledger.acquire_lease(run_id, &holder, lease_seconds()))?;
    Ok(match answer {
        LeaseAnswer::Granted { .. } => SupervisionClaim::Mine(Supervision {
            run_id,
            ledger: context.ledger.clone(),
            renewal: None,
            lost_to: Arc::default(),
            _lock: lock,
        }),
        LeaseAnswer::HeldBy { holder, seconds_left } => SupervisionClaim::By(format!(
            "{holder}; unless it renews its lease, that ends in {seconds_left:.0} s"
        )),
    })
}

impl Supervision {
    /// Renews the lease from now on, in a separate thread: a supervisor may be busy for long.
    #[must_use]
    pub fn renewed(mut self) -> Self {
        let (end, ended) = channel();
        let (ledger, run_id, lost_to) = (self.ledger.clone(), self.run_id, Arc::clone(&self.lost_to));
        let pause = Duration::from_secs_f64(lease_seconds() / RENEWALS_PER_LEASE);
        let renew = move || {
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // A ledger that is away is tried again at the next turn.
                if let Err(LedgerError::Superseded { holder, .. }) =
                    ledger.renew_lease(run_id, lease_seconds())
                {
                    let _ = lost_to.set(holder);
                    return;
                }
            }
        };
        self.renewal = Some(Renewal { end, thread: std::thread::spawn(renew) });
        self
    }

    /// The supervisor of the run, when this process no longer is.
    #[must_use]
    pub fn superseded_by(&self) -> Option<String> {
        self.lost_to.get().cloned()
    }
}

impl Drop for Supervision {
    fn drop(&mut self) {
        if let Some(Renewal { end, thread }) = self.renewal.take() {
            drop(end);
            let _ = thread.join();
        }
        // A lease that cannot be given back now expires.
        let _ = self.ledger.release_lease(self.run_id);
    }
}

fn lease_seconds() -> f64 {
    let set = std::env::var(LEASE_VARIABLE).ok().and_then(|text| text.parse::<f64>().ok());
    set.filter(|seconds| *seconds >= 1.0).unwrap_or(LEASE_SECONDS)
}

/// The error of a supervisor whose run another one has.
pub fn superseded(run_id: RunId, holder: &str) -> AppError {
    let message = format!("run {run_id} is now supervised by {holder}: this process leaves it alone");
    AppError::new(ErrorKind::Integrity, message).hint(format!("follow it with: trackway watch {run_id}"))
}
