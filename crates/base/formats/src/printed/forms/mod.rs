//! Forms of lines that come again with other numbers: those that said values, and those that said nothing.

pub(super) mod known;
pub(super) mod last;
pub(super) mod quiet;
