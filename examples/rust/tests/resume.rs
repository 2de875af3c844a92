//! The example jobs under the hands of a launcher: killed, ended, stopped, resumed.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use trackway_core::{AttemptId, Rng as _, RunId, SequentialIds, SplitMix64};
use trackway_recorder::{CheckpointState, CheckpointView};

const WINE: &str = env!("CARGO_BIN_EXE_wine_mlp");
const CHARACTERS: &str = env!("CARGO_BIN_EXE_char_transformer");

/// One run as a launcher sees it: a folder, and a new attempt with a higher epoch per launch.
struct Run {
    home: tempfile::TempDir,
    id: RunId,
    ids: SequentialIds,
    job: &'static str,
    arguments: Vec<String>,
    attempts: u64,
}

/// A launched attempt whose output is read line by line.
struct Attempt {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Run {
    fn new(job: &'static str, arguments: &str) -> Self {
        let ids = SequentialIds::default();
        Self {
            home: tempfile::tempdir().unwrap(),
            id: RunId::new(&ids),
            ids,
            job,
            arguments: arguments.split_whitespace().map(Into::into).collect(),
            attempts: 0,
        }
    }

    fn control_file(&self) -> std::path::PathBuf {
        self.home.path().join(format!("{}/control.jsonl", self.attempts))
    }

    fn command(&mut self, extra: &[&str]) -> Command {
        self.attempts += 1;
        let folder = self.home.path().join(self.attempts.to_string());
        fs::create_dir_all(folder.join("records")).unwrap();
        fs::write(self.control_file(), "").unwrap();
        let mut command = bare(self.job);
        command
            .args(&self.arguments)
            .args(extra)
            .env("TRACKWAY_RUN", self.id.to_string())
            .env("TRACKWAY_ATTEMPT", AttemptId::new(&self.ids).to_string())
            .env("TRACKWAY_EPOCH", self.attempts.to_string())
            .env("TRACKWAY_RECORD", folder.join("records"))
            .env("TRACKWAY_CONTROL", self.control_file())
            .env("TRACKWAY_CHECKPOINTS", self.home.path().join("checkpoints"))
            .env("TRACKWAY_KIND", "train")
            .env("TRACKWAY_RUNG", "1")
            .stdout(Stdio::piped());
        command
    }

    fn launch(&mut self, extra: &[&str]) -> Attempt {
        let mut child = self.command(extra).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Attempt { child, lines, seen: Vec::new() }
    }

