//! Strings into typed cells.

use std::borrow::Cow;

use trackway_statistics::binomial_p_value;

use crate::infer::ColumnType;

/// Strings that usually mean a missing value, besides the empty one. Used if the run file names none.
pub const USUAL_MISSING: &[&str] = &["?", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "nil"];

/// The strings that mean a missing value. The empty string always does.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    texts: Vec<String>,
    first_bytes: [bool; 256],
    longest: usize,
}

impl Missing {
    pub(crate) fn new(texts: &[String]) -> Self {
        let given = texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let mut texts: Vec<String> = given.collect();
        if texts.is_empty() {
            texts = USUAL_MISSING.iter().map(|text| (*text).to_owned()).collect();
        }
        let mut first_bytes = [false; 256];
        for text in &texts {
            first_bytes[usize::from(text.as_bytes()[0])] = true;
        }
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        texts.insert(0, String::new());
        Self { texts, first_bytes, longest }
    }

    /// The empty string alone.
    pub(crate) fn empty() -> Self {
        Self { texts: vec![String::new()], first_bytes: [false; 256], longest: 0 }
    }

    /// The index of the string in [`Missing::texts`] if it means a missing value.
    #[inline]
    pub(crate) fn find(&self, value: &[u8]) -> Option<usize> {
        let Some(first) = value.first() else { return Some(0) };
        if value.len() > self.longest || !self.first_bytes[usize::from(*first)] {
            return None;
        }
        self.texts.iter().position(|text| text.as_bytes() == value)
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// A whole number of at most 64 bits.
#[inline]
pub(crate) fn parse_int(value: &[u8]) -> Option<i64> {
    let (negative, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return std::str::from_utf8(value).ok()?.parse().ok();
    }
    let mut number = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if negative { -number } else { number })
}

/// Powers of ten that are exact as 64-bit floats.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// A number, rounded correctly.
#[inline]
pub(crate) fn parse_float(value: &[u8]) -> Option<f64> {
    parse_short_decimal(value).or_else(|| std::str::from_utf8(value).ok()?.parse().ok())
}

/// `-123.456` with a mantissa below 2^53 and few decimals: one division of exact numbers rounds correctly (Clinger
/// 1990, "How to read floating point numbers accurately").
#[inline]
fn parse_short_decimal(value: &[u8]) -> Option<f64> {
    let (negative, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut mantissa = 0u64;
    let mut point = None;
    for (index, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
        } else if *byte == b'.' && point.is_none() {
            point = Some(index);
        } else {
            return None;
        }
    }
    let decimals = point.map_or(0, |point| digits.len() - 1 - point);
    if mantissa > 1 << 53 || (point.is_some() && digits.len() == 1) {
        return None;
    }
    let number = mantissa as f64 / EXACT_POWERS[decimals];
    Some(if negative { -number } else { number })
}

pub(crate) fn parse_bool(value: &[u8]) -> Option<bool> {
    if value.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else if value.eq_ignore_ascii_case(b"false") {
        Some(false)
    } else {
        None
    }
}

/// Microseconds since 1970 of a date or time in the forms of [`crate::infer::is_timestamp`]; without a zone: UTC.
pub(crate) fn parse_timestamp(value: &[u8]) -> Option<i64> {
    if let Some(micros) = parse_usual_timestamp(value) {
        return Some(micros);
    }
    if !crate::infer::is_timestamp(value) {
        return None;
    }
    let number = |from: usize, to: usize| value.get(from..to).and_then(parse_int);
    let days = days_since_1970(number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let mut micros = days * 86_400_000_000;
    if value.len() > 10 {
        let time = &value[11..];
        let zone_at =
            time.iter().position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-')).unwrap_or(time.len());
        let (clock, zone) = time.split_at(zone_at);
        let part = |from: usize, to: usize| clock.get(from..to).and_then(parse_int);
        let seconds = part(0, 2)? * 3600 + part(3, 5)? * 60 + part(6, 8).unwrap_or(0);
        micros += seconds * 1_000_000 + clock.get(9..).map_or(0, micros_of_fraction)
            - offset_seconds(zone)? * 1_000_000;
    }
    Some(micros)
}

/// `YYYY-MM-DD HH:MM:SS`, with `T` or a blank and at most six decimals: what nearly all files hold.
fn parse_usual_timestamp(value: &[u8]) -> Option<i64> {
    let (date_time, fraction) = value.split_at_checked(19)?;
    let mut digits = [0i64; 19];
    for (digit, byte) in digits.iter_mut().zip(date_time) {
        *digit = i64::from(byte.wrapping_sub(b'0'));
    }
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let is_number = |index: usize| digits[index] <= 9;
    let well_formed = separators.iter().all(|(at, byte)| date_time[*at] == *byte)
        && matches!(date_time[10], b' ' | b'T')
        && [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18].into_iter().all(is_number);
    let micros = match fraction {
        [] => 0,
        [b'.', decimals @ ..] if decimals.len() <= 6 && decimals.iter().all(u8::is_ascii_digit) => {
            micros_of_fraction(decimals)
        }
        _ => return None,
    };
    let pair = |at: usize| digits[at] * 10 + digits[at + 1];
    let (month, day) = (pair(5), pair(8));
    if !well_formed || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_since_1970(pair(0) * 100 + pair(2), month, day);
    let seconds = days * 86_400 + pair(11) * 3600 + pair(14) * 60 + pair(17);
    Some(seconds * 1_000_000 + micros)
}

fn micros_of_fraction(digits: &[u8]) -> i64 {
    let digit = |index: usize| digits.get(index).map_or(0, |byte| i64::from(byte.wrapping_sub(b'0')));
    (0..6).fold(0, |micros, index| micros * 10 + digit(index))
}

/// Seconds east of UTC of ``, `Z`, `+02`, `+0200` or `+02:00`.
fn offset_seconds(zone: &[u8]) -> Option<i64> {
    let Some((sign, digits)) = zone.split_first() else { return Some(0) };
    if matches!(sign, b'Z' | b'z') {
        return Some(0);
    }
    let digits: Vec<u8> = digits.iter().copied().filter(|byte| *byte != b':').collect();
    let hours = parse_int(digits.get(..2)?)?;
    let minutes = digits.get(2..4).map_or(Some(0), parse_int)?;
    let seconds = hours * 3600 + minutes * 60;
    Some(if *sign == b'-' { -seconds } else { seconds })
}

/// Days since 1970-01-01 in the Gregorian calendar: whole 400-year cycles, then years that begin in March, so that
/// the leap day is the last (the scheme of H. Hinnant's "chrono-compatible low-level date algorithms").
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * 146_097 + day_of_cycle - 719_468
}

/// Bytes as a string: UTF-8, else letter by letter as Windows-1252, which Latin-1 files are in practice.
pub(crate) fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| windows_1252(*byte)).collect()),
    }
}

