//! What every launcher must do, as a function that its tests call.

use std::time::Duration;

use trackway_core::Clock;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::runfile::{EngineTemplate, SecretReference, TemplateFormat};
use trackway_redact::Redactor;

use crate::{
    EngineRequest, GpuRequest, GrowingFile, LaunchError, LaunchSpec, Launcher, Observation, ObservedAttempt,
    Placement, Refusal, RequestPart, StopMode, Stream,
};

/// No attempt of the suite takes longer than this to end.
const END_SECONDS_MAX: i64 = 60;

/// Every part of a request that a launcher gives or refuses.
const PARTS: [RequestPart; 11] = [
    RequestPart::Nodes,
    RequestPart::ProcessesPerNode,
    RequestPart::GpuMemory,
    RequestPart::TimeLimit,
    RequestPart::Image,
    RequestPart::Account,
    RequestPart::Queue,
    RequestPart::Priority,
    RequestPart::ExcludeHosts,
    RequestPart::Secrets,
    RequestPart::Template,
];

/// Faults that a test can cause in an engine, to check its launcher.
pub trait Faults {
    /// The job that is submitted next waits in the queue for so many polls.
    fn hold(&self, polls: u32);
    /// So many polls from now on get no answer.
    fn hide(&self, polls: u32);
    /// The next submit is carried out, and its reply is lost.
    fn lose_reply(&self);
    /// Of the job that is submitted next, the end of this file does not arrive: a path in the folder of the attempt.
    fn cut(&self, file: &str);
}

/// Checks a launcher against the contract of [`Launcher`]. `launcher` makes one, as a supervisor that was just started
/// has it; `faults` are those of its engine, where it has one that can be made to show them. `spec` makes a new launch
/// (new attempt id, new folder, no linger limit) of a command; the commands are POSIX `sh`.
///
/// # Panics
/// When the launcher breaks the contract, naming which part.
pub fn run(
    launcher: &dyn Fn() -> Box<dyn Launcher>,
    faults: Option<&dyn Faults>,
    clock: &dyn Clock,
    mut spec: impl FnMut(&[&str]) -> LaunchSpec,
) {
    let redactor = Redactor::from_own_environment();
    let suite = Suite { launcher: launcher(), clock, redactor };
    suite.what_is_not_offered_is_refused(&mut spec);
    suite.each_part_is_given_or_refused(&mut spec);
    suite.codes_and_signals(&mut spec);
    suite.every_answer_is_dated(&mut spec);
    suite.launching_twice_is_launching_once(&mut spec);
    suite.stops_are_gentle_then_forced(&mut spec);
    suite.a_placement_outlives_its_maker(launcher, &mut spec);
    suite.foreign_placements_are_refused(&mut spec);
    if let Some(faults) = faults {
        suite.a_queue_is_no_end(faults, &mut spec);
        suite.no_answer_is_no_end(faults, &mut spec);
        suite.a_lost_reply_starts_nothing_twice(faults, &mut spec);
        suite.what_did_not_arrive_is_known(faults, &mut spec);
    }
}

/// A request for this part alone. `host`: the only machine of a launcher that has one.
fn request_for(part: RequestPart, host: Option<&str>) -> EngineRequest {
    let mut request = EngineRequest::default();
    match part {
        RequestPart::Nodes => request.resources.nodes = Some(2),
        RequestPart::ProcessesPerNode => request.resources.processes_per_node = Some(2),
        // Of no accelerator, so that their number is not refused as well.
        RequestPart::GpuMemory => {
            request.resources.gpus = Some(GpuRequest { count: 0, kind: None, memory_bytes: Some(1 << 30) });
        }
        RequestPart::TimeLimit => request.resources.time_limit_seconds = Some(3600.0),
        RequestPart::Image => request.image = Some("python:3.12".into()),
        RequestPart::Account => request.account = Some("lab".into()),
        RequestPart::Queue => request.queue = Some("gpu".into()),
        RequestPart::Priority => request.priority = Some("high".into()),
        RequestPart::ExcludeHosts => request.exclude_hosts = vec![host.unwrap_or("elsewhere").to_owned()],
        RequestPart::Secrets => {
            request.secrets = vec![SecretReference { name: "TOKEN".into(), from: "hub/token".into() }];
        }
        RequestPart::Template => {
            let (format, text) = (TemplateFormat::Yaml, "spec: {}".into());
            request.template = Some(EngineTemplate { format, text });
        }
    }
    request
}

