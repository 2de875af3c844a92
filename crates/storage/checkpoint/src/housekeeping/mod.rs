//! What retention does not keep is recorded in the log and then deleted, here and in the stores that are collected.

pub(super) mod housekeeper;
#[cfg(test)]
mod housekeeper_tests;
pub(super) mod keeper;