/// 0x80 to 0x9F of Windows-1252; zeros are bytes without a letter, kept as the control characters they are in Latin-1.
const WINDOWS_1252: [u16; 32] = [
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,
    0x017D, 0, 0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A,
    0x0153, 0, 0x017E, 0x0178,
];

fn windows_1252(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|index| WINDOWS_1252.get(usize::from(index)));
    let code = special.copied().filter(|code| *code != 0).unwrap_or(u16::from(byte));
    char::from_u32(u32::from(code)).expect("no surrogate is in the table")
}

/// How many values of which type a column has; decides the column's type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(pub(crate) std::collections::BTreeMap<ColumnType, u64>);

/// The fraction of strings up to which a column of numbers, timestamps or booleans stays one, with the strings as
/// misfits.
const MAX_DIRT_SHARE: f64 = 0.05;

/// How many strings a column of numbers, timestamps or booleans may contain and stay one, with the strings as misfits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StringLimit {
    /// One value in twenty.
    #[default]
    Fraction,
    /// As many as a table of this size may contain if one value in twenty is a string: 1 of 5, 2 of 10.
    Sample,
}

/// A column has more strings than one in twenty if so many would be in less than this fraction of its samples.
const SIGNIFICANCE: f64 = 0.05;

impl StringLimit {
    fn allows(self, texts: u64, total: u64) -> bool {
        texts as f64 <= total as f64 * MAX_DIRT_SHARE
            || self == Self::Sample
                && texts < total - texts
                && binomial_p_value(total, texts, MAX_DIRT_SHARE) >= SIGNIFICANCE
    }
}

