//! Rows that a script makes as many of as it wants, in bounded memory: what has no place is counted.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Rows of which each key has one, the newest; so many keys at most.
pub(crate) struct Unique<K, R> {
    rows: Vec<R>,
    places: HashMap<K, usize>,
    max: usize,
    /// Rows of keys that found no place.
    pub left_out: u64,
}

impl<K: Hash + Eq, R> Unique<K, R> {
    pub fn new(max: usize) -> Self {
        Self { rows: Vec::new(), places: HashMap::new(), max, left_out: 0 }
    }

    /// Replaces the row of this key, or adds one.
    pub fn put(&mut self, key: K, row: R) {
        match self.places.get(&key) {
            Some(place) => self.rows[*place] = row,
            None if self.rows.len() >= self.max => self.left_out += 1,
            None => {
                self.places.insert(key, self.rows.len());
                self.rows.push(row);
            }
        }
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut R> {
        self.places.get(key).map(|place| &mut self.rows[*place])
    }

    /// In the order in which the keys came.
    pub fn into_rows(self) -> Vec<R> {
        self.rows
    }
}

/// The first and the last rows of many: how a training ends counts as much as how it began.
pub(crate) struct Ends<R> {
    first: Vec<R>,
    last: VecDeque<R>,
    max: usize,
    /// Rows between them.
    pub left_out: u64,
}

impl<R> Ends<R> {
    /// Keeps so many at most.
    pub fn new(max: usize) -> Self {
        Self { first: Vec::new(), last: VecDeque::new(), max, left_out: 0 }
    }

    pub fn push(&mut self, row: R) {
        if self.first.len() < self.max / 2 {
            self.first.push(row);
            return;
        }
        if self.first.len() + self.last.len() >= self.max {
            self.last.pop_front();
            self.left_out += 1;
        }
        self.last.push_back(row);
    }

    pub fn into_rows(mut self) -> Vec<R> {
        self.first.extend(self.last);
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that of each key the newest row stays at its place, that many keys take no more room, and that what is left out is counted.
    #[test]
    fn rows_are_bounded() {
        let mut unique = Unique::new(2);
        for (key, row) in [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("c", 5)] {
            unique.put(key, row);
        }
        assert_eq!((unique.left_out, unique.into_rows()), (2, vec![3, 2]));
        let mut ends = Ends::new(4);
        (0..10).for_each(|row| ends.push(row));
        assert_eq!((ends.left_out, ends.into_rows()), (6, vec![0, 1, 8, 9]));
    }
}
