//! Closing the flight record of an attempt: segments become one Parquet file, summaries, parameters and events.
//!
//! The Parquet file is written aside, synced and renamed, so that it is there whole or not at all; closing again
//! gives the same file. Segments stay where they are: they are the truth, Parquet is how they are read fast.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value as Json};
use trackway_core::{AttemptId, Step, Timestamp};
use trackway_files::{TempFile, if_there};
use trackway_formats::EventKind;
use trackway_formats::arguments::declared;
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{
    CheckpointFrame, ControlAck, Event, Frame, Origin, OriginOfEach, RankEnd, SEGMENT_EXTENSION, Segment,
    read_segment,
};
use trackway_formats::runfile::RunSection;

use crate::error::LedgerError;
use crate::records::{
    ArtifactRow, AttemptRow, EventRow, MetricSummaryRow, ParameterRow, RecordSegmentRow, TagRow,
};
use crate::schema::metric_schema;

mod metric_batch;
mod rounds;
#[cfg(test)]
mod tests;

pub use metric_batch::metric_batch;

/// zstd's own default: about half the size of snappy at a speed that does not matter once per attempt.
const ZSTD_LEVEL: i32 = 3;
/// Metrics that are kept of the step of a checkpoint at most, by name.
const METRICS_AT_STEP_MAX: usize = 200;
/// Beginnings of the names of metrics that are about Trackway and the machine, and not about the training.
const BESIDE: [&str; 2] = ["trackway/", "system/"];

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
    /// The newest sign of life, by the script's clock.
    pub heartbeat_at: Option<Timestamp>,
    /// When what runs beside the script recorded something last: the attempt ran at least until then.
    pub beside_at: Option<Timestamp>,
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
    let segments = read_segments(home, attempt.attempt_id)?;
    let (telemetry, recorded): (Vec<_>, Vec<_>) = segments.into_iter().partition(NamedSegment::is_telemetry);
    let mut closed = ClosedRecords { tags: tags_of(attempt, given), ..ClosedRecords::default() };
    recorded.iter().for_each(|named| closed.take(attempt, named));
    let imported = recorded.iter().any(|named| named.origin() == Some(Origin::Import));
    let command: &[String] = if imported { &[] } else { &attempt.command };
    for parameter in declared(command, &given.parameters) {
        closed.set_parameter(attempt, &parameter.name, &parameter.value, parameter.origin);
    }
    closed.take_parameters(attempt, &recorded);
    let metrics = closed.close(home, attempt, &recorded, Points::Metrics)?;
    closed.point_count = recorded.iter().map(NamedSegment::point_count).sum();
    closed.summaries = metrics;
    closed.at_steps = values_at(&recorded, steps);
    telemetry.iter().for_each(|named| closed.take_from_beside(attempt, named));
    let machine = closed.close(home, attempt, &telemetry, Points::Telemetry)?;
    closed.summaries.extend(machine);
    Ok(closed)
}

/// The metrics of an attempt in short as its record has them now; nothing is written. Empty without a record.
///
/// # Errors
/// [`LedgerError::File`].
pub fn live_summaries(home: &Path, attempt: &AttemptRow) -> Result<Vec<MetricSummaryRow>, LedgerError> {
    Ok(Summaries::of(&read_segments(home, attempt.attempt_id)?).rows(attempt))
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
    pub(crate) size_bytes: u64,
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

    fn point_count(&self) -> u64 {
        self.segment.iter().flat_map(Segment::metric_points).count() as u64
    }
}

/// Every segment of an attempt, by file name; none without a folder. Rounds that were printed from 0 again are counted from those
/// of the model that the attempt continued from.
pub fn read_segments(home: &Path, attempt_id: AttemptId) -> Result<Vec<NamedSegment>, LedgerError> {
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
    let mut segments = paths.iter().map(|path| read_one(path)).collect::<Result<Vec<_>, _>>()?;
    rounds::continue_rounds(&mut segments);
    Ok(segments)
}

fn read_one(path: &Path) -> Result<NamedSegment, LedgerError> {
    let bytes = fs::read(path).map_err(LedgerError::file("read", path))?;
    Ok(NamedSegment {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        size_bytes: bytes.len() as u64,
        segment: read_segment(&bytes).map_err(|error| error.to_string()),
    })
}

impl ClosedRecords {
    /// Writes the points of these segments, when there are any, and returns where, with their summaries.
    fn close(
        &mut self,
        home: &Path,
        attempt: &AttemptRow,
        segments: &[NamedSegment],
        points: Points,
    ) -> Result<Vec<MetricSummaryRow>, LedgerError> {
        let rows = Summaries::of(segments).rows(attempt);
        if rows.is_empty() {
            return Ok(rows);
        }
        let path = points.path(home, attempt.attempt_id);
        write_metrics(&path, attempt, segments)?;
        let shown = HomeLayout::new(home).below(&path);
        let written =
            self.segments.iter_mut().filter(|row| segments.iter().any(|named| named.name == row.path));
        written.for_each(|row| row.parquet_path = Some(shown.clone()));
        if points == Points::Metrics {
            self.parquet_path = Some(path);
        }
        Ok(rows)
    }

