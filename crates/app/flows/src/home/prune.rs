//! Removes what is kept for some time only: old changes of the feed, and notices that were delivered or given up, with their copies.

use std::path::{Path, PathBuf};

use trackway_api::home::tick::DutyAction;
use trackway_core::text::counted;
use trackway_core::{Clock as _, Timestamp};
use trackway_engine::error::AppError;
use trackway_engine::home::changed_at;
use trackway_engine::ledger_state::run_folders;
use trackway_engine::{Context, row_copies};
use trackway_formats::layout::RowCopyKind;
use trackway_ledger::KeptBounds;

use crate::home::done::DutyReport;
use crate::home::rebuild::kind_of_copy;

/// Notices that one tick removes, at most; and copies without a row.
const NOTICES_MAX: u32 = 1_000;

/// Removes what is beyond its bounds, with a sentence for each kind; with `dry_run` nothing is removed.
pub(super) fn prune(context: &Context, dry_run: bool) -> Result<DutyReport, AppError> {
    let mut done = DutyReport::default();
    prune_changes(context, &KeptBounds::CHANGES, dry_run, &mut done)?;
    prune_notices(context, &KeptBounds::NOTICES, dry_run, &mut done)?;
    prune_copies(context, &KeptBounds::NOTICES, dry_run, &mut done)?;
    Ok(done)
}

/// Those of the whole ledger: all its homes have one feed.
fn prune_changes(
    context: &Context,
    bounds: &KeptBounds,
    dry_run: bool,
    done: &mut DutyReport,
) -> Result<(), AppError> {
    let beyond = context.ledger_read(|ledger| ledger.changes_beyond(bounds))?;
    let Some(count) = beyond.end.checked_sub(beyond.start).filter(|count| *count > 0) else {
        return Ok(());
    };
    if !dry_run {
        context.ledger_write(|ledger| ledger.remove_changes(beyond.end))?;
    }
    let what =
        format!("{} of the change feed (up to number {})", counted(count, "old change"), beyond.end - 1);
    done.lines.push(removed(&what, count, dry_run));
    done.counts.push((DutyAction::ChangesRemoved, count));
    Ok(())
}

/// Those of the whole ledger, too: a home that is gone does not tick.
fn prune_notices(
    context: &Context,
    bounds: &KeptBounds,
    dry_run: bool,
    done: &mut DutyReport,
) -> Result<(), AppError> {
    let beyond = context.ledger_read(|ledger| ledger.notices_beyond(bounds, NOTICES_MAX))?;
    let mut copy_count = 0;
    for notice in &beyond {
        let copy = row_copies::notice_copy(&context.home, notice).filter(|path| path.exists());
        copy_count += u64::from(copy.is_some());
        if !dry_run {
            // Before its row, by which it is found.
            copy.iter().try_for_each(|path| remove(context, path))?;
            context.ledger_write(|ledger| ledger.remove_notice(&notice.notice_id))?;
        }
    }
    let count = beyond.len() as u64;
    if count > 0 {
        let what = format!("{} that arrived or {} given up", counted(count, "old notice"), was(count));
        done.lines.push(removed(&what, count, dry_run));
    }
    done.counts.extend([(DutyAction::NoticesRemoved, count), (DutyAction::CopiesRemoved, copy_count)]);
    Ok(())
}

/// The copies here of notices whose rows another home removed from the ledger that both have.
fn prune_copies(
    context: &Context,
    bounds: &KeptBounds,
    dry_run: bool,
    done: &mut DutyReport,
) -> Result<(), AppError> {
    let left = copies_without_row(context, bounds)?;
    if !dry_run {
        left.iter().try_for_each(|path| remove(context, path))?;
    }
    let count = left.len() as u64;
    if count > 0 {
        let (noun, verb) = if count == 1 { ("copy", "is") } else { ("copies", "are") };
        let what = format!("{count} {noun} of old notices that {verb} not in the ledger any more");
        done.lines.push(removed(&what, count, dry_run));
    }
    done.counts.push((DutyAction::CopiesRemoved, count));
    Ok(())
}

