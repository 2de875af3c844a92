//! A bounded uniform sample of a table, in memory, column by column.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Float64Type, TimestampMicrosecondType};
use arrow::util::display::array_value_to_string;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Coverage, Place, Source, Texts};
use trackway_tables::{Column, ColumnType, DataError};

use crate::values::hashed::scrambled;
use crate::values::rows::RowHashes;
use crate::values::sampled::{ExactNumber, exact_numbers};

/// The most cells of a frame (8 bytes each for numbers, 4 for strings): wide tables give fewer rows.
pub const FRAME_CELLS_MAX: usize = 32 << 20;

/// The code of a missing category.
pub const MISSING_CODE: u32 = u32::MAX;

/// Rows drawn from a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    columns: Vec<FrameColumn>,
    /// The place of each row; in the order of the files.
    places: Vec<Place>,
    /// Fingerprints of the rows over all columns but the label's, where one was named.
    keys: Vec<u64>,
    rows_seen: u64,
    left_out: Vec<String>,
}

/// One column of a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameColumn {
    pub name: String,
    /// The type in the source.
    pub kind: ColumnType,
    /// A cell for each row.
    pub cells: Cells,
}

impl FrameColumn {
    /// A column of a batch; `None` for a type that a model cannot use. Whole numbers beyond 2⁵³ are rounded, unless that makes
    /// two of them one: then they are strings.
    #[must_use]
    pub fn of(column: &Column, array: &ArrayRef) -> Option<Self> {
        Self::of_pieces(column, std::slice::from_ref(&array))
    }

    fn of_pieces(column: &Column, pieces: &[&ArrayRef]) -> Option<Self> {
        let is_ambiguous = column.kind == ColumnType::Int && are_made_equal(pieces);
        let kind = if is_ambiguous { ColumnType::Text } else { column.kind };
        let cells = if is_ambiguous { digits(pieces) } else { cells(kind, pieces.iter().copied())? };
        Some(Self { name: column.name.clone(), kind, cells })
    }
}

/// The cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Numbers, timestamps (microseconds since 1970), booleans (0 and 1). NaN is missing.
    Numbers(Vec<f64>),
    /// Strings: each row's index into `names`, [`MISSING_CODE`] if it is missing.
    Categories {
        /// For each row.
        codes: Vec<u32>,
        /// The different strings, in order of appearance.
        names: Vec<String>,
    },
}

impl Cells {
    /// How many there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Categories { codes, .. } => codes.len(),
        }
    }

    /// Of strings.
    #[must_use]
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = Option<&'t str>>) -> Self {
        let mut cells = TextCells::default();
        texts.into_iter().for_each(|text| cells.add(text));
        cells.into_cells()
    }

    /// Whether the row's cell holds nothing.
    #[must_use]
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Numbers(values) => values[row].is_nan(),
            Self::Categories { codes, .. } => codes[row] == MISSING_CODE,
        }
    }

    /// The same cells in another order: the first row is the one at `order[0]`.
    ///
    /// # Panics
    /// Where `order` names a row that is not there.
    #[must_use]
    pub fn in_order(&self, order: &[usize]) -> Self {
        match self {
            Self::Numbers(values) => Self::Numbers(order.iter().map(|row| values[*row]).collect()),
            Self::Categories { codes, names } => Self::Categories {
                codes: order.iter().map(|row| codes[*row]).collect(),
                names: names.clone(),
            },
        }
    }
}

