//! Attempts as real processes. The test binary starts itself again in other parts: `__shim` is the shim,
//! `__supervisor` a supervisor that is killed, `__full_disk` a launch inside a tiny file system.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "all of it is a test, without the harness that says so"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use trackway_core::{AttemptId, Clock, Ids, LaunchKind, RunId, SequentialIds};
use trackway_formats::layout::AttemptLayout;
use trackway_launch::shim::{LineTime, ShimRecord};
use trackway_launch::testing::FakeEngine;
use trackway_launch::{
    Adopt, EngineRequest, ExitRecord, LaunchDetails, LaunchSpec, Launcher, LocalLauncher, Observation,
    Placement, Running, SHIM_COMMAND, SignalReason, StopMode, conformance,
};
use trackway_recorder::Origin;
use trackway_redact::Redactor;
use trackway_system::SystemClock;

/// Every test, by name.
const TESTS: &[(&str, fn())] = &[
    ("the_local_launcher_keeps_the_contract", the_local_launcher_keeps_the_contract),
    ("the_fake_launcher_keeps_the_contract", the_fake_launcher_keeps_the_contract),
    ("outputs_stay_apart_exact_and_dated", outputs_stay_apart_exact_and_dated),
    ("the_script_sees_a_clean_process", the_script_sees_a_clean_process),
    ("a_script_that_forks_and_exits_is_followed", a_script_that_forks_and_exits_is_followed),
    ("what_is_left_continues_while_it_works", what_is_left_continues_while_it_works),
    (
        "a_daemon_with_the_output_does_not_keep_the_attempt",
        a_daemon_with_the_output_does_not_keep_the_attempt,
    ),
    ("daemons_are_ended_with_the_attempt", daemons_are_ended_with_the_attempt),
    ("a_failed_script_takes_its_children_with_it", a_failed_script_takes_its_children_with_it),
    ("a_second_stop_kills_at_once", a_second_stop_kills_at_once),
    ("signals_are_passed_on", signals_are_passed_on),
    ("endless_lines_cost_bounded_memory", endless_lines_cost_bounded_memory),
    ("binary_output_is_unaltered", binary_output_is_unaltered),
    ("words_and_values_are_passed_by_their_bytes", words_and_values_are_passed_by_their_bytes),
    ("a_full_disk_never_stops_the_script", a_full_disk_never_stops_the_script),
    ("secrets_never_reach_the_disk", secrets_never_reach_the_disk),
    ("a_killed_supervisor_changes_nothing", a_killed_supervisor_changes_nothing),
    ("a_killed_shim_is_no_death_of_the_script", a_killed_shim_is_no_death_of_the_script),
    ("a_forged_exit_record_is_not_believed", a_forged_exit_record_is_not_believed),
    ("what_cannot_be_executed_is_explained", what_cannot_be_executed_is_explained),
    ("racing_launches_start_one_script", racing_launches_start_one_script),
    ("other_machines_are_not_judged", other_machines_are_not_judged),
    ("printed_json_becomes_metrics", printed_json_becomes_metrics),
    ("printed_bars_become_metrics", printed_bars_become_metrics),
    ("printed_settings_become_parameters", printed_settings_become_parameters),
    ("event_files_become_metrics", event_files_become_metrics),
    ("redaction_keeps_up_with_a_flood", redaction_keeps_up_with_a_flood),
    ("the_folder_is_searched_once_before_the_start", the_folder_is_searched_once_before_the_start),
    ("an_attempt_costs_little", an_attempt_costs_little),
];

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let arguments: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match arguments.first().map(String::as_str) {
        Some(SHIM_COMMAND) => {
            std::process::exit(trackway_launch::shim::run(Path::new(&words[1]), &words[3..]))
        }
        Some("__supervisor") => supervisor(Path::new(&arguments[1])),
        Some("__full_disk") => full_disk(Path::new(&arguments[1])),
        Some("--list") => TESTS.iter().for_each(|(name, _)| println!("{name}: test")),
        _ => {
            run_tests(arguments.iter().find(|argument| !argument.starts_with('-')).map_or("", String::as_str))
        }
    }
}

