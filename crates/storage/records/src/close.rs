//! Closing the flight record of an attempt: segments become one Parquet file, summaries, parameters and events.
//!
//! The Parquet file is written aside, synced and renamed, so that it is there whole or not at all; closing again
//! gives the same file. Segments stay where they are: they are the truth, Parquet is how they are read fast. They are
//! read in parts of bounded size, once for what they hold besides values, once for the values in short and once for the
//! file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, Step};
use trackway_formats::EventKind;
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{METRIC_NAMES_MAX, OriginOfEach};
use trackway_formats::runfile::RunSection;
use trackway_ledger::{AttemptRow, EventRow, LedgerError, MetricSummaryRow};

use crate::closed::{ClosedRecords, ValuesAtSteps};
use crate::outline::Outline;
use crate::parquet_file::write_metrics;
use crate::parts::{Part, SegmentFile, segment_files};
use crate::summaries::Summaries;

/// Metrics that are kept of the step of a checkpoint at most, by name.
const METRICS_AT_STEP_MAX: usize = 200;
/// Beginnings of the names of metrics that are about Trackway and the machine, and not about the training.
const BESIDE: [&str; 2] = ["trackway/", "system/"];

/// Closes the record of an attempt: reads every segment below `home/attempts/<attempt>/records`, and writes
/// `home/records/<attempt>.parquet` when there is any metric. Torn frames are passed and counted; a segment that
/// cannot be read at all is listed with the reason and hinders nothing. `given` has the parameters and tags of the plan,
/// `steps` are those at which the values are wanted.
///
/// # Errors
/// [`LedgerError::File`], [`LedgerError::Parquet`]; nothing is half written then.
pub fn close_records(
    home: &Path,
    attempt: &AttemptRow,
    given: &RunSection,
    steps: &BTreeSet<Step>,
) -> Result<ClosedRecords, LedgerError> {
    close_files(home, attempt, (given, steps), segment_files(home, attempt.attempt_id)?)
}

pub(crate) fn close_files(
    home: &Path,
    attempt: &AttemptRow,
    (given, steps): (&RunSection, &BTreeSet<Step>),
    mut files: Vec<SegmentFile>,
) -> Result<ClosedRecords, LedgerError> {
    let outline = Outline::of(attempt, &mut files)?;
    let origins = outline.origins.clone();
    let (telemetry, recorded): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.is_telemetry());
    let mut closed = outline.into_closed(attempt, given);
    let metrics = closed.close(home, attempt, (&recorded, &origins, steps), Points::Metrics)?;
    closed.summaries = metrics;
    let one = OriginOfEach::default();
    let machine = closed.close(home, attempt, (&telemetry, &one, &BTreeSet::new()), Points::Telemetry)?;
    closed.summaries.extend(machine);
    let cut = cut_row(attempt, &closed);
    closed.events.extend(cut);
    Ok(closed)
}

/// Two kinds of points, each in a separate file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// Values of the training.
    Metrics,
    /// Values of the machine.
    Telemetry,
}

impl Points {
    /// Where the closed points of an attempt are.
    pub fn path(self, home: &Path, attempt_id: AttemptId) -> PathBuf {
        let home = HomeLayout::new(home);
        match self {
            Self::Metrics => home.metrics_parquet(attempt_id),
            Self::Telemetry => home.telemetry_parquet(attempt_id),
        }
    }
}

/// The files that closing the record of an attempt may write.
#[must_use]
pub fn closed_files(home: &Path, attempt_id: AttemptId) -> [PathBuf; 2] {
    [Points::Metrics, Points::Telemetry].map(|points| points.path(home, attempt_id))
}

impl ClosedRecords {
    /// Writes the points of these segments, when there are any, and returns their summaries; takes the values at the named steps.
    fn close(
        &mut self,
        home: &Path,
        attempt: &AttemptRow,
        (files, origins, steps): (&[&SegmentFile], &OriginOfEach, &BTreeSet<Step>),
        points: Points,
    ) -> Result<Vec<MetricSummaryRow>, LedgerError> {
        let mut summaries = Summaries::default();
        for file in files {
            file.each_part(|part| {
                summaries.take(part, origins);
                take_values_at(&mut self.at_steps, part, origins, steps);
                Ok(())
            })?;
        }
        if summaries.left_out > 0 {
            let count = summaries.left_out;
            self.left_out.push(format!("{count} values of metrics beyond the first {METRIC_NAMES_MAX}"));
        }
        let rows = summaries.rows(attempt);
        if rows.is_empty() {
            return Ok(rows);
        }
        let path = points.path(home, attempt.attempt_id);
        write_metrics(&path, attempt, files)?;
        let shown = HomeLayout::new(home).below(&path);
        let written = self.segments.iter_mut().filter(|row| files.iter().any(|file| file.name == row.path));
        written.for_each(|row| row.parquet_path = Some(shown.clone()));
        if points == Points::Metrics {
            self.parquet_path = Some(path);
        }
        Ok(rows)
    }
}

/// That the ledger has less than the record, if it does.
fn cut_row(attempt: &AttemptRow, closed: &ClosedRecords) -> Option<EventRow> {
    let at = closed.heartbeat_at.or(closed.beside_at).or(attempt.started_at)?;
    let left_out = closed.left_out.join(", ");
    let message = format!("only in the flight record, not in the ledger: {left_out}");
    (!closed.left_out.is_empty()).then(|| EventRow::of_attempt(attempt, EventKind::RecordCut, at, message))
}

/// Takes the values at some steps; of a metric that several writers recorded those of the writer that counts.
fn take_values_at(values: &mut ValuesAtSteps, part: &Part, origins: &OriginOfEach, steps: &BTreeSet<Step>) {
    if steps.is_empty() {
        return;
    }
    for point in part.segment.metric_points() {
        let is_wanted = steps.contains(&point.step) && point.value.is_finite();
        let is_of_training = !BESIDE.iter().any(|start| point.name.starts_with(start));
        if is_wanted && is_of_training && origins.counts(&point.name, part.origin()) {
            let of_step = values.entry(point.step).or_default();
            of_step.insert(point.name.into_owned(), point.value);
            if of_step.len() > METRICS_AT_STEP_MAX {
                of_step.pop_last();
            }
        }
    }
}
