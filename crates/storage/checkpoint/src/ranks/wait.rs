use std::thread;
use std::time::Duration;

use trackway_core::Clock;

use crate::error::{CheckpointError, Result};

/// The first pause between two looks; each is twice as long as the one before …
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// … up to this one.
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// So many looks that fail one after the other are the end: a shared file system may stumble.
const MAX_FAILED_LOOKS: u32 = 5;

/// Looks again and again until something is there; `None`: it was not within the time.
///
/// Errors that mean "stop" end it at once. Where the storage merely did not answer, it tries again.
pub(crate) fn wait_for<T>(
    clock: &dyn Clock,
    limit_seconds: f64,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let started_micros = clock.monotonic_micros();
    let (mut slept, mut pause, mut failed) = (Duration::ZERO, PAUSE_MIN, 0);
    loop {
        match look() {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => failed = 0,
            Err(error) if is_passing(&error) && failed + 1 < MAX_FAILED_LOOKS => failed += 1,
            Err(error) => return Err(error),
        }
        // Both are read: a clock may not advance, and a process may be stopped for a while.
        let elapsed_seconds = (clock.monotonic_micros() - started_micros) as f64 / 1e6;
        if slept.as_secs_f64().max(elapsed_seconds) >= limit_seconds {
            return Ok(None);
        }
        thread::sleep(pause);
        slept += pause;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn is_passing(error: &CheckpointError) -> bool {
    matches!(error, CheckpointError::Store(error) if error.kind() == trackway_store::ErrorKind::Unavailable)
}
