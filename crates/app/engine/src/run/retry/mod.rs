//! What comes after an attempt: the decision of the rules, what the next attempt changes, and the way back to an earlier checkpoint.

pub(crate) mod changes;
pub(super) mod policy;
pub(crate) mod roll_back;
