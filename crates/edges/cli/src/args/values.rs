//! Values that several commands take: a duration, a number of bytes, a page of a list, the consent to a deletion.

use std::fmt;
use std::str::FromStr;

use clap::{Args, value_parser};
use trackway_engine::page::{PAGE_ROWS, PAGE_ROWS_MAX};
use trackway_formats::runfile::{parse_byte_size, parse_duration};

/// A duration in seconds, typed as `90s`, `24h` or `30d`; a plain number is in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub f64);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = text.ends_with(|last: char| last.is_ascii_digit());
        let seconds = if is_plain { parse_duration(&format!("{text}s")) } else { parse_duration(text) };
        seconds.map(Self).ok_or_else(|| {
            "expected a duration such as `90s`, `24h` or `30d`; a plain number is in seconds".into()
        })
    }
}

/// As it is typed, in the largest unit that it is a multiple of.
impl fmt::Display for Seconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: f64| self.0 > 0.0 && self.0 % unit == 0.0;
        let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "m")];
        let (unit, name) = units.into_iter().find(|(unit, _)| fits(*unit)).unwrap_or((1.0, "s"));
        write!(out, "{}{name}", self.0 / unit)
    }
}

/// A number of bytes, typed as `512MiB` (powers of 1024), `16GB` (powers of 1000) or a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = || text.parse::<f64>().ok().filter(|bytes| (1.0..=1e18).contains(bytes));
        let bytes = parse_byte_size(text).or_else(|| plain().map(|bytes| bytes as u64));
        bytes
            .map(Self)
            .ok_or_else(|| "expected a size such as `512MiB` or `16GB`, or a number of bytes".into())
    }
}

/// Which part of a list is shown.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Maximum number of rows
    #[arg(long, default_value_t = PAGE_ROWS, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(PAGE_ROWS_MAX)))]
    pub limit: u32,
    /// Only what comes after this one in the list: the last of the previous page
    #[arg(long, value_name = "LAST")]
    pub after: Option<String>,
}

/// Whether a command that deletes only shows what it would delete.
#[derive(Debug, Args)]
pub struct DeletionArgs {
    /// Only show what would be deleted (default)
    #[arg(long, short = 'n', conflicts_with = "yes")]
    dry_run: bool,
    /// Delete
    #[arg(long)]
    yes: bool,
}

impl DeletionArgs {
    /// Whether nothing may be deleted: as long as `--yes` is not given.
    pub fn is_dry_run(&self) -> bool {
        !self.yes || self.dry_run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a duration is read with and without a unit, that its default is shown as it is typed, and that nonsense is
    /// rejected with examples.
    #[test]
    fn durations_are_read_and_shown() {
        for (text, seconds, shown) in [
            ("90s", 90.0, "90s"),
            ("90", 90.0, "90s"),
            ("24h", 86_400.0, "1d"),
            ("1.5", 1.5, "1.5s"),
            ("0", 0.0, "0s"),
        ] {
            let read: Seconds = text.parse().unwrap();
            assert_eq!((read.0, read.to_string().as_str()), (seconds, shown), "{text}");
        }
        for nonsense in ["", "5x", "-1", "1e3", "nan", "h", "1 2"] {
            assert!(nonsense.parse::<Seconds>().unwrap_err().contains("`24h`"), "{nonsense}");
        }
    }

    /// Proves that a size is read in both kinds of units and as a plain number.
    #[test]
    fn sizes_are_read() {
        for (text, bytes) in
            [("512MiB", 512 << 20), ("16GB", 16_000_000_000), ("1024", 1024), ("61.3e9", 61_300_000_000)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for nonsense in ["", "5x", "-1", "0", "nan", "inf", "512mib"] {
            assert!(nonsense.parse::<Bytes>().unwrap_err().contains("`512MiB`"), "{nonsense}");
        }
    }
}
