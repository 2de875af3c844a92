//! Waiting for a place in a queue: of each queue at most so many runs of a home run at once on a host (`docs/unattended.md`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use trackway_api::runs::watch::QueuedRun;
use trackway_core::{Clock as _, RunId, Timestamp, text};
use trackway_formats::EventKind;
use trackway_formats::queue::QueueName;
use trackway_formats::runfile::SigtermMeaning;
use trackway_ledger::{EventRow, RunRow, RunState};

use super::locks::places::{Line, Places, QueuePlace, Ticket, Turn, at_most};
use super::locks::supervision::{lacks_supervisor, needs_supervisor};
use super::prepare::begin::Prepared;
use super::prepare::shared_paths::names_what_is_live;
use super::resume::spent::resume_refused_by_budget;
use crate::Context;
use crate::error::AppError;
use crate::reporter::{Notice, Reporter};

/// How long a process that waits sleeps before it looks again.
const LOOK_SECONDS: f64 = 0.25;
/// How often it says that it waits.
const NOTICE_SECONDS: f64 = 1.0;
/// The limit that keeps runs apart which have the same checkpoints.
const ONE_AT_ONCE: u32 = 1;
/// The field of `queue_joined` that says whether only that limit holds for the run.
const TAKES_TURNS: &str = "takes_turns";

/// How a run waits that does not run, as every view of it shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waiting {
    /// Its wait for a place in its queue; none: it does not wait for one.
    pub queue: Option<QueuedRun>,
    /// Whether nothing happens to it before it is resumed, since no process supervises it.
    pub unsupervised: bool,
    /// Why a resume is refused of one that no process supervises.
    pub resume_refused: Option<String>,
}

/// How a run waits; of one that does not, neither.
///
/// # Errors
/// When the ledger cannot be read.
pub fn waiting(context: &Context, run: &RunRow) -> Result<Waiting, AppError> {
    let mut waiting = waiting_among(context, std::slice::from_ref(run))?;
    Ok(waiting.remove(&run.run_id).unwrap_or_default())
}

/// Of these runs those that wait. However many there are, each queue is looked at once.
///
/// # Errors
/// When the ledger cannot be read.
pub fn waiting_among(context: &Context, runs: &[RunRow]) -> Result<BTreeMap<RunId, Waiting>, AppError> {
    let mut lines = Lines::new();
    let mut waiting = BTreeMap::new();
    for run in runs.iter().filter(|run| needs_supervisor(run)) {
        let queue = match run.state {
            RunState::Waiting => wait_of(context, run.run_id, &mut lines)?,
            _ => None,
        };
        let unsupervised = lacks_supervisor(context, run)?;
        let resume_refused = if unsupervised { resume_refused(context, run)? } else { None };
        waiting.insert(run.run_id, Waiting { queue, unsupervised, resume_refused });
    }
    Ok(waiting)
}

/// Why a resume of a run is refused, as far as that is known.
fn resume_refused(context: &Context, run: &RunRow) -> Result<Option<String>, AppError> {
    let last = context.last_attempt_of(run.run_id)?;
    // Limits that cannot be read are not known to be spent.
    let refused = resume_refused_by_budget(context, run, last.as_ref()).ok().flatten();
    Ok(refused.map(|error| error.to_string()))
}

/// The limits of queues and who is in them; none: a queue that cannot be looked at.
type Lines = BTreeMap<QueueName, (u32, Option<Line>)>;

/// The wait of a run for its place. `lines`: the queues that were looked at already.
fn wait_of(context: &Context, run_id: RunId, lines: &mut Lines) -> Result<Option<QueuedRun>, AppError> {
    let events = context.ledger_read(|ledger| ledger.events_of_run(run_id))?;
    let Some((queue, since)) = joined(&events) else { return Ok(None) };
    let seconds = context.clock.now().seconds_since(since).max(0.0);
    let look = || (at_most(context, &queue), places_of(context, &queue).line().ok().flatten());
    let (limit, line) = lines.entry(queue.clone()).or_insert_with(look);
    let at_most = if takes_turns(&events) { ONE_AT_ONCE } else { *limit };
    Ok(Some(queued_run((&queue, at_most), line.as_ref(), run_id, seconds)))
}

