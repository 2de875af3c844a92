//! What needs a clock although nothing runs: duties that are done from time to time by the process that ticks first. `trackway tick` is
//! called by cron or a timer; to call it twice, or from several machines at once, changes nothing more.

use std::os::unix::fs::MetadataExt as _;

use trackway_api::home::tick::{DutyAction, DutyCount, DutyName, DutyOutcome, TickReport, TickedDuty};
use trackway_checkpoint::PinInfo;
use trackway_core::{RunId, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::home::Home;
use trackway_engine::notify;
use trackway_engine::row_copies::keep_waiting_notices;
use trackway_formats::EventKind;
use trackway_launch::MachineIdentity;
use trackway_ledger::{ApprovalRow, DutyAnswer, EventRow, Subject, SubjectEventRow, SubjectKind};

use crate::checkpoints::checkpoints;
use crate::home::done::DutyReport;
use crate::home::{prune, reconcile};

/// What the events of a tick come from.
const SOURCE: &str = "tick";

/// Does what is due, each duty by one process at a time; with `dry_run` it only says what it would do.
///
/// # Errors
/// [`ErrorKind::Usage`] where the home can only be read; when the ledger cannot be read. A duty that fails is in the report.
pub fn tick(context: &Context, dry_run: bool) -> Result<TickReport, AppError> {
    if !dry_run && (!context.home.is_writable() || context.ledger_is_read_only()) {
        let message = format!("`{}` can only be read", context.home.folder().display());
        return Err(
            AppError::new(ErrorKind::Usage, message).hint("its owner ticks; see what is due with --dry-run")
        );
    }
    let holder = holder(context)?;
    let duties = DutyName::ALL.iter().map(|name| duty(context, *name, &holder, dry_run));
    Ok(TickReport { at: context.clock.now(), dry_run, duties: duties.collect::<Result<_, _>>()? })
}

/// This process, for people and for the ledger.
fn holder(context: &Context) -> Result<String, AppError> {
    let machine = MachineIdentity::current()
        .map_err(|error| AppError::fault("this machine cannot be identified", error))?;
    Ok(format!("`{}`, process {}, {:032x}", machine.host, std::process::id(), context.ids.next_ulid()))
}

/// What the duties of a home are done for: the engine that launches on its machine. The homes of two machines may have
/// one path, so that the number of the folder is part of it.
fn subject(home: &Home) -> Subject {
    let given = home.folder();
    let folder = std::fs::canonicalize(given).unwrap_or_else(|_| given.to_owned());
    let inode = folder.metadata().map_or(0, |found| found.ino());
    Subject::new(SubjectKind::Engine, format!("local:{}:{inode}", folder.display()))
}

fn duty(context: &Context, name: DutyName, holder: &str, dry_run: bool) -> Result<TickedDuty, AppError> {
    let subject = &subject(&context.home);
    let (word, bound) = (name.as_str(), name.bound_seconds());
    let answer = match dry_run {
        true => context.ledger_read(|ledger| ledger.duty_now(word, subject))?,
        false => context.ledger_write(|ledger| ledger.take_duty(word, subject, holder, bound))?,
    };
    let (outcome, next_seconds, why) = match answer {
        DutyAnswer::Mine => return carried_out(context, name, (subject, holder), dry_run),
        DutyAnswer::NotDue { seconds_left } => (DutyOutcome::NotDue, seconds_left, None),
        DutyAnswer::HeldBy { holder, seconds_left } => (DutyOutcome::Held, seconds_left, Some(holder)),
    };
    let (counts, lines) = (Vec::new(), Vec::new());
    Ok(TickedDuty { name, outcome, counts, lines, why, next_seconds: Some(next_seconds) })
}

/// Does a duty that is this process's, and ends it; a duty that failed is due again as one that was done.
fn carried_out(
    context: &Context,
    name: DutyName,
    (subject, holder): (&Subject, &str),
    dry_run: bool,
) -> Result<TickedDuty, AppError> {
    let done = match name {
        DutyName::Reap => reap(context, dry_run),
        DutyName::Approvals => end_approvals(context, dry_run),
        DutyName::Pins => end_pins(context, dry_run),
        DutyName::Outbox => deliver(context, dry_run),
        DutyName::Prune => prune::prune(context, dry_run),
    };
    let (outcome, counts, lines, why) = match done {
        Ok(done) => {
            let outcome = if dry_run { DutyOutcome::Due } else { DutyOutcome::Done };
            (outcome, counts_of(name, &done.counts), done.lines, None)
        }
        Err(error) => (DutyOutcome::Failed, Vec::new(), Vec::new(), Some(error.to_string())),
    };
    let mut next_seconds = None;
    if !dry_run {
        let every = name.every_seconds();
        let end = (every, why.as_deref());
        context.ledger_write(|ledger| ledger.end_duty(name.as_str(), subject, holder, end))?;
        next_seconds = Some(every as f64);
    }
    Ok(TickedDuty { name, outcome, counts, lines, why, next_seconds })
}

/// Every action of a duty with its count, also those that were done to nothing.
fn counts_of(name: DutyName, counted: &[(DutyAction, u64)]) -> Vec<DutyCount> {
    let count = |action: DutyAction| -> u64 {
        counted.iter().filter(|(of, _)| *of == action).map(|(_, count)| count).sum()
    };
    name.actions().iter().map(|action| DutyCount { action: *action, count: count(*action) }).collect()
}

fn reap(context: &Context, dry_run: bool) -> Result<DutyReport, AppError> {
    let reconciled = match dry_run {
        true => reconcile::ended_without_supervisor(context)?,
        false => reconcile::reconcile(context)?,
    };
    let counts = vec![
        (DutyAction::AttemptsSealed, reconciled.sealed_count),
        (DutyAction::EvaluationsEnded, reconciled.ended_count),
    ];
    Ok(DutyReport { counts, lines: reconciled.lines })
}

/// First the copies: what is delivered then is kept as such.
fn deliver(context: &Context, dry_run: bool) -> Result<DutyReport, AppError> {
    let copy_count = keep_waiting_notices(context, dry_run)?;
    let delivered = notify::deliver_due(context, dry_run)?;
    let counts = vec![
        (DutyAction::NoticesTried, delivered.tried_count),
        (DutyAction::NoticesDelivered, delivered.arrived_count),
        (DutyAction::NoticesGivenUp, delivered.given_up_count),
        (DutyAction::CopiesWritten, copy_count),
    ];
    Ok(DutyReport { counts, lines: delivered.lines })
}

/// Writes down which approvals have ended, once each.
fn end_approvals(context: &Context, dry_run: bool) -> Result<DutyReport, AppError> {
    let (mut count, mut lines) = (0, Vec::new());
    for model in context.ledger_read(trackway_ledger::Ledger::models)? {
        let approvals = context.ledger_read(|ledger| ledger.approvals_of_model(&model.model))?;
        let known = Subject::new(SubjectKind::Model, model.model.as_str());
        let known = context.ledger_read(|ledger| ledger.events_of_subject(&known))?;
        for event in ended(&approvals, &known, context.clock.now()) {
            if !dry_run {
                context.ledger_write(|ledger| ledger.append_subject_event(&event))?;
            }
            let would = if dry_run { "it would be written down that " } else { "" };
            lines.push(format!("model `{}`: {would}{}", model.model, event.message));
            count += 1;
        }
    }
    Ok(DutyReport { counts: vec![(DutyAction::ApprovalsExpired, count)], lines })
}

/// The events of approvals that have ended and of which none is known.
fn ended(approvals: &[ApprovalRow], known: &[SubjectEventRow], now: Timestamp) -> Vec<SubjectEventRow> {
    let event = |approval: &ApprovalRow| SubjectEventRow {
        event_id: format!("{}:{}", approval.approval_id, EventKind::ApprovalExpired),
        subject_kind: SubjectKind::Model,
        subject_id: approval.model.clone(),
        attempt_id: None,
        at: approval.expires_at,
        kind: EventKind::ApprovalExpired.as_str().into(),
        step: None,
        message: format!("the approval of version {} by {} has ended", approval.version, approval.approver),
        fields_json: Some(serde_json::json!({
            "approval_id": approval.approval_id,
            "version": approval.version,
            "approver": approval.approver,
        })),
        source: SOURCE.into(),
    };
    let is_new = |event: &SubjectEventRow| known.iter().all(|known| known.event_id != event.event_id);
    let over = approvals.iter().filter(|approval| approval.expires_at <= now);
    over.map(event).filter(is_new).collect()
}

/// Takes the pins away whose time is over, of the runs of this home. A run whose checkpoints cannot be read is named,
/// and the others follow.
fn end_pins(context: &Context, dry_run: bool) -> Result<DutyReport, AppError> {
    let (mut count, mut lines) = (0, Vec::new());
    for run_id in context.ledger_read(trackway_ledger::Ledger::runs_with_pins)? {
        if context.home.layout.run(run_id).folder().is_dir() {
            match end_pins_of(context, run_id, dry_run) {
                Ok(expired) => {
                    count += expired.len() as u64;
                    lines.extend(expired.iter().map(|pin| pin_sentence(run_id, &pin.name, dry_run)));
                }
                Err(error) => lines.push(format!("run {run_id}: {error}")),
            }
        }
    }
    Ok(DutyReport { counts: vec![(DutyAction::PinsRemoved, count)], lines })
}

fn pin_sentence(run_id: RunId, name: &str, dry_run: bool) -> String {
    match dry_run {
        true => format!("run {run_id}: the pin `{name}` would be taken away: its time is over"),
        false => format!("run {run_id}: the pin `{name}` was taken away: its time is over"),
    }
}

fn end_pins_of(context: &Context, run_id: RunId, dry_run: bool) -> Result<Vec<PinInfo>, AppError> {
    let of_run = checkpoints(context, run_id)?;
    let expired = of_run.end_expired_pins(true)?;
    if dry_run || expired.is_empty() {
        return Ok(expired);
    }
    for pin in &expired {
        let message = format!("the pin `{}` has ended", pin.name);
        let event = pin_expired(run_id, pin, context.clock.now(), message);
        context.ledger_write(|ledger| ledger.append_event(&event))?;
    }
    // After their events: a tick that was killed in between is repeated by the next one.
    of_run.end_expired_pins(false)?;
    of_run.mirror(context)?;
    Ok(expired)
}

/// The event of a pin whose time is over: the same again at each look.
fn pin_expired(run_id: RunId, pin: &PinInfo, now: Timestamp, message: String) -> EventRow {
    let (kind, until) = (EventKind::PinExpired, pin.until.clone().unwrap_or_default());
    let at = until.parse().unwrap_or(now);
    EventRow {
        event_id: format!("{run_id}:{kind}:{}:{until}", pin.name),
        fields_json: Some(serde_json::json!({ "pin": pin.name, "until": until })),
        source: SOURCE.into(),
        ..EventRow::of_run(run_id, kind, at, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(id: &str, expires_micros: i64) -> ApprovalRow {
        let at = Timestamp::from_micros;
        ApprovalRow {
            approval_id: id.into(),
            model: "income".into(),
            version: 3,
            digest: "d".into(),
            gate_receipt_id: "g".into(),
            approver: "ana".into(),
            at: at(1),
            expires_at: at(expires_micros),
            why: None,
        }
    }

    /// Proves that the duties of a home are the same by whatever path it is reached, and those of another home that is
    /// at the same path, as on another machine, are others.
    #[test]
    fn a_home_is_known_by_its_inode() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link, old] = ["home", "link", "old"].map(|name| folder.path().join(name));
        let of = |path: &std::path::Path| subject(&Home::new(path.to_owned(), None));
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let first = of(&path);
        assert_eq!(of(&link), first);
        assert_eq!(of(&path.join("../home")), first);
        std::fs::rename(&path, &old).unwrap();
        std::fs::create_dir(&path).unwrap();
        let second = of(&path);
        assert!(second.id != first.id && of(&old).id != second.id, "{first} {second}");
        assert!(second.id.starts_with("local:/"), "{second}");
    }

    /// Proves that each action of a duty has a count, whether it was done to something or not, and that what was done
    /// is counted and not what is said of it.
    #[test]
    fn each_action_is_counted() {
        let counts = counts_of(DutyName::Prune, &[(DutyAction::NoticesRemoved, 3)]);
        let counts: Vec<_> = counts.iter().map(|one| (one.action.as_str(), one.count)).collect();
        assert_eq!(counts, [("changes_removed", 0), ("notices_removed", 3), ("copies_removed", 0)]);
        let actions = DutyName::ALL.iter().flat_map(|name| name.actions());
        assert_eq!(actions.count(), DutyAction::ALL.len());
    }

    /// Proves that an approval whose time is over becomes an event of its model, once, and that others become none.
    #[test]
    fn an_approval_ends_once() {
        let approvals = [approval("a", 10), approval("b", 11)];
        let now = Timestamp::from_micros(10);
        let first = ended(&approvals, &[], now);
        assert_eq!(first.len(), 1);
        assert_eq!((first[0].event_id.as_str(), first[0].at), ("a:approval_expired", now));
        assert_eq!(first[0].message, "the approval of version 3 by ana has ended");
        assert_eq!(ended(&approvals, &first, now), []);
    }

    /// Proves that the event of a pin is the same at each look, so that a tick which was killed after it is repeated.
    #[test]
    fn a_pin_ends_once() {
        let run_id: RunId = "run_00000000000000000000000001".parse().unwrap();
        let pin = PinInfo {
            name: "eval".into(),
            commit: 7,
            why: "eval-7 reads it".into(),
            until: Some("2026-01-02T03:04:05Z".into()),
            at: "2026-01-01T00:00:00Z".into(),
        };
        let event = |now: i64| pin_expired(run_id, &pin, Timestamp::from_micros(now), "it ended".into());
        assert_eq!(event(1), event(2));
        assert_eq!(event(1).at, "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap());
    }
}
