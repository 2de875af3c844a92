//! The rows that are searched, as a set of rows for each value of each feature.

use rayon::prelude::*;
use trackway_core::{Rng, SplitMix64};

use super::SearchError;
use super::bits::{bits_of, count_both, count_with_two, rows_of_both, words_for};
use super::features::Feature;
use super::score::Stats;

/// The most memory that the sets of rows of all values may take.
pub const SETS_BYTES_MAX: usize = 2 << 30;

/// A value of a feature that enough rows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// Index of the feature.
    pub(super) feature: usize,
    /// The feature's code for the value.
    pub(super) code: u16,
}

/// The errors of the rows.
#[derive(Debug)]
enum Errors {
    /// Of 0 and 1 only: the rows with 1.
    Wrong(Vec<u64>),
    /// One for each row.
    Amounts(Vec<f64>),
}

/// Rows, an error each, and the values that enough of them have.
#[derive(Debug)]
pub(super) struct Table {
    rows: usize,
    errors: Errors,
    items: Vec<Item>,
    /// The feature of each item.
    feature_of: Vec<u32>,
    /// The rows of each item.
    sets: Vec<Vec<u64>>,
}

/// What is computed for one parent: its rows, and of errors of 0 and 1 the wrong ones.
#[derive(Debug, Default)]
pub(super) struct Rows {
    all: Vec<u64>,
    wrong: Vec<u64>,
}

impl Table {
    /// Of these rows of the features, each with its error; values with fewer rows than `min_support` drop out.
    pub(super) fn new(
        features: &[Feature],
        rows: &[u32],
        errors: Vec<f64>,
        min_support: u32,
    ) -> Result<Self, SearchError> {
        let counted = |feature: &Feature| {
            let mut counts = vec![0u32; feature.codes_end()];
            rows.iter()
                .map(|row| feature.code(*row))
                .filter(|code| *code != Feature::RARE)
                .for_each(|code| counts[usize::from(code)] += 1);
            counts
        };
        let counts: Vec<Vec<u32>> = features.par_iter().map(counted).collect();
        let mut items = Vec::new();
        for (feature, counts) in counts.iter().enumerate() {
            let frequent = (0..counts.len()).filter(|code| counts[*code] >= min_support.max(1));
            items.extend(frequent.map(|code| Item { feature, code: code as u16 }));
        }
        let bytes = items.len() * words_for(rows.len()) * 8;
        if bytes > SETS_BYTES_MAX {
            return Err(SearchError::TooManyValues { values: items.len(), bytes });
        }
        let sets: Vec<Vec<Vec<u64>>> = features
            .par_iter()
            .enumerate()
            .map(|(index, feature)| sets_of(feature, rows, items.iter().filter(|item| item.feature == index)))
            .collect();
        let is_binary = errors.iter().all(|error| *error == 0.0 || *error == 1.0);
        Ok(Self {
            rows: rows.len(),
            feature_of: items.iter().map(|item| item.feature as u32).collect(),
            items,
            sets: sets.into_iter().flatten().collect(),
            errors: match is_binary {
                true => Errors::Wrong(bits_of(errors.len(), |row| errors[row] == 1.0)),
                false => Errors::Amounts(errors),
            },
        })
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn feature_of(&self) -> &[u32] {
        &self.feature_of
    }

    /// The index of a value that enough rows have.
    pub(super) fn index_of(&self, item: Item) -> Option<u32> {
        self.items.iter().position(|known| *known == item).map(|index| index as u32)
    }

    /// What the rows with all these items have, and their fingerprint.
    pub(super) fn stats(&self, items: &[u32], rows: &mut Rows) -> (Stats, u64) {
        let (last, parent) = items.split_last().expect("a slice has an item");
        rows.fill(self, parent);
        (self.measured(rows, *last, self.size(rows, *last)), self.fingerprint(rows, *last))
    }

    /// The set of rows with all these items.
    pub(super) fn rows_of(&self, items: &[u32], rows: &mut Rows) -> Vec<u64> {
        rows.fill(self, items);
        rows.all.clone()
    }

    /// How many of the rows have the item; of errors of 0 and 1 also how many of those are wrong.
    pub(super) fn size(&self, rows: &Rows, item: u32) -> (u32, Option<u32>) {
        let set = &self.sets[item as usize];
        match &self.errors {
            Errors::Wrong(_) => {
                let (size, wrong) = count_with_two(set, &rows.all, &rows.wrong);
                (size, Some(wrong))
            }
            Errors::Amounts(_) => (count_both(set, &rows.all), None),
        }
    }

    /// A hash of which of the rows have the item: slices of different rows have different ones, but for a probability
    /// of 2⁻⁶⁴.
    pub(super) fn fingerprint(&self, rows: &Rows, item: u32) -> u64 {
        let words = rows.all.iter().zip(&self.sets[item as usize]).map(|(word, other)| word & other);
        words.fold(0, |hash: u64, word| SplitMix64::new(hash.rotate_left(5) ^ word).next_u64())
    }

    /// The errors of the rows that have the item, where [`Table::size`] counted them. Always summed in the order of the
    /// rows.
    pub(super) fn measured(&self, rows: &Rows, item: u32, (size, wrong): (u32, Option<u32>)) -> Stats {
        let (mut error, mut worst) = match wrong {
            Some(wrong) => (f64::from(wrong), f64::from(wrong.min(1))),
            None => (0.0, 0.0),
        };
        if let Errors::Amounts(amounts) = &self.errors {
            for row in rows_of_both(&rows.all, &self.sets[item as usize]) {
                error += amounts[row];
                worst = f64::max(worst, amounts[row]);
            }
        }
        Stats { size, error, worst }
    }
}

impl Rows {
    /// The rows with all these items; all rows without items.
    pub(super) fn fill(&mut self, table: &Table, items: &[u32]) {
        self.all.clear();
        match items.split_first() {
            None => self.all.extend(bits_of(table.rows, |_| true)),
            Some((first, others)) => {
                self.all.extend_from_slice(&table.sets[*first as usize]);
                for item in others {
                    let set = &table.sets[*item as usize];
                    self.all.iter_mut().zip(set).for_each(|(word, other)| *word &= other);
                }
            }
        }
        if let Errors::Wrong(wrong) = &table.errors {
            self.wrong.clear();
            self.wrong.extend(self.all.iter().zip(wrong).map(|(word, wrong)| word & wrong));
        }
    }
}

fn sets_of<'i>(feature: &Feature, rows: &[u32], items: impl Iterator<Item = &'i Item>) -> Vec<Vec<u64>> {
    const NONE: u16 = u16::MAX;
    let mut set_of = vec![NONE; feature.codes_end()];
    let mut sets = Vec::new();
    for item in items {
        set_of[usize::from(item.code)] = sets.len() as u16;
        sets.push(vec![0u64; words_for(rows.len())]);
    }
    for (position, row) in rows.iter().enumerate() {
        let code = feature.code(*row);
        let set = if code == Feature::RARE { NONE } else { set_of[usize::from(code)] };
        if set != NONE {
            sets[usize::from(set)][position / 64] |= 1 << (position % 64);
        }
    }
    sets
}
