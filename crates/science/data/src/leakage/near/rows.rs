//! Nearly equal rows of tables.

use trackway_core::{Rng, SplitMix64};
use trackway_statistics::population_variance;
use trackway_tables::pass::Pass;
use trackway_tables::read::Chunk;

use super::index::{BandIndex, mix};
use super::{Closest, NearRows};
use crate::leakage::columns::Places;
use crate::leakage::sample::Sample;
use crate::values::sampled::{Content, Values, keys, numbers};

/// Rows agree when at least this part of their columns does.
const AGREEING_SHARE_MIN: f64 = 0.8;

/// With fewer columns, agreement is weak evidence.
const COLUMNS_MIN: usize = 4;

/// Of more columns, the most informative are compared.
const COLUMNS_MAX: usize = 256;

/// Numbers agree when they differ by no more than this part of their column's spread.
const TOLERANCE: f64 = 0.02;

/// Bands on values as they are, and as many on numbers rounded to twice the tolerance.
const BANDS_OF_EACH_KIND: usize = 8;

/// A band has so many more bits than it takes to number the rows, so that few other rows have the same one by
/// coincidence.
const SPARE_BITS: f64 = 3.0;

/// How many bits beyond the number of pairs and of ways to agree make an agreement certain.
const CERTAIN_BITS: f64 = 7.0;

/// Rows of the training side that are looked up in the rest of it.
const CONTROL_ROWS_MAX: usize = 8192;

/// Rows of a sample from which bits are estimated.
const BITS_ROWS_MAX: usize = 16_384;

/// A cell for a number that is missing: no number has it.
const MISSING: u32 = f32::NAN.to_bits();

/// How one column is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measure {
    /// Its index among the features.
    feature: usize,
    /// For numbers: the middle, and twice the tolerance. Else `None`.
    number: Option<(f64, f64)>,
    /// Bits of information when two rows have the same value.
    exact_bits: f64,
    /// Bits of information when two rows have nearly the same number.
    near_bits: f64,
}

/// Columns that are hashed together.
#[derive(Debug)]
struct Band {
    /// Indexes of measures.
    measures: Vec<usize>,
    /// Whether numbers count as they are.
    is_exact: bool,
    /// Moves where numbers are cut, so that two near ones are parted in some bands only.
    shift: f32,
    seed: u64,
}

/// How rows are compared: derived from samples.
#[derive(Debug)]
pub(in crate::leakage) struct Plan {
    measures: Vec<Measure>,
    bands: Vec<Band>,
    agreeing_min: usize,
    /// Bits of agreement that random pairs do not reach.
    bits_min: f64,
}

/// Rows that are looked up: those of the test side, then the control's.
pub(in crate::leakage) struct Lookup {
    plan: Plan,
    cells: Vec<u32>,
    fingerprints: Vec<u64>,
    bands: Vec<BandIndex>,
    test_rows: usize,
    control_rows: usize,
}

impl Plan {
    /// `None`, with the reason, if rows have too little information to find near ones. `left_out` are features that are
    /// not compared: identifiers always differ, longer texts are compared in another way.
    pub(in crate::leakage) fn new(train: &Sample, test: &Sample, left_out: &[bool]) -> Result<Self, String> {
        let compared = (0..train.features.len()).filter(|feature| !left_out[*feature]);
        let same_kind = |feature: &usize| {
            let is_number =
                |sample: &Sample| matches!(sample.features[*feature].content, Content::Numbers(_));
            is_number(train) == is_number(test)
        };
        let mut measures: Vec<Measure> = compared
            .filter(same_kind)
            .filter_map(|feature| measure(feature, &train.features[feature]))
            .collect();
        if measures.len() < COLUMNS_MIN {
            return Err(format!("rows have fewer than {COLUMNS_MIN} columns to compare"));
        }
        measures.sort_by(|one, other| other.exact_bits.total_cmp(&one.exact_bits));
        measures.truncate(COLUMNS_MAX);
        let agreeing_min = (measures.len() as f64 * AGREEING_SHARE_MIN).ceil() as usize;
        let pairs_bits = (train.rows_seen as f64 + 1.0).log2() + (test.rows_seen as f64 + 1.0).log2();
        let bits_min = pairs_bits + ways_bits(measures.len(), agreeing_min) + CERTAIN_BITS;
        let rows = test.len() + train.len().min(CONTROL_ROWS_MAX);
        let band_bits = (rows as f64 + 1.0).log2() + SPARE_BITS;
        let most: f64 = measures.iter().map(|measure| measure.exact_bits).sum();
        if most < bits_min {
            return Err(format!(
                "rows carry {most:.0} bits of information, but {bits_min:.0} are needed to distinguish a near-duplicate from a coincidence"
            ));
        }
        let bands =
            (0..2 * BANDS_OF_EACH_KIND as u64).filter_map(|seed| band(&measures, band_bits, seed)).collect();
        Ok(Self { measures, bands, agreeing_min, bits_min })
    }

