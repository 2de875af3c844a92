//! The whole run loop on a manual clock: a real ledger, real scripts on the fake engine, and no waiting.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use trackway_api::runs::RunOutcome;
use trackway_core::{Clock as _, LaunchKind, RunId, TerminationReason};
use trackway_formats::EventKind;
use trackway_formats::layout::{AttemptLayout, Entry, HomeLayout, RowCopyKind, RunLayout};
use trackway_formats::runfile::{PlanEntry, PlanPatch};
use trackway_launch::conformance::Faults as _;
use trackway_launch::{Accelerators, EngineState, Offer};
use trackway_ledger::conformance::rows_read;
use trackway_ledger::{AttemptRow, AttemptState, RetryRow, RunFilter, RunState};

use super::job::unmet;
use super::{RunSource, begin, drive, read, reopen};
use crate::Context;
use crate::error::ErrorKind;
use crate::home::Home;
use crate::reporter::{Notice, Reporter};
use crate::testing::{NAMED_ENGINE, NEW_YEAR_MICROS, SETTLES, World};

/// A separate home, engine and clock.
struct Trial {
    world: World,
    _folder: tempfile::TempDir,
}

impl std::ops::Deref for Trial {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Trial {
    fn new(settles: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { world: World::new(folder.path(), settles), _folder: folder }
    }

    /// Runs a script to the end of its run.
    fn run(&self, script: &str, more: &str) -> Finished {
        let context = self.context();
        let outcome = self.world.run(&context, script, more);
        let run_id = outcome.run_id;
        Finished {
            outcome,
            attempts: context.attempts_of(run_id).unwrap(),
            retries: context.ledger_read(|ledger| ledger.retries_of_run(run_id)).unwrap(),
        }
    }
}

struct Finished {
    outcome: RunOutcome,
    attempts: Vec<AttemptRow>,
    retries: Vec<RetryRow>,
}

impl Finished {
    fn reasons(&self) -> Vec<TerminationReason> {
        self.attempts.iter().filter_map(|attempt| attempt.termination_reason).collect()
    }

    /// Seconds between the end of an attempt and the launch of the next one.
    fn pauses(&self) -> Vec<f64> {
        let pairs = self.attempts.iter().zip(self.attempts.iter().skip(1));
        pairs.map(|(one, next)| next.started_at.unwrap().seconds_since(one.ended_at.unwrap())).collect()
    }
}

/// A script that fails as a network does, so often, and then ends well.
fn fails(times: u32) -> String {
    format!(
        "echo x >> tries; n=$(wc -l < tries); [ \"$n\" -gt {times} ] && exit 0; \
         echo 'requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded' >&2; exit 1"
    )
}

/// Proves that failures which pass by are retried after the pauses that were decided, by the clock that the loop was given, and that
/// the run completes.
#[test]
fn retries_wait_by_the_clock() {
    let world = Trial::new(SETTLES);
    let done = world.run(&fails(3), "[retry]\nnetwork_error = { attempts = 9, backoff = \"10m..2h\" }\n");
    assert_eq!(done.outcome.state.as_str(), "completed");
    assert_eq!(done.attempts.len(), 4, "{:?}", done.reasons());
    assert_eq!(done.reasons()[..3], [TerminationReason::NetworkError; 3]);
    let decided: Vec<f64> = done.retries.iter().filter_map(|retry| retry.delay_seconds).collect();
    assert_eq!(decided.len(), 3);
    for (pause, decided) in done.pauses().into_iter().zip(decided) {
        assert!(decided >= 300.0, "{decided}");
        assert!((decided..decided + 60.0).contains(&pause), "{pause} s instead of {decided}");
    }
}

/// Counts the rows that are read until each attempt starts. When attempt 12 has ended, 988 more are added behind it.
struct Counting<'c> {
    context: &'c Context,
    run_id: RunId,
    read: Mutex<BTreeMap<u32, u64>>,
}

impl Reporter for Counting<'_> {
    fn notice(&self, notice: &Notice) {
        match notice {
            Notice::AttemptStarted { attempt_number, .. } => {
                self.read.lock().unwrap().insert(*attempt_number, rows_read());
            }
            Notice::AttemptEnded { attempt_number: 12, .. } => {
                let run = self.context.run_by_id(self.run_id).unwrap();
                World::add_sealed(self.context, &run, 13..1001, |row| AttemptRow {
                    termination_reason: Some(match row.attempt_number % 2 {
                        0 => TerminationReason::StorageError,
                        _ => TerminationReason::NetworkError,
                    }),
                    ..row
                });
            }
            _ => {}
        }
    }
}

