//! What is searched for below the attempt's working directory while it runs: how often, how far, and the record of what is found there.
//! Event files and files of metrics are followed in this way, each kind by its own thread.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use trackway_core::Clock;
use trackway_formats::EventKind;
use trackway_recorder::{Origin, SegmentWriter};

use crate::shim::side::Records;

/// At most so many files of a kind are followed.
pub(super) const FILES_MAX: usize = 256;
/// One read takes at most this much.
pub(super) const READ_BYTES: u64 = 1 << 20;
/// The longest the end of the attempt waits for the last look.
pub(super) const LAST_LOOK: Duration = Duration::from_secs(20);
/// How often the folder is looked through.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// A look that takes long is followed by a wait this many times as long.
const REST_PER_LOOK: u32 = 20;
/// Folders deeper than this below the working directory are not looked at.
const DEPTH_MAX: usize = 8;
/// At most so many entries are looked at in one look, those near the working directory first.
const ENTRIES_MAX: usize = 20_000;
/// Folders that hold programs, not results.
const PASSED_FOLDERS: [&str; 5] = ["node_modules", "site-packages", "__pycache__", "target", "venv"];

/// Looks now and then, and for the last time when the attempt has ended.
pub(super) fn look_until_end(stopped: &Receiver<()>, clock: &dyn Clock, mut look: impl FnMut(bool)) {
    let mut rest = LOOK_EVERY;
    loop {
        let is_last = stopped.recv_timeout(rest) != Err(RecvTimeoutError::Timeout);
        let begun = clock.monotonic_micros();
        look(is_last);
        if is_last {
            return;
        }
        let took = u64::try_from(clock.monotonic_micros() - begun).unwrap_or(0);
        rest = LOOK_EVERY.max(Duration::from_micros(took) * REST_PER_LOOK);
    }
}

/// Calls `found` for each file below a folder, with the names of the folders down to it and its own, and `is_searched`
/// for each folder. True: there are more entries than are looked at.
pub(super) fn each_file_below(
    root: &Path,
    is_searched: impl Fn(&DirEntry, &str) -> bool,
    mut found: impl FnMut(&DirEntry, &[String], &str),
) -> bool {
    let mut folders: VecDeque<(PathBuf, Vec<String>)> = VecDeque::from([(root.to_owned(), Vec::new())]);
    let mut seen = 0;
    while let Some((folder, way)) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                return true;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && way.len() < DEPTH_MAX && is_searched(&entry, &name) => {
                    folders.push_back((entry.path(), [way.clone(), vec![name]].concat()));
                }
                Ok(kind) if kind.is_file() => found(&entry, &way, &name),
                _ => {}
            }
        }
    }
    false
}

/// Whether results may be in a folder of this name.
pub(super) fn may_have_results(folder: &str) -> bool {
    !folder.starts_with('.') && !PASSED_FOLDERS.contains(&folder)
}

/// The record of what is found below a folder. It begins with what is first written.
pub(super) struct BelowRecord {
    pub root: PathBuf,
    /// How many values were recorded.
    pub values: u64,
    records: Records,
    origin: Origin,
    writer: Option<SegmentWriter>,
}

impl BelowRecord {
    pub fn new(root: PathBuf, records: Records, origin: Origin) -> Self {
        Self { root, values: 0, records, origin, writer: None }
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.records.clock)
    }

    pub fn writer(&mut self) -> &mut SegmentWriter {
        self.writer.get_or_insert_with(|| self.records.writer(self.origin))
    }

    /// The path of a file or folder from the root.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Records that something of a file or folder was not recorded.
    pub fn skip(&mut self, path: &Path, why: &str, more: &[(&str, &str)]) {
        let shown = self.shown(path);
        let fields = [&[("path", shown.as_str()), ("why", why)][..], more].concat();
        self.writer().event(EventKind::EventFileSkipped.as_str(), None, &fields);
    }

    /// Ends the record in order. `what`: files of the kind; `beyond`: how many of them are too many; `is_cut`: there
    /// are more entries than are looked at. How many values were recorded.
    pub fn finish(&mut self, what: &str, beyond: usize, is_cut: bool) -> u64 {
        let root = self.root.clone();
        if beyond > 0 {
            self.skip(&root, &format!("{beyond} {what} are not read: the first {FILES_MAX} are"), &[]);
        }
        if is_cut && self.writer.is_some() {
            let why =
                format!("it has more than {ENTRIES_MAX} entries: {what} beyond them were not searched for");
            self.skip(&root, &why, &[]);
        }
        if let Some(writer) = &mut self.writer {
            writer.finish();
        }
        self.values
    }
}
