//! Which row goes where: parts of a split, folds, and the nested subsets of the rungs.
//!
//! Everything is decided from hashes of a seed and a key, so that the same rows get the same parts on every machine,
//! whatever their order and number of files. A row's key is, by default, the hash of its content: equal rows then never
//! are on two sides. [`SplitPlan::prove`] checks an assignment from scratch; callers run it before they write one down.

mod assign;
mod by_time;
mod folds;
mod parts;
mod rows;
mod write;

pub use assign::{Assignment, SplitPlan};
pub use by_time::{TimeCut, cut_by_time};
pub use folds::{GroupClasses, stratified_group_folds};
pub use parts::{FOLD_COUNT_MAX, Part, Shares, SplitError, by_hash_within_classes};
pub use rows::{CLASSES_MAX, SplitColumns, SplitRows, read_rows};
pub use trackway_results::split::{SplitMethod, SplitProof};
pub use write::{write_assignment, write_parts, write_parts_as};

#[cfg(test)]
mod tests;
