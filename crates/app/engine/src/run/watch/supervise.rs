//! Watches one attempt to its end. What it decides, [`super::watchdog`] decides; here it is only done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use trackway_core::Clock;
use trackway_core::detect::{DetectionPolicy, Detector, Firing};
use trackway_formats::SaveReason;
use trackway_formats::control::Command;
use trackway_formats::layout::AttemptLayout;
use trackway_launch::{
    AttemptChannel, GrowingFile, LaunchError, Launcher, Observation, ObservedAttempt, Placement, Running,
    StopMode, Terminal,
};
use trackway_rules::trust::LossRecord;
use trackway_system::Cancel;

use super::echo::Echo;
use super::inject::{Fault, Injection};
use super::sight::{AfterLook, LookHistory};
use super::watchdog::{self, Intervention, Limits, Vitals};
use crate::attempt::actions::{self, ActionKind, OwnAction};
use crate::attempt::control;
use crate::reporter::{Notice, Reporter, Stream};
use crate::run::detect::{Detecting, DetectionLog, DetectorFinding};
use crate::run::record::live_record::LiveRecord;
use crate::run::record::resume_watch::ResumeWatch;
use crate::run::record::stacks;
use crate::run::retry::changes::{self, AskedBy, RollBackCause};

/// The longest the supervisor sleeps when nothing happens; the end of the attempt wakes it at once.
const TURN: Duration = Duration::from_millis(100);
/// How often the live record is looked at.
const LOOK_MICROS: i64 = 250_000;
/// How often progress goes into the ledger.
const TOUCH_MICROS: i64 = 2_000_000;
/// How long a stop that could not be delivered waits for the next try.
const STOP_AGAIN_MICROS: i64 = 5_000_000;

/// What the supervisor watches.
pub struct WatchedAttempt<'a> {
    /// Where it is.
    pub placement: &'a Placement,
    pub files: AttemptLayout,
    /// The way to what it writes, and to its script.
    pub channel: Arc<dyn AttemptChannel>,
    /// What it may take.
    pub limits: Limits,
    /// Between SIGTERM and SIGKILL.
    pub grace_seconds: f64,
    /// How long it may be out of sight: [`super::sight::PATIENCE_SECONDS`] but in tests.
    pub patience_seconds: f64,
    /// Whether the run file calls a SIGTERM from outside a preemption.
    pub sigterm_preempts: bool,
    /// What its losses say about its checkpoints; none: nothing is marked.
    pub losses: Option<LossRecord>,
    /// What is waited for where the attempt is to continue from a checkpoint.
    pub resume: Option<ResumeWatch>,
    /// Remembers that it did not.
    pub wrong_resume: &'a dyn Fn(&str),
    /// A fault to rehearse.
    pub injection: Option<Injection>,
    /// Whether it was already running when this supervisor came.
    pub attached: bool,
    /// The terminals of its script; none: it has pipes.
    pub terminal: Option<&'a Terminal>,
    /// How long it has been running, when it was.
    pub running_seconds: f64,
    /// Why the attempt must stop because another one was granted the run; `None`: it was not.
    pub fenced: &'a dyn Fn() -> Option<String>,
    /// The supervisor of the run now; `None`: this process.
    pub superseded_by: &'a dyn Fn() -> Option<String>,
    /// Requests to stop, or to leave the attempt alone.
    pub cancel: &'a Cancel,
    /// What launched it.
    pub launcher: &'a dyn Launcher,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Where what happens is reported.
    pub reporter: &'a dyn Reporter,
}

impl WatchedAttempt<'_> {
    /// Takes the stacks of all processes: which ranks are missing, or why that cannot be seen, and the file.
    fn take_stacks(&self, record: &LiveRecord) -> (String, Option<String>) {
        match stacks::take(self.launcher, self.placement, &self.files, &record.last_steps) {
            Ok(stacks) => (stacks.summary, Some(stacks.path)),
            Err(why) => (why, None),
        }
    }
}

