//! What one side of a split knows of the other, and what the features know of the label.
//!
//! [`examine`] runs the checks of [`CHECKS`]: it reads the test side once and the training side once, or twice where
//! near-duplicates are looked for. [`find_overlap`] is the part of it that only counts what both sides have.

mod columns;
mod golden;
mod identifiers;
mod judge;
mod near;
mod overlap;
#[cfg(test)]
mod planted;
mod power;
mod preprocessing;
mod sample;
mod target;
mod twins;

pub use golden::GoldenFeature;
pub use identifiers::{Evidence, Identifier, Identifiers};
pub use near::{Near, NearPair, NearRows};
pub use overlap::{
    GroupOverlap, OVERLAP_EXAMPLES_MAX, Overlap, Roles, RowOverlap, SharedRow, TimeOverlap, find_overlap,
};
pub use preprocessing::{Fit, FittedColumn};
pub use target::{FeaturePower, PairPower, TargetPower};
pub use twins::{TWIN_KEYS_MAX, Twins};

use crate::error::DataError;
use crate::pass::{Watch, scan};
use crate::read::Source;
use columns::Columns;
use near::rows::Plan;
use near::texts::{CONTROL_BYTES_MAX, Prints, TEST_BYTES_MAX};
use preprocessing::Scales;
use sample::{Sample, TEST_ROWS_MAX, TRAIN_ROWS_MAX};

const ROWS: &str = "leakage.rows";
const GROUPS: &str = "leakage.groups";
const TIME: &str = "leakage.time";
const CONFLICTS: &str = "leakage.conflicts";
const NEAR: &str = "leakage.near_duplicates";
const TARGET: &str = "leakage.target";
const IDENTIFIERS: &str = "leakage.identifiers";
const PREPROCESSING: &str = "leakage.preprocessing";

/// The names of all checks.
pub const CHECKS: [&str; 8] = [ROWS, GROUPS, TIME, CONFLICTS, NEAR, TARGET, IDENTIFIERS, PREPROCESSING];

/// Everything that was found out; [`Leakage::results`] says what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Leakage {
    /// Checks that were wanted, in the order of [`CHECKS`].
    pub wanted: Vec<&'static str>,
    /// What both sides have. It is always looked for.
    pub overlap: Overlap,
    /// Rows and texts that both sides nearly have.
    pub near: Option<Near>,
    /// What features know of the label; `None` where none is known.
    pub target: Option<TargetPower>,
    /// Columns that name rows.
    pub identifiers: Identifiers,
    /// Columns that were scaled before the split.
    pub fitted: Vec<FittedColumn>,
    /// Columns of decimal numbers, which could have been.
    pub fitted_looked_at: usize,
}

