//! The flight record of a script that writes none: metrics and settings that it prints, in segments with origin `stdout`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use trackway_core::Timestamp;
use trackway_formats::metric_files::{EPOCH, Point};
use trackway_formats::printed::{LeftOut, LeftOutKind, Printed, PrintedMetrics, PrintedReader};
use trackway_formats::record::{Frame, Item, SEGMENT_EXTENSION, SegmentReader};
use trackway_recorder::{Origin, SegmentWriter};
use trackway_redact::Redactor;

use super::adopting::ReachedSteps;
use super::course::KeptCourse;
use super::side::Records;

/// So many times, at each of the first outputs, it checks whether the script writes a record itself: most record a
/// value right before they print it.
const LOOKS_AT_FIRST: u32 = 64;
/// How often it is looked from then on.
const LOOK_EVERY_MICROS: i64 = 1_000_000;
/// So much of a segment is looked at: a metric is named right before its first value.
const LOOK_BYTES_MAX: u64 = 64 * 1024;
/// So many names are remembered with whether they are suspicious; then all are looked at again.
const KNOWN_NAMES_MAX: usize = 4096;
/// So many of the last records that name an epoch are remembered.
const LAST_RECORDS_MAX: usize = 64;
/// Names of values that the recorder measures by itself begin so.
const OWN_NAMES: &str = "trackway/";

/// How many values of each name were printed, and the last records with an epoch, as another thread sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct PrintedCounts(Arc<Mutex<PrintedSoFar>>);

#[derive(Debug, Default)]
struct PrintedSoFar {
    counts: HashMap<String, PrintedCount>,
    last_records: VecDeque<Point>,
}

/// How many values of one name were printed.
#[derive(Debug, Clone, Copy)]
struct PrintedCount {
    values: u64,
    /// Values that are another one than the value before.
    changes: u64,
    last: u64,
}

