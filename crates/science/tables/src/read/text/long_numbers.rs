//! Numbers in JSON of so many digits that a reader would round them.

use crate::read::numbers::read_any_float;

/// Of so many digits two numbers may be one 64-bit float.
const LONG_DIGITS_MIN: usize = 16;

/// As many digits as the largest whole numbers of 64 bits have.
const LONG_WHOLE_DIGITS_MIN: usize = 20;

/// Whether a text has a number that a 64-bit one would round, or a whole one of so many digits as hardly any has.
pub(super) fn has_long_number(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let mut at = 0;
    // A run this long has a whole piece of eight bytes in it, wherever it begins.
    while let Some(piece) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        if may_be_parts(*piece) {
            let begin = text[..at].iter().rposition(|byte| !is_part(byte)).map_or(0, |before| before + 1);
            let length = text[begin..].iter().take_while(|byte| is_part(byte)).count();
            if length >= LONG_DIGITS_MIN && is_long(&text[begin..begin + length], &text[begin + length..]) {
                return true;
            }
            at = begin + length;
        }
        at += piece.len();
    }
    false
}

/// Whether each byte is a digit or a point, or a slash, which is between them.
#[inline]
fn may_be_parts(piece: [u8; 8]) -> bool {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let word = u64::from_le_bytes(piece);
    // Of each byte the highest bit says whether it is at least so large; those that have it before are none of them.
    let is_from = |byte: u8| word.wrapping_add(u64::from(0x80 - byte) * EACH);
    is_from(b'.') & !is_from(b'9' + 1) & !word & (0x80 * EACH) == 0x80 * EACH
}

/// Whether digits, and the exponent behind them, are such a number.
fn is_long(run: &[u8], behind: &[u8]) -> bool {
    let digits = run.iter().filter(|byte| byte.is_ascii_digit()).skip_while(|byte| **byte == b'0').count();
    let exponent = match behind {
        [b'e' | b'E', b'-' | b'+', digits @ ..] => {
            2 + digits.iter().take_while(|it| it.is_ascii_digit()).count()
        }
        [b'e' | b'E', digits @ ..] => 1 + digits.iter().take_while(|it| it.is_ascii_digit()).count(),
        _ => 0,
    };
    if digits < LONG_DIGITS_MIN {
        return false;
    }
    if exponent == 0 && !run.contains(&b'.') {
        return digits >= LONG_WHOLE_DIGITS_MIN;
    }
    let read = match exponent {
        0 => read_any_float(run),
        exponent => read_any_float(&[run, &behind[..exponent]].concat()),
    };
    read.is_some_and(|read| read.is_rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that runs of digits are found wherever they begin, and that shorter ones and zeros in front do not count.
    #[test]
    fn long_runs_of_digits_are_found_anywhere() {
        for before in 0..40 {
            let text = |number: &str| format!("{}{number} ", "x".repeat(before));
            assert!(has_long_number(text("12345678901234567890").as_bytes()), "{before}");
            assert!(has_long_number(text("0.123456789012345678").as_bytes()), "{before}");
            assert!(has_long_number(text("1.2345678901234567e-25").as_bytes()), "{before}");
            assert!(has_long_number(text("1/2345678/12345678901234567890").as_bytes()), "{before}");
            assert!(!has_long_number(text("1234567890/1234567890").as_bytes()), "{before}");
            assert!(!has_long_number(text("1234567890123456789").as_bytes()), "{before}");
            assert!(!has_long_number(text("0.000000000123456789012345").as_bytes()), "{before}");
            assert!(!has_long_number(text("192.168.100.200.192.168.100.200").as_bytes()), "{before}");
        }
    }
}
