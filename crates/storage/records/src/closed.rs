//! What closing a record gives, and the rows of what a script reports.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value as Json};
use trackway_core::{Step, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::record::{CheckpointFrame, ControlAck, Event, Origin, RankEnd};
use trackway_formats::runfile::RunSection;
use trackway_ledger::{
    ArtifactRow, AttemptRow, EventRow, MetricSummaryRow, ParameterRow, RecordSegmentRow, TagRow,
};

/// Events of which the field `why` is a sentence about the field `path`.
const SAID_IN_FULL: [EventKind; 4] = [
    EventKind::EventFileSkipped,
    EventKind::OutputLeftOut,
    EventKind::ImportSkipped,
    EventKind::ImportChanged,
];

/// Finite values of metrics, by step and name.
pub type ValuesAtSteps = BTreeMap<Step, BTreeMap<String, f64>>;

/// The contents of an attempt's flight record, as rows for [`trackway_ledger::AttemptSeal`].
#[derive(Debug, Clone, Default)]
pub struct ClosedRecords {
    /// The Parquet file; none when the record holds no metric.
    pub parquet_path: Option<PathBuf>,
    /// Metric values in it.
    pub point_count: u64,
    /// Those of them that were printed, or read from files: the script did not record them itself.
    pub read_count: u64,
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

impl ClosedRecords {
    pub(crate) fn see(&mut self, at: Timestamp, step: Option<Step>) {
        self.heartbeat_at = self.heartbeat_at.max(Some(at));
        if let Some(step) = step {
            self.first_step = Some(self.first_step.map_or(step, |first| first.min(step)));
            self.first_step_at = Some(self.first_step_at.map_or(at, |first| first.min(at)));
            self.last_step = self.last_step.max(Some(step));
        }
    }

    pub(crate) fn see_recorded(&mut self, at: Timestamp, step: Step) {
        if self.last_recorded_step.is_none_or(|(last, _)| last < step) {
            self.last_recorded_step = Some((step, at));
        }
    }
}

/// The tags that were given; the script's own replace them.
pub(crate) fn tags_of(attempt: &AttemptRow, given: &RunSection) -> Vec<TagRow> {
    let (attempt_id, run_id) = (attempt.attempt_id, attempt.run_id);
    let tag = |(name, value): (&String, &String)| TagRow {
        attempt_id,
        run_id,
        name: name.clone(),
        value: value.clone(),
    };
    given.tags.iter().map(tag).collect()
}

pub(crate) fn event_row(
    attempt: &AttemptRow,
    event_id: String,
    event: &Event,
    origin: Option<Origin>,
) -> EventRow {
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

pub(crate) fn ack_row(attempt: &AttemptRow, event_id: String, ack: &ControlAck) -> EventRow {
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
