//! How the output ends: what is said in its last lines, what was outlived, and how far the work came.

pub(super) mod ended;
mod log_lines;
pub(super) mod logged;
pub(super) mod near_end;
pub(super) mod outlived;
pub(super) mod work;
