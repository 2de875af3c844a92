//! The segments of an attempt, read in parts of bounded size, as often as is needed.

use std::fs::{self, File};
use std::io::{Read as _, Take};
use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, Step};
use trackway_files::if_there;
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{GrowingSegment, NameTable, Origin, SEGMENT_EXTENSION, Segment, SegmentParts};
use trackway_ledger::LedgerError;

use crate::rounds::add_rounds;

/// So many bytes of a segment are in memory at once. Rows of larger parts leave gaps in the memory that the allocator
/// does not fill again: with 2 MiB a record of 10^8 values took 760 MiB, with these 60 MiB.
pub(crate) const PART_BYTES: usize = 256 << 10;

/// A part of a segment file.
pub(crate) struct Part {
    /// The name of the file.
    pub name: String,
    /// The frames of the part, with the header and the names of the segment.
    pub segment: Segment,
}

impl Part {
    /// Its writer.
    pub fn origin(&self) -> Option<Origin> {
        self.segment.origin()
    }
}

/// A segment file that is read in parts, up to the size that it had when it was found.
pub(crate) struct SegmentFile {
    path: PathBuf,
    pub name: String,
    pub size_bytes: u64,
    /// So many bytes are read for one part.
    pub part_bytes: usize,
    /// Its writer.
    pub origin: Option<Origin>,
    /// All of its names, where damage may have hit a first definition; otherwise none.
    pub names: NameTable,
    /// What is added to steps that were printed.
    pub rounds_before: Option<Step>,
}

/// Every segment of an attempt, by file name.
pub(crate) fn segment_files(home: &Path, attempt_id: AttemptId) -> Result<Vec<SegmentFile>, LedgerError> {
    segment_paths(home, attempt_id)?.into_iter().map(SegmentFile::of).collect()
}

/// The segment files of an attempt, by name; none without a folder.
pub(crate) fn segment_paths(home: &Path, attempt_id: AttemptId) -> Result<Vec<PathBuf>, LedgerError> {
    let folder = HomeLayout::new(home).attempt(attempt_id).records();
    let entries = if_there(fs::read_dir(&folder)).map_err(LedgerError::file("list", &folder))?;
    let mut paths: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == SEGMENT_EXTENSION))
        .collect();
    paths.sort();
    Ok(paths)
}

impl SegmentFile {
    fn of(path: PathBuf) -> Result<Self, LedgerError> {
        let metadata = fs::metadata(&path).map_err(LedgerError::file("read", &path))?;
        let mut file = Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path,
            size_bytes: metadata.len(),
            part_bytes: PART_BYTES,
            origin: None,
            names: NameTable::default(),
            rounds_before: None,
        };
        let mut parts = file.open()?;
        if let Ok(Some(first)) = parts.next_part().map_err(LedgerError::file("read", &file.path))? {
            file.origin = first.origin();
        }
        Ok(file)
    }

    /// Whether it holds values of the machine rather than of the training.
    pub fn is_telemetry(&self) -> bool {
        self.origin == Some(Origin::Telemetry)
    }

    fn open(&self) -> Result<SegmentParts<Take<File>>, LedgerError> {
        let file = File::open(&self.path).map_err(LedgerError::file("read", &self.path))?;
        let growing = GrowingSegment::with_names(self.names.clone());
        Ok(SegmentParts::new(file.take(self.size_bytes), growing, self.part_bytes))
    }

    /// Calls `take` with each part. Where the segment cannot be read further it ends, and why is given back.
    pub fn each_part(
        &self,
        mut take: impl FnMut(&Part) -> Result<(), LedgerError>,
    ) -> Result<Option<String>, LedgerError> {
        let mut parts = self.open()?;
        let mut part = Part { name: self.name.clone(), segment: Segment::default() };
        loop {
            let segment = match parts.next_part().map_err(LedgerError::file("read", &self.path))? {
                Ok(Some(segment)) => segment,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(error.to_string())),
            };
            part.segment = std::mem::take(segment);
            if let Some(before) = self.rounds_before {
                add_rounds(&mut part.segment, before);
            }
            take(&part)?;
            *segment = std::mem::take(&mut part.segment);
        }
    }
}
