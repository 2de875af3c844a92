//! `trainer_state.json` of Transformers: each has all that was logged since the training began, also by the attempts before.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::Point;
use crate::printed;

/// What was logged, in order; none if the file is something else or cut.
#[must_use]
pub fn read_state(text: &str) -> Option<Vec<Point>> {
    let mut fields = printed::json_fields(text)?;
    let Value::Array(entries) = fields.remove("log_history")? else { return None };
    let point = |entry| {
        let Value::Object(fields) = entry else { return None };
        let (step, values) = printed::step_and_numbers(fields);
        let step = step?;
        (!values.is_empty()).then_some(Point { step, values })
    };
    Some(entries.into_iter().filter_map(point).collect())
}

/// What was taken of the states in one folder.
#[derive(Debug, Default)]
pub struct StateHistory {
    /// Of the states that were there before the attempt: how many entries, and their digest.
    before: Vec<(usize, u64)>,
    taken: Option<(usize, u64)>,
}

impl StateHistory {
    /// A state that was there before the attempt began.
    pub fn was_there(&mut self, entries: &[Point]) {
        self.before.push((entries.len(), digest(entries)));
    }

    /// The entries of a state that are new: a training that continues has those of the state which it continues from.
    #[must_use]
    pub fn new_of<'e>(&self, entries: &'e [Point]) -> &'e [Point] {
        let begins_with = |(count, known): &(usize, u64)| {
            entries.get(..*count).is_some_and(|begin| digest(begin) == *known).then_some(*count)
        };
        let known = match self.taken {
            // An older state has nothing new.
            Some((count, _)) if entries.len() <= count => entries.len(),
            Some(taken) => begins_with(&taken).unwrap_or(0),
            None => self.before.iter().filter_map(begins_with).max().unwrap_or(0),
        };
        &entries[known..]
    }

    /// All entries of a state were taken.
    pub fn take(&mut self, entries: &[Point]) {
        if self.taken.is_none_or(|(count, _)| entries.len() > count) {
            self.taken = Some((entries.len(), digest(entries)));
        }
    }
}

fn digest(entries: &[Point]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        entry.step.hash(&mut hasher);
        entry.values.iter().for_each(|(name, value)| (name, value.to_bits()).hash(&mut hasher));
    }
    hasher.finish()
}
