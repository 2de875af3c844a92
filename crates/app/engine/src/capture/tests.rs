//! Real git repositories, a real Python, real files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tempfile::TempDir;
use trackway_core::{AttemptId, SequentialIds};
use trackway_formats::layout::HomeLayout;

use super::packages::interpreter::{Runtime, runtime};
use super::*;

/// A folder with the script's view of the world.
struct World {
    folder: TempDir,
    environment: BTreeMap<String, String>,
    exclude: Vec<PathBuf>,
    redactor: Redactor,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let environment =
            BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), "/nonexistent".to_owned())]);
        let redactor = Redactor::of_shapes();
        Self { folder, environment, exclude: Vec::new(), redactor }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org"];
        let mut command = Command::new("git");
        let done = command.args(identity).args(arguments).current_dir(self.path()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn with<T>(&self, argv: &[&str], read: impl FnOnce(&CaptureInputs<'_>) -> T) -> T {
        let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
        read(&CaptureInputs {
            argv: &argv,
            working_directory: self.path(),
            environment: &self.environment,
            container_image: None,
            exclude: &self.exclude,
            redactor: &self.redactor,
        })
    }

    fn capture_git(&self) -> Git {
        self.with(&["true"], git::working_tree::capture)
    }
}

/// The files beside the script, listed and read.
fn folder_of(inputs: &CaptureInputs<'_>, git: &Git) -> Folder {
    let mut folder = folder::list(inputs, git).unwrap();
    folder.read(inputs.redactor);
    folder
}

/// Proves that each state of a real repository is distinguished, and that the hash of what is not committed follows
/// tracked changes, untracked names and untracked content, and nothing else.
#[test]
fn git_tells_commit_branch_and_a_hash_of_what_is_not_committed() {
    let mut world = World::new();
    assert_eq!(world.capture_git(), Git::missing("not in a git repository"));
    world.git(&["init", "--initial-branch=main"]);
    world.write("train.py", "print(1)\n");
    let unborn = world.capture_git();
    assert_eq!((unborn.commit, unborn.dirty, unborn.untracked_count), (None, Some(true), 1));
    world.git(&["add", "."]);
    world.git(&["commit", "-m", "first"]);
    let clean = world.capture_git();
    assert_eq!(clean.commit.as_ref().map(String::len), Some(40));
    assert_eq!(
        (clean.branch.as_deref(), clean.dirty, &clean.dirty_diff_blake3),
        (Some("main"), Some(false), &None)
    );
    world.write("train.py", "print(2)\n");
    let changed = world.capture_git();
    assert_eq!((changed.dirty, changed.diff_bytes.is_some_and(|bytes| bytes > 0)), (Some(true), true));
    world.write("notes with blank.txt", "a");
    let untracked = world.capture_git();
    assert_eq!(untracked.untracked[0].path, "notes with blank.txt");
    assert_eq!(untracked.untracked[0].blake3, Some(blake3::hash(b"a").to_hex().to_string()));
    world.write("notes with blank.txt", "b");
    let other = world.capture_git();
    let hashes = [&changed, &untracked, &other].map(|git| git.dirty_diff_blake3.clone().unwrap());
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2]);
    world.exclude = vec![world.path().join("home")];
    world.write("home/ledger.db", "x");
    world.write(".gitignore", "*.log\n");
    world.git(&["add", ".gitignore"]);
    world.git(&["commit", "-m", "second"]);
    world.write("ignored.log", "x");
    assert_eq!(world.capture_git().dirty_diff_blake3, other.dirty_diff_blake3);
    world.git(&["checkout", "--detach"]);
    assert_eq!(world.capture_git().branch, None);
}

/// Proves that user settings (colour, external diff, prefixes) do not reach the hash, since it must compare across
/// machines, and that the index is not touched.
#[test]
fn git_settings_do_not_change_the_hash() {
    let world = World::new();
    world.git(&["init"]);
    world.write("a.txt", "1\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-m", "first"]);
    world.write("a.txt", "2\n");
    let index = || fs::read(world.path().join(".git/index")).unwrap();
    let (before, index_before) = (world.capture_git(), index());
    for setting in
        [["diff.noprefix", "true"], ["color.ui", "always"], ["diff.external", "false"], ["diff.context", "9"]]
    {
        world.git(&["config", setting[0], setting[1]]);
    }
    assert_eq!(world.capture_git(), before);
    assert_eq!(index(), index_before);
    world.git(&["config", "user.name", " Ana "]);
    assert_eq!(world.with(&["true"], owner::default_owner).as_deref(), Some("Ana"));
}

