//! The classes of a label.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use trackway_tables::pass::Pass;
use trackway_tables::read::Chunk;

/// More different values are no classes.
pub(super) const CLASSES_MAX: usize = 256;

/// The different values of a column, as people read them; where there are more than [`CLASSES_MAX`], the first ones.
pub(super) struct LabelClasses {
    column: usize,
    pub found: BTreeSet<String>,
}

impl LabelClasses {
    pub(super) fn of(column: usize) -> Self {
        Self { column, found: BTreeSet::new() }
    }

    /// All of them; none where there are too many.
    pub(super) fn all(&self) -> Option<Vec<String>> {
        (self.found.len() <= CLASSES_MAX).then(|| self.found.iter().cloned().collect())
    }

    fn add(&mut self, array: &ArrayRef) {
        let options = FormatOptions::new();
        let Ok(values) = ArrayFormatter::try_new(array, &options) else { return };
        for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
            if self.found.len() > CLASSES_MAX {
                return;
            }
            let value = values.value(row).to_string();
            if !self.found.contains(&value) {
                self.found.insert(value);
            }
        }
    }
}

impl Pass for LabelClasses {
    fn observe(&mut self, chunk: &Chunk) {
        self.add(chunk.batch.column(self.column));
    }

    fn merge(&mut self, later: Self) {
        self.found.extend(later.found);
    }
}
