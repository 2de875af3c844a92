//! What one side of a split knows of the other.
//!
//! [`find_overlap`] reads each side once: rows that stand on both sides, with and without the label, groups on both
//! sides, and moments of the test side that the training side has passed already.

mod columns;
mod judge;
mod overlap;
mod twins;

pub use overlap::{
    GroupOverlap, OVERLAP_EXAMPLES_MAX, Overlap, Roles, RowOverlap, SharedRow, TimeOverlap, find_overlap,
};
pub use twins::{TWIN_KEYS_MAX, Twins};

#[cfg(test)]
mod tests;