/// Proves that the paths of a real difference are those of its files, whatever git writes for them.
#[test]
fn paths_of_a_real_difference_are_those_of_the_files() {
    let world = World::new();
    world.git(&["init"]);
    let names = ["a b/c b.txt", "back\\slash", "plain.txt", "q\"uote\t.txt", "ä\".txt", "ö.txt"];
    let write = |text: &str| names.iter().for_each(|name| world.write(name, text));
    write("1\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-m", "first"]);
    write("2\n");
    let found = patched_files(&world.capture_git().diff.unwrap());
    assert_eq!(found.keys().collect::<Vec<_>>(), names);
    assert!(found.values().all(|file| file.shown() == "+1 −1"), "{found:?}");
}

/// Proves that without git each small file of code, settings and data is listed, with the lines and the header of a
/// table, and with git only those which it ignores; and that hidden files, models, packages, caches and Trackway's home
/// are not.
#[test]
fn the_files_that_git_does_not_compare_are_listed() {
    let mut world = World::new();
    for (path, text) in [
        ("train.py", "import json\n"),
        ("config.json", "{}"),
        ("data/train.csv", "x,y\n1,2\n"),
        ("model.pt", "0"),
        (".hidden/a.json", "{}"),
        (".env.json", "{}"),
        ("env/pyvenv.cfg", ""),
        ("env/a.py", ""),
        ("__pycache__/b.py", ""),
        ("state/c.json", "{}"),
    ] {
        world.write(path, text);
    }
    world.exclude = vec![world.path().join("state")];
    let listed = |world: &World| {
        let of = |inputs: &CaptureInputs<'_>| folder_of(inputs, &git::working_tree::capture(inputs));
        let found = world.with(&["python", "train.py"], of);
        let short = |file: &FolderFile| file.path.strip_prefix(world.path()).unwrap().to_owned();
        (found.files.iter().map(short).collect::<Vec<_>>(), found)
    };
    let (paths, found) = listed(&world);
    assert_eq!(paths, ["config.json", "data/train.csv", "train.py"].map(PathBuf::from));
    assert_eq!(found.not_looked_at, 1, "the model");
    let table = &found.files[1];
    assert_eq!((table.lines, table.header.as_deref()), (Some(2), Some("x,y")));
    assert!(found.files.iter().all(|file| file.blake3.is_some() && file.modified_at.is_some()));
    world.git(&["init"]);
    world.write(".gitignore", "data/\nenv\n*.json\n");
    let (paths, _) = listed(&world);
    assert_eq!(paths, ["config.json", "data/train.csv"].map(PathBuf::from));
}

/// Proves that folders which were not looked at are named: one of packages, Trackway's home, a link and one that is too
/// deep; and that those of caches, which no list has, are not.
#[test]
fn folders_that_were_not_looked_at_are_named() {
    let mut world = World::new();
    let deep = "a/b/c/d/e/f/g";
    for path in ["env/pyvenv.cfg", "state/c.json", "__pycache__/b.py", ".git_like/a.json", "lib/m.py"] {
        world.write(path, "1\n");
    }
    world.write(&format!("{deep}/n.py"), "1\n");
    std::os::unix::fs::symlink(world.path().join("lib"), world.path().join("linked")).unwrap();
    world.exclude = vec![world.path().join("state")];
    let found = world.with(&["true"], |inputs| folder_of(inputs, &git::working_tree::capture(inputs)));
    let mut names: Vec<&Path> =
        found.left_out.iter().map(|path| path.strip_prefix(world.path()).unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, [deep, "env", "linked", "state"].map(Path::new));
}

