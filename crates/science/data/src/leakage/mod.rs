//! Leakage: information about one side of a split in the other, and about the label in the features.
//!
//! [`examine`] runs the checks of [`CHECKS`]: it reads the test side once and the training side once, or twice where
//! near-duplicates are looked for.

mod columns;
mod duplicates;
mod expected;
mod golden;
#[cfg(test)]
mod identified;
mod identifiers;
mod judge;
mod near;
mod overlap;
#[cfg(test)]
mod planted;
mod power;
mod preprocessing;
mod sample;
pub(crate) mod shared;
mod target;

use trackway_tables::DataError;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{self, Chunk, Source, agree};

use columns::Columns;
pub use columns::Roles;
pub(crate) use duplicates::DuplicateCounts;
pub use duplicates::{DUPLICATE_KEYS_MAX, Duplicates};
pub use expected::ExpectedOverlap;
pub use golden::GoldenFeature;
pub use identifiers::{Identifier, IdentifierEvidence, Identifiers};
use near::rows::Plan;
use near::texts::{CONTROL_BYTES_MAX, Prints, TEST_BYTES_MAX};
pub use near::{Near, NearPair, NearRows};
pub use overlap::{GroupOverlap, Overlap, RowOverlap, SharedRow, TimeOverlap};
use preprocessing::Scales;
pub use preprocessing::{Fit, FittedColumn};
use sample::{Sample, TEST_ROWS_MAX, TRAIN_ROWS_MAX};
pub use target::{FeaturePower, PairPower, TargetPower};

const ROWS: &str = "leakage.rows";
/// A file of the test side is, byte by byte, one of the training side.
const SAME_FILE: &str = "leakage.same_file";
/// A side has no rows.
const NO_ROWS: &str = "leakage.no_rows";
/// Every row of the test side is in the training side.
const ALL_ROWS: &str = "leakage.all_rows";
/// A feature is the label.
const LABEL_COPY: &str = "leakage.label_copy";
const GROUPS: &str = "leakage.groups";
const TIME: &str = "leakage.time";
const CONFLICTS: &str = "leakage.conflicts";
const NEAR: &str = "leakage.near_duplicates";
const TARGET: &str = "leakage.target";
const IDENTIFIERS: &str = "leakage.identifiers";
const PREPROCESSING: &str = "leakage.preprocessing";

/// The names of all checks.
pub const CHECKS: [&str; 8] = [ROWS, GROUPS, TIME, CONFLICTS, NEAR, TARGET, IDENTIFIERS, PREPROCESSING];

/// Everything that was found; [`Leakage::results`] interprets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Leakage {
    /// Checks that were wanted, in the order of [`CHECKS`].
    pub wanted: Vec<&'static str>,
    /// What both sides have. It is always looked for.
    pub overlap: Overlap,
    /// What they would have if their columns were independent; `None` where neither rows nor labels of equal rows are wanted.
    pub expected: Option<ExpectedOverlap>,
    /// Files of the training side, and files of the test side that have their very bytes.
    pub same_files: Vec<(String, String)>,
    /// Near-duplicate rows and texts of both sides.
    pub near: Option<Near>,
    /// How well features predict the label; `None` without one.
    pub target: Option<TargetPower>,
    /// Columns that name rows.
    pub identifiers: Identifiers,
    /// Columns that were scaled before the split.
    pub fitted: Vec<FittedColumn>,
    /// Columns of decimal numbers, which could have been.
    pub fitted_looked_at: usize,
}

