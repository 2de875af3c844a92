//! Nearly equal texts in columns of longer ones.

use trackway_tables::ColumnType;
use trackway_tables::pass::Pass;
use trackway_tables::read::{Chunk, Place, Source, Texts};

use super::index::BandIndex;
use super::minhash::{BANDS, Print, Words};
use super::{Closest, NearRows};
use crate::leakage::columns::Places;
use crate::leakage::sample::spread;

/// Bytes of the texts of the test side that are kept. Of more, a random part is looked up.
pub(in crate::leakage) const TEST_BYTES_MAX: usize = 64 << 20;

/// Bytes of the texts of the training side that are kept for the control.
pub(in crate::leakage) const CONTROL_BYTES_MAX: usize = 4 << 20;

/// Texts are near when this part of their pieces is common.
const SIMILARITY_MIN: f64 = 0.8;

/// A column holds longer texts when at least this part of its rows do.
const LONG_SHARE_MIN: f64 = 0.5;

/// A text, its place and the fingerprint of its row.
struct SampledText {
    place: Place,
    row: u64,
    print: Print,
}

/// The longer texts of a random part of the rows, by column.
pub(in crate::leakage) struct Prints {
    columns: Places,
    bytes_max: usize,
    bytes: usize,
    zeros: u32,
    rows_seen: u64,
    rows_kept: u64,
    /// For each feature; always empty if it is not a column of strings.
    kept: Vec<Vec<SampledText>>,
    texts: Vec<usize>,
}

impl Prints {
    pub(in crate::leakage) fn new(columns: Places, source: &Source, bytes_max: usize) -> Self {
        let kept = columns.features.iter().map(|_| Vec::new()).collect();
        let texts = text_features(&columns, source);
        Self { columns, bytes_max, bytes: 0, zeros: 0, rows_seen: 0, rows_kept: 0, kept, texts }
    }

    /// For each feature, whether it is a column of longer texts.
    pub(in crate::leakage) fn are_long(&self) -> Vec<bool> {
        let least = (self.rows_kept as f64 * LONG_SHARE_MIN).max(1.0);
        self.kept.iter().map(|kept| kept.len() as f64 >= least).collect()
    }

    fn thin(&mut self) {
        while self.bytes > self.bytes_max {
            self.thin_to(self.zeros + 1);
        }
    }

    fn thin_to(&mut self, zeros: u32) {
        if zeros <= self.zeros {
            return;
        }
        self.zeros = zeros;
        self.kept.iter_mut().for_each(|kept| kept.retain(|it| spread(it.place).trailing_zeros() >= zeros));
        self.bytes = self.kept.iter().flatten().map(|it| it.print.size_bytes()).sum();
        self.rows_kept = self.rows_seen >> zeros;
    }
}

fn text_features(columns: &Places, source: &Source) -> Vec<usize> {
    let is_text = |feature: &usize| source.columns()[columns.features[*feature]].kind == ColumnType::Text;
    (0..columns.features.len()).filter(is_text).collect()
}

impl Pass for Prints {
    fn observe(&mut self, chunk: &Chunk) {
        self.rows_seen += chunk.batch.num_rows() as u64;
        self.rows_kept = self.rows_seen >> self.zeros;
        if self.texts.is_empty() {
            return;
        }
        let rows = self.columns.equality(chunk);
        for feature in &self.texts {
            let Some(texts) = Texts::of(chunk.batch.column(self.columns.features[*feature])) else {
                continue;
            };
            for row in 0..chunk.batch.num_rows() {
                let place = chunk.place(row);
                if spread(place).trailing_zeros() < self.zeros {
                    continue;
                }
                if let Some(print) = texts.get(row).and_then(Words::of).map(|words| words.print()) {
                    self.bytes += print.size_bytes();
                    self.kept[*feature].push(SampledText { place, row: rows.values()[row], print });
                }
            }
        }
        self.thin();
    }

    fn merge(&mut self, mut later: Self) {
        self.rows_seen += later.rows_seen;
        let zeros = self.zeros.max(later.zeros);
        self.thin_to(zeros);
        later.thin_to(zeros);
        self.rows_kept = self.rows_seen >> self.zeros;
        self.bytes += later.bytes;
        self.kept.iter_mut().zip(later.kept).for_each(|(kept, more)| kept.extend(more));
        self.thin();
    }
}

/// One column's texts of the test side, then the control's, by their bands.
struct Column {
    feature: usize,
    kept: Vec<SampledText>,
    test_rows: usize,
    bands: Vec<BandIndex>,
}

/// Texts that are looked up.
pub(in crate::leakage) struct Lookup {
    columns: Vec<Column>,
    test_rows_all: u64,
}

impl Lookup {
    pub(in crate::leakage) fn new(test: Prints, control: Prints) -> Self {
        let is_long = test.are_long();
        let test_rows_all = test.rows_seen;
        let both = test.kept.into_iter().zip(control.kept).enumerate();
        let columns = both
            .filter(|(feature, _)| is_long[*feature])
            .map(|(feature, (mut kept, control))| {
                let test_rows = kept.len();
                kept.extend(control);
                let index = |band: usize| BandIndex::new(kept.iter().map(|it| it.print.bands[band]));
                Column { feature, bands: (0..BANDS).map(index).collect(), kept, test_rows }
            })
            .collect();
        Self { columns, test_rows_all }
    }

    pub(in crate::leakage) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(in crate::leakage) fn found(&self, met: &TextMatches<'_>, names: &[String]) -> Vec<NearRows> {
        let columns = self.columns.iter().zip(&met.closest);
        columns.map(|(column, closest)| column.found(closest, names, self.test_rows_all)).collect()
    }
}

impl Column {
    fn found(&self, closest: &Closest, names: &[String], test_rows_all: u64) -> NearRows {
        let column = names[self.feature].clone();
        let rows = (self.test_rows, test_rows_all, self.kept.len() - self.test_rows);
        let compared = format!("80 % of the pieces of `{column}`, of one to five words by its length");
        let found = closest.found(rows, compared, |row| self.kept[row].place);
        NearRows { column: Some(column), ..found }
    }
}

/// Texts of the training side that are near to texts that are looked up.
pub(in crate::leakage) struct TextMatches<'l> {
    places: Places,
    lookup: &'l Lookup,
    closest: Vec<Closest>,
}

impl<'l> TextMatches<'l> {
    pub(in crate::leakage) fn new(places: Places, lookup: &'l Lookup) -> Self {
        Self { places, lookup, closest: lookup.columns.iter().map(|_| Closest::default()).collect() }
    }
}

impl Pass for TextMatches<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        if self.lookup.is_empty() {
            return;
        }
        let rows = self.places.equality(chunk);
        for (column, closest) in self.lookup.columns.iter().zip(&mut self.closest) {
            let Some(texts) = Texts::of(chunk.batch.column(self.places.features[column.feature])) else {
                continue;
            };
            for row in 0..chunk.batch.num_rows() {
                let Some(words) = texts.get(row).and_then(Words::of) else { continue };
                for print in words.prints() {
                    for (band, index) in column.bands.iter().enumerate() {
                        for candidate in index.rows(print.bands[band]) {
                            let kept = &column.kept[candidate as usize];
                            let similarity = kept.print.similarity(&print);
                            if kept.row != rows.values()[row] && similarity >= SIMILARITY_MIN {
                                closest.add(candidate, similarity, chunk.place(row));
                            }
                        }
                    }
                }
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.closest.iter_mut().zip(later.closest).for_each(|(closest, more)| closest.merge(more));
    }
}