/// Proves that no file beside a script is opened twice for what is captured and kept of it, that of an image only the
/// name is looked at, and that settings and code are what is kept: of a text only one that has nothing but settings in
/// it.
#[test]
fn each_file_beside_the_script_is_read_once() {
    let world = World::new();
    let files = [("words.txt", "some words\n"), ("more.txt", "more words\n"), ("image.png", "x")];
    files.iter().for_each(|(path, text)| world.write(path, text));
    let settings = [("rate.txt", "lr = 0.1\n"), ("model.py", "WIDTH = 4\n"), ("a.yaml", "a: 1\n")];
    let home = tempfile::tempdir().unwrap();
    let home = HomeLayout::new(home.path());
    let attempt_id = AttemptId::new(&SequentialIds::default());
    let captured = |world: &World| world.with(&["true"], capture);
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).unwrap();
    inotify.add_watch(world.path(), AddWatchFlags::IN_OPEN).unwrap();
    sources::keep(&home, &world.redactor, attempt_id, &captured(&world), None).unwrap();
    let events = inotify.read_events().unwrap();
    for (path, opened) in [("words.txt", 1), ("more.txt", 1), ("image.png", 0)] {
        let of_path = events.iter().filter(|event| event.name.as_deref().is_some_and(|name| name == path));
        assert_eq!(of_path.count(), opened, "{path}");
    }
    settings.iter().for_each(|(path, text)| world.write(path, text));
    let captured = captured(&world);
    let folder = captured.folder.as_ref().unwrap();
    assert_eq!((folder.files.len(), folder.not_looked_at), (5, 1));
    sources::keep(&home, &world.redactor, attempt_id, &captured, None).unwrap();
    let kept = |(_, text): &(&str, &str)| home.file_source(&blake3::hash(text.as_bytes()).to_hex()).exists();
    assert!(settings.iter().all(kept) && !files.iter().any(kept));
}

/// Proves that of what was written after it was listed, in place, by another file of its name or by its removal, no
/// hash is given and that it is named; that what only came later is not listed; and that the other files are read as
/// they were.
#[test]
fn what_changes_before_it_is_read_is_not_what_was_started_with() {
    let world = World::new();
    for name in ["same.py", "longer.py", "equal.py", "gone.py", "other.py"] {
        world.write(name, "WIDTH = 4\n");
    }
    let mut captured = world.with(&["true"], capture_without_bytes);
    let listed = captured.folder.as_ref().unwrap();
    assert_eq!((listed.files.len(), listed.unread.len()), (5, 5));
    assert!(listed.files.iter().all(|file| file.blake3.is_none()));
    // The kernel has the times of files by its ticks.
    std::thread::sleep(Duration::from_millis(20));
    world.write("longer.py", "WIDTH = 4\nDEPTH = 2\n");
    let modified = fs::metadata(world.path().join("equal.py")).unwrap().modified().unwrap();
    world.write("equal.py", "WIDTH = 8\n");
    fs::File::options()
        .write(true)
        .open(world.path().join("equal.py"))
        .unwrap()
        .set_modified(modified)
        .unwrap();
    world.write("new.py", "WIDTH = 4\n");
    fs::rename(world.path().join("new.py"), world.path().join("other.py")).unwrap();
    fs::rename(world.path().join("gone.py"), world.path().join("later.py")).unwrap();
    let folder = captured.folder.as_mut().unwrap();
    folder.read(&world.redactor);
    let names = |paths: Vec<&PathBuf>| -> Vec<String> {
        paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(folder.changed.iter().collect()), ["equal.py", "gone.py", "longer.py", "other.py"]);
    let hashed = folder.files.iter().filter(|file| file.blake3.is_some()).map(|file| &file.path);
    assert_eq!(names(hashed.collect()), ["same.py"]);
    assert_eq!((folder.files.len(), folder.unread.len(), folder.to_keep.len()), (5, 0, 1));
}

