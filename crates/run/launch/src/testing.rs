//! An engine of plain processes with the faults of real engines, and a launcher for it: for tests of what drives launchers.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, Clock, Timestamp};
use trackway_formats::layout::AttemptLayout;
use trackway_redact::Redactor;
use trackway_system::SystemClock;

use crate::conformance::Faults;
use crate::{
    Accelerators, AttemptChannel, Capacity, ContainerStart, EXIT_VERSION, EngineRequest, EngineState,
    ExitRecord, FolderChannel, Instance, LaunchError, LaunchSpec, Launcher, Observation, ObservedAttempt,
    Offer, Placement, Refusal, Running, SpawnError, StopMode,
};

const NAME: &str = "fake";
/// How long an answer of the engine is good enough, unless a test sets it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The memory of its largest machine.
const MEMORY_BYTES: u64 = 1 << 40;

/// The engine. It outlives the launchers that talk to it, and fails as a test sets it.
#[derive(Debug, Clone)]
pub struct FakeEngine(Arc<Engine>);

#[derive(Debug)]
struct Engine {
    clock: Arc<dyn Clock>,
    /// Real time that a job gets when it starts and when it is stopped, before a wait for it continues by the clock.
    settles: Duration,
    state: Mutex<State>,
    /// A job ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: BTreeMap<String, Job>,
    /// Polls for which a job that is submitted now waits in the queue.
    held_polls: u32,
    /// Polls from now on that the engine does not answer.
    hidden_polls: u32,
    /// Offers from now on that the engine does not make.
    hidden_offers: u32,
    /// Submits from now on that are carried out without an answer.
    lost_replies: u32,
    /// The file of the job that is submitted next whose end does not arrive.
    cut_file: Option<String>,
    /// How the job that is submitted next is ended by the engine.
    ending: Option<Ending>,
    /// How the job that is submitted next is taken back by the engine.
    requeue: Option<Requeue>,
    polls: u32,
}

/// A return to the queue that the engine makes.
#[derive(Debug, Clone, Copy)]
struct Requeue {
    /// Polls of the running job before.
    polls_left: u32,
    /// Polls in the queue after it; 0: it is started again at once.
    held_polls: u32,
}

/// An end that the engine makes.
#[derive(Debug, Clone)]
struct Ending {
    /// Polls of the running job before.
    polls_left: u32,
    state: EngineState,
    /// Whether the exit of its process is recorded, as where only the script was ended and not its machine.
    is_recorded: bool,
}

#[derive(Debug)]
struct Job {
    spec: LaunchSpec,
    number: usize,
    phase: Phase,
    submitted_at: Timestamp,
    started_at: Option<Timestamp>,
    /// How often it was started.
    starts: u32,
    /// The file whose end does not arrive.
    cut_file: Option<String>,
    /// It had its real time.
    is_settled: bool,
    /// When it is killed, because its end was requested.
    kill_at_micros: Option<i64>,
    ending: Option<Ending>,
    requeue: Option<Requeue>,
}

#[derive(Debug)]
enum Phase {
    Queued { polls_left: u32 },
    Running { group: Pid },
    Ended(Observation),
}

/// What the engine answers about a job.
#[derive(Debug)]
struct Answer {
    state: Observation,
    words: Option<EngineState>,
    submitted_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    starts: u32,
}

impl Answer {
    /// Nothing is known.
    fn hidden(why: &str) -> Self {
        let state = Observation::CannotTell { why: why.to_owned(), is_lasting: false };
        Self { state, words: None, submitted_at: None, started_at: None, starts: 0 }
    }

    fn of(job: &Job, state: Observation) -> Self {
        let words = Some(job.words(&state));
        let (submitted_at, started_at) = (Some(job.submitted_at), job.started_at);
        Self { state, words, submitted_at, started_at, starts: job.starts }
    }

