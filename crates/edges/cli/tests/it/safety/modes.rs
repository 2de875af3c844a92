//! Files of a user: who may read and write them, which files Trackway trusts, and homes that may only be read.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, geteuid};

use crate::evaluations::{GOOD, write_job};
use crate::harness::{Answer, BINARY, Home, answer, eventually, files_below, signal};

/// The user without write permission for a test that runs as root.
const UNPRIVILEGED: u32 = 65_534;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// As a user with this umask.
fn with_umask(home: &Home, mask: u32, arguments: &[&str]) -> Answer {
    let mut command = home.command(arguments);
    let set = move || {
        umask(Mode::from_bits_truncate(mask));
        Ok(())
    };
    // SAFETY: the closure makes one async-signal-safe call.
    unsafe { command.pre_exec(set) };
    answer(command.output().unwrap())
}

/// Runs as a user that may read the home and not write it. A build of root may be where no other user has access: they
/// get a copy of the binary.
fn as_reader(home: &Home, arguments: &[&str]) -> Answer {
    let mut command = home.command(arguments);
    if geteuid().is_root() {
        let binary = home.path().join("trackway");
        if !binary.exists() {
            // By another process: a child that another test starts meanwhile would hold the file open for writing.
            assert!(Command::new("cp").arg(BINARY).arg(&binary).status().unwrap().success());
            set(&binary, 0o755);
        }
        command = Command::new(binary);
        command
            .args(arguments)
            .current_dir(home.path())
            // Neither the settings nor the temporary folder of the person who starts the tests is this user's.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home.path())
            .env("TRACKWAY_HOME", home.state());
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    answer(command.output().unwrap())
}

/// Every file and folder below one, and itself.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(all_below(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Proves that no umask opens a file of the home to others, written by Trackway or by a training process, and that
/// scripts and outputs have the umask of the user.
#[test]
fn the_home_is_the_users_whatever_the_umask() {
    for mask in [0o000, 0o022] {
        let home = Home::new();
        write_job(&home, GOOD, "", "after = false");
        let run = with_umask(&home, mask, &["run", "job.toml"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let run = with_umask(&home, mask, &["run", "--", "sh", "-c", "umask; echo made > made"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let all = all_below(&home.state());
        assert!(all.len() > 20 && all.iter().any(|path| path.ends_with("weights.bin")), "{all:?}");
        for path in all {
            let most = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path) & !most, 0, "umask {mask:o}: {} is {:o}", path.display(), mode(&path));
        }
        let printed = files_below(&home.state()).into_iter().filter(|path| path.ends_with("stdout.log"));
        let printed: Vec<String> = printed.map(|path| fs::read_to_string(path).unwrap()).collect();
        assert!(printed.contains(&format!("{mask:04o}\n")), "{printed:?}");
        assert_eq!(mode(&home.path().join("made")), 0o666 & !mask);
        home.write("t.csv", "a,b\n1,2\n3,4\n");
        let saved = with_umask(&home, mask, &["data", "profile", "t.csv", "--out", "profile.json"]);
        assert_eq!(
            (saved.code, mode(&home.path().join("profile.json"))),
            (0, 0o666 & !mask),
            "{}",
            saved.stderr
        );
        let split = with_umask(
            &home,
            mask,
            &["data", "split", "t.csv", "--parts", "a=0.5,b=0.5", "--out", "new/parts"],
        );
        let modes = ["new", "new/parts"].map(|name| mode(&home.path().join(name)));
        assert_eq!((split.code, modes), (0, [0o777 & !mask; 2]), "{}", split.stderr);
    }
}

/// Proves that a home which others could read is closed once, with a message, and that a folder with other contents is
/// left alone.
#[test]
fn an_open_home_is_closed() {
    let home = Home::new();
    assert_eq!(home.trackway(&["run", "--", "true"]).code, 0);
    set(&home.state(), 0o755);
    set(&home.state().join("attempts"), 0o777);
    set(&home.state().join("ledger.db"), 0o666);
    let listed = home.trackway(&["runs"]);
    assert!(listed.stderr.contains("their permissions were removed"), "{}", listed.stderr);
    let modes = ["", "attempts", "ledger.db"].map(|name| mode(&home.state().join(name)));
    assert_eq!(modes, [0o700, 0o700, 0o600]);
    assert_eq!(home.trackway(&["runs"]).stderr, "");

    fs::create_dir_all(home.state().join("thesis")).unwrap();
    fs::create_dir_all(home.state().join("data")).unwrap();
    for path in ["", "thesis", "data"] {
        set(&home.state().join(path), 0o755);
    }
    assert_eq!(home.trackway(&["runs"]).code, 0);
    assert_eq!(["", "thesis", "data"].map(|name| mode(&home.state().join(name))), [0o755; 3]);
}

/// Proves that an exit record which another user can have written seals nothing while the shim lives, that it is named
/// once the shim is gone, and that the attempt is judged without it when it was removed.
#[test]
fn a_record_that_others_can_write_is_not_believed() {
    let home = Home::new();
    assert_eq!(home.trackway(&["run", "--", "true"]).code, 0);
    let ended = |path: &PathBuf| path.ends_with("exit.json");
    let record = files_below(&home.state()).into_iter().find(ended).unwrap();
    let forged = fs::read(&record).unwrap();
    let mut supervisor = home.spawn(&["run", "--name", "long", "--", "sleep", "60"]);
    let begun = |path: &PathBuf| path.ends_with("shim.json") && path.parent() != record.parent();
    let folder = eventually("the shim", || {
        let found = files_below(&home.state()).into_iter().find(begun)?;
        let record: serde_json::Value = serde_json::from_slice(&fs::read(&found).ok()?).ok()?;
        record["child"]["pid"].is_i64().then_some(found)
    });
    let folder = folder.parent().unwrap().to_owned();
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    let forgery = folder.join("exit.json");
    fs::write(&forgery, forged).unwrap();
    set(&forgery, 0o666);
    assert_eq!(home.trackway(&["runs"]).code, 0);
    assert_eq!(home.sql("select state from runs where name = 'long'")[0]["state"], "running");
    let shim: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("shim.json")).unwrap()).unwrap();
    for process in ["shim", "child"] {
        let pid = i32::try_from(shim[process]["pid"].as_i64().unwrap()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    eventually("that the record is named", || {
        home.trackway(&["stop", "long", "--kill"]).stderr.contains("not trusted").then_some(())
    });
    assert_eq!(home.sql("select state from runs where name = 'long'")[0]["state"], "running");
    fs::remove_file(&forgery).unwrap();
    home.trackway(&["stop", "long", "--kill"]);
    eventually("the end", || {
        let state = home.sql("select state from runs where name = 'long'")[0]["state"].clone();
        (state != "running").then_some(())
    });
}

/// Proves that a home that may only be read answers every question that needs no writing, and stays as it is.
#[test]
fn a_home_that_may_only_be_read_is_read() {
    let home = Home::for_other_users();
    assert_eq!(home.run_script(&["--name", "first"], "echo hello").0, 0);
    let all = all_below(&home.state());
    set(home.path(), 0o755);
    for path in &all {
        set(path, if path.is_dir() { 0o555 } else { 0o444 });
    }
    for arguments in [
        &["runs"][..],
        &["attempts", "first"],
        &["explain", "first"],
        &["logs", "first"],
        &["sql", "select name from runs"],
        &["sql", "select * from metrics"],
        &["eval", "ls"],
        &["registry", "ls"],
    ] {
        let read = as_reader(&home, arguments);
        assert_eq!(read.code, 0, "{arguments:?}: {}", read.stderr);
    }
    assert_eq!(as_reader(&home, &["run", "--", "true"]).code, 1);
    assert_eq!(all_below(&home.state()), all);
    for path in &all {
        set(path, if path.is_dir() { 0o700 } else { 0o600 });
    }
}

/// Proves that `stop --kill` ends an attempt whose shim was stopped.
#[test]
fn a_stopped_shim_hears_the_stop() {
    let home = Home::new();
    let mut supervisor = home.spawn(&["run", "--name", "long", "--", "sleep", "60"]);
    let shim = eventually("the shim", || {
        let found = files_below(&home.state()).into_iter().find(|path| path.ends_with("shim.json"))?;
        let record: serde_json::Value = serde_json::from_slice(&fs::read(found).ok()?).ok()?;
        record["child"]["pid"].as_i64()?;
        record["shim"]["pid"].as_i64()
    });
    kill(Pid::from_raw(i32::try_from(shim).unwrap()), Signal::SIGSTOP).unwrap();
    assert_eq!(home.trackway(&["stop", "long", "--kill"]).code, 0);
    eventually("the end", || supervisor.try_wait().unwrap());
    assert_ne!(home.sql("select state from runs where name = 'long'")[0]["state"], "running");
}

/// Proves that root reads whose home it found in a folder above, once; nothing of one that `--home` names, and nothing of that of root.
#[test]
fn root_hears_whose_home_it_found() {
    if !geteuid().is_root() {
        trackway_skip::skip!("for root only");
        return;
    }
    let home = Home::new();
    let found = home.path().join(".trackway");
    let below = home.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        answer(command.env_remove("TRACKWAY_HOME").current_dir(&below).output().unwrap())
    };
    let path = found.to_str().unwrap();
    let made = run(&["run", "--home", path, "--", "true"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let own = run(&["runs"]);
    assert!(own.code == 0 && !own.stderr.contains("root works in"), "{}", own.stderr);
    std::os::unix::fs::chown(&found, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    for arguments in [&["runs"][..], &["doctor"]] {
        let other = run(arguments);
        let said = other.stderr.lines().filter(|line| line.contains("root works in the home of")).count();
        assert!(said == 1 && other.stderr.contains("--home"), "{arguments:?}: {}", other.stderr);
    }
    let named = run(&["runs", "--home", path]);
    assert!(named.code == 0 && !named.stderr.contains("root works in"), "{}", named.stderr);
}

/// Proves that in a copy of a home a run of the original is not resumed, that nothing is launched, and that both homes are named.
#[test]
fn a_copied_home_resumes_nothing() {
    let (original, copy) = (Home::new(), Home::new());
    let failed = original.trackway(&["run", "--", "sh", "-c", "echo x >> ran; exit 3"]);
    assert_eq!(failed.code, 4, "{}", failed.stderr);
    let copied = Command::new("cp").arg("-r").arg(original.state()).arg(copy.state()).status().unwrap();
    assert!(copied.success());
    let refused = copy.trackway(&["resume", "last"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("is a copy of that"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(original.path().join("ran")).unwrap(), "x\n");
    assert_eq!(original.trackway(&["resume", "last"]).code, 4);
}