impl Tally {
    /// That of a column whose type the file declares.
    pub(super) fn certain(kind: ColumnType) -> Self {
        let mut tally = Self::default();
        tally.add(kind, u64::from(u32::MAX));
        tally
    }

    pub(crate) fn add(&mut self, kind: ColumnType, count: u64) {
        if kind != ColumnType::Null && count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    /// The narrowest type that fits all values, except a few strings.
    pub(crate) fn decide(&self, limit: StringLimit) -> ColumnType {
        let clean = self.without_texts();
        let is_dirt = limit.allows(self.texts(), self.total()) && clean != ColumnType::Null;
        if is_dirt { clean } else { self.0.keys().copied().fold(ColumnType::Null, ColumnType::join) }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn texts(&self) -> u64 {
        self.0.get(&ColumnType::Text).copied().unwrap_or(0)
    }

    /// The narrowest type that fits all values that are not strings.
    pub(crate) fn without_texts(&self) -> ColumnType {
        let kinds = self.0.keys().copied().filter(|kind| *kind != ColumnType::Text);
        kinds.fold(ColumnType::Null, ColumnType::join)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves that the quick paths read numbers exactly as the standard library does, or leave them to it.
        #[test]
        fn numbers_are_read_as_the_standard_library_does(number in any::<f64>(), decimals in 0usize..12, whole in any::<i64>()) {
            for text in [format!("{number}"), format!("{:.decimals$}", number % 1e9), format!("{number:e}"), format!("{whole}")] {
                let expected = text.parse::<f64>().unwrap();
                let read = parse_float(text.as_bytes()).unwrap();
                prop_assert!(read.to_bits() == expected.to_bits() || (read.is_nan() && expected.is_nan()), "{text}: {read}");
                prop_assert_eq!(parse_int(text.as_bytes()), text.parse::<i64>().ok());
            }
        }

        /// Proves that no string makes a parser panic, and that it accepts exactly what the type detection does.
        #[test]
        fn parsers_agree_with_the_detected_type(text in "[-+0-9.eE:TZtrufalsnd ]{0,24}") {
            let bytes = text.trim().as_bytes();
            if bytes.is_empty() {
                return Ok(());
            }
            let kind = crate::infer::type_of(bytes);
            prop_assert_eq!(parse_int(bytes).is_some(), kind == ColumnType::Int);
            prop_assert_eq!(parse_float(bytes).is_some(), matches!(kind, ColumnType::Int | ColumnType::Float));
            prop_assert_eq!(parse_bool(bytes).is_some(), kind == ColumnType::Bool);
            prop_assert_eq!(parse_timestamp(bytes).is_some(), kind == ColumnType::Timestamp);
        }

        /// Proves that the quick path reads times as the general one does.
        #[test]
        fn usual_times_are_read_as_others(text in "[0-9]{4}-[01][0-9]-[0-3][0-9][ Tx][0-9]{2}:[0-9]{2}:[0-9]{2}(.[0-9]{0,7})?") {
            if let Some(micros) = parse_usual_timestamp(text.as_bytes()) {
                let with_zone = parse_timestamp(format!("{text}Z").as_bytes());
                prop_assert_eq!(with_zone, Some(micros));
            }
        }
    }

    /// Proves that times in all accepted forms are the same timestamp, on both sides of 1970 and of leap days.
    #[test]
    fn times_are_microseconds_since_1970() {
        for (text, micros) in [
            ("1970-01-01", 0),
            ("1969-12-31T23:59:59.5Z", -500_000),
            ("2026-11-21T07:00:00.123456Z", 1_795_244_400_123_456),
            ("2026-11-21 09:00:00+02:00", 1_795_244_400_000_000),
            ("2026-11-21 06:30-0030", 1_795_244_400_000_000),
            ("2024-02-29", 1_709_164_800_000_000),
            ("2000-03-01", 951_868_800_000_000),
        ] {
            assert_eq!(parse_timestamp(text.as_bytes()), Some(micros), "{text}");
        }
        assert_eq!(parse_timestamp(b"2026-11-21x"), None);
    }
}
