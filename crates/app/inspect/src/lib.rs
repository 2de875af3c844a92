//! What only looks: runs explained, compared and watched. Nothing here changes a run.

pub mod compare;
mod curves;
pub mod explain;
mod inputs;
pub mod logs;
mod parameters;
pub mod postmortem;
pub mod progressive;
#[cfg(test)]
mod tests;
pub mod watch;