/// At most [`NOTICES_MAX`]. A copy is not older than its run: those of young runs are not looked at.
fn copies_without_row(context: &Context, bounds: &KeptBounds) -> Result<Vec<PathBuf>, AppError> {
    let now = context.clock.now();
    let is_old = |at: Timestamp| now.seconds_since(at) > bounds.seconds();
    let mut found = Vec::new();
    for run_id in run_folders(&context.home).into_iter().filter(|run_id| is_old(run_id.created_at())) {
        for path in row_copies::files(&context.home.layout.run(run_id).row_copies()) {
            let is_notice = kind_of_copy(&path) == Some(RowCopyKind::Notice);
            let is_candidate = is_notice && changed_at(&path).is_some_and(is_old);
            if is_candidate && is_left(context, &path, &is_old)? {
                found.push(path);
            }
            if found.len() == NOTICES_MAX as usize {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// Whether the ledger does not have the notice of a copy any more, which arrived or was given up long ago, or waits for longer
/// than it is sent: of a ledger that was lost a rebuild would not send it. A copy that cannot be read is left to `verify`.
fn is_left(context: &Context, path: &Path, is_old: &impl Fn(Timestamp) -> bool) -> Result<bool, AppError> {
    let kept = row_copies::read(path).ok().and_then(|rows| rows.notice().ok().flatten());
    let Some((notice, delivery)) = kept else { return Ok(false) };
    Ok(is_old(delivery.next_try_at)
        && context.ledger_read(|ledger| ledger.delivery_of(&notice.notice_id))?.is_none())
}

fn remove(context: &Context, path: &Path) -> Result<(), AppError> {
    context.home.remove(path).map_err(|error| AppError::file("delete", path, error))
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
    use trackway_core::RunId;
    use trackway_core::name::{Name, NameKind};
    use trackway_engine::testing::{SETTLES, World, arrived, notice, posted};
    use trackway_ledger::{DeliveryState, FeedPage, KeptRows, Ledger, NoticeRow, OutboxRow, RunRow};

    use super::*;

    /// Everything is beyond them.
    const ALL: KeptBounds = KeptBounds { days: 0.0, count: 0 };

    /// The copy of a notice in a state, last changed long ago.
    fn kept(context: &Context, notice: &NoticeRow, state: DeliveryState) -> PathBuf {
        let copy = row_copies::notice_copy(&context.home, notice).unwrap();
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        let rows = KeptRows::of_notice(notice, &OutboxRow::of(notice, state));
        std::fs::write(&copy, serde_json::to_vec(&rows).unwrap()).unwrap();
        let file = std::fs::File::options().write(true).open(&copy).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        copy
    }

    fn known(context: &Context, notice: &NoticeRow) -> bool {
        context.ledger_read(|ledger| ledger.delivery_of(&notice.notice_id)).unwrap().is_some()
    }

    /// Proves that a dry run removes nothing, that old changes are removed with an answer to who has not read them, and
    /// that a notice that arrived goes with its copy while one that waits stays; and that changes and notices are
    /// counted, not sentences.
    #[test]
    fn what_is_beyond_its_bounds_goes() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = world.run(&context, "exit 0", "").run_id;
        let [first, second, waits] = ["end:1", "end:2", "end:3"].map(|key| posted(&context, run_id, key));
        [&first, &second].into_iter().for_each(|notice| arrived(&context, notice));
        let copy = kept(&context, &first, DeliveryState::Delivered);
        let newest = context.ledger_read(Ledger::newest_change).unwrap();
        for (dry_run, verb) in [(true, "would be"), (false, "were")] {
            let mut done = DutyReport::default();
            prune_changes(&context, &ALL, dry_run, &mut done).unwrap();
            let up_to = newest - 1;
            let said =
                format!("{up_to} old changes of the change feed (up to number {up_to}) {verb} removed");
            assert_eq!(
                done,
                DutyReport { counts: vec![(DutyAction::ChangesRemoved, up_to)], lines: vec![said] }
            );
        }
        let answer = context.ledger_read(|ledger| ledger.changes_after(0, None, 10)).unwrap();
        assert_eq!(answer, FeedPage::RemovedUpTo(newest - 1));
        for (dry_run, verb) in [(true, "would be"), (false, "were")] {
            assert!(copy.exists());
            let mut done = DutyReport::default();
            prune_notices(&context, &ALL, dry_run, &mut done).unwrap();
            assert_eq!(done.lines, [format!("2 old notices that arrived or were given up {verb} removed")]);
            assert_eq!(done.counts, [(DutyAction::NoticesRemoved, 2), (DutyAction::CopiesRemoved, 1)]);
        }
        assert!(!copy.exists());
        let mut done = DutyReport::default();
        prune_notices(&context, &ALL, false, &mut done).unwrap();
        assert_eq!((done.lines.len(), done.counts[0].1), (0, 0));
        assert!(!known(&context, &first) && known(&context, &waits));
    }

    /// Proves that a notice of another home's run is removed from the ledger that both have, and that nothing of that
    /// home is made or looked for here.
    #[test]
    fn notices_of_other_homes_go() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let elsewhere = RunId::new(&context.ids);
        let name = Name::renamed(NameKind::Run, "theirs");
        let run = RunRow::planned(elsewhere, &name, "c", json!({}), context.clock.now());
        context.ledger_write(|ledger| ledger.insert_run(&run, &[])).unwrap();
        let [ended, waits] = ["end:1", "end:2"].map(|key| posted(&context, elsewhere, key));
        arrived(&context, &ended);
        let mut done = DutyReport::default();
        prune_notices(&context, &ALL, false, &mut done).unwrap();
        assert_eq!(done.counts, [(DutyAction::NoticesRemoved, 1), (DutyAction::CopiesRemoved, 0)]);
        assert!(!known(&context, &ended) && known(&context, &waits));
        assert!(!context.home.layout.run(elsewhere).folder().exists());
    }

    /// Proves that a copy goes here some time after its notice ended, although another home removed the row, and so does that
    /// of one that would wait for ever, whether the ledger has its run or not; and that copies stay that are young or have a row.
    #[test]
    fn copies_go_whose_rows_another_home_removed() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = world.run(&context, "exit 0", "").run_id;
        let [ended, waits] = ["end:1", "end:2"].map(|key| notice(run_id, key));
        let has_row = posted(&context, run_id, "end:3");
        let of_lost = notice(RunId::new(&context.ids), "end:1");
        let mut goes = [
            kept(&context, &ended, DeliveryState::Delivered),
            kept(&context, &waits, DeliveryState::Waiting),
            kept(&context, &of_lost, DeliveryState::Waiting),
        ];
        goes.sort();
        let stays = kept(&context, &has_row, DeliveryState::Waiting);
        let found = |days: f64| {
            let mut found = copies_without_row(&context, &KeptBounds { days, count: 0 }).unwrap();
            found.sort();
            found
        };
        // Ids are of the clock of this machine, and not of that of the test.
        let behind = run_id.created_at().as_micros() - context.clock.now().as_micros();
        world.clock.advance_micros(behind);
        world.advance_days(89);
        assert_eq!(found(90.0), Vec::<PathBuf>::new());
        world.advance_days(2);
        assert_eq!(found(90.0), goes);
        for dry_run in [true, false] {
            assert!(goes.iter().all(|path| path.exists()));
            let mut done = DutyReport::default();
            prune_copies(&context, &KeptBounds::NOTICES, dry_run, &mut done).unwrap();
            assert_eq!(done.counts, [(DutyAction::CopiesRemoved, 3)]);
        }
        assert!(stays.exists() && !goes.iter().any(|path| path.exists()));
    }
}
