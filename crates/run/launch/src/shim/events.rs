//! TensorBoard's event files of a script that writes them: their scalars become a flight record of origin
//! `tensorboard`.
//!
//! A separate thread looks below the working directory, so that a slow disk never stops the draining of the script's
//! outputs. An event file is the attempt's when the time in its name (every writer puts it there) is after the attempt
//! began and its process, where the name holds one, is not a living process of another attempt.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use trackway_core::Timestamp;
use trackway_formats::EventKind;
use trackway_formats::tensorboard::{EventItem, EventReader};
use trackway_recorder::{Origin, SegmentWriter};
use trackway_redact::Redactor;

use super::side::{Records, SideThread};
use crate::process::{all_processes, descendants};

/// How often the folder is looked through.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// A look that takes long is followed by a wait this many times as long.
const REST_PER_LOOK: u32 = 20;
/// Folders deeper than this below the working directory are not looked at.
const DEPTH_MAX: usize = 8;
/// At most so many entries are looked at in one look, those near the working directory first.
const ENTRIES_MAX: usize = 20_000;
/// At most so many event files are followed.
const FILES_MAX: usize = 256;
/// One read takes at most this much.
const READ_BYTES: usize = 1 << 20;
/// Clocks of hosts and the whole seconds in file names may be so far apart.
const EARLY_SECONDS: i64 = 2;
/// The longest the end of the attempt waits for the last look.
const LAST_LOOK: Duration = Duration::from_secs(20);
/// Folders that hold programs, not results.
const PASSED_FOLDERS: [&str; 5] = ["node_modules", "site-packages", "__pycache__", "target", "venv"];
/// The mark in the name of every event file; the time of its making in seconds follows.
const MARK: &str = "tfevents.";
/// At most so many metrics of one event file are remembered for a restart.
const NAMES_MAX: usize = 1024;

/// Begins to follow the event files of one attempt. What is left is how many values were found in all.
pub(super) fn follow(
    working_directory: PathBuf,
    started_at: Timestamp,
    records: Records,
) -> Option<SideThread<u64>> {
    let follower = Follower {
        root: working_directory,
        records,
        started_seconds: started_at.as_micros().div_euclid(1_000_000),
        redactor: Redactor::of_this_process(),
        files: BTreeMap::new(),
        foreign: BTreeSet::new(),
        first_folder: None,
        writer: None,
        values: 0,
    };
    SideThread::begin("event-files", LAST_LOOK, |stopped| follower.run(stopped))
}

struct Follower {
    root: PathBuf,
    records: Records,
    started_seconds: i64,
    redactor: Arc<Redactor>,
    files: BTreeMap<PathBuf, Followed>,
    /// Event files of other processes.
    foreign: BTreeSet<PathBuf>,
    /// The folder of the first event file; the names of the others' values begin with where they are.
    first_folder: Option<PathBuf>,
    writer: Option<SegmentWriter>,
    values: u64,
}

#[derive(Default)]
struct Followed {
    reader: EventReader,
    read_bytes: u64,
    /// Precedes every name; empty, or ends in a slash.
    prefix: String,
    /// The metrics that were found.
    names: BTreeSet<String>,
}

impl Follower {
    fn run(mut self, stopped: &Receiver<()>) -> u64 {
        let mut rest = LOOK_EVERY;
        loop {
            let last = stopped.recv_timeout(rest) != Err(RecvTimeoutError::Timeout);
            let begun = self.records.clock.monotonic_micros();
            self.look();
            if last {
                if let Some(writer) = &mut self.writer {
                    writer.finish();
                }
                return self.values;
            }
            let took = u64::try_from(self.records.clock.monotonic_micros() - begun).unwrap_or(0);
            rest = LOOK_EVERY.max(Duration::from_micros(took) * REST_PER_LOOK);
        }
    }

    fn look(&mut self) {
        self.find_files();
        let mut files = std::mem::take(&mut self.files);
        for (path, followed) in &mut files {
            // A file that cannot be read now is tried again at the next look.
            self.read_more(path, followed).ok();
        }
        self.files = files;
    }

    fn find_files(&mut self) {
        for path in event_files_below(&self.root, self.started_seconds - EARLY_SECONDS) {
            if self.files.len() >= FILES_MAX || self.files.contains_key(&path) || self.foreign.contains(&path)
            {
                continue;
            }
            if is_foreign(&path) {
                self.foreign.insert(path);
                continue;
            }
            let folder = path.parent().unwrap_or(&self.root).to_owned();
            let first = self.first_folder.get_or_insert_with(|| folder.clone());
            let prefix = prefix_of(&folder, first);
            self.files.insert(path, Followed { prefix, ..Followed::default() });
        }
    }

