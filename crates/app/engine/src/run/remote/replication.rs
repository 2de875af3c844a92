//! What goes to the remote while an attempt runs and after it ended: commits in order, and their bytes.
//!
//! Two threads, each with a separate view of both logs, so that a long upload blocks no commit. They have only what is
//! shown in common: the work to do is in the logs, and a supervisor that is killed leaves nothing half done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trackway_api::checkpoints::remote::{FencedBy, RemoteStatus, Uploading};
use trackway_checkpoint::CheckpointError;
use trackway_checkpoint::remote::{Replica, Uploaded};
use trackway_core::Clock as _;
use trackway_ledger::AttemptRow;
use trackway_system::SystemClock;

use super::status::{read_status, update, write_status};
use super::{Patience, RemotePlan};
use crate::reporter::Reporter;

/// How often the local log is looked at for new commits: one failing `open` each time.
const LOCAL_LOOK: Duration = Duration::from_secs(1);
/// How often the remote log is looked at for another attempt's claim: one request each time.
const REMOTE_LOOK_SECONDS: f64 = 15.0;
/// The first pause after a failure; each further one is twice as long.
const PAUSE_MIN_SECONDS: f64 = 1.0;
/// The longest pause after a failure.
const PAUSE_MAX_SECONDS: f64 = 60.0;
/// How often the wait for the last uploads looks around.
const WAIT_TURN: Duration = Duration::from_millis(100);

/// Keeps the remote of a run up to date until it is dropped.
pub struct Replication {
    shared: Arc<ReplicationState>,
}

struct ReplicationState {
    plan: RemotePlan,
    /// The threads wait in real time.
    clock: SystemClock,
    cancelled: Arc<AtomicBool>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    status: RemoteStatus,
    /// The holder of the run at the remote at the last look.
    newest_claim: Option<FencedBy>,
    /// Counts what was handed over: there may be something to upload.
    handed_over: u64,
    /// The training is over: finish and stop.
    draining: bool,
    /// No commit is left that could be handed over.
    commits_done: bool,
    /// Nothing is left to upload either.
    done: bool,
    stopped: bool,
}

