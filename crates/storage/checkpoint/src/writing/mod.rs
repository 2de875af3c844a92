//! Writing one checkpoint: its files, those that another program wrote, and those that continue the commit before it.

pub(super) mod foreign;
#[cfg(test)]
mod foreign_tests;
pub(super) mod parent;
pub(super) mod writer;
