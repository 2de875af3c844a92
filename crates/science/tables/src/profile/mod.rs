//! What a data set is like, from one streaming pass, in bounded memory.
//!
//! A [`Profile`] is small (about 100 KB per column at most), versioned, and can be stored as JSON. Profiles of parts,
//! made on different machines, are [merged](Profile::merge) into the profile of the whole: counts, bounds, moments and
//! few values exactly, quantiles and distinct counts within the stated error. Drift between two data sets is computed
//! from two profiles alone.
//!
//! What is exact and what is not:
//!
//! | statistic | |
//! |---|---|
//! | rows, nulls, NaN, infinities, zeros, negatives, misfits, order, smallest, largest, lengths up to 64 | exact |
//! | mean, deviation, skewness, kurtosis, correlation | exact but for rounding |
//! | values and how many different ones, up to [`MAX_VALUES`] | exact |
//! | more values than that | counts too low by at most the stated error; number ± [`DISTINCT_STANDARD_ERROR`] |
//! | quantiles, histogram | rank off by at most [`QUANTILE_RANK_ERROR`], in 99 of 100 cases |
//! | patterns of strings that are not stored as a dictionary | from one row of 16 |
//!
//! In tables of more than 3,584 columns a column keeps less, so that all of them have room: see [`crate::limits`]. Each
//! summary states how exact it is.
//!
//! Of large tables the quantiles are taken from one random row of each few neighbouring rows: at least
//! [`MIN_QUANTILE_ROWS`] values then represent all. That error is included.

mod column;
mod distinct;
mod label;
mod moments;
mod number;
mod quantiles;
mod shown;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod values;
pub mod wide;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::limits::FinishedRoom;
use crate::pass::{Pass, PassObserver};
use crate::read::{Chunk, Coverage, Source};
pub use column::ColumnProfile;
pub use distinct::DISTINCT_STANDARD_ERROR;
use label::Classes;
pub use label::{MAX_CLASSES, MAX_CROSSED_TEXTS};
pub use moments::{CoMoments, Moments};
use number::{Closeness, Scratch};
pub use quantiles::{QUANTILE_RANK_ERROR, Quantiles};
pub use shown::hidden;
pub use summary::{HISTOGRAM_BINS, QUANTILE_SHARES, TOP_VALUES};
pub use text::Lengths;
pub use trackway_results::profile::{
    Association, AssociationMeasure, ColumnSummary, Histogram, LengthSummary, Order, PatternSummary,
    Quantile, Value, ValueCount,
};
pub use values::{MAX_KEPT_BYTES, MAX_VALUES};

/// The version of a stored profile. A reader refuses others.
pub const PROFILE_VERSION: u32 = 1;

/// So many values of a column, at least, go into its quantiles.
pub const MIN_QUANTILE_ROWS: u64 = 2 << 20;

/// At most so many neighbours are represented by one.
const MAX_QUANTILE_STEP: u64 = 64;

/// A data set's statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub version: u32,
    /// Rows read.
    pub rows: u64,
    /// Rows rejected; with the rows read, all there are.
    pub rows_rejected: u64,
    /// The rows whose numbers were looked at, where not all were: see [`Profile::sampled`]. It is not stored, as no
    /// such profile is.
    #[serde(skip)]
    pub rows_sampled: Option<u64>,
    /// The column that others are compared with.
    pub label: Option<String>,
    /// The name of the key that its values are masked with; `None`: they are as they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked_with: Option<String>,
    /// In the order of the source.
    pub columns: Vec<ColumnProfile>,
}

