//! As-of join: to each row of the left side the latest row of the right side with the same key that was known at its time.
//!
//! A join that takes the latest row of all instead gives rows of the past values of their future. How many rows and which
//! columns that would concern is counted beside the join.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::take;
use arrow::datatypes::{Field, Schema};
pub use trackway_results::join::{AsOfReport, ColumnLeak};
use trackway_tables::ColumnType;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Source};
use trackway_tables::write::{Forms, TableFile, TableFormat, fitted, schema_of};

use super::keys::{Keys, Times};
use super::right::{Right, WrittenCells};
use super::{JoinError, content, kinds, settled};

/// Behind the name of a right column whose name a left column has.
pub const RIGHT_SUFFIX: &str = "_right";

/// How to join.
#[derive(Debug, Clone)]
pub struct AsOfPlan {
    /// The key columns, which both sides have.
    pub on: Vec<String>,
    /// When a left row is from.
    pub left_time: String,
    /// Since when a right row is known.
    pub right_time: String,
    /// Whether a right row must be earlier than the left one; otherwise it may be of the same time.
    pub strict: bool,
    /// How much older than the left row a right one may be.
    pub tolerance: Option<Tolerance>,
    /// The joined table; its format is that of its name.
    pub out: PathBuf,
}

/// How much older a row may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// For timestamps.
    Seconds(f64),
    /// For times that are whole numbers.
    Steps(i64),
}

/// Joins two tables into a file that is there whole or not at all. The rows of the left side keep their order, and each value is
/// written as it is in its file where the format can hold that: the strings of a text file, the types of a Parquet file.
pub fn as_of(
    left: Source,
    right: Source,
    plan: &AsOfPlan,
    watch: &PassObserver<'_>,
) -> Result<AsOfReport, JoinError> {
    let format = TableFormat::of(&plan.out)?;
    let (left, right) = settled(left, right, &plan.on, watch)?;
    let (mut left, mut right) = (left.with_originals(), right.with_originals());
    let [left_keys, right_keys] = Keys::of(&left, &right, &plan.on)?;
    let (left_times, right_times) = times_of(&left, &right, plan)?;
    let tolerance = tolerance(plan.tolerance, left_times.is_timestamp())?;
    let right_names: Vec<String> = right.columns().iter().map(|column| column.name.clone()).collect();
    let (left_forms, right_forms) = (Forms::of(&left, format), Forms::of(&right, format));
    let needed = [right_keys.places(), &[right_times.place()]].concat();
    let written = WrittenCells { forms: &right_forms, needed: &needed };
    let held = Right::read(&mut right, "right", Some(written), watch)?;
    let history = History::of(&held, &right_keys, right_times)?;
    let kept: Vec<usize> =
        (0..right_names.len()).filter(|place| !right_keys.places().contains(place)).collect();
    let names = result_names(&left, kept.iter().map(|place| right_names[*place].as_str()))?;
    let cells = held.cells.as_ref();
    let join = Join {
        plan,
        tolerance,
        keys: left_keys,
        times: left_times,
        kinds: kinds(&left),
        forms: &left_forms,
        columns: kept
            .iter()
            .filter_map(|place| cells.map(|cells| ArrayRef::clone(cells.column(*place))))
            .collect(),
        fields: cells.map(|cells| fields_of(cells, &kept, &names)).unwrap_or_default(),
        history: &history,
    };
    let writer = Mutex::new(Writer { out: None, schema: None, failure: None });
    let make = |_: &Source| Joined {
        join: &join,
        counts: Counts::new(kept.len()),
        waiting: Vec::new(),
        failed: None,
        writer: &writer,
    };
    let (Joined { counts, .. }, coverage) = scan(&mut left, &make, watch)?;
    let writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
    writer.finish(|| Ok(TableFile::by_extension(&plan.out, &join.empty_schema(&left, &names))?))?;
    let reading = [left.reading(), right.reading()].concat();
    Ok(AsOfReport {
        left_rows: coverage.rows_read,
        left_rows_rejected: coverage.rows_rejected,
        right_rows: held.coverage.rows_read,
        right_rows_rejected: held.coverage.rows_rejected,
        matched: counts.matched,
        unmatched_key: counts.unmatched_key,
        unmatched_time: counts.unmatched_time,
        left_without_key_or_time: counts.without,
        right_without_key_or_time: history.without,
        right_rows_tied: history.tied,
        leaking_rows: counts.leaking,
        columns: names
            .into_iter()
            .zip(counts.columns)
            .map(|(column, rows_leaking)| ColumnLeak { column, rows_leaking })
            .collect(),
        reading,
    })
}

/// The fields of right columns in the result: a left row may have no right one.
fn fields_of(cells: &RecordBatch, kept: &[usize], names: &[String]) -> Vec<Field> {
    let field = |place: usize| Field::clone(cells.schema_ref().field(place));
    kept.iter().zip(names).map(|(place, name)| field(*place).with_name(name).with_nullable(true)).collect()
}

