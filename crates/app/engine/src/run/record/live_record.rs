//! Follows the flight record of a live attempt: every segment in its folder, from where it was read last.

use std::collections::BTreeMap;
use std::sync::Arc;

use trackway_core::{Step, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::arguments::TOTAL_STEPS;
use trackway_formats::record::{
    AVAILABLE_BYTES, CheckpointChange, ControlOutcome, Event, Frame, GrowingSegment, Located, Metrics,
    NameTable, Origin, OriginOfEach, PROGRESSIVE_LOSS, RESIDENT_BYTES,
};
use trackway_launch::{AttemptChannel, GrowingFile};
use trackway_rules::detect::{DataCursor, MemorySample};
use trackway_rules::early_stop::progressive::{Progressive, ProgressiveEstimate};
use trackway_rules::trust::LossRecord;

use super::curves::{Curves, LiveCurve};
use crate::attempt::save_reason;
use crate::reporter::Progress;

/// Most bytes read of one segment in one look, so that a look stays short however much was written meanwhile.
const LOOK_BYTES_MAX: u64 = 4 << 20;
/// Most segments that are followed: one a process, and loader workers have their own.
const SEGMENTS_MAX: usize = 4096;
/// Most metrics whose writer is chosen; of further ones the values of every writer count.
const CHOSEN_MAX: usize = 65_536;
/// The first steps that are kept.
const FIRST_STEPS: usize = 4096;
/// First words of the names of metrics that are not those of a training.
const HELD_OUT: [&str; 9] =
    ["val", "valid", "validation", "eval", "evaluation", "test", "dev", "holdout", "sanity"];
/// Most reads of checkpoints that are kept.
const READS_MAX: usize = 256;
/// The layout of a checkpoint after which a script prints its rounds from 0 again.
const COUNTS_AGAIN: &str = "xgboost";
/// Most checkpoints whose reasons are kept.
const SAVE_REASONS_MAX: usize = 1024;

/// The state of the live record so far.
#[derive(Debug)]
pub struct LiveRecord {
    channel: Arc<dyn AttemptChannel>,
    segments: BTreeMap<String, FollowedSegment>,
    ranks: BTreeMap<u32, u32>,
    /// The last step of each rank that reported itself.
    pub last_steps: BTreeMap<u32, Step>,
    progressive: Option<Progressive>,
    /// The rank whose progressive losses count: the first that recorded one.
    progressive_rank: Option<u32>,
    curves: Curves,
    /// Of each metric the writer whose values count, as in the sealed record.
    origins: OriginOfEach,
    /// The last sample of the machine: values by name.
    pub machine: BTreeMap<String, f64>,
    /// What the losses say about checkpoints; none: they are not followed.
    pub losses: Option<LossRecord>,
    /// The newest facts.
    pub facts: RecordFacts,
}

/// The newest facts of a live record.
#[derive(Debug, Default, Clone)]
pub struct RecordFacts {
    /// The first step seen.
    pub first_step: Option<Step>,
    /// The first steps of the training that differ, in the order in which they were made, and when, by the clock of the
    /// script's machine. Those of an evaluation are left out.
    pub first_steps: Vec<(Step, Timestamp)>,
    /// Whether the script resumed through Trackway.
    pub resumed: bool,
    /// Which of the checkpoints that were there when the script was started were read.
    pub reads: Vec<CheckpointRead>,
    /// The newest step seen.
    pub last_step: Option<Step>,
    /// The last step committed as a checkpoint.
    pub last_committed_step: Option<Step>,
    /// The step of a save that is held before its commit, for a rehearsal.
    pub held_in_save: Option<Step>,
    /// When the training process was last heard of, by its own clock.
    pub heartbeat_at: Option<Timestamp>,
    /// Frames read: it grows with every sign of life.
    pub frame_count: u64,
    /// How many steps the script means to make, from its parameter `total_steps`, `max_steps` or the like.
    pub total_steps: Option<Step>,
    /// Whether the recorder inside the training process wrote any of it.
    pub handshake_seen: bool,
    /// Requests of the control file that were acknowledged: id and outcome.
    pub acknowledged: Vec<(u64, ControlOutcome)>,
    /// Which batches the steps trained on, as far as the script reports it.
    pub cursor: DataCursor,
    /// Why the checkpoints of the last steps were saved.
    pub save_reasons: BTreeMap<Step, String>,
}

/// That a checkpoint was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointRead {
    /// Whether the attempt was to continue from it.
    pub planned: bool,
    /// The step that it is of, where that is known.
    pub step: Option<Step>,
    /// Whether the attempt read it; else it is not known who did.
    pub by_attempt: bool,
    /// Whether a script that continues from it prints its steps from the first one again.
    pub counts_again: bool,
    pub at: Timestamp,
}

