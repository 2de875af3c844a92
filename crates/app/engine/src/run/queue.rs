//! Waiting for a place in a queue: of each queue at most so many runs of a home run at once on a host (`docs/unattended.md`).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use trackway_api::runs::watch::QueuedRun;
use trackway_core::{Clock as _, RunId, text};
use trackway_formats::EventKind;
use trackway_formats::queue::QueueName;
use trackway_formats::runfile::SigtermMeaning;
use trackway_ledger::{EventRow, RunRow, RunState};

use super::places::{Places, QueuePlace, Ticket, Turn, at_most};
use super::prepare::Prepared;
use crate::Context;
use crate::error::AppError;
use crate::reporter::{Notice, QueueWait, Reporter};

/// How long a process that waits sleeps before it looks again.
const LOOK_SECONDS: f64 = 0.25;
/// How often it says that it waits.
const NOTICE_SECONDS: f64 = 1.0;

/// A run that waits for its place now, as another process sees it; none: it does not wait. `events`: those of the run.
#[must_use]
pub fn waits(context: &Context, events: &[EventRow]) -> Option<QueueWait> {
    let kinds = [EventKind::QueueJoined, EventKind::QueuePlaceTaken, EventKind::QueueLeft];
    let of_queue = events.iter().filter(|event| kinds.iter().any(|kind| kind.is(&event.kind)));
    let last =
        of_queue.max_by_key(|event| event.at).filter(|event| EventKind::QueueJoined.is(&event.kind))?;
    let queue: QueueName = last.field("queue")?.parse().ok()?;
    let running = places_of(context, &queue).running().ok().flatten().unwrap_or(0);
    let seconds = context.clock.now().seconds_since(last.at).max(0.0);
    Some(QueueWait { queue, running, seconds })
}

/// A wait, as documents have it.
#[must_use]
pub fn queued_run(QueueWait { queue, running, seconds }: QueueWait) -> QueuedRun {
    QueuedRun { name: queue.to_string(), running, waited_seconds: seconds }
}

/// Of these runs those that wait for a place in their queues.
///
/// # Errors
/// When the ledger cannot be read.
pub fn waiting_among(context: &Context, runs: &[RunRow]) -> Result<BTreeMap<RunId, QueueWait>, AppError> {
    let mut waiting = BTreeMap::new();
    for run in runs.iter().filter(|run| run.state == RunState::Waiting) {
        let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
        waiting.extend(waits(context, &events).map(|wait| (run.run_id, wait)));
    }
    Ok(waiting)
}

fn places_of(context: &Context, queue: &QueueName) -> Places {
    let host = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().replace('/', "_");
    let host = if host.is_empty() { "localhost" } else { host.as_str() };
    Places::in_folder(context.home.layout.queue(host, queue))
}

/// How a run got its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It has a place, or needs none.
    AtOnce,
    /// It has a place, and waited for it: what was captured before may be out of date.
    AfterWait,
    /// It has to end without one, since a stop was requested or its terminal is gone.
    Left,
}

/// Waits until the run has a place in its queue, where it has a queue and no place yet.
///
/// # Errors
/// When the files of the queue cannot be locked, or the ledger cannot be written.
pub fn admit(context: &Context, prepared: &Prepared, reporter: &dyn Reporter) -> Result<Admission, AppError> {
    let Some(queue) = &prepared.job.queue else { return Ok(Admission::AtOnce) };
    if prepared.place.place().is_some() {
        return Ok(Admission::AtOnce);
    }
    let (place, admission) = Wait::begin(context, queue).until_place(prepared, reporter)?;
    *prepared.place.place() = place;
    if admission == Admission::Left {
        left(context, prepared, queue, reporter)?;
    }
    Ok(admission)
}

/// Names the folder of the attempt that runs in the place of its run, so that it holds the place too while it lives.
pub(super) fn hold_for(prepared: &Prepared, attempt: &Path, reporter: &dyn Reporter) {
    let mut held = prepared.place.place();
    let attempt = std::path::absolute(attempt).unwrap_or_else(|_| attempt.to_owned());
    let Some(Err(error)) = held.as_mut().map(|place| place.hold_for(&attempt)) else { return };
    reporter.note(format!(
        "if this supervisor ends before its script, the place in the queue is free at once: {error}"
    ));
}

/// A process in the line of a queue.
struct Wait<'c> {
    context: &'c Context,
    queue: &'c QueueName,
    places: Places,
    began_micros: i64,
}

impl<'c> Wait<'c> {
    fn begin(context: &'c Context, queue: &'c QueueName) -> Self {
        Self {
            context,
            queue,
            places: places_of(context, queue),
            began_micros: context.clock.monotonic_micros(),
        }
    }

    /// The next turn of a ticket; without one this joins the line.
    fn turn(&self, ticket: Option<Ticket>) -> Result<Turn, AppError> {
        let at_most = at_most(self.context, self.queue);
        let turn = match ticket {
            Some(ticket) => self.places.turn(ticket, at_most),
            None => self.places.join(at_most),
        };
        turn.map_err(|error| cannot_wait(self.queue, &error))
    }