fn run_tests(filter: &str) {
    let chosen: Vec<_> = TESTS.iter().filter(|(name, _)| name.contains(filter)).collect();
    println!("running {} tests", chosen.len());
    let mut failed = 0;
    for (name, test) in chosen {
        let begun = Begun::now();
        let passed = std::panic::catch_unwind(test).is_ok();
        failed += usize::from(!passed);
        println!(
            "test {name} ... {} ({} ms)",
            if passed { "ok" } else { "FAILED" },
            begun.elapsed().as_millis()
        );
    }
    println!("test result: {}. {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    std::process::exit(i32::from(failed > 0));
}

/// A stopwatch, started when made.
struct Begun(i64);

impl Begun {
    fn now() -> Self {
        Self(SystemClock.monotonic_micros())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros((SystemClock.monotonic_micros() - self.0) as u64)
    }
}

/// A folder for attempts, removed at the end.
struct Place {
    folder: tempfile::TempDir,
    launcher: LocalLauncher,
    next: AtomicU64,
}

impl Place {
    fn new() -> Self {
        let launcher = launcher_of_tests();
        Self { folder: tempfile::tempdir().unwrap(), launcher, next: AtomicU64::new(0) }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn spec(&self, argv: &[&str]) -> LaunchSpec {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        spec_in(&self.path().join(format!("attempt-{number}")), argv, u128::from(number))
    }

    fn launch(&self, spec: &LaunchSpec) -> Placement {
        self.launcher.launch(spec, &Redactor::from_own_environment()).unwrap()
    }

    fn end(&self, placement: &Placement) -> Observation {
        let begun = Begun::now();
        loop {
            let seen = self.launcher.wait(placement, Duration::from_secs(1)).unwrap();
            if seen.is_final() {
                return seen.state;
            }
            assert!(begun.elapsed() < Duration::from_secs(100), "still {seen:?}");
        }
    }

    /// Where the local launcher keeps an attempt's files.
    fn files(&self, placement: &Placement) -> AttemptLayout {
        AttemptLayout::new(placement.extra["directory"].as_str().unwrap())
    }

    /// Launches and waits: the exit record and the files.
    fn run(&self, spec: &LaunchSpec) -> (ExitRecord, AttemptLayout) {
        let placement = self.launch(spec);
        match self.end(&placement) {
            Observation::Exited(exit) => (*exit, AttemptLayout::new(&spec.directory)),
            other => panic!("{other:?}"),
        }
    }

    fn sh(&self, script: &str) -> (ExitRecord, AttemptLayout) {
        self.run(&self.spec(&["sh", "-c", script]))
    }
}

#[derive(Debug)]
struct Fixed(u128);

impl Ids for Fixed {
    fn next_ulid(&self) -> u128 {
        self.0
    }
}

fn spec_in(directory: &Path, argv: &[&str], number: u128) -> LaunchSpec {
    // The shim's id separates the attempts of two test runs, because leftovers are searched for by it.
    let unique = (u128::from(std::process::id()) << 64) + number + 1;
    LaunchSpec {
        directory: directory.to_owned(),
        argv: argv.iter().map(Into::into).collect(),
        environment: BTreeMap::new(),
        terminal: None,
        details: LaunchDetails {
            run_id: RunId::new(&SequentialIds::default()),
            attempt_id: AttemptId::new(&Fixed(unique)),
            attempt_number: 1,
            kind: LaunchKind::Train,
            rung: "1".into(),
            epoch: 1,
            working_directory: PathBuf::from("/"),
            grace_seconds: 1.0,
            linger_seconds: None,
            checkpoint_root: directory.join("checkpoints"),
            seed: Some(17),
            config_sha256: String::new(),
            data_sha256: None,
            data_files: BTreeMap::new(),
            adopt: Adopt::Nothing,
            isolation: None,
            container: None,
            continues_from: None,
            checkpoint_every_steps: None,
            checkpoint_every_seconds: None,
            checkpoint_every_epochs: None,
            devices: Vec::new(),
            request: EngineRequest::default(),
        },
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Begun::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
}

/// Proves that the launcher does what every launcher must.
fn the_local_launcher_keeps_the_contract() {
    let place = Place::new();
    let launcher = || -> Box<dyn Launcher> { Box::new(place.launcher.clone()) };
    conformance::run(&launcher, None, &SystemClock, |argv| place.spec(argv));
}

/// Proves that the launcher for tests keeps the contract too, with an engine that has a queue, fails to answer and loses replies.
fn the_fake_launcher_keeps_the_contract() {
    let (place, engine) = (Place::new(), FakeEngine::default());
    let launcher = || -> Box<dyn Launcher> { Box::new(engine.launcher()) };
    conformance::run(&launcher, Some(&engine), &SystemClock, |argv| place.spec(argv));
}

/// Proves that each output keeps its bytes and order, that lines are dated, and that the record counts them.
fn outputs_stay_apart_exact_and_dated() {
    let place = Place::new();
    let (exit, files) = place.sh(
        "i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; sleep 0.4; printf 'no newline'",
    );
    let expected = |word: &str| (0..200).map(|index| format!("{word} {index}\n")).collect::<String>();
    let stdout = std::fs::read_to_string(files.stdout_log()).unwrap();
    assert_eq!(stdout, expected("out") + "no newline");
    assert_eq!(std::fs::read_to_string(files.stderr_log()).unwrap(), expected("err"));
    let times: Vec<LineTime> = LineTime::read_all(&std::fs::read(files.stdout_times()).unwrap()).collect();
    // Lines that were read together have one time; the last one came alone.
    assert!((2..=201).contains(&times.len()), "{times:?}");
    for time in &times {
        let offset = time.offset_bytes as usize;
        assert!(offset == 0 || stdout.as_bytes()[offset - 1] == b'\n');
    }
    let [.., before, last] = times[..] else { panic!("{times:?}") };
    assert_eq!(last.offset_bytes as usize, stdout.len() - "no newline".len());
    let gap = last.at.seconds_since(before.at);
    assert!((0.2..10.0).contains(&gap), "the last line came 0.4 s later, not {gap}");
    assert_eq!((exit.exit_code, exit.lines, exit.log_bytes_lost), (Some(0), 401, 0));
    assert_eq!(exit.stdout_bytes, stdout.len() as u64);
    assert!(exit.wall_seconds > 0.4 && exit.peak_rss_bytes > 0 && !exit.clock_went_backwards);
    let mode = std::fs::metadata(files.folder()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "others must not read an attempt");
}

/// Proves that the script has an empty standard input, default signals, a separate group and its variables.
fn the_script_sees_a_clean_process() {
    let place = Place::new();
    let mut spec = place.spec(&[
        "sh",
        "-c",
        "cat; grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o pgid= -p $$ | tr -d ' '; echo $$; \
         echo $TRACKWAY_RUNG $TRACKWAY_SEED $BATCH $PYTHONUNBUFFERED; ls /proc/self/fd | wc -l",
    ]);
    spec.environment.insert("BATCH".into(), "16".into());
    let (_, files) = place.run(&spec);
    let text = std::fs::read_to_string(files.stdout_log()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "SigBlk:\t0000000000000000");
    let ignored = u64::from_str_radix(lines[1].strip_prefix("SigIgn:\t").unwrap(), 16).unwrap();
    // 32 and 33 belong to the C library, which lets no program touch them; some parents leave them ignored.
    assert_eq!(ignored & !(0b11 << 31), 0);
    assert_eq!(lines[2], lines[3], "the script leads its own process group");
    assert_eq!(lines[4], "1 17 16 1");
    assert_eq!(lines[5], "4", "the script inherits nothing but its three standard descriptors");
}

/// Proves that the attempt continues while a process holds the output of a script that forked and exited well, that
/// this can be seen meanwhile, and that the linger limit ends it.
fn a_script_that_forks_and_exits_is_followed() {
    let place = Place::new();
    let placement = place.launch(&place.spec(&["sh", "-c", "(sleep 0.7; echo late) & echo early"]));
    until("the main process has ended", || {
        let seen = place.launcher.observe(&placement).unwrap().state;
        matches!(seen, Observation::Running(Running { main_ended_at: Some(_), unsupervised: false, .. }))
    });
    let Observation::Exited(exit) = place.end(&placement) else { panic!("it must have a record") };
    let files = place.files(&placement);
    assert_eq!(std::fs::read_to_string(files.stdout_log()).unwrap(), "early\nlate\n");
    assert_eq!((exit.exit_code, exit.tree.leftover_processes_ended), (Some(0), 0));
    assert!(exit.ended_at.seconds_since(exit.main_ended_at.unwrap()) > 0.4);

    let mut limited = place.spec(&["sh", "-c", "sleep 1000 & echo early"]);
    limited.details.linger_seconds = Some(0.3);
    let (exit, _) = place.run(&limited);
    assert_eq!((exit.exit_code, exit.tree.names), (Some(0), vec!["sleep".to_owned()]));
    assert!(exit.wall_seconds >= 0.3 && exit.wall_seconds < 20.0);
}

/// Proves that what holds the output of a script that succeeded ends with the attempt once it only waits, and is named,
/// and that what still prints continues to its end.
fn what_is_left_continues_while_it_works() {
    let place = Place::new();
    let launch = |script: &str| place.launch(&place.spec(&["sh", "-c", script]));
    let (waits, works) = (
        launch("sleep 1000 & echo early"),
        launch("(for i in 1 2 3 4 5 6; do sleep 2; echo $i; done) & echo 0"),
    );
    let exit = |placement: &Placement| match place.end(placement) {
        Observation::Exited(exit) => *exit,
        other => panic!("{other:?}"),
    };
    let (waited, worked) = (exit(&waits), exit(&works));
    assert_eq!((waited.exit_code, waited.tree.names.clone()), (Some(0), vec!["sleep".to_owned()]));
    assert!((10.0..60.0).contains(&waited.wall_seconds), "{}", waited.wall_seconds);
    assert_eq!((worked.exit_code, worked.tree.leftover_processes_ended, worked.lines), (Some(0), 0, 7));
    let counted = (waited.counted_seconds(), worked.counted_seconds());
    assert!(counted.0 < 8.0 && counted.1 > 8.0, "what only waits is not charged: {counted:?}");
}

/// Proves that a process in a separate session that holds the output of a script that succeeded ends with the attempt, and is named.
fn a_daemon_with_the_output_does_not_keep_the_attempt() {
    let place = Place::new();
    let (exit, _) = place.sh("setsid sleep 1000 & echo early");
    assert_eq!((exit.exit_code, exit.tree.names), (Some(0), vec!["sleep".to_owned()]));
    assert!((10.0..60.0).contains(&exit.wall_seconds), "{}", exit.wall_seconds);
}

/// Proves that a process that left its parent, its group, its session and the output is still ended.
fn daemons_are_ended_with_the_attempt() {
    let place = Place::new();
    let pid_file = place.path().join("daemon");
    let script = format!(
        "(setsid sh -c 'trap \"\" TERM; echo $$ > {0}; while :; do sleep 0.1; done' > /dev/null 2>&1 < /dev/null &) ; \
         while [ ! -s {0} ]; do sleep 0.01; done",
        pid_file.display()
    );
    let (exit, _) = place.sh(&script);
    let daemon = std::fs::read_to_string(pid_file).unwrap();
    assert!(!is_running(&daemon), "the daemon goes on");
    assert_eq!(exit.exit_code, Some(0));
    assert!(
        exit.tree.leftover_processes_ended >= 1 && exit.tree.names.contains(&"sh".to_owned()),
        "{:?}",
        exit.tree
    );
    assert!(exit.killed_after_grace, "it ignored SIGTERM");
}

/// Proves that the children of a script that failed do not keep the attempt alive by holding its output.
fn a_failed_script_takes_its_children_with_it() {
    let place = Place::new();
    let (exit, _) = place.sh("sleep 1000 & sleep 1000 & exit 3");
    assert_eq!((exit.exit_code, exit.tree.leftover_processes_ended), (Some(3), 2));
    assert!(exit.wall_seconds < 20.0 && !exit.killed_after_grace);
    assert_eq!(exit.signals[0].why, SignalReason::Leftover);
}

/// Proves that a second request does not wait for the grace period of the first.
fn a_second_stop_kills_at_once() {
    let place = Place::new();
    let placement =
        place.launch(&place.spec(&["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"]));
    let files = place.files(&placement);
    until("it is up", || std::fs::read(files.stdout_log()).is_ok_and(|log| log == b"up\n"));
    let begun = Begun::now();
    place.launcher.stop(&placement, StopMode::Graceful { grace_seconds: 600.0 }).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    place.launcher.stop(&placement, StopMode::Graceful { grace_seconds: 600.0 }).unwrap();
    let Observation::Exited(exit) = place.end(&placement) else { panic!("it must have a record") };
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(exit.signal, Some(9));
    let sent: Vec<_> = exit.signals.iter().map(|sent| (sent.signal, sent.why)).collect();
    assert_eq!(sent[..2], [(15, SignalReason::StopRequested), (9, SignalReason::KillRequested)]);
    assert!(exit.stop_requested() && !exit.killed_after_grace);
}

/// Proves that signals that mean something to scripts reach them.
fn signals_are_passed_on() {
    let place = Place::new();
    let placement = place.launch(&place.spec(&[
        "sh",
        "-c",
        "trap 'echo usr1; exit 0' USR1; echo up; while :; do sleep 0.05; done",
    ]));
    let files = place.files(&placement);
    until("it is up", || std::fs::read(files.stdout_log()).is_ok_and(|log| log == b"up\n"));
    let shim = nix::unistd::Pid::from_raw(placement.job_id.parse().unwrap());
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGUSR1).unwrap();
    let Observation::Exited(exit) = place.end(&placement) else { panic!("it must have a record") };
    assert_eq!(exit.signals[0].why, SignalReason::Forwarded);
    assert_eq!(std::fs::read(files.stdout_log()).unwrap(), b"up\nusr1\n");
}

/// Proves that output without a single newline is kept whole while the shim stays small. 200 MB, or as many as
/// `TRACKWAY_TEST_LOG_MEGABYTES` sets.
fn endless_lines_cost_bounded_memory() {
    let place = Place::new();
    let megabytes =
        std::env::var("TRACKWAY_TEST_LOG_MEGABYTES").map_or(200, |text| text.parse::<u64>().unwrap());
    let command = format!("head -c {megabytes}000000 /dev/zero | tr '\\0' x");
    let begun = Begun::now();
    let placement = place.launch(&place.spec(&["sh", "-c", &command]));
    let mut peak_kib = 0;
    let exit = loop {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", placement.job_id)).unwrap_or_default();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak_kib = peak_kib.max(peak.unwrap_or(0u64));
        match place.launcher.wait(&placement, Duration::from_millis(20)).unwrap().state {
            Observation::Exited(exit) => break exit,
            _ => assert!(begun.elapsed() < Duration::from_secs(300)),
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "  {megabytes} MB in {seconds:.1} s: {:.0} MB/s, shim's peak {peak_kib} KiB",
        megabytes as f64 / seconds
    );
    let files = place.files(&placement);
    assert_eq!(std::fs::metadata(files.stdout_log()).unwrap().len(), megabytes * 1_000_000);
    assert_eq!((exit.exit_code, exit.lines), (Some(0), 1));
    assert!(peak_kib > 0 && peak_kib < 40 * 1024, "the shim used {peak_kib} KiB");
    let marks = std::fs::metadata(files.stdout_times()).unwrap().len() / 16;
    assert!(marks >= megabytes * 1_000_000 / (1 << 20), "only {marks} times");
}

/// Proves that bytes of every value come through as they are, also when they look like half a line.
fn binary_output_is_unaltered() {
    let place = Place::new();
    let input = place.path().join("input");
    let bytes: Vec<u8> =
        (0..3_000_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&input, &bytes).unwrap();
    let (exit, files) = place.run(&place.spec(&["cat", input.to_str().unwrap()]));
    assert_eq!(exit.exit_code, Some(0));
    assert!(std::fs::read(files.stdout_log()).unwrap() == bytes, "the bytes were altered");
}

/// Proves that an argument and a variable which are not UTF-8 reach the script as they are, and that the stored launch has them as text.
fn words_and_values_are_passed_by_their_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    let word = std::ffi::OsStr::from_bytes(b"out/\xff.pt").to_owned();
    let mut spec = place.spec(&["sh", "-c", "printf '%s\n%s' \"$1\" \"$FROM\"", "sh"]);
    spec.argv.push(word.clone());
    spec.environment.insert("FROM".into(), word);
    let (exit, files) = place.run(&spec);
    assert_eq!(exit.exit_code, Some(0));
    assert_eq!(std::fs::read(files.stdout_log()).unwrap(), b"out/\xff.pt\nout/\xff.pt");
    let stored = trackway_launch::StoredLaunch::read(&spec.directory).unwrap().unwrap();
    assert_eq!((&*stored.argv[4], &*stored.environment["FROM"]), ("out/\\xff.pt", "out/\\xff.pt"));
}

/// Proves that a script that logs to a full disk runs to its end, that the loss is counted, and that the exit record is
/// written all the same, also where there was little room for it; and that printed values which the record could not take are in it.
/// Needs a separate file system, hence user namespaces or root.
fn a_full_disk_never_stops_the_script() {
    let place = Place::new();
    let script = "mount -t tmpfs -o size=1m none \"$2\" && exec \"$1\" __full_disk \"$2\"";
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .arg(place.path())
        .stderr(Stdio::null())
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => {}
        Ok(Some(101)) => panic!("the part inside the full file system failed; run it by hand to see why"),
        _ => trackway_skip::skip!("this system allows no mount in a user namespace"),
    }
}

fn full_disk(directory: &Path) {
    let script = "head -c 20000000 /dev/zero; echo done > /proc/self/fd/2; exit 7";
    let exit = run_on_full_disk(directory, "attempt", script);
    assert_eq!((exit.exit_code, exit.stdout_bytes), (Some(7), 20_000_000));
    let log = directory.join("attempt/stdout.log");
    let stored = std::fs::metadata(&log).unwrap().len();
    assert!(stored > 100_000, "only {stored} bytes stored");
    assert!(exit.log_bytes_lost >= 20_000_000 - stored, "{} lost, {stored} stored", exit.log_bytes_lost);
    std::fs::write(log, "").unwrap();
    // Full from the first printed value to the end.
    let filler = directory.join("filler");
    let fill = format!("cat /dev/zero > {} 2>/dev/null", filler.display());
    let prints = format!("{fill}; echo 'step 1 loss 0.5'; echo 'step 2 loss 0.25'; exit 3");
    let exit = run_on_full_disk(directory, "printed", &prints);
    assert_eq!((exit.exit_code, exit.metric_values), (Some(3), 2));
    let dropped = exit.left_out.iter().find(|fields| fields["kind"] == "dropped_frames").unwrap();
    assert!(dropped["count"].parse::<u64>().unwrap() >= 2, "{dropped:?}");
    // Little is free before it begins: not what an exit record takes at most.
    std::fs::File::options().write(true).open(&filler).unwrap().set_len(0).unwrap();
    let free = nix::sys::statvfs::statvfs(directory).unwrap();
    let free = free.blocks_available() * free.fragment_size();
    std::fs::write(&filler, vec![7; usize::try_from(free).unwrap() - (64 << 10)]).unwrap();
    let more = directory.join("more");
    let fill = format!("cat /dev/zero > {} 2>/dev/null; exit 4", more.display());
    let exit = run_on_full_disk(directory, "little", &fill);
    assert_eq!(exit.exit_code, Some(4));
    // There is room for the launch alone: a script whose end cannot be kept does not begin.
    let rest = directory.join("rest");
    std::fs::write(&rest, vec![7; 1 << 20]).unwrap_err();
    let taken = std::fs::metadata(&rest).unwrap().len();
    std::fs::File::options().write(true).open(&rest).unwrap().set_len(taken - (8 << 10)).unwrap();
    let spec = spec_in(&directory.join("none"), &["sh", "-c", "true"], 4);
    assert!(launcher_of_tests().launch(&spec, &Redactor::from_own_environment()).is_err());
}

fn launcher_of_tests() -> LocalLauncher {
    LocalLauncher::new(std::env::current_exe().unwrap())
}

fn run_on_full_disk(directory: &Path, name: &str, script: &str) -> ExitRecord {
    let launcher = launcher_of_tests();
    let spec = spec_in(&directory.join(name), &["sh", "-c", script], u128::from(name.as_bytes()[0]));
    let placement = launcher.launch(&spec, &Redactor::from_own_environment()).unwrap();
    loop {
        match launcher.wait(&placement, Duration::from_secs(60)).unwrap().state {
            Observation::Exited(exit) => break *exit,
            other => assert!(!other.is_final(), "{other:?}"),
        }
    }
}

/// Proves that no planted secret is in any file of the attempt: not from the environment, the arguments, the log
/// (written in halves with a pause), or the error file.
fn secrets_never_reach_the_disk() {
    let place = Place::new();
    let literal = "an-ordinary-looking-phrase";
    let github = format!("ghp{}{}", "_", "a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8");
    let (left, right) = github.split_at(17);
    let script = "printf 'using %s' \"$1\"; sleep 0.35; printf '%s for the upload\\n' \"$2\"; echo \"$LAB_TOKEN\" >&2; \
                  printf '{\"message\": \"key %s%s\"}' \"$1\" \"$2\" > $TORCHELASTIC_ERROR_FILE; printf 'password='; \
                  sleep 0.35; printf hunter2hunter2; sleep 0.35; printf 'still-it\\n'";
    let mut spec =
        place.spec(&["sh", "-c", script, "train", left, right, "--api-key", "tiny-key-1", literal]);
    spec.environment.insert("LAB_TOKEN".into(), literal.into());
    let (exit, files) = place.run(&spec);
    assert_eq!(exit.exit_code, Some(0));
    let mut bytes = Vec::new();
    let mut folders = vec![files.folder().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() { folders.push(entry) } else { bytes.extend(std::fs::read(entry).unwrap()) }
        }
    }
    let everything = String::from_utf8_lossy(&bytes);
    for secret in [literal, &github, "tiny-key-1", "hunter2hunter2", "still-it\n"] {
        assert!(!everything.contains(secret), "`{secret}` is on the disk");
    }
    let stdout = std::fs::read_to_string(files.stdout_log()).unwrap();
    assert_eq!(stdout, "using [redacted:github-token] for the upload\npassword=[redacted:secret]\n");
    assert_eq!(exit.error_file.as_deref(), Some("{\"message\": \"key [redacted:github-token]\"}"));
}

