//! The exit record's place on the disk, taken while there is room.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use trackway_files::{open_own, sync_parent};
use trackway_formats::layout::AttemptLayout;

use crate::{ERROR_FILE_BYTES_MAX, ExitRecord};

/// Larger than any exit record with its bounded lists and its error file, control characters escaped.
const RESERVED_BYTES: i64 = 192 * 1024;
const _: () = assert!(RESERVED_BYTES as usize > 6 * ERROR_FILE_BYTES_MAX + 64 * 1024);

/// Space for `exit.json` that a full disk cannot take away. (File systems that copy on write promise nothing.)
#[derive(Debug)]
pub(in crate::shim) struct Reserved {
    files: AttemptLayout,
    file: File,
}

impl Reserved {
    pub fn new(files: AttemptLayout) -> io::Result<Self> {
        let path = files.exit_reserved();
        let file = open_own(OpenOptions::new().write(true).create(true).truncate(true), &path)?;
        // Where the file system cannot reserve, the record is written like any other file.
        nix::fcntl::posix_fallocate(&file, 0, RESERVED_BYTES).ok();
        Ok(Self { files, file })
    }

    /// Writes the record into its place and gives it its name: afterwards it survives a power cut.
    pub fn write(&self, record: &ExitRecord) -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(record)?;
        bytes.push(b'\n');
        self.file.write_all_at(&bytes, 0)?;
        self.file.set_len(bytes.len() as u64)?;
        self.file.sync_all()?;
        std::fs::rename(self.files.exit_reserved(), self.files.exit_json())?;
        sync_parent(&self.files.exit_json())
    }
}
