//! Reads a log as it grows.

use super::table::{Row, Table};
use super::{Axis, Form, Point};
use crate::printed::{self, Printed, PrintedMetrics, PrintedReader};

/// A longer line is left out.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// A file that shows nothing of a log in so many bytes is none.
const JUDGED_BYTES_MAX: u64 = 256 * 1024;
/// So many objects may precede the first one with a step, such as the configuration.
const OBJECTS_BEFORE_MAX: u32 = 2;
/// Fields that have the step of an object.
const STEP_FIELDS: [&str; 8] =
    ["global_step", "step", "_step", "iteration", "iter", "num_updates", "update", "round"];

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
    lines: WholeLines,
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
            lines: WholeLines::default(),
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
        let too_long = lines.push(bytes, |line| self.line(line, &mut found));
        self.left_out.too_long += too_long;
        self.lines = lines;
        self.is_other |= self.axis.is_none() && self.read_bytes > JUDGED_BYTES_MAX;
    }

    /// What the last line says: an object is whole without its end, a row of a table may be cut.
    pub fn finish(&mut self, mut found: impl FnMut(Point)) {
        let last = std::mem::take(&mut self.lines).into_open();
        let is_whole = matches!(self.shape, Shape::Lines(_)) && printed::json_fields(&last).is_some();
        if is_whole {
            self.line(&last, &mut found);
        } else {
            self.left_out.is_cut |= !last.trim().is_empty();
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
                        let mut found = |metrics| found(point_of(metrics));
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

fn point_of(metrics: PrintedMetrics) -> Point {
    Point { step: metrics.step.try_into().unwrap_or(i64::MAX), values: metrics.values }
}

/// What the steps of a log are whose object has these fields; none without a step or a measure.
fn axis_of(fields: &serde_json::Map<String, serde_json::Value>) -> Option<Axis> {
    let has_number = |name: &str| fields.get(name).is_some_and(serde_json::Value::is_number);
    let measures = |name: &str, value: &serde_json::Value| match value {
        serde_json::Value::Object(inner) => inner.keys().any(|name| printed::is_measure(name)),
        // NaN is a text with a mark.
        _ => (value.is_number() || value.is_string()) && printed::is_measure(name),
    };
    if !fields.iter().any(|(name, value)| measures(name, value)) {
        return None;
    }
    let has_step = STEP_FIELDS.into_iter().any(has_number);
    if has_step { Some(Axis::Steps) } else { has_number("epoch").then_some(Axis::Epochs) }
}

/// Puts lines together that end with a newline.
#[derive(Debug, Default)]
struct WholeLines {
    open: Vec<u8>,
    is_too_long: bool,
}

impl WholeLines {
    /// How many lines were too long.
    fn push(&mut self, bytes: &[u8], mut found: impl FnMut(&str)) -> u64 {
        let (mut begin, mut too_long) = (0, 0);
        for end in memchr::memchr_iter(b'\n', bytes) {
            self.add(&bytes[begin..end]);
            begin = end + 1;
            match self.is_too_long {
                true => too_long += 1,
                false => found(String::from_utf8_lossy(&self.open).trim_end_matches('\r')),
            }
            self.open.clear();
            self.is_too_long = false;
        }
        self.add(&bytes[begin..]);
        too_long
    }

    fn add(&mut self, part: &[u8]) {
        self.is_too_long |= self.open.len() + part.len() > LINE_BYTES_MAX;
        if self.is_too_long {
            self.open.clear();
        } else {
            self.open.extend_from_slice(part);
        }
    }

    fn into_open(self) -> String {
        String::from_utf8_lossy(&self.open).into_owned()
    }
}
