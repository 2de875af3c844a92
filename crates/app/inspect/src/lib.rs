//! What only looks: runs explained, compared and watched. Nothing here changes a run.

pub mod compare;
mod curves;
pub mod explain;
pub mod logs;
pub mod postmortem;
pub mod progressive;
#[cfg(test)]
mod tests;
pub mod watch;
