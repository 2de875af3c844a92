//! The flight record of a script that writes none: its printed JSON lines, in segments with origin `stdout`.

use std::path::PathBuf;
use std::sync::Arc;

use trackway_core::Clock;
use trackway_recorder::{Origin, SegmentInfo, SegmentWriter};

use super::json_lines::{JsonLines, MetricLine};

/// Reads metrics from standard output and appends them to segments, the first of which begins with the first metric.
pub(super) struct StdoutMetrics {
    directory: PathBuf,
    info: SegmentInfo,
    clock: Arc<dyn Clock>,
    lines: JsonLines,
    writer: Option<SegmentWriter>,
    found: Vec<MetricLine>,
    last_step: u64,
    values: u64,
}

impl StdoutMetrics {
    /// Nothing is written before the first metric.
    pub fn new(directory: PathBuf, run_id: String, attempt_id: String, clock: Arc<dyn Clock>) -> Self {
        Self {
            directory,
            info: SegmentInfo { run_id, attempt_id, origin: Origin::Stdout },
            clock,
            lines: JsonLines::default(),
            writer: None,
            found: Vec::new(),
            last_step: 0,
            values: 0,
        }
    }

    /// How many values were found.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Takes what the script printed.
    pub fn push(&mut self, printed: &[u8]) {
        let found = &mut self.found;
        self.lines.push(printed, |line| found.push(line));
        self.write_found();
    }

    /// Ends the segment in order.
    pub fn finish(&mut self) {
        let found = &mut self.found;
        self.lines.finish(|line| found.push(line));
        self.write_found();
        if let Some(writer) = &mut self.writer {
            writer.finish();
        }
    }

    fn write_found(&mut self) {
        for line in std::mem::take(&mut self.found) {
            // A line that names no step (a closing summary) belongs to the last step that was named.
            self.last_step = line.step.unwrap_or(self.last_step);
            let values: Vec<(&str, f64)> =
                line.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            self.values += values.len() as u64;
            let writer = self.writer.get_or_insert_with(|| {
                SegmentWriter::create(&self.directory, self.info.clone(), Arc::clone(&self.clock))
            });
            writer.metrics(self.last_step, &values);
        }
    }
}
