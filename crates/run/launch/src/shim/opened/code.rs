//! Which source files an evaluator opened: events `code_opened` of a flight record of origin `telemetry`, each with the bytes that the
//! file had then.
//!
//! A command names the script, and the script imports the rest: from the texts alone a module whose name is computed is
//! not known. The kernel reports every open in the watched folders (inotify). Python opens the compiled form of a
//! module that it compiled before, whose name leads to the source. By whom a file was opened is not said; that another
//! process reads an evaluator's source meanwhile only makes the digest cover more.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use trackway_core::LaunchKind;
use trackway_formats::{EventKind, sha256_hex};
use trackway_recorder::{Origin, SegmentWriter};

use crate::StoredLaunch;
use crate::shim::side::{Records, WaitingThread};

/// At most so many folders are watched, and so many entries looked at to find them.
const FOLDERS_MAX: usize = 1024;
const ENTRIES_MAX: usize = 50_000;
/// Folders below so many others are not looked at.
const DEPTH_MAX: usize = 8;
/// Longer files are data.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Where Python keeps compiled modules.
const COMPILED: &str = "__pycache__";
/// A folder with this file is an environment of installed packages.
const ENVIRONMENT: &str = "pyvenv.cfg";
/// The longest the end of the attempt waits for the last event.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// The folders that are watched. The kernel remembers what is opened until it is read.
#[derive(Debug)]
pub(in crate::shim) struct CodeWatch {
    inotify: Inotify,
    /// The folder of the sources that a watched folder holds, or holds compiled.
    sources: HashMap<WatchDescriptor, PathBuf>,
    working_directory: PathBuf,
    /// Files that are recorded.
    seen: BTreeSet<PathBuf>,
}

impl CodeWatch {
    /// Watches the folders of sources of an evaluator; to be called before it starts. `None`: it is another launch, there are none,
    /// or the kernel refuses. Files of an overlay or a container are not those here.
    pub fn of(launch: &StoredLaunch) -> Option<Self> {
        let is_elsewhere = launch.isolation.is_some() || launch.container.is_some();
        if launch.kind != LaunchKind::Evaluate || is_elsewhere {
            return None;
        }
        let named = launch.argv.iter().map(|word| launch.working_directory.join(word));
        let beside = named.filter(|path| is_source(path)).filter_map(|path| Some(path.parent()?.to_owned()));
        let roots: BTreeSet<PathBuf> = beside.chain([launch.working_directory.clone()]).collect();
        Self::below(&roots, &launch.working_directory)
    }

    fn below(roots: &BTreeSet<PathBuf>, working_directory: &Path) -> Option<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok()?;
        let mut sources = HashMap::new();
        for folder in folders_of_sources(roots) {
            for place in [folder.join(COMPILED), folder.clone()] {
                let flags = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_ONLYDIR;
                if let Ok(descriptor) = inotify.add_watch(&place, flags) {
                    sources.insert(descriptor, folder.clone());
                }
            }
        }
        let working_directory = working_directory.to_owned();
        (!sources.is_empty()).then_some(Self { inotify, sources, working_directory, seen: BTreeSet::new() })
    }

    /// Begins to record what is opened.
    pub fn begin(mut self, records: Records) -> Option<WaitingThread> {
        WaitingThread::begin("code-files", LAST_LOOK, move |stopped| {
            let mut writer = records.writer(Origin::Telemetry);
            self.run(stopped, &mut writer);
            writer.finish();
        })
    }

    fn run(&mut self, stopped: &UnixStream, writer: &mut SegmentWriter) {
        let mut ended = false;
        while !ended {
            let waited = |fd| PollFd::new(fd, PollFlags::POLLIN);
            let mut waiting = [waited(stopped.as_fd()), waited(self.inotify.as_fd())];
            // An interrupted wait only means that the loop looks again.
            poll(&mut waiting, PollTimeout::NONE).ok();
            ended = waiting[0].any().unwrap_or(true);
            for path in self.opened() {
                record(writer, &path, &self.working_directory);
            }
        }
    }

    /// The source files that were opened since the last call, each once.
    fn opened(&mut self) -> Vec<PathBuf> {
        let mut opened = Vec::new();
        while let Ok(events) = self.inotify.read_events() {
            for event in events {
                let folder = self.sources.get(&event.wd);
                let source =
                    folder.zip(event.name).and_then(|(folder, name)| source_of(folder, Path::new(&name)));
                opened.extend(source.filter(|path| self.seen.insert(path.clone())));
            }
        }
        opened
    }
}