/// Runs the checks for which `is_wanted` returns true. Columns are matched by name. Memory: about 50 bytes for each row
/// of the test side, samples of at most 64 MiB a side, of longer texts another 64 MiB, and an index of near rows of
/// about as much as the sample of the test side.
///
/// # Errors
/// [`DataError`]: a column of `roles` that a side does not have, a file that cannot be read, the scan cancelled.
pub fn examine(
    train: &mut Source,
    test: &mut Source,
    roles: &Roles,
    is_wanted: &dyn Fn(&str) -> bool,
    watch: &PassObserver<'_>,
) -> Result<Leakage, DataError> {
    let wanted: Vec<&'static str> = CHECKS.into_iter().filter(|name| is_wanted(name)).collect();
    let wants = Wants::of(&wanted);
    agree(train, test, &|_| true);
    let mut columns = Columns::of(train, test, roles)?;
    columns.identifiers = columns.candidates(train);
    let (mut progress, Sides { overlap, train: train_side, test: test_side, .. }) = loop {
        let mut progress = Progress::new(watch, test, train, if wants.near { 2 } else { 1 });
        let sides = read_sides(train, test, &columns, wants, &mut progress)?;
        if agree(train, test, &|_| true) {
            // One side turned out to be kept as it is written: its values are not those that the other side was read as.
            columns = Columns::of(train, test, roles)?;
            columns.identifiers = columns.candidates(train);
            continue;
        }
        if sides.refuted.is_empty() {
            break (progress, sides);
        }
        // Fewer are left, so it ends; values that begin to repeat after thousands of rows are rare.
        columns.identifiers.retain(|name| !sides.refuted.contains(name));
    };
    let expected = wants.equal.then(|| {
        let rows = (overlap.train.rows_read, overlap.test.rows_read);
        train_side.sample.as_ref().map(|sample| expected_of(sample, &columns, &overlap, rows))
    });
    let mut leakage = Leakage {
        wanted,
        overlap,
        expected: expected.flatten(),
        same_files: read::same_files(train, test)?,
        near: None,
        target: None,
        identifiers: Identifiers::default(),
        fitted: Vec::new(),
        fitted_looked_at: 0,
    };
    if let (Some(train), Some(test)) = (&train_side.scales, &test_side.scales) {
        (leakage.fitted, leakage.fitted_looked_at) = preprocessing::fitted(&columns.features, train, test);
    }
    if let (Some(train), Some(test)) = (&train_side.sample, &test_side.sample) {
        if wants.power {
            leakage.target = target::measure(&columns.features, train, test);
        }
        if wants.near || wants.power {
            leakage.identifiers = identifiers::find(&columns, train, leakage.target.as_ref());
        }
    }
    if wants.near {
        let identifiers = &leakage.identifiers;
        let near = progress.part(train.size_bytes(), |watch| {
            look_for_near(train, &columns, [train_side, test_side], identifiers, watch)
        })?;
        leakage.near = Some(near);
    }
    Ok(leakage)
}

/// What independent columns would show, of the columns by which rows were compared.
fn expected_of(sample: &Sample, columns: &Columns, overlap: &Overlap, rows: (u64, u64)) -> ExpectedOverlap {
    let counts = |name: &String| !columns.ignored.contains(name) && !overlap.rows.without.contains(name);
    let features = columns.features.iter().zip(&sample.features).filter(|(name, _)| counts(name));
    let features: Vec<_> = features.map(|(_, values)| values).collect();
    expected::expected(&features, sample.label.as_ref(), rows)
}

/// What has to be collected for the checks that are wanted.
#[derive(Clone, Copy)]
struct Wants {
    near: bool,
    power: bool,
    scales: bool,
    /// Rows that are equal, and their labels.
    equal: bool,
}

impl Wants {
    fn of(wanted: &[&str]) -> Self {
        let any = |names: &[&str]| wanted.iter().any(|name| names.contains(name));
        Self {
            near: any(&[NEAR]),
            power: any(&[TARGET, IDENTIFIERS]),
            scales: any(&[PREPROCESSING]),
            equal: any(&[ROWS, CONFLICTS]),
        }
    }
}

/// What is collected of one side beside its fingerprints.
struct Side {
    sample: Option<Sample>,
    scales: Option<Scales>,
    prints: Option<Prints>,
}

impl Side {
    fn new(wants: Wants, columns: &Columns, source: &Source, (rows_max, bytes_max): (usize, usize)) -> Self {
        let places = || columns.places_in(source);
        Self {
            sample: (wants.near || wants.power || wants.equal)
                .then(|| Sample::new(places(), source, rows_max)),
            scales: wants.scales.then(|| Scales::new(places(), source)),
            prints: wants.near.then(|| Prints::new(places(), source, bytes_max)),
        }
    }
}

impl Pass for Side {
    fn observe(&mut self, chunk: &Chunk) {
        self.sample.observe(chunk);
        self.scales.observe(chunk);
        self.prints.observe(chunk);
    }

    fn merge(&mut self, later: Self) {
        self.sample.merge(later.sample);
        self.scales.merge(later.scales);
        self.prints.merge(later.prints);
    }
}

