//! Columns of numbers, timestamps or booleans with strings in them.

use super::Source;
use super::tally::{StringLimit, Tally};
use crate::types::{Column, ColumnType};

/// A column with more strings among its values than faults explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixedColumn {
    pub name: String,
    /// The type of most values.
    pub mostly: ColumnType,
    /// Values seen while types were inferred: all of a small file, otherwise a sample.
    pub values: u64,
    pub strings: u64,
}

impl Source {
    /// Reads a column of a small table as numbers, timestamps or booleans although it contains as many strings as a sample may where
    /// one value in twenty is a string (1 of 5, 2 of 10): each is a misfit.
    #[must_use]
    pub fn with_strings_as_misfits(mut self) -> Self {
        self.string_limit = StringLimit::Sample;
        self.retype();
        self
    }

    /// Columns that are text because of their strings, although most of the values seen have a narrower type.
    #[must_use]
    pub fn mixed_columns(&self) -> Vec<MixedColumn> {
        let mixed = |(column, tally): (&Column, &Tally)| {
            let found = tally.strings(StringLimit::Sample)?;
            let (mostly, values, strings) = (found.mostly, found.values, found.count);
            Some(MixedColumn { name: column.name.clone(), mostly, values, strings })
        };
        self.columns.iter().zip(&self.tallies).filter_map(mixed).collect()
    }
}