/// How supervising ended.
#[derive(Debug)]
pub enum SuperviseEnd {
    /// The attempt ended, or is proved to be gone.
    Attempt,
    /// The supervisor was asked to detach; the attempt continues.
    Detached,
    /// The supervisor could not see the attempt for too long, for this reason; the attempt may continue.
    OutOfSight(String),
    /// Another process supervises the run now, this one; the attempt continues.
    Superseded(String),
}

/// Called now and then with the live record and the last observation of the attempt; a failure is reported and does not
/// end the supervision.
pub type Touch<'a> = &'a mut dyn FnMut(&LiveRecord, Option<&ObservedAttempt>);

/// The detectors, and where what they find is written.
pub struct Detection<'a> {
    /// The detectors of the run.
    pub detecting: &'a mut Detecting,
    /// The attempt's page in the ledger.
    pub detection_log: DetectionLog<'a>,
}

struct Supervisor<'a> {
    watched: WatchedAttempt<'a>,
    record: LiveRecord,
    detection: Option<Detection<'a>>,
    sight: LookHistory,
    /// When the launcher is polled next, and never before.
    ask_micros: i64,
    /// What the last look showed that showed the attempt.
    seen: Option<ObservedAttempt>,
    /// Why the attempt cannot be seen now; it can.
    hidden: Option<String>,
    rate: Rate,
    stop_requests_seen: u32,
    stopping: bool,
    /// A stop that could not be delivered, and when it was tried.
    undelivered: Option<(StopMode, i64)>,
    leftovers_reported: bool,
    began_micros: i64,
    last_sign_micros: Option<i64>,
    printed_bytes_seen: u64,
    /// None before something was printed.
    last_printed_micros: Option<i64>,
    frame_count_seen: u64,
}

/// Steps per second over the last looks.
#[derive(Debug, Default)]
struct Rate {
    since: Option<(i64, u64)>,
    steps_per_second: Option<f64>,
}

/// The window over which the rate is measured.
const RATE_MICROS: i64 = 2_000_000;

impl Rate {
    fn take(&mut self, now_micros: i64, step: Option<u64>) {
        let Some(step) = step else { return };
        let Some((since_micros, since_step)) = self.since else {
            self.since = Some((now_micros, step));
            return;
        };
        let elapsed = now_micros - since_micros;
        if elapsed >= RATE_MICROS {
            self.steps_per_second = Some(step.saturating_sub(since_step) as f64 * 1e6 / elapsed as f64);
            self.since = Some((now_micros, step));
        }
    }
}

/// Watches an attempt until it ends: looks for problems in what it records, echoes its output, acts on limits and on
/// requests to stop.
pub fn supervise<'a>(
    watched: WatchedAttempt<'a>,
    detection: Option<Detection<'a>>,
    touch: Touch<'_>,
) -> SuperviseEnd {
    let Some(terminal) = watched.terminal else { return watch(watched, detection, touch) };
    let (reporter, over) = (watched.reporter, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let follow = || terminal.follow(&|stream, bytes| reporter.output(stream, bytes), &over);
        // Without a thread the script is not seen here; the log has what it prints.
        let following = std::thread::Builder::new().name("terminal".into()).spawn_scoped(scope, follow);
        let ended = watch(watched, detection, touch);
        // The terminals of an attempt that has ended show what is left, and end by themselves.
        if !matches!(ended, SuperviseEnd::Attempt) {
            over.store(true, Ordering::Relaxed);
        }
        // A panic there changes nothing about the attempt, whose end is known.
        let _ = following.map(ScopedJoinHandle::join);
        ended
    })
}