fn supervisor(directory: &Path) {
    let script = "echo up; sleep 1; echo still here; exit 4";
    let spec = spec_in(directory, &["sh", "-c", script], 1);
    let launcher = LocalLauncher::new(std::env::current_exe().unwrap());
    launcher.launch(&spec, &Redactor::from_own_environment()).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

/// Proves that the script and its record do not depend on the supervisor, and that another process finds both.
fn a_killed_supervisor_changes_nothing() {
    let place = Place::new();
    let directory = place.path().join("attempt");
    let mut supervisor =
        Command::new(std::env::current_exe().unwrap()).arg("__supervisor").arg(&directory).spawn().unwrap();
    until("it is up", || std::fs::read(directory.join("stdout.log")).is_ok_and(|log| log == b"up\n"));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    let placement = place.launcher.find(AttemptId::new(&Fixed(1)), &directory).unwrap().unwrap();
    let seen = place.launcher.observe(&placement).unwrap().state;
    assert!(matches!(seen, Observation::Running(Running { unsupervised: false, .. })), "{seen:?}");
    let Observation::Exited(exit) = place.end(&placement) else { panic!("it must have a record") };
    assert_eq!(exit.exit_code, Some(4));
    assert_eq!(std::fs::read(directory.join("stdout.log")).unwrap(), b"up\nstill here\n");
}

/// Proves that a script whose shim was killed is reported as running, is found gone only when it is, and can be
/// stopped.
fn a_killed_shim_is_no_death_of_the_script() {
    let place = Place::new();
    let placement = place.launch(&place.spec(&["sh", "-c", "setsid sleep 1000 & exec sleep 1000"]));
    let child = || ShimRecord::read(place.files(&placement).folder()).unwrap().unwrap().child;
    until("both sleep", || {
        let cmdline = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        child().is_some_and(|child| cmdline(child.pid) == "sleep\n")
    });
    let shim = nix::unistd::Pid::from_raw(placement.job_id.parse().unwrap());
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGKILL).unwrap();
    until("the shim is gone", || {
        let seen = place.launcher.observe(&placement).unwrap().state;
        matches!(seen, Observation::Running(Running { unsupervised: true, .. }))
    });
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(child().unwrap().pid),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let seen = place.launcher.observe(&placement).unwrap().state;
    assert!(
        matches!(seen, Observation::Running(_)),
        "the second process is part of the attempt, but: {seen:?}"
    );
    place.launcher.stop(&placement, StopMode::Kill).unwrap();
    assert!(matches!(place.end(&placement), Observation::Gone { rebooted: false, .. }));
}

