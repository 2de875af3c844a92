//! What the first reading of a record gathers: everything in it but the values, in bounded memory.

use trackway_core::Step;
use trackway_formats::EventKind;
use trackway_formats::arguments::declared;
use trackway_formats::record::{
    CheckpointFrame, Event, Frame, METRIC_NAMES_MAX, Origin, OriginOfEach, RankEnd, Segment,
};
use trackway_formats::runfile::RunSection;
use trackway_ledger::{
    ArtifactRow, AttemptRow, EventRow, LedgerError, NAMED_ROWS_MAX, ParameterRow, RecordSegmentRow, TagRow,
};

use crate::closed::{ClosedRecords, ack_row, event_row, tags_of};
use crate::parts::{Part, SegmentFile};
use crate::rounds::Rounds;
use crate::rows::{Ends, Unique};

/// Events of an attempt that the ledger keeps at most: the first and the last of them. As many records of checkpoints.
const EVENTS_MAX: usize = 20_000;

/// A parameter that the script reported.
struct ReportedParameter {
    /// Where it was found first: the precedence of the writer, and the place in the order of the files.
    found: (u8, usize),
    precedence: u8,
    name: String,
    value: String,
    origin: String,
}

/// What was gathered.
pub(crate) struct Outline {
    closed: ClosedRecords,
    /// Of each metric the writer whose values count; empty where there is one writer.
    pub origins: OriginOfEach,
    rounds: Rounds,
    parameters: Unique<String, ReportedParameter>,
    tags: Unique<String, TagRow>,
    artifacts: Unique<(String, String), ArtifactRow>,
    events: Ends<EventRow>,
    checkpoints: Ends<CheckpointFrame>,
    place: usize,
}

impl Outline {
    /// Of these segments, which then know what their next pass needs.
    pub fn of(attempt: &AttemptRow, files: &mut [SegmentFile]) -> Result<Self, LedgerError> {
        let mut outline = Self {
            closed: ClosedRecords::default(),
            origins: OriginOfEach::default(),
            rounds: Rounds::default(),
            parameters: Unique::new(NAMED_ROWS_MAX),
            tags: Unique::new(NAMED_ROWS_MAX),
            artifacts: Unique::new(NAMED_ROWS_MAX),
            events: Ends::new(EVENTS_MAX),
            checkpoints: Ends::new(EVENTS_MAX),
            place: 0,
        };
        let mut recorded = files.iter().filter(|file| !file.is_telemetry()).map(|file| file.origin);
        let first = recorded.next().flatten();
        let several = recorded.any(|origin| origin != first);
        // The machine's record comes last, so that its events do.
        let (telemetry, of_script): (Vec<_>, Vec<_>) = files.iter_mut().partition(|file| file.is_telemetry());
        for file in of_script.into_iter().chain(telemetry) {
            outline.take_file(attempt, file, several)?;
        }
        if let Some(before) = outline.rounds.before() {
            files.iter_mut().for_each(|file| file.rounds_before = Some(before));
            outline.closed.see_again(files)?;
        }
        Ok(outline)
    }

    fn take_file(
        &mut self,
        attempt: &AttemptRow,
        file: &mut SegmentFile,
        several: bool,
    ) -> Result<(), LedgerError> {
        let of_script = !file.is_telemetry();
        let mut row = RecordSegmentRow {
            attempt_id: attempt.attempt_id,
            run_id: attempt.run_id,
            path: file.name.clone(),
            origin: file.origin.map(|origin| origin.to_string()),
            size_bytes: file.size_bytes,
            frame_count: 0,
            lost_frame_count: 0,
            dropped_frame_count: 0,
            torn_bytes: 0,
            closed: false,
            parquet_path: None,
            unreadable: None,
        };
        let (mut rank, mut names) = (RankSeen::default(), None);
        let unreadable = file.each_part(|part| {
            let segment = &part.segment;
            count(&mut row, segment);
            self.rounds.take(segment);
            if row.torn_bytes > 0 {
                names = Some(segment.names.clone());
            }
            if of_script {
                rank.take(segment);
                let point_count = segment.metric_points_of_any_step().count() as u64;
                self.closed.point_count += point_count;
                if part.origin() != Some(Origin::Sdk) {
                    self.closed.read_count += point_count;
                }
                if several {
                    self.take_origins(part);
                }
                self.take(attempt, part);
            } else {
                self.take_from_beside(attempt, part);
            }
            Ok(())
        })?;
        row.unreadable = unreadable;
        self.closed.segments.push(row);
        self.closed.ranks.extend(rank.end());
        file.names = names.unwrap_or_default();
        Ok(())
    }