/// The same, but for what the terminals of the script show.
fn watch<'a>(
    watched: WatchedAttempt<'a>,
    detection: Option<Detection<'a>>,
    touch: Touch<'_>,
) -> SuperviseEnd {
    let mut echo = Echo::new(Arc::clone(&watched.channel), watched.attached, watched.terminal);
    let (clock, reporter) = (watched.clock, watched.reporter);
    let mut supervisor = Supervisor::new(watched, detection);
    let (mut looked_micros, mut touched_micros) = (i64::MIN, clock.monotonic_micros());
    let mut more = false;
    loop {
        let answer = supervisor.ask(more);
        more = echo.turn(reporter);
        let now_micros = clock.monotonic_micros();
        if now_micros.saturating_sub(looked_micros) >= LOOK_MICROS {
            supervisor.look(now_micros);
            supervisor.detect(now_micros, true);
            looked_micros = now_micros;
        }
        let ended = answer.and_then(|answer| supervisor.take(answer, now_micros));
        if let Some(SuperviseEnd::Attempt) = ended {
            // What came between the last look and the end belongs to the attempt too.
            while echo.turn(reporter) {}
            supervisor.look(now_micros);
            supervisor.detect(now_micros, false);
            if let Some(detection) = &mut supervisor.detection {
                detection.detection_log.finish();
            }
        }
        if let Some(ended) = ended {
            return ended;
        }
        if supervisor.watched.cancel.is_detached() {
            return SuperviseEnd::Detached;
        }
        if let Some(holder) = (supervisor.watched.superseded_by)() {
            return SuperviseEnd::Superseded(holder);
        }
        supervisor.obey_interrupts();
        // The second request to stop does not wait for an attempt that cannot be reached.
        if supervisor.stop_requests_seen > 1
            && let Some(why) = supervisor.hidden.take()
        {
            return SuperviseEnd::OutOfSight(why);
        }
        supervisor.obey_fence();
        supervisor.intervene(now_micros);
        if now_micros - touched_micros >= TOUCH_MICROS {
            touch(&supervisor.record, supervisor.seen.as_ref());
            touched_micros = now_micros;
        }
    }
}

impl<'a> Supervisor<'a> {
    /// Before its first look.
    fn new(watched: WatchedAttempt<'a>, detection: Option<Detection<'a>>) -> Self {
        let interval_seconds = watched.launcher.poll_interval().as_secs_f64();
        let now_micros = watched.clock.monotonic_micros();
        let mut record = LiveRecord::of(Arc::clone(&watched.channel));
        record.losses.clone_from(&watched.losses);
        Self {
            record,
            sight: LookHistory::new(interval_seconds, watched.patience_seconds, now_micros),
            began_micros: now_micros - (watched.running_seconds * 1e6) as i64,
            watched,
            detection,
            ask_micros: i64::MIN,
            seen: None,
            hidden: None,
            rate: Rate::default(),
            stop_requests_seen: 0,
            stopping: false,
            undelivered: None,
            leftovers_reported: false,
            last_sign_micros: None,
            printed_bytes_seen: 0,
            last_printed_micros: None,
            frame_count_seen: 0,
        }
    }

    /// Polls the launcher when it is time to, and sleeps otherwise; takes a turn at most, and no time where there is more to do at once.
    fn ask(&mut self, more: bool) -> Option<Result<ObservedAttempt, LaunchError>> {
        let turn = if more { Duration::ZERO } else { TURN };
        let now_micros = self.watched.clock.monotonic_micros();
        let early_micros = u64::try_from(self.ask_micros.saturating_sub(now_micros)).unwrap_or(0);
        if early_micros > 0 {
            self.watched.clock.sleep(turn.min(Duration::from_micros(early_micros)));
            return None;
        }
        self.ask_micros = now_micros;
        Some(self.watched.launcher.wait(self.watched.placement, turn))
    }

