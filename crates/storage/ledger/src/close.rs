//! Closing the flight record of an attempt: segments become one Parquet file, summaries, parameters and events.
//!
//! The Parquet file is written aside, synced and renamed, so that it is there whole or not at all; closing again
//! gives the same file. Segments stay where they are: they are the truth, Parquet is how they are read fast.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use self::outline::Outline;
use self::parts::{SegmentFile, segment_files};
use self::summaries::Summaries;

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value as Json};
use trackway_core::{AttemptId, Step, Timestamp};
use trackway_files::{TempFile, if_there};
use trackway_formats::EventKind;
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{
    CheckpointFrame, ControlAck, Event, METRIC_NAMES_MAX, Origin, OriginOfEach, RankEnd, SEGMENT_EXTENSION,
    Segment, read_segment,
};
use trackway_formats::runfile::RunSection;

use crate::error::LedgerError;
use crate::records::{
    ArtifactRow, AttemptRow, EventRow, MetricSummaryRow, ParameterRow, RecordSegmentRow, TagRow,
};
use crate::schema::metric_schema;

mod metric_batch;
mod outline;
mod parts;
mod rounds;
mod rows;
mod summaries;
#[cfg(test)]
mod tests;

pub use metric_batch::metric_batch;
pub(crate) use outline::NAMED_ROWS_MAX;

/// zstd's own default: about half the size of snappy at a speed that does not matter once per attempt.
const ZSTD_LEVEL: i32 = 3;
/// Metrics that are kept of the step of a checkpoint at most, by name.
const METRICS_AT_STEP_MAX: usize = 200;
/// Beginnings of the names of metrics that are about Trackway and the machine, and not about the training.
const BESIDE: [&str; 2] = ["trackway/", "system/"];

/// Events of which the field `why` is a sentence about the field `path`.
const SAID_IN_FULL: [EventKind; 4] = [
    EventKind::EventFileSkipped,
    EventKind::OutputLeftOut,
    EventKind::ImportSkipped,
    EventKind::ImportChanged,
];

/// Finite values of metrics, by step and name.
pub type ValuesAtSteps = BTreeMap<Step, BTreeMap<String, f64>>;

/// The contents of an attempt's flight record, as rows for [`crate::AttemptSeal`].
#[derive(Debug, Clone, Default)]
pub struct ClosedRecords {
    /// The Parquet file; none when the record holds no metric.
    pub parquet_path: Option<PathBuf>,
    /// Metric values in it.
    pub point_count: u64,
    /// One row per segment, torn bytes and lost frames counted.
    pub segments: Vec<RecordSegmentRow>,
    /// One row per metric.
    pub summaries: Vec<MetricSummaryRow>,
    /// The parameters of the script's command and those that it reported, the last value of each.
    pub parameters: Vec<ParameterRow>,
    /// The tags that the script reported, the last value of each.
    pub tags: Vec<TagRow>,
    /// The artifacts that are kept, the last time of each content.
    pub artifacts: Vec<ArtifactRow>,
    /// The events that the script reported, and acknowledgements of control commands. Their ids derive from their place
    /// in the record, so that storing them twice stores them once.
    pub events: Vec<EventRow>,
    /// The script's records of checkpoints, in file order; the log of the checkpoint root is authoritative.
    pub checkpoints: Vec<CheckpointFrame>,
    /// What was logged at the steps that were named, the last value of each metric.
    pub at_steps: ValuesAtSteps,
    /// The first step reported.
    pub first_step: Option<Step>,
    /// When the first of the steps was reported.
    pub first_step_at: Option<Timestamp>,
    /// The greatest step reported.
    pub last_step: Option<Step>,
    /// The greatest step that the recorder inside the script reported, and when it first did: what was printed may be read later.
    pub last_recorded_step: Option<(Step, Timestamp)>,
    /// The newest sign of life, by the script's clock.
    pub heartbeat_at: Option<Timestamp>,
    /// When what runs beside the script recorded something last: the attempt ran at least until then.
    pub beside_at: Option<Timestamp>,
    /// What the record has and these rows do not, since it is too much: the number and what it is.
    pub left_out: Vec<String>,
    /// How the ranks ended that reported themselves, one entry for each segment that names its rank.
    pub ranks: Vec<RankEnd>,
}

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
    let mut files = segment_files(home, attempt.attempt_id)?;
    let outline = Outline::of(attempt, &mut files)?;
    let origins = outline.origins.clone();
    let (telemetry, recorded): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| file.origin == Some(Origin::Telemetry));
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

