//! Tables in files: CSV, JSON lines, plain text and Parquet, on a disk or at a URL.
//!
//! [`read::Source`] opens the files of a data set as one table, and [`pass::scan`] streams it through a [`pass::Pass`] on all
//! cores, in bounded memory, with an account of every row ([`read::Coverage`]). [`profile::Profile`] is such a pass. [`mod@write`]
//! is the way back.
//!
//! What is wrong with the *choice* of data (no such file, no such column, no readable row) is a [`DataError`]; rows
//! that cannot be read are counted with the first few places, and block nothing here.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests delete what they made"))]

mod error;
pub mod files;
pub mod limits;
pub mod merge;
pub mod pass;
pub mod personal;
pub mod profile;
pub mod read;
pub mod types;
pub mod write;

pub use trackway_formats::runfile::{DataFormat, DataSpec, DecimalMark};

pub use error::{DataError, did_you_mean};
pub use files::{MAX_FILES, ReadContext};
pub use types::{Column, ColumnType};

use trackway_core::text::counted;