    fn seen_at(self, key: &str, seen_at: Timestamp) -> ObservedAttempt {
        let has_started = self.started_at.is_some();
        ObservedAttempt {
            state: self.state,
            seen_at,
            engine_state: self.words,
            submitted_at: self.submitted_at,
            started_at: self.started_at,
            instance: has_started.then(|| Instance(format!("{key}/{}", self.starts))),
            hosts: has_started.then(|| "fake-1".to_owned()).into_iter().collect(),
            devices: Vec::new(),
        }
    }
}

impl Job {
    /// Ends it when the engine is to do so.
    fn end_by_engine(&mut self) {
        let (Phase::Running { group }, Some(ending)) = (&self.phase, &mut self.ending) else { return };
        if ending.polls_left > 0 {
            ending.polls_left -= 1;
            return;
        }
        killpg(*group, Signal::SIGKILL).ok();
        self.is_settled = false;
        if !ending.is_recorded {
            let why = "the engine reports that it ended".to_owned();
            self.phase = Phase::Ended(Observation::Gone { why, rebooted: false });
        }
    }

    /// Takes it back into the queue when the engine is to do so; true: it did.
    fn requeue_by_engine(&mut self, now: Timestamp) -> bool {
        let (Phase::Running { group }, Some(requeue)) = (&self.phase, &mut self.requeue) else {
            return false;
        };
        if requeue.polls_left > 0 {
            requeue.polls_left -= 1;
            return false;
        }
        killpg(*group, Signal::SIGKILL).ok();
        self.phase = Phase::Queued { polls_left: requeue.held_polls };
        (self.requeue, self.started_at, self.is_settled) = (None, None, false);
        self.submitted_at = now;
        true
    }

    /// The engine's words for what was observed.
    fn words(&self, observed: &Observation) -> EngineState {
        let word = |state: &str, reason: &str| EngineState {
            engine: NAME.into(),
            state: state.into(),
            reason: reason.into(),
        };
        match (observed, &self.ending) {
            (Observation::Pending { why }, _) => word("PENDING", why),
            (Observation::Running(_) | Observation::CannotTell { .. }, _) => word("RUNNING", ""),
            (
                Observation::Exited(_) | Observation::Gone { .. },
                Some(Ending { polls_left: 0, state, .. }),
            ) => state.clone(),
            (Observation::Exited(_) | Observation::Gone { .. }, _) => word("ENDED", ""),
        }
    }
}

impl Faults for FakeEngine {
    fn hold(&self, polls: u32) {
        self.state().held_polls = polls;
    }

    fn hide(&self, polls: u32) {
        self.state().hidden_polls = polls;
    }

    fn lose_reply(&self) {
        self.state().lost_replies += 1;
    }

    fn cut(&self, file: &str) {
        self.state().cut_file = Some(file.to_owned());
    }
}

impl Default for FakeEngine {
    fn default() -> Self {
        Self::on(Arc::new(SystemClock), Duration::ZERO)
    }
}

impl FakeEngine {
    /// An engine on another clock than the system's. Its jobs are real processes: one that starts or is stopped gets up
    /// to `settles` of real time before that clock advances, so that what ends at once ends at once on it.
    #[must_use]
    pub fn on(clock: Arc<dyn Clock>, settles: Duration) -> Self {
        Self(Arc::new(Engine { clock, settles, state: Mutex::default(), ended: Condvar::new() }))
    }

    /// A launcher for this engine, as a supervisor that was just started has it.
    #[must_use]
    pub fn launcher(&self) -> FakeLauncher {
        FakeLauncher {
            engine: self.clone(),
            name: NAME,
            instance: None,
            ends: Mutex::default(),
            poll_interval: POLL_INTERVAL,
        }
    }

    /// The engine ends the job that is submitted next after so many polls of it, and gives this state; `is_recorded`: the exit of its
    /// process is on record.
    pub fn end_next(&self, polls: u32, state: EngineState, is_recorded: bool) {
        self.state().ending = Some(Ending { polls_left: polls, state, is_recorded });
    }

    /// The engine takes the job that is submitted next back into its queue after so many polls of it, and starts it
    /// again after so many more; 0: at once.
    pub fn requeue_next(&self, polls: u32, held_polls: u32) {
        self.state().requeue = Some(Requeue { polls_left: polls, held_polls });
    }

