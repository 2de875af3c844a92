//! Which batches the steps trained on, and detectors of batches that come again.

pub(super) mod cursor;
pub(super) mod dead_input;
pub(super) mod seen_before;