/// The times of both sides, which must be of one kind.
fn times_of(left: &Source, right: &Source, plan: &AsOfPlan) -> Result<(Times, Times), JoinError> {
    let (left, right) = (Times::of(left, &plan.left_time)?, Times::of(right, &plan.right_time)?);
    if left.fits(right) {
        return Ok((left, right));
    }
    let kind = |times: Times| if times.is_timestamp() { ColumnType::Timestamp } else { ColumnType::Int };
    Err(JoinError::Types { column: plan.left_time.clone(), left: kind(left), right: kind(right) })
}

/// In the unit of the times.
fn tolerance(given: Option<Tolerance>, is_timestamp: bool) -> Result<Option<i64>, JoinError> {
    match (given, is_timestamp) {
        (None, _) => Ok(None),
        (Some(Tolerance::Seconds(seconds)), true) => Ok(Some((seconds * 1e6) as i64)),
        (Some(Tolerance::Steps(steps)), false) => Ok(Some(steps)),
        (Some(Tolerance::Steps(_)), true) => Err(JoinError::Tolerance(
            "times are timestamps: give the tolerance with a unit, such as 30d or 12h",
        )),
        (Some(Tolerance::Seconds(_)), false) => Err(JoinError::Tolerance(
            "times are whole numbers: give the tolerance as a whole number without a unit",
        )),
    }
}

/// The names of right columns in the result.
fn result_names<'n>(left: &Source, right: impl Iterator<Item = &'n str>) -> Result<Vec<String>, JoinError> {
    let mut taken: Vec<String> = left.columns().iter().map(|column| column.name.clone()).collect();
    let mut names = Vec::new();
    for name in right {
        let name = match taken.iter().any(|taken| taken == name) {
            true => format!("{name}{RIGHT_SUFFIX}"),
            false => name.to_owned(),
        };
        if taken.contains(&name) {
            return Err(JoinError::TwoColumns(name));
        }
        taken.push(name.clone());
        names.push(name);
    }
    Ok(names)
}

/// The right rows by key and time.
struct History {
    /// Sorted; of equal times in the order of the rows.
    rows: Vec<(u128, i64, u32)>,
    without: u64,
    tied: u64,
}

/// What the history has for a left row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    /// The key is not there.
    NoKey,
    /// The key is there, but nothing early enough; with the latest row of the key if that is later than the left row.
    TooLate { latest: Option<u32> },
    /// A row; with the latest one of the key if that is later than the left row.
    Found { row: u32, latest: Option<u32> },
}

impl History {
    fn of(held: &Right, keys: &Keys, times: Times) -> Result<Self, JoinError> {
        if held.rows == 0 {
            return Ok(Self { rows: Vec::new(), without: 0, tied: 0 });
        }
        let digests = keys.digests(&held.columns, held.rows).map_err(content)?;
        let times = times.values(&held.columns).map_err(content)?;
        let row = |(row, digest): (usize, &Option<u128>)| {
            let time = times.is_valid(row).then(|| times.value(row))?;
            Some(((*digest)?, time, u32::try_from(row).ok()?))
        };
        let mut rows: Vec<(u128, i64, u32)> = digests.iter().enumerate().filter_map(row).collect();
        rows.sort_unstable();
        let tied = rows.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)).count();
        Ok(Self { without: (held.rows - rows.len()) as u64, tied: tied as u64, rows })
    }

    fn find(&self, key: u128, time: i64, strict: bool, tolerance: Option<i64>) -> Match {
        let begin = self.rows.partition_point(|row| row.0 < key);
        let end = begin + self.rows[begin..].partition_point(|row| row.0 == key);
        let known = &self.rows[begin..end];
        let Some(last) = known.last() else { return Match::NoKey };
        let early = known.partition_point(|row| if strict { row.1 < time } else { row.1 <= time });
        let latest = (early < known.len()).then_some(last.2);
        let is_fresh =
            |row: &&(u128, i64, u32)| tolerance.is_none_or(|most| time.saturating_sub(row.1) <= most);
        match early.checked_sub(1).map(|at| &known[at]).filter(is_fresh) {
            Some(row) => Match::Found { row: row.2, latest },
            None => Match::TooLate { latest },
        }
    }
}

struct Join<'j> {
    plan: &'j AsOfPlan,
    tolerance: Option<i64>,
    keys: Keys,
    times: Times,
    kinds: Vec<ColumnType>,
    /// How the left side is written.
    forms: &'j Forms,
    /// Right columns that are not keys, and their fields in the result.
    columns: Vec<ArrayRef>,
    fields: Vec<Field>,
    history: &'j History,
}