/// What a look finds, for observers.
#[derive(Debug)]
pub enum RecordUpdate<'a> {
    /// Values of metrics.
    Values(&'a RecordedValues<'a>),
    /// A sample of the memory of the run's processes.
    Memory(MemorySample),
}

/// Values of metrics, for observers.
#[derive(Debug)]
pub struct RecordedValues<'a> {
    /// Which segment of the record they are in, counted as they were found.
    pub segment: usize,
    /// The rank of the process that recorded them; 0 if it did not report it.
    pub rank: u32,
    /// The values, without those of a metric that another writer records better.
    pub metrics: &'a Metrics,
    /// Metrics that this writer records better than the one before: what was seen of them no longer counts.
    pub replaced: &'a [String],
    /// The names of the segment.
    pub names: &'a NameTable,
}

#[derive(Debug, Default)]
struct FollowedSegment {
    number: usize,
    pid: u32,
    origin: Option<Origin>,
    growing: GrowingSegment,
    read_bytes: u64,
    broken: bool,
}

impl LiveRecord {
    /// The record of the attempt at the other end, which need not exist yet.
    #[must_use]
    pub fn of(channel: Arc<dyn AttemptChannel>) -> Self {
        Self {
            channel,
            segments: BTreeMap::new(),
            ranks: BTreeMap::new(),
            last_steps: BTreeMap::new(),
            progressive: None,
            progressive_rank: None,
            curves: Curves::default(),
            origins: OriginOfEach::default(),
            machine: BTreeMap::new(),
            losses: None,
            facts: RecordFacts::default(),
        }
    }

    /// The same, which also estimates the loss on unseen data, by windows of so many progressive losses.
    #[must_use]
    pub fn with_window(channel: Arc<dyn AttemptChannel>, window: u64) -> Self {
        Self { progressive: Some(Progressive::new(window)), ..Self::of(channel) }
    }

    /// The estimate of progressive validation so far.
    #[must_use]
    pub fn progressive(&self) -> Option<ProgressiveEstimate> {
        self.progressive.as_ref().and_then(Progressive::estimate)
    }

    /// Reads what was added since the last look. A segment that cannot be read now is tried again at the next look.
    pub fn look(&mut self) {
        self.look_at(&mut |_| {});
    }

