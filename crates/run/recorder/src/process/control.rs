use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use trackway_formats::control::{Line, LineReader};

/// Bytes read at one poll. A supervisor writes a line of a hundred bytes now and then.
const READ_BYTES_MAX: u64 = 65_536;

/// Reads the control file as it grows, from where it left off.
#[derive(Debug)]
pub(crate) struct ControlReader {
    path: PathBuf,
    position: u64,
    lines: LineReader,
}

impl ControlReader {
    pub fn new(path: PathBuf) -> Self {
        Self { path, position: 0, lines: LineReader::default() }
    }

    /// The lines that were added since the last call. A file that is missing or cannot be read has none.
    pub fn poll(&mut self) -> Vec<Line> {
        let size = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        if size <= self.position {
            return Vec::new();
        }
        let Ok(bytes) = self.read_new() else {
            return Vec::new();
        };
        self.position += bytes.len() as u64;
        self.lines.read(&bytes)
    }

    fn read_new(&self) -> std::io::Result<Vec<u8>> {
        let mut file = trackway_files::open_trusted(&self.path)?;
        file.seek(SeekFrom::Start(self.position))?;
        let mut bytes = Vec::new();
        file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
