//! Reads a log as it grows.

use super::table::{Row, Table};
use super::{Axis, EPOCH, Form, Point};
use crate::printed::{self, Lines, Printed, PrintedMetrics, PrintedReader};

/// A file that shows nothing of a log in so many bytes is none.
const JUDGED_BYTES_MAX: u64 = 256 * 1024;
/// So many objects may precede the first one with a step, such as the configuration.
const OBJECTS_BEFORE_MAX: u32 = 2;

/// What of a log could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Lines that are not rows of the log.
    pub unreadable: u64,
    /// Lines that are too long.
    pub too_long: u64,
    /// The last line has no end, and may be cut.
    pub is_cut: bool,
}

/// Reads one log, pushed in pieces.
#[derive(Debug)]
pub struct LogReader {
    shape: Shape,
    lines: Lines,
    axis: Option<Axis>,
    is_other: bool,
    objects_before: u32,
    read_bytes: u64,
    left_out: LeftOut,
}

#[derive(Debug)]
enum Shape {
    Table(Option<Table>),
    Lines(Box<PrintedReader>),
}

impl LogReader {
    /// Of a file of this form.
    #[must_use]
    pub fn new(form: Form) -> Self {
        let shape = match form {
            Form::Lines => {
                let mut reader = PrintedReader::default();
                reader.read_only_json();
                Shape::Lines(Box::new(reader))
            }
            _ => Shape::Table(None),
        };
        Self {
            shape,
            lines: Lines::default(),
            axis: None,
            is_other: false,
            objects_before: 0,
            read_bytes: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Takes the next bytes; calls `found` for the values in them.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Point)) {
        if self.is_other {
            return;
        }
        self.read_bytes += bytes.len() as u64;
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(bytes, |_, line| self.line(&String::from_utf8_lossy(line), &mut found));
        self.left_out.too_long = lines.long().map_or(0, |(count, _)| count);
        self.lines = lines;
        self.is_other |= self.axis.is_none() && self.read_bytes > JUDGED_BYTES_MAX;
    }

    /// What the last line says: an object is whole without its end, a row of a table may be cut.
    pub fn finish(&mut self, mut found: impl FnMut(Point)) {
        let last = String::from_utf8_lossy(self.lines.open()).into_owned();
        let is_whole = matches!(self.shape, Shape::Lines(_)) && printed::json_fields(&last).is_some();
        if is_whole {
            self.line(&last, &mut found);
        } else {
            self.left_out.is_cut |= !self.is_other && !last.trim().is_empty();
        }
        if let Shape::Lines(reader) = &mut self.shape {
            reader.finish(|metrics| found(point_of(metrics)));
        }
    }

    /// Whether the file is something else than a log.
    #[must_use]
    pub fn is_other(&self) -> bool {
        self.is_other
    }

    /// What its steps are, once the file was seen to be a log.
    #[must_use]
    pub fn axis(&self) -> Option<Axis> {
        self.axis
    }

    /// What could not be read so far.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    fn line(&mut self, line: &str, found: &mut impl FnMut(Point)) {
        if line.trim().is_empty() || self.is_other {
            return;
        }
        match &mut self.shape {
            Shape::Table(Some(table)) => match table.row(line) {
                Row::Point(point) => found(point),
                Row::Nothing => {}
                Row::Unreadable => self.left_out.unreadable += 1,
            },
            Shape::Table(table @ None) => {
                *table = Table::of(line);
                self.axis = table.as_ref().map(|table| table.axis);
                self.is_other = table.is_none();
            }
            Shape::Lines(reader) => {
                let fields = printed::json_fields(line);
                if let Some(fields) = fields.as_ref().filter(|_| self.axis.is_none()) {
                    self.axis = axis_of(fields);
                    self.objects_before += u32::from(self.axis.is_none());
                }
                let is_log = self.axis.is_some();
                self.is_other = !is_log && (fields.is_none() || self.objects_before > OBJECTS_BEFORE_MAX);
                match fields {
                    Some(_) if is_log => {
                        let mut found = |metrics: &PrintedMetrics| found(point_of(metrics));
                        reader.push(Printed::Stdout, line.as_bytes(), &mut found);
                        reader.push(Printed::Stdout, b"\n", &mut found);
                    }
                    Some(_) => {}
                    None => self.left_out.unreadable += 1,
                }
            }
        }
    }
}

fn point_of(metrics: &PrintedMetrics) -> Point {
    Point { step: metrics.step, values: metrics.values.clone() }
}

/// What the steps of a log are whose object has these fields; none without a step or a measure.
fn axis_of(fields: &serde_json::Map<String, serde_json::Value>) -> Option<Axis> {
    let (step, values) = printed::step_and_numbers(fields.clone());
    if !values.iter().any(|(name, _)| printed::is_measure(name)) {
        return None;
    }
    let has_epoch = values.iter().any(|(name, _)| name == EPOCH);
    if step.is_some() { Some(Axis::Steps) } else { has_epoch.then_some(Axis::Epochs) }
}