    fn seconds(&self) -> f64 {
        (self.context.clock.monotonic_micros() - self.began_micros) as f64 / 1e6
    }

    /// The place, and how the run got it.
    fn until_place(
        &self,
        prepared: &Prepared,
        reporter: &dyn Reporter,
    ) -> Result<(Option<QueuePlace>, Admission), AppError> {
        let run_id = prepared.run.run_id;
        let files = self.context.home.layout.run(run_id);
        let cancel = &self.context.request.cancel;
        let is_over = || files.stop().exists() || cancel.is_detached();
        let (mut running, mut next_notice) = (0, 0.0);
        let mut held = None;
        loop {
            let joined = held.is_some();
            match self.turn(held.take())? {
                Turn::Place(place) => {
                    self.record_place(run_id, joined)?;
                    return Ok(match joined {
                        false => (Some(place), Admission::AtOnce),
                        // A stop may have been requested since the last look: while the run waited, nothing else reads it.
                        true if !self.context.wait(0.0, is_over) => (None, Admission::Left),
                        true => (Some(place), Admission::AfterWait),
                    });
                }
                Turn::Waits { ticket, running: taken } => {
                    held = Some(ticket);
                    running = taken.unwrap_or(running);
                }
            }
            if !joined {
                self.record_joined(run_id, running)?;
            }
            let seconds = self.seconds();
            if seconds >= next_notice {
                next_notice = seconds + NOTICE_SECONDS;
                let queue = self.queue.clone();
                reporter.notice(&Notice::Queued(QueueWait { queue, running, seconds }));
            }
            if !self.context.wait(LOOK_SECONDS, is_over) {
                return Ok((None, Admission::Left));
            }
        }
    }

    fn record_joined(&self, run_id: RunId, running: u32) -> Result<(), AppError> {
        let at_most = at_most(self.context, self.queue);
        let message = format!("waits for a place in queue {}: {running} of {at_most} are taken", self.queue);
        let fields = json!({ "queue": self.queue, "at_most": at_most, "running": running });
        record(self.context, run_id, EventKind::QueueJoined, message, fields)?;
        self.context.set_run_state(run_id, RunState::Waiting)
    }

    fn record_place(&self, run_id: RunId, joined: bool) -> Result<(), AppError> {
        let seconds = if joined { self.seconds() } else { 0.0 };
        let message = match joined {
            true => format!("got a place in queue {} after {}", self.queue, text::duration(seconds)),
            false => format!("got a place in queue {} at once", self.queue),
        };
        let fields = json!({ "queue": self.queue, "seconds": seconds });
        record(self.context, run_id, EventKind::QueuePlaceTaken, message, fields)?;
        match joined {
            // What a stop is for is not there yet.
            true => self.context.set_run_state(run_id, RunState::Planned),
            false => Ok(()),
        }
    }
}

fn record(
    context: &Context,
    run_id: RunId,
    kind: EventKind,
    message: String,
    fields: serde_json::Value,
) -> Result<(), AppError> {
    let at = context.clock.now();
    let event = EventRow {
        // A run that is resumed waits again.
        event_id: format!("{run_id}:{kind}:{}", at.as_micros()),
        fields_json: Some(fields),
        ..EventRow::of_run(run_id, kind, at, message)
    };
    context.ledger_write(|ledger| ledger.append_event(&event)).map(|_| ())
}

/// A run that ends without a place is stopped, unless it is only to continue later: its terminal is gone, or its machine is taken away.
fn left(
    context: &Context,
    prepared: &Prepared,
    queue: &QueueName,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let run_id = prepared.run.run_id;
    let cancel = &context.request.cancel;
    let asked = context.home.layout.run(run_id).stop();
    let is_stopped = asked.exists() || cancel.stop_requests() > 0;
    let is_preempted = prepared.job.plan.supervise.sigterm == SigtermMeaning::Preempted
        && !asked.exists()
        && !cancel.is_interrupt();
    if !is_stopped || is_preempted {
        reporter.note(format!("left queue {queue}: `trackway resume {run_id}` waits in it again"));
        return Ok(());
    }
    let _ = trackway_files::unlink(&asked);
    record_left(context, run_id, queue)?;
    context.set_run_state(run_id, RunState::Stopped)?;
    reporter.note(format!("stopped while waiting for queue {queue}"));
    Ok(())
}

/// Writes down that a run was stopped while it waited for a place.
///
/// # Errors
/// When the ledger cannot be written.
pub(crate) fn record_left(context: &Context, run_id: RunId, queue: &QueueName) -> Result<(), AppError> {
    let message = format!("stopped while it waited for a place in queue {queue}");
    record(context, run_id, EventKind::QueueLeft, message, json!({ "queue": queue }))
}

fn cannot_wait(queue: &QueueName, error: &std::io::Error) -> AppError {
    AppError::fault(format!("queue {queue}: its places cannot be locked"), error)
        .hint("queues need a home on a file system with locks; without --queue the run starts at once")
}
