//! Dates and times as files write them, in microseconds since 1970; without a zone they are in UTC.
//!
//! | form | |
//! |---|---|
//! | `2026-11-21`, `2026/11/21`, `2026/1/2` | year, month, day |
//! | `21/11/2026`, `11/21/2026` | only in the order that the column as a whole shows: see [`FirstOfDate`] |
//! | ` 07:00`, `T07:00:00`, ` 07:00:00.123456`, ` 07:00:00 PM` | a time of day after the date |
//! | `Z`, ` UTC`, ` GMT`, `+02`, `+0200`, ` +02:00` | a zone after the time of day |

const MICROS_PER_DAY: i64 = 86_400_000_000;

const SECONDS_PER_DAY: i64 = 86_400;

/// What dates of two short numbers and a year begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstOfDate {
    /// Only a date that begins with its year is read.
    Year,
    /// `21/11/2026`.
    Day,
    /// `11/21/2026`.
    Month,
}

/// A time that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParsedTime {
    /// Microseconds since 1970.
    pub(crate) micros: i64,
    /// Whether it is written with more than microseconds, which were cut, or is a leap second, which was moved: others may be
    /// this one.
    pub(crate) is_cut: bool,
}

/// A date or a time that begins with its year, in microseconds since 1970; `None` for anything else.
#[must_use]
pub fn parse_timestamp(value: &[u8]) -> Option<i64> {
    parse(value, FirstOfDate::Year).map(|moment| moment.micros)
}

/// A date or a time.
#[inline]
pub(crate) fn parse(value: &[u8], order: FirstOfDate) -> Option<ParsedTime> {
    match parse_usual(value) {
        Some(micros) => Some(ParsedTime { micros, is_cut: false }),
        None => parse_any(value, order),
    }
}

/// In which orders a date of two short numbers and a year exists: with the day first, and with the month first.
pub(crate) fn orders_of(value: &[u8]) -> (bool, bool) {
    // A digit and a slash within the first three bytes: nothing else is such a date.
    let begins =
        value.first().is_some_and(u8::is_ascii_digit) && value.iter().take(3).any(|byte| *byte == b'/');
    let exists = |order| begins && parse_any(value, order).is_some();
    (exists(FirstOfDate::Day), exists(FirstOfDate::Month))
}

/// `YYYY-MM-DD HH:MM:SS`, with `T` or a blank and at most six decimals: what nearly all files hold.
fn parse_usual(value: &[u8]) -> Option<i64> {
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
        [b'.', decimals @ ..]
            if (1..=6).contains(&decimals.len()) && decimals.iter().all(u8::is_ascii_digit) =>
        {
            micros_of_fraction(decimals)
        }
        _ => return None,
    };
    if !well_formed {
        return None;
    }
    let pair = |at: usize| digits[at] * 10 + digits[at + 1];
    let days = days_of(pair(0) * 100 + pair(2), pair(5), pair(8))?;
    let is_leap_second = pair(17) == 60;
    let seconds = seconds_of(pair(11), pair(14), pair(17)).filter(|_| !is_leap_second)?;
    Some(days * MICROS_PER_DAY + seconds * 1_000_000 + micros)
}

fn parse_any(value: &[u8], order: FirstOfDate) -> Option<ParsedTime> {
    let (days, rest) = parse_date(value, order)?;
    let (clock, is_cut) = match rest {
        [] => (0, false),
        [b'T' | b't' | b' ', rest @ ..] => parse_clock(rest)?,
        _ => return None,
    };
    Some(ParsedTime { micros: days * MICROS_PER_DAY + clock, is_cut })
}

/// Days since 1970, and what follows the date.
fn parse_date(value: &[u8], order: FirstOfDate) -> Option<(i64, &[u8])> {
    let (first, width, rest) = number(value, 4)?;
    let (separator, rest) = rest.split_first()?;
    if width == 4 {
        // Both parts of an ISO date have two digits; with slashes people leave out zeros.
        let is_iso = match separator {
            b'-' => true,
            b'/' => false,
            _ => return None,
        };
        let (month, month_width, rest) = number(rest, 2)?;
        let rest = rest.strip_prefix(std::slice::from_ref(separator))?;
        let (day, day_width, rest) = number(rest, 2)?;
        let fits = !is_iso || (month_width, day_width) == (2, 2);
        return fits.then(|| days_of(first, month, day)).flatten().map(|days| (days, rest));
    }
    if width > 2 || *separator != b'/' || order == FirstOfDate::Year {
        return None;
    }
    let (second, _, rest) = number(rest, 2)?;
    let (year, year_width, rest) = number(rest.strip_prefix(b"/")?, 4)?;
    let (day, month) = if order == FirstOfDate::Day { (first, second) } else { (second, first) };
    (year_width == 4).then(|| days_of(year, month, day)).flatten().map(|days| (days, rest))
}