/// The metrics of an attempt in short as its record has them now; nothing is written. Empty without a record.
///
/// # Errors
/// [`LedgerError::File`].
pub fn live_summaries(home: &Path, attempt: &AttemptRow) -> Result<Vec<MetricSummaryRow>, LedgerError> {
    let mut files = segment_files(home, attempt.attempt_id)?;
    let outline = Outline::of(attempt, &mut files)?;
    let mut summaries = Summaries::default();
    for file in files.iter().filter(|file| file.origin != Some(Origin::Telemetry)) {
        file.each_part(|part| {
            summaries.take(part, &outline.origins);
            Ok(())
        })?;
    }
    Ok(summaries.rows(attempt))
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

/// A segment file, read.
pub struct NamedSegment {
    /// The name of the file.
    pub name: String,
    /// The segment, or why it cannot be read.
    pub segment: Result<Segment, String>,
}

impl NamedSegment {
    /// Whether it holds telemetry rather than metrics.
    #[must_use]
    pub fn is_telemetry(&self) -> bool {
        self.origin() == Some(Origin::Telemetry)
    }

    /// Its writer.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        self.segment.as_ref().ok().and_then(|segment| segment.header.as_ref()).map(|header| header.origin)
    }
}

/// Every segment of an attempt, by file name; none without a folder. Rounds that were printed from 0 again are counted from those
/// of the model that the attempt continued from.
pub fn read_segments(home: &Path, attempt_id: AttemptId) -> Result<Vec<NamedSegment>, LedgerError> {
    let paths = segment_paths(home, attempt_id)?;
    let mut segments = paths.iter().map(|path| read_one(path)).collect::<Result<Vec<_>, _>>()?;
    rounds::continue_rounds(&mut segments);
    Ok(segments)
}

