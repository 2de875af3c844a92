//! What must not happen: a secret that is stored, a file of others that is deleted, a terminal that is steered, input that
//! ends Trackway, a name that means another run.

pub(crate) mod bad_input;
mod decoders;
pub(crate) mod deletion;
mod modes;
mod names;
mod redaction;
mod shown;