    /// The same, and shows what was added.
    pub fn look_at(&mut self, see: &mut dyn FnMut(RecordUpdate<'_>)) {
        // What cannot be listed now is at the next look.
        let names = self.channel.segments().unwrap_or_default();
        for name in names.into_iter().take(SEGMENTS_MAX) {
            let number = self.segments.len();
            let followed = self
                .segments
                .entry(name.clone())
                .or_insert_with(|| FollowedSegment { number, ..FollowedSegment::default() });
            // What cannot be read now is at the next look.
            let frames = followed.read_more(&*self.channel, &name).unwrap_or_default();
            let names = &followed.growing.part().names;
            if let (None, Some(header)) = (followed.origin, &followed.growing.part().header) {
                (followed.pid, followed.origin) = (header.pid, Some(header.origin));
                self.facts.begin(header.origin);
            }
            for Located { frame, .. } in frames {
                // Samples of the machine are not a sign of life of the script.
                if followed.origin == Some(Origin::Telemetry) {
                    take_telemetry(&frame, names, (&mut self.facts, &mut self.machine), see);
                    continue;
                }
                self.facts.take(&frame, is_of_training(&frame, names));
                if let (Some(step), Some(rank)) = (step_of(&frame), self.ranks.get(&followed.pid)) {
                    let last = self.last_steps.entry(*rank).or_default();
                    *last = step.max(*last);
                }
                match frame {
                    Frame::Event(event) => {
                        if let Some(rank) = reported_rank(&event)
                            && self.ranks.len() < SEGMENTS_MAX
                        {
                            self.ranks.insert(followed.pid, rank);
                        }
                    }
                    Frame::Metrics(mut metrics) => {
                        let rank = self.ranks.get(&followed.pid).copied().unwrap_or(0);
                        let replaced = choose(&mut self.origins, &mut metrics, names, followed.origin);
                        replaced.iter().for_each(|name| self.curves.forget(name));
                        if let Some(losses) = &mut self.losses {
                            replaced.iter().for_each(|name| losses.forget(name));
                            for (id, value) in &metrics.values {
                                losses.take(rank, &names.name_or_placeholder(*id), metrics.step, *value);
                            }
                        }
                        for (id, value) in &metrics.values {
                            let name = names.name_or_placeholder(*id);
                            self.curves.take(&name, metrics.step, *value);
                            if let Some(progressive) = &mut self.progressive
                                && *name == *PROGRESSIVE_LOSS
                                && *self.progressive_rank.get_or_insert(rank) == rank
                            {
                                progressive.take(metrics.step, *value);
                            }
                        }
                        see(RecordUpdate::Values(&RecordedValues {
                            segment: followed.number,
                            rank,
                            metrics: &metrics,
                            replaced: &replaced,
                            names,
                        }));
                    }
                    _ => {}
                }
            }
        }
    }

    /// The progress to show.
    #[must_use]
    pub fn progress(&self, steps_per_second: Option<f64>) -> Progress {
        let shown = self.curves.first();
        Progress {
            step: self.facts.last_step,
            steps_per_second,
            loss: shown.and_then(|curve| Some((curve.name.clone(), *curve.values.back()?))),
            last_committed_step: self.facts.last_committed_step,
            heartbeat_at: self.facts.heartbeat_at,
        }
    }

    /// The curves that people look at first.
    #[must_use]
    pub fn curves(&self, count: usize) -> Vec<LiveCurve> {
        self.curves.shown(count).into_iter().cloned().collect()
    }
}

/// Leaves only the values that count, by the rule of the sealed record, and names the metrics whose earlier values no longer
/// do.
fn choose(
    origins: &mut OriginOfEach,
    metrics: &mut Metrics,
    names: &NameTable,
    origin: Option<Origin>,
) -> Vec<String> {
    let mut replaced = Vec::new();
    metrics.values.retain(|(id, _)| {
        let name = names.name_or_placeholder(*id);
        if origins.len() < CHOSEN_MAX && origins.take(&name, origin) {
            replaced.push(name.to_string());
        }
        origins.counts(&name, origin)
    });
    replaced
}

impl FollowedSegment {
    /// The frames that were added.
    fn read_more(&mut self, channel: &dyn AttemptChannel, name: &str) -> std::io::Result<Vec<Located>> {
        if self.broken {
            return Ok(Vec::new());
        }
        let bytes = channel.read(GrowingFile::Segment(name), self.read_bytes, LOOK_BYTES_MAX)?;
        self.read_bytes += bytes.len() as u64;
        let Ok(part) = self.growing.push(&bytes) else {
            // A segment of a newer version is reported when the record is closed; following it is pointless.
            self.broken = true;
            return Ok(Vec::new());
        };
        let frames = std::mem::take(&mut part.frames);
        self.growing.release();
        Ok(frames)
    }
}

impl RecordFacts {
    /// A process began a segment.
    fn begin(&mut self, origin: Origin) {
        // Samples of the machine are not a sign of life of the script.
        if origin != Origin::Telemetry {
            self.frame_count += 1;
        }
        self.handshake_seen |= origin == Origin::Sdk;
    }