/// Proves that a file which the output goes to, as an excluded one, is neither uncommitted nor listed, whether git tracks it or not.
#[test]
fn excluded_files_are_no_part_of_the_code() {
    let mut world = World::new();
    world.git(&["init"]);
    world.write("train.py", "print(1)\n");
    world.write("tracked.log", "1\n");
    world.write(".gitignore", "ignored.txt\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-m", "first"]);
    world.exclude = ["tracked.log", "train.log", "ignored.txt"].map(|name| world.path().join(name)).into();
    let all = |world: &World| {
        world.with(&["python", "train.py"], |inputs| {
            let git = git::working_tree::capture(inputs);
            let folder = folder_of(inputs, &git);
            (git.dirty, git.dirty_diff_blake3, folder.files.len())
        })
    };
    for name in ["tracked.log", "train.log", "ignored.txt"] {
        world.write(name, "2\n");
        assert_eq!(all(&world), (Some(false), None, 0), "{name}");
    }
    world.exclude.clear();
    assert_eq!(all(&world).0, Some(true));
    assert_eq!(all(&world).2, 1, "what git ignores");
}

/// Proves that a broken repository gives git's own reason instead of an empty answer.
#[test]
fn a_broken_repository_gives_a_reason() {
    let world = World::new();
    world.git(&["init"]);
    fs::write(world.path().join(".git/HEAD"), "nonsense").unwrap();
    let why = world.capture_git().why_missing.unwrap();
    assert!(why.starts_with("`git` failed"), "{why}");
}

/// Proves which interpreter or lock file is found for each way of starting a script.
#[test]
fn the_runtime_is_found_behind_wrappers_and_shebangs() {
    let mut world = World::new();
    let bin = world.path().join("bin");
    world.write("bin/python3", "");
    world.write("bin/torchrun", &format!("#!{}/python3\nimport sys\n", bin.display()));
    world.write(
        "bin/long",
        &format!("#!/bin/sh\n'''exec' \"{}/python3\" \"$0\" \"$@\"\n' '''\n", bin.display()),
    );
    world.write("bin/portable", "#!/usr/bin/env python3\n");
    world.write("bin/loop", &format!("#!{}/loop\n", bin.display()));
    world.write("bin/poetry", &format!("#!{}/python3\n", bin.display()));
    world.write("bin/uv", "");
    world.write("Cargo.lock", "");
    world.write("target/release/train", "\x7fELF");
    world.write("elsewhere/train", "\x7fELF");
    world.environment.insert("PATH".into(), format!("/nonexistent:{}:/bin", bin.display()));
    let python = || Runtime::Python(bin.join("python3"));
    let cargo = || Runtime::Cargo(world.path().join("Cargo.lock"));
    let unknown = |why: &str| Runtime::Unknown(why.into());
    let cases = [
        (vec!["python3", "-m", "train"], python()),
        (vec!["bin/python3", "train.py"], python()),
        (vec!["env", "-i", "A=1", "python3", "train.py"], python()),
        (vec!["torchrun", "--nproc-per-node=2", "train.py"], python()),
        (vec!["long"], python()),
        (vec!["portable"], python()),
        (vec!["target/release/train"], cargo()),
        (vec!["cargo", "run"], cargo()),
        (vec!["uv", "run", "train.py"], unknown("uv has neither a `.venv` nor a `uv.lock` here")),
        (vec!["elsewhere/train"], unknown("`train` is neither Python nor built by Cargo")),
        (vec!["sh", "-c", "python3"], unknown("`sh` is neither Python nor built by Cargo")),
        (
            vec!["bin/poetry", "run", "python3", "train.py"],
            unknown("`poetry` chooses the interpreter itself; name that interpreter instead"),
        ),
        (vec!["nowhere"], unknown("`nowhere` was not found")),
        (vec!["loop"], unknown("the program could not be followed to an interpreter")),
        (vec!["env"], unknown("the program could not be followed to an interpreter")),
        (vec![], unknown("the program could not be followed to an interpreter")),
    ];
    for (argv, expected) in cases {
        assert_eq!(world.with(&argv, runtime), expected, "{argv:?}");
    }
    world.write("uv.lock", "");
    assert_eq!(world.with(&["uv", "run", "x.py"], runtime), Runtime::Lock(world.path().join("uv.lock")));
    world.write(".venv/bin/python", "");
    assert_eq!(
        world.with(&["uv", "run", "x.py"], runtime),
        Runtime::Python(world.path().join(".venv/bin/python"))
    );
}