/// Proves that an exit record which the script writes itself ends nothing: the attempt runs until its shim has ended,
/// and ends as the script did.
fn a_forged_exit_record_is_not_believed() {
    let place = Place::new();
    let forged = serde_json::to_string(&ExitRecord { exit_code: Some(0), ..ExitRecord::default() }).unwrap();
    let script = place.path().join("forge.sh");
    let spec = place.spec(&["sh", script.to_str().unwrap()]);
    let record = spec.directory.join("exit.json");
    let text = format!("echo '{forged}' > '{}'; echo forged; sleep 1; exit 9", record.display());
    std::fs::write(&script, text).unwrap();
    let placement = place.launch(&spec);
    until("the record is forged", || ExitRecord::read(&spec.directory).is_ok_and(|record| record.is_some()));
    let seen = place.launcher.observe(&placement).unwrap().state;
    assert!(matches!(seen, Observation::Running(_)), "{seen:?}");
    until("the script has ended", || place.launcher.observe(&placement).unwrap().is_final());
    let Observation::Exited(exit) = place.launcher.observe(&placement).unwrap().state else {
        panic!("it ended")
    };
    assert_eq!(exit.exit_code, Some(9));
}

/// Proves that whatever keeps a script from starting is named with its error number and a way out.
fn what_cannot_be_executed_is_explained() {
    let place = Place::new();
    let script = place.path().join("train.py");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let script = script.to_str().unwrap();
    let explain = |spec: &LaunchSpec| place.run(spec).0.spawn_error.unwrap();
    let cases = [
        (place.spec(&["no-such-command-anywhere"]), 2, "was not found in PATH"),
        (place.spec(&["./nothing/here"]), 2, "does not exist"),
        (place.spec(&[script]), 13, "chmod +x"),
    ];
    for (spec, errno, text) in cases {
        let error = explain(&spec);
        assert!(error.errno == Some(errno) && error.message.contains(text), "{error:?}");
    }
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(explain(&place.spec(&[script])).message.contains("interpreter"));
    let mut nowhere = place.spec(&["true"]);
    nowhere.details.working_directory = "/no/such/folder".into();
    assert!(explain(&nowhere).message.contains("/no/such/folder"));
    let refused = place.launcher.launch(&place.spec(&[]), &Redactor::from_own_environment()).unwrap_err();
    assert!(refused.to_string().contains("the command is empty"), "{refused}");
    let mut two_nodes = place.spec(&["true"]);
    two_nodes.details.request.resources.nodes = Some(2);
    let refused = place.launcher.launch(&two_nodes, &Redactor::from_own_environment()).unwrap_err();
    assert!(
        refused.to_string().contains("`resources.nodes` = 2: the local launcher has one machine; request 1"),
        "{refused}"
    );
    assert!(!two_nodes.directory.exists(), "a refused launch leaves nothing behind");
}

