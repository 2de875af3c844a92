//! A random part of a table's rows, kept column by column, for what has to look at values more than once.
//!
//! Which rows belong to it depends on their places alone, so that it is the same with any number of threads: rows
//! whose hashed place ends in enough zeros, enough to stay below a bound.

use arrow::array::UInt32Array;
use arrow::compute::take;
use trackway_tables::merge::merge_option;
use trackway_tables::pass::Pass;
use trackway_tables::read::{Chunk, Place, Source};

use super::columns::Places;
use crate::values::hashed::scrambled;
use crate::values::rows::RowHashes;
use crate::values::sampled::{Values, retain};

/// The most rows of the training side that are kept.
pub(super) const TRAIN_ROWS_MAX: usize = 1 << 16;

/// The most rows of the test side that are kept.
pub(super) const TEST_ROWS_MAX: usize = 1 << 18;

/// The most cells that are kept, of 8 bytes each; wider tables keep fewer rows.
const CELLS_MAX: usize = 1 << 23;

/// Rows of a table.
pub(super) struct Sample {
    columns: Places,
    rows_max: usize,
    /// Only places whose hash ends in so many zeros are kept.
    zeros: u32,
    pub(super) rows_seen: u64,
    pub(super) places: Vec<Place>,
    /// Fingerprints of the rows without the label.
    pub(super) rows: Vec<u64>,
    pub(super) features: Vec<Values>,
    pub(super) label: Option<Values>,
}

impl Sample {
    pub(super) fn new(columns: Places, source: &Source, rows_max: usize) -> Self {
        let values = |index: &usize| Values::new(source.columns()[*index].kind);
        let width = columns.features.len() + usize::from(columns.label.is_some());
        Self {
            rows_max: rows_max.min(CELLS_MAX / width.max(1)),
            zeros: 0,
            rows_seen: 0,
            places: Vec::new(),
            rows: Vec::new(),
            features: columns.features.iter().map(values).collect(),
            label: columns.label.as_ref().map(values),
            columns,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    fn thin(&mut self) {
        while self.places.len() > self.rows_max {
            self.thin_to(self.zeros + 1);
        }
    }

    fn thin_to(&mut self, zeros: u32) {
        if zeros <= self.zeros {
            return;
        }
        self.zeros = zeros;
        let keep: Vec<bool> =
            self.places.iter().map(|place| spread(*place).trailing_zeros() >= zeros).collect();
        retain(&mut self.places, &keep);
        retain(&mut self.rows, &keep);
        self.features.iter_mut().chain(&mut self.label).for_each(|values| values.retain(&keep));
    }
}

/// A hash of a place.
pub(super) fn spread(place: Place) -> u64 {
    scrambled(place.row ^ (place.file as u64).rotate_right(20))
}

impl Pass for Sample {
    fn observe(&mut self, chunk: &Chunk) {
        let rows = chunk.batch.num_rows();
        self.rows_seen += rows as u64;
        let kept = |row: &u32| spread(chunk.place(*row as usize)).trailing_zeros() >= self.zeros;
        let chosen: UInt32Array = (0..rows as u32).filter(kept).collect::<Vec<u32>>().into();
        if chosen.is_empty() {
            return;
        }
        self.places.extend(chosen.values().iter().map(|row| chunk.place(*row as usize)));
        let column = |index: usize| match chosen.len() == rows {
            true => chunk.batch.column(index).clone(),
            false => take(chunk.batch.column(index), &chosen, None).expect("the rows are within the batch"),
        };
        let mut fingerprints = RowHashes::new(chosen.len());
        self.columns.equal_by().iter().for_each(|index| fingerprints.add(&column(*index)));
        for (values, index) in self.features.iter_mut().zip(&self.columns.features) {
            values.add(&column(*index));
        }
        self.rows.extend_from_slice(fingerprints.values());
        if let (Some(values), Some(index)) = (&mut self.label, self.columns.label) {
            values.add(&column(index));
        }
        self.thin();
    }

    fn merge(&mut self, mut later: Self) {
        self.rows_seen += later.rows_seen;
        let zeros = self.zeros.max(later.zeros);
        self.thin_to(zeros);
        later.thin_to(zeros);
        self.places.extend(later.places);
        self.rows.extend(later.rows);
        self.features.iter_mut().zip(later.features).for_each(|(values, more)| values.append(more));
        merge_option(&mut self.label, later.label, Values::append);
        self.thin();
    }
}
