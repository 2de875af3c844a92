//! The system's clock and randomness. This is the one place where they are read; everything else takes them as
//! parameters, so that it can be tested and replayed.

use std::io::Read as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trackway_core::{Clock, Ids, Rng, SplitMix64, Timestamp};

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the system clock that everything else is handed")]
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        Timestamp::from_micros(micros)
    }

    #[allow(clippy::disallowed_methods, reason = "this is the system clock that everything else is handed")]
    fn monotonic_micros(&self) -> i64 {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        let first = FIRST.get_or_init(Instant::now);
        i64::try_from(first.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// ULIDs from the system clock and the system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

/// The low bits of a ULID, which are random.
const ULID_RANDOM_BITS: u32 = 80;

impl Ids for SystemIds {
    fn next_ulid(&self) -> u128 {
        let millis = SystemClock.now().as_micros().max(0) as u128 / 1_000;
        let random = u128::from_le_bytes(random_bytes()) & ((1 << ULID_RANDOM_BITS) - 1);
        ((millis << ULID_RANDOM_BITS) | random) & (u128::MAX >> 1)
    }
}

/// Sixteen random bytes. Read again each time, so that a forked child does not repeat its parent's.
fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    if read.is_err() {
        bytes = mixed_bytes();
    }
    bytes
}

/// Bytes for a process that cannot open the random device (no descriptors left, a bare chroot): unique, not secret.
fn mixed_bytes() -> [u8; 16] {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    let time = SystemClock.now().as_micros() as u64;
    let mut mix = SplitMix64::new(time ^ (u64::from(std::process::id()) << 40) ^ calls.rotate_left(20));
    let wide = (u128::from(mix.next_u64()) << 64) | u128::from(mix.next_u64());
    wide.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use trackway_core::RunId;

    use super::*;

    /// Proves that ids of this process and those made without the random device are all different, fit into a ULID,
    /// and begin with the time.
    #[test]
    fn ids_are_unique_and_begin_with_the_time() {
        let ids: BTreeSet<_> = (0..1_000).map(|_| SystemIds.next_ulid()).collect();
        assert_eq!(ids.len(), 1_000);
        let millis = SystemClock.now().as_micros() as u128 / 1_000;
        assert!(ids.iter().all(|id| millis - (id >> ULID_RANDOM_BITS) < 60_000));
        let run = RunId::new(&SystemIds);
        assert_eq!(run.to_string().parse::<RunId>(), Ok(run));
        let mixed: BTreeSet<_> = (0..1_000).map(|_| mixed_bytes()).collect();
        assert_eq!(mixed.len(), 1_000);
    }
}