/// Why two profiles cannot be merged, or a stored one not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    #[error("the profile has version {found}, this program reads {PROFILE_VERSION}; create it again")]
    Version { found: u32 },
    #[error("one profile has the label {one:?}, the other {other:?}; create both with the same label")]
    Label { one: Option<String>, other: Option<String> },
    #[error("not a valid profile: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl Profile {
    /// Reads a source whole and profiles every column; with a label, its going together with each column too.
    ///
    /// # Errors
    /// [`DataError`]: no such label, a file that cannot be read.
    pub fn of(
        source: &mut Source,
        label: Option<&str>,
        watch: &PassObserver<'_>,
    ) -> Result<(Self, Coverage), DataError> {
        if let Some(label) = label {
            source.index_of(label, "label")?;
        }
        let (profiler, _, coverage) = wide::scan_beside(source, (label, Sampling::None), &(), watch)?;
        let mut profile = profiler.into_profile();
        profile.rows_rejected = coverage.rows_rejected;
        Ok((profile, coverage))
    }

    /// Reads a source whole, but looks at the numbers of a sample of its rows only: one of each few neighbours, at least
    /// `rows_min` in all. For comparing distributions, not to be kept.
    ///
    /// Rows, missing values, strings and booleans are those of all rows; all else about numbers is of the sample.
    ///
    /// # Errors
    /// [`DataError`]: a file that cannot be read.
    pub fn sampled(source: &mut Source, rows_min: u64, watch: &PassObserver<'_>) -> Result<Self, DataError> {
        let sampling = Sampling::AtLeast(rows_min);
        let (profiler, _, coverage) = wide::scan_beside(source, (None, sampling), &(), watch)?;
        let rows_sampled = (profiler.closeness.row_step > 1).then_some(profiler.rows_sampled);
        let profile = profiler.into_profile();
        Ok(Self { rows_rejected: coverage.rows_rejected, rows_sampled, ..profile })
    }

    /// Sets the file of its set that the rows of this profile come from: places are then those of the set.
    pub fn is_of_file(&mut self, file: usize) {
        for column in &mut self.columns {
            column.faults.examples.iter_mut().for_each(|example| example.place.file = file);
        }
    }

    /// Adds the profile of further rows. A column that only one side has is taken over, all null in the other's rows.
    ///
    /// # Errors
    /// [`ProfileError`] where versions or labels differ; nothing is changed then.
    pub fn merge(&mut self, later: Self) -> Result<(), ProfileError> {
        later.check_version()?;
        if self.label != later.label {
            return Err(ProfileError::Label { one: self.label.clone(), other: later.label });
        }
        let (rows, later_rows) = (self.rows, later.rows);
        let mut missing: Vec<bool> = vec![true; self.columns.len()];
        for column in later.columns {
            match self.columns.iter().position(|known| known.name == column.name) {
                Some(index) => {
                    self.columns[index].merge(column);
                    missing[index] = false;
                }
                None => {
                    let mut column = column;
                    column.add_absent(rows);
                    self.columns.push(column);
                }
            }
        }
        for (column, missing) in self.columns.iter_mut().zip(missing) {
            if missing {
                column.add_absent(later_rows);
            }
        }
        self.rows += later_rows;
        self.rows_rejected += later.rows_rejected;
        self.masked_with = self.masked_with.take().or(later.masked_with);
        Ok(())
    }

    /// Reads a stored profile.
    ///
    /// # Errors
    /// [`ProfileError`] for another version or damaged content.
    pub fn from_json(text: &str) -> Result<Self, ProfileError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_str(text)?;
        if version != PROFILE_VERSION {
            return Err(ProfileError::Version { found: version });
        }
        Ok(serde_json::from_str(text)?)
    }

    fn check_version(&self) -> Result<(), ProfileError> {
        if self.version == PROFILE_VERSION {
            Ok(())
        } else {
            Err(ProfileError::Version { found: self.version })
        }
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnProfile> {
        self.columns.iter().find(|column| column.name == name)
    }
}

impl ColumnProfile {
    fn add_absent(&mut self, rows: u64) {
        self.rows += rows;
        self.null_count += rows;
        self.faults.absent += rows;
    }

    /// Gives back memory that only further rows would need; what is stored stays, within the room of a column.
    fn finish(&mut self, room: FinishedRoom) {
        if let Some(numbers) = &mut self.numbers {
            numbers.quantiles.finish(room.top_length);
        }
        if let Some(values) = &mut self.values {
            values.finish(room.values_max);
        }
    }

    /// Ranks of the finite values: for distances between two data sets. `None` for other than numbers and times.
    #[must_use]
    pub fn quantile_sketch(&self) -> Option<&Quantiles> {
        self.numbers.as_ref().map(|numbers| &numbers.quantiles)
    }

    /// Changes strings and their hashes; `None` leaves one as it is.
    pub fn change_texts(&mut self, change: impl FnMut(&str, u64) -> Option<(u64, String)>) {
        if let Some(values) = &mut self.values {
            values.change_texts(change);
        }
    }

