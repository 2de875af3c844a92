//! Connections to one database: one while idle, more while threads work at once, up to a bound.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Backend;
use crate::error::LedgerError;

/// Makes another connection to the same database.
pub(crate) type Connect = Box<dyn Fn() -> Result<Backend, LedgerError> + Send + Sync>;

/// The connections of a ledger.
pub(crate) struct Pool {
    state: Mutex<State>,
    returned: Condvar,
    connect: Connect,
    bounds: Bounds,
}

/// How many connections there may be, 1 or more each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// At once.
    pub open_max: usize,
    /// While none is in use; the others are closed when they are returned.
    pub idle_max: usize,
}

#[derive(Debug)]
struct State {
    idle: Vec<Backend>,
    open_count: usize,
}

/// A connection in use; it is returned when this is dropped.
#[derive(Debug)]
pub struct Connection<'p> {
    pool: &'p Pool,
    /// There until it is returned.
    backend: Option<Backend>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pool").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool that holds a first connection.
    pub(crate) fn new(first: Backend, connect: Connect, bounds: Bounds) -> Self {
        let state = Mutex::new(State { idle: vec![first], open_count: 1 });
        Self { state, returned: Condvar::new(), connect, bounds }
    }

    /// A connection for this caller alone. Waits while as many as may be open are in use, or while no other can be
    /// made.
    pub(crate) fn connection(&self) -> Connection<'_> {
        let mut state = self.state();
        loop {
            if let Some(backend) = state.idle.pop() {
                return Connection { pool: self, backend: Some(backend) };
            }
            if state.open_count < self.bounds.open_max {
                // Counted before it is made, so that others do not open it too.
                state.open_count += 1;
                // Connecting may take seconds, and must not hold up those who return a connection.
                drop(state);
                if let Ok(backend) = (self.connect)() {
                    return Connection { pool: self, backend: Some(backend) };
                }
                state = self.state();
                state.open_count -= 1;
                // One was returned while this thread connected: its signal came before the wait.
                if !state.idle.is_empty() {
                    continue;
                }
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, backend: Backend) {
        let mut state = self.state();
        if state.idle.len() < self.bounds.idle_max {
            state.idle.push(backend);
        } else {
            state.open_count -= 1;
        }
        drop(state);
        self.returned.notify_one();
    }
}

impl Deref for Connection<'_> {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        self.backend.as_ref().expect("a connection is there until it is returned")
    }
}

impl DerefMut for Connection<'_> {
    fn deref_mut(&mut self) -> &mut Backend {
        self.backend.as_mut().expect("a connection is there until it is returned")
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if let Some(backend) = self.backend.take() {
            self.pool.give_back(backend);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use trackway_redact::Redactor;

    use super::*;
    use crate::backend::SqliteBackend;
    use crate::text::TextFilter;

    /// Proves that no more connections are in use than allowed, that each waiting thread gets one, that only those
    /// allowed stay open, and that a thread waits for a connection in use where no other can be made.
    #[test]
    fn connections_are_bounded_and_shared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        for can_connect in [true, false] {
            let at = path.clone();
            let connect = move || {
                if !can_connect {
                    return Err(LedgerError::Unavailable { location: String::new(), why: "away".into() });
                }
                let door = TextFilter::new(Redactor::of_this_process());
                SqliteBackend::open(&at, 1000, door).map(Backend::Sqlite)
            };
            let door = TextFilter::new(Redactor::of_this_process());
            let first = Backend::Sqlite(SqliteBackend::open(&path, 1000, door).unwrap());
            let pool = Pool::new(first, Box::new(connect), Bounds { open_max: 3, idle_max: 2 });
            let (used, most_used) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..20 {
                            let connection = pool.connection();
                            most_used.fetch_max(used.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            std::thread::yield_now();
                            used.fetch_sub(1, Ordering::SeqCst);
                            drop(connection);
                        }
                    });
                }
            });
            let state = pool.state();
            assert!(most_used.into_inner() <= if can_connect { 3 } else { 1 });
            assert_eq!(state.idle.len(), state.open_count, "one is lost");
            assert!(state.open_count <= if can_connect { 2 } else { 1 }, "{state:?}");
        }
    }
}