    fn take(&mut self, attempt: &AttemptRow, named: &NamedSegment) {
        self.segments.push(segment_row(attempt, named));
        let Ok(segment) = &named.segment else { return };
        self.ranks.extend(segment.rank_end());
        for located in &segment.frames {
            let id = format!("{}:{}:{}", attempt.attempt_id, named.name, located.sequence);
            match &located.frame {
                Frame::Metrics(metrics) => self.see(metrics.at, Some(metrics.step)),
                Frame::Heartbeat(heartbeat) => self.see(heartbeat.at, Some(heartbeat.step)),
                Frame::Event(event) => {
                    self.see(event.at, None);
                    if !self.take_reported(attempt, event) {
                        self.events.push(event_row(attempt, id, event, named.origin()));
                    }
                }
                Frame::ControlAck(ack) => self.events.push(ack_row(attempt, id, ack)),
                Frame::Checkpoint(checkpoint) => self.checkpoints.push(checkpoint.clone()),
                _ => {}
            }
        }
    }

    /// Takes the events of a segment that was not written by the script: none of them is a sign of its life.
    fn take_from_beside(&mut self, attempt: &AttemptRow, named: &NamedSegment) {
        self.segments.push(segment_row(attempt, named));
        for located in named.segment.iter().flat_map(|segment| &segment.frames) {
            if let Frame::Metrics(metrics) = &located.frame {
                self.beside_at = self.beside_at.max(Some(metrics.at));
            } else if let Frame::Event(event) = &located.frame {
                self.beside_at = self.beside_at.max(Some(event.at));
                let id = format!("{}:{}:{}", attempt.attempt_id, named.name, located.sequence);
                self.events.push(event_row(attempt, id, event, named.origin()));
            }
        }
    }

    fn see(&mut self, at: Timestamp, step: Option<Step>) {
        self.heartbeat_at = self.heartbeat_at.max(Some(at));
        if let Some(step) = step {
            self.first_step = Some(self.first_step.map_or(step, |first| first.min(step)));
            self.first_step_at = Some(self.first_step_at.map_or(at, |first| first.min(at)));
            self.last_step = self.last_step.max(Some(step));
        }
    }

    /// Takes an event that has a table of its kind. False: it is any other.
    fn take_reported(&mut self, attempt: &AttemptRow, event: &Event) -> bool {
        let (attempt_id, run_id) = (attempt.attempt_id, attempt.run_id);
        if let Some((name, value)) = event.as_tag() {
            let tag = TagRow { attempt_id, run_id, name: name.into(), value: value.into() };
            put(&mut self.tags, tag, |one, other| one.name == other.name);
        } else if let Some(artifact) = event.as_artifact() {
            let artifact = ArtifactRow {
                attempt_id,
                run_id,
                name: artifact.name.into(),
                blake3: artifact.blake3.into(),
                size_bytes: artifact.size_bytes,
                step: event.step,
                at: event.at,
            };
            put(&mut self.artifacts, artifact, |one, other| {
                one.name == other.name && one.blake3 == other.blake3
            });
        } else {
            return false;
        }
        true
    }

    /// What the script printed, what its event files hold and what it recorded replace what was declared, in this order.
    fn take_parameters(&mut self, attempt: &AttemptRow, segments: &[NamedSegment]) {
        let mut segments: Vec<&NamedSegment> = segments.iter().collect();
        segments.sort_by_key(|named| named.origin().map_or(0, Origin::precedence));
        for named in segments {
            let origin = named.origin().map(|origin| origin.to_string()).unwrap_or_default();
            for located in named.segment.iter().flat_map(|segment| &segment.frames) {
                if let Frame::Param(parameter) = &located.frame {
                    self.set_parameter(attempt, &parameter.name, &parameter.value, &origin);
                }
            }
        }
    }

    fn set_parameter(&mut self, attempt: &AttemptRow, name: &str, value: &str, origin: &str) {
        let (attempt_id, run_id) = (attempt.attempt_id, attempt.run_id);
        let origin = Some(origin.to_owned());
        let parameter = ParameterRow { attempt_id, run_id, name: name.into(), value: value.into(), origin };
        put(&mut self.parameters, parameter, |one, other| one.name == other.name);
    }
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

/// Replaces the row that is the same, or adds one.
fn put<R>(rows: &mut Vec<R>, new: R, same: impl Fn(&R, &R) -> bool) {
    match rows.iter_mut().find(|row| same(row, &new)) {
        Some(row) => *row = new,
        None => rows.push(new),
    }
}

fn segment_row(attempt: &AttemptRow, named: &NamedSegment) -> RecordSegmentRow {
    let segment = named.segment.as_ref().ok();
    let header_frames = u64::from(segment.is_some_and(|segment| segment.header.is_some()));
    RecordSegmentRow {
        attempt_id: attempt.attempt_id,
        run_id: attempt.run_id,
        path: named.name.clone(),
        origin: named.origin().map(|origin| origin.to_string()),
        size_bytes: named.size_bytes,
        frame_count: segment.map_or(0, |segment| segment.frames.len() as u64) + header_frames,
        lost_frame_count: segment.map_or(0, |segment| segment.lost_frames),
        dropped_frame_count: segment
            .and_then(|segment| segment.close)
            .map_or(0, |close| close.dropped_frames),
        torn_bytes: segment
            .map_or(0, |segment| segment.damage.iter().map(|damage| damage.skipped_bytes).sum()),
        closed: segment.is_some_and(|segment| segment.close.is_some()),
        parquet_path: None,
        unreadable: named.segment.as_ref().err().cloned(),
    }
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
            let names = named.segment.iter().flat_map(Segment::metric_points).map(|point| point.name);
            for name in names {
                origins.take(&name, named.origin());
            }
        }
    }
    origins
}

