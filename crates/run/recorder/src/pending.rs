use crate::control::Asked;
use crate::save_reason::SaveReason;

/// A draft, or a save that is being written, and what to report when it is done.
#[derive(Debug)]
pub(crate) struct Pending {
    pub reason: SaveReason,
    pub asked: Vec<Asked>,
    pub began_micros: i64,
    pub interval_seconds: f64,
}