/// Proves that an attempt and the decision after it read as many rows of the ledger after a thousand attempts as after ten.
#[test]
fn an_attempt_reads_what_is_new() {
    let world = Trial::new(SETTLES);
    let context = world.context();
    // The reasons alternate: as often as here, the same one in a row would end the run.
    let script = "echo x >> tries; n=$(wc -l < tries); [ \"$n\" -gt 15 ] && exit 0; [ $((n % 2)) = 0 ] && \
                  { echo 'OSError: [Errno 5] Input/output error' >&2; exit 1; }; \
                  echo 'requests.exceptions.ConnectionError: Max retries exceeded' >&2; exit 1";
    let budget = "{ attempts = 5000, refill = \"never\" }";
    let more = format!("[retry]\nnetwork_error = {budget}\nstorage_error = {budget}\n");
    let source = RunSource::File { path: world.run_file(script, &more), patch: PlanPatch::default() };
    let start = read(&context, &source, false, &world.notes).unwrap();
    let prepared = begin(&context, &start, LaunchKind::Train, &world.notes).unwrap();
    let run_id = prepared.run.run_id;
    let counting = Counting { context: &context, run_id, read: Mutex::default() };
    let outcome = drive(&context, prepared, None, &counting).unwrap();
    let last = context.last_attempt_of(run_id).unwrap().unwrap();
    assert_eq!(
        (outcome.state.as_str(), last.attempt_number),
        ("completed", 1004),
        "{:?}",
        last.termination_reason
    );
    let read = counting.read.into_inner().unwrap();
    let between = |number: u32| read[&(number + 1)] - read[&number];
    let (early, late) = (between(10), between(1002));
    // The lease is read with each write, and how often progress is written depends on the machine.
    assert!(late < early + 30, "{early} rows at attempt 10, {late} at attempt 1002");
    assert!(
        between(1001) > 0 && read[&1001] - read[&12] > 900,
        "what another process added is read once: {read:?}"
    );
}

