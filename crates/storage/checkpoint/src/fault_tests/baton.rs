//! Schedules the actors: only the one that holds the baton runs. A seeded choice passes it on before operations on the
//! disk and calls to the log, so a seed determines one interleaving.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use trackway_core::{Rng as _, SplitMix64};
use trackway_store::{Backend, Created, StoreError};

/// How rarely the baton is passed on: before one operation out of so many. A seed chooses, so that in some all actors
/// do a little at a time, and in others much.
const PASSED_ONE_IN: [u64; 3] = [3, 6, 24];

struct Turns {
    rng: SplitMix64,
    holder: usize,
    running: Vec<bool>,
    passed_one_in: u64,
    /// How often it could have been passed on.
    now: u64,
    /// Until then others go first.
    asleep_until: Vec<u64>,
}

impl Turns {
    /// One of those that run and do not sleep; when all sleep, the one that does so shortest.
    fn draw(&mut self) -> Option<usize> {
        let running = |actor: &usize| self.running[*actor];
        let awake: Vec<_> = (0..self.running.len())
            .filter(|actor| running(actor) && self.asleep_until[*actor] <= self.now)
            .collect();
        let draw = self.rng.next_u64();
        if awake.is_empty() {
            let next =
                (0..self.running.len()).filter(running).min_by_key(|actor| self.asleep_until[*actor])?;
            self.now = self.asleep_until[next];
            return Some(next);
        }
        Some(awake[(draw % awake.len() as u64) as usize])
    }
}

/// Shared by all actors.
pub(super) struct Baton {
    turns: Mutex<Turns>,
    /// One for each actor: notified when it holds the baton.
    notified: Vec<Condvar>,
}

impl Baton {
    /// Held by the first of so many actors.
    pub fn new(seed: u64, actors: usize) -> Arc<Self> {
        Self::with_sleepers(seed, actors, 0)
    }

    /// As [`Self::new`], with further actors after them, who get no turn until they are woken.
    pub fn with_sleepers(seed: u64, actors: usize, sleepers: usize) -> Arc<Self> {
        let running = (0..actors + sleepers).map(|actor| actor < actors).collect();
        let asleep_until = vec![0; actors + sleepers];
        let mut rng = SplitMix64::new(seed);
        let passed_one_in = PASSED_ONE_IN[(rng.next_u64() % PASSED_ONE_IN.len() as u64) as usize];
        let turns = Turns { rng, holder: 0, running, passed_one_in, now: 0, asleep_until };
        let notified = (0..actors + sleepers).map(|_| Condvar::new()).collect();
        Arc::new(Self { turns: Mutex::new(turns), notified })
    }

    /// From now on an actor gets its turns; its thread must be there soon.
    pub fn wake(&self, actor: usize) {
        self.turns().running[actor] = true;
    }

    /// Whether an actor gets turns.
    pub fn runs(&self, actor: usize) -> bool {
        self.turns().running[actor]
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
        turns.now += 1;
        let passed_one_in = turns.passed_one_in;
        if turns.rng.next_u64().is_multiple_of(passed_one_in) {
            self.hand_on(turns, actor);
        }
    }

    /// Lets the others go first for so many turns.
    pub fn sleep(&self, actor: usize, so_many: u64) {
        let mut turns = self.turns();
        turns.asleep_until[actor] = turns.now + so_many;
        self.hand_on(turns, actor);
    }

    fn hand_on(&self, mut turns: MutexGuard<'_, Turns>, actor: usize) {
        turns.holder = turns.draw().unwrap_or(actor);
        if turns.holder != actor {
            self.notified[turns.holder].notify_one();
            self.wait(turns, actor);
        }
    }

    /// Passes it on for good.
    pub fn leave(&self, actor: usize) {
        let mut turns = self.turns();
        turns.running[actor] = false;
        if let Some(next) = turns.draw() {
            turns.holder = next;
            self.notified[next].notify_one();
        }
    }

    fn wait(&self, turns: MutexGuard<'_, Turns>, actor: usize) {
        drop(self.notified[actor].wait_while(turns, |turns| turns.holder != actor));
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