    /// So many offers from now on get no answer.
    pub fn hide_offers(&self, offers: u32) {
        self.state().hidden_offers = offers;
    }

    /// What a job requested.
    #[must_use]
    pub fn requested_by(&self, attempt_id: AttemptId) -> Option<EngineRequest> {
        self.state().jobs.get(&attempt_id.to_string()).map(|job| job.spec.request.clone())
    }

    /// How often the engine was polled.
    #[must_use]
    pub fn polls(&self) -> u32 {
        self.state().polls
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts or queues a job under a key, once; gives its number. The reply may be lost.
    fn submit(&self, key: &str, spec: &LaunchSpec) -> Option<usize> {
        let mut state = self.state();
        let (number, polls_left) = (state.jobs.len() + 1, std::mem::take(&mut state.held_polls));
        let (ending, requeue, cut_file) = (state.ending.take(), state.requeue.take(), state.cut_file.take());
        let new = || Job {
            spec: spec.clone(),
            number,
            phase: Phase::Queued { polls_left },
            submitted_at: self.0.clock.now(),
            started_at: None,
            starts: 0,
            cut_file,
            is_settled: false,
            kill_at_micros: None,
            ending,
            requeue,
        };
        let is_new = !state.jobs.contains_key(key);
        let job = state.jobs.entry(key.to_owned()).or_insert_with(new);
        if is_new && polls_left == 0 {
            self.start(key, job);
        }
        let number = job.number;
        if state.lost_replies > 0 {
            state.lost_replies -= 1;
            return None;
        }
        Some(number)
    }

    /// The engine's answer about a job, which starts when its polls in the queue are over, and the state that it gives.
    fn poll(&self, key: &str) -> Answer {
        let mut state = self.state();
        state.polls += 1;
        if state.hidden_polls > 0 {
            state.hidden_polls -= 1;
            return Answer::hidden("the engine does not answer");
        }
        let Some(job) = state.jobs.get_mut(key) else { return Answer::hidden("the engine has no such job") };
        if let (Phase::Running { group }, Some(at)) = (&job.phase, job.kill_at_micros)
            && self.0.clock.monotonic_micros() >= at
        {
            killpg(*group, Signal::SIGKILL).ok();
            (job.is_settled, job.kill_at_micros) = (false, None);
        }
        job.end_by_engine();
        if job.requeue_by_engine(self.0.clock.now()) && matches!(job.phase, Phase::Queued { polls_left: 0 }) {
            self.start(key, job);
        }
        let observed = match &job.phase {
            Phase::Queued { .. } => Observation::Pending { why: "Priority".into() },
            Phase::Running { .. } => Observation::Running(Running::default()),
            Phase::Ended(end) => end.clone(),
        };
        let answer = Answer::of(job, observed);
        if let Phase::Queued { polls_left } = &mut job.phase {
            *polls_left = polls_left.saturating_sub(1);
            if *polls_left == 0 {
                self.start(key, job);
            }
        }
        answer
    }

    fn start(&self, key: &str, job: &mut Job) {
        let started_at = self.0.clock.now();
        job.started_at = Some(started_at);
        job.starts += 1;
        let record =
            ExitRecord { version: EXIT_VERSION, started_at, ended_at: started_at, ..ExitRecord::default() };
        job.phase = match spawn(&job.spec) {
            Ok(child) => {
                let group = Pid::from_raw(child.id().cast_signed());
                let (engine, key) = (self.clone(), key.to_owned());
                std::thread::spawn(move || engine.wait_for(&key, child, record));
                Phase::Running { group }
            }
            Err(error) => {
                let spawn_error = SpawnError { errno: error.raw_os_error(), message: error.to_string() };
                let record = ExitRecord { spawn_error: Some(spawn_error), ..record };
                Phase::Ended(Observation::Exited(Box::new(record)))
            }
        };
    }

    fn wait_for(&self, key: &str, mut child: Child, mut record: ExitRecord) {
        let own_group = Pid::from_raw(child.id().cast_signed());
        let status = child.wait();
        record.exit_code = status.as_ref().ok().and_then(std::process::ExitStatus::code);
        record.signal = status.as_ref().ok().and_then(std::process::ExitStatus::signal);
        record.ended_at = self.0.clock.now();
        record.main_ended_at = Some(record.ended_at);
        record.wall_seconds = record.ended_at.seconds_since(record.started_at);
        if let Some(job) = self.state().jobs.get_mut(key)
            && matches!(job.phase, Phase::Running { group } if group == own_group)
        {
            record.files = written_files(&job.spec.directory, job.cut_file.as_deref());
            job.phase = Phase::Ended(Observation::Exited(Box::new(record)));
        }
        self.0.ended.notify_all();
    }

    /// Gives a job that runs its real time, once.
    fn settle(&self, key: &str) {
        let mut state = self.state();
        let Some(job) = state.jobs.get_mut(key) else { return };
        if matches!(job.phase, Phase::Running { .. }) && !std::mem::replace(&mut job.is_settled, true) {
            let runs = |state: &mut State| {
                state.jobs.get(key).is_some_and(|job| matches!(job.phase, Phase::Running { .. }))
            };
            drop(self.0.ended.wait_timeout_while(state, self.0.settles, runs));
        }
    }

    fn cancel(&self, key: &str, mode: StopMode) {
        let (signal, grace_seconds) = mode.first_signal();
        let now_micros = self.0.clock.monotonic_micros();
        if let Some(job) = self.state().jobs.get_mut(key) {
            job.is_settled = false;
            if mode != StopMode::Kill {
                job.kill_at_micros = Some(now_micros + (grace_seconds * 1e6) as i64);
            }
            match job.phase {
                Phase::Queued { .. } => {
                    let why = "it was cancelled in the queue".to_owned();
                    job.phase = Phase::Ended(Observation::Gone { why, rebooted: false });
                }
                Phase::Running { group } => {
                    killpg(group, signal).ok();
                }
                Phase::Ended(_) => {}
            }
        }
    }
}

/// The logs of a job as they were where it ran; of the one that is cut there was more than there is here.
fn written_files(directory: &Path, cut_file: Option<&str>) -> BTreeMap<String, u64> {
    let files = AttemptLayout::new(directory);
    let sizes = [files.stdout_log(), files.stderr_log()].into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        let more = u64::from(cut_file == Some(name.as_str()));
        Some((name, path.metadata().ok()?.len() + more))
    });
    sizes.collect()
}

