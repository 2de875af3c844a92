//! Memory that readers on several cores share.

use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes that all who read at the same time may take together.
#[derive(Debug)]
pub struct Budget {
    bytes_max: u64,
    taken: Mutex<u64>,
    returned: Condvar,
}

impl Budget {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, taken: Mutex::new(0), returned: Condvar::new() }
    }

    /// Waits until so many bytes are left; `None`: they never will be. Who has some must not wait for more.
    pub fn take(&self, bytes: u64) -> Option<Granted<'_>> {
        if bytes > self.bytes_max {
            return None;
        }
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut u64| *taken + bytes > self.bytes_max;
        let mut taken = self.returned.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        Some(Granted { budget: self, bytes })
    }
}

/// A part of a budget, which has it back when this is dropped.
#[derive(Debug)]
pub struct Granted<'b> {
    budget: &'b Budget,
    bytes: u64,
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        *self.budget.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.budget.returned.notify_all();
    }
}