/// The segment files of an attempt, by name.
fn segment_paths(home: &Path, attempt_id: AttemptId) -> Result<Vec<PathBuf>, LedgerError> {
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

fn read_one(path: &Path) -> Result<NamedSegment, LedgerError> {
    let bytes = fs::read(path).map_err(LedgerError::file("read", path))?;
    Ok(NamedSegment {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        segment: read_segment(&bytes).map_err(|error| error.to_string()),
    })
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

    fn see(&mut self, at: Timestamp, step: Option<Step>) {
        self.heartbeat_at = self.heartbeat_at.max(Some(at));
        if let Some(step) = step {
            self.first_step = Some(self.first_step.map_or(step, |first| first.min(step)));
            self.first_step_at = Some(self.first_step_at.map_or(at, |first| first.min(at)));
            self.last_step = self.last_step.max(Some(step));
        }
    }

    fn see_recorded(&mut self, at: Timestamp, step: Step) {
        if self.last_recorded_step.is_none_or(|(last, _)| last < step) {
            self.last_recorded_step = Some((step, at));
        }
    }
}

/// That the ledger has less than the record, if it does.
fn cut_row(attempt: &AttemptRow, closed: &ClosedRecords) -> Option<EventRow> {
    let at = closed.heartbeat_at.or(closed.beside_at).or(attempt.started_at)?;
    let left_out = closed.left_out.join(", ");
    let message = format!("only in the flight record, not in the ledger: {left_out}");
    (!closed.left_out.is_empty()).then(|| EventRow::of_attempt(attempt, EventKind::RecordCut, at, message))
}

/// The tags that were given; the script's own replace them.
fn tags_of(attempt: &AttemptRow, given: &RunSection) -> Vec<TagRow> {
    let (attempt_id, run_id) = (attempt.attempt_id, attempt.run_id);
    let tag = |(name, value): (&String, &String)| TagRow {
        attempt_id,
        run_id,
        name: name.clone(),
        value: value.clone(),
    };
    given.tags.iter().map(tag).collect()
}

fn event_row(attempt: &AttemptRow, event_id: String, event: &Event, origin: Option<Origin>) -> EventRow {
    let fields: Map<String, Json> =
        event.fields.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect();
    EventRow {
        event_id,
        run_id: attempt.run_id,
        attempt_id: Some(attempt.attempt_id),
        at: event.at,
        kind: event.kind.clone(),
        step: event.step,
        message: message_of(event),
        fields_json: (!fields.is_empty()).then_some(Json::Object(fields)),
        source: origin.map_or_else(|| "sdk".into(), |origin| origin.to_string()),
    }
}

/// An event in one line.
fn message_of(event: &Event) -> String {
    if let Some((kind, message, digest)) = event.as_exception() {
        return format!("{kind}: {message} [{digest}]");
    }
    let has_text = SAID_IN_FULL.iter().any(|kind| kind.is(&event.kind));
    if let Some(why) = event.field("why").filter(|_| has_text) {
        let path = event.field("path").filter(|path| !path.is_empty());
        return path.map_or_else(|| why.to_owned(), |path| format!("{path}: {why}"));
    }
    let fields: Vec<String> = event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    fields.join(" ")
}

fn ack_row(attempt: &AttemptRow, event_id: String, ack: &ControlAck) -> EventRow {
    EventRow {
        event_id,
        run_id: attempt.run_id,
        attempt_id: Some(attempt.attempt_id),
        at: ack.at,
        kind: EventKind::ControlAck.as_str().into(),
        step: ack.step,
        message: format!("command {} was {}", ack.id, ack.outcome.as_str()),
        fields_json: Some(serde_json::json!({ "id": ack.id, "outcome": ack.outcome.as_str() })),
        source: "sdk".into(),
    }
}

/// Of each metric the writer whose values count; empty where there is one writer.
#[must_use]
pub fn origins_of(segments: &[NamedSegment]) -> OriginOfEach {
    let mut origins = OriginOfEach::default();
    let first = segments.first().and_then(NamedSegment::origin);
    if segments.iter().any(|named| named.origin() != first) {
        for named in segments {
            let points = named.segment.iter().flat_map(Segment::metric_points_of_any_step);
            let names = points.map(|point| point.name);
            for name in names {
                origins.take(&name, named.origin());
            }
        }
    }
    origins
}

/// Takes the values at some steps; of a metric that several writers recorded those of the writer that counts.
fn take_values_at(
    values: &mut ValuesAtSteps,
    named: &NamedSegment,
    origins: &OriginOfEach,
    steps: &BTreeSet<Step>,
) {
    if steps.is_empty() {
        return;
    }
    for point in named.segment.iter().flat_map(Segment::metric_points) {
        let is_wanted = steps.contains(&point.step) && point.value.is_finite();
        let is_of_training = !BESIDE.iter().any(|start| point.name.starts_with(start));
        if is_wanted && is_of_training && origins.counts(&point.name, named.origin()) {
            let of_step = values.entry(point.step).or_default();
            of_step.insert(point.name.into_owned(), point.value);
            if of_step.len() > METRICS_AT_STEP_MAX {
                of_step.pop_last();
            }
        }
    }
}

fn write_metrics(path: &Path, attempt: &AttemptRow, files: &[&SegmentFile]) -> Result<(), LedgerError> {
    let parquet = |error: ParquetError| LedgerError::Parquet {
        doing: "write",
        path: path.into(),
        why: error.to_string(),
    };
    write_whole(path, |file| {
        let mut writer = ArrowWriter::try_new(file, metric_schema(), Some(parquet_properties()))?;
        for file in files {
            let written = file.each_part(|part| {
                let batch = metric_batch(attempt, part).map_err(|error| parquet(error.into()))?;
                writer.write(&batch).map_err(parquet)
            });
            written.map_err(|error| ParquetError::External(Box::new(error)))?;
        }
        writer.close().map(|_| ())
    })
}

/// How the ledger's Parquet files are written.
#[must_use]
pub fn parquet_properties() -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default();
    WriterProperties::builder().set_compression(Compression::ZSTD(level)).build()
}

/// Writes a Parquet file aside, syncs it and renames it into place.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(File) -> Result<(), ParquetError>,
) -> Result<(), LedgerError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(LedgerError::file("make", folder))?;
    // The last of two writers of the same file wins; both are whole.
    let (temporary, file) = TempFile::beside(path).map_err(LedgerError::file("write", path))?;
    let kept = file.try_clone().map_err(LedgerError::file("write", path))?;
    write(file).map_err(|error| LedgerError::Parquet {
        doing: "write",
        path: path.into(),
        why: error.to_string(),
    })?;
    kept.sync_all().map_err(LedgerError::file("sync", path))?;
    temporary.persist(path).map_err(LedgerError::file("write", path))
}
