//! Whether a table or a file of objects that looks like a log is one: a decision over how it grows and what else the script said.

use std::collections::{BTreeMap, BTreeSet};

use super::{Axis, Point};

/// At most so many names are compared with what was printed.
const NAMES_MAX: usize = 1024;
/// The values of a log of epochs are read once there are so many more of them than printed ones: a row may be seen before what is printed with it.
const AHEAD: u64 = 2;

/// What is known beside the rows.
#[derive(Debug, Clone, Copy)]
pub struct LogFacts {
    /// Loggers write there.
    pub is_place_of_logs: bool,
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

/// What was seen of the rows.
#[derive(Debug, Default)]
pub struct Judge {
    rows: u64,
    rows_at_look: u64,
    last: Option<i64>,
    is_falling: bool,
    appends: u32,
    /// How many values each name has.
    names: BTreeMap<String, u64>,
}

impl Judge {
    /// Takes a row.
    pub fn take(&mut self, point: &Point) {
        self.rows += 1;
        self.is_falling |= self.last.is_some_and(|last| point.step < last);
        self.last = Some(point.step);
        for (name, _) in &point.values {
            if let Some(count) = self.names.get_mut(name) {
                *count += 1;
            } else if self.names.len() < NAMES_MAX && name != "epoch" {
                self.names.insert(name.clone(), 1);
            }
        }
    }

    /// All rows that are there at one look were taken.
    pub fn end_look(&mut self) {
        self.appends += u32::from(self.rows > self.rows_at_look);
        self.rows_at_look = self.rows;
    }

    /// The file was rewritten: its rows come again.
    pub fn begin_again(&mut self) {
        *self = Self { appends: self.appends, ..Self::default() };
    }

    /// The names of its metrics.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The names that are left to what the script prints: that has more than twice as many values, as a bar has of a log of each fiftieth step.
    pub fn left_to_printed(&self, printed: impl Fn(&str) -> u64) -> BTreeSet<String> {
        let is_finer =
            |(name, count): &(&String, &u64)| printed(name) > count.saturating_mul(2).saturating_add(AHEAD);
        self.names.iter().filter(is_finer).map(|(name, _)| name.clone()).collect()
    }

    /// Decides.
    #[must_use]
    pub fn verdict(&self, facts: LogFacts) -> Verdict {
        let grows = self.appends >= 2 || facts.is_place_of_logs;
        let ahead = if facts.is_last { 1 } else { AHEAD };
        match facts {
            _ if self.rows == 0 => Verdict::Wait,
            _ if self.is_falling => Verdict::Not("its steps fall"),
            LogFacts { is_last: true, .. } if !grows => {
                Verdict::Not("it was written at once, and neither its name nor its folder is that of a log")
            }
            _ if !grows => Verdict::Wait,
            LogFacts { axis: Axis::Epochs, is_recorded: true, .. } => Verdict::Wait,
            LogFacts { axis: Axis::Epochs, printed, .. } if self.rows < printed.saturating_add(ahead) => {
                Verdict::Wait
            }
            _ => Verdict::Read,
        }
    }
}