impl Join<'_> {
    fn batch(&self, chunk: &Chunk, counts: &mut Counts) -> Result<RecordBatch, arrow::error::ArrowError> {
        let left = fitted(&chunk.batch, &schema_of(&chunk.batch, &self.kinds))?;
        let digests = self.keys.digests(left.columns(), left.num_rows())?;
        let times = self.times.values(left.columns())?;
        let (mut found, mut latest) =
            (Vec::with_capacity(left.num_rows()), Vec::with_capacity(left.num_rows()));
        for (row, digest) in digests.into_iter().enumerate() {
            let time = times.is_valid(row).then(|| times.value(row));
            let Some((key, time)) = digest.zip(time) else {
                counts.without += 1;
                found.push(None);
                latest.push(None);
                continue;
            };
            let (of_row, later) = match self.history.find(key, time, self.plan.strict, self.tolerance) {
                Match::NoKey => {
                    counts.unmatched_key += 1;
                    (None, None)
                }
                Match::TooLate { latest } => {
                    counts.unmatched_time += 1;
                    (None, latest)
                }
                Match::Found { row, latest } => {
                    counts.matched += 1;
                    (Some(row), latest)
                }
            };
            counts.leaking += u64::from(later.is_some());
            found.push(of_row);
            latest.push(later.or(of_row));
        }
        let (found, latest) = (UInt32Array::from(found), UInt32Array::from(latest));
        let cells = self.forms.cells(chunk);
        let cells = fitted(&cells, &self.forms.schema(&cells))?;
        let mut columns = cells.columns().to_vec();
        let mut fields: Vec<Field> =
            cells.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        for ((column, field), leaking) in self.columns.iter().zip(&self.fields).zip(&mut counts.columns) {
            let (is, would_be) = (take(column, &found, None)?, take(column, &latest, None)?);
            *leaking = match (*leaking, distinct(&is, &would_be)) {
                (Some(before), Ok(differs)) => Some(before + differs.true_count() as u64),
                _ => None,
            };
            columns.push(is);
            fields.push(field.clone());
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }

    /// Of a result without rows.
    fn empty_schema(&self, left: &Source, names: &[String]) -> Arc<Schema> {
        let text = |name: &str| Field::new(name, arrow::datatypes::DataType::Utf8, true);
        let left = left.columns().iter().map(|column| text(&column.name));
        Arc::new(Schema::new(left.chain(names.iter().map(|name| text(name))).collect::<Vec<_>>()))
    }
}

#[derive(Debug, Default)]
struct Counts {
    matched: u64,
    unmatched_key: u64,
    unmatched_time: u64,
    without: u64,
    leaking: u64,
    columns: Vec<Option<u64>>,
}

impl Counts {
    fn new(columns: usize) -> Self {
        Self { columns: vec![Some(0); columns], ..Self::default() }
    }

    fn add(&mut self, later: &Self) {
        self.matched += later.matched;
        self.unmatched_key += later.unmatched_key;
        self.unmatched_time += later.unmatched_time;
        self.without += later.without;
        self.leaking += later.leaking;
        for (count, more) in self.columns.iter_mut().zip(&later.columns) {
            *count = count.zip(*more).map(|(one, other)| one + other);
        }
    }
}

struct Writer {
    out: Option<TableFile>,
    /// Of all batches, from the first one.
    schema: Option<Arc<Schema>>,
    failure: Option<JoinError>,
}

impl Writer {
    /// Completes the file; without rows it is `empty`.
    fn finish(self, empty: impl FnOnce() -> Result<TableFile, JoinError>) -> Result<(), JoinError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let out = self.out.map_or_else(empty, Ok)?;
        out.finish()?;
        Ok(())
    }
}

/// Joined rows of a unit, until they are merged, in the order of the rows, and with that written.
struct Joined<'b, 'j> {
    join: &'b Join<'j>,
    counts: Counts,
    waiting: Vec<RecordBatch>,
    failed: Option<String>,
    writer: &'b Mutex<Writer>,
}

impl Joined<'_, '_> {
    fn write(&self, writer: &mut Writer, batches: &[RecordBatch]) -> Result<(), JoinError> {
        for batch in batches {
            let schema = Arc::clone(writer.schema.get_or_insert_with(|| batch.schema()));
            let out = match &mut writer.out {
                Some(out) => out,
                none => none.insert(TableFile::by_extension(&self.join.plan.out, &batch.schema())?),
            };
            out.write(&fitted(batch, &schema).map_err(content)?)?;
        }
        Ok(())
    }
}

impl Pass for Joined<'_, '_> {
    fn observe(&mut self, chunk: &Chunk) {
        match self.join.batch(chunk, &mut self.counts) {
            Ok(batch) => self.waiting.push(batch),
            Err(error) => self.failed = self.failed.take().or(Some(error.to_string())),
        }
    }

    fn merge(&mut self, later: Self) {
        self.counts.add(&later.counts);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.failure.is_none() {
            let written = match later.failed {
                Some(why) => Err(JoinError::Content(why.into())),
                None => self.write(&mut writer, &later.waiting),
            };
            writer.failure = written.err();
        }
    }
}
