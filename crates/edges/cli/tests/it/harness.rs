//! A separate home for each test, and the binary as a user meets it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::documents;

pub const BINARY: &str = env!("CARGO_BIN_EXE_trackway");
/// Longest a test waits for something to come true.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether the interpreter `python` has the main frameworks and the package: `TRACKWAY_TEST_FRAMEWORKS` is `main`, or
/// `1` for all frameworks (`make test-python FRAMEWORKS=main` prepares it and demands them). If not, the test is
/// skipped.
pub fn has_frameworks() -> bool {
    let has = matches!(std::env::var("TRACKWAY_TEST_FRAMEWORKS").as_deref(), Ok("main" | "1"));
    if !has {
        trackway_skip::skip!("TRACKWAY_TEST_FRAMEWORKS does not say that `python` has the frameworks");
    }
    has
}

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

    /// The same where another user gets to: not every temporary folder is such a place.
    pub fn for_other_users() -> Self {
        let everybody_enters = |folder: &PathBuf| {
            folder
                .ancestors()
                .all(|at| std::fs::metadata(at).is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
        };
        let folder =
            [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()].into_iter().find(everybody_enters);
        let folder = folder.expect("a temporary folder that every user may enter");
        Self { folder: tempfile::tempdir_in(folder).expect("a temporary folder"), environment: Vec::new() }
    }

    /// The same with more in the environment of every command.
    pub fn with(environment: &[(String, String)]) -> Self {
        Self { environment: environment.to_vec(), ..Self::new() }
    }

    /// The folder the commands run in.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// This test program under a path that is not below a project: what Trackway records of a program depends on the
    /// lock files above it, and the target folder may be anywhere.
    pub fn program(&self) -> PathBuf {
        let link = self.path().join("program");
        if link.symlink_metadata().is_err() {
            let program = std::env::current_exe().expect("a test program has a path");
            std::os::unix::fs::symlink(program, &link).expect("a link in the temporary folder");
        }
        link
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

    /// Runs of this home find so many GPUs, whatever the machine has.
    pub fn has_gpus(&self, count: u32) {
        let folder = self.path().join("settings/trackway");
        std::fs::create_dir_all(&folder).expect("a folder in the temporary folder");
        self.write("settings/trackway/config.toml", &format!("[engines.local]\ngpus = {count}\n"));
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| is_kept(&name.to_string_lossy())))
            .env("TRACKWAY_HOME", self.state())
            .env("XDG_CONFIG_HOME", self.path().join("settings"))
            // Screens show the same person on every machine.
            .env("USER", "tester")
            .stdin(Stdio::null());
        command.env("NO_COLOR", "1").envs(self.environment.iter().cloned());
        command
    }

    /// Runs a command. What it prints with `--json` must be a document of the catalogue.
    pub fn trackway(&self, arguments: &[&str]) -> Answer {
        let answer = answer(self.command(arguments).output().expect("the binary starts"));
        if arguments.iter().take_while(|word| **word != "--").any(|word| *word == "--json") {
            documents::check(arguments, &answer.stdout);
        }
        answer
    }

    /// Runs a command that must answer with one JSON document, in which no object has a key twice.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let answer = self.trackway(&[arguments, &["--json"]].concat());
        let document: Distinct = serde_json::from_str(&answer.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr));
        document.0
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

    /// Lets the scripts continue that wait for it with [`UNTIL_GO`].
    pub fn go(&self) {
        self.write("go", "");
    }

    pub fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    }
}

/// Whether a variable of the person who starts the tests reaches the commands: others, such as the rank of a job, a virtual environment or
/// settings of Trackway, change what they answer.
fn is_kept(variable: &str) -> bool {
    ["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "RUST_BACKTRACE", "LLVM_PROFILE_FILE"].contains(&variable)
        || variable.starts_with("TRACKWAY_TEST_")
}

/// JSON whose objects name each key once: readers differ in which of two they take.
struct Distinct(Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistinctKeys).map(Self)
    }
}

struct DistinctKeys;

impl<'de> Visitor<'de> for DistinctKeys {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Distinct(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = serde_json::Map::new();
        while let Some((key, Distinct(value))) = entries.next_entry::<String, Distinct>()? {
            if object.contains_key(&key) {
                return Err(serde::de::Error::custom(format!(
                    "the key `{key}` is there twice in one object"
                )));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

pub fn answer(output: Output) -> Answer {
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What is left in a pipe of a process that has ended.
pub fn rest(pipe: Option<impl std::io::Read>) -> String {
    let mut text = String::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_string(&mut text);
    }
    text
}

/// What a shell script of a test does until the test calls [`Home::go`].
pub const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.02; done";

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
