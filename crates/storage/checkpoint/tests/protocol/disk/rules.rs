/// What a writer obeys. Each can be switched off to see that a property notices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub bytes_synced_before_commit: bool,
    pub names_synced_before_commit: bool,
    pub commit_behind_data: bool,
    pub fence_checked: bool,
    /// What was read is made durable before the next number is linked.
    pub settled_before_link: bool,
    /// An entry that was read is made durable before something is deleted because of it.
    pub settled_before_delete: bool,
    /// A create counts only once its sync succeeded, also when the entry is found by reading back.
    pub acknowledged_when_synced: bool,
    /// A process that finds the number taken reads and decides again.
    pub decided_again: bool,
    pub retired_before_delete: bool,
    pub two_verified_kept: bool,
    pub pins_respected: bool,
    /// A resume does not take what is marked unsafe.
    pub unsafe_skipped: bool,
    /// What is unsafe does not count among the newest that are kept.
    pub safe_kept: bool,
    /// Nothing is retired while the newest epoch has no commit: its writer continues from one that is not in the log
    /// yet.
    pub newest_epoch_awaited: bool,
    /// Only a begin of an older epoch is an orphan.
    pub orphans_of_older_epochs: bool,
    /// A begin that was given up is never committed.
    pub abandoned_seen: bool,
}

pub(super) const SOUND: Rules = Rules {
    bytes_synced_before_commit: true,
    names_synced_before_commit: true,
    commit_behind_data: true,
    fence_checked: true,
    settled_before_link: true,
    settled_before_delete: true,
    acknowledged_when_synced: true,
    decided_again: true,
    retired_before_delete: true,
    two_verified_kept: true,
    pins_respected: true,
    unsafe_skipped: true,
    safe_kept: true,
    newest_epoch_awaited: true,
    orphans_of_older_epochs: true,
    abandoned_seen: true,
};
