//! Train/serve skew: whether the features of a key have the same values where a model is trained and where it is used.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
pub use trackway_results::join::{ColumnSkew, SkewReport};
use trackway_tables::ColumnType;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Source};
use trackway_tables::write::{fitted, schema_of};

use super::keys::{Keys, Number, as_type, common_type};
use super::right::Right;
use super::{JoinError, content, kinds, settled};

/// How to compare.
#[derive(Debug, Clone)]
pub struct SkewPlan {
    /// The key columns, which both sides have; a time among them must be the same.
    pub on: Vec<String>,
    /// Numbers are equal that differ by at most this fraction of the larger one.
    pub tolerance: f64,
    /// The smallest fraction of equal rows of a column that is not skewed.
    pub equal_min: f64,
}

/// Compares the columns that both sides have, by key.
pub fn skew(
    train: Source,
    serve: Source,
    plan: &SkewPlan,
    watch: &PassObserver<'_>,
) -> Result<SkewReport, JoinError> {
    let shared: Vec<String> = train.columns().iter().map(|column| column.name.clone()).collect();
    let (mut train, mut serve) = settled(train, serve, &shared, watch)?;
    let [train_keys, serve_keys] = Keys::of(&train, &serve, &plan.on)?;
    let (columns_only_in_train, columns_only_in_serve) = (only_in(&train, &serve), only_in(&serve, &train));
    let held = Right::read(&mut serve, "serving", None, watch)?;
    let known = by_key(&serve_keys.digests(&held.columns, held.rows).map_err(content)?);
    let (pairs, not_compared) = pairs_of(&train, &serve, &train_keys);
    let comparison = SkewComparison {
        plan,
        keys: train_keys,
        kinds: kinds(&train),
        pairs: &pairs,
        held: &held,
        known: &known,
    };
    let make =
        |_: &Source| SkewPass { comparison: &comparison, counts: Counts::new(pairs.len()), failed: None };
    let (compared, coverage) = scan(&mut train, &make, watch)?;
    if let Some(why) = compared.failed {
        return Err(JoinError::Content(why.into()));
    }
    let counts = compared.counts;
    let column = |(pair, it): (&Pair, &ColumnCounts)| {
        let equal_fraction = (counts.compared > 0).then(|| it.equal as f64 / counts.compared as f64);
        ColumnSkew {
            column: pair.name.clone(),
            rows: counts.compared,
            equal: it.equal,
            equal_fraction,
            only_in_train: it.only_in_train,
            only_in_serve: it.only_in_serve,
            difference_max: it.difference_max,
            skewed: equal_fraction.is_some_and(|fraction| fraction < plan.equal_min),
        }
    };
    let mut columns: Vec<ColumnSkew> = pairs.iter().zip(&counts.columns).map(column).collect();
    columns.sort_by(|one, other| one.equal.cmp(&other.equal).then_with(|| one.column.cmp(&other.column)));
    Ok(SkewReport {
        train_rows: coverage.rows_read,
        serve_rows: held.coverage.rows_read,
        rows_compared: counts.compared,
        only_in_train: counts.only_in_train,
        ambiguous: counts.ambiguous,
        without_key: counts.without_key,
        columns,
        columns_only_in_train,
        columns_only_in_serve,
        not_compared,
        reading: [train.reading(), serve.reading()].concat(),
    })
}

/// The columns that the other source does not have.
fn only_in(source: &Source, other: &Source) -> Vec<String> {
    let is_lost = |name: &&String| other.columns().iter().all(|column| column.name != **name);
    source.columns().iter().map(|column| &column.name).filter(is_lost).cloned().collect()
}

/// The columns that are compared, and the names of those whose types have nothing in common.
fn pairs_of(train: &Source, serve: &Source, keys: &Keys) -> (Vec<Pair>, Vec<String>) {
    let (mut pairs, mut not_compared) = (Vec::new(), Vec::new());
    let columns = train.columns().iter().enumerate();
    for (place, column) in columns.filter(|(place, _)| !keys.places().contains(place)) {
        let Some(there) = serve.columns().iter().position(|other| other.name == column.name) else {
            continue;
        };
        match common_type(column.kind, serve.columns()[there].kind) {
            Some(common) => pairs.push(Pair { name: column.name.clone(), place, there, common }),
            None => not_compared.push(column.name.clone()),
        }
    }
    (pairs, not_compared)
}

/// The row of each key; `None` for a key that occurs several times.
fn by_key(digests: &[Option<u128>]) -> HashMap<u128, Option<u32>> {
    let mut known = HashMap::new();
    for (row, digest) in (0u32..).zip(digests) {
        let Some(digest) = digest else { continue };
        known.entry(*digest).and_modify(|row| *row = None).or_insert(Some(row));
    }
    known
}

