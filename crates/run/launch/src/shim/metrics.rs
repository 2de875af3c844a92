//! The flight record of a script that writes none: metrics and settings that it prints, in segments with origin `stdout`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use trackway_core::Timestamp;
use trackway_formats::printed::{Printed, PrintedMetrics, PrintedReader};
use trackway_formats::record::{Frame, Item, SEGMENT_EXTENSION, SegmentReader};
use trackway_recorder::{Origin, SegmentWriter};
use trackway_redact::Redactor;

use super::adopting::PrintedSteps;
use super::side::Records;

/// So many times, at each of the first outputs, it checks whether the script writes a record itself: most record a
/// value right before they print it.
const LOOKS_AT_FIRST: u32 = 64;
/// How often it is looked from then on.
const LOOK_EVERY_MICROS: i64 = 1_000_000;
/// So much of a segment is looked at: a metric is named right before its first value.
const LOOK_BYTES_MAX: u64 = 64 * 1024;
/// Names of values that the recorder measures by itself begin so.
const OWN_NAMES: &str = "trackway/";

/// Reads metrics and settings from both outputs and appends them to segments, the first of which begins with the first
/// of them.
pub(super) struct OutputMetrics<'a> {
    redactor: &'a Redactor,
    steps: PrintedSteps,
    records: Records,
    reader: PrintedReader,
    writer: Option<SegmentWriter>,
    found: Vec<PrintedMetrics>,
    values: u64,
    /// When to check again; `None` once the script is known to record metrics.
    look_at: Option<i64>,
    looks: u32,
}

impl<'a> OutputMetrics<'a> {
    /// Nothing is written before the first metric.
    pub fn new(steps: PrintedSteps, records: Records, redactor: &'a Redactor) -> Self {
        Self {
            redactor,
            steps,
            records,
            reader: PrintedReader::default(),
            writer: None,
            found: Vec::new(),
            values: 0,
            look_at: Some(i64::MIN),
            looks: 0,
        }
    }

    /// How many values were found.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Takes what the script printed, at this time or later.
    pub fn push(&mut self, output: Printed, printed: &[u8], at: Timestamp) {
        self.look_for_recorder();
        let found = &mut self.found;
        self.reader.push(output, printed, |metrics| found.push(metrics));
        self.write_found(at);
    }

    /// Ends the segment in order.
    pub fn finish(&mut self) {
        let found = &mut self.found;
        self.reader.finish(|metrics| found.push(metrics));
        self.write_found(self.records.clock.now());
        if let Some(writer) = &mut self.writer {
            writer.finish();
        }
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
        for metrics in std::mem::take(&mut self.found) {
            let named = metrics.values.iter().map(|(name, value)| (name.as_str(), *value));
            let values: Vec<(&str, f64)> =
                named.filter(|(name, value)| !is_secret(self.redactor, name, *value)).collect();
            if values.is_empty() {
                continue;
            }
            self.values += values.len() as u64;
            self.steps.reached(at, metrics.step);
            self.writer().metrics(metrics.step, &values);
        }
    }
}

/// A line was read before redaction: what it prints beside a metric may be `password=12345678`.
fn is_secret(redactor: &Redactor, name: &str, value: f64) -> bool {
    let text = value.to_string();
    redactor.text(name) != name || redactor.value(name, &text) != text
}

/// Whether a recorder in the training process has named a metric.
fn records_metrics(directory: &Path) -> bool {
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