    /// What follows from an answer of the launcher: how supervising ends by it, if it does, and when to poll again.
    fn take(
        &mut self,
        answer: Result<ObservedAttempt, LaunchError>,
        now_micros: i64,
    ) -> Option<SuperviseEnd> {
        let mut pause_seconds = self.watched.launcher.poll_interval().as_secs_f64();
        match self.sight.take(answer.as_ref(), now_micros, self.watched.clock.now()) {
            AfterLook::End => return Some(SuperviseEnd::Attempt),
            AfterLook::GiveUp { why } => return Some(SuperviseEnd::OutOfSight(why)),
            AfterLook::LookAgain { why, pause_seconds: longer, is_first } => {
                if is_first {
                    self.watched
                        .reporter
                        .note(format!("the attempt cannot be observed now, trying again: {why}"));
                }
                self.hidden = Some(why);
                pause_seconds = longer;
            }
            AfterLook::Watch { back_after_seconds } => {
                if let Some(seconds) = back_after_seconds {
                    self.watched.reporter.note(format!("the attempt is observed again after {seconds:.0} s"));
                }
                self.hidden = None;
                if let Ok(seen) = answer {
                    self.take_live(&seen.state, now_micros);
                    self.seen = Some(seen);
                }
            }
        }
        self.ask_micros = self.ask_micros.saturating_add((pause_seconds * 1e6) as i64);
        None
    }

    /// The attempt was seen and has not ended.
    fn take_live(&mut self, state: &Observation, now_micros: i64) {
        match state {
            // What waits for its turn uses none of its time yet.
            Observation::Pending { .. } => self.began_micros = now_micros,
            Observation::Running(running) => self.report_leftovers(running),
            _ => {}
        }
        if let Some((mode, tried_micros)) = self.undelivered
            && now_micros - tried_micros >= STOP_AGAIN_MICROS
        {
            self.deliver(mode);
        }
    }

    fn look(&mut self, now_micros: i64) {
        match &mut self.detection {
            Some(detection) => self.record.look_at(&mut |sight| detection.detecting.take(sight)),
            None => self.record.look(),
        }
        if self.record.facts.frame_count > self.frame_count_seen {
            self.frame_count_seen = self.record.facts.frame_count;
            self.last_sign_micros = Some(now_micros);
        }
        let printed = |stream| self.watched.channel.size_bytes(GrowingFile::Log(stream)).unwrap_or(0);
        let printed_bytes = printed(Stream::Stdout) + printed(Stream::Stderr);
        if printed_bytes > self.printed_bytes_seen {
            (self.printed_bytes_seen, self.last_printed_micros) = (printed_bytes, Some(now_micros));
        }
        self.look_at_resume();
        self.rate.take(now_micros, self.record.facts.last_step);
        self.watched.reporter.progress(&self.record.progress(self.rate.steps_per_second));
    }

    /// Says at its first steps that the attempt did not continue, and ends it where the run file wants that.
    fn look_at_resume(&mut self) {
        let Some(resume) = &mut self.watched.resume else { return };
        let Some(text) = resume.take(&self.record.facts, self.watched.clock.now()) else { return };
        let stops = resume.stops();
        self.watched.reporter.note(text.clone());
        (self.watched.wrong_resume)(&text);
        if stops && !self.stopping {
            self.stop(ActionKind::WrongResume, &text);
        }
    }

    /// Reports and records what the detectors found; while the attempt lives, the run file's policies are carried out.
    fn detect(&mut self, now_micros: i64, lives: bool) {
        let may_hang = lives && !self.script_has_ended();
        let Some(detection) = &mut self.detection else { return };
        if let Some(sign_micros) = self.last_sign_micros.filter(|_| may_hang) {
            detection.detecting.tick((now_micros - sign_micros) as f64 / 1e6);
        }
        let mut findings = detection.detecting.findings();
        findings.retain(|finding| detection.detection_log.wants(finding));
        for finding in &mut findings {
            if let Some(losses) = &mut self.record.losses {
                losses.take_finding(finding.firing.detector);
            }
            let mut stacks_path = None;
            if lives && finding.firing.detector == Detector::Hang {
                let (summary, path) = self.watched.take_stacks(&self.record);
                finding.firing.evidence.push_str(&format!("; {summary}"));
                stacks_path = path;
            }
            detection.detection_log.take(finding, &self.record.facts, stacks_path);
        }
        let complaints = [
            detection.detection_log.write(),
            detection.detecting.complaint(),
            detection.detecting.changed_batch(),
        ];
        complaints.into_iter().flatten().for_each(|text| self.watched.reporter.note(text));
        let enough = detection.detecting.enough();
        for finding in findings {
            let text = format!("{}; likely: {}", finding.sentence(), finding.firing.cause);
            let Firing { detector, severity, first_step, step, .. } = finding.firing;
            self.watched.reporter.notice(&Notice::Detected { detector, severity, first_step, step, text });
            if lives {
                self.obey_policy(&finding);
            }
        }
        if let Some(why) = enough.filter(|_| lives && !self.stopping) {
            self.stop(ActionKind::EarlyStop, &why);
        }
    }

