//! Scripts in a terminal: what a person who types `trackway run` in one has of it, and what is stored.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::libc;
use nix::sys::signal::Signal;

use crate::harness::{Home, UNTIL_GO, eventually, files_below, signal};

/// Which streams each script of these tests has as terminals.
const WHICH: &str =
    "for n in 0 1 2; do [ -t $n ] && echo \"fd$n yes\" >> which || echo \"fd$n no\" >> which; done";

/// The terminal of a person: 31 lines of 97 columns, and what it was sent.
struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    own: OwnedFd,
}

impl Terminal {
    fn open() -> Self {
        let (mut master, mut own) = (0, 0);
        let mut size = libc::winsize { ws_row: 31, ws_col: 97, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the call writes two descriptors, reads a size, and takes nothing else.
        let opened = unsafe {
            libc::openpty(
                &raw mut master,
                &raw mut own,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                &raw mut size,
            )
        };
        assert_eq!(opened, 0, "a terminal");
        // SAFETY: both descriptors are new and nothing else has them; the children of other tests must not get them.
        let (keyboard, own) = unsafe {
            libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC);
            libc::fcntl(own, libc::F_SETFD, libc::FD_CLOEXEC);
            (File::from_raw_fd(master), OwnedFd::from_raw_fd(own))
        };
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count) = reader.read(&mut piece) {
                shown.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Self { keyboard, screen, own }
    }

    fn stream(&self) -> Stdio {
        self.own.try_clone().unwrap().into()
    }