    /// Launches once more and lets it end by itself.
    fn complete(&mut self) -> String {
        let output = self.command(&[]).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn record_bytes(&self) -> u64 {
        let folder = self.home.path().join(format!("{}/records", self.attempts));
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }
}

impl Attempt {
    /// Reads on until a line holds `text`.
    fn wait_for(&mut self, text: &str) {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no `{text}` in {:?}", self.seen)).unwrap();
            self.seen.push(line);
            if self.seen.last().unwrap().contains(text) {
                return;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end; returns code, signal and everything printed.
    fn end(mut self) -> (Option<i32>, Option<i32>, String) {
        self.seen.extend(self.lines.map(Result::unwrap));
        let status = self.child.wait().unwrap();
        (status.code(), status.signal(), self.seen.join("\n"))
    }
}

/// The job without anything of Trackway in its environment.
fn bare(job: &str) -> Command {
    let mut command = Command::new(job);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TRACKWAY_")) {
        command.env_remove(name);
    }
    command
}

fn control_run(job: &str, arguments: &str) -> String {
    let Output { status, stdout, .. } = bare(job).args(arguments.split_whitespace()).output().unwrap();
    assert!(status.success(), "{job} {arguments} ended with {status}");
    final_line(&String::from_utf8(stdout).unwrap())
}

fn final_line(output: &str) -> String {
    let line = output.lines().last().unwrap_or_default();
    assert!(line.starts_with("final step=") && line.contains("weights_blake3="), "{output}");
    line.to_owned()
}

const WINE_ARGUMENTS: &str = "--steps 120 --validate-every 40 --seed 3";

/// Proves that a run killed three times with SIGKILL, each time in another place between its checkpoints, ends in the
/// very weights of a run that was never disturbed, outside Trackway; and that the seed does change the weights.
#[test]
fn wine_killed_and_resumed_ends_in_the_same_weights() {
    let undisturbed = control_run(WINE, WINE_ARGUMENTS);
    let mut run = Run::new(WINE, &format!("{WINE_ARGUMENTS} --checkpoint-every 10"));
    for (saved, delay_millis) in [(20, 0), (40, 7), (70, 16)] {
        let mut attempt = run.launch(&["--step-millis", "5"]);
        attempt.wait_for(&format!("checkpoint at step {saved}"));
        std::thread::sleep(Duration::from_millis(delay_millis));
        attempt.signal(Signal::SIGKILL);
        let (_, signal, _) = attempt.end();
        assert_eq!(signal, Some(9));
        assert!(run.record_bytes() > 0, "the flight record of a killed attempt must hold what it logged");
    }
    let output = run.complete();
    assert!(step_after(&output, "resumed from the checkpoint of step ") >= 70, "{output}");
    assert_eq!(final_line(&output), undisturbed);
    assert_ne!(control_run(WINE, &format!("{WINE_ARGUMENTS} --seed 4")), undisturbed);
}

/// Proves with real processes that SIGKILL at random times, most of them while something is being saved, tears no
/// checkpoint and loses none that was announced, and that the weights come out as if nothing had happened. Half of
/// `TRACKWAY_KILLS` (50) are made here, the others on a PyTorch script (`make test-python`); `TRACKWAY_SEED` replays.
#[test]
fn random_kills_tear_no_checkpoint() {
    let number =
        |name, default| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(default);
    let (kills_wanted, seed) = (number("TRACKWAY_KILLS", 50).div_ceil(2), number("TRACKWAY_SEED", 1));
    println!("{kills_wanted} kills, seed {seed}");
    let arguments = "--steps 60 --validate-every 30 --seed 3 --step-millis 2";
    let undisturbed = control_run(WINE, arguments);
    let mut random = SplitMix64::new(seed);
    let (mut kills, mut writing, mut runs) = (0, 0, 0);
    while kills < kills_wanted {
        let mut run = Run::new(WINE, &format!("{arguments} --checkpoint-every 1"));
        runs += 1;
        let mut announced = 0;
        loop {
            if kills >= kills_wanted {
                assert_eq!(final_line(&run.complete()), undisturbed, "run {runs}");
                break;
            }
            let mut attempt = run.launch(&[]);
            let delay_micros = 20_000 + random.next_u64() % 180_000;
            attempt.wait_for("training items");
            std::thread::sleep(Duration::from_micros(delay_micros));
            attempt.signal(Signal::SIGKILL);
            let (code, signal, output) = attempt.end();
            if code == Some(0) {
                assert_eq!(final_line(&output), undisturbed, "run {runs}");
                break;
            }
            assert_eq!(signal, Some(9), "{output}");
            kills += 1;
            announced = announced.max(last_saved(&output));
            writing += check_root(&run.home.path().join("checkpoints"), announced);
        }
    }
    println!("{kills} kills over {runs} runs; {writing} left a save behind that was never committed");
}

/// Every committed checkpoint verifies, the announced one or a newer one is what a resume takes; returns how many
/// saves were cut off.
fn check_root(root: &Path, announced: u64) -> usize {
    let view = CheckpointView::open(root).unwrap();
    let list = view.list();
    for info in list.iter().filter(|info| info.manifest_sha256.is_some()) {
        view.verify(info.number).unwrap_or_else(|error| panic!("step {}: {error}", info.step));
    }
    let target = view.resume_target().unwrap().map_or(0, |target| target.step);
    assert!(target >= announced, "step {announced} was announced, and a resume takes {target}");
    list.iter().filter(|info| info.state == CheckpointState::Writing).count()
}

/// The step of the last checkpoint that a job announced; 0 when none.
fn last_saved(output: &str) -> u64 {
    if output.contains("checkpoint at step ") { step_after(output, "checkpoint at step ") } else { 0 }
}

/// Proves that SIGTERM and a stop command each end a job with 143 after a checkpoint at the very step it stopped at,
/// and that the run then continues to the weights of an undisturbed one.
#[test]
fn wine_saves_before_it_obeys() {
    let mut run = Run::new(WINE, WINE_ARGUMENTS);
    let slowly = ["--step-millis", "10"];

    let mut attempt = run.launch(&slowly);
    attempt.wait_for("training items");
    std::thread::sleep(Duration::from_millis(150));
    attempt.signal(Signal::SIGTERM);
    let (code, _, terminated) = attempt.end();
    assert_eq!(code, Some(143), "{terminated}");
    let saved = step_after(&terminated, "checkpoint at step ");
    assert_eq!(step_after(&terminated, "stopping at step "), saved);

    let mut attempt = run.launch(&slowly);
    attempt.wait_for(&format!("resumed from the checkpoint of step {saved}"));
    let stop = r#"{"version":1,"id":1,"at":"2026-11-21T07:00:00Z","command":"stop","why":"test"}"#;
    fs::write(run.control_file(), format!("{stop}\n")).unwrap();
    let (code, _, stopped) = attempt.end();
    assert_eq!(code, Some(143), "{stopped}");
    assert_eq!(step_after(&stopped, "stopping at step "), step_after(&stopped, "checkpoint at step "));

    assert_eq!(final_line(&run.complete()), control_run(WINE, WINE_ARGUMENTS));
}

/// The number that follows the last occurrence of `text`, up to the next blank, comma or line.
fn step_after(output: &str, text: &str) -> u64 {
    let rest = output.rsplit_once(text).unwrap_or_else(|| panic!("no `{text}` in {output}")).1;
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Proves that a checkpoint is refused, by the name of what differs, when the launch has another seed; and that
/// resuming a finished run trains nothing and prints the same again.
#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let mut run = Run::new(WINE, "--steps 5");
    let first = final_line(&run.complete());
    let output = run.command(&["--seed", "99"]).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("cannot resume from the checkpoint of step 5: its seed is 17"), "{said}");
    assert_eq!(final_line(&run.complete()), first);
}

/// Proves the same exactness for the character model: killed between two checkpoints it ends in the weights of an
/// undisturbed run; and that it refuses to continue with a text that changed in between.
#[test]
fn characters_killed_and_resumed_end_in_the_same_weights() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    write_text(&text, 12_000);
    let arguments = format!("--steps 8 --batch 2 --validate-every 100 --text {}", text.display());
    let undisturbed = control_run(CHARACTERS, &arguments);

    let mut run = Run::new(CHARACTERS, &format!("--checkpoint-every 3 {arguments}"));
    let mut attempt = run.launch(&["--step-millis", "50"]);
    attempt.wait_for("checkpoint at step 3");
    std::thread::sleep(Duration::from_millis(60));
    attempt.signal(Signal::SIGKILL);
    attempt.end();
    assert_eq!(final_line(&run.complete()), undisturbed);

    write_text(&text, 12_001);
    let mut child = run.command(&[]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(said.contains("its training data (BLAKE3) is"), "{said}");
}

fn write_text(path: &Path, characters: usize) {
    let verse = "The quality of mercy is not strain'd,\nIt droppeth as the gentle rain from heaven\n";
    fs::write(path, verse.chars().cycle().take(characters).collect::<String>()).unwrap();
}