    fn obey_policy(&mut self, finding: &DetectorFinding) {
        let why = finding.sentence();
        match finding.policy {
            DetectionPolicy::Checkpoint => {
                let request = Command::CheckpointNow(SaveReason::Anomaly);
                let asked = control::request(&*self.watched.channel, request, &why, self.watched.clock.now());
                self.report_failure("write the control file", asked.err());
            }
            DetectionPolicy::Stop | DetectionPolicy::RollBack if self.stopping => {}
            // A state full of NaN must not become the checkpoint that is resumed from.
            DetectionPolicy::Stop if finding.spoils_checkpoints() => self.kill(finding.stop_kind(), &why),
            DetectionPolicy::Stop => self.stop(finding.stop_kind(), &why),
            DetectionPolicy::RollBack => self.roll_back(finding, &why),
            DetectionPolicy::Off | DetectionPolicy::Note => {}
        }
    }

    /// Ends the attempt at once, without another checkpoint: what it holds is what is to be left.
    fn roll_back(&mut self, finding: &DetectorFinding, why: &str) {
        let firing = &finding.firing;
        let batch_at = |step| self.record.facts.cursor.at(step).map(|place| place.batch);
        let Firing { detector, first_step, step, .. } = *firing;
        let (first_batch, last_batch) = (batch_at(first_step), batch_at(step));
        let seen = changes::FaultRange { first_step, step, first_batch, last_batch };
        let by = AskedBy::Detector { detector, seen };
        let asked = RollBackCause { at: self.watched.clock.now(), by, why: why.into() };
        // Before the end: without the request the decision after it does not go back.
        match asked.write(&self.watched.files) {
            Ok(()) => self.kill(finding.stop_kind(), why),
            failed => self.report_failure("request a rollback, so that the attempt continues", failed.err()),
        }
    }

    /// Whether the script itself ended well, and only what it left behind is alive.
    fn script_has_ended(&self) -> bool {
        let state = self.seen.as_ref().map(|seen| &seen.state);
        matches!(state, Some(Observation::Running(Running { main_ended_at: Some(_), .. })))
    }

    /// What a script that ended well left behind and holds its output is waited for while it works; the user is informed.
    fn report_leftovers(&mut self, running: &Running) {
        if running.main_ended_at.is_some() && !self.leftovers_reported {
            self.leftovers_reported = true;
            let text = "the script exited with code 0; waiting for child processes that still hold its output, while they work";
            self.watched.reporter.note(text.into());
        }
    }

    /// The first request stops gracefully, every later one kills.
    fn obey_interrupts(&mut self) {
        let requests = self.watched.cancel.stop_requests();
        if requests == self.stop_requests_seen {
            return;
        }
        let why = format!("{} to the supervisor", self.watched.cancel.last_signal());
        let is_preemption = self.watched.sigterm_preempts && !self.watched.cancel.is_interrupt();
        if self.stop_requests_seen == 0 && requests == 1 {
            let kind = if is_preemption { ActionKind::PreemptionNotice } else { ActionKind::StopRequested };
            self.stop(kind, &why);
            self.watched.reporter.note("once more kills at once".into());
        } else {
            self.kill(ActionKind::StopRequested, &format!("{why}, for the second time"));
        }
        self.stop_requests_seen = requests;
    }

    /// Whatever a fenced attempt does from here on is lost.
    fn obey_fence(&mut self) {
        if !self.stopping
            && let Some(why) = (self.watched.fenced)()
        {
            self.stop(ActionKind::Fenced, &why);
        }
    }