/// The source that a name in a folder, or among its compiled files, is of.
fn source_of(folder: &Path, name: &Path) -> Option<PathBuf> {
    let stem = name.to_str()?.split('.').next()?;
    let compiled = name.extension().is_some_and(|extension| extension == "pyc");
    let path = if compiled { folder.join(format!("{stem}.py")) } else { folder.join(name) };
    (is_source(&path) && path.is_file()).then_some(path)
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// The folders at and below these that hold sources, but for hidden ones and environments.
fn folders_of_sources(roots: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<(PathBuf, usize)> = roots.iter().map(|root| (root.clone(), 0)).collect();
    let mut entries_left = ENTRIES_MAX;
    while let Some((folder, depth)) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        if found.len() == FOLDERS_MAX || folder.join(ENVIRONMENT).is_file() {
            continue;
        }
        for entry in entries.flatten().take(entries_left) {
            entries_left -= 1;
            let name = entry.file_name();
            let is_left_out = name.to_string_lossy().starts_with('.') || name == COMPILED;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEPTH_MAX && !is_left_out {
                waiting.push((entry.path(), depth + 1));
            } else if !kind.is_dir() && is_source(&entry.path()) {
                found.insert(folder.clone());
            }
        }
    }
    found
}

fn record(writer: &mut SegmentWriter, path: &Path, working_directory: &Path) {
    let is_small = fs::metadata(path).is_ok_and(|about| about.len() <= FILE_BYTES_MAX);
    let Some(bytes) = is_small.then(|| fs::read(path).ok()).flatten() else { return };
    let shown = path.strip_prefix(working_directory).unwrap_or(path).display().to_string();
    let (sha256, size_bytes) = (sha256_hex(&bytes), bytes.len().to_string());
    let fields = [("path", shown.as_str()), ("sha256", sha256.as_str()), ("size_bytes", size_bytes.as_str())];
    writer.event(EventKind::CodeOpened.as_str(), None, &fields);
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use super::*;

    /// Proves that sources count that are read themselves or in their compiled form, in folders below too, each once, and that
    /// other files, hidden folders and environments do not.
    #[test]
    fn opened_sources_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "eval.py",
            "lib/used.py",
            "lib/cached.py",
            "lib/__pycache__/cached.cpython-312.pyc",
            "lib/unused.py",
            "data.csv",
            ".git/hook.py",
            "venv/lib/numpy.py",
            "venv/pyvenv.cfg",
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), name).unwrap();
        }
        let roots = BTreeSet::from([folder.path().to_owned()]);
        let mut watch = CodeWatch::below(&roots, folder.path()).unwrap();
        assert_eq!(watch.opened(), Vec::<PathBuf>::new());
        for name in
            ["eval.py", "eval.py", "lib/used.py", "lib/__pycache__/cached.cpython-312.pyc", "data.csv"]
        {
            fs::read(at(name)).unwrap();
        }
        fs::read(at(".git/hook.py")).unwrap();
        fs::read(at("venv/lib/numpy.py")).unwrap();
        let opened: BTreeSet<PathBuf> = watch.opened().into_iter().collect();
        assert_eq!(opened, BTreeSet::from(["eval.py", "lib/used.py", "lib/cached.py"].map(at)));
        fs::read(at("eval.py")).unwrap();
        assert!(watch.opened().is_empty());
        assert!(CodeWatch::below(&BTreeSet::from([at("absent")]), folder.path()).is_none());
    }
}
