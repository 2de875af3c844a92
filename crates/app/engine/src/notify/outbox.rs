//! Notices that their supervisors did not deliver: one try of each that is due, by a tick.

use trackway_core::{Clock as _, RunId, Timestamp};
use trackway_ledger::{DeliveryEnd, KeptBounds, NoticeRow};

use super::delivery::{Failure, HELD_SECONDS, failed, post_patiently};
use super::{address, host_of};
use crate::Context;
use crate::error::AppError;
use crate::ledger::row_copies::{keep_end, keep_try};
use crate::ledger::stored::stored_plan;

/// Notices that one tick tries, at most.
const NOTICES_MAX: u32 = 100;
/// A notice is given up after so many tries, which take about ten hours.
const TRIES_OF_NOTICE_MAX: u32 = 16;
/// The pause after the first try; each is twice the one before.
const FIRST_PAUSE_SECONDS: f64 = 60.0;
/// The longest pause.
const PAUSE_SECONDS_MAX: f64 = 3_600.0;
/// Why a notice that waited for long is given up.
const TOO_OLD: &str = "it waited for longer than notifications are kept";

/// What came of the notices that were due.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Notices that were tried; of a dry run those that would be.
    pub tried_count: u64,
    /// Notices that have arrived.
    pub arrived_count: u64,
    /// Notices that are not tried again.
    pub given_up_count: u64,
    /// A sentence about each, and about each that waits because its webhook is not known here.
    pub lines: Vec<String>,
}

/// Tries every notice of this home that is due, once; with `dry_run` none is tried. The address is the one that
/// the run's plan and this process's environment mean.
///
/// # Errors
/// When the ledger cannot be read or written.
pub fn deliver_due(context: &Context, dry_run: bool) -> Result<Delivered, AppError> {
    let mut delivered = Delivered::default();
    for (notice, delivery) in context.ledger_read(|ledger| ledger.due_notices(NOTICES_MAX))? {
        deliver(context, &notice, delivery.tries, dry_run, &mut delivered)?;
    }
    Ok(delivered)
}

/// One of them, tried so often before. Nothing is said of one that is another home's, or that another process tries now.
fn deliver(
    context: &Context,
    notice: &NoticeRow,
    tries: u32,
    dry_run: bool,
    delivered: &mut Delivered,
) -> Result<(), AppError> {
    let what = format!("the notification ({}) of {}", notice.about, notice.subject());
    let id = notice.notice_id.as_str();
    if is_too_old(notice, context.clock.now()) {
        let end = DeliveryEnd::GivenUp { why: TOO_OLD.into() };
        // Another process may have given it up just now: it has said so.
        if dry_run || ended(context, notice, &end)? {
            delivered.given_up_count += 1;
            let how = if dry_run { "would be" } else { "is" };
            delivered.lines.push(format!("{what} {how} given up: {TOO_OLD}"));
        }
        return Ok(());
    }
    let address = match destination(context, notice) {
        Some(Ok(address)) => address,
        unknown => {
            // Else those that cannot be sent from here would be the longest waiting for ever, and no other would be looked at.
            if !dry_run {
                context.ledger_write(|ledger| ledger.pass_over_notice(id))?;
            }
            delivered.lines.extend(unknown.and_then(Result::err).map(|why| format!("{what} waits: {why}")));
            return Ok(());
        }
    };
    if dry_run {
        delivered.tried_count += 1;
        delivered.lines.push(format!("{what} would be sent to {}", host_of(&address)));
        return Ok(());
    }
    if !context.ledger_write(|ledger| ledger.take_notice(id, HELD_SECONDS))? {
        return Ok(());
    }
    keep_try(&context.home, &context.ledger, notice);
    let document = notice.document_json.to_string();
    let done = post_patiently(&address, document.as_bytes(), 1);
    let end = end_of(done, tries + 1);
    ended(context, notice, &end)?;
    delivered.tried_count += 1;
    delivered.arrived_count += u64::from(end == DeliveryEnd::Delivered);
    delivered.given_up_count += u64::from(matches!(end, DeliveryEnd::GivenUp { .. }));
    delivered.lines.push(format!("{what} {} {}", in_words(&end), host_of(&address)));
    Ok(())
}

