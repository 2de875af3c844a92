//! Receipts: an attempt is charged and sealed, and whether a receipt still is what was sealed is checked.

pub(super) mod charges;
pub(super) mod seal;
pub(super) mod verify;