fn names_in(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// Proves that a run leaves only files in its home that the layout names.
#[test]
fn a_run_leaves_what_the_layout_names() {
    let world = Trial::new(SETTLES);
    let done = world.run("echo hello; exit 3", "");
    let home = world.context().home.layout.clone();
    let attempt = &done.attempts[0];
    let is_of = |entries: &[Entry], name: &str| entries.iter().any(|entry| entry.name == name);
    for name in names_in(home.folder()) {
        assert!(is_of(HomeLayout::ENTRIES, &name) || name.starts_with("ledger.db-"), "`{name}`");
    }
    for name in names_in(home.run(attempt.run_id).folder()) {
        assert!(is_of(RunLayout::ENTRIES, &name), "`{name}`");
    }
    for name in names_in(home.attempt(attempt.attempt_id).folder()) {
        assert!(is_of(AttemptLayout::ENTRIES, &name), "`{name}`");
    }
    for name in names_in(&home.run(attempt.run_id).row_copies()) {
        assert!(RowCopyKind::of_file(&name).is_some(), "`{name}`");
    }
}

/// Proves that a budget ends a run when it is spent, and that the receipts show it.
#[test]
fn a_spent_budget_ends_the_run() {
    let world = Trial::new(SETTLES);
    let done =
        world.run(&fails(u32::MAX), "[retry]\nnetwork_error = { attempts = 2, backoff = \"1m..1m\" }\n");
    assert_eq!(done.outcome.state.as_str(), "failed");
    assert_eq!(done.attempts.len(), 3, "the first one and two retries");
    let last = done.retries.last().unwrap();
    assert_eq!((last.budget_spent, last.budget_limit), (Some(2.0), Some(2.0)), "{}", last.why);
}

/// Proves that a run whose hours are spent is not launched again by a resume, also where its run file has more by now,
/// and that the refusal says so; before, each resume launched an attempt and ended it at once.
#[test]
fn a_resume_of_spent_hours_launches_nothing() {
    let world = Trial::new(Duration::from_millis(500));
    let (script, limit) = ("exec sleep 100000", |hours| format!("[retry]\nmax_hours = {hours}\n"));
    let done = world.run(script, &limit(2));
    assert_eq!(done.reasons(), [TerminationReason::BudgetExhausted]);
    let context = world.context();
    let refused = || {
        let run = context.run_by_id(done.outcome.run_id).unwrap();
        reopen(&context, &run, &world.notes).err().unwrap()
    };
    let spent = refused();
    assert_eq!(spent.kind, ErrorKind::Blocked);
    let spent = spent.to_string();
    assert!(spent.starts_with("run `a` cannot be resumed: 2"), "{spent}");
    assert!(spent.ends_with(" of 2 hours are spent (`retry.max_hours`)"), "{spent}");
    world.run_file(script, &limit(4));
    let kept = "; a resume keeps the settings of its run, and the run file has 4 now";
    assert_eq!(refused().to_string(), format!("{spent}{kept}"));
    assert_eq!(context.attempts_of(done.outcome.run_id).unwrap().len(), 1, "nothing was launched");
    let notes = world.notes.all();
    assert!(
        notes.iter().any(|note| note.contains("`retry.max_hours`: the remaining 2.00 hours are spent")),
        "{notes:?}"
    );
}

/// Proves that the time limit of an attempt is one of the clock: two hours pass without waiting, and the time in the queue does not count.
#[test]
fn a_time_limit_passes_by_the_clock() {
    let world = Trial::new(Duration::from_millis(500));
    world.engine.hold(720);
    let more = "[supervise]\ntimeout = \"2h\"\ngrace = \"5s\"\n[retry]\ntimeout = { attempts = 0 }\n";
    let done = world.run("exec sleep 100000", more);
    assert_eq!(done.reasons(), [TerminationReason::Timeout]);
    let seconds = world.clock.now().as_micros() - NEW_YEAR_MICROS;
    let hours = seconds as f64 / 3.6e9;
    assert!((3.9..4.5).contains(&hours), "two hours in the queue and two of running: {hours}");
}

/// Proves that an engine that does not answer for five minutes costs neither the attempt nor a retry.
#[test]
fn an_engine_that_is_away_costs_nothing() {
    let world = Trial::new(SETTLES);
    world.engine.hold(2);
    world.engine.hide(12);
    let done = world.run("exit 0", "");
    assert_eq!((done.outcome.state.as_str(), done.attempts.len()), ("completed", 1));
    let notes = world.notes.all();
    assert!(notes.iter().any(|note| note.contains("cannot be observed now")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("observed again")), "{notes:?}");
}

/// Proves that the words of an engine decide why an attempt ended, with their source, whether the exit of the process is on record or
/// not; that the run retries by that reason and completes; and that the words are kept in the attempt's folder.
#[test]
fn the_words_of_an_engine_are_evidence() {
    let states = [
        ("slurm", "OUT_OF_MEMORY", "", true, "slurm.out_of_memory", TerminationReason::HostOom),
        ("slurm", "NODE_FAIL", "NodeDown", false, "slurm.node_fail", TerminationReason::NodeFailure),
        ("kubernetes", "Evicted", "Preempted", false, "kubernetes.preempted", TerminationReason::Preempted),
    ];
    for (engine, state, reason, is_recorded, rule, found) in states {
        let world = Trial::new(SETTLES);
        let state = EngineState { engine: engine.into(), state: state.into(), reason: reason.into() };
        world.engine.end_next(3, state.clone(), is_recorded);
        let script = "[ -e again ] && exit 0; touch again; exec sleep 100000";
        let more = "[retry]\nhost_oom = { plan = [{ set = { WORKERS = \"1\" } }] }\n";
        let done = world.run(script, more);
        assert_eq!(
            (done.outcome.state.as_str(), done.attempts.len()),
            ("completed", 2),
            "{:?}",
            done.reasons()
        );
        let first = &done.attempts[0];
        assert_eq!((first.termination_rule.as_deref(), first.termination_reason), (Some(rule), Some(found)));
        let evidence = first.termination_evidence.as_ref().unwrap()[0].clone();
        assert_eq!(evidence["source"], "launcher");
        let text = format!("{engine} reports {} {reason}", state.state);
        assert_eq!(evidence["text"], text.trim_end());
        let files = world.context().home.layout.attempt(first.attempt_id);
        let kept: serde_json::Value =
            serde_json::from_slice(&std::fs::read(files.engine_json()).unwrap()).unwrap();
        assert_eq!((&kept["engine"], &kept["state"]), (&engine.into(), &state.state.as_str().into()));
    }
}

/// Proves that an entry of a retry plan changes the resources and machines that the next attempt requests and what its
/// receipt says it was given, and that an entry which the machine could not give is refused before anything is
/// launched.
#[test]
fn an_entry_of_a_plan_changes_resources() {
    let world = Trial::new(SETTLES);
    let state = EngineState { engine: "slurm".into(), state: "OUT_OF_MEMORY".into(), reason: String::new() };
    world.engine.end_next(3, state, true);
    let script = "[ -e again ] && exit 0; touch again; exec sleep 100000";
    let plan = "[resources]\ngpus = 1\nusd_per_gpu_hour = 2.0\n[retry]\n\
        host_oom = { plan = [{ resources = { memory = \"1MiB\", gpus = 2 }, placement = { exclude_hosts = [\"n17\"] } }] }\n";
    let done = world.run(script, plan);
    assert_eq!((done.outcome.state.as_str(), done.attempts.len()), ("completed", 2), "{:?}", done.reasons());
    assert_eq!(done.attempts.iter().map(|attempt| attempt.gpu_count).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_ne!(done.attempts[0].config_sha256, done.attempts[1].config_sha256);
    assert_eq!(done.attempts[1].config_json["resources"]["memory_bytes"], 1 << 20);
    assert!(
        done.retries[0].why.contains("gpus=2 memory=1.0 MiB exclude_hosts=n17"),
        "{}",
        done.retries[0].why
    );
    let requested = |attempt: &AttemptRow| {
        let request = world.engine.requested_by(attempt.attempt_id).unwrap();
        (request.resources.memory_bytes, request.exclude_hosts)
    };
    assert_eq!(requested(&done.attempts[0]), (None, Vec::new()));
    assert_eq!(requested(&done.attempts[1]), (Some(1 << 20), vec!["n17".to_owned()]));

    let more =
        "[retry]\nhost_oom = { plan = [{ set = { A = \"1\" } }, { resources = { memory = \"900TiB\" } }] }\n";
    let file = world.run_file("exit 0", more);
    let source = RunSource::File { path: file, patch: PlanPatch::default() };
    let refused = read(&world.context(), &source, false, &world.notes).err().unwrap();
    let expected = "not launched: `retry.host_oom.plan[1].resources.memory` = 900.0 TiB: its largest machine has 1.0 TiB; ";
    assert!(refused.to_string().starts_with(expected), "{refused}");
}

/// Proves that a launch whose request is not given any more is refused before an attempt is written down, and that the run has failed then.
#[test]
fn what_is_not_given_any_more_is_refused() {
    let world = Trial::new(SETTLES);
    let context = world.context();
    let source = RunSource::File { path: world.run_file("exit 0", ""), patch: PlanPatch::default() };
    let start = read(&context, &source, false, &world.notes).unwrap();
    let mut prepared = begin(&context, &start, LaunchKind::Train, &world.notes).unwrap();
    let run_id = prepared.run.run_id;
    prepared.job.plan.resources.memory_bytes = Some(900 << 40);
    let refused = drive(&context, prepared, None, &world.notes).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Blocked);
    let expected = "not launched: `resources.memory` = 900.0 TiB: its largest machine has 1.0 TiB; ";
    assert!(refused.to_string().starts_with(expected), "{refused}");
    assert!(context.attempts_of(run_id).unwrap().is_empty());
    assert_eq!(context.run_by_id(run_id).unwrap().state.as_str(), "failed");
}

/// Proves that a resume which the launcher refuses, or whose engine is gone, leaves a run that waits or was stopped as it
/// was, and one whose supervisor died while it ran waiting; that the refusal is in its history; and that a later resume
/// launches it.
#[test]
fn a_refused_resume_leaves_the_run_as_it_was() {
    for (state, is_engine_gone, expected_state) in [
        (RunState::Waiting, false, RunState::Waiting),
        (RunState::Waiting, true, RunState::Waiting),
        (RunState::Stopped, false, RunState::Stopped),
        (RunState::Running, false, RunState::Waiting),
    ] {
        let world = Trial::new(SETTLES);
        let done = world.run(&fails(1), "[retry]\nnetwork_error = { attempts = 0 }\n");
        assert_eq!(done.attempts.len(), 1, "{:?}", done.reasons());
        let (context, run_id) = (world.context(), done.outcome.run_id);
        context.set_run_state(run_id, state).unwrap();
        let before = context.run_by_id(run_id).unwrap();
        // By the clock, an end that was written down again would be another one.
        world.advance_days(1);
        let mut prepared = reopen(&context, &before, &world.notes).unwrap();
        let expected = match is_engine_gone {
            true => {
                prepared.job.plan.launch.engine = Some("gone".parse().unwrap());
                ErrorKind::Usage
            }
            false => {
                prepared.job.plan.resources.memory_bytes = Some(900 << 40);
                ErrorKind::Blocked
            }
        };
        let refused = drive(&context, prepared, None, &world.notes).err().unwrap();
        assert_eq!(refused.kind, expected, "{refused}");
        let after = context.run_by_id(run_id).unwrap();
        assert_eq!((after.state, after.ended_at), (expected_state, before.ended_at));
        assert_eq!(after.ended_at.is_some(), state == RunState::Stopped);
        assert_eq!(context.attempts_of(run_id).unwrap().len(), 1);
        let events = context.ledger_read(|ledger| ledger.events_of_run(run_id)).unwrap();
        assert!(events.iter().any(|event| EventKind::LaunchRefused.is(&event.kind)), "{events:?}");
        let prepared = reopen(&context, &after, &world.notes).unwrap();
        let outcome = drive(&context, prepared, None, &world.notes).unwrap();
        assert_eq!(outcome.state.as_str(), "completed");
    }
}

/// Proves that a resume which is refused again and again for one reason is in the history of its run once, and that
/// another reason is there too.
#[test]
fn a_repeated_refusal_is_written_down_once() {
    let world = Trial::new(SETTLES);
    let done = world.run(&fails(1), "[retry]\nnetwork_error = { attempts = 0 }\n");
    let (context, run_id) = (world.context(), done.outcome.run_id);
    context.set_run_state(run_id, RunState::Stopped).unwrap();
    for (memory_tib, expected) in [(900, 1), (900, 1), (800, 2)] {
        world.advance_days(1);
        let before = context.run_by_id(run_id).unwrap();
        let mut prepared = reopen(&context, &before, &world.notes).unwrap();
        prepared.job.plan.resources.memory_bytes = Some(memory_tib << 40);
        let refused = drive(&context, prepared, None, &world.notes).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Blocked, "{refused}");
        let events = context.ledger_read(|ledger| ledger.events_of_run(run_id)).unwrap();
        let refusals = events.iter().filter(|event| EventKind::LaunchRefused.is(&event.kind));
        assert_eq!(refusals.count(), expected, "{memory_tib} TiB");
    }
}