    fn cells(&self, column: impl Fn(usize) -> Content, rows: usize) -> Vec<u32> {
        let width = self.measures.len();
        let mut cells = vec![0; rows * width];
        for (index, measure) in self.measures.iter().enumerate() {
            let column = column(measure.feature);
            for row in 0..rows {
                cells[row * width + index] = cell(&column, row, measure);
            }
        }
        cells
    }

    fn key(&self, band: &Band, cells: &[u32]) -> u64 {
        band.measures.iter().fold(band.seed, |key, index| {
            let cell = cells[*index];
            let value = match self.measures[*index].number {
                Some(_) if !band.is_exact && cell != MISSING => {
                    ((f32::from_bits(cell) + band.shift).floor() as i64).cast_unsigned()
                }
                _ => u64::from(cell),
            };
            mix(key, value)
        })
    }

    /// The fraction of columns that agree, if the rows are near.
    fn similarity(&self, one: &[u32], other: &[u32]) -> Option<f64> {
        let (mut agreeing, mut bits) = (0, 0.0);
        for (index, measure) in self.measures.iter().enumerate() {
            if one[index] == other[index] {
                agreeing += 1;
                bits += measure.exact_bits;
            } else if measure.number.is_some()
                && (f32::from_bits(one[index]) - f32::from_bits(other[index])).abs() <= 0.5
            {
                agreeing += 1;
                bits += measure.near_bits;
            }
        }
        let is_near = agreeing >= self.agreeing_min && bits >= self.bits_min;
        is_near.then(|| f64::from(agreeing as u32) / self.measures.len() as f64)
    }
}

/// A row's value as it is compared.
fn cell(values: &Content, row: usize, measure: &Measure) -> u32 {
    match (values, measure.number) {
        (Content::Numbers(numbers), Some((middle, width))) => match numbers[row] {
            number if number.is_nan() => MISSING,
            number => (((number - middle) / width) as f32 + 0.0).to_bits(),
        },
        (Content::Codes(codes), None) => (codes[row] >> 32) as u32,
        // A column that has no value at all in this file.
        (_, Some(_)) => MISSING,
        (_, None) => 0,
    }
}

/// At most `most` of `all` rows, evenly: the first ones alone may be of one kind.
fn evenly(all: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = all.min(most);
    (0..count).map(move |index| index * all / count)
}

/// `None` for an uninformative column.
fn measure(feature: usize, values: &Values) -> Option<Measure> {
    let measure = match &values.content {
        Content::Codes(codes) => {
            let mut codes: Vec<u64> = evenly(codes.len(), BITS_ROWS_MAX).map(|row| codes[row]).collect();
            codes.sort_unstable();
            let bits = bits(codes.len(), codes.chunk_by(|one, next| one == next).map(<[u64]>::len));
            Measure { feature, number: None, exact_bits: bits, near_bits: bits }
        }
        Content::Numbers(numbers) => {
            let all = numbers.len().min(BITS_ROWS_MAX);
            let mut known: Vec<f64> =
                evenly(numbers.len(), all).map(|row| numbers[row]).filter(|it| it.is_finite()).collect();
            known.sort_by(f64::total_cmp);
            let (middle, spread) = spread(&known)?;
            let width = spread * TOLERANCE * 2.0;
            let missing = all - known.len();
            let same = known.chunk_by(|one, next| one == next).map(<[f64]>::len);
            let exact_bits = bits(all, same.chain([missing]));
            let near_bits = near_bits(&known, width / 2.0, missing).min(exact_bits);
            Measure { feature, number: Some((middle, width)), exact_bits, near_bits }
        }
    };
    (measure.exact_bits > 0.01).then_some(measure)
}

/// Middle and deviation of sorted numbers, from the quarters where they differ, so that few wild ones do not count.
fn spread(sorted: &[f64]) -> Option<(f64, f64)> {
    const QUARTERS_OF_NORMAL: f64 = 1.349;
    let at = |share: f64| sorted.get(((sorted.len() as f64 - 1.0) * share) as usize).copied();
    let quarters = (at(0.75)? - at(0.25)?) / QUARTERS_OF_NORMAL;
    if quarters > 0.0 {
        return Some((at(0.5)?, quarters));
    }
    let deviation = population_variance(sorted).sqrt();
    (deviation > 0.0).then_some((at(0.5)?, deviation))
}

/// Minus the logarithm of the probability that two of `rows` rows have the same value; each value has so many rows.
fn bits(rows: usize, shared_by: impl Iterator<Item = usize>) -> f64 {
    let same: f64 = shared_by.map(|count| count as f64 * (count as f64 - 1.0)).sum();
    bits_of(same, rows)
}

fn bits_of(ordered_pairs: f64, rows: usize) -> f64 {
    let all = rows as f64 * (rows as f64 - 1.0);
    // No pair seen: at most about one of as many as there are.
    (all.max(2.0) / ordered_pairs.max(1.0)).log2().max(0.0)
}