/// The values at some steps; of a metric that several writers recorded those of the writer that counts.
fn values_at(segments: &[NamedSegment], steps: &BTreeSet<Step>) -> ValuesAtSteps {
    let mut values = ValuesAtSteps::new();
    if steps.is_empty() {
        return values;
    }
    let origins = origins_of(segments);
    for named in segments {
        for point in named.segment.iter().flat_map(Segment::metric_points) {
            let is_wanted = steps.contains(&point.step) && point.value.is_finite();
            let is_of_training = !BESIDE.iter().any(|start| point.name.starts_with(start));
            if is_wanted && is_of_training && origins.counts(&point.name, named.origin()) {
                values.entry(point.step).or_default().insert(point.name.into_owned(), point.value);
            }
        }
    }
    for of_step in values.values_mut() {
        while of_step.len() > METRICS_AT_STEP_MAX {
            of_step.pop_last();
        }
    }
    values
}

/// The metrics of one attempt in short, while they are gathered.
#[derive(Default)]
struct Summaries(BTreeMap<String, Gathered>);

struct Gathered {
    point_count: u64,
    finite_count: u64,
    first: (Step, f64),
    last: (Step, f64),
    /// The step and the number of the values at the end that are not finite; of ranks the last one counts.
    not_finite: Option<(Step, u64)>,
    min: f64,
    max: f64,
    /// The running mean does not overflow where a sum would.
    mean: f64,
}

impl Summaries {
    /// Of these segments; of a metric that several writers recorded only the values of one count.
    fn of(segments: &[NamedSegment]) -> Self {
        let mut summaries = Self::default();
        let origins = origins_of(segments);
        segments.iter().for_each(|named| summaries.take(named, &origins));
        summaries
    }

    fn take(&mut self, named: &NamedSegment, origins: &OriginOfEach) {
        let Ok(segment) = &named.segment else { return };
        let points = segment.metric_points().filter(|point| origins.counts(&point.name, named.origin()));
        for point in points {
            match self.0.get_mut(point.name.as_ref()) {
                Some(gathered) => gathered.take(point.step, point.value),
                None => {
                    let mut gathered = Gathered::starting(point.step, point.value);
                    gathered.take(point.step, point.value);
                    self.0.insert(point.name.into_owned(), gathered);
                }
            }
        }
    }

    fn rows(self, attempt: &AttemptRow) -> Vec<MetricSummaryRow> {
        self.0.into_iter().map(|(name, gathered)| gathered.row(attempt, name)).collect()
    }
}

impl Gathered {
    fn starting(step: Step, value: f64) -> Self {
        let (first, last) = ((step, value), (step, value));
        Self {
            point_count: 0,
            finite_count: 0,
            first,
            last,
            not_finite: None,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
        }
    }

    fn take(&mut self, step: Step, value: f64) {
        self.point_count += 1;
        self.last = (step, value);
        if value.is_finite() {
            self.finite_count += 1;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.mean += (value - self.mean) / self.finite_count as f64;
            self.not_finite = None;
        } else {
            let (from_step, count) = self.not_finite.unwrap_or((step, 0));
            self.not_finite = Some((from_step, count + 1));
        }
    }

    fn row(self, attempt: &AttemptRow, name: String) -> MetricSummaryRow {
        let any_finite = |value: f64| (self.finite_count > 0).then_some(value);
        let not_nan = |value: f64| (!value.is_nan()).then_some(value);
        MetricSummaryRow {
            attempt_id: attempt.attempt_id,
            run_id: attempt.run_id,
            name,
            point_count: self.point_count,
            non_finite_count: self.point_count - self.finite_count,
            non_finite_from_step: self.not_finite.map(|(from_step, _)| from_step),
            non_finite_end_count: self.not_finite.map(|(_, count)| count),
            first_step: self.first.0,
            last_step: self.last.0,
            first_value: not_nan(self.first.1),
            last_value: not_nan(self.last.1),
            min_value: any_finite(self.min),
            max_value: any_finite(self.max),
            mean_value: any_finite(self.mean),
        }
    }
}

fn write_metrics(path: &Path, attempt: &AttemptRow, segments: &[NamedSegment]) -> Result<(), LedgerError> {
    write_whole(path, |file| {
        let mut writer = ArrowWriter::try_new(file, metric_schema(), Some(parquet_properties()))?;
        for named in segments {
            writer.write(&metric_batch(attempt, named)?)?;
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