/// Proves that GPUs which are refused are shown as they were written, with how many each machine is to have.
#[test]
fn gpus_on_several_machines_are_shown_as_written() {
    let world = Trial::new(SETTLES);
    let more = "[resources]\ngpus = 2\nnodes = 2\n";
    let source = RunSource::File { path: world.run_file("exit 0", more), patch: PlanPatch::default() };
    let plan = read(&world.context(), &source, false, &world.notes).unwrap().job.plan;
    let offer = Offer { gpus: Accelerators::UpTo(0), ..world.context().offer_of("local").unwrap() };
    let (refused, _, compared) = unmet(&plan, &PlanEntry::default(), &offer);
    let [refusal] = refused.as_slice() else { panic!("{refused:?}") };
    let expected = "`resources.gpus` = 2 on 2 nodes (1 each): its largest machine has none";
    assert_eq!((refusal.reason().as_str(), compared), (expected, vec!["resources.gpus"]));
}

/// Looks into the ledger each time that the queue of the engine is mentioned, as another process would.
struct LedgerLooks<'a> {
    world: &'a World,
    /// Whether a person ends the run when its attempt waits.
    stops: bool,
    rows: Mutex<Vec<AttemptRow>>,
}

impl Reporter for LedgerLooks<'_> {
    fn notice(&self, notice: &Notice) {
        let Notice::Note { text } = notice else { return };
        if !text.contains("in the queue of its engine") {
            return;
        }
        let context = self.world.context();
        let run =
            context.ledger_read(|ledger| ledger.list_runs(&RunFilter::default())).unwrap().pop().unwrap();
        self.rows.lock().unwrap().extend(context.attempts_of(run.run_id).unwrap().pop());
        if self.stops {
            self.world.cancel.stop(15);
        }
    }
}

