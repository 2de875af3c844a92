//! The way from a process to the remote: it is slow, loses answers, is cut for a while, and ends with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_core::{Rng as _, SplitMix64};
use trackway_store::testing::{FaultBackend, FaultDisk, Odds};
use trackway_store::{Backend, Created, ErrorKind, MemoryBackend, StoreError};

use super::super::baton::Baton;

/// Counts all calls: the time of partitions.
pub(super) type Time = Arc<AtomicU64>;

/// From when to when a node is on the wrong side of a partition.
pub(super) type Partition = std::ops::Range<u64>;

/// One process's calls of the remote.
pub(super) struct Link {
    pub inner: FaultBackend,
    /// The same without faults.
    pub remote: Arc<MemoryBackend>,
    pub disk: FaultDisk,
    pub baton: Arc<Baton>,
    pub actor: usize,
    pub time: Time,
    pub partition: Partition,
    /// How often the others may go first before a call happens, and again before its answer is there.
    pub slowness: u64,
}

impl Link {
    fn call_in_turn<T>(&self, call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.wait();
        let answer = self.call(call);
        self.wait();
        if self.disk.is_dead() { Err(self.unanswered()) } else { answer }
    }

    fn call<T>(&self, call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let cut_off = self.partition.contains(&self.time.fetch_add(1, Ordering::SeqCst));
        if cut_off || self.disk.is_dead() { Err(self.unanswered()) } else { call() }
    }

    fn wait(&self) {
        (0..self.slowness).for_each(|_| self.baton.pass(self.actor));
    }

    fn unanswered(&self) -> StoreError {
        let (action, source) = ("reach", "nothing gets through".into());
        StoreError::Backend { kind: ErrorKind::Unavailable, action, location: self.location(), source }
    }
}

impl Backend for Link {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        self.call_in_turn(|| self.inner.create(name, bytes))
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let read = || self.inner.read(name, max_bytes);
        // An existing entry never changes: the order of its writers could not be determined.
        let is_entry = name.starts_with("log/0") && self.remote.read(name, 0)?.is_some();
        if is_entry { self.call(read) } else { self.call_in_turn(read) }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.call_in_turn(|| self.inner.replace(name, bytes))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.call_in_turn(|| self.inner.remove(name))
    }
}

/// What the storage is like for one process.
pub(super) fn weather(rng: &mut SplitMix64) -> Odds {
    match rng.next_u64() % 6 {
        0 | 1 => Odds::default(),
        2 => Odds { conflict: 700, ..Odds::default() },
        3 => Odds { late: 200, ..Odds::BAD_DAY },
        4 => Odds { error_after: 300, read_error: 50, ..Odds::default() },
        _ => Odds::BAD_DAY,
    }
}