/// Microseconds since midnight in UTC, and whether more than that was written.
fn parse_clock(value: &[u8]) -> Option<(i64, bool)> {
    let (hours, hours_width, rest) = number(value, 2)?;
    let (minutes, minutes_width, mut rest) = number(rest.strip_prefix(b":")?, 2)?;
    let (mut seconds, mut seconds_width, mut fraction) = (0, 2, [].as_slice());
    if let Some(behind) = rest.strip_prefix(b":") {
        (seconds, seconds_width, rest) = number(behind, 2)?;
        if let [b'.' | b',', decimals @ ..] = rest {
            let length = decimals.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (fraction, rest) = decimals.split_at(length);
            if fraction.is_empty() {
                return None;
            }
        }
    }
    let (half, rest) = half_of_day(rest);
    if (minutes_width, seconds_width) != (2, 2) || (hours_width != 2 && half.is_none()) {
        return None;
    }
    let hours = match half {
        None => hours,
        Some(_) if !(1..=12).contains(&hours) => return None,
        Some(after_noon) => hours % 12 + if after_noon { 12 } else { 0 },
    };
    let clock = seconds_of(hours, minutes, seconds)? - offset_seconds(rest)?;
    let is_leap_second = seconds == 60;
    if is_leap_second && clock.rem_euclid(SECONDS_PER_DAY) != 0 {
        return None;
    }
    let is_cut = is_leap_second || fraction.iter().skip(6).any(|byte| *byte != b'0');
    Some((clock * 1_000_000 + micros_of_fraction(fraction), is_cut))
}

/// ` PM` behind a time, whether it is after noon, and what follows it.
fn half_of_day(rest: &[u8]) -> (Option<bool>, &[u8]) {
    let word = rest.strip_prefix(b" ").unwrap_or(rest);
    match word {
        [b'A' | b'a', b'M' | b'm', behind @ ..] => (Some(false), behind),
        [b'P' | b'p', b'M' | b'm', behind @ ..] => (Some(true), behind),
        _ => (None, rest),
    }
}

