//! A series of values: the median of the last ones, the usual level, and episodes of bad ones. Detectors of any metric use them.

pub(super) mod level;
pub(super) mod streak;
pub(super) mod window;
