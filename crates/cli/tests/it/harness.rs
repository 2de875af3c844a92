//! A home of its own for each test, and the binary as a user meets it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub const BINARY: &str = env!("CARGO_BIN_EXE_trackway");
/// Longest a test waits for something to come true.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Home {
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), environment: Vec::new() }
    }

    /// The same with more in the environment of every command.
    pub fn with(environment: &[(String, String)]) -> Self {
        Self { environment: environment.to_vec(), ..Self::new() }
    }

    /// The folder the commands run in.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Trackway's state.
    pub fn state(&self) -> PathBuf {
        self.path().join("home")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("a file in the temporary folder");
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .current_dir(self.path())
            .env("TRACKWAY_HOME", self.state())
            .stdin(Stdio::null());
        command.env_remove("TRACKWAY_LEDGER").env("NO_COLOR", "1");
        command.envs(self.environment.iter().cloned());
        command
    }

    pub fn trackway(&self, arguments: &[&str]) -> Answer {
        answer(self.command(arguments).output().expect("the binary starts"))
    }

    /// Runs a command that must answer with one JSON document.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let answer = self.trackway(&[arguments, &["--json"]].concat());
        serde_json::from_str(&answer.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr))
    }

    /// `trackway run --json [options] -- sh -c SCRIPT`.
    pub fn run_script(&self, options: &[&str], script: &str) -> (i32, Value) {
        let mut arguments = vec!["run", "--json"];
        arguments.extend(options);
        arguments.extend(["--", "sh", "-c", script]);
        let answer = self.trackway(&arguments);
        let document = serde_json::from_str(&answer.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr));
        (answer.code, document)
    }

    /// The rows of a query.
    pub fn sql(&self, query: &str) -> Vec<Value> {
        let document = self.json(&["sql", query]);
        document.as_array().unwrap_or_else(|| panic!("rows, not {document}")).clone()
    }

    pub fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    }
}

pub fn answer(output: Output) -> Answer {
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Waits until `ready` gives something.
pub fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn signal(process: &Child, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(process.id()).expect("a pid"));
    nix::sys::signal::kill(pid, signal).expect("the process lives");
}

/// Every file below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}
