use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_core::{Clock, MetricStep, Step, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::frames::FRAME_OVERHEAD_BYTES;
use trackway_formats::record::{
    CheckpointFrame, Close, ControlAck, ControlOutcome, Encoder, Event, Heartbeat, METRIC_NAMES_MAX, Origin,
    Param, SEGMENT_EXTENSION, SegmentHeader,
};
use trackway_redact::Redactor;

use crate::segment_room::{frame_room, max_segment_bytes, steps_of_series, values_of_frame};

/// After a write failed, the next try waits so long: a full disk must not cost the training loop time.
pub const RETRY_INTERVAL_MICROS: i64 = 1_000_000;

/// Frames that are written together are written once they are this many bytes.
const TOGETHER_BYTES_MAX: usize = 64 << 10;

/// Room that is kept for the close frame.
const CLOSE_FRAME_BYTES: u64 = FRAME_OVERHEAD_BYTES as u64 + 16;

/// How many names that are taken already are passed before a new segment is given up for now.
const MAX_NAME_TRIES: u32 = 16;

/// How often a write that a signal interrupted is repeated.
const MAX_INTERRUPTED_TRIES: u32 = 16;

/// Frames that could not be written and that no segment names, of all writers of this process.
static UNNAMED_DROPS: AtomicU64 = AtomicU64::new(0);

/// Frames of all writers of this process that are lost and that no segment names: the disk was full to the end.
#[must_use]
pub fn unnamed_drops() -> u64 {
    UNNAMED_DROPS.load(Ordering::Relaxed)
}

/// What the segments of a process record about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The run, as `TRACKWAY_RUN` names it.
    pub run_id: String,
    /// The attempt, as `TRACKWAY_ATTEMPT` names it.
    pub attempt_id: String,
    /// The writer.
    pub origin: Origin,
}

/// Writes the flight record of one process into a folder, as one segment after the other.
///
/// Each call is one `write(2)` at the end of the file: what was logged belongs to the kernel when the call returns, and
/// SIGKILL loses nothing. Nothing is synced, nothing waits, nothing panics. When a write comes back short or fails (a
/// full disk), the segment is left with its torn tail, another is begun, and until that works frames are dropped and
/// counted; an event `frames_dropped` reports it as soon as there is room.
///
/// Every name and value passes the redactor of the process first: a secret reaches no file, whatever the source.
///
/// Belongs to the process that made it; after a fork the child makes its own.
pub struct SegmentWriter {
    folder: PathBuf,
    info: SegmentInfo,
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
    /// The names of the last metrics, and what is written of those that hold a secret: a loop logs the same names in
    /// the same order.
    names: Vec<(String, Name)>,
    /// All names that were recorded.
    known_names: HashSet<String>,
    /// Values of names beyond [`METRIC_NAMES_MAX`]: the first such name, and how many values.
    nameless: Option<(String, u64)>,
    pid: u32,
    started_micros: i64,
    next_segment_sequence: u32,
    open: Option<OpenSegment>,
    buffer: Vec<u8>,
    /// Frames in the buffer that wait for others; none: each call writes.
    waiting: Option<u64>,
    dropped_frames: u64,
    /// Those of them that a segment names.
    named_drops: u64,
    unreported_drops: u64,
    last_error: Option<String>,
    /// On the monotonic clock; `None`: at once.
    retry_at_micros: Option<i64>,
}

/// What is written of the name of a metric.
enum Name {
    AsItIs,
    /// It holds a secret.
    Clean(String),
    /// There are too many names already.
    Refused,
}

/// What is written of a value with this name.
fn written((known, name): &(String, Name), value: f64) -> Option<(&str, f64)> {
    match name {
        Name::AsItIs => Some((known, value)),
        Name::Clean(clean) => Some((clean, value)),
        Name::Refused => None,
    }
}

/// The step of values.
#[derive(Clone, Copy)]
enum At {
    Step(Step),
    /// Below 0.
    Early(MetricStep),
}

struct OpenSegment {
    file: File,
    path: PathBuf,
    encoder: Encoder,
    written_bytes: u64,
    max_bytes: u64,
}