/// Both sides, read.
struct Sides {
    overlap: Overlap,
    train: Side,
    test: Side,
    /// Columns that were taken for identifiers and are none.
    refuted: Vec<String>,
}

/// Reads the test side, then the training side: what both have, and what is collected of each.
fn read_sides(
    train: &mut Source,
    test: &mut Source,
    columns: &Columns,
    wants: Wants,
    progress: &mut Progress<'_>,
) -> Result<Sides, DataError> {
    let of_test = |source: &Source| {
        let side = Side::new(wants, columns, source, (TEST_ROWS_MAX, TEST_BYTES_MAX));
        (overlap::TestRows::new(columns.places_in(source)), side)
    };
    let ((seen, test_side), test_coverage) =
        progress.part(test.size_bytes(), |watch| scan(test, &of_test, watch))?;
    let lookup = overlap::Lookup::of(&seen);
    let of_train = |source: &Source| {
        let side = Side::new(wants, columns, source, (TRAIN_ROWS_MAX, CONTROL_BYTES_MAX));
        (overlap::OverlapMatches::new(columns.places_in(source), &lookup), side)
    };
    let ((met, train_side), train_coverage) =
        progress.part(train.size_bytes(), |watch| scan(train, &of_train, watch))?;
    let overlap = Overlap::of(&seen, &met, columns, [train_coverage, test_coverage]);
    Ok(Sides { overlap, train: train_side, test: test_side, refuted: met.refuted(columns) })
}

/// Reads the training side once more and looks its rows up among those of the test side that nearly equal them.
fn look_for_near(
    train: &mut Source,
    columns: &Columns,
    sides: [Side; 2],
    identifiers: &Identifiers,
    watch: &PassObserver<'_>,
) -> Result<Near, DataError> {
    const COLLECTED: &str = "samples and prints are collected where near-duplicates are wanted";
    let [train_side, test_side] = sides;
    let (train_sample, test_sample) =
        (train_side.sample.expect(COLLECTED), test_side.sample.expect(COLLECTED));
    let (control, prints) = (train_side.prints.expect(COLLECTED), test_side.prints.expect(COLLECTED));
    let is_identifier = |name: &String| {
        identifiers.found.iter().any(|it| it.column == *name)
            || columns.identifiers.contains(name)
            || columns.ignored.contains(name)
    };
    let each = columns.features.iter().zip(prints.are_long());
    let left_out: Vec<bool> = each.map(|(name, is_long)| is_long || is_identifier(name)).collect();
    let mut near = Near::default();
    let rows = match Plan::new(&train_sample, &test_sample, &left_out) {
        Ok(plan) => Some(near::rows::Lookup::new(plan, &train_sample, &test_sample)),
        Err(why) => {
            near.not_compared.push(why);
            None
        }
    };
    let texts = near::texts::Lookup::new(prints, control);
    if rows.is_none() && texts.is_empty() {
        return Ok(near);
    }
    let make = |source: &Source| {
        let met = |lookup| near::rows::RowMatches::new(columns.places_in(source), lookup);
        (rows.as_ref().map(met), near::texts::TextMatches::new(columns.places_in(source), &texts))
    };
    let ((met_rows, met_texts), _) = scan(train, &make, watch)?;
    if let (Some(rows), Some(met)) = (&rows, &met_rows) {
        near.found.push(rows.found(met, &test_sample));
    }
    near.found.extend(texts.found(&met_texts, &columns.features));
    Ok(near)
}

/// One progress over several readings.
struct Progress<'w> {
    watch: &'w PassObserver<'w>,
    before_bytes: u64,
    total_bytes: u64,
}

impl<'w> Progress<'w> {
    fn new(watch: &'w PassObserver<'w>, test: &Source, train: &Source, train_readings: u64) -> Self {
        let total_bytes = test.size_bytes() + train_readings * train.size_bytes();
        Self { watch, before_bytes: 0, total_bytes }
    }

    fn part<T>(&mut self, bytes: u64, read: impl FnOnce(&PassObserver<'_>) -> T) -> T {
        let (before, total) = (self.before_bytes, self.total_bytes);
        let answer = read(&PassObserver {
            progress: &|done, _| (self.watch.progress)(before + done, total),
            cancelled: self.watch.cancelled,
            units_in_flight: self.watch.units_in_flight,
        });
        self.before_bytes += bytes;
        answer
    }
}

#[cfg(test)]
mod tests;