    fn intervene(&mut self, now_micros: i64) {
        if self.stopping {
            return;
        }
        let vitals = Vitals {
            running_seconds: (now_micros - self.began_micros) as f64 / 1e6,
            quiet_seconds: self.last_sign_micros.map(|sign| (now_micros - sign) as f64 / 1e6),
            unprinted_seconds: (now_micros - self.last_printed_micros.unwrap_or(self.began_micros)) as f64
                / 1e6,
            step: self.record.facts.last_step,
            committed_step: self.record.facts.last_committed_step,
            held_in_save: self.record.facts.held_in_save,
            handshake_seen: self.record.facts.handshake_seen,
            script_ended: self.script_has_ended(),
        };
        let injection = self.watched.injection.as_ref();
        let Some((intervention, why)) = watchdog::intervention(&vitals, &self.watched.limits, injection)
        else {
            return;
        };
        match intervention {
            Intervention::Inject(Fault::Kill) => self.kill(ActionKind::InjectedKill, &why),
            Intervention::Inject(Fault::Terminate) => self.stop(ActionKind::InjectedTerm, &why),
            Intervention::Timeout | Intervention::NoHandshake => self.stop(ActionKind::TimeoutKill, &why),
            Intervention::Hang => {
                // Before it is ended, which makes it do something else.
                let (summary, _) = self.watched.take_stacks(&self.record);
                self.stop(ActionKind::HangKill, &format!("{why}; {summary}"));
            }
            Intervention::Enough => self.stop(ActionKind::EarlyStop, &why),
            Intervention::Budget => self.stop(ActionKind::BudgetStop, &why),
        }
    }

    fn stop(&mut self, kind: ActionKind, why: &str) {
        self.note_down(kind, false, why);
        // A preemption does not write to the control file first; its rehearsal does not either.
        if kind != ActionKind::InjectedTerm {
            let asked =
                control::request(&*self.watched.channel, Command::Stop, why, self.watched.clock.now());
            self.report_failure("write the control file", asked.err());
        }
        let grace_seconds = self.watched.grace_seconds;
        // Ctrl-C reaches a script as if it ran alone; one with Trackway's recorder saves at SIGTERM, and Ctrl-C would end it within a step.
        let is_interrupt = kind == ActionKind::StopRequested && self.watched.cancel.is_interrupt();
        self.deliver(match is_interrupt && !self.record.facts.handshake_seen {
            true => StopMode::Interrupt { grace_seconds },
            false => StopMode::Graceful { grace_seconds },
        });
    }

    fn kill(&mut self, kind: ActionKind, why: &str) {
        // An injected kill is identified by its kind; this is for a stop that did not wait for its grace period.
        self.note_down(kind, kind == ActionKind::StopRequested, why);
        self.deliver(StopMode::Kill);
    }

    /// The action is written down before it is done, so that a crash in between leaves the truth.
    fn note_down(&mut self, kind: ActionKind, kill_sent: bool, why: &str) {
        self.stopping = true;
        let action = OwnAction { kind, at: self.watched.clock.now(), kill_sent, why: why.into() };
        let written = actions::append(&self.watched.files, &action);
        self.report_failure("write down the action", written.err());
        self.watched.reporter.note(format!("ending the attempt: {why}"));
    }

    /// A stop that cannot be delivered is tried again, and reported once.
    fn deliver(&mut self, mode: StopMode) {
        let delivered = self.watched.launcher.stop(self.watched.placement, mode);
        let is_first = self.undelivered.is_none_or(|(tried, _)| tried != mode);
        self.undelivered = delivered.as_ref().err().map(|_| (mode, self.watched.clock.monotonic_micros()));
        if let Err(error) = delivered
            && is_first
        {
            self.watched.reporter.note(error.to_string());
        }
    }

    fn report_failure(&self, what: &str, error: Option<std::io::Error>) {
        if let Some(error) = error {
            self.watched.reporter.note(format!("could not {what}: {error}"));
        }
    }
}

#[cfg(test)]
mod tests;