fn spawn(spec: &LaunchSpec) -> io::Result<Child> {
    let files = AttemptLayout::new(&spec.directory);
    let mut arguments = spec.argv.iter();
    Command::new(arguments.next().map_or(OsStr::new(""), OsString::as_os_str))
        .args(arguments)
        .envs(spec.script_environment())
        .current_dir(&spec.working_directory)
        .stdin(Stdio::null())
        .stdout(File::create(files.stdout_log())?)
        .stderr(File::create(files.stderr_log())?)
        .process_group(0)
        .spawn()
}

/// The launcher: it polls its engine for every answer but an end that it has seen.
#[derive(Debug)]
pub struct FakeLauncher {
    engine: FakeEngine,
    name: &'static str,
    /// Its engine's name in the settings.
    instance: Option<String>,
    ends: Mutex<BTreeMap<String, ObservedAttempt>>,
    poll_interval: Duration,
}

impl FakeLauncher {
    /// The same under the name of another launcher, in whose place it is.
    #[must_use]
    pub fn in_place_of(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same as an engine of the settings.
    #[must_use]
    pub fn named(self, instance: &str) -> Self {
        Self { instance: Some(instance.to_owned()), ..self }
    }

    /// The same, whose answers are good enough for so long.
    #[must_use]
    pub fn polled_every(self, poll_interval: Duration) -> Self {
        Self { poll_interval, ..self }
    }
}

/// How a job is found again: [`Placement::extra`].
#[derive(Debug, Serialize, Deserialize)]
struct FakePlace {
    job: String,
    files: PathBuf,
}

impl FakeLauncher {
    fn placement_of(&self, key: String, number: usize, spec: &LaunchSpec) -> Placement {
        let place = FakePlace { job: key, files: spec.directory.clone() };
        Placement {
            launcher: self.name.into(),
            engine: self.instance.clone(),
            job_id: number.to_string(),
            queue: spec.request.queue.clone(),
            extra: serde_json::to_value(place).expect("a struct of strings becomes JSON"),
        }
    }

