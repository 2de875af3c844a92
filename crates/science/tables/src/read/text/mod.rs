//! Files of text: blocks that end where a row does, the dialect of a CSV file, and the rows of CSV, JSON lines and plain text.

pub(super) mod blocks;
pub(super) mod cells;
pub(super) mod csv;
pub(super) mod dialect;
pub(super) mod json;
pub(super) mod lines;
mod long_numbers;
mod not_finite;
pub(super) mod split;
