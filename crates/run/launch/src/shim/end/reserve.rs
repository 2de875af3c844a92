//! The exit record's place on the disk, taken while there is room.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use trackway_files::{open_own, sync_parent, unlink};
use trackway_formats::layout::AttemptLayout;

use crate::{ERROR_FILE_BYTES_MAX, ExitRecord, SignalSent};

/// What is reserved, as much of it as there is. The first is larger than any exit record with its bounded lists and its error file, control
/// characters escaped; the last takes a record in short.
const RESERVED_BYTES: [i64; 3] = [192 * 1024, 16 * 1024, SHORT_BYTES_MAX as i64];
const _: () = assert!(RESERVED_BYTES[0] as usize > 6 * ERROR_FILE_BYTES_MAX + 64 * 1024);
/// A record in short is never larger.
const SHORT_BYTES_MAX: usize = 4096;
/// So many entries of a list, and so many bytes of a message and of an error file, are in a record in short at most.
const SHORT_ENTRIES_MAX: usize = 3;
const SHORT_TEXT_BYTES_MAX: usize = 256;
const SHORT_ERROR_FILE_BYTES_MAX: usize = 1024;

/// Space for `exit.json` that a full disk cannot take away. (File systems that copy on write promise nothing.)
#[derive(Debug)]
pub(in crate::shim) struct Reserved {
    files: AttemptLayout,
    file: File,
}

impl Reserved {
    /// Fails where there is no room: a script whose end could not be written down must not begin.
    pub fn new(files: AttemptLayout) -> io::Result<Self> {
        let path = files.exit_reserved();
        let file = open_own(OpenOptions::new().write(true).create(true).truncate(true), &path)?;
        if let Err(error) = reserve(&file) {
            // What it has taken of the last room goes back.
            let _ = unlink(&path);
            return Err(error);
        }
        Ok(Self { files, file })
    }

    /// Writes the record into its place, in short where it is larger than that, and gives it its name: afterwards it survives a power cut.
    pub fn write(&self, record: &ExitRecord) -> io::Result<()> {
        self.put(serde_json::to_vec_pretty(record)?)
            .or_else(|_| self.put(serde_json::to_vec(&in_short(record))?))?;
        std::fs::rename(self.files.exit_reserved(), self.files.exit_json())?;
        sync_parent(&self.files.exit_json())
    }

    fn put(&self, mut bytes: Vec<u8>) -> io::Result<()> {
        bytes.push(b'\n');
        self.file.write_all_at(&bytes, 0)?;
        self.file.set_len(bytes.len() as u64)?;
        self.file.sync_all()
    }
}

fn reserve(file: &File) -> io::Result<()> {
    let mut reserved = Ok(());
    for bytes in RESERVED_BYTES {
        reserved = nix::fcntl::posix_fallocate(file, 0, bytes);
        if !matches!(reserved, Err(Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)) {
            // Where the file system cannot reserve, the record is written like any other file.
            return Ok(());
        }
        // A file system may keep what it took before it found no more.
        file.set_len(0)?;
    }
    Ok(reserved?)
}

/// The record with as much of what may be long as fits. What shows why the attempt ended goes last.
fn in_short(record: &ExitRecord) -> ExitRecord {
    let mut short = ExitRecord { signals: first_of_each_reason(&record.signals), ..record.clone() };
    short.left_out.truncate(SHORT_ENTRIES_MAX);
    short.tree.names.truncate(SHORT_ENTRIES_MAX);
    short.tree.unkillable.truncate(SHORT_ENTRIES_MAX);
    if let Some(error) = &mut short.spawn_error {
        cut(&mut error.message, SHORT_TEXT_BYTES_MAX);
    }
    if let Some(text) = &mut short.error_file {
        cut(text, SHORT_ERROR_FILE_BYTES_MAX);
    }
    if !fits(&short) {
        short.left_out.clear();
    }
    if !fits(&short) {
        short.tree.names.clear();
        short.tree.unkillable.clear();
    }
    while !fits(&short)
        && let Some(text) = short.error_file.as_mut().filter(|text| !text.is_empty())
    {
        let half = text.len() / 2;
        cut(text, half);
    }
    short
}

fn fits(record: &ExitRecord) -> bool {
    serde_json::to_vec(record).is_ok_and(|bytes| bytes.len() < SHORT_BYTES_MAX)
}

fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

/// Which reasons there were decides about the end, not how often.
fn first_of_each_reason(signals: &[SignalSent]) -> Vec<SignalSent> {
    let mut first: Vec<SignalSent> = Vec::new();
    for sent in signals {
        if first.iter().all(|earlier| earlier.why != sent.why) {
            first.push(sent.clone());
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::exit_record::{PROCESS_NAMES_MAX, SIGNALS_MAX};
    use crate::{SignalReason, SpawnError, TreeEnd};

    /// Proves that a record in short fits into the least that is reserved, however long its lists and texts are, and has
    /// how the script ended, every reason of a signal, and of the rest as much as fits.
    #[test]
    fn a_record_in_short_fits() {
        let sent = |why| SignalSent { at: Default::default(), signal: 15, why };
        let mut signals = vec![sent(SignalReason::StopRequested); SIGNALS_MAX - 2];
        signals.extend([SignalReason::KillRequested, SignalReason::Leftover].map(sent));
        let left_out =
            [("kind", "dropped_frames"), ("path", "stdout.log"), ("count", "18446744073709551615")];
        let why = ("why", "x".repeat(200));
        let left_out = left_out.map(|(name, value)| (name, value.to_owned())).into_iter().chain([why]);
        let left_out: BTreeMap<String, String> =
            left_out.map(|(name, value)| (name.to_owned(), value)).collect();
        let record = ExitRecord {
            exit_code: Some(3),
            spawn_error: Some(SpawnError { errno: Some(2), message: "\u{1}".repeat(100_000) }),
            error_file: Some("\u{1}".repeat(ERROR_FILE_BYTES_MAX)),
            signals,
            left_out: vec![left_out; 27],
            tree: TreeEnd {
                names: vec!["a_process_name_".into(); PROCESS_NAMES_MAX],
                unkillable: vec!["a_process_name_ (4194304)".into(); PROCESS_NAMES_MAX],
                ..TreeEnd::default()
            },
            ..ExitRecord::default()
        };
        let readable = ExitRecord {
            spawn_error: None,
            error_file: Some("ValueError: x\n".repeat(1_000)),
            ..record.clone()
        };
        for (record, left_out_count) in [(record, 0), (readable, SHORT_ENTRIES_MAX)] {
            let bytes = serde_json::to_vec(&in_short(&record)).unwrap();
            assert!(bytes.len() < SHORT_BYTES_MAX, "{} bytes", bytes.len());
            let read: ExitRecord = serde_json::from_slice(&bytes).unwrap();
            assert_eq!((read.exit_code, read.left_out.len()), (Some(3), left_out_count));
            let reasons: Vec<SignalReason> = read.signals.iter().map(|sent| sent.why).collect();
            let expected = [SignalReason::StopRequested, SignalReason::KillRequested, SignalReason::Leftover];
            assert_eq!(reasons, expected);
            let (kept, whole) = (read.error_file.unwrap(), record.error_file.unwrap());
            assert!(!kept.is_empty() && whole.starts_with(&kept));
        }
    }
}
