/// The rules of all actors. Each can be switched off to see that a property notices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub fence_checked: bool,
    /// A create whose answer was lost succeeded only if the entry has the same ULID.
    pub ulid_compared: bool,
    /// A commit is not added when the truth has it already.
    pub replayed_once: bool,
    /// What waits from an attempt before is replayed under its own epoch before the next is claimed.
    pub drained_before_claim: bool,
    /// What waits is replayed under the epoch that wrote it.
    pub replayed_under_its_epoch: bool,
    /// A supervisor that meets a higher epoch while it looks for where to continue launches nothing.
    pub fence_seen_on_the_walk: bool,
    /// A trainer is launched according to the remote log, not to its disk.
    pub launched_on_truth: bool,
    /// An adopted copy that had to be fetched is below a prefix never used before.
    pub fetched_to_new_prefix: bool,
    /// Retention in the remote storage counts only what is whole there.
    pub uploaded_count: bool,
    pub newest_epoch_awaited: bool,
    /// Deletes only what no live manifest reaches.
    pub shared_spared: bool,
    pub uploads_before_announcing: bool,
    /// Bytes that wait for their upload are not deleted on the disk.
    pub waiting_spared: bool,
}

pub(super) const SOUND: Rules = Rules {
    fence_checked: true,
    ulid_compared: true,
    replayed_once: true,
    drained_before_claim: true,
    replayed_under_its_epoch: true,
    fence_seen_on_the_walk: true,
    launched_on_truth: true,
    fetched_to_new_prefix: true,
    uploaded_count: true,
    newest_epoch_awaited: true,
    shared_spared: true,
    uploads_before_announcing: true,
    waiting_spared: true,
};