    fn read_more(&mut self, path: &Path, followed: &mut Followed) -> std::io::Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(followed.read_bytes))?;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let count = file.by_ref().take(READ_BYTES as u64).read_to_end(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            followed.read_bytes += count as u64;
            let mut items = Vec::new();
            followed.reader.push(&bytes, |item| items.push(item));
            items.into_iter().for_each(|item| self.write(&followed.prefix, &mut followed.names, item));
        }
    }

    fn write(&mut self, prefix: &str, names: &mut BTreeSet<String>, item: EventItem) {
        let writer = self.writer.get_or_insert_with(|| self.records.writer(Origin::TensorBoard));
        match item {
            EventItem::Scalar(scalar) => {
                let name = format!("{prefix}{}", scalar.tag);
                if self.redactor.text(&name) == name {
                    self.values += 1;
                    let at = Timestamp::from_micros((scalar.wall_seconds * 1e6) as i64);
                    writer.metrics_at(at, scalar.step, &[(&name, scalar.value)]);
                    if names.len() < NAMES_MAX {
                        names.insert(name);
                    }
                }
            }
            EventItem::Restart { step, .. } => {
                let names = serde_json::json!(names).to_string();
                writer.event(
                    EventKind::TensorboardRestart.as_str(),
                    Some(step),
                    &[("prefix", prefix), ("names", &names)],
                );
            }
            EventItem::Parameter { name, value } => {
                let value = self.redactor.value(&name, &value).into_owned();
                writer.param(&self.redactor.text(&format!("{prefix}{name}")), &value);
            }
        }
    }
}

/// The event files below a folder that were begun at `since_seconds` or later, the oldest first.
fn event_files_below(root: &Path, since_seconds: i64) -> Vec<PathBuf> {
    let (mut found, mut folders, mut seen) = (Vec::new(), VecDeque::from([(root.to_owned(), 0)]), 0);
    while let Some((folder, depth)) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                break;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH_MAX && is_looked_into(&name) => {
                    folders.push_back((entry.path(), depth + 1));
                }
                Ok(kind) if kind.is_file() => {
                    if let Some(begun) = begun_seconds(&name).filter(|begun| *begun >= since_seconds) {
                        found.push((begun, entry.path()));
                    }
                }
                _ => {}
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

fn is_looked_into(folder: &str) -> bool {
    !folder.starts_with('.') && !PASSED_FOLDERS.contains(&folder)
}

/// The time in `events.out.tfevents.1795323178.host.23623.2`.
fn begun_seconds(name: &str) -> Option<i64> {
    let (_, behind) = name.split_once(MARK)?;
    behind.split('.').next()?.parse().ok()
}

/// The process in such a name, where the writer puts one.
fn writer_pid(name: &str) -> Option<i32> {
    let (_, behind) = name.split_once(MARK)?;
    let mut parts: Vec<&str> = behind.split('.').filter(|part| *part != "v2").collect();
    let count = parts.pop()?;
    let pid = parts.pop()?;
    // Time and host precede them.
    (parts.len() >= 2 && count.parse::<u32>().is_ok()).then(|| pid.parse().ok()).flatten()
}

/// Whether a living process wrote it that is not below this one.
fn is_foreign(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (Some(pid), Ok(processes)) = (writer_pid(&name), all_processes()) else { return false };
    let own = descendants(std::process::id() as i32, &processes);
    processes.iter().any(|process| process.pid == pid) && !own.iter().any(|process| process.pid == pid)
}

/// The prefix of the names of a folder's values: nothing in the first folder, the relative path below it, else the path
/// from beside it.
fn prefix_of(folder: &Path, first: &Path) -> String {
    if folder == first {
        return String::new();
    }
    let beside = first.parent().unwrap_or(first);
    let way = folder.strip_prefix(first).or_else(|_| folder.strip_prefix(beside)).unwrap_or(folder);
    format!("{}/", way.to_string_lossy().trim_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves how names of event files are parsed, of torch, TensorFlow 2 and tensorboardX.
    #[test]
    fn names_of_event_files() {
        for (name, pid) in [
            ("events.out.tfevents.1795323178.vm.example.23623.2", Some(23623)),
            ("events.out.tfevents.1795323178.vm.23623.0.v2", Some(23623)),
            ("events.out.tfevents.1795323179.vm", None),
            ("events.out.tfevents.1795323179.10.0.0.7", Some(0)),
        ] {
            assert!(begun_seconds(name).is_some_and(|seconds| seconds >= 1_795_323_178), "{name}");
            assert_eq!(writer_pid(name), pid, "{name}");
        }
        assert_eq!(begun_seconds("events.txt"), None);
    }

    /// Proves that one folder's names stay as they are and others contain their folder.
    #[test]
    fn folders_keep_their_values_apart() {
        let first = Path::new("/w/logs/train");
        assert_eq!(prefix_of(first, first), "");
        assert_eq!(prefix_of(Path::new("/w/logs/train/loss_a"), first), "loss_a/");
        assert_eq!(prefix_of(Path::new("/w/logs/validation"), first), "validation/");
        assert_eq!(prefix_of(Path::new("/w/other"), first), "w/other/");
    }

    /// Proves that only new event files are found, and none in hidden folders or among installed programs.
    #[test]
    fn only_new_files_are_found() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b", ".hidden", "site-packages"] {
            let folder = root.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("events.out.tfevents.100.h.1.0"), "").unwrap();
            std::fs::write(folder.join("events.out.tfevents.99.h.1.0"), "").unwrap();
        }
        let found = event_files_below(root.path(), 100);
        assert_eq!(found, [root.path().join("a/b/events.out.tfevents.100.h.1.0")]);
    }
}
