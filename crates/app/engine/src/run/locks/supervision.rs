//! One supervisor per run: a lock file among the processes of one machine, a lease of the ledger among machines.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use trackway_core::{Clock as _, Ids as _, LaunchKind, RunId};
use trackway_formats::Variable;
use trackway_launch::MachineIdentity;
use trackway_ledger::{Holder, LeaseAnswer, Ledger, LedgerError, RunRow, RunState};

use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::run_lock::RunLock;

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
    let failed = |error| AppError::file("lock", files.folder(), error);
    // The lock before the lease: it answers without the ledger, and the lease names it.
    match RunLock::try_take(&files).map_err(failed)? {
        Some(lock) => supervise_with(context, run_id, lock),
        None => Ok(SupervisionClaim::By("another process on this machine".into())),
    }
}

/// Whether nothing happens to a run but by a process that supervises it: it waits to begin, for a place in its queue or
/// for its next attempt. Without such a process it waits until it is resumed; every view of runs goes by this.
#[must_use]
pub const fn needs_supervisor(run: &RunRow) -> bool {
    matches!(run.state, RunState::Planned | RunState::Waiting) && matches!(run.kind, LaunchKind::Train)
}

/// Whether a run needs a supervisor and has none. `seen`: the run as it was read before.
///
/// # Errors
/// When the ledger cannot be read.
pub fn lacks_supervisor(context: &Context, seen: &RunRow) -> Result<bool, AppError> {
    if !needs_supervisor(seen) || is_supervised(context, seen.run_id)? {
        return Ok(false);
    }
    // A supervisor that ends in order writes down how the run ended first: its state is read after the look.
    Ok(needs_supervisor(&context.run_by_id(seen.run_id)?))
}

/// Whether a process supervises a run: on this machine by its lock, on another one by a lease that is valid. What
/// cannot be looked at is taken for supervised.
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
        .map_err(|error| AppError::fault("this machine cannot be identified", error))?;
    let holder = Holder {
        name: format!("`{}`, process {}", machine.host, std::process::id()),
        instance: format!("{:032x}", context.ids.next_ulid()),
        boot_id: machine.boot_id,
        lock_id: lock.id().map_err(|error| AppError::file("look at the lock in", files.folder(), error))?,
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
            // The drop of the supervision closes the channel, which ends the pause at once.
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // A ledger that is away is tried again at the next turn.
                if let Err(LedgerError::Superseded { holder, .. }) =
                    ledger.renew_lease(run_id, lease_seconds())
                {
                    // It is empty: this thread alone sets it, and ends then.
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
            // Wakes the thread: the join would otherwise take up to a quarter of a lease.
            drop(end);
            // Before the lease is given back: a renewal after that would make it valid again.
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

#[cfg(test)]
mod tests {
    use trackway_formats::runfile::PlanPatch;

    use super::*;
    use crate::run::{Prepared, RunSource, begin, read};
    use crate::testing::{SETTLES, World};

    fn begun(world: &World, context: &Context) -> Prepared {
        let source = RunSource::File { path: world.run_file("true", ""), patch: PlanPatch::default() };
        let start = read(context, &source, false, &world.notes).unwrap();
        begin(context, &start, LaunchKind::Train, &world.notes).unwrap()
    }

    /// Proves that a run which waits lacks a supervisor once no process holds its lock, and that one which ended since
    /// it was read does not.
    #[test]
    fn a_run_that_ended_meanwhile_lacks_no_supervisor() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let prepared = begun(&world, &context);
        let run_id = prepared.run.run_id;
        context.set_run_state(run_id, RunState::Waiting).unwrap();
        let seen = context.run_by_id(run_id).unwrap();
        assert!(!lacks_supervisor(&context, &seen).unwrap(), "this process supervises it");
        drop(prepared);
        assert!(lacks_supervisor(&context, &seen).unwrap());
        context.set_run_state(run_id, RunState::Stopped).unwrap();
        assert!(!lacks_supervisor(&context, &seen).unwrap());
    }

    /// Proves that a valid lease is a supervisor where it is by another lock, as that of another home on this machine
    /// is, or from another boot; and that one by the lock of the run, which no process holds, is that of a process that
    /// was killed.
    #[test]
    fn a_lease_by_the_lock_of_another_home_is_a_supervisor() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = begun(&world, &context).run.run_id;
        let boot_id = MachineIdentity::current().unwrap().boot_id;
        let lock_id = RunLock::id_of(&context.home.layout.run(run_id)).unwrap().unwrap();
        let is_supervised_by = |boot_id: &str, lock_id: &str| {
            let holder = Holder {
                name: "another process".into(),
                instance: format!("{boot_id} {lock_id}"),
                boot_id: boot_id.into(),
                lock_id: lock_id.into(),
            };
            context.ledger_write(|ledger| ledger.acquire_lease(run_id, &holder, LEASE_SECONDS)).unwrap();
            let found = is_supervised(&context, run_id).unwrap();
            context.ledger.release_lease(run_id).unwrap();
            found
        };
        assert!(!is_supervised(&context, run_id).unwrap());
        assert!(is_supervised_by(&boot_id, "1:2"));
        assert!(is_supervised_by("another boot", &lock_id));
        assert!(!is_supervised_by(&boot_id, &lock_id));
    }
}
