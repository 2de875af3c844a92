use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::Timestamp;

/// Where the time comes from. Production code gets `trackway_system::SystemClock`; tests and the simulator
/// pass a [`ManualClock`].
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// The wall clock. It may go backwards; durations come from [`Clock::monotonic_micros`].
    fn now(&self) -> Timestamp;
    /// Microseconds on a clock that never goes backwards; only differences mean something.
    fn monotonic_micros(&self) -> i64;
    /// Returns when so much time has passed on this clock.
    fn sleep(&self, duration: Duration);
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn monotonic_micros(&self) -> i64 {
        (**self).monotonic_micros()
    }

    fn sleep(&self, duration: Duration) {
        (**self).sleep(duration);
    }
}

/// Where randomness comes from (jitter of backoff, not cryptography).
pub trait Rng: Send {
    /// The next 64 random bits.
    fn next_u64(&mut self) -> u64;

    /// A number in `[0, 1)`.
    fn next_unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Where new identifiers come from.
pub trait Ids: std::fmt::Debug + Send + Sync {
    /// A new ULID (128 bits, ordered by time of making).
    fn next_ulid(&self) -> u128;
}

impl<I: Ids + ?Sized> Ids for Arc<I> {
    fn next_ulid(&self) -> u128 {
        (**self).next_ulid()
    }
}

/// A clock that moves only when it is set; a sleep on it moves it and takes no time.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_micros: AtomicI64,
    monotonic_micros: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self { wall_micros: AtomicI64::new(now.as_micros()), monotonic_micros: AtomicI64::new(0) }
    }

    /// Moves both clocks forward.
    pub fn advance_micros(&self, micros: i64) {
        self.wall_micros.fetch_add(micros, Ordering::SeqCst);
        self.monotonic_micros.fetch_add(micros, Ordering::SeqCst);
    }

    /// Sets the wall clock alone, as an operator or NTP would; backwards is allowed.
    pub fn set_wall(&self, now: Timestamp) {
        self.wall_micros.store(now.as_micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.wall_micros.load(Ordering::SeqCst))
    }

    fn monotonic_micros(&self) -> i64 {
        self.monotonic_micros.load(Ordering::SeqCst)
    }

    fn sleep(&self, duration: Duration) {
        self.advance_micros(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX));
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a small seeded generator for jitter and simulation.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that replays the same numbers for the same seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Rng for SplitMix64 {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Ids 1, 2, 3 …: for tests whose output must not change.
#[derive(Debug, Default)]
pub struct SequentialIds(AtomicU64);

impl Ids for SequentialIds {
    fn next_ulid(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