/// Proves that of many launches of one attempt at the same time exactly one starts the script, and all find it.
fn racing_launches_start_one_script() {
    let place = Place::new();
    let count = place.path().join("count");
    let spec = place.spec(&["sh", "-c", &format!("echo x >> {}; sleep 0.5", count.display())]);
    let placements: Vec<Placement> = std::thread::scope(|scope| {
        let launches: Vec<_> = (0..6).map(|_| scope.spawn(|| place.launch(&spec))).collect();
        launches.into_iter().map(|launch| launch.join().unwrap()).collect()
    });
    assert!(placements.iter().all(|placement| *placement == placements[0]));
    place.end(&placements[0]);
    assert_eq!(std::fs::read(count).unwrap(), b"x\n");
}

/// Proves that from another machine nothing is concluded, and that a reboot is.
fn other_machines_are_not_judged() {
    let place = Place::new();
    let placement = place.launch(&place.spec(&["sleep", "1000"]));
    let altered = |field: &str, value: &str| {
        let mut other = placement.clone();
        other.extra["machine"]["boot_id"] = "another-boot".into();
        other.extra["machine"][field] = value.into();
        place.launcher.observe(&other).unwrap().state
    };
    assert!(matches!(altered("host", "another-host"), Observation::CannotTell { .. }));
    let rebooted = altered("boot_id", "earlier-boot");
    if placement.extra["machine"]["machine_id"].is_null() {
        assert!(matches!(rebooted, Observation::CannotTell { .. }), "{rebooted:?}");
    } else {
        assert!(matches!(rebooted, Observation::Gone { rebooted: true, .. }), "{rebooted:?}");
    }
    place.launcher.stop(&placement, StopMode::Kill).unwrap();
    assert!(matches!(place.end(&placement), Observation::Exited(_)));
}