impl Frame {
    /// Draws at most `rows_max` rows, every row of the source with the same probability, and the same rows for the same
    /// seed whatever the number of threads. `label` is left out of the rows' [keys](Self::keys). Columns that are
    /// neither numbers, timestamps, booleans nor strings are left out, and named.
    ///
    /// # Errors
    /// [`DataError`]: no such label, a file that cannot be read, the scan cancelled.
    pub fn sample(
        source: &mut Source,
        label: Option<&str>,
        (rows_max, seed): (usize, u64),
        watch: &PassObserver<'_>,
    ) -> Result<(Self, Coverage), DataError> {
        if let Some(label) = label {
            source.index_of(label, "label")?;
        }
        let limit = rows_max.min(FRAME_CELLS_MAX / source.columns().len().max(1)).max(1);
        let highest = Arc::new(AtomicU64::new(u64::MAX));
        let make = |_: &Source| Sampler::new(limit, seed, Arc::clone(&highest));
        // A scan that begins again with wider types meets the same rows, so the bound holds for it too.
        let (mut sampler, coverage) = scan(source, &make, watch)?;
        sampler.keep_lowest();
        Ok((sampler.into_frame(source, label, coverage.rows_read), coverage))
    }

    /// Of columns in memory, all of one length, as if each row were in file 0.
    ///
    /// # Panics
    /// Where columns differ in length.
    #[must_use]
    pub fn of_columns(columns: Vec<FrameColumn>) -> Self {
        let rows = columns.first().map_or(0, |column| column.cells.rows());
        assert!(columns.iter().all(|column| column.cells.rows() == rows), "every column has as many rows");
        Self {
            columns,
            places: (0..rows as u64).map(|row| Place { file: 0, row: row + 1 }).collect(),
            keys: (0..rows as u64).map(scrambled).collect(),
            rows_seen: rows as u64,
            left_out: Vec::new(),
        }
    }

    /// The number of rows drawn.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.places.len()
    }

    /// The number of rows there were.
    #[must_use]
    pub fn rows_seen(&self) -> u64 {
        self.rows_seen
    }

    /// The columns, in the order of the source.
    #[must_use]
    pub fn columns(&self) -> &[FrameColumn] {
        &self.columns
    }

    /// The columns alone, so that each can be dropped when it is used.
    #[must_use]
    pub fn into_columns(self) -> Vec<FrameColumn> {
        self.columns
    }

    /// The index of a column.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The place of each row.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Equal for rows with equal features: such rows belong into one fold.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Keys of a column's values, for folds that keep its groups together. Rows without a value are groups of one.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn group_keys(&self, column: usize) -> Vec<u64> {
        let alone = |row: usize| scrambled(!(row as u64));
        let key = |row: usize| match &self.columns[column].cells {
            cells if cells.is_missing(row) => alone(row),
            Cells::Numbers(values) => scrambled(values[row].to_bits()),
            Cells::Categories { codes, .. } => scrambled(u64::from(codes[row])),
        };
        (0..self.rows()).map(key).collect()
    }

    /// Columns that are not in the frame, with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// This frame's rows and then those of another one, over the columns that both have in the same form.
    #[must_use]
    pub fn stacked(&self, other: &Self) -> Self {
        let mut left_out = self.left_out.clone();
        let both = |column: &FrameColumn| {
            let other = other.columns.iter().find(|it| it.name == column.name)?;
            Some(FrameColumn { cells: stacked(&column.cells, &other.cells)?, ..column.clone() })
        };
        let mut columns = Vec::new();
        for column in &self.columns {
            match both(column) {
                Some(column) => columns.push(column),
                None => {
                    left_out.push(format!("`{}` is not the same kind of column on both sides", column.name))
                }
            }
        }
        Self {
            columns,
            places: [self.places.as_slice(), &other.places].concat(),
            keys: [self.keys.as_slice(), &other.keys].concat(),
            rows_seen: self.rows_seen + other.rows_seen,
            left_out,
        }
    }
}