/// The queue that a run waits in, and since when; none: it waits in none. `events`: those of the run.
pub(crate) fn joined(events: &[EventRow]) -> Option<(QueueName, Timestamp)> {
    let last = last_joined(events)?;
    Some((last.field("queue")?.parse().ok()?, last.at))
}

/// The event with which the wait of a run began that lasts.
fn last_joined(events: &[EventRow]) -> Option<&EventRow> {
    last_of_queue(events).filter(|event| EventKind::QueueJoined.is(&event.kind))
}

/// The newest event of a run in its queue.
fn last_of_queue(events: &[EventRow]) -> Option<&EventRow> {
    let kinds = [EventKind::QueueJoined, EventKind::QueuePlaceTaken, EventKind::QueueLeft];
    let of_queue = events.iter().filter(|event| kinds.iter().any(|kind| kind.is(&event.kind)));
    of_queue.max_by_key(|event| event.at)
}

/// Whether a run waits for all others of its queue, whatever its limit is now.
fn takes_turns(events: &[EventRow]) -> bool {
    let fields = last_joined(events).and_then(|event| event.fields_json.as_ref());
    fields.and_then(|fields| fields.get(TAKES_TURNS)?.as_bool()).unwrap_or(false)
}

/// A wait, as documents have it. `line`: the queue on this host; none: it cannot be looked at.
fn queued_run(
    (queue, at_most): (&QueueName, u32),
    line: Option<&Line>,
    run_id: RunId,
    waited_seconds: f64,
) -> QueuedRun {
    // A run that is not in the line may wait on another host, whose places are not seen from here.
    let here = line.and_then(|line| Some((line, line.place_of(run_id)?)));
    QueuedRun {
        name: queue.to_string(),
        at_most,
        running: here.map(|(line, _)| line.running),
        place: here.map(|(_, place)| place),
        waiting: here.and_then(|(line, _)| u32::try_from(line.waiting.len()).ok()),
        waited_seconds,
    }
}

fn places_of(context: &Context, queue: &QueueName) -> Places {
    Places::in_folder(folder_of(context, queue))
}

fn folder_of(context: &Context, queue: &QueueName) -> PathBuf {
    let host = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().replace('/', "_");
    let host = if host.is_empty() { "localhost" } else { host.as_str() };
    context.home.layout.queue(host, queue)
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
    /// Whether it waits for all others: a live run has the same checkpoints, and both began since one runs at once.
    takes_turns: bool,
}

impl<'c> Wait<'c> {
    fn begin(context: &'c Context, queue: &'c QueueName) -> Self {
        Self {
            context,
            queue,
            places: places_of(context, queue),
            began_micros: context.clock.monotonic_micros(),
            takes_turns: false,
        }
    }

    /// How many run at once for this run to be one of them. The limit may change while it waits.
    fn at_most(&self) -> u32 {
        if self.takes_turns { ONE_AT_ONCE } else { at_most(self.context, self.queue) }
    }

    /// The next turn of a ticket; without one this joins the line.
    fn turn(&self, run_id: RunId, ticket: Option<Ticket>) -> Result<Turn, AppError> {
        let at_most = self.at_most();
        let turn = match ticket {
            Some(ticket) => self.places.turn(ticket, at_most),
            None => self.places.join(run_id, at_most),
        };
        turn.map_err(|error| cannot_wait(self.queue, error))
    }

    /// Whether the history of a run ends with a place in this queue, after which no attempt has ended.
    fn has_had_place(&self, run_id: RunId) -> Result<bool, AppError> {
        let events = self.context.ledger_read(|ledger| ledger.events_of_run(run_id))?;
        let ended_at = self.context.last_attempt_of(run_id)?.and_then(|last| last.ended_at);
        Ok(last_of_queue(&events).is_some_and(|last| {
            let is_of_queue = last.field("queue").is_some_and(|queue| queue == self.queue.to_string());
            let is_after = ended_at.is_none_or(|ended_at| last.at >= ended_at);
            is_of_queue && is_after && EventKind::QueuePlaceTaken.is(&last.kind)
        }))
    }

    fn seconds(&self) -> f64 {
        (self.context.clock.monotonic_micros() - self.began_micros) as f64 / 1e6
    }

