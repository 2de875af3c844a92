//! How the ledger is reached: every use case reads and writes through these doors, and what happens when its server goes away
//! is decided here alone.
//!
//! A read or a write that finds the ledger away is made again as a whole, after a pause that doubles and has a jitter. Every
//! write of the ledger may be repeated: one whose reply was lost, after the server had committed it, changes nothing the second
//! time. While an attempt is watched nothing waits: what is not written then is in the attempt's files and is read from there.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use trackway_core::Clock as _;
use trackway_formats::Variable;
use trackway_ledger::{Ledger, LedgerError};

use crate::Context;
use crate::context::patience::Outage;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Notice;

/// The pause after the first failure.
const FIRST_PAUSE_MILLIS: u64 = 100;
/// The longest pause.
const PAUSE_MILLIS_MAX: u64 = 15_000;
/// How long a command that supervises nothing waits for a server that went away.
const COMMAND_PATIENCE_SECONDS: u64 = 15;
/// How long a supervisor waits, unless [`PATIENCE_VARIABLE`] sets it: the retries of a night must not end there.
const SUPERVISOR_PATIENCE_SECONDS: u64 = 12 * 3600;
/// How long a supervisor still waits after a request to stop.
const STOPPING_PATIENCE_SECONDS: u64 = 5;
/// How long a wait sleeps before it looks for a request to stop.
const TURN: Duration = Duration::from_millis(50);
/// The environment variable with the seconds that a supervisor waits for its ledger.
pub const PATIENCE_VARIABLE: &str = Variable::LedgerPatience.as_str();

