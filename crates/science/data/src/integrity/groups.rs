//! Rows and labels by group.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, ArrayRef};
use arrow::util::display::array_value_to_string;
use trackway_tables::merge::merge_counts;
use trackway_tables::profile::{MAX_KEPT_BYTES, Moments};

use crate::model::CLASSES_MAX;
use crate::values::hashed::AlreadyHashed;
use crate::values::rows::RowHashes;
use crate::values::sampled::numbers;

/// The most groups of a column, or of a combination of columns; with more it is not a grouping.
pub const GROUPS_MAX: usize = 256;

/// The text for a missing value.
const NO_VALUE: &str = "(missing)";

/// One way of grouping.
#[derive(Debug, Clone)]
pub(super) struct Grouping {
    pub(super) columns: Vec<usize>,
    groups: HashMap<u64, Cell, AlreadyHashed>,
    pub(super) too_many: bool,
}

/// What is known of one group.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) values: Vec<String>,
    pub(super) rows: u64,
    /// Rows by class.
    pub(super) classes: BTreeMap<String, u64>,
    /// Of a label of numbers.
    pub(super) amounts: Moments,
}

/// The label of a chunk's rows.
pub(super) struct Labels {
    texts: HashMap<u64, String, AlreadyHashed>,
    keys: Vec<u64>,
    /// Of a label of numbers, NaN if missing.
    numbers: Vec<f64>,
}

impl Labels {
    pub(super) fn of(array: &ArrayRef) -> Self {
        let numbers = if array.data_type().is_numeric() { numbers(array) } else { Vec::new() };
        let keys = RowHashes::of_column(array);
        let mut texts: HashMap<u64, String, AlreadyHashed> = HashMap::default();
        for (row, key) in keys.iter().enumerate() {
            if array.is_valid(row) && !texts.contains_key(key) && texts.len() <= CLASSES_MAX {
                texts.insert(*key, shown(array, row));
            }
        }
        Self { texts, keys, numbers }
    }
}

fn shown(array: &ArrayRef, row: usize) -> String {
    if array.logical_nulls().is_some_and(|nulls| nulls.is_null(row)) {
        return NO_VALUE.to_owned();
    }
    let mut text = array_value_to_string(array, row).unwrap_or_default();
    if text.len() > MAX_KEPT_BYTES {
        let end = (0..=MAX_KEPT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Grouping {
    /// Each column by itself, and all of them together.
    pub(super) fn all(columns: &[usize]) -> Vec<Self> {
        let new = |columns: Vec<usize>| Self { columns, groups: HashMap::default(), too_many: false };
        let mut all: Vec<Self> = columns.iter().map(|column| new(vec![*column])).collect();
        if columns.len() > 1 {
            all.push(new(columns.to_vec()));
        }
        all
    }

    pub(super) fn observe(&mut self, columns: &[ArrayRef], labels: Option<&Labels>) {
        if self.too_many {
            return;
        }
        let own: Vec<&ArrayRef> = self.columns.iter().map(|index| &columns[*index]).collect();
        let keys = RowHashes::of(own[0].len(), own.iter().copied());
        for (row, key) in keys.values().iter().enumerate() {
            let cell = self.groups.entry(*key).or_insert_with(|| Cell {
                values: own.iter().map(|array| shown(array, row)).collect(),
                rows: 0,
                classes: BTreeMap::new(),
                amounts: Moments::default(),
            });
            cell.rows += 1;
            if let Some(labels) = labels {
                cell.observe(labels, row);
            }
            if self.groups.len() > GROUPS_MAX {
                self.stop();
                return;
            }
        }
    }

    pub(super) fn merge(&mut self, later: Self) {
        if later.too_many {
            self.stop();
        }
        if self.too_many {
            return;
        }
        for (key, cell) in later.groups {
            match self.groups.get_mut(&key) {
                Some(known) => known.merge(cell),
                None => {
                    self.groups.insert(key, cell);
                }
            }
        }
        if self.groups.len() > GROUPS_MAX {
            self.stop();
        }
    }

    fn stop(&mut self) {
        self.too_many = true;
        self.groups.clear();
    }

    /// The groups, by their values.
    pub(super) fn cells(&self) -> Vec<&Cell> {
        let mut cells: Vec<&Cell> = self.groups.values().collect();
        cells.sort_by(|one, other| one.values.cmp(&other.values));
        cells
    }
}

impl Cell {
    fn observe(&mut self, labels: &Labels, row: usize) {
        if let Some(text) = labels.texts.get(&labels.keys[row]) {
            if let Some(rows) = self.classes.get_mut(text) {
                *rows += 1;
            } else if self.classes.len() <= CLASSES_MAX {
                self.classes.insert(text.clone(), 1);
            }
        }
        if let Some(value) = labels.numbers.get(row).copied().filter(|value| value.is_finite()) {
            self.amounts.merge(&Moments { count: 1, mean: value, ..Moments::default() });
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        merge_counts(&mut self.classes, later.classes);
        self.amounts.merge(&later.amounts);
    }
}