impl Trial {
    /// Runs a script whose job waits; gives the rows of its attempt while it did and when it was over, and the receipt.
    fn wait_in_queue(&self, polls: u32, more: &str, stops: bool) -> (Vec<AttemptRow>, AttemptRow) {
        self.engine.hold(polls);
        let (context, looks) = (self.context(), LedgerLooks { world: self, stops, rows: Mutex::default() });
        let path = self.run_file("exec sleep 100000", more);
        let source = RunSource::File { path, patch: PlanPatch::default() };
        let start = read(&context, &source, false, &looks).unwrap();
        let prepared = begin(&context, &start, LaunchKind::Train, &looks).unwrap();
        let outcome = drive(&context, prepared, None, &looks).unwrap();
        let sealed = context.attempts_of(outcome.run_id).unwrap().pop().unwrap();
        (looks.rows.into_inner().unwrap(), sealed)
    }
}

/// Proves that the ledger has an attempt as queued while it waits in the queue of its engine and as running once it
/// started, with when it was submitted and how long it waited, and that the receipt has both, with the engine's name
/// for the start, and charges no time of the queue.
#[test]
fn the_queue_of_an_engine_is_in_the_ledger() {
    let world = Trial::new(Duration::from_millis(500));
    let more = "[supervise]\ntimeout = \"10m\"\ngrace = \"5s\"\n[retry]\ntimeout = { attempts = 0 }\n";
    let (rows, sealed) = world.wait_in_queue(36, more, false);
    let [waiting, running] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((waiting.state, running.state), (AttemptState::Queued, AttemptState::Running));
    assert_eq!((waiting.started_at, waiting.queued_seconds), (None, None));
    assert!(waiting.submitted_at.is_some() && waiting.engine_instance.is_none());
    assert_eq!(running.submitted_at, waiting.submitted_at);
    let waited = running.queued_seconds.unwrap();
    assert!((300.0..420.0).contains(&waited), "{waited}");
    assert_eq!((sealed.state, sealed.queued_seconds), (AttemptState::Sealed, Some(waited)));
    assert_eq!(sealed.submitted_at, waiting.submitted_at);
    assert_eq!(sealed.engine_instance, Some(format!("local:{}/1", sealed.attempt_id)));
    assert_eq!(sealed.termination_reason, Some(TerminationReason::Timeout));
    let wall = sealed.wall_seconds.unwrap();
    assert!((600.0..800.0).contains(&wall), "{wall}");
}

