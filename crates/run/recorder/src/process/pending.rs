use trackway_formats::SaveReason;

/// A checkpoint that a line of the control file requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointRequest {
    pub id: u64,
    pub reason: SaveReason,
    /// By whom and why.
    pub why: String,
}

/// A draft, or a save that is being written, and what to report when it is done.
#[derive(Debug)]
pub(crate) struct Pending {
    pub reason: SaveReason,
    pub asked: Vec<CheckpointRequest>,
    pub began_micros: i64,
    pub interval_seconds: f64,
}
