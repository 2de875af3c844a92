//! Whether a table or a file of objects that looks like a log is one: a decision over how it grows and what else the script said.

use std::collections::{BTreeMap, BTreeSet};

use super::{Axis, EPOCH, Point};

/// At most so many names are compared with what was printed.
const NAMES_MAX: usize = 1024;
/// The values of a log of epochs are read once there are so many more of them than printed ones: a row may be seen
/// before what is printed with it.
const AHEAD: u64 = 2;
/// More values that come before a second look are a table of data, where no logger writes.
const VALUES_MAX: usize = 500_000;
const AT_ONCE: &str = "it was written at once, and neither its name nor its folder is that of a log";

/// What is known beside the rows.
#[derive(Debug, Clone, Copy)]
pub struct LogFacts {
    /// Nothing writes any more.
    pub is_last: bool,
    /// What its steps are.
    pub axis: Axis,
    /// Values that the script printed of one of its names at most.
    pub printed: u64,
    /// The script records metrics with the recorder, at steps of the training.
    pub is_recorded: bool,
}

/// What is to be done with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Its values are metrics.
    Read,
    /// It is not known yet.
    Wait,
    /// Its values are not recorded, and why.
    Not(&'static str),
}

/// The rows, which wait for the decision, and what was seen of them.
#[derive(Debug, Default)]
pub struct Judge {
    is_place_of_logs: bool,
    rows: Vec<Point>,
    rows_at_look: usize,
    value_count: usize,
    last: Option<i64>,
    /// Why they are not those of a log.
    why_not: Option<&'static str>,
    appends: u32,
    /// How many values each name has.
    names: BTreeMap<String, u64>,
}

impl Judge {
    /// `is_place_of_logs`: loggers write there.
    #[must_use]
    pub fn new(is_place_of_logs: bool) -> Self {
        Self { is_place_of_logs, ..Self::default() }
    }

    /// Takes a row.
    pub fn take(&mut self, point: Point) {
        if self.why_not.is_some() {
            return;
        }
        self.value_count += point.values.len();
        let is_falling = self.last.is_some_and(|last| point.step < last);
        let is_data = !self.is_place_of_logs && self.value_count > VALUES_MAX;
        if is_falling || is_data {
            self.why_not = Some(if is_falling { "its steps fall" } else { AT_ONCE });
            self.rows = Vec::new();
            return;
        }
        self.last = Some(point.step);
        for (name, _) in &point.values {
            if let Some(count) = self.names.get_mut(name) {
                *count += 1;
            } else if self.names.len() < NAMES_MAX && name != EPOCH {
                self.names.insert(name.clone(), 1);
            }
        }
        self.rows.push(point);
    }

    /// All rows that are there at one look were taken.
    pub fn end_look(&mut self) {
        self.appends += u32::from(self.rows.len() > self.rows_at_look);
        self.rows_at_look = self.rows.len();
    }

    /// The rows that were taken do not count any more: the file was rewritten, or what is recorded has them.
    pub fn begin_again(&mut self) {
        *self = Self { appends: self.appends, ..Self::new(self.is_place_of_logs) };
    }

    /// The rows that were taken.
    #[must_use]
    pub fn into_rows(self) -> Vec<Point> {
        self.rows
    }

    /// The names of its metrics.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The names that are left to what the script prints: that has more than twice as many values, as a bar has of a
    /// log of each fiftieth step. `printed`: how many values of a name were printed that are another one than the value
    /// before; a bar repeats those of an epoch.
    pub fn left_to_printed(&self, printed: impl Fn(&str) -> u64) -> BTreeSet<String> {
        let is_finer =
            |(name, count): &(&String, &u64)| printed(name) > count.saturating_mul(2).saturating_add(AHEAD);
        self.names.iter().filter(is_finer).map(|(name, _)| name.clone()).collect()
    }

    /// Decides.
    #[must_use]
    pub fn verdict(&self, facts: LogFacts) -> Verdict {
        let grows = self.appends >= 2 || self.is_place_of_logs;
        let ahead = if facts.is_last { 1 } else { AHEAD };
        let row_count = self.rows.len() as u64;
        match (facts, self.why_not) {
            (_, Some(why)) => Verdict::Not(why),
            _ if row_count == 0 => Verdict::Wait,
            (LogFacts { is_last: true, .. }, _) if !grows => Verdict::Not(AT_ONCE),
            _ if !grows => Verdict::Wait,
            (LogFacts { axis: Axis::Epochs, is_recorded: true, .. }, _) => Verdict::Wait,
            (LogFacts { axis: Axis::Epochs, printed, .. }, _)
                if row_count < printed.saturating_add(ahead) =>
            {
                Verdict::Wait
            }
            _ => Verdict::Read,
        }
    }
}
