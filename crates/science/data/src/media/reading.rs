//! Reading files within a budget of memory.

use std::fs;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use super::Content;
use crate::limits::{MEDIA_VARIABLE, limits};

/// The formats that are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Jpeg,
    Bmp,
    WebP,
}

/// Why a file has no content to speak of. Smaller than [`Content`].
pub(super) enum Refusal {
    Broken(String),
    NotChecked(String),
}

impl From<Refusal> for Content {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Broken(why) => Self::Broken(why),
            Refusal::NotChecked(why) => Self::NotChecked(why),
        }
    }
}

/// What comes of the bytes of a file, read when memory for them and `more` bytes is left of the budget; or why it is not read.
pub(super) fn read_within<T>(
    path: &Path,
    length: u64,
    more: u64,
    look: impl FnOnce(&[u8]) -> T,
) -> Result<T, Refusal> {
    let granted = BUDGET.take(length.saturating_add(more));
    let _granted = granted.ok_or_else(|| Refusal::NotChecked(too_large()))?;
    let bytes = fs::read(path).map_err(|error| Refusal::Broken(error.to_string()))?;
    Ok(look(&bytes))
}

pub(super) fn too_large() -> String {
    let max = limits().media_bytes_max >> 20;
    format!("reading it takes more than {max} MiB; raise the limit with {MEDIA_VARIABLE}")
}

/// The bytes that all images decoded at the same time may take.
static BUDGET: Budget = Budget { taken: Mutex::new(0), returned: Condvar::new() };

struct Budget {
    taken: Mutex<u64>,
    returned: Condvar,
}

impl Budget {
    /// Waits until so many bytes are free; `None`: they never will be. A caller that holds some must not wait for more.
    fn take(&self, bytes: u64) -> Option<Granted<'_>> {
        let max = limits().media_bytes_max;
        if bytes > max {
            return None;
        }
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = |taken: &mut u64| *taken + bytes > max;
        let mut taken = self.returned.wait_while(taken, has_room).unwrap_or_else(PoisonError::into_inner);
        *taken += bytes;
        Some(Granted { budget: self, bytes })
    }
}

struct Granted<'b> {
    budget: &'b Budget,
    bytes: u64,
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        *self.budget.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.budget.returned.notify_all();
    }
}