/// Proves that an attempt which was ended in the queue of its engine has an end, and neither a start nor a time that is charged.
#[test]
fn what_never_left_the_queue_never_started() {
    let world = Trial::new(SETTLES);
    let more = "[resources]\ngpus = 4\nusd_per_gpu_hour = 2.0\n";
    let (rows, sealed) = world.wait_in_queue(1_000_000, more, true);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(sealed.termination_reason, Some(TerminationReason::Cancelled));
    assert_eq!((sealed.started_at, sealed.wall_seconds, sealed.queued_seconds), (None, None, None));
    assert_eq!(sealed.cost_usd, Some(0.0));
    assert!(sealed.submitted_at.is_some() && sealed.engine_instance.is_none());
    assert!(sealed.ended_at >= sealed.submitted_at);
}

/// Proves that an attempt which its engine takes back into the queue stays the same attempt, with an event that names
/// the start that was lost, and with the later start in its receipt.
#[test]
fn a_requeue_is_an_event() {
    let world = Trial::new(Duration::from_millis(500));
    world.engine.requeue_next(3, 3);
    let done = world.run("[ -e again ] && exit 0; touch again; exec sleep 100000", "");
    let [attempt] = done.attempts.as_slice() else { panic!("{:?}", done.reasons()) };
    assert_eq!(done.outcome.state.as_str(), "completed", "{:?}", done.reasons());
    let start = |number: u32| format!("local:{}/{number}", attempt.attempt_id);
    assert_eq!(attempt.engine_instance, Some(start(2)));
    let context = world.context();
    let mut events = context.ledger_read(|ledger| ledger.events_of_attempt(attempt.attempt_id)).unwrap();
    events.retain(|event| EventKind::Requeued.is(&event.kind));
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let expected =
        serde_json::json!({ "from": start(1), "to": null, "state": "PENDING", "reason": "Priority" });
    assert_eq!(event.fields_json, Some(expected));
    let notes = world.notes.all();
    assert!(notes.contains(&"the engine took attempt 1 back into its queue: Priority".into()), "{notes:?}");
}

