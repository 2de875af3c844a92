//! The numbered log: small files, each created only if absent. It knows nothing of what entries mean.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::entry::{Entry, MAX_ENTRY_BYTES};
use crate::error::CheckpointError;

/// The folder of the log, below the root.
const LOG_FOLDER: &str = "log";

/// A number of the log, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LogItem {
    Entry(Entry),
    /// The file exists and is no entry: the number is taken, what it said is lost.
    Damaged {
        number: u64,
        why: String,
    },
}

/// What became of a create.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Created {
    /// The entry stands under its number.
    Won,
    /// Somebody else's entry does.
    Taken,
}

/// The log of one root.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    folder: PathBuf,
}

impl Log {
    pub fn below(root: &Path) -> Self {
        Self { folder: root.join(LOG_FOLDER) }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:08}.json"))
    }

    /// Reads the entry with a number; `None`: nothing stands there yet.
    pub fn read(&self, number: u64) -> Result<Option<LogItem>, CheckpointError> {
        let path = self.path(number);
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&path)
            .and_then(|file| file.take(MAX_ENTRY_BYTES as u64 + 1).read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(CheckpointError::storage("read the log entry", &path))?,
        };
        if bytes.len() > MAX_ENTRY_BYTES {
            let why = format!("it has more than {MAX_ENTRY_BYTES} bytes");
            return Ok(Some(LogItem::Damaged { number, why }));
        }
        Ok(Some(match Entry::from_bytes(&bytes, number) {
            Ok(entry) => LogItem::Entry(entry),
            Err(why) => LogItem::Damaged { number, why },
        }))
    }

    /// Creates the entry under its number, durably, unless the number is taken.
    ///
    /// The bytes are written and synced under a name nobody reads, then linked to the number: whoever sees the
    /// number sees all of it. A crash before the link leaves a file that nobody reads.
    pub fn create(&self, disk: &dyn Disk, entry: &Entry) -> Result<Created, CheckpointError> {
        let temporary = self.folder.join(format!(".new-{}", entry.ulid));
        let path = self.path(entry.number);
        let mut file = disk.create(&temporary).map_err(CheckpointError::storage("create", &temporary))?;
        let linked = file
            .write(&entry.to_bytes())
            .and_then(|()| file.sync())
            .and_then(|()| disk.link(&temporary, &path));
        // Not waited for and not required: a left-over name costs a few bytes and is read by nobody.
        let _ = disk.remove_file(&temporary);
        match linked {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return self.whose(entry),
            Err(error) => return Err(CheckpointError::storage("write the log entry", &path)(error)),
        }
        disk.sync_folder(&self.folder).map_err(CheckpointError::storage("sync the folder", &self.folder))?;
        Ok(Created::Won)
    }

    /// Who holds a number that is taken: over a network file system the own, first create may answer only late.
    fn whose(&self, entry: &Entry) -> Result<Created, CheckpointError> {
        match self.read(entry.number)? {
            Some(LogItem::Entry(found)) if found.ulid == entry.ulid => Ok(Created::Won),
            _ => Ok(Created::Taken),
        }
    }
}