    /// The place, and how the run got it.
    fn until_place(
        &mut self,
        prepared: &Prepared,
        reporter: &dyn Reporter,
    ) -> Result<(Option<QueuePlace>, Admission), AppError> {
        let run_id = prepared.run.run_id;
        let context = self.context;
        let files = context.home.layout.run(run_id);
        let cancel = &context.request.cancel;
        let is_over = || files.stop().exists() || cancel.is_detached();
        // The limit may have been raised since the run was let in.
        self.takes_turns = names_what_is_live(context, &prepared.job, run_id)?;
        let mut next_notice = 0.0;
        let mut held = None;
        loop {
            let joined = held.is_some();
            match self.turn(run_id, held.take())? {
                Turn::Place(place) => {
                    self.record_place(run_id, joined)?;
                    return Ok(match joined {
                        false => (Some(place), Admission::AtOnce),
                        // A stop may have been requested since the last look: while the run waited, nothing else reads it.
                        true if !context.wait(0.0, is_over) => (None, Admission::Left),
                        true => (Some(place), Admission::AfterWait),
                    });
                }
                Turn::Waits { ticket, running } => {
                    held = Some(ticket);
                    if !joined {
                        self.come(prepared, running)?;
                    }
                }
            }
            let seconds = self.seconds();
            if seconds >= next_notice {
                next_notice = seconds + NOTICE_SECONDS;
                reporter.notice(&Notice::Queued(self.as_seen(run_id, seconds)));
            }
            if !context.wait(LOOK_SECONDS, is_over) {
                return Ok((None, Admission::Left));
            }
        }
    }

    /// The wait as it is shown while it lasts.
    fn as_seen(&self, run_id: RunId, seconds: f64) -> QueuedRun {
        let line = self.places.line().ok().flatten();
        queued_run((self.queue, self.at_most()), line.as_ref(), run_id, seconds)
    }

    /// Begins the wait of a run that is in the line by now: of two that come at once, the later one sees the other.
    fn come(&mut self, prepared: &Prepared, running: Option<u32>) -> Result<(), AppError> {
        let run_id = prepared.run.run_id;
        self.takes_turns = names_what_is_live(self.context, &prepared.job, run_id)?;
        self.record_joined(run_id, running)
    }

    /// `running`: how many places are taken; none: that is not known.
    fn record_joined(&self, run_id: RunId, running: Option<u32>) -> Result<(), AppError> {
        let at_most = self.at_most();
        let taken = running.map(|running| format!(": {running} of {at_most} are taken")).unwrap_or_default();
        let message = format!("waits for a place in queue {}{taken}", self.queue);
        let fields = json!({
            "queue": self.queue, "at_most": at_most, "running": running, TAKES_TURNS: self.takes_turns,
        });
        // Before the state: views find the queue of a run that waits by this event.
        record(self.context, run_id, EventKind::QueueJoined, message, fields)?;
        self.context.set_run_state(run_id, RunState::Waiting)
    }

