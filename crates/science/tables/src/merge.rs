//! How passes add up what they counted.

use std::collections::BTreeMap;

use crate::limits::EXAMPLES_MAX;

/// Adds up what both sides may lack.
pub fn merge_option<T>(known: &mut Option<T>, later: Option<T>, merge: impl FnOnce(&mut T, T)) {
    match (known.as_mut(), later) {
        (Some(known), Some(later)) => merge(known, later),
        (None, later) => *known = later,
        (Some(_), None) => {}
    }
}

/// Adds up counts by key.
pub fn merge_counts<K: Ord>(counts: &mut BTreeMap<K, u64>, later: BTreeMap<K, u64>) {
    for (key, count) in later {
        *counts.entry(key).or_default() += count;
    }
}

/// How often something was found, and the first few of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedExamples<E> {
    pub count: u64,
    pub examples: Vec<E>,
}

impl<E> Default for CountedExamples<E> {
    fn default() -> Self {
        Self { count: 0, examples: Vec::new() }
    }
}

impl<E> CountedExamples<E> {
    /// Counts what was found so many times; the example is made only if there is room for it.
    pub fn add(&mut self, times: u64, example: impl FnOnce() -> E) {
        self.count += times;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(example());
        }
    }

    /// Adds what was found later.
    pub fn merge(&mut self, later: Self) {
        self.count += later.count;
        self.examples.extend(later.examples);
        self.examples.truncate(EXAMPLES_MAX);
    }
}
