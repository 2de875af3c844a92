//! What a query may use.

use std::path::PathBuf;

/// What a query may use.
#[derive(Debug, Clone)]
pub struct QueryLimits {
    /// Memory of sorts, joins and groups. What does not fit is spilled to disk where that is possible, else an error.
    pub memory_bytes: usize,
    /// An existing folder for what is spilled; without one the system's own for temporary files.
    pub spill_folder: Option<PathBuf>,
}

/// The memory of a query unless a limit is set.
pub const QUERY_MEMORY_BYTES: usize = 512 << 20;

impl Default for QueryLimits {
    fn default() -> Self {
        Self { memory_bytes: QUERY_MEMORY_BYTES, spill_folder: None }
    }
}
