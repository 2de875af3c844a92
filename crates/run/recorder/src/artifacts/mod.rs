//! Artifacts: files that are copied into the attempt's folder, in the background, under the BLAKE3 of their content.
//!
//! `TRACKWAY_ARTIFACTS/HASH` is there whole or not at all: it is written aside as `.part-PID-NUMBER`, synced and renamed. An
//! event `artifact` is recorded when it is there, so what the record names exists; a process that is killed before loses
//! what was still being copied, and the record does not name it.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_core::Step;
use trackway_files::open_own;
use trackway_formats::EventKind;

use crate::process::ProcessSlot;
use crate::process::inner::Inner;
use crate::process::keeper::{Job, Keeper};
use crate::recorder::Recorder;

/// A file larger than this is not kept.
pub const ARTIFACT_BYTES_MAX: u64 = 16 << 30;
/// Of a folder with more files only so many are kept, which an event reports.
pub const ARTIFACT_FILES_MAX: usize = 10_000;

const COPY_BYTES: usize = 1 << 20;
/// Makes the temporary names of this process unique.
static NEXT_PART: AtomicU64 = AtomicU64::new(0);
const NO_FOLDER: &str = "`TRACKWAY_ARTIFACTS` is not set";

impl Recorder {
    /// Keeps a copy of a file, or of every file in a folder as `NAME/PLACE`, with the attempt. The file is opened now
    /// and copied in the background, once for each content: write a new one rather than changing it in place. What
    /// cannot be kept is an event. [`Recorder::finish`] waits for the copies, as long as for a checkpoint.
    pub fn artifact(&self, name: &str, path: &Path, step: Option<Step>) {
        let Some(inner) = self.shared() else { return };
        let slot = inner.slot();
        let job = match open(path) {
            Ok(file) => Job { name: name.to_owned(), path: path.to_owned(), file, step },
            Err(error) => return report_failed(slot, name, step, &format!("{}: {error}", path.display())),
        };
        let mut keeper = slot.keeper.get();
        if keeper.is_none() {
            match start_keeper(&inner) {
                Ok(new) => *keeper = Some(new),
                Err(why) => return report_failed(slot, name, step, &why),
            }
        }
        let Some(keeper) = keeper.as_ref() else { return };
        if let Err(why) = keeper.take(job) {
            report_failed(slot, name, step, &why);
        }
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    // Joined to a folder, an empty path is that folder: all of the working directory.
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is empty"));
    }
    let kind = fs::metadata(path)?;
    if kind.is_dir() {
        return Ok(None);
    }
    // Opening a pipe would wait for its writer.
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a folder"));
    }
    File::open(path).map(Some)
}

fn report_failed(slot: &ProcessSlot, name: &str, step: Option<Step>, why: &str) {
    slot.record_event(EventKind::ArtifactFailed, step, &[("name", name), ("why", why)]);
}

fn start_keeper(inner: &Arc<Inner>) -> Result<Keeper, String> {
    let folder = inner.settings.artifact_folder.clone().ok_or(NO_FOLDER)?;
    trackway_files::make_folders(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let inner = Arc::clone(inner);
    Keeper::start(move |job| inner.keep(&folder, job))
}

impl Inner {
    fn keep(&self, folder: &Path, job: Job) {
        let Job { name, path, file, step } = job;
        if let Some(file) = file {
            return self.keep_file(folder, &name, file, step);
        }
        let mut files = Vec::new();
        let listed = files_below(&path, &mut files);
        for path_below in &files {
            let place = path_below.strip_prefix(&path).unwrap_or(path_below).display();
            let name = format!("{name}/{place}");
            match File::open(path_below) {
                Ok(file) => self.keep_file(folder, &name, file, step),
                Err(error) => report_failed(self.slot(), &name, step, &error.to_string()),
            }
        }
        if let Err(error) = listed {
            report_failed(self.slot(), &name, step, &error.to_string());
        }
    }

    fn keep_file(&self, folder: &Path, name: &str, file: File, step: Option<Step>) {
        match store(folder, file) {
            Ok((hash, size_bytes)) => {
                let size = size_bytes.to_string();
                let fields = [("name", name), ("blake3", hash.as_str()), ("size_bytes", size.as_str())];
                self.slot().record_event(EventKind::Artifact, step, &fields);
            }
            Err(error) => report_failed(self.slot(), name, step, &error.to_string()),
        }
    }

    /// Waits for the artifacts that were given so far.
    pub(crate) fn close_keeper(&self, slot: &ProcessSlot) {
        let Some(keeper) = slot.keeper.get().take() else { return };
        if !keeper.close(self.last_save_wait()) {
            let why = "the process exits before all artifacts are copied";
            slot.record_event(EventKind::ArtifactFailed, None, &[("why", why)]);
        }
    }
}

/// The regular files below a folder, in the order of their paths; links are not followed.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files_below(&entry.path(), found)?;
        } else if kind.is_file() && found.len() == ARTIFACT_FILES_MAX {
            return Err(io::Error::other(format!("only the first {ARTIFACT_FILES_MAX} files are kept")));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Copies what can be read from here on into the folder. Returns hash and size.
fn store(folder: &Path, file: File) -> io::Result<(String, u64)> {
    let number = NEXT_PART.fetch_add(1, Ordering::Relaxed);
    let aside = folder.join(format!(".part-{}-{number}", std::process::id()));
    let kept = copy_hashed(file, &aside).and_then(|(hash, size_bytes)| {
        let path = folder.join(&hash);
        // Equal names have equal content, so the order does not matter.
        if fs::metadata(&path).is_ok_and(|found| found.len() == size_bytes) {
            trackway_files::unlink(&aside)?;
        } else {
            fs::rename(&aside, &path)?;
            File::open(folder)?.sync_all()?;
        }
        Ok((hash, size_bytes))
    });
    if kept.is_err() {
        // Best effort: the first error is the one to report.
        let _ = trackway_files::unlink(&aside);
    }
    kept
}

fn copy_hashed(mut from: File, to: &Path) -> io::Result<(String, u64)> {
    let mut into = open_own(OpenOptions::new().write(true).create(true).truncate(true), to)?;
    let (mut hasher, mut size_bytes) = (blake3::Hasher::new(), 0);
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        size_bytes += count as u64;
        if size_bytes > ARTIFACT_BYTES_MAX {
            return Err(io::Error::other(format!("it is larger than {ARTIFACT_BYTES_MAX} bytes")));
        }
        hasher.update(&buffer[..count]);
        into.write_all(&buffer[..count])?;
    }
    into.sync_all()?;
    Ok((hasher.finalize().to_hex().to_string(), size_bytes))
}
