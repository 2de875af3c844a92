//! The packages that will run, and the interpreter that loads them.

pub(super) mod environment;
pub(super) mod interpreter;
