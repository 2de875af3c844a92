//! Reads a log as it grows, also where it is rewritten.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use trackway_formats::metric_files::{Axis, Form, LogReader, Point, Replay};

/// One read takes at most so much.
const READ_BYTES: u64 = 1 << 20;
/// More of one file is not read.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// So much of the beginning, and of what was read last, shows that a file only grew.
const HEAD_BYTES: usize = 512;
const TAIL_BYTES: usize = 64;

/// Of which reading a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// The file is read from its beginning again. There is no row.
    Again,
    /// It was there before the attempt began.
    Before,
    /// It is new.
    New,
}

/// A file before the attempt began.
#[derive(Debug, Default)]
pub(super) struct Before {
    bytes: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Before {
    /// Of a file of this length.
    pub fn of(path: &Path, bytes: u64) -> Self {
        let piece = |length: u64, at: u64| {
            let mut piece = vec![0; length as usize];
            File::open(path).and_then(|file| file.read_exact_at(&mut piece, at)).map(|()| piece)
        };
        let (head, tail) = (bytes.min(HEAD_BYTES as u64), bytes.min(TAIL_BYTES as u64));
        let (head, tail) =
            (piece(head, 0).unwrap_or_default(), piece(tail, bytes - tail).unwrap_or_default());
        Self { bytes, head, tail }
    }

    /// Of one whose content is not looked at.
    pub fn of_length(bytes: u64) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Whether a file of this length is the same one with more at its end. One of the same length was rewritten.
    fn is_continued_by(&self, file: &File, bytes: u64) -> io::Result<bool> {
        Ok(bytes > self.bytes && begins_with(file, (&self.head, &self.tail), self.bytes)?)
    }
}

/// Whether a file has these pieces at its beginning and up to there.
fn begins_with(file: &File, (head, tail): (&[u8], &[u8]), up_to: u64) -> io::Result<bool> {
    let (mut is_head, mut is_tail) = (vec![0; head.len()], vec![0; tail.len()]);
    file.read_exact_at(&mut is_head, 0)?;
    file.read_exact_at(&mut is_tail, up_to.saturating_sub(tail.len() as u64))?;
    Ok(is_head == head && is_tail == tail)
}

/// One log.
pub(super) struct GrowingLog {
    form: Form,
    reader: LogReader,
    replay: Replay,
    /// What was there before the attempt began.
    before: Before,
    read_bytes: u64,
    inode: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    is_judging: bool,
    is_cut: bool,
}

impl GrowingLog {
    pub fn new(form: Form, before: Before) -> Self {
        Self {
            form,
            reader: LogReader::new(form),
            replay: Replay::default(),
            before,
            read_bytes: 0,
            inode: 0,
            head: Vec::new(),
            tail: Vec::new(),
            is_judging: true,
            is_cut: false,
        }
    }

    pub fn axis(&self) -> Option<Axis> {
        self.reader.axis()
    }

    pub fn is_other(&self) -> bool {
        self.reader.is_other()
    }

    /// It is a log: it is read once more, and from now on what is new is taken.
    pub fn begin_again(&mut self) {
        self.is_judging = false;
        self.restart();
    }

    fn restart(&mut self) {
        self.reader = LogReader::new(self.form);
        self.replay.begin_again();
        (self.read_bytes, self.head, self.tail) = (0, Vec::new(), Vec::new());
    }

    /// Gives each row that was added since the last call. `is_last`: the last line may lack its end.
    pub fn read(&mut self, path: &Path, is_last: bool, mut found: impl FnMut(Pass, Point)) -> io::Result<()> {
        let mut file = File::open(path)?;
        let now = file.metadata()?;
        if self.read_bytes > 0 && !self.has_grown(&file, now.ino(), now.len())? {
            // A file that took the place of another one is new as a whole, but for the rows that were taken.
            self.restart();
            self.before = Before::default();
            found(Pass::Again, Point { step: 0, values: Vec::new() });
        } else if self.read_bytes == 0
            && self.before.bytes > 0
            && !self.before.is_continued_by(&file, now.len())?
        {
            self.before = Before::default();
        }
        self.inode = now.ino();
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut bytes = Vec::new();
        while self.read_bytes < FILE_BYTES_MAX && !self.reader.is_other() {
            // What was there before ends a piece.
            let is_before = self.read_bytes < self.before.bytes;
            let most = if is_before { self.before.bytes - self.read_bytes } else { READ_BYTES };
            bytes.clear();
            let count = file.by_ref().take(most.min(READ_BYTES)).read_to_end(&mut bytes)?;
            if count == 0 {
                break;
            }
            self.note(&bytes);
            let pass = if is_before { Pass::Before } else { Pass::New };
            let mut points = Vec::new();
            self.reader.push(&bytes, |point| points.push(point));
            self.give(pass, points, &mut found);
        }
        self.is_cut = self.read_bytes >= FILE_BYTES_MAX;
        if is_last {
            let mut points = Vec::new();
            self.reader.finish(|point| points.push(point));
            self.give(Pass::New, points, &mut found);
        }
        Ok(())
    }

    fn give(&mut self, pass: Pass, points: Vec<Point>, found: &mut impl FnMut(Pass, Point)) {
        for point in points {
            // Rows that are only judged are taken later; those from before the attempt are known from the first reading on.
            let is_taken = !self.is_judging || pass == Pass::Before;
            let new = if is_taken { self.replay.take(point) } else { Some(point) };
            if let Some(point) = new {
                found(pass, point);
            }
        }
    }

    /// Whether what was read is still there, and only more may follow.
    fn has_grown(&self, file: &File, inode: u64, bytes: u64) -> io::Result<bool> {
        if inode != self.inode || bytes < self.read_bytes {
            return Ok(false);
        }
        begins_with(file, (&self.head, &self.tail), self.read_bytes)
    }

    fn note(&mut self, bytes: &[u8]) {
        self.read_bytes += bytes.len() as u64;
        let missing = HEAD_BYTES - self.head.len();
        self.head.extend(bytes.iter().take(missing));
        self.tail.extend(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    /// What of it is not recorded.
    pub fn left_out(&self) -> Vec<String> {
        let left_out = self.reader.left_out();
        let counted = [
            (
                left_out.unreadable,
                "lines of it are not rows of its table, or no JSON objects, and are left out",
            ),
            (left_out.too_long, "lines of it are longer than 64 KiB and are left out"),
            (self.replay.beyond(), "values of it are left out: it names more than 1024 metrics"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let cut = left_out.is_cut.then(|| "its last line has no end and is left out".to_owned());
        let beyond = self.is_cut.then(|| format!("only its first {} MiB are read", FILE_BYTES_MAX >> 20));
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
