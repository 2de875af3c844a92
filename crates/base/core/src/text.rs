//! Numbers as people read them.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use crate::Timestamp;

/// `850 ms`, `12.3 s`, `4 min 05 s`, `3 h 12 min`, `2 d 4 h`. Negative durations keep their sign.
#[must_use]
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "?".into();
    }
    if seconds < 0.0 {
        return format!("-{}", duration(-seconds));
    }
    // A minute begins where one decimal no longer shows less than sixty seconds.
    if seconds < 59.95 {
        return if seconds < 0.9995 {
            format!("{:.0} ms", seconds * 1000.0)
        } else {
            format!("{seconds:.1} s")
        };
    }
    let whole = seconds.round() as u64;
    match whole {
        0..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {:02} min", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

/// `512 B`, `1.5 KiB`, `3.2 GiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Enough digits to compare: `0.314`, `1250`, `1.20e-7`, `NaN`.
#[must_use]
pub fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => value.to_string(),
        0.0 => "0.000".to_owned(),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.3}"),
    }
}

/// A timestamp to the second, in UTC: `2026-11-25 03:54:35`.
#[must_use]
pub fn timestamp(at: Timestamp) -> String {
    at.to_rfc3339().get(..19).unwrap_or_default().replace('T', " ")
}

/// The first digits of a digest, enough to distinguish digests by eye; any other text as it is.
#[must_use]
pub fn short_digest(text: &str) -> &str {
    let is_digest = text.len() > DIGEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest { &text[..DIGEST_DIGITS] } else { text }
}

/// Digits that are shown of a digest.
const DIGEST_DIGITS: usize = 12;

/// What was spent, or may be: `2`, `12.50`, `0.0013`. Two decimals, of less than 0.1 two digits; whole numbers as they are.
#[must_use]
pub fn budgeted(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size.fract() == 0.0 => 0,
        _ if size < 0.1 => (1.0 - size.log10().floor()) as usize,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// A count with its noun: `1 row`, `2 rows`, `0 classes`, `3 entries`. `noun` is in the singular.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        Some(stem) => format!("{count} {stem}ies"),
        None if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{count} {noun}es"),
        None => format!("{count} {noun}s"),
    }
}

/// Words in backticks, with commas between them.
#[must_use]
pub fn quoted_list<T: Display>(words: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// The first of the words as such a list, and how many there are more: `` `a`, `b` and 3 more ``.
#[must_use]
pub fn first_quoted<T: Display>(words: &[T], count_max: usize) -> String {
    first_few(words.iter().map(|word| format!("`{word}`")), count_max)
}

/// The first of the words with commas between them, and how many there are more: `a, b and 3 more`.
#[must_use]
pub fn first_few<T: Display>(words: impl IntoIterator<Item = T>, count_max: usize) -> String {
    let mut words = words.into_iter();
    let first: Vec<String> = words.by_ref().take(count_max).map(|word| word.to_string()).collect();
    match words.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The first letters of a text, and `…` where there are more.
#[must_use]
pub fn shortened(text: &str, letters_max: usize) -> String {
    match text.char_indices().nth(letters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A metric's value with as many digits as help: `0.3142`, `12.5`, `1.2e-7`, `NaN`.
#[must_use]
pub fn metric(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if !(1e-4..1e6).contains(&size) {
        format!("{value:.3e}")
    } else if size >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.4}")
    }
}

/// A range such as `[0.00019712422, 0.25)` with long numbers cut to three digits; anything else as it is.
#[must_use]
pub fn short_range(text: &str) -> String {
    let number = |text: &str| {
        let value: f64 = text.parse().ok()?;
        let short = format!("{value:.2e}").parse::<f64>().ok()?;
        Some(if text.len() <= RANGE_DIGITS_MAX { text.to_owned() } else { short.to_string() })
    };
    let short = || {
        let inner = text.strip_prefix('[')?;
        let end = inner.chars().last().filter(|end| matches!(end, ')' | ']'))?;
        let (low, high) = inner.strip_suffix(end)?.split_once(", ")?;
        Some(format!("[{}, {}{end}", number(low)?, number(high)?))
    };
    short().unwrap_or_else(|| text.to_owned())
}

/// Longer numbers of a range are cut.
const RANGE_DIGITS_MAX: usize = 6;

/// Bytes in lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes every write");
        text
    })
}