/// Proves that numbers in printed JSON lines become a flight record with their steps.
fn printed_json_becomes_metrics() {
    let place = Place::new();
    let (exit, files) = place.sh(
        "echo starting; echo '{\"step\": 1, \"loss\": 0.5}'; echo '{\"step\": 2, \"loss\": NaN}'; echo '{\"accuracy\": 0.9}'",
    );
    assert_eq!(exit.metric_values, 3);
    let segment = std::fs::read_dir(files.records()).unwrap().next().unwrap().unwrap().path();
    let segment = trackway_formats::record::read_segment(&std::fs::read(segment).unwrap()).unwrap();
    assert!(segment.damage.is_empty() && segment.close.is_some());
    let points: Vec<(u64, String, String)> = segment
        .metric_points()
        .map(|point| (point.step, point.name.into_owned(), point.value.to_string()))
        .collect();
    let point = |step, name: &str, value: &str| (step, name.to_owned(), value.to_owned());
    assert_eq!(points, [point(1, "loss", "0.5"), point(2, "loss", "NaN"), point(2, "accuracy", "0.9")]);
}

/// Proves that bars on one output give their step to what is printed on the other, and that nothing secret gets in.
fn printed_bars_become_metrics() {
    let place = Place::new();
    let (exit, files) = place.sh(
        "printf '\\r 0%%|x| 0/4 [00:00<?, ?it/s]\\r 25%%|x| 1/4 [00:01<00:03, 1it/s, loss=0.5]' >&2; sleep 0.2; echo \"{'acc': '0.75'}\"; sleep 0.2; printf '\\r 50%%|x| 2/4 [00:01<00:03, 1it/s, loss=0.25]\\n' >&2; echo 'step 9: loss 0.1 password=8675309123'",
    );
    assert_eq!(exit.metric_values, 4);
    let segments = std::fs::read_dir(files.records()).unwrap().map(|entry| entry.unwrap().path());
    let segments = segments.map(|path| std::fs::read(path).unwrap());
    let points: Vec<(u64, String, f64)> = segments
        .map(|bytes| trackway_formats::record::read_segment(&bytes).unwrap())
        .filter(|segment| segment.header.as_ref().unwrap().origin == Origin::Stdout)
        .flat_map(|segment| {
            let points = segment.metric_points();
            points.map(|point| (point.step, point.name.into_owned(), point.value)).collect::<Vec<_>>()
        })
        .collect();
    let point = |step, name: &str, value| (step, name.to_owned(), value);
    let expected =
        [point(1, "loss", 0.5), point(1, "acc", 0.75), point(2, "loss", 0.25), point(9, "loss", 0.1)];
    assert_eq!(points.len(), 4, "{points:?}");
    assert!(expected.iter().all(|point| points.contains(point)), "{points:?}");
}