impl SegmentWriter {
    /// Begins the first segment of this process. When the disk refuses, later calls try again.
    #[must_use]
    pub fn create(folder: &Path, info: SegmentInfo, clock: Arc<dyn Clock>) -> Self {
        let mut writer = Self {
            folder: folder.to_owned(),
            info,
            pid: std::process::id(),
            started_micros: clock.now().as_micros(),
            clock,
            redactor: Redactor::of_this_process(),
            names: Vec::new(),
            known_names: HashSet::new(),
            nameless: None,
            next_segment_sequence: 0,
            open: None,
            buffer: Vec::new(),
            waiting: None,
            dropped_frames: 0,
            named_drops: 0,
            unreported_drops: 0,
            last_error: None,
            retry_at_micros: None,
        };
        // Whether this works shows when the first segment is begun.
        let _ = trackway_files::make_folders(folder);
        writer.make_ready();
        writer
    }

    /// The segment that is being written; `None` while the disk refuses.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.open.as_ref().map(|open| open.path.as_path())
    }

    /// Calls whose frames could not be written and are lost.
    #[must_use]
    pub fn dropped_frames(&self) -> u64 {
        self.dropped_frames
    }

    /// Those of them that no segment names: the disk was full to the end.
    #[must_use]
    pub fn unnamed_drops(&self) -> u64 {
        self.dropped_frames - self.named_drops
    }

    /// What is recorded up to [`Self::write_held`] is written with as few writes as its size allows: for a writer that
    /// records what has happened already, and is not in the training loop. Where such a write fails, all of its frames
    /// count as dropped.
    pub fn hold(&mut self) {
        if self.waiting.is_none() {
            self.buffer.clear();
            self.waiting = Some(0);
        }
    }

    /// Writes what waits since [`Self::hold`].
    pub fn write_held(&mut self) {
        self.write_waiting();
        self.waiting = None;
    }

    /// Values of metrics at a step.
    pub fn metrics(&mut self, step: Step, values: &[(impl AsRef<str>, f64)]) {
        self.metrics_at(self.clock.now(), step, values);
    }

    /// Values of metrics that were measured at another time, by another source. Where none of them is recorded, the step still is.
    pub fn metrics_at(&mut self, at: Timestamp, step: Step, values: &[(impl AsRef<str>, f64)]) {
        self.values_at(at, At::Step(step), values);
    }

    /// Values of the same metrics at one step after the other. `values` has those of the first step, then those of the next.
    pub fn series_at(&mut self, at: Timestamp, names: &[String], steps: &[Step], values: &[f64]) {
        let count = names.len();
        let together = steps_of_series(names, self.frame_room());
        let Some(together) = together.filter(|_| self.are_plain(names.iter().map(String::as_str))) else {
            for (step, values) in steps.iter().zip(values.chunks(count.max(1))) {
                let values: Vec<(&str, f64)> =
                    names.iter().map(String::as_str).zip(values.iter().copied()).collect();
                self.metrics_at(at, *step, &values);
            }
            return;
        };
        for (steps, values) in steps.chunks(together).zip(values.chunks(together * count)) {
            if self.open.as_ref().is_some_and(|open| !open.encoder.has_room_for(count)) {
                self.close_segment();
            }
            self.append_frames(steps.len() as u64, |encoder, out| {
                encoder.series(out, at, names, steps, values);
            });
        }
    }

    /// The same at a step of another source, which may be below 0.
    pub fn metrics_at_any_step(&mut self, at: Timestamp, step: MetricStep, values: &[(&str, f64)]) {
        let step = Step::try_from(step).map_or(At::Early(step), At::Step);
        self.values_at(at, step, values);
    }

    fn values_at(&mut self, at: Timestamp, step: At, values: &[(impl AsRef<str>, f64)]) {
        let are_plain = self.are_plain(values.iter().map(|(name, _)| name.as_ref()));
        let names = std::mem::take(&mut self.names);
        if are_plain {
            self.clean_values_at(at, step, values);
        } else {
            let clean: Vec<(&str, f64)> =
                names.iter().zip(values).filter_map(|(name, (_, value))| written(name, *value)).collect();
            self.refuse(values.len() - clean.len());
            if let (At::Step(step), true) = (step, clean.is_empty()) {
                let heartbeat = Heartbeat { at, step };
                self.append(|encoder, out| encoder.heartbeat(out, &heartbeat));
            }
            self.clean_values_at(at, step, &clean);
        }
        self.names = names;
    }

    fn clean_values_at(&mut self, at: Timestamp, step: At, values: &[(impl AsRef<str>, f64)]) {
        let mut rest = values;
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(values_of_frame(rest, self.frame_room()));
            rest = later;
            if self.open.as_ref().is_some_and(|open| !open.encoder.has_room_for(chunk.len())) {
                self.close_segment();
            }
            self.append(|encoder, out| match step {
                At::Step(step) => encoder.metrics(out, at, step, chunk),
                At::Early(step) => encoder.early_metrics(out, at, step, chunk),
            });
        }
    }

    fn frame_room(&self) -> usize {
        frame_room(self.open.as_ref().map_or_else(max_segment_bytes, |open| open.max_bytes))
    }

    /// Looks for secrets in the names that are not those of the last time, and refuses those beyond the bound. Whether all are written as
    /// they are.
    fn are_plain<'n>(&mut self, names: impl ExactSizeIterator<Item = &'n str>) -> bool {
        let count = names.len();
        for (place, name) in names.enumerate() {
            if self.names.get(place).is_some_and(|(known, _)| known == name) {
                continue;
            }
            let read = (name.to_owned(), self.read_name(name));
            match self.names.get_mut(place) {
                Some(known) => *known = read,
                None => self.names.push(read),
            }
        }
        self.names[..count].iter().all(|(_, name)| matches!(name, Name::AsItIs))
    }

    fn read_name(&mut self, name: &str) -> Name {
        if !self.known_names.contains(name) {
            if self.known_names.len() >= METRIC_NAMES_MAX {
                self.nameless.get_or_insert_with(|| (self.redactor.text(name).into_owned(), 0));
                return Name::Refused;
            }
            self.known_names.insert(name.to_owned());
        }
        let clean = self.redactor.text(name);
        if clean == name { Name::AsItIs } else { Name::Clean(clean.into_owned()) }
    }

    /// Counts values without a name, and writes an event at the first of them.
    fn refuse(&mut self, count: usize) {
        let Some((_, values)) = self.nameless.as_mut().filter(|_| count > 0) else { return };
        let is_first = *values == 0;
        *values += count as u64;
        if is_first {
            self.report_nameless();
        }
    }

    fn report_nameless(&mut self) {
        let Some((name, values)) = self.nameless.clone() else { return };
        let (names_max, values) = (METRIC_NAMES_MAX.to_string(), values.to_string());
        let fields = [("names_max", names_max.as_str()), ("name", &name), ("values", &values)];
        self.event(EventKind::MetricNamesFull.as_str(), None, &fields);
    }

    /// An event. Of a pair of fields `name` and `value` the name determines whether the value is secret.
    pub fn event(&mut self, kind: &str, step: Option<Step>, fields: &[(&str, &str)]) {
        let at = self.clock.now();
        let redactor = Arc::clone(&self.redactor);
        let pair = fields.iter().find(|(name, _)| *name == "name").map(|(_, value)| *value);
        let clean: Vec<_> = fields
            .iter()
            .map(|(name, value)| {
                let evidence = pair.filter(|_| *name == "value").unwrap_or(name);
                (redactor.text(name), redactor.value(evidence, value))
            })
            .collect();
        let clean: Vec<(&str, &str)> = clean.iter().map(|(name, value)| (&**name, &**value)).collect();
        let kind = redactor.text(kind);
        self.append(|encoder, out| encoder.event_parts(out, at, step, &kind, &clean));
    }

    /// A parameter of the run.
    pub fn param(&mut self, name: &str, value: &str) {
        let value = self.redactor.value(name, value).into_owned();
        let param = Param { at: self.clock.now(), name: self.redactor.text(name).into_owned(), value };
        self.append(|encoder, out| encoder.param(out, &param));
    }

    /// A sign of life.
    pub fn heartbeat(&mut self, step: Step) {
        let heartbeat = Heartbeat { at: self.clock.now(), step };
        self.append(|encoder, out| encoder.heartbeat(out, &heartbeat));
    }

    /// What was done with a checkpoint.
    pub fn checkpoint(&mut self, checkpoint: &CheckpointFrame) {
        self.append(|encoder, out| encoder.checkpoint(out, checkpoint));
    }

    /// The answer to a command of the control file.
    pub fn control_ack(&mut self, id: u64, outcome: ControlOutcome, step: Option<Step>) {
        let ack = ControlAck { at: self.clock.now(), id, outcome, step };
        self.append(|encoder, out| encoder.control_ack(out, &ack));
    }

    /// Ends the segment in order. A later call begins another one.
    pub fn finish(&mut self) {
        self.report_nameless();
        self.close_segment();
    }

    /// Appends what `encode` makes with one write, beginning another segment when this one is full or broken.
    fn append(&mut self, encode: impl Fn(&mut Encoder, &mut Vec<u8>)) {
        self.append_frames(1, encode);
    }

    /// The same of what counts as so many frames.
    fn append_frames(&mut self, count: u64, encode: impl Fn(&mut Encoder, &mut Vec<u8>)) {
        // Twice at most: once in the open segment, once in the one after it.
        for _ in 0..2 {
            if !self.make_ready() {
                break;
            }
            if self.append_here(count, &encode) {
                return;
            }
        }
        self.drop_frames(count);
    }

    fn drop_frames(&mut self, count: u64) {
        self.dropped_frames += count;
        self.unreported_drops += count;
        UNNAMED_DROPS.fetch_add(count, Ordering::Relaxed);
    }

    /// A segment has the count of them now.
    fn name_drops(&mut self) {
        UNNAMED_DROPS.fetch_sub(self.unnamed_drops(), Ordering::Relaxed);
        self.named_drops = self.dropped_frames;
    }

    /// Tries the open segment. False: it is gone now, and the frame is not written.
    fn append_here(&mut self, count: u64, encode: &impl Fn(&mut Encoder, &mut Vec<u8>)) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        if self.waiting.is_none() {
            self.buffer.clear();
        }
        let before = self.buffer.len();
        let frame_count = open.encoder.frame_count();
        encode(&mut open.encoder, &mut self.buffer);
        if open.written_bytes + self.buffer.len() as u64 + CLOSE_FRAME_BYTES > open.max_bytes {
            open.encoder.rewind_to(frame_count);
            self.buffer.truncate(before);
            self.close_segment();
            return false;
        }
        if let Some(waiting) = &mut self.waiting {
            *waiting += count;
            if self.buffer.len() >= TOGETHER_BYTES_MAX {
                self.write_waiting();
            }
            return true;
        }
        self.write_buffer()
    }

    /// Writes the frames that wait for others, or counts them as dropped.
    fn write_waiting(&mut self) {
        let waiting = self.waiting.unwrap_or(0);
        if waiting > 0 {
            self.waiting = Some(0);
            if !self.write_buffer() {
                self.drop_frames(waiting);
            }
        }
        self.buffer.clear();
    }

    fn write_buffer(&mut self) -> bool {
        let Some(open) = &mut self.open else { return false };
        match write_once(&mut open.file, &self.buffer) {
            Ok(()) => {
                open.written_bytes += self.buffer.len() as u64;
                true
            }
            Err(error) => {
                // The torn tail stays: a reader passes it, and nothing may follow it in this file.
                self.open = None;
                self.next_segment_sequence += 1;
                self.last_error = Some(error.to_string());
                false
            }
        }
    }

    /// Whether a segment is open, after trying to begin one if it is time to.
    fn make_ready(&mut self) -> bool {
        if self.open.is_some() {
            return true;
        }
        if let Some(retry_at) = self.retry_at_micros
            && self.clock.monotonic_micros() < retry_at
        {
            return false;
        }
        match self.begin_segment() {
            Ok(open) => {
                self.open = Some(open);
                self.retry_at_micros = None;
                self.unreported_drops = 0;
                true
            }
            Err(error) => {
                self.last_error = Some(error.to_string());
                self.retry_at_micros = Some(self.clock.monotonic_micros() + RETRY_INTERVAL_MICROS);
                false
            }
        }
    }

    /// Makes the next segment's file and writes its header, followed by the count of dropped frames.
    fn begin_segment(&mut self) -> io::Result<OpenSegment> {
        let (file, path) = self.create_file()?;
        let mut open = OpenSegment {
            file,
            path,
            encoder: Encoder::new(),
            written_bytes: 0,
            max_bytes: max_segment_bytes(),
        };
        let header = self.header();
        self.buffer.clear();
        open.encoder.begin(&mut self.buffer, &header);
        if self.unreported_drops > 0 {
            let event = self.drop_event();
            open.encoder.event(&mut self.buffer, &event);
        }
        let written = if self.buffer.len() as u64 + CLOSE_FRAME_BYTES > open.max_bytes {
            Err(io::Error::from(io::ErrorKind::FileTooLarge))
        } else {
            write_once(&mut open.file, &self.buffer)
        };
        if let Err(error) = written {
            // A file without a whole header is useless, and retries must not fill the folder.
            let _ = trackway_files::unlink(&open.path);
            return Err(error);
        }
        open.written_bytes = self.buffer.len() as u64;
        self.name_drops();
        self.buffer.clear();
        Ok(open)
    }

    fn create_file(&mut self) -> io::Result<(File, PathBuf)> {
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..MAX_NAME_TRIES {
            let path = self.folder.join(format!(
                "{:016}-{}-{}-{:06}.{SEGMENT_EXTENSION}",
                self.started_micros, self.pid, self.info.origin, self.next_segment_sequence
            ));
            match trackway_files::open_own(OpenOptions::new().append(true).create_new(true), &path) {
                Ok(file) => return Ok((file, path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.next_segment_sequence += 1;
                    last = error;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn header(&self) -> SegmentHeader {
        SegmentHeader {
            at: self.clock.now(),
            origin: self.info.origin,
            pid: self.pid,
            segment_sequence: self.next_segment_sequence,
            boot_id: boot_id(),
            run_id: self.info.run_id.clone(),
            attempt_id: self.info.attempt_id.clone(),
            writer: concat!("trackway-recorder ", env!("CARGO_PKG_VERSION")).into(),
        }
    }

    fn drop_event(&self) -> Event {
        let why = self.last_error.clone().unwrap_or_default();
        Event {
            at: self.clock.now(),
            step: None,
            kind: EventKind::FramesDropped.as_str().into(),
            fields: vec![("count".into(), self.unreported_drops.to_string()), ("why".into(), why)],
        }
    }

    /// Ends the open segment with a close frame, if there is room for it.
    fn close_segment(&mut self) {
        self.write_waiting();
        let Some(mut open) = self.open.take() else {
            return;
        };
        self.next_segment_sequence += 1;
        self.buffer.clear();
        let close = Close { at: self.clock.now(), dropped_frames: self.dropped_frames };
        open.encoder.close(&mut self.buffer, &close);
        // A segment without a close frame reads as one that was cut off; no frame is lost by that.
        let has_room = open.written_bytes + self.buffer.len() as u64 <= open.max_bytes;
        if has_room && write_once(&mut open.file, &self.buffer).is_ok() {
            self.name_drops();
        }
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            self.close_segment();
        }
    }
}

/// One write. Less than all of it is an error: what follows a torn frame must not be in the same file.
fn write_once(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    for _ in 0..MAX_INTERRUPTED_TRIES {
        match file.write(bytes) {
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(written) => {
                return Err(io::Error::new(
                    io::ErrorKind::WriteZero,
                    format!("a write of {} bytes stopped short, at {written}", bytes.len()),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(io::ErrorKind::Interrupted))
}

/// The kernel's id of this boot; empty if there is none.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