    fn place_of(&self, placement: &Placement) -> Result<FakePlace, LaunchError> {
        let foreign =
            || LaunchError::ForeignPlacement { expected: self.name, found: placement.launcher.clone() };
        if placement.launcher != self.name {
            return Err(foreign());
        }
        serde_json::from_value(placement.extra.clone()).map_err(|_| foreign())
    }
}

impl Launcher for FakeLauncher {
    fn name(&self) -> &'static str {
        self.name
    }

    fn engine(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    fn offer(&self, _directory: &Path) -> Result<Offer, LaunchError> {
        let mut state = self.engine.state();
        if state.hidden_offers > 0 {
            state.hidden_offers -= 1;
            let why = "the engine does not answer".into();
            return Err(LaunchError::Unavailable { launcher: self.name, what: "look at its machines", why });
        }
        Ok(Offer {
            launcher: self.name,
            engine: self.instance.clone(),
            host: None,
            cpus: Capacity::Unlimited,
            memory_bytes: Capacity::UpTo(MEMORY_BYTES),
            disk_bytes: Capacity::Unlimited,
            gpus: Accelerators::Unlimited,
            refused: Vec::new(),
            isolates: false,
            container: ContainerStart::ByEngine,
        })
    }

    fn launch(&self, spec: &LaunchSpec, _redactor: &Redactor) -> Result<Placement, LaunchError> {
        let unmet = self.offer(&spec.directory)?.unmet(&spec.request);
        if !unmet.is_empty() {
            let why = Refusal::listed(&unmet);
            return Err(LaunchError::Refused { attempt: spec.attempt_id.to_string(), why });
        }
        let file_error = |source| LaunchError::File { what: "make", path: spec.directory.clone(), source };
        trackway_files::make_folders(&spec.directory).map_err(file_error)?;
        let key = spec.attempt_id.to_string();
        let number = self.engine.submit(&key, spec).ok_or_else(|| LaunchError::Unavailable {
            launcher: self.name,
            what: "submit the job",
            why: "there was no reply in time".into(),
        })?;
        Ok(self.placement_of(key, number, spec))
    }

    fn find(&self, attempt_id: AttemptId, _directory: &Path) -> Result<Option<Placement>, LaunchError> {
        let key = attempt_id.to_string();
        let state = self.engine.state();
        Ok(state.jobs.get(&key).map(|job| self.placement_of(key.clone(), job.number, &job.spec)))
    }

    fn observe(&self, placement: &Placement) -> Result<ObservedAttempt, LaunchError> {
        let key = self.place_of(placement)?.job;
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = ends.get(&key) {
            return Ok(end.clone());
        }
        let now = self.engine.0.clock.now();
        let seen = self.engine.poll(&key).seen_at(&key, now);
        if seen.is_final() {
            ends.insert(key, seen.clone());
        }
        Ok(seen)
    }

    fn wait(&self, placement: &Placement, timeout: Duration) -> Result<ObservedAttempt, LaunchError> {
        self.engine.settle(&self.place_of(placement)?.job);
        self.engine.0.clock.sleep(timeout.min(self.poll_interval));
        self.observe(placement)
    }

    fn poll_interval(&self) -> Duration {
        self.poll_interval
    }

    fn stop(&self, placement: &Placement, mode: StopMode) -> Result<(), LaunchError> {
        self.engine.cancel(&self.place_of(placement)?.job, mode);
        Ok(())
    }

    fn channel(&self, placement: &Placement) -> Result<Arc<dyn AttemptChannel>, LaunchError> {
        Ok(Arc::new(FolderChannel::new(self.place_of(placement)?.files)))
    }
}
