//! Reads a log as it grows, also where it is rewritten.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use trackway_formats::metric_files::{Axis, Form, LogReader, Point};

use super::super::below::READ_BYTES;

/// More of one file is not read.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// So much of the beginning, and of what is known last, shows that a file only grew.
const HEAD_BYTES: usize = 512;
const TAIL_BYTES: usize = 64;

/// What a reading comes upon.
#[derive(Debug)]
pub(super) enum Row {
    /// The file is read from its beginning again.
    Again,
    /// A row that was there before the attempt began.
    Before(Point),
    /// One that was not.
    New(Point),
}

/// How far a file is known, and what shows later that it only grew.
#[derive(Debug, Default)]
pub(super) struct KnownContent {
    bytes: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl KnownContent {
    /// A whole file of this length.
    pub fn of(path: &Path, bytes: u64) -> Self {
        let tail = bytes.min(TAIL_BYTES as u64);
        let pieces = File::open(path).and_then(|file| {
            let head = piece(&file, 0, bytes.min(HEAD_BYTES as u64) as usize)?;
            Ok((head, piece(&file, bytes - tail, tail as usize)?))
        });
        let (head, tail) = pieces.unwrap_or_default();
        Self { bytes, head, tail }
    }

    /// One whose content is not looked at.
    pub fn of_length(bytes: u64) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Whether what is known of it is in the file.
    fn is_in(&self, file: &File) -> io::Result<bool> {
        let tail_at = self.bytes.saturating_sub(self.tail.len() as u64);
        let (head, tail) = (piece(file, 0, self.head.len())?, piece(file, tail_at, self.tail.len())?);
        Ok(head == self.head && tail == self.tail)
    }

    /// Takes what follows.
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let missing = HEAD_BYTES - self.head.len();
        self.head.extend(bytes.iter().take(missing));
        self.tail.extend(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }
}

fn piece(file: &File, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; bytes];
    file.read_exact_at(&mut piece, at).map(|()| piece)
}

/// One log.
pub(super) struct GrowingLog {
    form: Form,
    reader: LogReader,
    /// What was there before the attempt began.
    before: KnownContent,
    read: KnownContent,
    inode: u64,
}

impl GrowingLog {
    pub fn new(form: Form, before: KnownContent) -> Self {
        Self { form, reader: LogReader::new(form), before, read: KnownContent::default(), inode: 0 }
    }

    pub fn axis(&self) -> Option<Axis> {
        self.reader.axis()
    }

    pub fn is_other(&self) -> bool {
        self.reader.is_other()
    }

    /// Gives each row that was added since the last call. `is_last`: the last line may lack its end.
    pub fn read(&mut self, path: &Path, is_last: bool, mut found: impl FnMut(Row)) -> io::Result<()> {
        let mut file = File::open(path)?;
        let now = file.metadata()?;
        if self.read.bytes == 0 {
            // One of the same length was rewritten.
            let is_continued = now.len() > self.before.bytes && self.before.is_in(&file)?;
            self.before =
                if is_continued { std::mem::take(&mut self.before) } else { KnownContent::default() };
        } else if !self.has_grown(&file, &now)? {
            // A file that took the place of another one is new as a whole.
            *self = Self::new(self.form, KnownContent::default());
            found(Row::Again);
        }
        self.inode = now.ino();
        file.seek(SeekFrom::Start(self.read.bytes))?;
        let mut bytes = Vec::new();
        while self.read.bytes < FILE_BYTES_MAX && !self.is_other() {
            // What was there before ends a piece.
            let before = self.before.bytes.saturating_sub(self.read.bytes);
            let most = if before > 0 { before.min(READ_BYTES) } else { READ_BYTES };
            bytes.clear();
            if file.by_ref().take(most).read_to_end(&mut bytes)? == 0 {
                break;
            }
            self.read.add(&bytes);
            let row: fn(Point) -> Row = if before > 0 { Row::Before } else { Row::New };
            self.reader.push(&bytes, |point| found(row(point)));
        }
        if is_last {
            self.reader.finish(|point| found(Row::New(point)));
        }
        Ok(())
    }

    /// Whether what was read is still there, and only more may follow.
    fn has_grown(&self, file: &File, now: &Metadata) -> io::Result<bool> {
        Ok(now.ino() == self.inode && now.len() >= self.read.bytes && self.read.is_in(file)?)
    }

    /// What of it is not recorded. `beyond`: values of metrics that are too many.
    pub fn left_out(&self, beyond: u64) -> Vec<String> {
        let left_out = self.reader.left_out();
        let counted = [
            (
                left_out.unreadable,
                "lines of it are not rows of its table, or no JSON objects, and are left out",
            ),
            (left_out.too_long, "lines of it are longer than 64 KiB and are left out"),
            (beyond, "values of it are left out: it names more than 1024 metrics"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let cut = left_out.is_cut.then(|| "its last line has no end and is left out".to_owned());
        let is_cut = self.read.bytes >= FILE_BYTES_MAX;
        let beyond = is_cut.then(|| format!("only its first {} MiB are read", FILE_BYTES_MAX >> 20));
        counted.map(|(count, what)| format!("{count} {what}")).chain(cut).chain(beyond).collect()
    }
}

/// The text of a whole file.
pub(super) fn text_of(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {} KiB", bytes_max >> 10)));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