/// Proves that settings which a script shows before it trains are recorded as parameters and not as metrics, secrets not.
fn printed_settings_become_parameters() {
    let place = Place::new();
    let (exit, files) = place.sh(
        "echo 'learning_rate = 1e-3'; echo 'api_key = \"hunter2hunter2\"'; echo 'max_iters = 2000 # all'; echo '[INFO|trainer.py:1632] 2026-01-02 10:02:03,124 >>   Total optimization steps = 600'; echo 'step 1: loss 0.5'",
    );
    assert_eq!(exit.metric_values, 1);
    let segment = std::fs::read_dir(files.records()).unwrap().next().unwrap().unwrap().path();
    let segment = trackway_formats::record::read_segment(&std::fs::read(segment).unwrap()).unwrap();
    let parameters: Vec<(&str, &str)> = segment
        .frames
        .iter()
        .filter_map(|located| match &located.frame {
            trackway_formats::record::Frame::Param(param) => Some((&*param.name, &*param.value)),
            _ => None,
        })
        .collect();
    let has = |name, value| parameters.contains(&(name, value));
    assert!(
        has("learning_rate", "1e-3") && has("max_iters", "2000") && has("total_steps", "600"),
        "{parameters:?}"
    );
    assert!(!parameters.iter().any(|(_, value)| value.contains("hunter2")), "{parameters:?}");
    let points: Vec<(u64, String)> =
        segment.metric_points().map(|point| (point.step, point.name.into_owned())).collect();
    assert_eq!(points, [(1, "loss".to_owned())]);
}

