//! Limits on reading data from others. Every limit has a name, a default, and an error that names how to raise it.

use trackway_formats::Variable;

/// The most examples that are kept of one finding; the counts continue.
pub const EXAMPLES_MAX: usize = 5;

/// What is read at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most columns of a table; of JSON lines, the most different keys. Time and memory grow with them.
    pub columns_max: usize,
    /// What the images and texts that are read at the same time may take in memory, on all cores together. A single
    /// one that needs more is not read.
    pub media_bytes_max: u64,
    /// What a single page of a Parquet file may take, decoded. A page is decoded whole, and a few bytes can claim any
    /// size.
    pub page_bytes_max: u64,
    /// Whether links of a data folder to folders outside of it are followed.
    pub follow_links: bool,
}

/// The environment variable that sets [`Limits::columns_max`].
pub const COLUMNS_VARIABLE: &str = Variable::ColumnsMax.as_str();

/// The environment variable that sets [`Limits::media_bytes_max`], in MiB.
pub const MEDIA_VARIABLE: &str = Variable::MediaMibMax.as_str();

/// The environment variable that sets [`Limits::page_bytes_max`], in MiB.
pub const PAGE_VARIABLE: &str = Variable::PageMibMax.as_str();

/// The environment variable that sets [`Limits::follow_links`], with `1`.
pub const LINKS_VARIABLE: &str = Variable::FollowLinks.as_str();

/// The default limits.
pub const DEFAULT: Limits = Limits {
    columns_max: 10_000,
    media_bytes_max: 384 << 20,
    page_bytes_max: 128 << 20,
    follow_links: false,
};

/// What the columns of a table that were read may take in memory, all together, about.
const FINISHED_BYTES: u64 = 224 << 20;

/// What one of them takes at most, about: so many columns have room for everything that is stored.
const FINISHED_COLUMN_BYTES: u64 = 64 << 10;

/// What a column keeps where it has that much room, of values and of quantiles.
const VALUES_KEPT: u64 = 512;
const QUANTILES_KEPT: u64 = 1024;
const LEAST_KEPT: u64 = 16;

/// What one column of a table may keep once it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinishedRoom {
    /// What it takes in memory, about.
    pub(crate) bytes: u64,
    /// Most frequent values, where they are not all there are.
    pub(crate) values_max: usize,
    /// Length of the topmost level of its quantiles.
    pub(crate) top_length: usize,
}

impl FinishedRoom {
    /// In a table of so many columns.
    pub(crate) fn of(columns: u64) -> Self {
        let bytes = (FINISHED_BYTES / columns.max(1)).min(FINISHED_COLUMN_BYTES);
        let part = |whole: u64| {
            let part = (whole * bytes / FINISHED_COLUMN_BYTES).max(LEAST_KEPT);
            1usize << part.ilog2()
        };
        Self { bytes, values_max: part(VALUES_KEPT), top_length: part(QUANTILES_KEPT) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        DEFAULT
    }
}

impl Limits {
    /// Why a table of more columns than the limit is not read. `what` are columns or keys.
    pub(crate) fn too_many(self, what: &str) -> String {
        let max = self.columns_max;
        format!(
            "it has more than {max} {what}, the most that are read; if it is meant to, raise the limit with \
             {COLUMNS_VARIABLE}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that columns of ordinary tables keep everything, and that the columns of the widest ones have room
    /// together.
    #[test]
    fn wide_tables_keep_less_of_each_column() {
        let all = FinishedRoom { bytes: 64 << 10, values_max: 512, top_length: 1024 };
        for columns in [0, 1, 1_000, 3_584] {
            assert_eq!(FinishedRoom::of(columns), all);
        }
        let wide = FinishedRoom::of(10_000);
        assert_eq!((wide.values_max, wide.top_length), (128, 256));
        assert!(wide.bytes * 10_000 <= FINISHED_BYTES);
        assert_eq!(FinishedRoom::of(u64::MAX).values_max, 16);
    }
}