fn stacked(one: &Cells, other: &Cells) -> Option<Cells> {
    match (one, other) {
        (Cells::Numbers(one), Cells::Numbers(other)) => {
            Some(Cells::Numbers([one.as_slice(), other].concat()))
        }
        (Cells::Categories { codes, names }, Cells::Categories { codes: more, names: other_names }) => {
            let mut texts = TextCells { codes: codes.clone(), names: names.clone(), ..TextCells::default() };
            texts.index = names.iter().enumerate().map(|(code, name)| (name.clone(), code as u32)).collect();
            for code in more {
                texts.add(other_names.get(*code as usize).map(String::as_str));
            }
            Some(texts.into_cells())
        }
        // All missing on one side: no type was seen there.
        (Cells::Numbers(nothing), Cells::Categories { .. }) if nothing.iter().all(|value| value.is_nan()) => {
            let missing = Cells::Categories { codes: vec![MISSING_CODE; nothing.len()], names: Vec::new() };
            stacked(&missing, other)
        }
        (Cells::Categories { codes, .. }, Cells::Numbers(nothing))
            if nothing.iter().all(|value| value.is_nan()) && !codes.is_empty() =>
        {
            let missing = Cells::Categories { codes: vec![MISSING_CODE; nothing.len()], names: Vec::new() };
            stacked(one, &missing)
        }
        _ => None,
    }
}

/// Keeps the rows with the lowest ranks, where a row's rank is a hash of its place: a uniform sample that does not
/// depend on the reading thread.
struct Sampler {
    limit: usize,
    seed: u64,
    pieces: Vec<Piece>,
    rows: usize,
    /// No row of the sample ranks higher: shared by all accumulators, and only ever lowered.
    highest: Arc<AtomicU64>,
}

struct Piece {
    batch: RecordBatch,
    ranks: Vec<u64>,
    places: Vec<Place>,
}

impl Sampler {
    fn new(limit: usize, seed: u64, highest: Arc<AtomicU64>) -> Self {
        Self { limit, seed, pieces: Vec::new(), rows: 0, highest }
    }

    fn rank(&self, place: Place) -> u64 {
        scrambled(scrambled(self.seed ^ scrambled(place.file as u64)) ^ place.row)
    }

    /// Drops all but the rows with the lowest ranks.
    fn keep_lowest(&mut self) {
        if self.rows <= self.limit {
            return;
        }
        let mut ranks: Vec<u64> = self.pieces.iter().flat_map(|piece| piece.ranks.iter().copied()).collect();
        let (_, highest, _) = ranks.select_nth_unstable(self.limit - 1);
        let highest = *highest;
        self.highest.fetch_min(highest, Ordering::Relaxed);
        let pieces = std::mem::take(&mut self.pieces);
        self.pieces = pieces.into_iter().filter_map(|piece| piece.up_to(highest)).collect();
        self.rows = self.pieces.iter().map(|piece| piece.ranks.len()).sum();
    }

    fn into_frame(self, source: &Source, label: Option<&str>, rows_seen: u64) -> Frame {
        let mut left_out = Vec::new();
        let mut columns = Vec::new();
        for (index, column) in source.columns().iter().enumerate() {
            let pieces: Vec<&ArrayRef> = self.pieces.iter().map(|piece| piece.batch.column(index)).collect();
            match FrameColumn::of_pieces(column, &pieces) {
                Some(column) => columns.push(column),
                None => left_out.push(format!("`{}` is neither number, time nor text", column.name)),
            }
        }
        let is_feature = |index: &usize| label != Some(source.columns()[*index].name.as_str());
        let features: Vec<usize> = (0..source.columns().len()).filter(is_feature).collect();
        let keys = |piece: &Piece| {
            let columns = features.iter().map(|index| piece.batch.column(*index));
            RowHashes::of(piece.ranks.len(), columns).values().to_vec()
        };
        Frame {
            columns,
            keys: self.pieces.iter().flat_map(keys).collect(),
            places: self.pieces.iter().flat_map(|piece| piece.places.iter().copied()).collect(),
            rows_seen,
            left_out,
        }
    }
}

impl Piece {
    fn up_to(self, highest: u64) -> Option<Self> {
        if self.ranks.iter().all(|rank| *rank <= highest) {
            return Some(self);
        }
        let kept: Vec<bool> = self.ranks.iter().map(|rank| *rank <= highest).collect();
        let of = |row: usize| kept[row];
        let ranks: Vec<u64> = (0..kept.len()).filter(|row| of(*row)).map(|row| self.ranks[row]).collect();
        let places = (0..kept.len()).filter(|row| of(*row)).map(|row| self.places[row]).collect();
        let batch = filter_record_batch(&self.batch, &BooleanArray::from(kept));
        let batch = batch.expect("the filter has a value for each row");
        (!ranks.is_empty()).then_some(Self { batch, ranks, places })
    }
}