struct Suite<'a> {
    launcher: Box<dyn Launcher>,
    clock: &'a dyn Clock,
    redactor: Redactor,
}

impl Suite<'_> {
    fn launch(&self, spec: &LaunchSpec) -> Placement {
        let placement = self.launcher.launch(spec, &self.redactor).expect("conformance: a good launch works");
        assert_eq!(placement.launcher, self.launcher.name(), "conformance: a placement names its launcher");
        assert_eq!(placement.engine.as_deref(), self.launcher.engine(), "conformance: and its engine");
        placement
    }

    fn end(&self, placement: &Placement) -> Observation {
        let until = self.clock.monotonic_micros() + END_SECONDS_MAX * 1_000_000;
        loop {
            let seen =
                self.launcher.wait(placement, Duration::from_millis(500)).expect("conformance: wait works");
            if seen.is_final() {
                return seen.state;
            }
            assert!(self.clock.monotonic_micros() < until, "conformance: still {seen:?} after a minute");
        }
    }

    fn observe(&self, placement: &Placement) -> ObservedAttempt {
        self.launcher.observe(placement).expect("conformance: observe works")
    }

    /// What the offer gives is launched; what it does not give is refused for good, by its name, and starts nothing.
    fn what_is_not_offered_is_refused(&self, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        let mut spec = spec(&["true"]);
        let offer = self.launcher.offer(&spec.directory).expect("conformance: an offer can be found out");
        assert_eq!(offer.launcher, self.launcher.name(), "conformance: an offer names its launcher");
        let unmet = offer.unmet(&spec.request);
        assert!(unmet.is_empty(), "conformance: nothing is requested, and all of it given: {unmet:?}");
        let modest = std::mem::take(&mut spec.details.request);
        spec.details.request.resources.memory_bytes = Some(1 << 60);
        let unmet = offer.unmet(&spec.request);
        let [refusal] = unmet.as_slice() else { panic!("conformance: no machine has an exbibyte of memory") };
        assert_eq!(refusal.key, "resources.memory", "conformance: what is not given is named");
        self.refuses(&spec, refusal);
        spec.details.request = modest;
        self.end(&self.launch(&spec));
    }

    /// Each part of a request is given, or it is refused for good by its key, and starts nothing.
    fn each_part_is_given_or_refused(&self, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        for part in PARTS {
            let mut spec = spec(&["true"]);
            let offer = self.launcher.offer(&spec.directory).expect("conformance: an offer can be found out");
            spec.details.request = request_for(part, offer.host.as_deref());
            let unmet = offer.unmet(&spec.request);
            let [refusal] = unmet.as_slice() else {
                assert!(unmet.is_empty(), "conformance: {part:?} is refused once: {unmet:?}");
                self.end(&self.launch(&spec));
                continue;
            };
            assert_eq!(refusal.key, part.key(), "conformance: what is not given is named");
            self.refuses(&spec, refusal);
        }
    }

    /// What is refused is not launched, with the same reason, and no later try helps.
    fn refuses(&self, spec: &LaunchSpec, refusal: &Refusal) {
        let error = self.launcher.launch(spec, &self.redactor).expect_err("conformance: it is refused");
        assert!(matches!(error, LaunchError::Refused { .. }), "conformance: no later try helps: {error}");
        let (error, reason) = (error.to_string(), refusal.reason());
        assert!(error.contains(&reason), "conformance: it is refused with the same reason: {error}");
        let found = self.launcher.find(spec.attempt_id, &spec.directory).expect("conformance: find works");
        assert_eq!(found, None, "conformance: nothing was started");
    }

    /// Each answer has the time at which it was true, and the start of the job that it is about; an end is of the
    /// instance that ran.
    fn every_answer_is_dated(&self, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        let before = self.clock.now();
        let placement = self.launch(&spec(&["sh", "-c", "echo up; sleep 0.2"]));
        self.until_up(&placement);
        let running = self.observe(&placement);
        self.end(&placement);
        let ended = self.observe(&placement);
        for seen in [&running, &ended] {
            let at = seen.seen_at;
            assert!(before <= at && at <= self.clock.now(), "conformance: it was seen at {at:?}");
            assert!(seen.instance.is_some(), "conformance: what started has an instance: {seen:?}");
        }
        assert_eq!(
            running.instance, ended.instance,
            "conformance: the instance that ran is the one that ended"
        );
        assert!(!ended.hosts.is_empty(), "conformance: what ran has a host");
    }

    /// A code and a signal are different things, and a command that does not exist is an end, not an error.
    fn codes_and_signals(&self, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        for (command, code, signal) in
            [("exit 0", Some(0), None), ("exit 137", Some(137), None), ("kill -9 $$", None, Some(9))]
        {
            let placement = self.launch(&spec(&["sh", "-c", command]));
            let first = self.end(&placement);
            let Observation::Exited(exit) = &first else {
                panic!("conformance: {command} ended as {first:?}")
            };
            assert_eq!((exit.exit_code, exit.signal), (code, signal), "conformance: {command}");
            assert_eq!(self.observe(&placement).state, first, "conformance: an end stays the same");
            self.launcher
                .stop(&placement, StopMode::Kill)
                .expect("conformance: stopping an ended attempt succeeds");
        }
        let missing = self.end(&self.launch(&spec(&["/does/not/exist"])));
        let Observation::Exited(exit) = missing else { panic!("conformance: a missing command is an end") };
        assert!(
            exit.spawn_error.is_some() && exit.exit_code.is_none(),
            "conformance: a missing command is named"
        );
    }

    fn launching_twice_is_launching_once(&self, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        let spec = spec(&["sh", "-c", "echo once; sleep 0.2"]);
        let first = self.launch(&spec);
        assert_eq!(self.launch(&spec), first, "conformance: the second launch finds the first");
        self.end(&first);
        assert_eq!(self.launch(&spec), first, "conformance: a launch after the end finds the first");
        assert_eq!(self.printed(&first), b"once\n", "conformance: it ran once");
    }

    fn stops_are_gentle_then_forced(&self, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        let gentle =
            self.launch(&spec(&["sh", "-c", "trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done"]));
        self.until_up(&gentle);
        let running = self.observe(&gentle).state;
        assert!(matches!(running, Observation::Running(_)), "conformance: it runs, but is {running:?}");
        self.launcher
            .stop(&gentle, StopMode::Graceful { grace_seconds: 30.0 })
            .expect("conformance: stop works");
        let Observation::Exited(exit) = self.end(&gentle) else { panic!("conformance: a stop has a record") };
        assert_eq!(exit.exit_code, Some(3), "conformance: a gentle stop lets the script end itself");

        // A shell cannot trap what is ignored when it starts, as SIGINT is for what a script starts in the background.
        let script = "import signal, sys, time\n\
                      signal.signal(signal.SIGINT, lambda *_: sys.exit(5))\n\
                      print('up', flush=True)\ntime.sleep(60)";
        let interrupted = self.launch(&spec(&["python3", "-c", script]));
        self.until_up(&interrupted);
        self.launcher
            .stop(&interrupted, StopMode::Interrupt { grace_seconds: 30.0 })
            .expect("conformance: stop works");
        let Observation::Exited(exit) = self.end(&interrupted) else {
            panic!("conformance: an interruption has a record")
        };
        assert_eq!(exit.exit_code, Some(5), "conformance: an interruption is SIGINT first");

        let deaf = self.launch(&spec(&["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]));
        self.until_up(&deaf);
        self.launcher
            .stop(&deaf, StopMode::Graceful { grace_seconds: 0.3 })
            .expect("conformance: stop works");
        let Observation::Exited(exit) = self.end(&deaf) else {
            panic!("conformance: a forced end has a record")
        };
        assert_eq!(
            exit.signal,
            Some(9),
            "conformance: what ignores SIGTERM is killed after the grace period"
        );
    }

    /// What the attempt printed so far, as its channel has it.
    fn printed(&self, placement: &Placement) -> Vec<u8> {
        let channel = self.launcher.channel(placement).expect("conformance: an attempt has a channel");
        channel.read(GrowingFile::Log(Stream::Stdout), 0, 4096).expect("conformance: its log can be read")
    }

    fn until_up(&self, placement: &Placement) {
        let until = self.clock.monotonic_micros() + END_SECONDS_MAX * 1_000_000;
        while self.printed(placement) != b"up\n" {
            assert!(self.clock.monotonic_micros() < until, "conformance: no output after a minute");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A placement that was stored is enough for another supervisor to find, follow and end the attempt.
    fn a_placement_outlives_its_maker(
        &self,
        launcher: &dyn Fn() -> Box<dyn Launcher>,
        spec: &mut impl FnMut(&[&str]) -> LaunchSpec,
    ) {
        let spec = spec(&["sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done"]);
        let find = |suite: &Suite<'_>| {
            suite.launcher.find(spec.attempt_id, &spec.directory).expect("conformance: find works")
        };
        assert_eq!(find(self), None, "conformance: what was not launched is not found");
        let placement = self.launch(&spec);
        self.until_up(&placement);
        let mut stored = serde_json::to_value(&placement).expect("conformance: a placement becomes JSON");
        self.redactor.json(&mut stored);
        let read: Placement = serde_json::from_value(stored).expect("conformance: and a placement again");
        assert_eq!(
            read, placement,
            "conformance: unchanged by the redactor, which all that is stored passes"
        );
        let later =
            Suite { launcher: launcher(), clock: self.clock, redactor: Redactor::from_own_environment() };
        let running = later.observe(&read);
        assert!(matches!(running.state, Observation::Running(_)), "conformance: it runs, but is {running:?}");
        assert_eq!(running.instance, self.observe(&placement).instance, "conformance: the same instance");
        assert_eq!(later.printed(&read), b"up\n", "conformance: what it printed is found by it");
        assert_eq!(find(&later), Some(placement.clone()), "conformance: a lost placement is found");
        assert_eq!(
            later.launch(&spec),
            placement,
            "conformance: a launch finds what another supervisor began"
        );
        later
            .launcher
            .stop(&read, StopMode::Graceful { grace_seconds: 30.0 })
            .expect("conformance: stop works");
        for suite in [&later, self] {
            let Observation::Exited(exit) = suite.end(&read) else {
                panic!("conformance: the end is found by it")
            };
            assert_eq!(exit.exit_code, Some(5), "conformance: the right end");
        }
    }

    /// A job that waits for its turn names the reason, has no machine, and ends like any other.
    fn a_queue_is_no_end(&self, faults: &dyn Faults, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        faults.hold(3);
        let placement = self.launch(&spec(&["sh", "-c", "exit 0"]));
        let seen = self.observe(&placement);
        assert!(
            matches!(&seen.state, Observation::Pending { why } if !why.is_empty()),
            "conformance: it waits, but is {seen:?}"
        );
        assert!(seen.engine_state.is_some(), "conformance: the engine has a word for it");
        assert!(
            seen.instance.is_none() && seen.started_at.is_none() && seen.hosts.is_empty(),
            "conformance: it has not started: {seen:?}"
        );
        assert!(seen.submitted_at.is_some(), "conformance: what waits was submitted: {seen:?}");
        let end = self.end(&placement);
        assert!(matches!(end, Observation::Exited(_)), "conformance: it ran, but is {end:?}");
        let ended = self.observe(&placement);
        assert_eq!(ended.submitted_at, seen.submitted_at, "conformance: it was submitted once");
        assert!(ended.started_at >= ended.submitted_at, "conformance: it started after that: {ended:?}");

        faults.hold(1_000_000);
        let placement = self.launch(&spec(&["sh", "-c", "exit 0"]));
        let mode = StopMode::Graceful { grace_seconds: 30.0 };
        self.launcher.stop(&placement, mode).expect("conformance: stop works in the queue");
        let end = self.end(&placement);
        assert!(matches!(end, Observation::Gone { .. }), "conformance: it never ran, but is {end:?}");
        assert!(self.observe(&placement).never_started(), "conformance: it is known that it never started");
    }

    /// Without an answer of the engine nothing is known about the attempt, and its later answer counts.
    fn no_answer_is_no_end(&self, faults: &dyn Faults, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        let placement =
            self.launch(&spec(&["sh", "-c", "trap 'exit 6' TERM; echo up; while :; do sleep 0.05; done"]));
        self.until_up(&placement);
        faults.hide(3);
        let until = self.clock.monotonic_micros() + END_SECONDS_MAX * 1_000_000;
        let mut hidden = 0;
        loop {
            assert!(self.clock.monotonic_micros() < until, "conformance: not seen again after a minute");
            match self.launcher.wait(&placement, Duration::from_millis(50)) {
                Ok(ObservedAttempt { state: Observation::Running(_), .. }) if hidden > 0 => break,
                Ok(ObservedAttempt { state: Observation::Running(_), .. }) => {}
                Ok(ObservedAttempt { state: Observation::CannotTell { why, is_lasting }, .. }) => {
                    assert!(!why.is_empty() && !is_lasting, "conformance: it may pass: {why}");
                    hidden += 1;
                }
                Ok(seen) => panic!("conformance: no answer was taken for {seen:?}"),
                Err(error) => panic!("conformance: no answer is an observation, not {error}"),
            }
        }
        let mode = StopMode::Graceful { grace_seconds: 30.0 };
        self.launcher.stop(&placement, mode).expect("conformance: stop works");
        let Observation::Exited(exit) = self.end(&placement) else {
            panic!("conformance: a stop has a record")
        };
        assert_eq!(exit.exit_code, Some(6), "conformance: the right end");
        faults.hide(3);
        let again = self.observe(&placement).state;
        faults.hide(0);
        assert_eq!(again, Observation::Exited(exit), "conformance: an end that was reported is known");
    }

    /// A launch that was carried out and reported as failed is found by the next one of the same attempt.
    fn a_lost_reply_starts_nothing_twice(
        &self,
        faults: &dyn Faults,
        spec: &mut impl FnMut(&[&str]) -> LaunchSpec,
    ) {
        let spec = spec(&["sh", "-c", "echo once; sleep 0.2"]);
        faults.lose_reply();
        let error = self.launcher.launch(&spec, &self.redactor).expect_err("conformance: the reply was lost");
        assert!(error.is_passing(), "conformance: the same launch may succeed later: {error}");
        let placement = self.launch(&spec);
        self.end(&placement);
        assert_eq!(self.launch(&spec), placement, "conformance: the attempt has one place");
        assert_eq!(self.printed(&placement), b"once\n", "conformance: it ran once");
    }

    /// Where a file did not arrive as a whole, the record of the end says how long it was.
    fn what_did_not_arrive_is_known(
        &self,
        faults: &dyn Faults,
        spec: &mut impl FnMut(&[&str]) -> LaunchSpec,
    ) {
        let log = AttemptLayout::new("").stdout_log().to_string_lossy().into_owned();
        let written = |placement: &Placement| {
            let Observation::Exited(exit) = self.end(placement) else {
                panic!("conformance: an exit has a record")
            };
            exit.files.get(&log).copied().expect("conformance: the log is among its files")
        };
        let here = |placement: &Placement| self.printed(placement).len() as u64;
        let whole = self.launch(&spec(&["sh", "-c", "echo up"]));
        assert_eq!(written(&whole), here(&whole), "conformance: all of it arrived");
        faults.cut(&log);
        let cut = self.launch(&spec(&["sh", "-c", "echo up"]));
        assert!(written(&cut) > here(&cut), "conformance: some of it did not arrive");
    }

    fn foreign_placements_are_refused(&self, spec: &mut impl FnMut(&[&str]) -> LaunchSpec) {
        let mut placement = self.launch(&spec(&["true"]));
        self.end(&placement);
        placement.launcher = "another".into();
        assert!(
            self.launcher.observe(&placement).is_err(),
            "conformance: another launcher's placement is refused"
        );
    }
}