    fn take_origins(&mut self, part: &Part) {
        for point in part.segment.metric_points_of_any_step() {
            if self.origins.len() < METRIC_NAMES_MAX || !self.origins.counts(&point.name, part.origin()) {
                self.origins.take(&point.name, part.origin());
            }
        }
    }

    fn take(&mut self, attempt: &AttemptRow, part: &Part) {
        let origin = part.origin();
        for located in &part.segment.frames {
            let id = || format!("{}:{}:{}", attempt.attempt_id, part.name, located.sequence);
            if let Frame::Metrics(metrics) = &located.frame
                && origin == Some(Origin::Sdk)
            {
                self.closed.see_recorded(metrics.at, metrics.step);
            }
            match &located.frame {
                Frame::Metrics(metrics) => self.closed.see(metrics.at, Some(metrics.step)),
                Frame::EarlyMetrics(metrics) => self.closed.see(metrics.at, None),
                Frame::Heartbeat(heartbeat) => self.closed.see(heartbeat.at, Some(heartbeat.step)),
                Frame::Event(event) => {
                    // What is said of files that were read shows no life of the script.
                    if origin != Some(Origin::Files) {
                        self.closed.see(event.at, None);
                    }
                    if !self.take_reported(attempt, event) {
                        self.events.push(event_row(attempt, id(), event, origin));
                    }
                }
                Frame::ControlAck(ack) => self.events.push(ack_row(attempt, id(), ack)),
                Frame::Checkpoint(checkpoint) => self.checkpoints.push(checkpoint.clone()),
                Frame::Param(parameter) => self.take_parameter(&parameter.name, &parameter.value, origin),
                _ => {}
            }
        }
    }

    /// Takes the events of a segment that was not written by the script: none of them is a sign of its life.
    fn take_from_beside(&mut self, attempt: &AttemptRow, part: &Part) {
        for located in &part.segment.frames {
            if let Frame::Metrics(metrics) = &located.frame {
                self.closed.beside_at = self.closed.beside_at.max(Some(metrics.at));
            } else if let Frame::Event(event) = &located.frame {
                self.closed.beside_at = self.closed.beside_at.max(Some(event.at));
                let id = format!("{}:{}:{}", attempt.attempt_id, part.name, located.sequence);
                self.events.push(event_row(attempt, id, event, part.origin()));
            }
        }
    }

    /// Takes an event that has a table of its kind. False: it is any other.
    fn take_reported(&mut self, attempt: &AttemptRow, event: &Event) -> bool {
        let (attempt_id, run_id) = (attempt.attempt_id, attempt.run_id);
        if let Some((name, value)) = event.as_tag() {
            let tag = TagRow { attempt_id, run_id, name: name.into(), value: value.into() };
            self.tags.put(name.into(), tag);
        } else if let Some(artifact) = event.as_artifact() {
            let row = ArtifactRow {
                attempt_id,
                run_id,
                name: artifact.name.into(),
                blake3: artifact.blake3.into(),
                size_bytes: artifact.size_bytes,
                step: event.step,
                at: event.at,
            };
            self.artifacts.put((row.name.clone(), row.blake3.clone()), row);
        } else {
            return false;
        }
        true
    }

    /// What its files of settings hold, what the script printed, what its event files hold and what it recorded replace
    /// each other in this order.
    fn take_parameter(&mut self, name: &str, value: &str, origin: Option<Origin>) {
        let precedence = origin.map_or(0, Origin::precedence_of_parameters);
        let found = (precedence, self.place);
        self.place += 1;
        let new = ReportedParameter {
            found,
            precedence,
            name: name.into(),
            value: value.into(),
            origin: origin.map(|origin| origin.to_string()).unwrap_or_default(),
        };
        match self.parameters.get_mut(&new.name) {
            Some(known) if known.precedence > precedence => known.found = known.found.min(found),
            Some(known) => *known = ReportedParameter { found: known.found.min(found), ..new },
            None => self.parameters.put(name.into(), new),
        }
    }

