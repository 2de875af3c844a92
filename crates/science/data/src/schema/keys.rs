//! Columns whose values must be unique, or occur elsewhere: both are questions about sets of fingerprints.

use arrow::array::{Array, ArrayRef};
use trackway_tables::DataError;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Source};

use crate::values::hashed::Keys;
use crate::values::rows::RowHashes;

/// Fingerprints of one column's values; none for a missing one.
pub(super) fn fingerprints(column: &ArrayRef) -> impl Iterator<Item = (usize, u64)> {
    let nulls = column.logical_nulls();
    RowHashes::of_column(column)
        .into_iter()
        .enumerate()
        .filter(move |(row, _)| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row)))
}

/// Every value of a column of another data set, as fingerprints. Memory: about 16 bytes for each different value.
pub(super) fn referenced(
    source: &mut Source,
    column: &str,
    watch: &PassObserver<'_>,
) -> Result<Keys, DataError> {
    let index = source.index_of(column, "referenced")?;
    Ok(scan(source, &|_| Gather { index, keys: Keys::default() }, watch)?.0.keys)
}

struct Gather {
    index: usize,
    keys: Keys,
}

impl Pass for Gather {
    fn observe(&mut self, chunk: &Chunk) {
        self.keys.extend(fingerprints(chunk.batch.column(self.index)).map(|(_, key)| key));
    }

    fn merge(&mut self, later: Self) {
        if self.keys.is_empty() {
            self.keys = later.keys;
        } else {
            self.keys.extend(later.keys);
        }
    }
}
