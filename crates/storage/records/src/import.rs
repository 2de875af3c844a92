//! A run of another tool as a run of the ledger: ids, rows, a record, and the seal.
//!
//! Each imported run is one run with one sealed attempt, whose launcher is the tool's name. Its metrics are a flight record
//! of origin `import`. Ids follow from the tool's own ids, so importing again finds what is there and adds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use trackway_core::name::{Name, NameKind};
use trackway_core::text::hex;
use trackway_core::{
    AttemptId, Confidence, Domain, Ids, LaunchKind, MetricStep, RetryOutlook, RunId, Step, TerminationReason,
    Timestamp,
};
use trackway_formats::EventKind;
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::{Close, Encoder, Event, Origin, Param, SegmentHeader};
use trackway_formats::runfile::RunSection;
use trackway_ledger::{
    AttemptRow, AttemptSeal, AttemptState, ForeignEnd, ForeignRun, ForeignTool, Ledger, LedgerError,
    Omissions, RunRow, RunState,
};

use crate::close::close_records;

/// So many omissions of a run are events of its attempt.
const EVENTS_MAX: usize = 100;
/// A segment is ended at this size, as the recorder ends its own.
const SEGMENT_BYTES_MAX: usize = 64 << 20;

/// What importing a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The run in the ledger.
    pub run_id: RunId,
    /// Its name there: the tool's own, unless that reads as something else here.
    pub name: Name,
    /// Whether it is new; else it was imported before and stays as it is.
    pub is_new: bool,
    /// Values of its metrics.
    pub point_count: u64,
}

/// The tag that holds the name which a run had in its tool, where it has another one here.
const OWN_NAME_TAG: &str = "imported_name";

/// Ids derived from what they identify: the time the run began, and a hash of its key.
#[derive(Debug)]
struct FromKey {
    millis: u64,
    hash: [u8; 32],
}

impl FromKey {
    fn of(tool: ForeignTool, run: &ForeignRun, what: &str) -> Self {
        let began = run.started_at.map_or(0, |at| at.as_micros().max(0) / 1000);
        let hash = Sha256::digest(format!("{}\n{}\n{what}", tool.as_str(), run.key));
        Self { millis: began as u64, hash: hash.into() }
    }
}

impl Ids for FromKey {
    fn next_ulid(&self) -> u128 {
        let mut random = [0; 16];
        random[6..].copy_from_slice(&self.hash[..10]);
        // A ULID is 48 bits of time and 80 random bits.
        (u128::from(self.millis & 0xffff_ffff_ffff) << 80) | u128::from_be_bytes(random)
    }
}

/// Writes a run of another tool into the ledger, once. `home` takes its record; `store` is recorded as its origin.
/// A name that reads as an id, as `last` or as `RUN/NUMBER` is changed, and the tag `imported_name` holds the
/// tool's own.
///
/// # Errors
/// [`LedgerError::File`], [`LedgerError::Parquet`], faults of the database; the ledger is unchanged then.
pub fn import_run(
    ledger: &Ledger,
    home: &Path,
    tool: ForeignTool,
    store: &Path,
    foreign: &ForeignRun,
    now: Timestamp,
) -> Result<Imported, LedgerError> {
    let run_id = RunId::new(&FromKey::of(tool, foreign, "run"));
    let name = Name::renamed(NameKind::Run, &foreign.name);
    let point_count = foreign.metrics.values().map(|points| points.len() as u64).sum();
    if ledger.run(run_id)?.is_some() {
        return Ok(Imported { run_id, name, is_new: false, point_count });
    }
    let mut foreign = foreign.clone();
    if name.as_str() != foreign.name {
        foreign.tags.push((OWN_NAME_TAG.into(), foreign.name.clone()));
    }
    let foreign = &foreign;
    let run = run_row(run_id, &name, tool, store, foreign, now);
    let attempt_id = AttemptId::new(&FromKey::of(tool, foreign, "attempt"));
    let attempt = attempt_row(attempt_id, home, &run, tool, foreign);
    write_record(home, &attempt, foreign)?;
    let closed = close_records(home, &attempt, &RunSection::default(), &BTreeSet::new())?;
    let attempt = AttemptRow {
        first_step: closed.first_step,
        last_step: closed.last_step,
        heartbeat_at: closed.heartbeat_at,
        ..attempt
    };
    let seal = AttemptSeal {
        metric_summaries: closed.summaries,
        parameters: closed.parameters,
        tags: closed.tags,
        segments: closed.segments,
        events: closed.events,
        ..AttemptSeal::of(attempt)
    };
    let planned = AttemptRow { state: AttemptState::Ended, ..seal.attempt.clone() };
    ledger.insert_sealed(&run, &planned, &seal, now)?;
    Ok(Imported { run_id, name, is_new: true, point_count })
}