    /// The rows, with what was declared and given; and what is in the record alone.
    pub fn into_closed(self, attempt: &AttemptRow, given: &RunSection) -> ClosedRecords {
        let mut closed = self.closed;
        let imported =
            closed.segments.iter().any(|row| row.origin.as_deref() == Some(Origin::Import.as_str()));
        let left_out = [
            ("parameters", self.parameters.left_out),
            ("tags", self.tags.left_out),
            ("artifacts", self.artifacts.left_out),
            ("events", self.events.left_out),
            ("records of checkpoints", self.checkpoints.left_out),
        ];
        closed.tags = with_given(tags_of(attempt, given), self.tags.into_rows());
        closed.artifacts = self.artifacts.into_rows();
        closed.events = self.events.into_rows();
        closed.checkpoints = self.checkpoints.into_rows();
        closed.parameters = parameters(attempt, given, imported, self.parameters.into_rows());
        for (what, count) in left_out.into_iter().filter(|(_, count)| *count > 0) {
            closed.left_out.push(format!("{count} {what}"));
        }
        closed
    }
}

impl ClosedRecords {
    /// The first and the last step again, since printed ones count further.
    fn see_again(&mut self, files: &[SegmentFile]) -> Result<(), LedgerError> {
        (self.first_step, self.first_step_at, self.last_step) = (None, None, None);
        for file in files.iter().filter(|file| !file.is_telemetry()) {
            file.each_part(|part| {
                for located in &part.segment.frames {
                    match &located.frame {
                        Frame::Metrics(metrics) => self.see(metrics.at, Some(metrics.step)),
                        Frame::Heartbeat(heartbeat) => self.see(heartbeat.at, Some(heartbeat.step)),
                        _ => {}
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Counts the frames of a part; what a segment has only at its end is of all parts so far.
fn count(row: &mut RecordSegmentRow, segment: &Segment) {
    let header_frames = u64::from(segment.header.is_some() && row.frame_count == 0);
    row.frame_count += segment.frames.len() as u64 + header_frames;
    row.lost_frame_count = segment.lost_frames;
    row.dropped_frame_count = segment.close.map_or(0, |close| close.dropped_frames);
    row.torn_bytes += segment.damage.iter().map(|damage| damage.skipped_bytes).sum::<u64>();
    row.closed = segment.close.is_some();
}

/// How a rank ended, part by part.
#[derive(Default)]
struct RankSeen {
    /// The rank that the first such event names, if it can be read.
    rank: Option<Option<u32>>,
    last_step: Option<Step>,
    raised: bool,
}

impl RankSeen {
    fn take(&mut self, segment: &Segment) {
        for located in &segment.frames {
            match &located.frame {
                Frame::Metrics(metrics) => self.last_step = self.last_step.max(Some(metrics.step)),
                Frame::Heartbeat(heartbeat) => self.last_step = self.last_step.max(Some(heartbeat.step)),
                Frame::Event(event) => {
                    self.raised |= EventKind::Exception.is(&event.kind);
                    if self.rank.is_none() && EventKind::Rank.is(&event.kind) {
                        self.rank = Some(event.field("rank").and_then(|rank| rank.parse().ok()));
                    }
                }
                _ => {}
            }
        }
    }

    fn end(self) -> Option<RankEnd> {
        let Self { rank, last_step, raised } = self;
        Some(RankEnd { rank: rank.flatten()?, last_step, raised })
    }
}

/// The tags that were given; the script's own replace them.
fn with_given(given: Vec<TagRow>, own: Vec<TagRow>) -> Vec<TagRow> {
    let mut tags = Unique::new(given.len() + own.len());
    given.into_iter().chain(own).for_each(|tag| tags.put(tag.name.clone(), tag));
    tags.into_rows()
}

/// What was declared, and what the script reported, which replaces it.
fn parameters(
    attempt: &AttemptRow,
    given: &RunSection,
    imported: bool,
    mut reported: Vec<ReportedParameter>,
) -> Vec<ParameterRow> {
    let (attempt_id, run_id) = (attempt.attempt_id, attempt.run_id);
    let row = |name: String, value: String, origin: String| ParameterRow {
        attempt_id,
        run_id,
        name,
        value,
        origin: Some(origin),
    };
    let command: &[String] = if imported { &[] } else { &attempt.command };
    let declared = declared(command, &given.parameters);
    let mut parameters = Unique::new(declared.len() + reported.len());
    let is_of_files = |parameter: &ReportedParameter| parameter.origin == Origin::Files.as_str();
    reported.retain(|parameter| {
        !is_of_files(parameter) || !declared.iter().any(|one| *one.name == *parameter.name)
    });
    for parameter in declared {
        let name = parameter.name.to_string();
        parameters.put(name.clone(), row(name, parameter.value.to_string(), parameter.origin.to_string()));
    }
    reported.sort_by_key(|parameter| parameter.found);
    for ReportedParameter { name, value, origin, .. } in reported {
        parameters.put(name.clone(), row(name, value, origin));
    }
    parameters.into_rows()
}