impl PrintedCounts {
    /// Of these names the count of the one that was printed most often.
    pub fn most_of<'n>(&self, names: impl Iterator<Item = &'n str>) -> u64 {
        let so_far = self.lock();
        names.filter_map(|name| so_far.count(name)).map(|count| count.values).max().unwrap_or(0)
    }

    /// How many values of this name were printed that are another one than the value before.
    pub fn changes_of(&self, name: &str) -> u64 {
        self.lock().count(name).map_or(0, |count| count.changes)
    }

    /// The last records that named an epoch, in order.
    pub fn last_records(&self) -> Vec<Point> {
        self.lock().last_records.iter().cloned().collect()
    }

    /// These values were printed together.
    pub fn add_record(&self, step: u64, values: &[(&str, f64)]) {
        self.add(values);
        if values.len() > 1 && values.iter().any(|(name, _)| *name == EPOCH) {
            let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let record = Point { step: step.try_into().unwrap_or(i64::MAX), values };
            let mut so_far = self.lock();
            if so_far.last_records.len() >= LAST_RECORDS_MAX {
                so_far.last_records.pop_front();
            }
            so_far.last_records.push_back(record);
        }
    }

    /// These values were printed.
    pub fn add(&self, values: &[(&str, f64)]) {
        let mut so_far = self.lock();
        let counts = &mut so_far.counts;
        for (name, value) in values {
            let last = value.to_bits();
            if let Some(count) = counts.get_mut(*name) {
                count.values += 1;
                count.changes += u64::from(count.last != last);
                count.last = last;
            } else if counts.len() < KNOWN_NAMES_MAX {
                counts.insert((*name).to_owned(), PrintedCount { values: 1, changes: 1, last });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PrintedSoFar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrintedSoFar {
    fn count(&self, name: &str) -> Option<PrintedCount> {
        self.counts.get(name).or_else(|| self.counts.get(&name.to_lowercase())).copied()
    }
}

/// What was found in what the script printed.
#[derive(Debug, Default)]
pub(super) struct FoundMetrics {
    /// How many values were recorded.
    pub values: u64,
    /// What was not.
    pub left_out: Vec<LeftOut>,
}

/// Reads metrics and settings from both outputs and appends them to segments, the first of which begins with the first
/// of them.
pub(super) struct OutputMetrics {
    redactor: Arc<Redactor>,
    /// Of each name whether its values may be secret by it.
    suspicious: HashMap<String, bool>,
    steps: ReachedSteps,
    printed: PrintedCounts,
    kept: KeptCourse,
    records: Records,
    reader: PrintedReader,
    writer: Option<SegmentWriter>,
    found: Vec<PrintedMetrics>,
    values: u64,
    secret_values: u64,
    /// When to check again; `None` once the script is known to record metrics.
    look_at: Option<i64>,
    looks: u32,
}

impl OutputMetrics {
    /// Nothing is written before the first metric.
    pub fn new(
        (steps, printed): (ReachedSteps, PrintedCounts),
        kept: KeptCourse,
        records: Records,
        redactor: Arc<Redactor>,
    ) -> Self {
        let mut reader = PrintedReader::default();
        reader.count_on(kept.course());
        Self {
            redactor,
            suspicious: HashMap::default(),
            steps,
            printed,
            kept,
            records,
            reader,
            writer: None,
            found: Vec::new(),
            values: 0,
            secret_values: 0,
            look_at: Some(i64::MIN),
            looks: 0,
        }
    }

    /// Takes what the script printed, at this time or later.
    pub fn push(&mut self, output: Printed, printed: &[u8], at: Timestamp) {
        self.look_for_recorder();
        let found = &mut self.found;
        self.reader.push(output, printed, |metrics| found.push(metrics));
        self.write_found(at);
        self.kept.keep(self.reader.course(), self.records.clock.monotonic_micros());
    }

    /// Ends the segment in order.
    pub fn finish(mut self) -> FoundMetrics {
        let found = &mut self.found;
        self.reader.finish(|metrics| found.push(metrics));
        self.write_found(self.records.clock.now());
        self.kept.keep(self.reader.course(), i64::MAX);
        if let Some(writer) = &mut self.writer {
            writer.finish();
        }
        FoundMetrics { values: self.values, left_out: self.left_out() }
    }

    fn left_out(&self) -> Vec<LeftOut> {
        let (kind, count) = (LeftOutKind::SecretValues, self.secret_values);
        let secret = LeftOut { kind, output: None, count, line: None };
        self.reader.left_out().into_iter().chain((count > 0).then_some(secret)).collect()
    }

    /// A script that records metrics prints them as well, rounded and for people: only objects count from then on.
    fn look_for_recorder(&mut self) {
        let now = self.records.clock.monotonic_micros();
        let is_time = |at| now >= at || self.looks < LOOKS_AT_FIRST;
        if !self.look_at.is_some_and(is_time) {
            return;
        }
        self.looks += 1;
        self.look_at = Some(now + LOOK_EVERY_MICROS);
        if records_metrics(&self.records.folder) {
            self.look_at = None;
            self.reader.read_only_json();
        }
    }

    fn writer(&mut self) -> &mut SegmentWriter {
        self.writer.get_or_insert_with(|| self.records.writer(Origin::Stdout))
    }

    fn write_found(&mut self, at: Timestamp) {
        for (name, value) in self.reader.take_settings() {
            self.writer().param(&name, &value);
        }
        let found = std::mem::take(&mut self.found);
        let first = found.iter().position(|metrics| self.has_public(metrics)).unwrap_or(found.len());
        self.secret_values += found[..first].iter().map(|metrics| metrics.values.len() as u64).sum::<u64>();
        if first == found.len() {
            return;
        }
        let mut writer = self.writer.take().unwrap_or_else(|| self.records.writer(Origin::Stdout));
        writer.together(|writer| found[first..].iter().for_each(|metrics| self.write(writer, metrics, at)));
        self.writer = Some(writer);
        // Its room is used again.
        self.found = found;
        self.found.clear();
    }

    fn has_public(&mut self, metrics: &PrintedMetrics) -> bool {
        metrics.values.iter().any(|(name, value)| !self.is_secret(name, *value))
    }

    fn write(&mut self, writer: &mut SegmentWriter, metrics: &PrintedMetrics, at: Timestamp) {
        let mut values: Vec<(&str, f64)> = Vec::with_capacity(metrics.values.len());
        for (name, value) in &metrics.values {
            if !self.is_secret(name, *value) {
                values.push((name, *value));
            }
        }
        self.secret_values += (metrics.values.len() - values.len()) as u64;
        if values.is_empty() {
            return;
        }
        self.values += values.len() as u64;
        self.steps.reached(at, metrics.step);
        self.printed.add_record(metrics.step, &values);
        writer.metrics(metrics.step, &values);
    }

    /// A line was read before redaction: what it prints beside a metric may be `password=12345678`.
    fn is_secret(&mut self, name: &str, value: f64) -> bool {
        let suspicious = match self.suspicious.get(name) {
            Some(known) => *known,
            None => {
                if self.suspicious.len() >= KNOWN_NAMES_MAX {
                    self.suspicious.clear();
                }
                let suspicious = self.redactor.is_name_suspicious(name);
                self.suspicious.insert(name.to_owned(), suspicious);
                suspicious
            }
        };
        if !suspicious {
            return self.redactor.is_number_secret(value);
        }
        let text = value.to_string();
        self.redactor.text(name) != name || self.redactor.value(name, &text) != text
    }
}

/// Whether a recorder in the training process has named a metric.
pub(super) fn records_metrics(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.extension().is_some_and(|extension| extension == SEGMENT_EXTENSION))
        .any(|path| names_metrics(&path).unwrap_or(false))
}

fn names_metrics(segment: &Path) -> std::io::Result<bool> {
    let mut bytes = Vec::new();
    File::open(segment)?.take(LOOK_BYTES_MAX).read_to_end(&mut bytes)?;
    let mut reader = SegmentReader::new();
    reader.push(&bytes);
    let mut by_recorder = false;
    while let Ok(Some(item)) = reader.next_item() {
        let Item::Frame(located) = item else { continue };
        match located.frame {
            Frame::Header(header) => by_recorder = header.origin == Origin::Sdk,
            Frame::NameDefinition(name) if by_recorder && !name.name.starts_with(OWN_NAMES) => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}
