//! What is new in a log that is read again from its beginning.

use std::collections::HashMap;

use super::Point;

/// Values of further names are counted and left out.
const NAMES_MAX: usize = 1024;

/// What was taken of one metric.
#[derive(Debug, Clone, Copy)]
struct MetricProgress {
    count: u64,
    highest: i64,
}

/// What is skipped while the log is read again.
#[derive(Debug, Default)]
enum Skip {
    #[default]
    Nothing,
    /// The first row decides.
    Undecided,
    /// The same rows come again: so many values of each name.
    Counted(HashMap<String, u64>),
    /// The first rows are gone, the last ones come again: up to these steps.
    UpTo(HashMap<String, i64>),
}

/// What was taken of a log, in bounded memory.
#[derive(Debug, Default)]
pub struct Replay {
    taken: HashMap<String, MetricProgress>,
    first: Option<Point>,
    skip: Skip,
    beyond: u64,
}

impl Replay {
    /// The log is read again from its beginning.
    pub fn begin_again(&mut self) {
        self.skip = if self.first.is_some() { Skip::Undecided } else { Skip::Nothing };
    }

    /// Values that were left out, since there are too many names.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// What is new of a row; none: nothing is.
    pub fn take(&mut self, mut point: Point) -> Option<Point> {
        if matches!(self.skip, Skip::Undecided) {
            self.decide(&point);
        }
        if self.first.is_none() {
            self.first = Some(point.clone());
        }
        let step = point.step;
        point.values.retain(|(name, _)| self.is_new(name, step));
        (!point.values.is_empty()).then_some(point)
    }

    fn decide(&mut self, point: &Point) {
        let Some(first) = &self.first else { return };
        let has = |(name, value): &(String, f64)| {
            point.values.iter().any(|(other, it)| other == name && it.to_bits() == value.to_bits())
        };
        if first.step == point.step && first.values.iter().all(has) {
            self.skip =
                Skip::Counted(self.taken.iter().map(|(name, taken)| (name.clone(), taken.count)).collect());
        } else if point.step > first.step {
            self.skip =
                Skip::UpTo(self.taken.iter().map(|(name, taken)| (name.clone(), taken.highest)).collect());
        } else {
            // Another training.
            (self.skip, self.first) = (Skip::Nothing, Some(point.clone()));
        }
    }

    fn is_new(&mut self, name: &str, step: i64) -> bool {
        match &mut self.skip {
            Skip::Counted(left) => {
                if let Some(left) = left.get_mut(name).filter(|left| **left > 0) {
                    *left -= 1;
                    return false;
                }
            }
            Skip::UpTo(highest) if highest.get(name).is_some_and(|highest| step <= *highest) => return false,
            _ => {}
        }
        if let Some(taken) = self.taken.get_mut(name) {
            (taken.count, taken.highest) = (taken.count + 1, taken.highest.max(step));
            return true;
        }
        let has_room = self.taken.len() < NAMES_MAX;
        if has_room {
            self.taken.insert(name.to_owned(), MetricProgress { count: 1, highest: step });
        }
        self.beyond += u64::from(!has_room);
        has_room
    }
}