/// Proves that event files which the script writes become a record with its origin, with steps, times and names that
/// separate folders, and that files from before the attempt do not.
fn event_files_become_metrics() {
    let place = Place::new();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../base/formats/tests/vectors/tensorboard");
    let copy = |folder: &str, to: &str| {
        format!(
            "mkdir -p logs/{to} && cat {}/{folder}/events* > logs/{to}/events.out.tfevents.$(date +%s).host && sleep 1.1; ",
            vectors.display()
        )
    };
    let old = "mkdir -p logs/old && echo x > logs/old/events.out.tfevents.1000.host; ";
    let (exit, files) =
        place.sh(&format!("{old}{}{}", copy("tensorboardx", "train"), copy("restarted", "test")));
    let mut points = Vec::new();
    let mut restarts = Vec::new();
    for path in std::fs::read_dir(files.records()).unwrap() {
        let bytes = std::fs::read(path.unwrap().path()).unwrap();
        let segment = trackway_formats::record::read_segment(&bytes).unwrap();
        match segment.header.as_ref().unwrap().origin {
            Origin::Telemetry => continue,
            origin => assert_eq!(origin, Origin::TensorBoard),
        }
        points
            .extend(segment.metric_points().map(|point| (point.name.into_owned(), point.step, point.value)));
        restarts.extend(segment.frames.iter().filter_map(|located| match &located.frame {
            // The working folder may be one with more entries than are looked at.
            trackway_formats::record::Frame::Event(event) if event.kind != "event_file_skipped" => {
                Some((event.kind.clone(), event.step))
            }
            _ => None,
        }));
    }
    let of =
        |name: &str| points.iter().filter(|point| point.0 == name).map(|point| point.2).collect::<Vec<_>>();
    assert_eq!(of("loss"), [1.0, 0.5, 0.25]);
    assert_eq!(of("test/loss").len(), 8 + 6, "{points:?}");
    assert_eq!(restarts, [("tensorboard_restart".to_owned(), Some(4))]);
    assert_eq!(exit.metric_values, 3 + 8 + 6);
}

/// Proves that redaction alters nothing in large ordinary logs, and not slowly; prints the figures.
fn redaction_keeps_up_with_a_flood() {
    let line = |step: u64| {
        format!(
            "[2026-11-21 07:00:00] step {step}/200000 loss=0.{step:06} lr=1.0e-04 tokens/s=18231 grad_norm=0.93\n"
        )
    };
    let plain: String = (0..100_000).map(line).collect();
    let busy = plain.replace("tokens/s=18231", "token: 18231 key=x");
    let redactor = Redactor::from_environment([("LAB_TOKEN", "an-ordinary-looking-phrase")]);
    for (what, text) in [("training log", plain), ("log full of suspicious words", busy)] {
        let (mut clean, mut stream) = (Vec::with_capacity(text.len()), redactor.stream());
        stream.push(b"warm up\n", &mut clean);
        clean.clear();
        let begun = Begun::now();
        text.as_bytes().chunks(256 * 1024).for_each(|piece| stream.push(piece, &mut clean));
        stream.finish(&mut clean);
        let rate = text.len() as f64 / 1e6 / begun.elapsed().as_secs_f64();
        println!("  {what}: {rate:.0} MB/s");
        assert!(clean == text.as_bytes(), "nothing in it is a secret");
        assert!(rate > 0.2, "{rate} MB/s");
    }
}

/// Proves that the folder beside a script is searched for checkpoints once before it starts, for all that need to know what is there.
fn the_folder_is_searched_once_before_the_start() {
    let place = Place::new();
    let listed = |adopt: Adopt| {
        let work = tempfile::tempdir().unwrap();
        (0..50).for_each(|number| std::fs::write(work.path().join(format!("{number}.txt")), "x").unwrap());
        let mut spec = place.spec(&["sh", "-c", ": > begun"]);
        spec.details.working_directory = work.path().to_owned();
        spec.details.adopt = adopt;
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).unwrap();
        // Two equal events in a row would be one: between two searches the folder is closed.
        let seen = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_CLOSE_NOWRITE | AddWatchFlags::IN_CREATE;
        inotify.add_watch(work.path(), seen).unwrap();
        place.run(&spec);
        let mut events = Vec::new();
        while let Ok(more) = inotify.read_events() {
            events.extend(more);
        }
        let opened = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_ISDIR;
        let begun = events.iter().position(|event| event.mask.contains(AddWatchFlags::IN_CREATE)).unwrap();
        events[..begun].iter().filter(|event| event.mask.contains(opened)).count()
    };
    // What needs no checkpoint looks for files of metrics, too.
    let (others, all) = (listed(Adopt::Nothing), listed(Adopt::Detected));
    assert!(all <= others + 1, "{all} searches, of which {others} are for other files");
}

/// Proves that launching and ending an attempt costs far less than a training step of any size; prints the figures.
fn an_attempt_costs_little() {
    let place = Place::new();
    let median = |mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        samples[samples.len() / 2]
    };
    let timed = |work: &dyn Fn()| {
        let begun = Begun::now();
        work();
        begun.elapsed().as_secs_f64() * 1e3
    };
    let plain = median(
        (0..15).map(|_| timed(&|| assert!(Command::new("true").status().unwrap().success()))).collect(),
    );
    let attempt = median((0..15).map(|_| timed(&|| drop(place.run(&place.spec(&["true"]))))).collect());
    println!("  `true`: {plain:.2} ms, as an attempt: {attempt:.2} ms");
    // Far above what it takes on a busy machine: a canary, not a measurement.
    assert!(attempt - plain < 2_000.0, "an attempt costs {attempt} ms, `true` {plain} ms");
}
