//! The segments of an attempt, read in parts of bounded size, as often as closing its record needs them.

use std::fs::File;
use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, Step};
use trackway_formats::record::{NameTable, Origin, Segment, SegmentParts};

use super::rounds::add_rounds;
use super::{NamedSegment, segment_paths};
use crate::error::LedgerError;

/// A segment file that is read in parts.
pub(super) struct SegmentFile {
    path: PathBuf,
    pub name: String,
    pub size_bytes: u64,
    /// Its writer.
    pub origin: Option<Origin>,
    /// All of its names, where damage may have hit a first definition; otherwise none.
    pub names: NameTable,
    /// What is added to steps that were printed.
    pub rounds_before: Option<Step>,
}

/// Every segment of an attempt, by file name.
pub(super) fn segment_files(home: &Path, attempt_id: AttemptId) -> Result<Vec<SegmentFile>, LedgerError> {
    let paths = segment_paths(home, attempt_id)?;
    paths.into_iter().map(SegmentFile::of).collect()
}

impl SegmentFile {
    fn of(path: PathBuf) -> Result<Self, LedgerError> {
        let metadata = std::fs::metadata(&path).map_err(LedgerError::file("read", &path))?;
        let mut file = Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path,
            size_bytes: metadata.len(),
            origin: None,
            names: NameTable::default(),
            rounds_before: None,
        };
        let mut parts = file.open()?;
        if let Ok(Some(first)) = parts.next_part().map_err(LedgerError::file("read", &file.path))? {
            file.origin = first.header.as_ref().map(|header| header.origin);
        }
        Ok(file)
    }

    fn open(&self) -> Result<SegmentParts<File>, LedgerError> {
        let file = File::open(&self.path).map_err(LedgerError::file("read", &self.path))?;
        Ok(SegmentParts::new(file, self.names.clone()))
    }

    /// Calls `take` with each part. Where the segment cannot be read further it ends, and why is given back.
    pub fn each_part(
        &self,
        mut take: impl FnMut(&NamedSegment) -> Result<(), LedgerError>,
    ) -> Result<Option<String>, LedgerError> {
        let mut parts = self.open()?;
        let mut named = NamedSegment { name: self.name.clone(), segment: Ok(Segment::default()) };
        loop {
            let part = match parts.next_part().map_err(LedgerError::file("read", &self.path))? {
                Ok(Some(part)) => part,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(error.to_string())),
            };
            named.segment = Ok(std::mem::take(part));
            if let Some(before) = self.rounds_before {
                add_rounds(&mut named, before);
            }
            take(&named)?;
            if let Ok(taken) = &mut named.segment {
                *part = std::mem::take(taken);
            }
        }
    }
}