/// Proves that an engine of the settings launches the run that names it, with its name in the placement and the
/// receipt, and that a name which the settings do not have is refused with the nearest one.
#[test]
fn a_named_engine_launches() {
    let world = Trial::new(SETTLES);
    let named = |engine: &str| format!("[launch]\nengine = \"{engine}\"\n");
    let attempt = world.run("exit 0", &named(NAMED_ENGINE)).attempts.pop().unwrap();
    let start = format!("{NAMED_ENGINE}:{}/1", attempt.attempt_id);
    assert_eq!((attempt.launcher.as_str(), attempt.engine_instance), ("local", Some(start)));
    assert_eq!(attempt.placement_json.unwrap()["engine"], NAMED_ENGINE);
    let path = world.run_file("exit 0", &named("juwel"));
    let source = RunSource::File { path, patch: PlanPatch::default() };
    let refused = read(&world.context(), &source, false, &world.notes).err().unwrap();
    assert_eq!((refused.kind, refused.hints[0].as_str()), (ErrorKind::Usage, "did you mean `juwels`?"));
}

/// Proves that the receipt of an attempt whose log did not arrive as a whole says so, and that nothing is said where all of it arrived.
#[test]
fn a_receipt_names_the_files_that_did_not_arrive() {
    let world = Trial::new(SETTLES);
    let whole = world.run("echo hello; exit 0", "").attempts.pop().unwrap();
    assert_eq!((whole.completeness, whole.exit_code), (None, Some(0)));
    world.engine.cut("stdout.log");
    let cut = world.run("echo hello; exit 0", "").attempts.pop().unwrap();
    assert_eq!(cut.completeness.as_deref(), Some("1 of 2 files, without stdout.log"));
}

/// Proves that what a run file requests of an engine reaches it, with the image of the container and the GPUs of each
/// machine, and that the local launcher refuses the same keys before anything is launched, each with what to do
/// instead.
#[test]
fn what_is_requested_reaches_the_engine_or_is_refused() {
    let world = Trial::new(SETTLES);
    let image = format!("lab/train@sha256:{}", "0f".repeat(32));
    let more = format!(
        "[resources]\ngpus = 4\nnodes = 2\ngpu_memory = \"80GB\"\ntime_limit = \"2h\"\n\
         [container]\nimage = \"{image}\"\n\
         [launch]\naccount = \"lab\"\nqueue = \"gpu\"\nsecrets = [{{ name = \"HF_TOKEN\", from = \"hub/token\" }}]\n"
    );
    let done = world.run("exit 0", &more);
    assert_eq!(done.outcome.state.as_str(), "completed", "{:?}", done.reasons());
    let attempt = &done.attempts[0];
    assert_eq!(attempt.queue.as_deref(), Some("gpu"));
    let request = world.engine.requested_by(attempt.attempt_id).unwrap();
    assert_eq!((request.account.as_deref(), request.image), (Some("lab"), Some(image)));
    assert_eq!((request.resources.nodes, request.resources.time_limit_seconds), (Some(2), Some(7200.0)));
    assert_eq!(request.resources.gpus.unwrap().count, 2, "of each machine");
    assert_eq!(request.secrets[0].from, "hub/token");

    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().join("home"), None);
    let local = Context::open(home, "/no/such/program".into(), true).unwrap();
    let path = world.run_file("exit 0", &more);
    let source = RunSource::File { path, patch: PlanPatch::default() };
    let refused = read(&local, &source, false, &world.notes).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Blocked);
    for key in [
        "resources.nodes", "resources.gpu_memory", "resources.time_limit", "launch.account", "launch.queue",
        "launch.secrets",
    ] {
        let is_line_of = |line: &str| line.starts_with(&format!("  `{key}` = "));
        assert!(refused.to_string().lines().any(is_line_of), "{key}: {refused}");
    }
    assert!(refused.to_string().contains("set `supervise.timeout`"), "{refused}");
}