    fn take(&mut self, frame: &Frame, is_of_training: bool) {
        self.frame_count += 1;
        match frame {
            Frame::Metrics(metrics) if !is_of_training => self.alive(metrics.at, Some(metrics.step)),
            Frame::Metrics(metrics) => self.made(metrics.at, metrics.step),
            Frame::EarlyMetrics(metrics) => self.alive(metrics.at, None),
            Frame::Heartbeat(heartbeat) => self.made(heartbeat.at, heartbeat.step),
            Frame::Event(event) => {
                self.alive(event.at, None);
                if EventKind::HeldInSave.is(&event.kind) {
                    self.held_in_save = self.held_in_save.max(event.step);
                }
                self.take_reason(event);
                self.take_cursor(event);
            }
            Frame::Checkpoint(checkpoint) => {
                self.resumed |= checkpoint.state == CheckpointChange::Resumed;
                self.alive(checkpoint.at, Some(checkpoint.step));
                if checkpoint.state == CheckpointChange::Committed {
                    self.last_committed_step = self.last_committed_step.max(Some(checkpoint.step));
                }
            }
            Frame::Param(param) if TOTAL_STEPS.contains(&&*param.name) => {
                let total = param.value.parse().ok().filter(|total| *total > 0);
                self.total_steps = total.or(self.total_steps);
            }
            Frame::ControlAck(ack) => self.acknowledged.push((ack.id, ack.outcome)),
            _ => {}
        }
    }

    fn take_reason(&mut self, event: &Event) {
        let (Ok(EventKind::CheckpointReason), Some(step), Some(reason)) =
            (event.kind.parse(), event.step, event.field("reason"))
        else {
            return;
        };
        self.save_reasons.insert(step, save_reason::in_words(reason, event.field("why")));
        if self.save_reasons.len() > SAVE_REASONS_MAX {
            self.save_reasons.pop_first();
        }
    }

    fn take_cursor(&mut self, event: &Event) {
        let number = |name| event.field(name).and_then(|value| value.parse().ok());
        if let (Ok(EventKind::DataCursor), Some(step), Some(batch)) =
            (event.kind.parse(), event.step, number("batch"))
        {
            self.cursor.record(step, batch, number("epoch"));
        }
    }

    fn alive(&mut self, at: Timestamp, step: Option<Step>) {
        self.heartbeat_at = self.heartbeat_at.max(Some(at));
        self.first_step = self.first_step.or(step);
        self.last_step = self.last_step.max(step);
    }