/// Seconds east of UTC of nothing, `Z`, `UTC`, `GMT`, `+02`, `+0200` or `+02:00`, each with a blank before it or without.
fn offset_seconds(zone: &[u8]) -> Option<i64> {
    let zone = zone.strip_prefix(b" ").unwrap_or(zone);
    let (sign, digits) = match zone {
        [] => return Some(0),
        [b'Z' | b'z'] => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        word => {
            let is_utc = word.eq_ignore_ascii_case(b"utc") || word.eq_ignore_ascii_case(b"gmt");
            return is_utc.then_some(0);
        }
    };
    let (hours, width, rest) = number(digits, 2)?;
    let minutes = match rest {
        [] => 0,
        rest => {
            let (minutes, width, rest) = number(rest.strip_prefix(b":").unwrap_or(rest), 2)?;
            if width != 2 || !rest.is_empty() {
                return None;
            }
            minutes
        }
    };
    (width == 2 && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// The number that a text begins with, of at most so many digits: its value, its digits, and what follows.
fn number(text: &[u8], digits_max: usize) -> Option<(i64, usize, &[u8])> {
    let width = text.iter().take(digits_max).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(width);
    let value = digits.iter().fold(0, |value, byte| value * 10 + i64::from(byte - b'0'));
    (width > 0).then_some((value, width, rest))
}

fn micros_of_fraction(digits: &[u8]) -> i64 {
    let digit = |index: usize| digits.get(index).map_or(0, |byte| i64::from(byte.wrapping_sub(b'0')));
    (0..6).fold(0, |micros, index| micros * 10 + digit(index))
}

/// Seconds since midnight; a leap second, the last of a day in UTC, is the first one of the next minute.
fn seconds_of(hours: i64, minutes: i64, seconds: i64) -> Option<i64> {
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Days since 1970; `None` for a day that does not exist.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=last).contains(&day).then(|| days_since_1970(year, month, day))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves that the quick path reads times as the general one does, and that both refuse the same ones.
        #[test]
        fn usual_times_are_read_as_others(text in "[0-9]{4}-[01][0-9]-[0-3][0-9][ Tx][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,7})?") {
            let general = parse_any(text.as_bytes(), FirstOfDate::Year);
            match parse_usual(text.as_bytes()) {
                Some(micros) => prop_assert_eq!(general, Some(ParsedTime { micros, is_cut: false })),
                None => prop_assert!(general.is_none_or(|moment| moment.is_cut) || text.len() > 26),
            }
        }

        /// Proves that no text makes the parser panic, and that a text which is a date in one order only is not one without an order.
        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9/:. TZAPMutc]{0,32}") {
            let (day_first, month_first) = orders_of(text.as_bytes());
            if day_first || month_first {
                prop_assert_eq!(parse(text.as_bytes(), FirstOfDate::Year), None);
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
            ("2026-11-21 07:00:00 UTC", 1_795_244_400_000_000),
            ("2026-11-21 07:00:00.123456 UTC", 1_795_244_400_123_456),
            ("2026-11-21 07:00:00 +0000", 1_795_244_400_000_000),
            ("2026/11/21 07:00:00", 1_795_244_400_000_000),
            ("2026/11/21 7:00:00 AM", 1_795_244_400_000_000),
            ("2024/2/29", 1_709_164_800_000_000),
            ("2024-02-29", 1_709_164_800_000_000),
            ("2000-03-01", 951_868_800_000_000),
        ] {
            assert_eq!(parse_timestamp(text.as_bytes()), Some(micros), "{text}");
        }
    }

    /// Proves that a day, a time of day or a zone that does not exist is refused: it would be read as another one.
    #[test]
    fn what_does_not_exist_is_refused() {
        for text in [
            "2026-11-21x",
            "2026-02-30",
            "2025-02-29",
            "2026-13-01",
            "2026-1-2",
            "2026/11-21",
            "2026-11-21 25:00:00",
            "2026-11-21 07:61",
            "2026-11-21 07:00:00.",
            "2026-11-21 07:00:00 CET",
            "2026-11-21 07:00:00+2",
            "2026-11-21 13:00 PM",
            "26/11/21",
            "2026-11-21 7:00",
        ] {
            assert_eq!(parse_timestamp(text.as_bytes()), None, "{text}");
        }
    }

    /// Proves that a date of two short numbers and a year is read in the order that is known, and that without one it is none.
    #[test]
    fn short_dates_need_an_order() {
        for (text, orders) in [
            ("31/12/2024", (true, false)),
            ("12/31/2024 03:04:05", (false, true)),
            ("1/2/2024", (true, true)),
            ("2024/01/02", (false, false)),
            ("32/12/2024", (false, false)),
            ("1/2/24", (false, false)),
        ] {
            assert_eq!(orders_of(text.as_bytes()), orders, "{text}");
        }
        let read = |text: &str, order| parse(text.as_bytes(), order).map(|moment| moment.micros);
        assert_eq!(read("31/12/2024", FirstOfDate::Day), parse_timestamp(b"2024-12-31"));
        assert_eq!(read("2/1/2024 3:04:05 PM", FirstOfDate::Month), parse_timestamp(b"2024-02-01 15:04:05"));
        assert_eq!(read("31/12/2024", FirstOfDate::Month), None);
    }

    /// Proves that digits behind the microseconds are cut, and that this is known.
    #[test]
    fn more_than_microseconds_are_cut_and_known() {
        let read = |text: &str| parse(text.as_bytes(), FirstOfDate::Year).unwrap();
        let micros = parse_timestamp(b"2026-11-21 07:00:00.123456").unwrap();
        assert_eq!(read("2026-11-21 07:00:00.123456789"), ParsedTime { micros, is_cut: true });
        assert_eq!(read("2026-11-21 07:00:00.123456000"), ParsedTime { micros, is_cut: false });
    }

    /// Proves that a leap second is read as the second after it and counted, since both are one time here, and that a second 60
    /// at another time of day is none.
    #[test]
    fn leap_seconds_are_known_and_others_refused() {
        let read = |text: &str| parse(text.as_bytes(), FirstOfDate::Year);
        let micros = parse_timestamp(b"2017-01-01").unwrap();
        for text in ["2016-12-31 23:59:60", "2016-12-31T23:59:60Z", "2016-12-31 18:59:60 -0500"] {
            assert_eq!(read(text), Some(ParsedTime { micros, is_cut: true }), "{text}");
        }
        for text in ["2016-05-05 10:15:60", "2016-12-31 23:59:60+01:00", "2016-12-31 23:59:61"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
