//! What a query may use, and what ends it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a query may use, and what ends it.
#[derive(Debug, Clone)]
pub struct QueryLimits {
    /// Memory of sorts, joins and groups. What does not fit is spilled to disk where that is possible, else an error.
    pub memory_bytes: usize,
    /// An existing folder for what is spilled; without one the system's own for temporary files.
    pub spill_folder: Option<PathBuf>,
    /// Ends the query as soon as it is true.
    pub cancelled: Option<Arc<AtomicBool>>,
}

/// The memory of a query unless a limit is set.
pub const QUERY_MEMORY_BYTES: usize = 512 << 20;

impl Default for QueryLimits {
    fn default() -> Self {
        Self { memory_bytes: QUERY_MEMORY_BYTES, spill_folder: None, cancelled: None }
    }
}

/// Whether a flag of [`QueryLimits::cancelled`] ends what it belongs to.
#[cfg_attr(not(feature = "datafusion"), allow(dead_code, reason = "only the query engine can be cancelled"))]
pub(crate) fn is_cancelled(cancelled: Option<&AtomicBool>) -> bool {
    cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
}
