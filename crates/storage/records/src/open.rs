//! The record of an attempt that is not closed, as the rows that closing it will give.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use trackway_formats::record::OriginOfEach;
use trackway_formats::runfile::RunSection;
use trackway_ledger::{AttemptRow, EventRow, LedgerError};

use crate::close::Points;
use crate::metric_batch::metric_batch;
use crate::outline::Outline;
use crate::parts::{SegmentFile, segment_files};

/// The record of an attempt as it was when it was opened.
pub struct OpenRecord {
    attempt: AttemptRow,
    files: Vec<SegmentFile>,
    /// Of each metric the writer whose values count; empty where there is one writer.
    pub origins: OriginOfEach,
    /// The events, as they will be sealed.
    pub events: Vec<EventRow>,
}

impl OpenRecord {
    /// Reads everything but the values; an attempt without a record has none.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn of(home: &Path, attempt: &AttemptRow) -> Result<Self, LedgerError> {
        let mut files = segment_files(home, attempt.attempt_id)?;
        let outline = Outline::of(attempt, &mut files)?;
        let origins = outline.origins.clone();
        let events = outline.into_closed(attempt, &RunSection::default()).events;
        Ok(Self { attempt: attempt.clone(), files, origins, events })
    }

    /// Calls `take` with the points as rows of `metrics`, part by part, in the order in which they are closed.
    ///
    /// # Errors
    /// [`LedgerError::File`]; [`LedgerError::Query`] when `take` ended it.
    pub fn each_batch(
        &self,
        points: Points,
        mut take: impl FnMut(RecordBatch) -> Result<(), ArrowError>,
    ) -> Result<(), LedgerError> {
        let is_telemetry = points == Points::Telemetry;
        for file in self.files.iter().filter(|file| file.is_telemetry() == is_telemetry) {
            file.each_part(|part| {
                let taken = metric_batch(&self.attempt, part).and_then(&mut take);
                taken.map_err(|error| LedgerError::Query(error.to_string()))
            })?;
        }
        Ok(())
    }
}