/// Whether a notice is not sent any more, however it comes that it still waits: its webhook is not known, its home does not
/// tick, or its ledger was rebuilt from an old copy of it.
#[must_use]
pub fn is_too_old(notice: &NoticeRow, now: Timestamp) -> bool {
    now.seconds_since(notice.at) > KeptBounds::NOTICES.seconds()
}

/// Writes down how a try ended, or that there is none any more. False: the notice had ended before, and nothing changes.
fn ended(context: &Context, notice: &NoticeRow, end: &DeliveryEnd) -> Result<bool, AppError> {
    let is_ended_here = context.ledger_write(|ledger| ledger.end_notice(&notice.notice_id, end))?;
    if is_here(context, notice) {
        keep_end(&context.home, &context.ledger, notice, end);
    }
    if is_ended_here {
        note_given_up(context, notice, end)?;
    }
    Ok(is_ended_here)
}

/// Whether a notice is not one of a run of another home.
fn is_here(context: &Context, notice: &NoticeRow) -> bool {
    notice.run_id().is_none_or(|run_id| context.home.layout.run(run_id).folder().is_dir())
}

/// Where a notice is sent to, or why that is not known here; none: its run is another home's, whose webhook may be another one.
fn destination(context: &Context, notice: &NoticeRow) -> Option<Result<String, String>> {
    is_here(context, notice).then(|| address_of(context, notice.run_id()))
}

fn address_of(context: &Context, run_id: Option<RunId>) -> Result<String, String> {
    let section = match run_id {
        None => None,
        Some(run_id) => {
            let run = context.ledger_read(|ledger| ledger.run(run_id)).map_err(|error| error.to_string())?;
            let plan = run.as_ref().map(stored_plan).transpose().map_err(|error| error.to_string())?;
            plan.flatten().and_then(|plan| plan.notify)
        }
    };
    let found = address(section.as_ref(), context.webhook.as_deref())?;
    found.ok_or_else(|| "no webhook is set here".into())
}

/// How a try ended that was the one of this number.
fn end_of(done: Result<(), Failure>, tries: u32) -> DeliveryEnd {
    match done {
        Ok(()) => DeliveryEnd::Delivered,
        Err(Failure { why, may_pass, .. }) if !may_pass || tries >= TRIES_OF_NOTICE_MAX => {
            DeliveryEnd::GivenUp { why }
        }
        Err(Failure { why, .. }) => {
            let doubled = FIRST_PAUSE_SECONDS * f64::from(tries.saturating_sub(1)).exp2();
            DeliveryEnd::Later { seconds: doubled.min(PAUSE_SECONDS_MAX), why }
        }
    }
}

fn in_words(end: &DeliveryEnd) -> &'static str {
    match end {
        DeliveryEnd::Delivered => "was taken by",
        DeliveryEnd::Later { .. } => "was not taken yet by",
        DeliveryEnd::GivenUp { .. } => "is given up: it was refused by",
    }
}

