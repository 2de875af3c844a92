//! Limits of an evaluation; a table beyond them is refused.

/// The most classes.
pub const CLASSES_MAX: usize = 256;
/// The most groups of a column.
pub const FAIRNESS_GROUPS_MAX: usize = 100;