/// A field of separated values, quoted as RFC 4180 wants it. An empty string is quoted, because an empty field is a missing
/// value.
#[must_use]
pub fn csv_field(text: &str, separator: char) -> Cow<'_, str> {
    let is_plain = !text.is_empty() && text.trim() == text && !text.contains([separator, '"', '\n', '\r']);
    if is_plain { text.into() } else { format!("\"{}\"", text.replace('"', "\"\"")).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what was spent is shown whole, with two decimals, or with two digits if it is small.
    #[test]
    fn what_was_spent_is_never_rounded_to_nothing() {
        let table = [
            (0.0, "0"),
            (5.0, "5"),
            (12.5, "12.50"),
            (0.1, "0.10"),
            (0.001_300_7, "0.0013"),
            (0.001, "0.0010"),
        ];
        for (value, expected) in table {
            assert_eq!(budgeted(value), expected);
        }
    }

    /// Proves each unit at its borders.
    #[test]
    fn durations_change_unit_at_their_borders() {
        let table = [
            (0.0, "0 ms"),
            (0.85, "850 ms"),
            (59.9, "59.9 s"),
            (65.0, "1 min 05 s"),
            (11_520.0, "3 h 12 min"),
            (187_200.0, "2 d 4 h"),
            (-1.5, "-1.5 s"),
        ];
        for (seconds, text) in table {
            assert_eq!(duration(seconds), text);
        }
    }

    /// Proves that nouns agree with their count.
    #[test]
    fn plurals_are_formed() {
        let table =
            [(1, "row", "1 row"), (2, "row", "2 rows"), (0, "class", "0 classes"), (2, "batch", "2 batches")];
        for (count, noun, text) in table {
            assert_eq!(counted(count, noun), text);
        }
        assert_eq!((counted(3, "log entry"), counted(3, "day")), ("3 log entries".into(), "3 days".into()));
    }

    /// Proves that sizes and numbers keep their order of magnitude, and that no byte loses a digit.
    #[test]
    fn sizes_and_numbers_are_readable() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
        assert_eq!(number(0.314_16), "0.314");
        assert_eq!([number(0.0), number(-0.0)], ["0.000", "0.000"]);
        assert_eq!(number(1250.4), "1250");
        assert_eq!(number(1.2e-7), "1.20e-7");
        assert_eq!(number(f64::NAN), "NaN");
        assert_eq!(hex(&[0, 10, 255]), "000aff");
        let fields = ["a", "", " a", "a,b", "a\"b", "a;b"].map(|text| csv_field(text, ',').into_owned());
        assert_eq!(fields, ["a", "\"\"", "\" a\"", "\"a,b\"", "\"a\"\"b\"", "a;b"]);
    }

    /// Proves that only so many words are listed, with the number of the others.
    #[test]
    fn long_lists_are_cut() {
        assert_eq!(first_few(["a", "b", "c"], 2), "a, b and 1 more");
        assert_eq!(first_few(["a", "b"], 2), "a, b");
        assert_eq!(first_few([0.5; 0], 2), "");
        assert_eq!(first_quoted(&["a", "b", "c"], 1), "`a` and 2 more");
    }

    /// Proves that metrics keep their order of magnitude.
    #[test]
    fn metrics_are_readable() {
        assert_eq!(metric(0.314_16), "0.3142");
        assert_eq!(metric(1.2e-7), "1.200e-7");
        assert_eq!(metric(f64::NAN), "NaN");
    }

    /// Proves that only long numbers of ranges are cut, and that what is not a range of numbers stays.
    #[test]
    fn ranges_are_short() {
        assert_eq!(short_range("[0.00019712422, 0.25)"), "[0.000197, 0.25)");
        assert_eq!(short_range("[17, 1484705]"), "[17, 1480000]");
        for same in
            ["Private", "[a, b)", "[17, 23)", "[2024-01-01T00:00:00Z, 2024-02-01T00:00:00Z)", "(others)", "["]
        {
            assert_eq!(short_range(same), same);
        }
    }
}