    /// Changes the hashes of strings and classes in what is known of the label.
    pub fn rehash_label(&mut self, texts: &HashMap<u64, u64>, classes: &HashMap<u64, u64>) {
        if let Some(label) = &mut self.label {
            label.rehash(texts, classes);
        }
    }

    /// Moments of the finite values. `None` for other than numbers and timestamps.
    #[must_use]
    pub fn moments(&self) -> Option<Moments> {
        self.numbers.as_ref().map(|numbers| numbers.moments)
    }

    /// Numbers that are NaN.
    #[must_use]
    pub fn nan_count(&self) -> u64 {
        self.numbers.as_ref().map_or(0, |numbers| numbers.nan)
    }

    /// The fraction of infinite ones of the numbers that were looked at and are not NaN.
    #[must_use]
    pub fn infinite_share(&self) -> f64 {
        self.numbers.as_ref().map_or(0.0, |numbers| {
            let infinite = numbers.positive_infinite + numbers.negative_infinite;
            infinite as f64 / (infinite + numbers.moments.count).max(1) as f64
        })
    }

    /// Shapes of strings with their counts, as far as they are known: see [`PatternSummary`].
    #[must_use]
    pub fn shapes(&self) -> Vec<(String, u64)> {
        self.texts.as_ref().map_or_else(Vec::new, |texts| texts.patterns.texts())
    }

    /// Whether [`ColumnProfile::top_values`] holds every value with its exact count.
    #[must_use]
    pub fn values_are_exact(&self) -> bool {
        self.values.as_ref().is_some_and(values::ValueCounts::is_exact)
    }
}

/// The pass that makes a profile.
pub struct Profiler {
    columns: Vec<ColumnProfile>,
    label: Option<(usize, String)>,
    classes: Classes,
    scratch: Scratch,
    rows: u64,
    rows_sampled: u64,
    closeness: Closeness,
}

/// Whether numbers are looked at in every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    None,
    /// In so many rows at least.
    AtLeast(u64),
}

impl Profiler {
    /// For the columns of a source; `label` is one of them or none.
    #[must_use]
    pub fn new(source: &Source, label: Option<&str>) -> Self {
        Self::with(source, label, Sampling::None)
    }

    fn with(source: &Source, label: Option<&str>, sampling: Sampling) -> Self {
        let find = |name: &str| source.columns().iter().position(|column| column.name == name);
        Self {
            columns: source.columns().iter().map(ColumnProfile::new).collect(),
            label: label.and_then(|label| Some((find(label)?, label.to_owned()))),
            classes: Classes::default(),
            scratch: Scratch::default(),
            rows: 0,
            rows_sampled: 0,
            closeness: closeness(source.about_rows(), sampling),
        }
    }

    /// What was found.
    #[must_use]
    pub fn into_profile(self) -> Profile {
        Profile {
            version: PROFILE_VERSION,
            rows: self.rows,
            rows_rejected: 0,
            rows_sampled: None,
            label: self.label.map(|(_, name)| name),
            masked_with: None,
            columns: self.columns,
        }
    }
}

/// How closely the numbers of about so many rows are looked at.
fn closeness(rows: u64, sampling: Sampling) -> Closeness {
    let row_step = match sampling {
        Sampling::None => 1,
        Sampling::AtLeast(rows_min) => (rows / rows_min.max(1)).max(1),
    };
    let step = (rows / row_step / MIN_QUANTILE_ROWS).clamp(1, MAX_QUANTILE_STEP);
    Closeness { quantile_step: 1 << step.ilog2(), row_step: row_step as usize }
}

impl Pass for Profiler {
    fn observe(&mut self, chunk: &Chunk) {
        let rows = chunk.batch.num_rows();
        self.rows += rows as u64;
        self.rows_sampled += rows.div_ceil(self.closeness.row_step) as u64;
        let label_index = self.label.as_ref().map(|(index, _)| *index);
        let label = label_index.map(|index| self.classes.chunk(chunk.batch.column(index)));
        let arrays = chunk.batch.columns().iter().zip(&chunk.cells);
        for (index, (column, (array, tally))) in self.columns.iter_mut().zip(arrays).enumerate() {
            let label = label.as_ref().filter(|_| label_index != Some(index));
            column.observe(array, &tally.faults, label, &mut self.scratch, self.closeness);
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.rows_sampled += later.rows_sampled;
        for (column, more) in self.columns.iter_mut().zip(later.columns) {
            column.merge(more);
        }
    }
}
