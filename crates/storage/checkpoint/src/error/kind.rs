/// What a caller should do about an error. Part of the contract; the wording of messages is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Call again, perhaps later: another process was faster.
    Retry,
    /// Stop: a newer attempt owns the checkpoints.
    Fenced,
    /// Fix what was passed in or how the process was started.
    Input,
    /// Repair the disk or make room, then call again. Nothing committed was touched.
    Storage,
    /// Bytes are not what they were: repair or choose another checkpoint.
    Integrity,
    /// The caller's own code, filling the checkpoint, failed.
    State,
}
