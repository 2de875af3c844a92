//! The metrics of attempts that are not sealed in short. Who looks again reads only what was added since.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use trackway_core::AttemptId;
use trackway_formats::record::{GrowingSegment, METRIC_NAMES_MAX, NameId, Origin};
use trackway_ledger::{AttemptRow, LedgerError, MetricSummaryRow};

use crate::parts::{PART_BYTES, segment_paths};
use crate::rounds::Rounds;
use crate::summaries::MetricTotals;

/// Metrics of an attempt that are kept, counted once for each segment.
const KEPT_MAX: usize = 10 * METRIC_NAMES_MAX;

/// The records of the attempts of a home that are not sealed, as far as they were read.
#[derive(Debug)]
pub struct LiveRecords {
    home: PathBuf,
    read: Mutex<ReadRecords>,
}

#[derive(Debug, Default)]
struct ReadRecords {
    attempts: HashMap<AttemptId, LiveRecord>,
    bytes: u64,
}

/// The record of one attempt: its segments by path.
#[derive(Debug, Default)]
struct LiveRecord(BTreeMap<PathBuf, LiveSegment>);

#[derive(Debug, Default)]
struct LiveSegment {
    growing: GrowingSegment,
    read_bytes: u64,
    /// It cannot be read further.
    is_broken: bool,
    rounds: Rounds,
    metrics: BTreeMap<NameId, MetricTotals>,
}

impl LiveRecords {
    /// Those of a home; nothing is read yet.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self { home: home.into(), read: Mutex::default() }
    }

    /// The metrics of these attempts in short as their records have them now. What was read of others is forgotten.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn summaries(&self, attempts: &[AttemptRow]) -> Result<Vec<MetricSummaryRow>, LedgerError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let ReadRecords { attempts: known, bytes } = &mut *read;
        let mut before = std::mem::take(known);
        let mut rows = Vec::new();
        for attempt in attempts {
            let mut record = before.remove(&attempt.attempt_id).unwrap_or_default();
            *bytes += record.look(&segment_paths(&self.home, attempt.attempt_id)?)?;
            rows.extend(record.rows(attempt));
            known.insert(attempt.attempt_id, record);
        }
        Ok(rows)
    }

    /// Bytes of segments that were read so far.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

impl LiveRecord {
    /// Reads what was added to these segments; how many bytes.
    fn look(&mut self, paths: &[PathBuf]) -> Result<u64, LedgerError> {
        self.0.retain(|path, _| paths.binary_search(path).is_ok());
        let mut bytes = 0;
        let mut kept: usize = self.0.values().map(|segment| segment.metrics.len()).sum();
        for path in paths {
            let segment = self.0.entry(path.clone()).or_default();
            kept -= segment.metrics.len();
            bytes += segment.look(path, KEPT_MAX - kept).map_err(LedgerError::file("read", path))?;
            kept += segment.metrics.len();
        }
        Ok(bytes)
    }

    /// One row for each metric, of the writer that counts, in the order of the segments.
    fn rows(&self, attempt: &AttemptRow) -> Vec<MetricSummaryRow> {
        let mut rounds = Rounds::default();
        self.0.values().for_each(|segment| rounds.then(&segment.rounds));
        let before = rounds.before().unwrap_or(0);
        let mut metrics: BTreeMap<String, (u8, MetricTotals)> = BTreeMap::new();
        for segment in self.0.values() {
            let part = segment.growing.part();
            let origin = part.origin();
            let precedence = origin.map_or(0, Origin::precedence);
            for (id, gathered) in &segment.metrics {
                let mut gathered = gathered.clone();
                if origin == Some(Origin::Stdout) {
                    gathered = gathered.after_rounds(before);
                }
                let name = part.names.name_or_placeholder(*id);
                match metrics.get_mut(name.as_ref()) {
                    Some((known, _)) if *known > precedence => {}
                    Some((known, earlier)) if *known == precedence => earlier.then(gathered),
                    Some(other) => *other = (precedence, gathered),
                    None => {
                        if metrics.len() < METRIC_NAMES_MAX {
                            metrics.insert(name.into_owned(), (precedence, gathered));
                        }
                    }
                }
            }
        }
        metrics.into_iter().map(|(name, (_, gathered))| gathered.row(attempt, name)).collect()
    }
}

impl LiveSegment {
    /// Reads what was added; how many bytes. So many metrics are kept at most.
    fn look(&mut self, path: &Path, metrics_max: usize) -> io::Result<u64> {
        let size = fs::metadata(path)?.len();
        if size < self.read_bytes {
            // Another file took its place.
            *self = Self::default();
        }
        let added = size - self.read_bytes;
        if added == 0 || self.is_broken {
            return Ok(0);
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut added = file.take(added);
        let mut piece = Vec::new();
        let began = self.read_bytes;
        while added.by_ref().take(PART_BYTES as u64).read_to_end(&mut piece)? > 0 {
            self.read_bytes += piece.len() as u64;
            self.take(&piece, metrics_max);
            piece.clear();
        }
        self.growing.release();
        Ok(self.read_bytes - began)
    }

    fn take(&mut self, piece: &[u8], metrics_max: usize) {
        let Ok(part) = self.growing.push(piece) else {
            self.is_broken = true;
            return;
        };
        self.rounds.take(part);
        if part.origin() == Some(Origin::Telemetry) {
            return;
        }
        for point in part.metric_points_of_any_step() {
            if let Some(gathered) = self.metrics.get_mut(&point.name_id) {
                gathered.take(point.step, point.value);
            } else if self.metrics.len() < metrics_max {
                self.metrics.insert(point.name_id, MetricTotals::of(point.step, point.value));
            }
        }
    }
}