/// Runs the checks that `is_wanted` says yes to. Columns are matched by name. Memory: about 50 bytes for each row of
/// the test side, samples of at most 64 MiB a side, of longer texts another 64 MiB, and an index of near rows of about
/// as much as the sample of the test side.
///
/// # Errors
/// [`DataError`]: a column of `roles` that a side does not have, a file that cannot be read, the scan cancelled.
pub fn examine(
    train: &mut Source,
    test: &mut Source,
    roles: &Roles,
    is_wanted: &dyn Fn(&str) -> bool,
    watch: &Watch<'_>,
) -> Result<Leakage, DataError> {
    let wanted: Vec<&'static str> = CHECKS.into_iter().filter(|name| is_wanted(name)).collect();
    let wants = |names: &[&str]| wanted.iter().any(|name| names.contains(name));
    let (wants_near, wants_scales) = (wants(&[NEAR]), wants(&[PREPROCESSING]));
    let wants_sample = wants_near || wants(&[TARGET, IDENTIFIERS]);
    let columns = Columns::of(train, test, roles)?;
    let mut progress = Progress::new(watch, test, train, if wants_near { 2 } else { 1 });

    let sample = |source: &Source, rows_max: usize| {
        wants_sample.then(|| Sample::new(columns.places_in(source), source, rows_max))
    };
    let scales = |source: &Source| wants_scales.then(|| Scales::new(columns.places_in(source), source));
    let prints = |source: &Source, bytes_max: usize| {
        wants_near.then(|| Prints::new(columns.places_in(source), source, bytes_max))
    };

    let of_test = |source: &Source| {
        let seen = overlap::Seen::new(columns.places_in(source));
        (seen, (sample(source, TEST_ROWS_MAX), (scales(source), prints(source, TEST_BYTES_MAX))))
    };
    let ((seen, (test_sample, (test_scales, test_prints))), test_coverage) =
        progress.part(test.size_bytes(), |watch| scan(test, &of_test, watch))?;
    let lookup = overlap::Lookup::of(&seen);
    let of_train = |source: &Source| {
        let met = overlap::Met::new(columns.places_in(source), &lookup);
        (met, (sample(source, TRAIN_ROWS_MAX), (scales(source), prints(source, CONTROL_BYTES_MAX))))
    };
    let ((met, (train_sample, (train_scales, train_prints))), train_coverage) =
        progress.part(train.size_bytes(), |watch| scan(train, &of_train, watch))?;
    let overlap = Overlap::of(&seen, &met, &columns, [train_coverage, test_coverage]);
    drop(met);
    drop((seen, lookup));

    let mut leakage = Leakage {
        wanted: wanted.clone(),
        overlap,
        near: None,
        target: None,
        identifiers: Identifiers::default(),
        fitted: Vec::new(),
        fitted_looked_at: 0,
    };
    if let (Some(train), Some(test)) = (train_scales, test_scales) {
        (leakage.fitted, leakage.fitted_looked_at) = preprocessing::fitted(&columns.features, &train, &test);
    }
    let (Some(train_sample), Some(test_sample)) = (train_sample, test_sample) else { return Ok(leakage) };
    if wants(&[TARGET, IDENTIFIERS]) {
        leakage.target = target::measure(&columns.features, &train_sample, &test_sample);
    }
    leakage.identifiers = identifiers::find(&columns.features, &train_sample, leakage.target.as_ref());
    if let (Some(control), Some(prints)) = (train_prints, test_prints) {
        let identifiers = &leakage.identifiers;
        let near = progress.part(train.size_bytes(), |watch| {
            look_for_near(
                train,
                &columns,
                [&train_sample, &test_sample],
                [control, prints],
                identifiers,
                watch,
            )
        })?;
        leakage.near = Some(near);
    }
    Ok(leakage)
}

/// Reads the training side once more and looks its rows up among those of the test side that nearly equal them.
fn look_for_near(
    train: &mut Source,
    columns: &Columns,
    [train_sample, test_sample]: [&Sample; 2],
    [control, prints]: [Prints; 2],
    identifiers: &Identifiers,
    watch: &Watch<'_>,
) -> Result<Near, DataError> {
    let is_long = prints.are_long();
    let is_identifier = |name: &String| identifiers.found.iter().any(|it| it.column == *name);
    let left_out: Vec<bool> = columns
        .features
        .iter()
        .zip(&is_long)
        .map(|(name, is_long)| *is_long || is_identifier(name))
        .collect();
    let plan = Plan::new(train_sample, test_sample, &left_out);
    let texts = near::texts::Lookup::new(prints, control);
    let mut near = Near::default();
    let rows = match plan {
        Ok(plan) => Some(near::rows::Lookup::new(plan, train_sample, test_sample)),
        Err(why) => {
            near.not_compared.push(why);
            None
        }
    };
    if rows.is_none() && texts.is_empty() {
        return Ok(near);
    }
    let make = |source: &Source| {
        let met = |lookup| near::rows::Met::new(columns.places_in(source), lookup);
        (rows.as_ref().map(met), near::texts::Met::new(columns.places_in(source), &texts))
    };
    let ((met_rows, met_texts), _) = scan(train, &make, watch)?;
    if let (Some(rows), Some(met)) = (&rows, &met_rows) {
        near.found.push(rows.found(met, test_sample));
    }
    near.found.extend(texts.found(&met_texts, &columns.features));
    Ok(near)
}

/// One progress over several readings.
struct Progress<'w> {
    watch: &'w Watch<'w>,
    before_bytes: u64,
    total_bytes: u64,
}

impl<'w> Progress<'w> {
    fn new(watch: &'w Watch<'w>, test: &Source, train: &Source, train_readings: u64) -> Self {
        let total_bytes = test.size_bytes() + train_readings * train.size_bytes();
        Self { watch, before_bytes: 0, total_bytes }
    }

    fn part<T>(&mut self, bytes: u64, read: impl FnOnce(&Watch<'_>) -> T) -> T {
        let (before, total) = (self.before_bytes, self.total_bytes);
        let answer = read(&Watch {
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