/// Whether the records of an attempt in this folder are those of an imported run.
#[must_use]
pub fn is_imported_record(folder: &Path) -> bool {
    folder.join(segment_name(0)).exists()
}

fn segment_name(number: u32) -> String {
    format!("import-{number:06}.twfr")
}

fn run_row(
    run_id: RunId,
    name: &Name,
    tool: ForeignTool,
    store: &Path,
    foreign: &ForeignRun,
    now: Timestamp,
) -> RunRow {
    let parameters: BTreeMap<&str, &str> =
        foreign.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let config = json!({
        "import": {
            "tool": tool.as_str(),
            "id": foreign.key,
            "group": foreign.group,
            "store": store.display().to_string(),
        },
        "parameters": parameters,
    });
    let config_sha256 = hex(&Sha256::digest(json!(parameters).to_string()));
    let began = foreign.started_at.unwrap_or(now);
    let (state, reason, _) = meaning(foreign.end);
    RunRow {
        state,
        owner: foreign.owner.clone(),
        project: foreign.group.clone(),
        seed: foreign
            .parameters
            .iter()
            .find(|(name, _)| name == "seed")
            .and_then(|(_, seed)| seed.parse().ok()),
        started_at: Some(began),
        ended_at: Some(foreign.ended_at.unwrap_or(began).max(began)),
        attempt_count: 1,
        termination_reason: Some(reason),
        wall_seconds: wall_seconds(foreign).unwrap_or(0.0),
        ..RunRow::planned(run_id, name, &config_sha256, config, began)
    }
}

fn attempt_row(
    attempt_id: AttemptId,
    home: &Path,
    run: &RunRow,
    tool: ForeignTool,
    foreign: &ForeignRun,
) -> AttemptRow {
    let (.., ending) = meaning(foreign.end);
    let evidence = json!([{ "source": tool.as_str(), "line_number": null, "text": format!("according to {}, {ending}", tool.as_str()) }]);
    AttemptRow {
        started_at: run.started_at,
        ended_at: run.ended_at,
        wall_seconds: wall_seconds(foreign),
        termination_reason: run.termination_reason,
        termination_rule: Some(format!("import.{}", tool.as_str())),
        termination_confidence: Some(Confidence::Likely),
        termination_domain: Some(Domain::Unknown),
        retry_outlook: Some(RetryOutlook::Unknown),
        termination_evidence: Some(evidence),
        termination_secondary: Some(Json::Array(Vec::new())),
        git_commit: foreign.git_commit.clone(),
        hosts: foreign.host.clone(),
        launcher: tool.as_str().into(),
        command: foreign.command.iter().cloned().collect(),
        log_directory: HomeLayout::new(home).attempt(attempt_id).folder().to_string_lossy().into_owned(),
        ..AttemptRow::planned(attempt_id, 1, LaunchKind::Train, run)
    }
}

/// The state of a run that ended so, the reason, and the end as a text.
fn meaning(end: ForeignEnd) -> (RunState, TerminationReason, &'static str) {
    match end {
        ForeignEnd::Completed => (RunState::Completed, TerminationReason::Completed, "it completed"),
        // Failure alone is not a reason; the store has none.
        ForeignEnd::Failed => (RunState::Failed, TerminationReason::Unknown, "it failed"),
        ForeignEnd::Stopped => (RunState::Stopped, TerminationReason::Cancelled, "it was stopped"),
        ForeignEnd::Unknown => (RunState::Stopped, TerminationReason::Unknown, "no end was recorded"),
    }
}

fn wall_seconds(foreign: &ForeignRun) -> Option<f64> {
    let (began, ended) = foreign.started_at.zip(foreign.ended_at)?;
    Some(ended.seconds_since(began).max(0.0))
}

