//! Cells as examples, and where values are that came before.

use arrow::array::ArrayRef;
use arrow::util::display::array_value_to_string;
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, MAX_SHOWN_BYTES, Place, Source};
use trackway_tables::{Column, DataError};

use super::keys::fingerprints;
use crate::values::hashed::Keys;

/// Places where something was found, with what is there.
pub(super) type CellExamples = trackway_tables::merge::CountedExamples<(Place, String)>;

/// The text of a cell, as it is shown.
pub(super) fn shown(array: &ArrayRef, row: usize) -> String {
    let text = array_value_to_string(array, row).unwrap_or_default();
    let end =
        (0..=MAX_SHOWN_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    if end < text.len() { format!("{}…", &text[..end]) } else { text }
}

/// Rows of a column whose value came before: how many, and where the first of them are. Its fingerprints are kept in so many
/// parts, one after the other; `first_part` are those of the first one.
pub(super) fn repeats(
    column: Column,
    parts: u64,
    first_part: &[u64],
    source: &Source,
    watch: &PassObserver<'_>,
) -> Result<CellExamples, DataError> {
    let mut wanted = Keys::default();
    let mut count = repeated(first_part.to_vec(), &mut wanted);
    let mut alone = source.clone().with_columns(vec![column])?;
    for part in 1..parts {
        let (found, _) = scan(&mut alone, &|_| Part { part, of: parts, keys: Vec::new() }, watch)?;
        count += repeated(found.keys, &mut wanted);
    }
    let mut found = CellExamples { count, examples: Vec::new() };
    if !wanted.is_empty() {
        let (located, _) = scan(&mut alone, &|_| Locate { wanted: &wanted, seen: Vec::new() }, watch)?;
        found.examples = located.second_places();
    }
    Ok(found)
}

/// How many fingerprints are repetitions; the first few that are repeated become wanted.
fn repeated(mut keys: Vec<u64>, wanted: &mut Keys) -> u64 {
    keys.sort_unstable();
    let mut count = 0;
    for pair in keys.windows(2).filter(|pair| pair[0] == pair[1]) {
        count += 1;
        if wanted.len() < EXAMPLES_MAX {
            wanted.insert(pair[0]);
        }
    }
    count
}

/// One part of the fingerprints of a source's only column.
struct Part {
    part: u64,
    of: u64,
    keys: Vec<u64>,
}

impl Pass for Part {
    fn observe(&mut self, chunk: &Chunk) {
        let own = fingerprints(chunk.batch.column(0)).map(|(_, key)| key);
        self.keys.extend(own.filter(|key| key % self.of == self.part));
    }

    fn merge(&mut self, later: Self) {
        self.keys.extend(later.keys);
    }
}

/// Where wanted fingerprints are: the first two places of each.
struct Locate<'w> {
    wanted: &'w Keys,
    seen: Vec<(u64, Place, String)>,
}

impl Locate<'_> {
    fn note(&mut self, key: u64, place: Place, value: impl FnOnce() -> String) {
        if self.seen.iter().filter(|seen| seen.0 == key).count() < 2 {
            self.seen.push((key, place, value()));
        }
    }

    fn second_places(self) -> Vec<(Place, String)> {
        let repeats =
            |index: &usize| self.seen[..*index].iter().any(|before| before.0 == self.seen[*index].0);
        (0..self.seen.len())
            .filter(repeats)
            .map(|index| (self.seen[index].1, self.seen[index].2.clone()))
            .collect()
    }
}

impl Pass for Locate<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        let array = chunk.batch.column(0);
        for (row, key) in fingerprints(array).filter(|(_, key)| self.wanted.contains(key)) {
            self.note(key, chunk.place(row), || shown(array, row));
        }
    }

    fn merge(&mut self, later: Self) {
        later.seen.into_iter().for_each(|(key, place, value)| self.note(key, place, || value));
    }
}