impl Pass for Sampler {
    fn observe(&mut self, chunk: &Chunk) {
        let rows = chunk.batch.num_rows();
        let places: Vec<Place> = (0..rows).map(|row| chunk.place(row)).collect();
        let ranks: Vec<u64> = places.iter().map(|place| self.rank(*place)).collect();
        let piece = Piece { batch: chunk.batch.clone(), ranks, places };
        if let Some(piece) = piece.up_to(self.highest.load(Ordering::Relaxed)) {
            self.rows += piece.ranks.len();
            self.pieces.push(piece);
        }
        if self.rows > self.limit * 2 {
            self.keep_lowest();
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.pieces.extend(later.pieces);
        if self.rows > self.limit * 2 {
            self.keep_lowest();
        }
    }
}

/// The cells of a column's pieces; `None` for a type that a model cannot use.
fn cells<'a>(kind: ColumnType, pieces: impl Iterator<Item = &'a ArrayRef>) -> Option<Cells> {
    match kind {
        ColumnType::Text | ColumnType::Mixed => {
            let mut cells = TextCells::default();
            for piece in pieces {
                let texts = Texts::of(piece);
                (0..piece.len()).for_each(|row| cells.add(texts.as_ref().and_then(|texts| texts.get(row))));
            }
            Some(cells.into_cells())
        }
        ColumnType::Binary | ColumnType::List | ColumnType::Object => None,
        _ => Some(Cells::Numbers(pieces.flat_map(numbers).collect())),
    }
}

/// Whether two different whole numbers are the same float: as classes or groups they would be one.
fn are_made_equal(pieces: &[&ArrayRef]) -> bool {
    let mut known: HashMap<u64, i64> = HashMap::new();
    let mut is_other = |number: &ExactNumber| {
        let first = *known.entry(number.nearest.to_bits()).or_insert(number.remainder);
        first != number.remainder
    };
    let has_long = pieces.iter().any(|piece| exact_numbers(piece).iter().any(|number| number.remainder != 0));
    has_long && pieces.iter().flat_map(|piece| exact_numbers(piece)).any(|number| is_other(&number))
}

/// Whole numbers as the strings of their digits.
fn digits(pieces: &[&ArrayRef]) -> Cells {
    let mut cells = TextCells::default();
    for piece in pieces {
        let nulls = piece.logical_nulls();
        for row in 0..piece.len() {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let text = (!is_null).then(|| array_value_to_string(piece, row).unwrap_or_default());
            cells.add(text.as_deref());
        }
    }
    cells.into_cells()
}

fn numbers(array: &ArrayRef) -> Vec<f64> {
    let floats = match array.data_type() {
        DataType::Timestamp(_, _) => {
            let times = array.as_primitive::<TimestampMicrosecondType>();
            return times.iter().map(|time| time.map_or(f64::NAN, |time| time as f64)).collect();
        }
        _ => cast(array, &DataType::Float64),
    };
    match floats {
        Ok(floats) => {
            floats.as_primitive::<Float64Type>().iter().map(|value| value.unwrap_or(f64::NAN)).collect()
        }
        Err(_) => vec![f64::NAN; array.len()],
    }
}

#[derive(Default)]
struct TextCells {
    codes: Vec<u32>,
    names: Vec<String>,
    index: HashMap<String, u32>,
}

impl TextCells {
    fn add(&mut self, text: Option<&str>) {
        let code = match text {
            None => MISSING_CODE,
            Some(text) => self.index.get(text).copied().unwrap_or_else(|| {
                let code = self.names.len() as u32;
                self.names.push(text.to_owned());
                self.index.insert(text.to_owned(), code);
                code
            }),
        };
        self.codes.push(code);
    }

    fn into_cells(self) -> Cells {
        Cells::Categories { codes: self.codes, names: self.names }
    }
}
