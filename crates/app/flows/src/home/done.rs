//! What comes of a duty of a tick.

use trackway_api::home::tick::DutyAction;

/// What a duty did, or would do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DutyReport {
    /// How many things, by what was done to them; an action that is not among them was done to none.
    pub counts: Vec<(DutyAction, u64)>,
    /// A sentence about each thing that is to be read about.
    pub lines: Vec<String>,
}
