//! Strings into numbers that are exactly what was written, or known not to be.

use crate::types::decimal::unsigned_part;
use crate::types::infer::is_code;

/// A whole number of at most 64 bits; no code with zeros in front.
#[inline]
pub(crate) fn parse_int(value: &[u8]) -> Option<i64> {
    match value {
        [b'0', _, ..] | [b'-' | b'+', b'0', _, ..] => None,
        [b'+', ..] if is_code(value) => None,
        value => parse_any_int(value),
    }
}

/// A whole number of at most 64 bits, of a column that was said to hold such: zeros in front are allowed.
#[inline]
pub(crate) fn parse_any_int(value: &[u8]) -> Option<i64> {
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

/// A whole number of at most 64 bits without a sign; no code with zeros in front.
pub(crate) fn parse_unsigned(value: &[u8]) -> Option<u64> {
    match parse_int(value) {
        Some(number) => u64::try_from(number).ok(),
        None if is_code(value) => None,
        None => parse_any_unsigned(value),
    }
}

/// As [`parse_unsigned`], of a column that was said to hold whole numbers.
pub(crate) fn parse_any_unsigned(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What became of a number that was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReadFloat {
    /// The nearest 64-bit float.
    pub(crate) number: f64,
    /// Whether it was written with more digits than that float has, or is too small for one: others may be the same float.
    pub(crate) is_rounded: bool,
}

/// A number, rounded correctly. A whole number that a float does not hold exactly, one beyond the range of floats, and a
/// code with zeros in front are none.
#[inline]
pub(crate) fn read_float(value: &[u8]) -> Option<ReadFloat> {
    match Decimal::of(value) {
        Some(decimal) => Some(decimal.read()).filter(|read| !read.is_rounded || !decimal.is_whole),
        None => read_long_float(value).filter(|read| !(is_code(value) || read.is_rounded && is_whole(value))),
    }
}

/// As [`read_float`], of a column that was said to hold numbers: any notation is one, and whole numbers are rounded too.
#[inline]
pub(crate) fn read_any_float(value: &[u8]) -> Option<ReadFloat> {
    match Decimal::of(value) {
        Some(decimal) => Some(decimal.read()),
        None => read_long_float(value),
    }
}

/// Powers of ten that are exact as 64-bit floats.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The same of whole numbers of 64 bits.
const WHOLE_POWERS: [u64; SHORT_DIGITS_MAX + 1] = {
    let mut powers = [1; SHORT_DIGITS_MAX + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// So many digits 64 bits hold, whatever they are.
const SHORT_DIGITS_MAX: usize = 19;

/// `-123.456` of few digits: nothing with zeros in front.
#[derive(Clone, Copy)]
struct Decimal {
    is_negative: bool,
    mantissa: u64,
    /// Digits behind the point.
    decimals: usize,
    is_whole: bool,
}

impl Decimal {
    #[inline]
    fn of(value: &[u8]) -> Option<Self> {
        let (is_negative, digits) = match value {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let has_zeros_in_front = matches!(digits, [b'0', next, ..] if *next != b'.');
        if digits.is_empty() || digits.len() > SHORT_DIGITS_MAX + 1 || has_zeros_in_front {
            return None;
        }
        let (whole, behind) = append_digits(0, digits);
        let (mantissa, decimals) = match behind {
            [] if digits.len() <= SHORT_DIGITS_MAX => (whole, 0),
            [b'.', decimals @ ..] if digits.len() > 1 => match append_digits(whole, decimals) {
                (mantissa, []) => (mantissa, decimals.len()),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { is_negative, mantissa, decimals, is_whole: behind.is_empty() })
    }

    /// With a mantissa below 2^53 and few decimals one division of exact numbers rounds correctly (Clinger 1990, "How to read
    /// floating point numbers accurately").
    #[inline]
    fn read(&self) -> ReadFloat {
        let number = match self.mantissa <= 1 << 53 {
            true => self.mantissa as f64 / EXACT_POWERS[self.decimals],
            false => over_power_of_ten(self.mantissa, self.decimals),
        };
        let is_rounded = self.mantissa > DISTINCT_MANTISSA_MAX && !self.is_held_by(number);
        ReadFloat { number: if self.is_negative { -number } else { number }, is_rounded }
    }

    /// Whether no other number of as many digits is this float; of a whole number, whether it is this one.
    fn is_held_by(&self, number: f64) -> bool {
        if self.is_whole {
            return number as u128 == u128::from(self.mantissa);
        }
        is_alone(number, self.decimals) || {
            let power = u128::from(WHOLE_POWERS[self.decimals]);
            let held = times(number, power);
            held.is_some_and(|held| held.rounded() == u128::from(self.mantissa))
        }
    }
}

/// Digits behind those of a number, and what follows them. What 64 bits do not hold is cut.
#[inline]
fn append_digits(mut number: u64, mut text: &[u8]) -> (u64, &[u8]) {
    while let Some((first, behind)) = text.split_first_chunk()
        && let Some(digits) = eight_digits(*first)
    {
        number = number.wrapping_mul(100_000_000).wrapping_add(digits);
        text = behind;
    }
    while let [byte, behind @ ..] = text
        && byte.is_ascii_digit()
    {
        number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        text = behind;
    }
    (number, text)
}

/// The number that eight digits are: neighbours are joined to pairs, those to fours, and those to all.
#[inline]
fn eight_digits(bytes: [u8; 8]) -> Option<u64> {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let word = u64::from_le_bytes(bytes);
    // A digit is 0x30 to 0x39: with six more it still begins with 3.
    let begins = |word: u64| word & (0xF0 * EACH) == 0x30 * EACH;
    if !begins(word) || !begins(word.wrapping_add(6 * EACH)) {
        return None;
    }
    let pairs = (word & (0x0F * EACH)).wrapping_mul(1 + (10 << 8)) >> 8;
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(1 + (100 << 16)) >> 16;
    Some((fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(1 + (10_000 << 32)) >> 32)
}

/// A number of 64 bits over a power of ten, rounded correctly: their quotient has more bits than a float, and its last one says
/// whether anything is left.
fn over_power_of_ten(number: u64, decimals: usize) -> f64 {
    let power = WHOLE_POWERS[decimals];
    let (zeros, power_zeros) = (number.leading_zeros(), power.leading_zeros());
    let (dividend, divisor) = (u128::from(number << zeros) << 63, u128::from(power << power_zeros));
    let quotient = dividend / divisor;
    let is_more = dividend != quotient * divisor;
    // The exponent of a float that is a power of two.
    let exponent = u64::from(1023 - 63 + power_zeros - zeros);
    (quotient as u64 | u64::from(is_more)) as f64 * f64::from_bits(exponent << 52)
}

fn read_long_float(value: &[u8]) -> Option<ReadFloat> {
    let number: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    if !number.is_finite() {
        let is_beyond = value.iter().any(u8::is_ascii_digit);
        return (!is_beyond).then_some(ReadFloat { number, is_rounded: false });
    }
    Some(ReadFloat { number, is_rounded: WrittenNumber::of(value).is_rounded_to(number) })
}

fn is_whole(value: &[u8]) -> bool {
    unsigned_part(value).iter().all(u8::is_ascii_digit)
}

/// Different decimal numbers of so many digits are different 64-bit floats.
const DISTINCT_DIGITS_MAX: usize = 15;

/// The largest whole number of so many digits.
const DISTINCT_MANTISSA_MAX: u64 = 999_999_999_999_999;

/// Whether no two numbers of so many decimals are this float: they are further apart than it is from the next float.
#[inline]
fn is_alone(number: f64, decimals: usize) -> bool {
    const EXPONENT: u64 = 0x7ff << 52;
    let next_float = f64::from_bits(number.to_bits() & EXPONENT) * f64::EPSILON;
    EXACT_POWERS.get(decimals).is_some_and(|power| 1.0 / power > next_float)
}

/// Digits that 128 bits hold.
const COUNTED_DIGITS_MAX: usize = 38;

/// The largest power of ten that 128 bits hold.
const DECIMALS_MAX: usize = 38;

/// A number as it is written: its digits from the first that is not zero, and where its point is.
struct WrittenNumber<'v> {
    value: &'v [u8],
    /// Of the digits, as far as 38 of them go.
    mantissa: u128,
    digits: usize,
    /// Digits behind the point, the exponent taken into account.
    decimals: i64,
    is_whole: bool,
}

impl<'v> WrittenNumber<'v> {
    fn of(value: &'v [u8]) -> Self {
        let mut written = Self { value, mantissa: 0, digits: 0, decimals: 0, is_whole: is_whole(value) };
        let mut behind_point = false;
        for (index, byte) in value.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    let digit = byte - b'0';
                    written.decimals += i64::from(behind_point);
                    if written.digits > 0 || digit > 0 {
                        written.digits += 1;
                        if written.digits <= COUNTED_DIGITS_MAX {
                            written.mantissa = written.mantissa * 10 + u128::from(digit);
                        }
                    }
                }
                b'.' => behind_point = true,
                b'e' | b'E' => {
                    let exponent = std::str::from_utf8(&value[index + 1..]).unwrap_or_default();
                    written.decimals -= exponent.parse::<i64>().unwrap_or_default();
                    break;
                }
                _ => {}
            }
        }
        written
    }

    /// Whether the float, printed with as many digits, is another number: others of as many digits may be the same float.
    fn is_rounded_to(&self, number: f64) -> bool {
        if number == 0.0 {
            return self.digits > 0;
        }
        // A whole number is exact, or it is rounded.
        if self.is_whole {
            return !self.prints(number.abs());
        }
        let is_alone = || usize::try_from(self.decimals).is_ok_and(|decimals| is_alone(number, decimals));
        self.digits > DISTINCT_DIGITS_MAX && !is_alone() && !self.prints(number.abs())
    }

    /// Whether the float, printed with as many digits, has these digits.
    fn prints(&self, number: f64) -> bool {
        let counted = usize::try_from(self.decimals).ok().filter(|decimals| *decimals <= DECIMALS_MAX);
        let counted = counted.filter(|_| self.digits <= COUNTED_DIGITS_MAX);
        let power = counted.and_then(|decimals| 10u128.checked_pow(u32::try_from(decimals).ok()?));
        match power.and_then(|power| times(number, power)) {
            Some(held) => held.rounded() == self.mantissa,
            None => self.prints_by_letters(number),
        }
    }

    fn prints_by_letters(&self, number: f64) -> bool {
        let places = self.digits.saturating_sub(1);
        let printed = format!("{number:.places$e}");
        let end = self.value.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(self.value.len());
        let digits = self.value[..end].iter().filter(|byte| byte.is_ascii_digit());
        let digits = digits.skip_while(|byte| **byte == b'0');
        printed.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).eq(digits.copied())
    }
}

/// A number of 128 bits and a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WideNumber {
    number: u128,
    /// Whether the first binary digit of the fraction is one, and whether any later one is.
    fraction: (bool, bool),
}

impl WideNumber {
    /// The nearest whole number; of two, the even one.
    fn rounded(self) -> u128 {
        self.number
            + match self.fraction {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => self.number & 1,
            }
    }
}

/// A positive float times a power of ten; `None` where 128 bits do not hold it.
#[inline]
fn times(number: f64, power: u128) -> Option<WideNumber> {
    const MANTISSA_BITS: u32 = 52;
    let bits = number.to_bits();
    let exponent = i64::try_from(bits >> MANTISSA_BITS).ok().filter(|exponent| *exponent > 0)?;
    let mantissa = u128::from((bits & ((1 << MANTISSA_BITS) - 1)) | (1 << MANTISSA_BITS));
    // Of the product its last 64 bits, and those before.
    let low = mantissa * (power & u128::from(u64::MAX));
    let (high, low) = (mantissa * (power >> 64) + (low >> 64), low as u64);
    let shift = exponent - 1075;
    if shift >= 0 {
        let product = (high << 64) | u128::from(low);
        let fits = |shift: &u32| high >> 64 == 0 && *shift <= product.leading_zeros();
        let shift = u32::try_from(shift).ok().filter(fits)?;
        return Some(WideNumber { number: product << shift, fraction: (false, false) });
    }
    let shift = u32::try_from(-shift).ok()?;
    let (number, fraction) = if shift <= 64 {
        let (half, behind) = (1u64 << (shift - 1), low & (u64::MAX >> (64 - shift)));
        if high.leading_zeros() < 64 - shift {
            return None;
        }
        let number = (high << (64 - shift)) | u128::from(low.checked_shr(shift).unwrap_or(0));
        (number, (behind & half != 0, behind & (half - 1) != 0))
    } else {
        let shift = Some(shift - 64).filter(|shift| *shift < u128::BITS)?;
        let (half, behind) = (1u128 << (shift - 1), high & ((1 << shift) - 1));
        (high >> shift, (behind & half != 0, behind & (half - 1) != 0 || low != 0))
    };
    Some(WideNumber { number, fraction })
}

/// Whether a decimal number of another format is the one that its nearest 64-bit float is printed as: two different ones are
/// never the same float then.
pub(crate) fn is_shortest(text: &str, number: f64) -> bool {
    let printed = format!("{number}");
    let plain = match text.split_once('.') {
        Some((whole, decimals)) => {
            let decimals = decimals.trim_end_matches('0');
            if decimals.is_empty() { whole.to_owned() } else { format!("{whole}.{decimals}") }
        }
        None => text.to_owned(),
    };
    printed == plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::ColumnType;
    use crate::types::infer::{Form, form_of};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves that the quick paths read numbers exactly as the standard library does, or leave them to it.
        #[test]
        fn numbers_are_read_as_the_standard_library_does(number in any::<f64>(), decimals in 0usize..20, whole in any::<i64>()) {
            for text in [format!("{number}"), format!("{:.decimals$}", number % 1e9), format!("{number:e}"), format!("{whole}")] {
                let expected = text.parse::<f64>().unwrap();
                let read = read_any_float(text.as_bytes()).unwrap().number;
                prop_assert!(read.to_bits() == expected.to_bits() || (read.is_nan() && expected.is_nan()), "{text}: {read}");
                prop_assert_eq!(parse_int(text.as_bytes()), text.parse::<i64>().ok());
            }
        }

        /// Proves that no string makes a parser panic, and that it accepts exactly what the type detection does.
        #[test]
        fn parsers_agree_with_the_detected_type(text in "[-+]?[0-9]{0,3}[0-9.eE:nai ]{0,18}") {
            let bytes = text.trim().as_bytes();
            if bytes.is_empty() {
                return Ok(());
            }
            let form = form_of(bytes);
            let is_unsigned = matches!(form, Form::Unsigned | Form::LongUnsigned);
            let is_whole = form.kind() == ColumnType::Int;
            let is_long = matches!(form, Form::LongWhole | Form::LongNegative | Form::LongUnsigned);
            let is_below_zero = matches!(form, Form::Negative | Form::LongNegative);
            prop_assert_eq!(parse_int(bytes).is_some(), is_whole && !is_unsigned, "{:?}", form);
            let has_sign = is_below_zero && parse_int(bytes) != Some(0);
            prop_assert_eq!(parse_unsigned(bytes).is_some(), is_whole && !has_sign, "{:?}", form);
            prop_assert_eq!(read_float(bytes).is_some(), form == Form::Float || (is_whole && !is_long), "{:?}", form);
        }

        /// Proves that a print of a float, with any number of digits, is never taken for a rounded number.
        #[test]
        fn prints_of_floats_are_not_rounded(number in any::<f64>(), small in -1e6..1e6f64, digits in 0usize..45) {
            for number in [number, small, 10f64.powf(small / 1e5)] {
                prop_assume!(number.is_finite() && number != 0.0);
                for text in [format!("{number:e}"), format!("{number:.digits$e}"), format!("{:.digits$}", number % 1e9)] {
                    let read = read_any_float(text.as_bytes()).unwrap();
                    // With too few digits the text is another number, and with none left it is zero.
                    if digits >= 17 && read.number != 0.0 {
                        prop_assert!(!read.is_rounded, "{text}");
                    }
                }
            }
        }
    }

    /// Proves that a number of more digits than its float has is known to be rounded, that a print of a float is not, and that
    /// one beyond all floats is not one.
    #[test]
    fn rounded_numbers_are_known() {
        for (text, rounded) in [
            ("0.1", Some(false)),
            ("0.10000000000000000555", Some(false)),
            ("1.000000000000000056e-01", Some(false)),
            ("0.1234567890123456789", Some(true)),
            ("0.33333333333333333333", Some(true)),
            ("123456789012345.67", Some(false)),
            ("123456789012345.68", Some(true)),
            ("9.007199254740992", Some(true)),
            ("9.007199254740993", Some(false)),
            ("72585816855211.87", Some(true)),
            ("72585816855211.88", Some(false)),
            ("0.30000000000000004", Some(false)),
            ("1.234567890123456e-25", Some(false)),
            ("1.2345678901234567e-25", Some(true)),
            ("1.50000000000000000000", Some(false)),
            ("123456789012345678.5", Some(true)),
            ("1e-400", Some(true)),
            ("0e-400", Some(false)),
            ("1e400", None),
            ("-1e400", None),
            ("inf", Some(false)),
            ("NaN", Some(false)),
            ("9007199254740992", Some(false)),
            ("9007199254740993", None),
            ("100000000000000000000", Some(false)),
            ("100000000000000000001", None),
            ("00.5", None),
            ("007", None),
            ("0.5", Some(false)),
        ] {
            assert_eq!(read_float(text.as_bytes()).map(|read| read.is_rounded), rounded, "{text}");
        }
        assert_eq!(
            read_any_float(b"9007199254740993").unwrap(),
            ReadFloat { number: 9_007_199_254_740_992.0, is_rounded: true }
        );
        assert_eq!(read_any_float(b"007").unwrap(), ReadFloat { number: 7.0, is_rounded: false });
        assert_eq!((parse_int(b"007"), parse_any_int(b"007"), parse_int(b"0")), (None, Some(7), Some(0)));
        assert_eq!((parse_int(b"+4915112345678"), parse_int(b"+49")), (None, Some(49)));
        assert_eq!(parse_unsigned(b"18446744073709551615"), Some(u64::MAX));
    }

    /// Proves that a decimal number counts as held by a float only where no other one is the same float.
    #[test]
    fn decimals_that_floats_hold_are_known() {
        for (text, holds) in [
            ("12.50", true),
            ("0.1", true),
            ("-3.00", true),
            ("9007199254740993", false),
            ("0.12345678901234567891", false),
        ] {
            assert_eq!(is_shortest(text, text.parse().unwrap()), holds, "{text}");
        }
    }
}