    /// `joined`: whether it came into the line before. A place that it gets at once is a change only where its history
    /// does not end with such a place: a supervisor that launched nothing left it as it was.
    fn record_place(&self, run_id: RunId, joined: bool) -> Result<(), AppError> {
        if !joined && self.has_had_place(run_id)? {
            return Ok(());
        }
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
    context.append_run_event(&event)
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
    // It is carried out: left there, it would end the next wait at once.
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

fn cannot_wait(queue: &QueueName, error: std::io::Error) -> AppError {
    AppError::fault(format!("queue {queue}: its places cannot be locked"), error)
        .hint("queues need a home on a file system with locks; without --queue the run starts at once")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use trackway_files::FolderLock;
    use trackway_formats::layout::RowCopy;
    use trackway_ledger::Ledger;
    use trackway_system::SystemClock;

    use super::*;
    use crate::row_copies;
    use crate::testing::{SETTLES, World};

    /// Proves that a list of many runs which wait looks once at their queue, though others look at it for long, and
    /// that what it does not see then is not known, rather than none.
    #[test]
    fn a_list_looks_at_a_queue_once() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let queue: QueueName = "gpu".parse().unwrap();
        let waits = |_| {
            let prepared = world.begun(&context, "true", "");
            Wait::begin(&context, &queue).record_joined(prepared.run.run_id, None).unwrap();
            context.run_by_id(prepared.run.run_id).unwrap()
        };
        let runs: Vec<RunRow> = (0..5).map(waits).collect();
        let queue_folder = folder_of(&context, &queue);
        std::fs::create_dir_all(&queue_folder).unwrap();
        let turn = FolderLock::take(&queue_folder, "turn.lock", 1).unwrap();
        let began_micros = SystemClock.monotonic_micros();
        let waiting = waiting_among(&context, &runs).unwrap();
        let seconds = (SystemClock.monotonic_micros() - began_micros) as f64 / 1e6;
        assert!(seconds < 4.0, "a look at a queue that others look at takes a second: {seconds} s");
        assert_eq!(waiting.len(), runs.len());
        for Waiting { queue, unsupervised, .. } in waiting.into_values() {
            let queue = queue.unwrap();
            assert_eq!((queue.running, queue.place, queue.waiting), (None, None, None));
            assert!(unsupervised, "its process has ended");
        }
        drop(turn);
    }

    /// Proves that what happened to a run in its queue is kept in its folder, from which another ledger gets it.
    #[test]
    fn what_happened_in_a_queue_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let queue: QueueName = "gpu".parse().unwrap();
        let prepared = world.begun(&context, "true", "");
        let run_id = prepared.run.run_id;
        let wait = Wait::begin(&context, &queue);
        wait.record_joined(run_id, Some(1)).unwrap();
        wait.record_place(run_id, true).unwrap();
        record_left(&context, run_id, &queue).unwrap();
        let rebuilt = Ledger::open(folder.path().join("rebuilt.db").to_str().unwrap()).unwrap();
        let files = context.home.layout.run(run_id);
        // Events come after their run.
        let copies = row_copies::files(&files.row_copies());
        for path in std::iter::once(files.row_copy(RowCopy::Run)).chain(copies) {
            rebuilt.restore(&row_copies::read(&path).unwrap()).unwrap();
        }
        let events = rebuilt.events_of_run(run_id).unwrap();
        assert_eq!(events, context.ledger.events_of_run(run_id).unwrap());
        let mut kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["queue_joined", "queue_left", "queue_place_taken"]);
    }

    /// Proves that a place which a run gets at once again, since nothing was launched in it, adds nothing to its history, and
    /// that one which it waited for does.
    #[test]
    fn a_place_is_written_down_once() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let queue: QueueName = "gpu".parse().unwrap();
        let run_id = world.begun(&context, "true", "").run.run_id;
        let wait = Wait::begin(&context, &queue);
        for (joined, expected) in [(false, 1), (false, 1), (true, 2), (false, 2)] {
            world.clock.advance_micros(1_000_000);
            wait.record_place(run_id, joined).unwrap();
            let events = context.ledger_read(|ledger| ledger.events_of_run(run_id)).unwrap();
            let places = events.iter().filter(|event| EventKind::QueuePlaceTaken.is(&event.kind));
            assert_eq!(places.count(), expected, "{events:?}");
        }
    }

    /// Proves that a run which waits gets a place once the setting lets one more run, that every view shows that limit, and
    /// that after the setting was lowered no run begins before fewer run.
    #[test]
    fn a_wait_has_the_limit_of_now() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let queue: QueueName = "gpu".parse().unwrap();
        let wait = Wait::begin(&context, &queue);
        let run = |number: u32| format!("run_0000000000000000000000000{number}").parse::<RunId>().unwrap();
        let place = |turn: Turn| match turn {
            Turn::Place(place) => place,
            Turn::Waits { .. } => panic!("it waits"),
        };
        let waits = |turn: Turn| match turn {
            Turn::Waits { ticket, .. } => ticket,
            Turn::Place(_) => panic!("it has a place"),
        };
        let first = place(wait.turn(run(1), None).unwrap());
        let second = waits(wait.turn(run(2), None).unwrap());
        assert_eq!(wait.as_seen(run(2), 1.0).at_most, 1);
        world.gpu_runs.store(2, Ordering::Relaxed);
        assert_eq!(wait.as_seen(run(2), 1.0).at_most, 2);
        let second = place(wait.turn(run(2), Some(second)).unwrap());
        world.gpu_runs.store(1, Ordering::Relaxed);
        let third = waits(wait.turn(run(3), None).unwrap());
        drop(first);
        let third = waits(wait.turn(run(3), Some(third)).unwrap());
        drop(second);
        place(wait.turn(run(3), Some(third)).unwrap());
    }

    /// A run that begins in the queue `gpu`, with the patterns of its checkpoints.
    fn begun_in_queue(world: &World, context: &Context, adopt: &str) -> Prepared {
        let adopt = format!("[checkpoint]\nadopt = [\"{adopt}\"]\n");
        world.begun_in(Some("gpu".parse().unwrap()), context, "true", &adopt)
    }

    /// Proves that a limit which is raised between the beginning of a run and its first look at the queue does not let
    /// it run beside one that has the same checkpoints.
    #[test]
    fn the_same_checkpoints_take_turns_from_the_first_look() {
        for (adopt, expected) in [("a/*.pt", Admission::Left), ("b/*.pt", Admission::AtOnce)] {
            let folder = tempfile::tempdir().unwrap();
            let world = World::new(folder.path(), SETTLES);
            let context = world.context();
            let (first, second) =
                (begun_in_queue(&world, &context, "a/*.pt"), begun_in_queue(&world, &context, adopt));
            assert_eq!(admit(&context, &first, &world.notes).unwrap(), Admission::AtOnce);
            world.gpu_runs.store(2, Ordering::Relaxed);
            // A run that has to wait leaves its queue at once.
            world.cancel.detach();
            assert_eq!(admit(&context, &second, &world.notes).unwrap(), expected, "{adopt}");
        }
    }

    /// Proves that a raised limit does not let a run begin beside one that has the same checkpoints, and that views show
    /// what holds for it.
    #[test]
    fn the_same_checkpoints_take_turns() {
        for (adopt, expected) in [("a/*.pt", 1), ("b/*.pt", 2)] {
            let folder = tempfile::tempdir().unwrap();
            let world = World::new(folder.path(), SETTLES);
            let context = world.context();
            let queue: QueueName = "gpu".parse().unwrap();
            let begun = |adopt: &str| begun_in_queue(&world, &context, adopt);
            let (first, second) = (begun("a/*.pt"), begun(adopt));
            let mut wait = Wait::begin(&context, &queue);
            let Turn::Place(_place) = wait.turn(first.run.run_id, None).unwrap() else { panic!("{adopt}") };
            let run_id = second.run.run_id;
            let Turn::Waits { ticket, running } = wait.turn(run_id, None).unwrap() else { panic!("{adopt}") };
            wait.come(&second, running).unwrap();
            world.gpu_runs.store(2, Ordering::Relaxed);
            let seen = waiting(&context, &context.run_by_id(run_id).unwrap()).unwrap().queue.unwrap();
            assert_eq!((seen.at_most, wait.as_seen(run_id, 1.0).at_most), (expected, expected), "{adopt}");
            let waits = matches!(wait.turn(run_id, Some(ticket)).unwrap(), Turn::Waits { .. });
            assert_eq!(waits, expected == 1, "{adopt}");
        }
    }

    /// Proves that a run has a place and the queue has numbers only where the run is in the line on this host.
    #[test]
    fn what_is_not_seen_is_not_known() {
        let [here, elsewhere] = [1, 2].map(|number| format!("run_0000000000000000000000000{number}"));
        let (here, elsewhere): (RunId, RunId) = (here.parse().unwrap(), elsewhere.parse().unwrap());
        let queue: QueueName = "gpu".parse().unwrap();
        let line = Line { running: 1, waiting: vec![None, Some(here)] };
        let of = |line, run_id| {
            let wait = queued_run((&queue, 1), line, run_id, 3.0);
            (wait.running, wait.place, wait.waiting)
        };
        assert_eq!(of(Some(&line), here), (Some(1), Some(2), Some(2)));
        assert_eq!(of(Some(&line), elsewhere), (None, None, None));
        assert_eq!(of(None, here), (None, None, None));
    }
}
