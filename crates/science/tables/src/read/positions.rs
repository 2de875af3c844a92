//! Where the columns of a file are.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::types::Column;

/// Where columns are by name; most often each is in the same place as in the file before.
pub(super) struct Positions<'c> {
    columns: &'c [Column],
    /// Made when it is needed first. Of several columns of one name the first counts.
    by_name: OnceCell<HashMap<&'c str, usize>>,
}

impl<'c> Positions<'c> {
    pub(super) fn of(columns: &'c [Column]) -> Self {
        Self { columns, by_name: OnceCell::new() }
    }

    pub(super) fn find(&self, name: &str, place: usize) -> Option<usize> {
        if self.columns.get(place).is_some_and(|known| known.name == name) {
            return Some(place);
        }
        let columns = self.columns.iter().enumerate().rev();
        let by_name = self.by_name.get_or_init(|| columns.map(|(at, it)| (it.name.as_str(), at)).collect());
        by_name.get(name).copied()
    }
}