/// A notice that is given up is an event of its run.
fn note_given_up(context: &Context, notice: &NoticeRow, end: &DeliveryEnd) -> Result<(), AppError> {
    let (Some(run_id), DeliveryEnd::GivenUp { why }) = (notice.run_id(), end) else { return Ok(()) };
    let message = format!("the notification ({}) is given up: {why}", notice.about);
    let event = failed(&*context.clock, run_id, &message);
    context.ledger_write(|ledger| ledger.append_event(&event)).map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::name::{Name, NameKind};
    use trackway_ledger::{DeliveryState, RunRow, SubjectKind};

    use super::*;
    use crate::testing::{SETTLES, World};

    fn id(run_id: RunId) -> String {
        format!("{run_id}:end:1")
    }

    /// A run of this home and one of another home with the same ledger, each with a notice that waits.
    fn here_and_elsewhere(world: &World, context: &Context) -> [RunId; 2] {
        let here = world.run(context, "exit 0", "").run_id;
        let elsewhere = RunId::new(&context.ids);
        let (name, at) = (Name::renamed(NameKind::Run, "theirs"), context.clock.now());
        let run = RunRow::planned(elsewhere, &name, "c", json!({}), at);
        context.ledger_write(|ledger| ledger.insert_run(&run, &[])).unwrap();
        for run_id in [elsewhere, here] {
            let notice = NoticeRow {
                notice_id: id(run_id),
                subject_kind: SubjectKind::Run,
                subject_id: run_id.to_string(),
                project: None,
                at,
                about: "end".into(),
                document_json: json!({ "text": "it ended" }),
            };
            assert!(context.ledger_write(|ledger| ledger.post_notice(&notice)).unwrap());
        }
        [here, elsewhere]
    }

    fn delivery(context: &Context, run_id: RunId) -> (DeliveryState, u32) {
        let row = context.ledger_read(|ledger| ledger.delivery_of(&id(run_id))).unwrap().unwrap();
        (row.state, row.tries)
    }

    /// Proves that nothing is done and said about a notice of a run of another home, in a ledger that both share, and
    /// that one of a run of this home is looked at.
    #[test]
    fn a_notice_of_another_home_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let [here, elsewhere] = here_and_elsewhere(&world, &context);
        for dry_run in [true, false] {
            let delivered = deliver_due(&context, dry_run).unwrap();
            let waits = format!("the notification (end) of run {here} waits: no webhook is set here");
            assert_eq!(delivered, Delivered { lines: vec![waits], ..Delivered::default() });
            assert_eq!(delivery(&context, elsewhere), (DeliveryState::Waiting, 0));
        }
    }

    /// Proves that a notice waits for a bounded time, whichever home it is of and whatever it waits for: then it is given up and
    /// not sent, with the reason in the history of its run, and nothing is made here of another home.
    #[test]
    fn a_notice_does_not_wait_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let runs = here_and_elsewhere(&world, &context);
        let waiting = context.ledger_read(|ledger| ledger.waiting_notices("", 10)).unwrap();
        world.advance_days(91);
        for (dry_run, state) in [(true, DeliveryState::Waiting), (false, DeliveryState::GivenUp)] {
            let delivered = deliver_due(&context, dry_run).unwrap();
            assert_eq!((delivered.tried_count, delivered.given_up_count), (0, 2), "{:?}", delivered.lines);
            for run_id in runs {
                assert_eq!(delivery(&context, run_id), (state, 0));
                let events = context.ledger_read(|ledger| ledger.events_of_run(run_id)).unwrap();
                assert_eq!(events.iter().any(|event| event.message.ends_with(TOO_OLD)), !dry_run);
            }
        }
        // Another tick read them before that.
        let mut again = Delivered::default();
        for (notice, _) in &waiting {
            deliver(&context, notice, 0, false, &mut again).unwrap();
        }
        assert_eq!(again, Delivered::default());
        assert!(!context.home.layout.run(runs[1]).folder().exists());
        assert_eq!(deliver_due(&context, false).unwrap(), Delivered::default());
    }

    /// Proves that a notice that may still arrive is tried again after pauses that double up to an hour, and that one that was refused or
    /// tried often enough is given up.
    #[test]
    fn how_a_try_ends() {
        let failure = |may_pass| Err(Failure { why: "500".into(), tries: 1, may_pass });
        let later = |seconds| DeliveryEnd::Later { seconds, why: "500".into() };
        let given_up = DeliveryEnd::GivenUp { why: "500".into() };
        for (done, tries, expected) in [
            (Ok(()), 1, DeliveryEnd::Delivered),
            (failure(true), 1, later(60.0)),
            (failure(true), 3, later(240.0)),
            (failure(true), 15, later(3_600.0)),
            (failure(true), 16, given_up.clone()),
            (failure(false), 1, given_up),
        ] {
            assert_eq!(end_of(done, tries), expected, "{tries}");
        }
    }
}
