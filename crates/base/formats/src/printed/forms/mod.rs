//! Forms of lines that come again with other numbers: those that said values, and those that said nothing.

pub(super) mod known;
pub(super) mod last;
mod place;
mod plan;
pub(super) mod quiet;
pub(super) mod run;