/// Proves against `importlib.metadata` of a real Python that the list of packages is complete, with their versions,
/// and that a package put on PYTHONPATH is seen and changes the hash.
#[test]
fn python_packages_are_those_that_importlib_sees() {
    let mut world = World::new();
    let check = "import importlib.metadata as m, re\nfor d in m.distributions():\n print(re.sub(r'[-_.]+', '-', d.metadata['Name']).lower() + '==' + d.version)";
    let Ok(listed) = Command::new("python3").args(["-I", "-c", check]).output() else {
        trackway_skip::skip!("no python3");
        return;
    };
    let listed = String::from_utf8(listed.stdout).unwrap();
    let lock = world.with(&["python3", "train.py"], packages::environment::capture);
    assert_eq!((lock.kind, &lock.why_missing), (Some(LockKind::PythonPackages), &None));
    let text = lock.text.unwrap();
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(sorted(&text), sorted(&listed));
    assert_eq!(lock.package_count, Some(text.lines().count() as u64));
    world.write("extra/plant_Ed-1.2.dist-info/METADATA", "");
    world.environment.insert("PYTHONPATH".into(), world.path().join("extra").to_str().unwrap().into());
    let other = world.with(&["python3", "train.py"], packages::environment::capture);
    assert!(other.text.unwrap().lines().any(|line| line == "plant-ed==1.2"));
    assert_ne!(other.sha256, lock.sha256);
}

/// Proves that a helper that never answers is killed with its children when its time is over, and that one that
/// fails gives the last line of its complaint.
#[test]
fn helpers_are_bounded_in_time_and_explain_their_failure() {
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    };
    let world = World::new();
    let note = world.path().join("group");
    let script = format!("echo $$ > {}; sleep 1000 & sleep 1000", note.display());
    let hung = command::output(shell(&script), Duration::from_millis(500), 10);
    assert_eq!(hung, Err("`sh` did not answer within 0 s".into()));
    let group: i32 = fs::read_to_string(note).unwrap().trim().parse().unwrap();
    let is_gone = || nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), None).is_err();
    assert!(
        (0..500).any(|_| is_gone() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }),
        "its children live on"
    );
    let failed = command::output(shell("echo one >&2; echo two >&2; exit 3"), Duration::from_secs(10), 10);
    assert_eq!(failed, Err("`sh` failed (exit status: 3): two".into()));
    let long = command::output(shell("yes | head -c 1000000"), Duration::from_secs(10), 4);
    assert_eq!(long, Ok(b"y\ny\n".to_vec()), "output past the bound is passed over, and the program may end");
    let missing = command::output(Command::new("no-such-program"), Duration::from_secs(10), 10);
    assert_eq!(missing, Err("`no-such-program` is not installed".into()));
}

/// Proves that every step of the capture on this machine gives a value or a reason, and that the variable with the
/// image's digest takes precedence over the run file.
#[test]
fn every_step_gives_a_value_or_a_reason() {
    let mut world = World::new();
    world.environment.insert("TRACKWAY_CONTAINER_DIGEST".into(), "sha256:seen".into());
    world.environment.insert("CUDA_VISIBLE_DEVICES".into(), "1,0".into());
    let captured = world
        .with(&["true"], |inputs| capture(&CaptureInputs { container_image: Some("a@sha256:b"), ..*inputs }));
    assert_eq!(captured.container.digest.as_deref(), Some("sha256:seen"));
    assert!(captured.git.commit.is_some() || captured.git.why_missing.is_some());
    assert!(captured.environment_lock.sha256.is_some() || captured.environment_lock.why_missing.is_some());
    assert!(!captured.gpus.gpus.is_empty() || captured.gpus.why_missing.is_some());
    assert_eq!(captured.gpus.cuda_visible_devices.as_deref(), Some("1,0"));
    let host = captured.host;
    assert!(
        host.memory_bytes.is_some_and(|bytes| bytes > 1 << 20)
            && host.cpu_count_usable.is_some_and(|count| count > 0)
    );
    assert!(host.hostname.is_some() && host.kernel.is_some() && host.boot_id.is_some());
}
