//! Numbers with a decimal comma.

/// Digits between two thousands.
pub(crate) const GROUP_DIGITS: usize = 3;

/// A value without its sign.
pub(crate) fn unsigned_part(value: &[u8]) -> &[u8] {
    match value {
        [b'-' | b'+', rest @ ..] => rest,
        rest => rest,
    }
}

/// Writes a number with a decimal comma, or with dots between thousands, into `plain` as one with a decimal point; false where the value
/// is not written so. An exponent is taken over as it is.
pub(crate) fn with_point(value: &[u8], plain: &mut Vec<u8>) -> bool {
    let unsigned = unsigned_part(value);
    let end = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(unsigned.len());
    let (digits, exponent) = unsigned.split_at(end);
    let mut parts = digits.splitn(2, |byte| *byte == b',');
    let (whole, decimals) = (parts.next().unwrap_or_default(), parts.next());
    let has_decimals = match decimals {
        Some(decimals) => !decimals.is_empty() && decimals.iter().all(u8::is_ascii_digit),
        None => !whole.is_empty(),
    };
    if !has_decimals || !is_grouped(whole) {
        return false;
    }
    plain.clear();
    plain.extend(&value[..value.len() - unsigned.len()]);
    plain.extend(whole.iter().filter(|byte| **byte != b'.'));
    if let Some(decimals) = decimals {
        plain.push(b'.');
        plain.extend(decimals);
    }
    plain.extend(exponent);
    true
}

/// Whether digits are without dots, or have one before each three of them.
fn is_grouped(whole: &[u8]) -> bool {
    let are_digits = |group: &[u8]| group.iter().all(u8::is_ascii_digit);
    let mut groups = whole.split(|byte| *byte == b'.');
    let first = groups.next().unwrap_or_default();
    let begins =
        first.len() == whole.len() || matches!(first, [b'1'..=b'9', rest @ ..] if rest.len() < GROUP_DIGITS);
    begins && are_digits(first) && groups.all(|group| group.len() == GROUP_DIGITS && are_digits(group))
}

#[cfg(test)]
mod tests {
    use crate::types::infer::{Form, as_usual, form_of};

    /// Proves that numbers with a decimal comma are known, that those which English writers read as thousands are unclear, and that lists,
    /// codes and thousands are strings.
    #[test]
    fn a_decimal_comma_is_known_and_a_list_is_not_one() {
        use Form::{Code, DecimalComma, Float, Text, UnclearComma, Whole};
        for (value, form) in [
            ("47,00", DecimalComma),
            ("-0,5", DecimalComma),
            ("+1,5", DecimalComma),
            (",5", DecimalComma),
            ("1.234,50", DecimalComma),
            ("1.234.567,5", DecimalComma),
            ("12.345,678", DecimalComma),
            ("0,125", DecimalComma),
            ("1234,567", DecimalComma),
            ("1,5E+03", DecimalComma),
            ("1,234", UnclearComma),
            ("-999,000", UnclearComma),
            ("1,2,3", Text),
            ("1,234,567", Text),
            ("1,234.50", Text),
            ("12.34,5", Text),
            ("1234.567,5", Text),
            ("0.123,5", Text),
            ("007,5", Text),
            ("5,", Text),
            (",", Text),
            ("1, 5", Text),
            ("a,5", Text),
            ("1,5e", Text),
            ("1e-3", Float),
            ("1.234", Float),
            ("47", Whole),
            ("007", Code),
        ] {
            assert_eq!(form_of(value.as_bytes()), form, "{value}");
        }
    }

    /// Proves what a value of a file with decimal commas is read as: dots are between thousands, and one before other than three digits
    /// makes a string.
    #[test]
    fn values_get_the_usual_notation() {
        for (value, usual) in [
            ("47,00", "47.00"),
            ("-0,5", "-0.5"),
            (",5", ".5"),
            ("1.234,50", "1234.50"),
            ("1.234", "1234"),
            ("1.234.567", "1234567"),
            ("1,234", "1.234"),
            ("1,5e-3", "1.5e-3"),
            ("007,5", "007.5"),
            ("1e-3", "1e-3"),
            ("12", "12"),
            ("1.5", "1,5"),
            ("0.125", "0,125"),
            ("31.12.2024", "31.12.2024"),
            ("2024-01-02 03:04:05.5", "2024-01-02 03:04:05.5"),
            ("1,2,3", "1,2,3"),
            ("e.g.", "e.g."),
            ("x,5", "x,5"),
        ] {
            let mut scratch = Vec::new();
            let read = as_usual(value.as_bytes(), &mut scratch);
            assert_eq!(String::from_utf8_lossy(read), usual, "{value}");
        }
    }
}