    /// Starts a command as a shell in this terminal does; streams that were set stay.
    fn start(&self, command: &mut Command) -> Child {
        let terminal = self.own.as_raw_fd();
        let lead = move || {
            // SAFETY: both calls are async-signal-safe and take numbers.
            let done = unsafe { libc::setsid() >= 0 && libc::ioctl(terminal, libc::TIOCSCTTY, 0) == 0 };
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: the closure makes async-signal-safe calls only and allocates nothing.
        unsafe { command.pre_exec(lead) };
        command.spawn().expect("the binary starts")
    }

    /// `trackway run [options] -- sh -c SCRIPT` with all streams in this terminal.
    fn run(&self, home: &Home, options: &[&str], script: &str) -> Child {
        let mut command = run_command(home, options, script);
        command.stdin(self.stream()).stdout(self.stream()).stderr(self.stream());
        self.start(&mut command)
    }

    fn type_in(&self, text: &str) {
        (&self.keyboard).write_all(text.as_bytes()).unwrap();
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    fn until_shown(&self, text: &str) {
        eventually(text, || self.shown().contains(text).then_some(()));
    }
}

fn run_command(home: &Home, options: &[&str], script: &str) -> Command {
    home.command(&[&["run"], options, &["--", "sh", "-c", script]].concat())
}

/// What is stored of an output of the only run.
fn log(home: &Home, name: &str) -> String {
    let is_log = |path: &std::path::PathBuf| path.file_name().is_some_and(|found| found == name);
    let path = files_below(&home.state()).into_iter().find(is_log).expect("the log");
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

fn which(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("which")).unwrap()
}

/// Proves that a script has terminals of the right size where the user has one, that the user sees every byte, and that the log has the
/// last state of a line that is redrawn, in plain text, and every metric of it.
#[test]
fn a_script_in_a_terminal_has_one() {
    let (home, terminal) = (Home::new(), Terminal::open());
    let script = format!(
        "{WHICH}; stty size; stty size < /dev/fd/1; \
         printf 'epoch 1: loss 0.9\\repoch 2: loss 0.8\\repoch 3: loss 0.7\\n'; printf '\\033[31mred\\033[0m\\n' >&2"
    );
    let status = terminal.run(&home, &[], &script).wait().unwrap();
    assert!(status.success(), "{}", terminal.shown());
    assert_eq!(which(&home), "fd0 yes\nfd1 yes\nfd2 yes\n");
    assert_eq!(log(&home, "stdout.log"), "31 97\n31 97\nepoch 3: loss 0.7\n");
    assert_eq!(log(&home, "stderr.log"), "red\n");
    for bytes in ["epoch 1: loss 0.9\repoch 2: loss 0.8\repoch 3: loss 0.7\r\n", "\x1b[31mred\x1b[0m\r\n"] {
        terminal.until_shown(bytes);
    }
    let losses = home.sql("select value from metrics where name = 'loss'");
    assert_eq!(losses.len(), 3, "{losses:?}");
}

/// Proves that pipes stay pipes: a stream that is a file, all of them with `--json`, `--no-tty`, `--detach` or in CI;
/// and that their log has every byte.
#[test]
fn pipes_stay_pipes() {
    let script = format!("{WHICH}; printf 'a\\rb\\n'");
    let none = "fd0 no\nfd1 no\nfd2 no\n";
    for (options, ci, expected) in [
        (&["--json"][..], "", none),
        (&["--no-tty"], "", none),
        (&["--detach"], "", none),
        (&[], "true", none),
        (&[], "", "fd0 yes\nfd1 no\nfd2 yes\n"),
    ] {
        let (home, terminal) = (Home::new(), Terminal::open());
        let mut command = run_command(&home, options, &script);
        command.env("CI", ci).stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream());
        if expected != none {
            command.stdout(File::create(home.path().join("printed")).unwrap());
        }
        let status = terminal.start(&mut command).wait().unwrap();
        assert!(status.success(), "{options:?}: {}", terminal.shown());
        eventually("the end of the run", || {
            (home.sql("select state from runs")[0]["state"] == "completed").then_some(())
        });
        assert_eq!(which(&home), expected, "{options:?} {ci}");
        assert_eq!(log(&home, "stdout.log"), "a\rb\n", "{options:?} {ci}");
    }
}

/// Proves that what is piped in, or is in a file, reaches the script in the foreground, with `--json` too.
#[test]
fn piped_input_reaches_the_script() {
    let count = "echo rows $(wc -l)";
    for options in [&[][..], &["--json"]] {
        let home = Home::new();
        let rows = File::open(home.write("rows", "1\n2\n3\n")).unwrap();
        let printed = run_command(&home, options, count).stdin(rows).output().unwrap();
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        assert_eq!(log(&home, "stdout.log"), "rows 3\n", "{options:?}");
    }
    let home = Home::new();
    let mut run = run_command(&home, &[], count).stdin(Stdio::piped()).spawn().unwrap();
    run.stdin.take().unwrap().write_all(b"1\n2\n").unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(log(&home, "stdout.log"), "rows 2\n");
}

/// Proves that a script reads what is typed, that a password is not shown, that its input ends with Ctrl-D, and that the terminal is as it
/// was afterwards.
#[test]
fn what_is_typed_reaches_the_script() {
    let (home, terminal) = (Home::new(), Terminal::open());
    let modes = || {
        let mut stty = Command::new("stty");
        let output = stty.arg("-a").stdin(terminal.stream()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = modes();
    let script = "printf 'Name? '; read x; stty -echo; printf 'Secret? '; read y; stty echo; \
                  echo \"<$x:$y>\"; cat; echo ended";
    let mut run = terminal.run(&home, &[], script);
    terminal.until_shown("Name? ");
    terminal.type_in("Ada\n");
    terminal.until_shown("Secret? ");
    eventually("a terminal that does not show it", || {
        modes().split_whitespace().any(|mode| mode == "-echo").then_some(())
    });
    terminal.type_in("hunter\n");
    terminal.until_shown("<Ada:hunter>");
    eventually("a terminal that shows it", || (modes() == before).then_some(()));
    assert!(terminal.shown().contains("Name? Ada"), "{}", terminal.shown());
    assert!(terminal.shown().contains("Secret? <"), "{}", terminal.shown());
    terminal.type_in("line\n");
    eventually("the line, as typed and as printed", || {
        (terminal.shown().matches("line\r\n").count() == 2).then_some(())
    });
    terminal.type_in("\x04");
    assert!(run.wait().unwrap().success(), "{}", terminal.shown());
    assert_eq!(log(&home, "stdout.log"), "Name? Secret? <Ada:hunter>\nline\nended\n");
    assert_eq!(modes(), before);
}

/// Proves that Ctrl-C reaches the script once, and ends the run as it does without terminals.
#[test]
fn ctrl_c_stops_the_script_once() {
    let (home, terminal) = (Home::new(), Terminal::open());
    let script = "trap 'echo caught >> caught; exit 0' INT; echo ready; while :; do sleep 0.05; done";
    let mut run = terminal.run(&home, &[], script);
    terminal.until_shown("ready\r\n");
    terminal.type_in("\x03");
    assert!(!run.wait().unwrap().success(), "{}", terminal.shown());
    assert_eq!(std::fs::read_to_string(home.path().join("caught")).unwrap(), "caught\n");
}

/// Proves that a script outlives its user's terminal: its input is at its end then, and its output is stored as before.
#[test]
fn a_script_outlives_the_terminal() {
    let (home, terminal) = (Home::new(), Terminal::open());
    let script = format!("echo ready; {UNTIL_GO}; read x || echo 'at its end'; echo done");
    let mut run = terminal.run(&home, &[], &script);
    terminal.until_shown("ready\r\n");
    signal(&run, Signal::SIGHUP);
    run.wait().unwrap();
    home.go();
    eventually("the end of the script", || log(&home, "stdout.log").ends_with("done\n").then_some(()));
    assert_eq!(log(&home, "stdout.log"), "ready\nat its end\ndone\n");
}

/// Proves that a process that a script left behind does not keep the attempt, although it holds the terminal.
#[test]
fn what_is_left_behind_does_not_hold_the_terminal() {
    let (home, terminal) = (Home::new(), Terminal::open());
    let mut run = terminal.run(&home, &[], "sleep 1000 & echo started; exit 3");
    assert!(!run.wait().unwrap().success());
    terminal.until_shown("started\r\n");
    assert_eq!(log(&home, "stdout.log"), "started\n");
}
