//! The smallest and the largest value of a column, compared exactly.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use trackway_tables::ColumnType;
use trackway_tables::types::parse_timestamp;

/// A number, or a time as ISO 8601.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A whole number.
    Int(i64),
    /// A whole number beyond those with a sign.
    Unsigned(u64),
    /// A number.
    Float(f64),
    Time(String),
}

impl Bound {
    /// As the values of a column of this type are compared: times in microseconds since 1970.
    pub(super) fn value(&self, kind: ColumnType) -> Result<Exact, String> {
        match (self, kind) {
            (Self::Int(number), ColumnType::Int | ColumnType::Float) => Ok(Exact::Whole((*number).into())),
            (Self::Unsigned(number), ColumnType::Int | ColumnType::Float) => {
                Ok(Exact::Whole((*number).into()))
            }
            (Self::Float(number), ColumnType::Int | ColumnType::Float) => Ok(Exact::Float(*number)),
            (Self::Time(text), ColumnType::Timestamp) => {
                parse_timestamp(text.as_bytes()).map(|micros| Exact::Whole(micros.into())).ok_or_else(|| {
                    format!("invalid time `{text}`; expected e.g. 2026-01-31 or 2026-01-31T12:00:00")
                })
            }
            (Self::Time(text), ColumnType::Int | ColumnType::Float) => {
                Err(format!("`{text}` is not a number, but the column is numeric"))
            }
            (_, ColumnType::Timestamp) => {
                Err("the column is a time; write the bound as \"2026-01-31\"".into())
            }
            (_, kind) => Err(format!("min and max are for numbers and times, and the column is {kind}")),
        }
    }
}

/// A number, or a time in microseconds since 1970, as it is: floats do not hold each whole number of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exact {
    Whole(i128),
    Float(f64),
}

impl Exact {
    pub(super) fn is_nan(self) -> bool {
        matches!(self, Self::Float(number) if number.is_nan())
    }

    /// The nearest float.
    pub(super) fn about(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (*self, *other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(&other),
            (Self::Whole(one), Self::Float(other)) => order(one, other),
            (Self::Float(one), Self::Whole(other)) => order(other, one).map(Ordering::reverse),
        }
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

/// A whole number against a float: rounding keeps the order, and where it makes both equal the float is whole.
fn order(whole: i128, float: f64) -> Option<Ordering> {
    match (whole as f64).partial_cmp(&float)? {
        Ordering::Equal => Some(whole.cmp(&(float as i128))),
        unequal => Some(unequal),
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => write!(formatter, "{number}"),
            Self::Float(number) => write!(formatter, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that numbers are compared as they are, whole numbers that a float would round among them.
    #[test]
    fn numbers_are_compared_exactly() {
        let (whole, float) = (|number: i128| Exact::Whole(number), |number: f64| Exact::Float(number));
        let long = 9_007_199_254_740_993;
        assert!(whole(long) > whole(long - 1) && whole(long) != whole(long - 1));
        assert!(whole(long) > float(9_007_199_254_740_992.0) && float(9_007_199_254_740_992.0) < whole(long));
        assert!(whole(2) == float(2.0) && whole(2) < float(2.5) && float(-2.5) < whole(-2));
        assert!(whole(i128::from(u64::MAX)) < float(f64::INFINITY));
        assert!(whole(0).partial_cmp(&float(f64::NAN)).is_none() && float(f64::NAN).is_nan());
        assert_eq!((whole(long).to_string(), float(0.5).to_string()), (long.to_string(), "0.5".to_owned()));
    }
}