/// As [`bits`], for numbers that differ by no more than `tolerance`.
fn near_bits(sorted: &[f64], tolerance: f64, missing: usize) -> f64 {
    let mut from = 0;
    let mut pairs = missing as f64 * (missing as f64 - 1.0);
    for (index, value) in sorted.iter().enumerate() {
        while value - sorted[from] > tolerance {
            from += 1;
        }
        pairs += 2.0 * (index - from) as f64;
    }
    bits_of(pairs, sorted.len() + missing)
}

/// The logarithm of in how many ways rows can agree in at least `agreeing` of `columns`: at most `n · H(k / n)`, with
/// the binary entropy of the part that differs.
fn ways_bits(columns: usize, agreeing: usize) -> f64 {
    let differing = (columns - agreeing) as f64 / columns as f64;
    let term = |share: f64| if share > 0.0 { -share * share.log2() } else { 0.0 };
    columns as f64 * (term(differing) + term(1.0 - differing))
}

/// Columns in random order until they hold enough bits; `None` where all of them do not.
fn band(measures: &[Measure], bits_min: f64, seed: u64) -> Option<Band> {
    let mut rng = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..measures.len()).collect();
    for end in (1..order.len()).rev() {
        order.swap(end, (rng.next_u64() % (end as u64 + 1)) as usize);
    }
    let is_exact = seed.is_multiple_of(2);
    let mut bits = 0.0;
    let mut chosen = Vec::new();
    for index in order {
        chosen.push(index);
        bits += if is_exact { measures[index].exact_bits } else { measures[index].near_bits };
        if bits >= bits_min {
            return Some(Band {
                measures: chosen,
                is_exact,
                shift: rng.next_unit() as f32,
                seed: rng.next_u64(),
            });
        }
    }
    None
}

impl Lookup {
    pub(in crate::leakage) fn new(plan: Plan, train: &Sample, test: &Sample) -> Self {
        let control: Vec<usize> = evenly(train.len(), CONTROL_ROWS_MAX).collect();
        let cells = |sample: &Sample, rows: &[usize]| {
            let column = |feature: usize| match &sample.features[feature].content {
                Content::Numbers(numbers) => Content::Numbers(rows.iter().map(|row| numbers[*row]).collect()),
                Content::Codes(codes) => Content::Codes(rows.iter().map(|row| codes[*row]).collect()),
            };
            plan.cells(column, rows.len())
        };
        let mut all = cells(test, &(0..test.len()).collect::<Vec<_>>());
        all.extend(cells(train, &control));
        let mut fingerprints = test.rows.clone();
        fingerprints.extend(control.iter().map(|row| train.rows[*row]));
        let width = plan.measures.len();
        let keys = |band: &Band| -> Vec<u64> { all.chunks(width).map(|row| plan.key(band, row)).collect() };
        let bands = plan.bands.iter().map(|band| BandIndex::new(keys(band).into_iter())).collect();
        Self { bands, cells: all, fingerprints, test_rows: test.len(), control_rows: control.len(), plan }
    }

    fn row(&self, row: u32) -> &[u32] {
        let width = self.plan.measures.len();
        &self.cells[row as usize * width..][..width]
    }

    pub(in crate::leakage) fn found(&self, met: &RowMatches<'_>, test: &Sample) -> NearRows {
        let compared = format!(
            "{} of {} columns, numbers within 2 % of their spread",
            self.plan.agreeing_min,
            self.plan.measures.len()
        );
        let rows = (self.test_rows, test.rows_seen, self.control_rows);
        met.closest.found(rows, compared, |row| test.places[row])
    }
}

/// Rows of the training side that are near to rows that are looked up.
pub(in crate::leakage) struct RowMatches<'l> {
    columns: Places,
    lookup: &'l Lookup,
    closest: Closest,
}

impl<'l> RowMatches<'l> {
    pub(in crate::leakage) fn new(columns: Places, lookup: &'l Lookup) -> Self {
        Self { columns, lookup, closest: Closest::default() }
    }
}

impl Pass for RowMatches<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        let rows = chunk.batch.num_rows();
        let plan = &self.lookup.plan;
        let fingerprints = self.columns.equality(chunk);
        let column = |feature: usize| {
            let column = chunk.batch.column(self.columns.features[feature]);
            match plan.measures.iter().any(|it| it.feature == feature && it.number.is_some()) {
                true => Content::Numbers(numbers(column)),
                false => Content::Codes(keys(column)),
            }
        };
        let cells = plan.cells(column, rows);
        for (row, cells) in cells.chunks(plan.measures.len()).enumerate() {
            for (band, index) in plan.bands.iter().zip(&self.lookup.bands) {
                for candidate in index.rows(plan.key(band, cells)) {
                    // Equal rows are the rows check's, and every row of the control meets itself.
                    if self.lookup.fingerprints[candidate as usize] == fingerprints.values()[row] {
                        continue;
                    }
                    if let Some(similarity) = plan.similarity(cells, self.lookup.row(candidate)) {
                        self.closest.add(candidate, similarity, chunk.place(row));
                    }
                }
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.closest.merge(later.closest);
    }
}