struct Pair {
    name: String,
    place: usize,
    there: usize,
    common: DataType,
}

struct SkewComparison<'c> {
    plan: &'c SkewPlan,
    keys: Keys,
    kinds: Vec<ColumnType>,
    pairs: &'c [Pair],
    held: &'c Right,
    known: &'c HashMap<u128, Option<u32>>,
}

#[derive(Debug, Default)]
struct Counts {
    compared: u64,
    only_in_train: u64,
    ambiguous: u64,
    without_key: u64,
    columns: Vec<ColumnCounts>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ColumnCounts {
    equal: u64,
    only_in_train: u64,
    only_in_serve: u64,
    difference_max: Option<f64>,
}

impl Counts {
    fn new(columns: usize) -> Self {
        Self { columns: vec![ColumnCounts::default(); columns], ..Self::default() }
    }
}

struct SkewPass<'c> {
    comparison: &'c SkewComparison<'c>,
    counts: Counts,
    failed: Option<String>,
}

impl SkewComparison<'_> {
    fn add(&self, chunk: &Chunk, counts: &mut Counts) -> Result<(), ArrowError> {
        let train = fitted(&chunk.batch, &schema_of(&chunk.batch, &self.kinds))?;
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for (row, digest) in (0u32..).zip(self.keys.digests(train.columns(), train.num_rows())?) {
            match digest.map(|digest| self.known.get(&digest)) {
                None => counts.without_key += 1,
                Some(None) => counts.only_in_train += 1,
                Some(Some(None)) => counts.ambiguous += 1,
                Some(Some(Some(other))) => {
                    here.push(row);
                    there.push(*other);
                }
            }
        }
        counts.compared += here.len() as u64;
        let (here, there) = (UInt32Array::from(here), UInt32Array::from(there));
        for (pair, counts) in self.pairs.iter().zip(&mut counts.columns) {
            let one = take(train.column(pair.place), &here, None)?;
            let other = take(&self.held.columns[pair.there], &there, None)?;
            match pair.common.is_numeric() {
                true => self.compare_numbers(&one, &other, counts),
                false => compare(&as_type(&one, &pair.common)?, &as_type(&other, &pair.common)?, counts)?,
            }
        }
        Ok(())
    }

    /// Numbers are equal within the tolerance; whole ones are compared as such.
    fn compare_numbers(&self, one: &ArrayRef, other: &ArrayRef, counts: &mut ColumnCounts) {
        for row in 0..one.len() {
            let (one, other) = match (Number::at(one, row), Number::at(other, row)) {
                (Some(one), Some(other)) => (one, other),
                (one, other) => {
                    counts.equal += u64::from(one.is_none() && other.is_none());
                    counts.only_in_train += u64::from(one.is_some());
                    counts.only_in_serve += u64::from(other.is_some());
                    continue;
                }
            };
            let (a, b) = (one.as_float(), other.as_float());
            let difference = match (one, other) {
                (Number::Whole(one), Number::Whole(other)) => (one - other).unsigned_abs() as f64,
                _ => (a - b).abs(),
            };
            let is_equal = one == other
                || (a.is_nan() && b.is_nan())
                || difference <= self.plan.tolerance * a.abs().max(b.abs());
            counts.equal += u64::from(is_equal);
            if difference.is_finite() {
                counts.difference_max =
                    Some(counts.difference_max.map_or(difference, |most| most.max(difference)));
            }
        }
    }
}

/// Other values are equal or not.
fn compare(one: &ArrayRef, other: &ArrayRef, counts: &mut ColumnCounts) -> Result<(), ArrowError> {
    for row in 0..one.len() {
        counts.only_in_train += u64::from(one.is_valid(row) && other.is_null(row));
        counts.only_in_serve += u64::from(one.is_null(row) && other.is_valid(row));
    }
    counts.equal += not_distinct(one, other)?.true_count() as u64;
    Ok(())
}

impl Pass for SkewPass<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        if let Err(error) = self.comparison.add(chunk, &mut self.counts) {
            self.failed = self.failed.take().or(Some(error.to_string()));
        }
    }

    fn merge(&mut self, later: Self) {
        let (counts, more) = (&mut self.counts, later.counts);
        counts.compared += more.compared;
        counts.only_in_train += more.only_in_train;
        counts.ambiguous += more.ambiguous;
        counts.without_key += more.without_key;
        for (column, more) in counts.columns.iter_mut().zip(more.columns) {
            column.equal += more.equal;
            column.only_in_train += more.only_in_train;
            column.only_in_serve += more.only_in_serve;
            column.difference_max =
                column.difference_max.into_iter().chain(more.difference_max).reduce(f64::max);
        }
        self.failed = self.failed.take().or(later.failed);
    }
}