impl Replication {
    /// Starts to follow the local log of a run.
    pub fn start(plan: RemotePlan) -> Self {
        let location = plan.location();
        let status = RemoteStatus { location, ..read_status(&plan.run).unwrap_or_default() };
        let state =
            State { status: RemoteStatus { uploading: None, fenced_by: None, ..status }, ..State::default() };
        let shared = Arc::new(ReplicationState {
            plan,
            clock: SystemClock,
            cancelled: Arc::new(AtomicBool::new(false)),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        type Work = fn(&ReplicationState);
        let threads: [(&str, Work); 2] = [
            ("remote-commits", ReplicationState::follow_commits),
            ("remote-uploads", ReplicationState::follow_uploads),
        ];
        for (name, work) in threads {
            let shared = Arc::clone(&shared);
            let spawned = std::thread::Builder::new().name(name.into()).spawn(move || work(&shared));
            // Without the threads nothing goes to the remote; the next supervisor picks it up.
            debug_assert!(spawned.is_ok(), "a thread could not be had");
        }
        Self { shared }
    }

    /// Why an attempt must stop: the run was granted to another one. `None`: it was not, as far as is known.
    pub fn fenced(&self, row: &AttemptRow) -> Option<String> {
        let mut state = self.shared.lock();
        let newest = state.newest_claim?;
        let mine = row.epoch.unwrap_or(0);
        let fenced = newest.epoch > mine || (newest.epoch == mine && newest.attempt_id != row.attempt_id);
        if !fenced {
            return None;
        }
        state.status.fenced_by = Some(newest);
        let (FencedBy { epoch, attempt_id }, location) = (newest, &state.status.location);
        Some(format!(
            "{attempt_id} now owns the checkpoints of the run at {location}: epoch {epoch}, and this one has {mine}"
        ))
    }

    /// The present state.
    pub fn status(&self) -> RemoteStatus {
        self.shared.lock().status.clone()
    }

    /// Waits until everything is at the remote, but not longer than the run file permits and not after a request to
    /// stop, and deletes here what stayed for that alone; returns the state then.
    pub fn finish(self, reporter: &dyn Reporter) -> RemoteStatus {
        let shared = &self.shared;
        let cancel = &shared.plan.cancel;
        let asked_before = cancel.stop_requests();
        let micros = (shared.plan.wait_seconds.min(1e9) * 1e6) as i64;
        let deadline = shared.clock.monotonic_micros() + micros;
        shared.lock().draining = true;
        shared.changed.notify_all();
        let mut reported = false;
        loop {
            let state = shared.wait(WAIT_TURN);
            if state.done {
                break;
            }
            let waiting = state.status.clone();
            drop(state);
            if let Some(Uploading { done_bytes, total_bytes }) = waiting.uploading {
                reporter.uploading(done_bytes, total_bytes);
            }
            if !reported && !waiting.is_settled() {
                reported = true;
                reporter.note(waiting.sentence());
            }
            let asked = cancel.stop_requests() > asked_before || cancel.is_detached();
            if asked || shared.clock.monotonic_micros() >= deadline {
                break;
            }
        }
        let status = self.status();
        if status.is_settled()
            && let Err(error) = shared.plan.release_here()
        {
            reporter.note(format!("older checkpoints stay on this disk: {error}"));
        }
        match status.is_settled() {
            true if reported => reporter.note(status.sentence()),
            true => {}
            false => reporter.note(format!(
                "not everything was uploaded: {}; nothing is lost; upload the rest with: trackway resume {}",
                status.sentence(),
                shared.plan.run_id
            )),
        }
        status
    }
}

impl Drop for Replication {
    /// Ends the threads soon and does not wait for them: whatever they are at may be broken off anywhere.
    fn drop(&mut self) {
        // Before the notice: a thread that wakes must find it.
        self.shared.cancelled.store(true, Ordering::SeqCst);
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
    }
}

/// The pause after a failure.
struct Pause {
    seconds: f64,
    until_micros: i64,
}

impl Pause {
    fn none() -> Self {
        Self { seconds: PAUSE_MIN_SECONDS, until_micros: i64::MIN }
    }

    /// One that no failure made longer.
    fn after(now_micros: i64) -> Self {
        Self { until_micros: now_micros + (REMOTE_LOOK_SECONDS * 1e6) as i64, ..Self::none() }
    }

    fn longer(&mut self, now_micros: i64) {
        self.until_micros = now_micros + (self.seconds * 1e6) as i64;
        self.seconds = (self.seconds * 2.0).min(PAUSE_MAX_SECONDS);
    }

    fn is_over(&self, now_micros: i64) -> bool {
        now_micros >= self.until_micros
    }
}

impl ReplicationState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, but not longer than that.
    fn wait(&self, longest: Duration) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout(self.lock(), longest);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn stopped(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn follow_commits(&self) {
        let mut replica = None;
        let mut pause = Pause::none();
        let mut looked_micros = None::<i64>;
        while !self.stopped() {
            let now_micros = self.clock.monotonic_micros();
            let waiting = self.look_locally(&mut replica);
            let since = |looked: i64| (now_micros - looked) as f64 / 1e6;
            let due = waiting || looked_micros.is_none_or(|looked| since(looked) >= REMOTE_LOOK_SECONDS);
            let draining = { self.lock().draining };
            if pause.is_over(now_micros) && (due || draining) {
                looked_micros = Some(now_micros);
                match self.hand_over(&mut replica) {
                    // `draining` was read before the hand-over: the training was over then, and no commit is left.
                    Ok(_) if draining => return self.note(|state| state.commits_done = true),
                    // What waits now waits for ever; the remote may still report its newest claim.
                    Ok(fenced) => pause = if fenced { Pause::after(now_micros) } else { Pause::none() },
                    Err(error) => {
                        self.note_failure(&error);
                        pause.longer(now_micros);
                    }
                }
            }
            drop(self.wait(LOCAL_LOOK));
        }
    }

    /// Whether this disk has commits that the remote lacks.
    fn look_locally(&self, replica: &mut Option<Replica>) -> bool {
        let Some(replica) = replica else { return false };
        if replica.refresh_local().is_err() {
            return false;
        }
        let (commits, step) = replica.waiting_commits();
        let dropped = replica.dropped_uploads();
        self.note(|state| {
            (state.status.waiting_commits, state.status.waiting_step) = (commits, step);
            state.status.dropped_uploads = dropped;
        });
        commits > 0
    }

    /// Hands over what waits, and returns whether it is fenced: the supervisor stops the attempt then, and the next
    /// supervisor reports what is lost.
    fn hand_over(&self, replica: &mut Option<Replica>) -> Result<bool, CheckpointError> {
        let replica = self.opened(replica)?;
        let (count, fenced) = match replica.hand_over() {
            Ok(count) => (count, false),
            Err(CheckpointError::Fenced { .. }) => (0, true),
            Err(error) => return Err(error),
        };
        let claim = replica.remote_claim().map(|(epoch, attempt_id)| FencedBy { epoch, attempt_id });
        let standing = replica.standing(self.plan.policy());
        self.note(|state| {
            state.newest_claim = claim;
            state.handed_over += count;
            update(&mut state.status, &standing);
            state.status.out_of_reach_since = None;
            state.status.last_error = None;
        });
        Ok(fenced)
    }

    fn follow_uploads(&self) {
        let mut replica = None;
        let mut pause = Pause::none();
        let mut looked = None::<(u64, i64)>;
        while !self.stopped() {
            let now_micros = self.clock.monotonic_micros();
            let (handed_over, last_look) = {
                let state = self.lock();
                (state.handed_over, state.draining && state.commits_done)
            };
            let old = |since: i64| (now_micros - since) as f64 / 1e6 >= 4.0 * REMOTE_LOOK_SECONDS;
            let due = looked.is_none_or(|(count, since)| count != handed_over || old(since));
            if pause.is_over(now_micros) && (due || last_look) {
                match self.upload_all(&mut replica) {
                    Ok(()) => {
                        pause = Pause::none();
                        looked = Some((handed_over, now_micros));
                        if last_look {
                            return self.note(|state| state.done = true);
                        }
                    }
                    Err(error) => {
                        self.note_failure(&error);
                        pause.longer(now_micros);
                    }
                }
            }
            drop(self.wait(LOCAL_LOOK));
        }
    }

    fn upload_all(&self, replica: &mut Option<Replica>) -> Result<(), CheckpointError> {
        let replica = self.opened(replica)?;
        let progress = |done_bytes, total_bytes| {
            self.lock().status.uploading = Some(Uploading { done_bytes, total_bytes });
        };
        loop {
            let uploaded = replica.upload_next(self.plan.policy(), &progress);
            let standing = replica.standing(self.plan.policy());
            self.note(|state| {
                state.status.uploading = None;
                if uploaded.is_ok() {
                    update(&mut state.status, &standing);
                }
            });
            match uploaded? {
                None => return Ok(()),
                // It is marked suspect or was retired, and does not come again.
                Some(Uploaded::NotHere { number, why }) => {
                    self.note(|state| {
                        state.status.last_error = Some(format!("commit {number} cannot be sent: {why}"));
                    });
                }
                Some(Uploaded::Done { .. } | Uploaded::Retired) => {}
            }
            // After each upload: what is newer must be there before what is older goes.
            replica.collect(self.plan.policy(), None, false)?;
            if self.stopped() {
                return Ok(());
            }
        }
    }

    fn opened<'a>(&self, replica: &'a mut Option<Replica>) -> Result<&'a mut Replica, CheckpointError> {
        if replica.is_none() {
            *replica = Some(self.plan.open(Patience::Long, &self.cancelled)?);
        }
        Ok(replica.as_mut().expect("it was just put there"))
    }

    fn note_failure(&self, error: &CheckpointError) {
        let now = self.clock.now().to_rfc3339();
        let text = error.to_string();
        self.note(|state| {
            state.status.out_of_reach_since.get_or_insert(now);
            state.status.last_error = Some(text);
        });
    }

    /// Changes what is shown, and writes it where other commands find it when it changed.
    fn note(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        let before = state.status.clone();
        change(&mut state);
        if state.status != before && !state.stopped {
            state.status.at = self.clock.now().to_rfc3339();
            write_status(&state.status, &self.plan.run);
        }
        drop(state);
        self.changed.notify_all();
    }
}
