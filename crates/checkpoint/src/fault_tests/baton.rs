//! Who runs: of all actors the one that holds the baton. It is passed on, by a seeded choice, before operations on the
//! disk and calls to the log; so a seed is one interleaving of them, and the same seed the same one.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use trackway_core::{Rng as _, SplitMix64};
use trackway_store::{Backend, Created, StoreError};

/// The baton stays with its holder before so many operations out of [`KEPT_OUT_OF`].
const KEPT: u64 = 5;
const KEPT_OUT_OF: u64 = 7;

struct Turns {
    rng: SplitMix64,
    holder: usize,
    running: Vec<bool>,
}

impl Turns {
    /// One of those that run.
    fn draw(&mut self) -> Option<usize> {
        let running: Vec<_> = (0..self.running.len()).filter(|actor| self.running[*actor]).collect();
        let draw = self.rng.next_u64();
        (!running.is_empty()).then(|| running[(draw % running.len() as u64) as usize])
    }
}

/// Shared by all actors.
pub(super) struct Baton {
    turns: Mutex<Turns>,
    /// One for each actor: told when it holds the baton.
    told: Vec<Condvar>,
}

impl Baton {
    /// Held by the first of so many actors.
    pub fn new(seed: u64, actors: usize) -> Arc<Self> {
        let turns = Turns { rng: SplitMix64::new(seed), holder: 0, running: vec![true; actors] };
        Arc::new(Self { turns: Mutex::new(turns), told: (0..actors).map(|_| Condvar::new()).collect() })
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first turn of an actor.
    pub fn enter(&self, actor: usize) {
        self.wait(self.turns(), actor);
    }

    /// Perhaps passes it on, and waits until it is back.
    pub fn pass(&self, actor: usize) {
        let mut turns = self.turns();
        if turns.rng.next_u64() % KEPT_OUT_OF < KEPT {
            return;
        }
        turns.holder = turns.draw().unwrap_or(actor);
        if turns.holder != actor {
            self.told[turns.holder].notify_one();
            self.wait(turns, actor);
        }
    }

    /// Passes it on for good.
    pub fn leave(&self, actor: usize) {
        let mut turns = self.turns();
        turns.running[actor] = false;
        if let Some(next) = turns.draw() {
            turns.holder = next;
            self.told[next].notify_one();
        }
    }

    fn wait(&self, turns: MutexGuard<'_, Turns>, actor: usize) {
        drop(self.told[actor].wait_while(turns, |turns| turns.holder != actor));
    }
}

/// A storage whose every call may pass the baton on before.
pub(super) struct Passing<B> {
    pub inner: B,
    pub baton: Arc<Baton>,
    pub actor: usize,
}

impl<B: Backend> Backend for Passing<B> {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        self.baton.pass(self.actor);
        self.inner.create(name, bytes)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.baton.pass(self.actor);
        self.inner.read(name, max_bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.baton.pass(self.actor);
        self.inner.replace(name, bytes)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.baton.pass(self.actor);
        self.inner.remove(name)
    }
}
