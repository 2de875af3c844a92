//! One attempt is watched to its end: what it prints is passed on, and the watchdog decides when it is stopped.

mod echo;
pub(super) mod inject;
pub(super) mod requeue;
pub(super) mod sight;
pub(super) mod supervise;
pub(super) mod watchdog;
