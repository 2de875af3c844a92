//! Column types from values.

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

/// A column of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "DataColumn")]
pub struct Column {
    /// The name, without surrounding blanks.
    pub name: String,
    /// The narrowest type that every value has.
    #[serde(rename = "type")]
    pub kind: ColumnType,
}

closed_list!(
    /// What a column's values are.
    ColumnType, "type of a column", {
        /// Every value is missing.
        Null = "null",
        /// `true` and `false`, in any case.
        Bool = "bool",
        /// Whole numbers of at most 64 bits.
        Int = "int",
        /// Numbers.
        Float = "float",
        /// ISO 8601 dates, with or without a time.
        Timestamp = "timestamp",
        /// Anything else written out.
        Text = "text",
        /// Bytes (Parquet).
        Binary = "binary",
        /// A list (JSON, Parquet).
        List = "list",
        /// A nested object (JSON, Parquet).
        Object = "object",
        /// Values of kinds that have no type in common (JSON).
        Mixed = "mixed",
    }
);

#[allow(clippy::derivable_impls, reason = "the macro of closed lists takes no derive")]
impl Default for ColumnType {
    fn default() -> Self {
        Self::Null
    }
}

impl ColumnType {
    /// The narrowest type that holds values of both types.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (same, other) if same == other => same,
            (Self::Null, known) | (known, Self::Null) => known,
            (Self::Int, Self::Float) | (Self::Float, Self::Int) => Self::Float,
            (Self::Binary | Self::List | Self::Object | Self::Mixed, _)
            | (_, Self::Binary | Self::List | Self::Object | Self::Mixed) => Self::Mixed,
            _ => Self::Text,
        }
    }
}

/// The type of one value written as a string.
pub(crate) fn type_of(value: &[u8]) -> ColumnType {
    if is_int(value) {
        ColumnType::Int
    } else if is_float(value) {
        ColumnType::Float
    } else if value.eq_ignore_ascii_case(b"true") || value.eq_ignore_ascii_case(b"false") {
        ColumnType::Bool
    } else if is_timestamp(value) {
        ColumnType::Timestamp
    } else {
        ColumnType::Text
    }
}

/// Eighteen digits always fit 64 bits; longer ones are parsed.
fn is_int(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").or(value.strip_prefix(b"+")).unwrap_or(value);
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all_digits
        && (digits.len() <= 18 || std::str::from_utf8(value).is_ok_and(|text| text.parse::<i64>().is_ok()))
}

fn is_float(value: &[u8]) -> bool {
    let begins = value
        .first()
        .is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'n' | b'N' | b'i' | b'I'));
    begins && std::str::from_utf8(value).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// `YYYY-MM-DD`, then optionally `T` or a blank, `HH:MM[:SS[.fraction]]` and `Z` or an offset.
pub(crate) fn is_timestamp(value: &[u8]) -> bool {
    let Some((date, rest)) = value.split_at_checked(10) else { return false };
    let digit = |index: usize| date[index].is_ascii_digit();
    let is_date = [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(digit) && date[4] == b'-' && date[7] == b'-';
    let month = &date[5..7];
    let day = &date[8..10];
    let in_range = (b"01".as_slice()..=b"12").contains(&month) && (b"01".as_slice()..=b"31").contains(&day);
    is_date && in_range && (rest.is_empty() || is_time(rest))
}

fn is_time(rest: &[u8]) -> bool {
    let Some((separator, time)) = rest.split_first() else { return false };
    let clock_end =
        time.iter().position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-')).unwrap_or(time.len());
    let (clock, zone) = time.split_at(clock_end);
    let well_formed = clock.len() >= 5
        && clock.iter().enumerate().all(|(index, byte)| match index {
            2 | 5 => *byte == b':',
            8 => matches!(byte, b'.' | b','),
            _ => byte.is_ascii_digit(),
        });
    let zone_is_known = match zone {
        [] | [b'Z' | b'z'] => true,
        [_, offset @ ..] => {
            !offset.is_empty() && offset.iter().all(|byte| byte.is_ascii_digit() || *byte == b':')
        }
    };
    matches!(separator, b'T' | b't' | b' ') && well_formed && zone_is_known
}

/// The value without the blanks around it.
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each kind of text gets the narrowest type, and that look-alikes do not.
    #[test]
    fn texts_get_the_narrowest_type() {
        use ColumnType::{Bool, Float, Int, Text, Timestamp};
        for (text, kind) in [
            ("7", Int),
            ("-7", Int),
            ("9223372036854775807", Int),
            ("9223372036854775808", Float),
            ("1e3", Float),
            ("NaN", Float),
            (".5", Float),
            ("-", Text),
            ("none", Text),
            ("TRUE", Bool),
            ("2026-11-21", Timestamp),
            ("2026-11-21T07:00:00.123Z", Timestamp),
            ("2026-11-21 07:00:00+02:00", Timestamp),
            ("2026-13-21", Text),
            ("2026-11-21x", Text),
            ("1.2.3", Text),
        ] {
            assert_eq!(type_of(text.as_bytes()), kind, "{text}");
        }
    }

    /// Proves that joining does not depend on the order in which values come (commutative and associative over
    /// all types), which parallel scans and file order rely on.
    #[test]
    fn joining_types_does_not_depend_on_order() {
        use ColumnType::*;
        let all = [Null, Bool, Int, Float, Timestamp, Text, Binary, List, Object, Mixed];
        for a in all {
            for b in all {
                assert_eq!(a.join(b), b.join(a), "{a:?} {b:?}");
                for c in all {
                    assert_eq!(a.join(b).join(c), a.join(b.join(c)), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
