//! Files that were opened while the script ran: data, checkpoints and source files, and who read them.

pub(super) mod code;
pub(super) mod inputs;
mod readers;
