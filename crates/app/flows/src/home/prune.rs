//! Removes what is kept for some time only: old changes of the feed, and notices that were delivered or given up.

use trackway_core::text::counted;
use trackway_engine::error::AppError;
use trackway_engine::{Context, row_copies};
use trackway_ledger::{KeptBounds, NoticeRow};

/// Notices that one tick removes, at most.
const NOTICES_MAX: u32 = 1_000;

/// Removes what is beyond its bounds, and returns a sentence for each kind; with `dry_run` nothing is removed.
pub(super) fn prune(context: &Context, dry_run: bool) -> Result<Vec<String>, AppError> {
    let changes = prune_changes(context, &KeptBounds::CHANGES, dry_run)?;
    let notices = prune_notices(context, &KeptBounds::NOTICES, dry_run)?;
    Ok(changes.into_iter().chain(notices).collect())
}

/// Those of the whole ledger: all its homes have one feed.
fn prune_changes(context: &Context, bounds: &KeptBounds, dry_run: bool) -> Result<Option<String>, AppError> {
    let beyond = context.ledger_read(|ledger| ledger.changes_beyond(bounds))?;
    let Some(count) = beyond.end.checked_sub(beyond.start).filter(|count| *count > 0) else {
        return Ok(None);
    };
    if !dry_run {
        context.ledger_write(|ledger| ledger.remove_changes(beyond.end))?;
    }
    let what =
        format!("{} of the change feed (up to number {})", counted(count, "old change"), beyond.end - 1);
    Ok(Some(removed(&what, count, dry_run)))
}

fn prune_notices(context: &Context, bounds: &KeptBounds, dry_run: bool) -> Result<Option<String>, AppError> {
    let beyond = context.ledger_read(|ledger| ledger.notices_beyond(bounds, NOTICES_MAX))?;
    if beyond.is_empty() {
        return Ok(None);
    }
    if !dry_run {
        for notice in &beyond {
            remove_copy(context, notice)?;
            context.ledger_write(|ledger| ledger.remove_notice(&notice.notice_id))?;
        }
    }
    let count = beyond.len() as u64;
    let what = format!("{} that arrived or {} given up", counted(count, "old notice"), was(count));
    Ok(Some(removed(&what, count, dry_run)))
}

/// The copy of a notice, if it is here: before its row, by which it is found. A copy in another home stays; a rebuild there puts its row back, and it goes
/// with the next tick there.
fn remove_copy(context: &Context, notice: &NoticeRow) -> Result<(), AppError> {
    let copy = row_copies::notice_copy(&context.home, notice).filter(|path| path.exists());
    copy.map_or(Ok(()), |path| {
        context.home.remove(&path).map_err(|error| AppError::file("delete", &path, &error))
    })
}

const fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

fn removed(what: &str, count: u64, dry_run: bool) -> String {
    if dry_run { format!("{what} would be removed") } else { format!("{what} {} removed", was(count)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_engine::testing::{SETTLES, World};
    use trackway_ledger::{DeliveryEnd, FeedPage, Ledger, SubjectKind};

    use super::*;

    /// Proves that a dry run removes nothing, that old changes are removed with an answer to who has not read them, and that a notice that arrived goes with its
    /// copy while one that waits stays.
    #[test]
    fn what_is_beyond_its_bounds_goes() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = world.run(&context, "exit 0", "").run_id;
        let notice = |key: &str| NoticeRow {
            notice_id: format!("{run_id}:{key}"),
            subject_kind: SubjectKind::Run,
            subject_id: run_id.to_string(),
            project: None,
            at: run_id.created_at(),
            about: "end".into(),
            document_json: json!({}),
        };
        let (arrived, waits) = (notice("end:1"), notice("end:2"));
        for notice in [&arrived, &waits] {
            context.ledger_write(|ledger| ledger.post_notice(notice)).unwrap();
        }
        let id = &arrived.notice_id;
        assert!(context.ledger_write(|ledger| ledger.take_notice(id, 60.0)).unwrap());
        context.ledger_write(|ledger| ledger.end_notice(id, &DeliveryEnd::Delivered)).unwrap();
        let copy = row_copies::notice_copy(&context.home, &arrived).unwrap();
        std::fs::write(&copy, "{}").unwrap();
        let all = KeptBounds { days: 0.0, count: 0 };
        let newest = context.ledger_read(Ledger::newest_change).unwrap();
        for (dry_run, verb) in [(true, "would be"), (false, "were")] {
            let said = prune_changes(&context, &all, dry_run).unwrap().unwrap();
            let up_to = newest - 1;
            assert_eq!(
                said,
                format!("{up_to} old changes of the change feed (up to number {up_to}) {verb} removed")
            );
        }
        let answer = context.ledger_read(|ledger| ledger.changes_after(0, None, 10)).unwrap();
        assert_eq!(answer, FeedPage::RemovedUpTo(newest - 1));
        let said = prune_notices(&context, &all, true).unwrap();
        assert_eq!(said.as_deref(), Some("1 old notice that arrived or was given up would be removed"));
        assert!(copy.exists());
        let said = prune_notices(&context, &all, false).unwrap();
        assert_eq!(said.as_deref(), Some("1 old notice that arrived or was given up was removed"));
        assert!(!copy.exists());
        assert_eq!(prune_notices(&context, &all, false).unwrap(), None);
        let delivery = |id: &str| context.ledger_read(|ledger| ledger.delivery_of(id)).unwrap();
        assert!(delivery(id).is_none() && delivery(&waits.notice_id).is_some());
    }
}