    /// A step was made. What another process made before may be read after it.
    fn made(&mut self, at: Timestamp, step: Step) {
        self.alive(at, Some(step));
        let firsts = &mut self.first_steps;
        if firsts.len() == FIRST_STEPS && firsts.last().is_some_and(|(_, last)| *last <= at) {
            return;
        }
        match firsts.iter_mut().find(|(first, _)| *first == step) {
            Some((_, first_at)) => *first_at = at.min(*first_at),
            None => firsts.push((step, at)),
        }
        firsts.sort_by_key(|(_, at)| *at);
        firsts.truncate(FIRST_STEPS);
    }
}

/// Takes a frame of what Trackway itself measures: samples of the machine, and reads of checkpoints.
fn take_telemetry(
    frame: &Frame,
    names: &NameTable,
    (facts, machine): (&mut RecordFacts, &mut BTreeMap<String, f64>),
    see: &mut dyn FnMut(RecordUpdate<'_>),
) {
    match frame {
        Frame::Event(event) if facts.reads.len() < READS_MAX => facts.reads.extend(read_of(event)),
        Frame::Metrics(metrics) => {
            *machine = sample_of(metrics, names);
            let sample = memory_sample(metrics.step, facts.last_step, machine);
            sample.into_iter().for_each(|sample| see(RecordUpdate::Memory(sample)));
        }
        _ => {}
    }
}

fn sample_of(metrics: &Metrics, names: &NameTable) -> BTreeMap<String, f64> {
    let named = metrics.values.iter().map(|(id, value)| (names.name_or_placeholder(*id).to_string(), *value));
    named.collect()
}

/// The read of a checkpoint that an event is of, unless others read it.
fn read_of(event: &Event) -> Option<CheckpointRead> {
    let by = event.field("by").filter(|by| EventKind::CheckpointOpened.is(&event.kind) && *by != "none")?;
    Some(CheckpointRead {
        planned: event.field("planned") == Some("yes"),
        step: event.step,
        by_attempt: by == "attempt",
        counts_again: event.field("layout") == Some(COUNTS_AGAIN),
        at: event.at,
    })
}

/// The memory in a sample of the machine, once the training has made a step.
fn memory_sample(seconds: u64, step: Option<Step>, machine: &BTreeMap<String, f64>) -> Option<MemorySample> {
    Some(MemorySample {
        seconds,
        step: step?,
        resident_bytes: *machine.get(RESIDENT_BYTES)?,
        available_bytes: *machine.get(AVAILABLE_BYTES)?,
    })
}

/// Whether a frame may be of a step of the training: not where all its values are of an evaluation.
fn is_of_training(frame: &Frame, names: &NameTable) -> bool {
    let Frame::Metrics(metrics) = frame else { return true };
    let is_held_out = |(id, _): &(_, f64)| is_held_out(&names.name_or_placeholder(*id));
    metrics.values.is_empty() || !metrics.values.iter().all(is_held_out)
}

fn is_held_out(name: &str) -> bool {
    let first = name.split(['_', '/', '-', '.', ' ']).next().unwrap_or(name);
    HELD_OUT.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// The step that a process was at when it wrote the frame.
fn step_of(frame: &Frame) -> Option<Step> {
    match frame {
        Frame::Metrics(metrics) => Some(metrics.step),
        Frame::Heartbeat(heartbeat) => Some(heartbeat.step),
        _ => None,
    }
}

/// The rank that a process reports.
fn reported_rank(event: &Event) -> Option<u32> {
    event.field("rank").filter(|_| EventKind::Rank.is(&event.kind))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use trackway_formats::layout::AttemptLayout;
    use trackway_formats::record::{Encoder, SEGMENT_EXTENSION, SegmentHeader};
    use trackway_launch::FolderChannel;

    use super::*;

    /// Writes a segment with values of `loss`, from step 1 on, and of `other`.
    fn segment(files: &AttemptLayout, name: &str, origin: Origin, values: &[f64]) {
        let steps: Vec<_> = values.iter().map(|value| [("loss", *value), (name, *value)]).collect();
        segment_of(files, name, origin, &steps.iter().map(<[_; 2]>::as_slice).collect::<Vec<_>>());
    }

    /// Writes a segment with the values of each step, from step 1 on.
    fn segment_of(files: &AttemptLayout, name: &str, origin: Origin, steps: &[&[(&str, f64)]]) {
        let at = Timestamp::from_micros(1);
        let header = SegmentHeader {
            at,
            origin,
            pid: 1,
            segment_sequence: 0,
            boot_id: String::new(),
            run_id: "run".into(),
            attempt_id: "attempt".into(),
            writer: "test".into(),
        };
        let (mut bytes, mut encoder) = (Vec::new(), Encoder::new());
        encoder.begin(&mut bytes, &header);
        for (step, values) in (1..).zip(steps) {
            encoder.metrics(&mut bytes, at, step, values);
        }
        std::fs::create_dir_all(files.records()).unwrap();
        std::fs::write(files.records().join(format!("{name}.{SEGMENT_EXTENSION}")), bytes).unwrap();
    }

    /// Proves that a live curve and what detectors see have the values of one writer of each metric, as the sealed record
    /// has, whichever began first, and that a metric of one writer alone counts.
    #[test]
    fn one_writer_of_each_metric_counts() {
        let folder = tempfile::tempdir().unwrap();
        let files = AttemptLayout::new(folder.path());
        let mut record = LiveRecord::of(Arc::new(FolderChannel::new(folder.path())));
        let (mut seen, mut replaced) = (Vec::new(), Vec::new());
        let mut look = |record: &mut LiveRecord| {
            record.look_at(&mut |sight| {
                let RecordUpdate::Values(values) = sight else { return };
                replaced.extend_from_slice(values.replaced);
                for (id, value) in &values.metrics.values {
                    seen.push((values.names.name_or_placeholder(*id).to_string(), *value));
                }
            });
        };
        segment(&files, "b", Origin::TensorBoard, &[9.0, 8.0]);
        look(&mut record);
        segment(&files, "c", Origin::Sdk, &[1.0, 0.5]);
        segment(&files, "d", Origin::Stdout, &[7.0]);
        look(&mut record);
        let curve = |name: &str| {
            let curves = record.curves(9);
            let found = curves.iter().find(|curve| curve.name == name).unwrap();
            found.values.iter().copied().collect::<Vec<f64>>()
        };
        assert_eq!((curve("loss"), curve("b"), curve("d")), (vec![1.0, 0.5], vec![9.0, 8.0], vec![7.0]));
        let losses: Vec<f64> =
            seen.iter().filter(|(name, _)| name == "loss").map(|(_, value)| *value).collect();
        assert_eq!(losses, [9.0, 8.0, 1.0, 0.5]);
        assert_eq!(replaced, ["loss"]);
    }

    /// Proves that the values of an evaluation alone make no step of the training, and those of both do.
    #[test]
    fn an_evaluation_makes_no_first_step() {
        for (name, is_first) in
            [("val_loss", false), ("test/acc", false), ("Eval_loss", false), ("loss", true), ("value", true)]
        {
            let folder = tempfile::tempdir().unwrap();
            let files = AttemptLayout::new(folder.path());
            let mut record = LiveRecord::of(Arc::new(FolderChannel::new(folder.path())));
            segment_of(&files, "a", Origin::Stdout, &[&[(name, 1.0)][..]]);
            record.look();
            assert_eq!(record.facts.first_steps.len(), usize::from(is_first), "{name}");
            assert_eq!(record.facts.last_step, Some(1), "{name}");
        }
    }

    /// Proves that a sample of the machine becomes one of memory at the step that the training has made by then, and none before its first
    /// step; and that it does not count as a sign of life.
    #[test]
    fn memory_is_seen_at_the_step_of_the_training() {
        let folder = tempfile::tempdir().unwrap();
        let files = AttemptLayout::new(folder.path());
        let machine = [(RESIDENT_BYTES, 3.0), (AVAILABLE_BYTES, 5.0)];
        let samples_of = |trains: bool| {
            let mut record = LiveRecord::of(Arc::new(FolderChannel::new(folder.path())));
            let mut samples = Vec::new();
            record.look_at(&mut |sight| {
                if let RecordUpdate::Memory(sample) = sight {
                    samples
                        .push((sample.seconds, sample.step, sample.resident_bytes, sample.available_bytes));
                }
            });
            assert_eq!(record.facts.last_step.is_some(), trains);
            samples
        };
        segment_of(&files, "b", Origin::Telemetry, &[&machine[..], &machine[..]]);
        assert_eq!(samples_of(false), []);
        segment(&files, "a", Origin::Sdk, &[9.0; 7]);
        assert_eq!(samples_of(true), [(1, 7, 3.0, 5.0), (2, 7, 3.0, 5.0)]);
    }
}
