//! How the growing files of an attempt are read, and requests sent to its script, wherever it runs.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use trackway_files::if_there;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::record::SEGMENT_EXTENSION;

/// Which of the script's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A file of an attempt that is read while it grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowingFile<'a> {
    /// What the script printed.
    Log(Stream),
    /// When the lines of a log began.
    Times(Stream),
    /// The requests to the script.
    Control,
    /// A segment of the flight record, by its name from [`AttemptChannel::segments`].
    Segment(&'a str),
}

/// The way to an attempt's files. What is read may be older than what is there, and never has gaps.
pub trait AttemptChannel: Debug + Send + Sync {
    /// The names of the segments of the flight record, sorted; none before there is one.
    ///
    /// # Errors
    /// They cannot be listed now.
    fn segments(&self) -> io::Result<Vec<String>>;

    /// How many bytes of the file are there; 0 before it exists.
    ///
    /// # Errors
    /// That cannot be found out now.
    fn size_bytes(&self, file: GrowingFile<'_>) -> io::Result<u64>;

    /// Bytes of the file from `offset` on, at most so many. None at its end, and before it exists; fewer than there are do not
    /// mean its end.
    ///
    /// # Errors
    /// It cannot be read now.
    fn read(&self, file: GrowingFile<'_>, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// Appends a line, which ends in its only newline, to the requests to the script; it survives a power cut when this returns.
    ///
    /// # Errors
    /// It could not be written; the script may have it all the same.
    fn send_control(&self, line: &[u8]) -> io::Result<()>;
}

/// The channel to an attempt whose folder is on this machine.
#[derive(Debug, Clone)]
pub struct FolderChannel {
    files: AttemptLayout,
}

impl FolderChannel {
    /// The channel to the attempt in this folder, which need not exist yet.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { files: AttemptLayout::new(directory) }
    }

    fn path(&self, file: GrowingFile<'_>) -> io::Result<PathBuf> {
        Ok(match file {
            GrowingFile::Log(Stream::Stdout) => self.files.stdout_log(),
            GrowingFile::Log(Stream::Stderr) => self.files.stderr_log(),
            GrowingFile::Times(Stream::Stdout) => self.files.stdout_times(),
            GrowingFile::Times(Stream::Stderr) => self.files.stderr_times(),
            GrowingFile::Control => self.files.control_jsonl(),
            GrowingFile::Segment(name) => {
                if !matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]) {
                    return Err(io::Error::new(
                        ErrorKind::InvalidInput,
                        format!("`{name}` names no segment"),
                    ));
                }
                self.files.records().join(name)
            }
        })
    }
}

impl AttemptChannel for FolderChannel {
    fn segments(&self) -> io::Result<Vec<String>> {
        let entries = if_there(std::fs::read_dir(self.files.records()))?;
        let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        let segments = paths.filter(|path| path.extension().is_some_and(|found| found == SEGMENT_EXTENSION));
        let mut names: Vec<String> =
            segments.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
        names.sort();
        Ok(names)
    }

    fn size_bytes(&self, file: GrowingFile<'_>) -> io::Result<u64> {
        let metadata = if_there(std::fs::metadata(self.path(file)?))?;
        Ok(metadata.map_or(0, |metadata| metadata.len()))
    }

    fn read(&self, file: GrowingFile<'_>, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(mut opened) = if_there(File::open(self.path(file)?))? {
            opened.seek(SeekFrom::Start(offset))?;
            // One read that ends at the end of the file, into room that never grows.
            let left = opened.metadata()?.len().saturating_sub(offset).min(bytes_max);
            bytes.reserve_exact(usize::try_from(left).unwrap_or(0));
            opened.take(left).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn send_control(&self, line: &[u8]) -> io::Result<()> {
        let path = self.path(GrowingFile::Control)?;
        let mut file = trackway_files::open_own(OpenOptions::new().create(true).append(true), &path)?;
        file.write_all(line)?;
        file.sync_data()
    }
}

/// Reads a growing file from front to back; meant to be buffered.
#[derive(Debug)]
pub struct ChannelReader<'a> {
    channel: &'a dyn AttemptChannel,
    file: GrowingFile<'a>,
    offset: u64,
}

impl<'a> ChannelReader<'a> {
    /// From the beginning of the file.
    #[must_use]
    pub fn new(channel: &'a dyn AttemptChannel, file: GrowingFile<'a>) -> Self {
        Self { channel, file, offset: 0 }
    }
}

impl Read for ChannelReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.channel.read(self.file, self.offset, buffer.len() as u64)?;
        let read = bytes.len().min(buffer.len());
        buffer[..read].copy_from_slice(&bytes[..read]);
        self.offset += read as u64;
        Ok(read)
    }
}

impl Seek for ChannelReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(distance) => self.offset.checked_add_signed(distance),
            SeekFrom::End(distance) => self.channel.size_bytes(self.file)?.checked_add_signed(distance),
        };
        self.offset = target.ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        Ok(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that files are read from any offset in pieces, that what does not exist yet is empty, and that no name leads out of
    /// the folder.
    #[test]
    fn growing_files_are_read_from_any_offset() {
        let folder = tempfile::tempdir().unwrap();
        let channel = FolderChannel::new(folder.path());
        let log = GrowingFile::Log(Stream::Stdout);
        assert_eq!((channel.size_bytes(log).unwrap(), channel.read(log, 0, 9).unwrap()), (0, Vec::new()));
        assert!(channel.segments().unwrap().is_empty());
        std::fs::write(folder.path().join("stdout.log"), "one\ntwo\n").unwrap();
        assert_eq!(channel.read(log, 4, 2).unwrap(), b"tw");
        assert_eq!((channel.size_bytes(log).unwrap(), channel.read(log, 8, 9).unwrap()), (8, Vec::new()));
        std::fs::create_dir(folder.path().join("records")).unwrap();
        for name in ["b.twfr", "a.twfr", "c.txt"] {
            std::fs::write(folder.path().join("records").join(name), name).unwrap();
        }
        assert_eq!(channel.segments().unwrap(), ["a.twfr", "b.twfr"]);
        assert_eq!(channel.read(GrowingFile::Segment("a.twfr"), 0, 99).unwrap(), b"a.twfr");
        for name in ["../stdout.log", "/etc/hostname", "", ".."] {
            let refused = channel.read(GrowingFile::Segment(name), 0, 1).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "`{name}`: {refused}");
        }
        let mut reader = ChannelReader::new(&channel, log);
        reader.seek(SeekFrom::End(-4)).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "two\n");
    }
}