impl Context {
    /// From now on this request supervises: it waits for the ledger for as long as a night takes.
    pub(crate) fn become_supervisor(&self) {
        let set = std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse().ok());
        let seconds = set.unwrap_or(SUPERVISOR_PATIENCE_SECONDS);
        self.patience.supervisor_seconds.store(seconds, Ordering::Relaxed);
    }

    /// Reads, and waits for a ledger that went away.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] once the end of the request was requested, also during a read or a wait.
    pub fn ledger_read<T>(&self, read: impl Fn(&Ledger) -> Result<T, LedgerError>) -> Result<T, AppError> {
        self.request.check_cancelled()?;
        // What a read makes of its end is not of interest.
        self.patiently(read).map_err(|error| self.request.check_cancelled().err().unwrap_or(error))
    }

    /// Writes, and waits for a ledger that went away. `write` may be carried out twice.
    pub fn ledger_write<T>(&self, write: impl Fn(&Ledger) -> Result<T, LedgerError>) -> Result<T, AppError> {
        self.patiently(write)
    }

    /// Writes now or not at all: for what is in the attempt's files too, while the attempt is watched. Between two tries to
    /// reach a server that is away it answers at once.
    pub(crate) fn ledger_write_now<T>(
        &self,
        write: impl Fn(&Ledger) -> Result<T, LedgerError>,
    ) -> Result<T, AppError> {
        if self.clock.monotonic_micros() < self.known_outage().next_try_micros {
            return Err(AppError::new(ErrorKind::Unavailable, "the ledger is locked or unavailable"));
        }
        let done = write(&self.ledger).map_err(AppError::from);
        match &done {
            // Counted here too: the next look does not wait for a server that is known to be away.
            Err(error) if error.kind.is_passing() => drop(self.note_failure()),
            _ => self.note_answer(),
        }
        done
    }

    fn patiently<T>(&self, work: impl Fn(&Ledger) -> Result<T, LedgerError>) -> Result<T, AppError> {
        let began_micros = self.clock.monotonic_micros();
        loop {
            let error = match work(&self.ledger) {
                Ok(value) => {
                    self.note_answer();
                    return Ok(value);
                }
                Err(error) => AppError::from(error),
            };
            if !self.waits_for(error.kind) {
                return Err(error);
            }
            let pause_micros = self.note_failure();
            self.report_once(&error);
            if !self.pause(began_micros, pause_micros) {
                return Err(
                    error.hint("nothing is lost: the next command continues from the files of the attempt")
                );
            }
        }
    }

    /// A supervisor waits for a ledger that another process holds, too; another command has waited for that already.
    fn waits_for(&self, kind: ErrorKind) -> bool {
        match kind {
            ErrorKind::Unavailable => true,
            ErrorKind::Locked => self.patience.supervisor_seconds.load(Ordering::Relaxed) > 0,
            _ => false,
        }
    }

    /// Sleeps for the pause; false when patience is over.
    fn pause(&self, began_micros: i64, pause_micros: i64) -> bool {
        let until = self.clock.monotonic_micros().saturating_add(pause_micros);
        loop {
            let now = self.clock.monotonic_micros();
            let waited_seconds = u64::try_from((now - began_micros) / 1_000_000).unwrap_or(0);
            let cancel = &self.request.cancel;
            if waited_seconds >= self.patience_seconds() || cancel.stop_requests() > 1 || cancel.is_ended() {
                return false;
            }
            if now >= until {
                return true;
            }
            self.clock.sleep(TURN);
        }
    }

    fn patience_seconds(&self) -> u64 {
        let supervisor_seconds = self.patience.supervisor_seconds.load(Ordering::Relaxed);
        match (supervisor_seconds, self.request.cancel.stop_requests()) {
            (0, _) => COMMAND_PATIENCE_SECONDS,
            (_, 0) => supervisor_seconds,
            _ => supervisor_seconds.min(STOPPING_PATIENCE_SECONDS),
        }
    }

    fn known_outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a failure; gives the pause until the next try, in microseconds.
    fn note_failure(&self) -> i64 {
        let now = self.clock.monotonic_micros();
        let mut outage = self.known_outage();
        if outage.failures == 0 {
            outage.since_micros = now;
        }
        outage.failures = outage.failures.saturating_add(1);
        let pause_micros = pause_micros(outage.failures, now);
        outage.next_try_micros = now.saturating_add(pause_micros);
        pause_micros
    }

    fn note_answer(&self) {
        *self.known_outage() = Outage::default();
        // Taken: the end of an outage is reported once.
        let reported = self.patience.reported().take();
        if let Some(since_micros) = reported {
            let seconds = (self.clock.monotonic_micros() - since_micros) as f64 / 1e6;
            let text = format!("the ledger is available again after {seconds:.0} s");
            self.request.notices.publish(Notice::Note { text });
        }
    }

    fn report_once(&self, error: &AppError) {
        let since_micros = self.known_outage().since_micros;
        let mut reported = self.patience.reported();
        if reported.is_none() {
            *reported = Some(since_micros);
            // Before the notice: what hears of it must not wait for this lock.
            drop(reported);
            let text = format!("waiting for the ledger; nothing is lost meanwhile: {error}");
            self.request.notices.publish(Notice::Warning { text });
        }
    }
}

/// Doubles with every failure up to a bound; the jitter, from a half to the whole, keeps the supervisors of a team from
/// coming back all at once.
fn pause_micros(failures: u32, now_micros: i64) -> i64 {
    let doublings = failures.saturating_sub(1).min(20);
    let millis = FIRST_PAUSE_MILLIS.saturating_mul(1 << doublings).min(PAUSE_MILLIS_MAX);
    let whole = i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(1000);
    whole / 2 + now_micros.rem_euclid(whole / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that pauses grow, are bounded, and differ between processes that lost their server at once.
    #[test]
    fn pauses_are_bounded_and_spread() {
        for (failures, whole) in [(1, 100_000), (2, 200_000), (8, 12_800_000), (u32::MAX, 15_000_000)] {
            for now in [0, 77_777, i64::MAX] {
                let pause = pause_micros(failures, now);
                assert!((whole / 2..=whole).contains(&pause), "{failures} {now}: {pause}");
            }
        }
        assert_ne!(pause_micros(3, 1_000), pause_micros(3, 2_000));
    }
}
