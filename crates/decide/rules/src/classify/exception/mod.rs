//! What an exception says: by its class, by the code that raised it, and where its line is missing.

pub(super) mod by_hand;
pub(super) mod by_name;
pub(super) mod checkpoint_key;
mod innermost;
pub(super) mod lasting;
pub(super) mod sample;
pub(super) mod torn;