/// Parameters, tags and metrics as segments of origin `import`. Written again after a crash, they are the same.
fn write_record(home: &Path, attempt: &AttemptRow, foreign: &ForeignRun) -> Result<(), LedgerError> {
    let folder = HomeLayout::new(home).attempt(attempt.attempt_id).records();
    fs::create_dir_all(&folder).map_err(LedgerError::file("make", &folder))?;
    let began = attempt.started_at.unwrap_or(Timestamp::from_micros(0));
    let mut segments =
        Segments { folder: &folder, attempt, began, sequence: 0, encoder: Encoder::new(), bytes: Vec::new() };
    segments.begin();
    for (name, value) in &foreign.parameters {
        segments.param(name, value);
    }
    for (name, value) in &foreign.tags {
        segments.tag(name, value);
    }
    segments.omissions(EventKind::ImportSkipped, &foreign.skipped);
    segments.omissions(EventKind::ImportChanged, &foreign.changed);
    for (step, at, values) in frames(foreign) {
        segments.metrics(step, at, &values)?;
    }
    segments.end()
}

/// Values of one step and time, with the names of their metrics.
type StepValues<'a> = (MetricStep, Timestamp, Vec<(&'a str, f64)>);

/// Values of one step and time together, by step.
fn frames(foreign: &ForeignRun) -> Vec<StepValues<'_>> {
    let mut points: Vec<(MetricStep, Timestamp, &str, f64)> = foreign
        .metrics
        .iter()
        .flat_map(|(name, points)| {
            points.iter().map(|point| (point.step, point.at, name.as_str(), point.value))
        })
        .collect();
    points.sort_by_key(|(step, at, ..)| (*step, *at));
    let together = points.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1));
    together
        .map(|chunk| {
            (chunk[0].0, chunk[0].1, chunk.iter().map(|(_, _, name, value)| (*name, *value)).collect())
        })
        .collect()
}

struct Segments<'a> {
    folder: &'a Path,
    attempt: &'a AttemptRow,
    began: Timestamp,
    sequence: u32,
    encoder: Encoder,
    bytes: Vec<u8>,
}

impl Segments<'_> {
    fn begin(&mut self) {
        self.encoder = Encoder::new();
        let header = SegmentHeader {
            at: self.began,
            origin: Origin::Import,
            pid: 0,
            segment_sequence: self.sequence,
            boot_id: String::new(),
            run_id: self.attempt.run_id.to_string(),
            attempt_id: self.attempt.attempt_id.to_string(),
            writer: format!("trackway import {}", self.attempt.launcher),
        };
        self.encoder.begin(&mut self.bytes, &header);
    }

    fn param(&mut self, name: &str, value: &str) {
        let param = Param { at: self.began, name: name.into(), value: value.into() };
        self.encoder.param(&mut self.bytes, &param);
    }

    fn tag(&mut self, name: &str, value: &str) {
        let fields = vec![("name".to_owned(), name.to_owned()), ("value".to_owned(), value.to_owned())];
        let event = Event { at: self.began, step: None, kind: EventKind::Tag.as_str().into(), fields };
        self.encoder.event(&mut self.bytes, &event);
    }

    /// What was left out or changed: a part of the history of the run.
    fn omissions(&mut self, kind: EventKind, omissions: &Omissions) {
        for omission in omissions.list().into_iter().take(EVENTS_MAX) {
            let (path, count) = (omission.path.to_string_lossy(), omission.count.to_string());
            let fields = [
                ("kind", omission.kind.as_str()),
                ("path", &*path),
                ("count", &count),
                ("why", &omission.why),
            ];
            self.encoder.event_parts(&mut self.bytes, self.began, None, kind.as_str(), &fields);
        }
    }

    fn metrics(
        &mut self,
        step: MetricStep,
        at: Timestamp,
        values: &[(&str, f64)],
    ) -> Result<(), LedgerError> {
        for chunk in values.chunks(trackway_formats::record::MAX_METRICS_PER_FRAME) {
            if self.bytes.len() >= SEGMENT_BYTES_MAX || !self.encoder.has_room_for(chunk.len()) {
                self.end()?;
                self.sequence += 1;
                self.begin();
            }
            match Step::try_from(step) {
                Ok(step) => self.encoder.metrics(&mut self.bytes, at, step, chunk),
                Err(_) => self.encoder.early_metrics(&mut self.bytes, at, step, chunk),
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), LedgerError> {
        self.encoder.close(&mut self.bytes, &Close { at: self.began, dropped_frames: 0 });
        let path = self.folder.join(segment_name(self.sequence));
        let bytes = std::mem::take(&mut self.bytes);
        fs::write(&path, bytes).map_err(LedgerError::file("write", &path))
    }
}
