//! Blind spots: the slices of a table where a model is worse than it is on the whole.
//!
//! SliceLine's problem (Sagadeeva and Boehm 2021), answered exactly: of all conjunctions of `column = value` with enough
//! rows, the ones with the highest score, which weighs how much larger the error is against how few the rows are.
//! Numbers are put into bins, and a missing value is a value.
//!
//! What is best of many thousands looks worse than it is. So slices are searched on one part of the rows and measured on
//! the other: those errors are fair, each p-value is one of a single test, and it is corrected for the slices in the
//! answer, not for all that were looked at.

mod alike;
mod best;
mod bits;
mod blind_spots;
mod compare;
mod earlier;
mod errors;
mod features;
mod find;
mod held_out;
mod lattice;
mod level;
mod score;
mod significance;
mod table;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use trackway_tables::read::Place;

pub use alike::ALIKE_MIN;
pub use blind_spots::{COLUMNS_OF_TRIPLES_MAX, ERROR_METRIC};
pub(crate) use blind_spots::{Searched, blind_spots};
pub use earlier::{EarlierAnswer, EarlierFeature, EarlierSlice};
pub use errors::ErrorSource;
pub(crate) use errors::{row_losses, usual_loss};
pub(crate) use features::Feature;
pub use features::{Binning, shown_value};
pub use find::{Roles, Settings, columns_needed, find};
pub use lattice::LEVEL_BYTES_MAX;
pub use table::SETS_BYTES_MAX;
pub use trackway_results::search::{
    AlikeSlice, Answer, BlindSpots, ErrorSlice, FeatureAccount, HeldOutSlice, LevelAccount, Loss, Predicate,
    Side, SliceChange, SliceVerdict, Test, shown_predicate,
};

/// Observes a search.
pub struct SearchObserver<'w> {
    /// Called with the number of predicates, the candidates done and those there are of this number.
    pub progress: &'w (dyn Fn(usize, u64, u64) + Sync),
    /// Set it to end the search.
    pub cancelled: &'w AtomicBool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    #[error("there is no column `{column}`; there are {}", .known.join(", "))]
    NoColumn { column: String, known: Vec<String> },
    #[error("column `{column}` is not numeric; an error must be a number of 0 or more")]
    NotNumbers { column: String },
    #[error("column `{column}` has the error {value} in row {}; an error is a finite number of 0 or more", .place.row)]
    BadError { column: String, place: Place, value: f64 },
    #[error(
        "`{prediction}` cannot be compared with `{label}`: both must be numbers, or both strings with a 0/1 loss"
    )]
    NotComparable { label: String, prediction: String },
    #[error(
        "`{label}` and `{prediction}` have no class in common, so every row would be wrong: labels {labels}; predictions \
         {predictions}"
    )]
    NoCommonClass { label: String, prediction: String, labels: String, predictions: String },
    #[error("{what}")]
    Setting { what: String },
    #[error("{rows} rows with an error are too few to search for slices of at least {min_support}")]
    TooFewRows { rows: usize, min_support: u32 },
    #[error(
        "{values} values would take {} MiB, more than {} MiB; raise the support or leave columns out",
        .bytes >> 20, SETS_BYTES_MAX >> 20
    )]
    TooManyValues { values: usize, bytes: usize },
    #[error("the search was cancelled")]
    Cancelled,
}
