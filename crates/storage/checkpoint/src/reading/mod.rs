//! Reading a store: which commits there are to continue from, whether their bytes are those that were committed, and what is in them.

pub(super) mod load;
pub(super) mod verify;
pub(super) mod view;
pub(super) mod weights;
