//! Rows that equal an earlier row in every cell.
//!
//! Cells are compared as the files have them: the strings of text files with the blanks around them, JSON's strings apart from its
//! numbers, the types of Parquet files. Rows are compared by 128
//! bits of BLAKE3 over their cells: two different rows of 10¹⁰ are taken for equal with a probability
//! of 10⁻¹⁹. Only rows that are not set aside are compared: a row never counts as a duplicate of one in the quarantine.

use std::collections::HashSet;

use arrow::array::RecordBatch;
use arrow::row::{RowConverter, SortField};
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Marks, Source};
use trackway_tables::write::{Forms, TableFormat, fitted};

use super::CleanError;
use super::judge::Judge;
use crate::values::hashed::digest;

/// The most digests of rows in memory, 16 bytes each: at most about 300 MiB with the table that holds them.
pub const DIGESTS_MAX: usize = 8 << 20;

/// Which of the rows that were read, in their order, equal an earlier one.
pub(super) struct DuplicateRows {
    bits: Bits,
    pub(super) readings: u64,
}

impl DuplicateRows {
    pub(super) fn is_duplicate(&self, row: u64) -> bool {
        self.bits.get(row)
    }
}

/// Reads the source, which keeps its originals, as often as it takes.
pub(super) fn find(
    source: &mut Source,
    judge: &Judge,
    watch: &PassObserver<'_>,
) -> Result<DuplicateRows, CleanError> {
    find_within(source, judge, DIGESTS_MAX, watch)
}

pub(super) fn find_within(
    source: &mut Source,
    judge: &Judge,
    digests_max: usize,
    watch: &PassObserver<'_>,
) -> Result<DuplicateRows, CleanError> {
    let make = |part: u64, parts: u64| {
        move |source: &Source| Finder {
            judge,
            forms: Forms::of(source, TableFormat::Separated(',')),
            part,
            parts,
            digests_max,
            waiting: Vec::new(),
            known: HashSet::new(),
            rows: 0,
            bits: Bits::default(),
            failed: None,
        }
    };
    let (first, _) = scan(source, &make(0, 1), watch)?;
    let (mut found, parts) = (DuplicateRows { bits: first.done()?, readings: 1 }, first.parts);
    for part in 1..parts {
        let (more, _) = scan(source, &make(part, parts), watch)?;
        found.bits.add(&more.done()?);
        found.readings += 1;
    }
    Ok(found)
}

/// The digests of one part of all rows: those whose digest leaves this rest.
struct Finder<'j> {
    judge: &'j Judge,
    /// Strings or stored types.
    forms: Forms,
    part: u64,
    /// Doubled while the first part is read, whenever it has too many digests.
    parts: u64,
    digests_max: usize,
    /// Of rows that are not merged yet; none for a row that is set aside.
    waiting: Vec<Vec<Option<u128>>>,
    known: HashSet<u128>,
    rows: u64,
    bits: Bits,
    failed: Option<String>,
}

impl Finder<'_> {
    fn digests(&self, chunk: &Chunk) -> Result<Vec<Option<u128>>, String> {
        let reasons = self.judge.reasons(chunk)?;
        let digests = digests(&self.forms.cells(chunk), &self.forms, &chunk.marks);
        let digests = digests.map_err(|error| error.to_string())?;
        let kept = |(row, digest)| (!reasons.contains_key(&row)).then_some(digest);
        Ok(digests.into_iter().enumerate().map(kept).collect())
    }

    fn take(&mut self, digest: Option<u128>) {
        let row = self.rows;
        self.rows += 1;
        let Some(digest) = digest.filter(|digest| digest % u128::from(self.parts) == u128::from(self.part))
        else {
            return;
        };
        if !self.known.insert(digest) {
            self.bits.set(row);
        }
        if self.part == 0 && self.known.len() > self.digests_max {
            self.parts *= 2;
            let parts = u128::from(self.parts);
            self.known.retain(|digest| digest % parts == 0);
        }
    }

    fn done(&self) -> Result<Bits, CleanError> {
        match &self.failed {
            Some(why) => Err(CleanError::Rule(why.clone())),
            None => Ok(self.bits.clone()),
        }
    }
}

impl Pass for Finder<'_> {
    const WANTS_FAULTY: bool = true;

    fn observe(&mut self, chunk: &Chunk) {
        match self.digests(chunk) {
            Ok(digests) => self.waiting.push(digests),
            Err(why) => self.failed = self.failed.take().or(Some(why)),
        }
    }

    fn merge(&mut self, later: Self) {
        later.waiting.into_iter().flatten().for_each(|digest| self.take(digest));
        self.failed = self.failed.take().or(later.failed);
    }
}

/// A digest of every row of cells, and of what they do not show.
fn digests(cells: &RecordBatch, forms: &Forms, marks: &Marks) -> Result<Vec<u128>, arrow::error::ArrowError> {
    let batch = fitted(cells, &forms.schema(cells))?;
    let fields =
        batch.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(batch.columns())?;
    let of_row = |(index, row): (usize, arrow::row::Row<'_>)| match marks.rows.get(&index) {
        None => digest(row.as_ref()),
        Some(mark) => digest(&[row.as_ref(), mark.as_slice()].concat()),
    };
    Ok(rows.iter().enumerate().map(of_row).collect())
}

/// A bit for each row.
#[derive(Debug, Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, row: u64) {
        let word = (row / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (row % 64);
    }

    fn get(&self, row: u64) -> bool {
        self.0.get((row / 64) as usize).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }
}
