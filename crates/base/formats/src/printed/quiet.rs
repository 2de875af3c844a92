//! Forms of lines that said nothing: a log repeats a few forms with other numbers, and is read once for each of them.
//!
//! Two lines have the same form if they differ only in the digits of numbers, and neither number is 0 where the other is not, nor, where
//! an object may be, begins with 0 where the other does not. What a line says depends on nothing else but these numbers, as long as
//! no table and no block is open that it may belong to. The digits of names (`top5`, `f1`) are kept.

/// So many forms are remembered; a new one replaces another.
const FORMS_MAX: usize = 4096;
/// A longer number may be read otherwise than another one of its length.
const DIGITS_MAX: usize = 15;
/// The same, behind a point.
const FRACTION_DIGITS_MAX: usize = 24;
/// 2⁶⁴ divided by the golden ratio: odd, and its bits are spread.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The forms that said nothing, each at the place that its hash names; 0 is none.
#[derive(Debug, Default)]
pub(super) struct QuietForms {
    hashes: Vec<u64>,
}

impl QuietForms {
    /// Whether a line of this form said nothing.
    pub fn has(&self, form: u64) -> bool {
        self.hashes.get(form as usize % FORMS_MAX) == Some(&form)
    }

    /// A line of this form said nothing.
    pub fn add(&mut self, form: u64) {
        self.hashes.resize(FORMS_MAX, 0);
        self.hashes[form as usize % FORMS_MAX] = form;
    }
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub hash: u64,
    /// It has so many digits behind a point that they may be rounded to a whole number.
    pub has_long: bool,
    /// A line may say nothing because of more than its form: an object, and a number that is rounded.
    pub may_be_quiet: bool,
}

/// A line's form; `None` for a line that is read in any case: one without a number, a comment, one with a number too long.
pub(super) fn form_of(line: &[u8]) -> Option<Form> {
    if matches!(line.first(), None | Some(b'#')) {
        return None;
    }
    let (mut hash, mut eight, mut count) = (line.len() as u64, 0u64, 0u32);
    let mut mix = |byte: u8| {
        eight = eight << 8 | u64::from(byte);
        count += 1;
        if count.is_multiple_of(8) {
            hash = spread(hash, eight);
        }
    };
    let has_object = memchr::memchr(b'{', line).is_some();
    let (mut in_word, mut has_number, mut has_long, mut at) = (false, false, false, 0);
    while at < line.len() {
        let byte = line[at];
        if byte.is_ascii_digit() && !in_word {
            let (mut end, mut or) = (at, 0);
            while end < line.len() && line[end].is_ascii_digit() {
                or |= line[end] - b'0';
                end += 1;
            }
            let is_fraction = at > 0 && line[at - 1] == b'.';
            let is_long = end - at > DIGITS_MAX;
            if end - at > FRACTION_DIGITS_MAX || (is_long && !is_fraction) {
                return None;
            }
            has_long |= is_long;
            // JSON has no number that begins so.
            let is_led_by_zero = has_object && byte == b'0' && !is_fraction;
            mix(match (or, is_led_by_zero) {
                (0, _) => b'0',
                (_, true) => b'1',
                _ => b'9',
            });
            mix((end - at) as u8);
            has_number = true;
            at = end;
            continue;
        }
        in_word = goes_on_as_word(byte, in_word);
        mix(byte);
        at += 1;
    }
    let may_be_quiet = !has_long && line.first() != Some(&b'{');
    let hash = spread(spread(hash, eight), u64::from(count)).max(1);
    has_number.then_some(Form { hash, has_long, may_be_quiet })
}

fn spread(hash: u64, eight: u64) -> u64 {
    let product = u128::from(hash.rotate_left(5) ^ eight) * u128::from(MULTIPLIER);
    (product >> 64) as u64 ^ product as u64
}

/// Where the digits are that lines of one form may differ in.
pub(super) fn runs_of(line: &[u8]) -> Vec<(usize, usize)> {
    let (mut runs, mut in_word, mut at) = (Vec::new(), false, 0);
    while at < line.len() {
        let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && !in_word {
            runs.push((at, at + digits));
            at += digits;
            continue;
        }
        in_word = goes_on_as_word(line[at], in_word);
        at += 1;
    }
    runs
}

fn goes_on_as_word(byte: u8, in_word: bool) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => true,
        b'0'..=b'9' | b'/' | b'.' | b'-' | b'@' | b'\'' => in_word,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which lines have the same form: numbers may differ, but for zero; names, lengths and signs may not.
    #[test]
    fn lines_of_one_form() {
        let form = |line: &str| form_of(line.as_bytes());
        for (line, other) in
            [("took 12 ms", "took 98 ms"), ("2026-01-02 10:02:03,123 x", "2026-11-12 11:12:13,456 x")]
        {
            assert!(form(line).is_some() && form(line) == form(other), "{line}");
        }
        for (line, other) in [
            ("top1 x 5", "top5 x 5"),
            ("max_steps: 0", "max_steps: 5"),
            ("took 12 ms", "took 123 ms"),
            ("took -1 ms", "took +1 ms"),
            ("valid_1 3", "valid_2 3"),
            ("{\"a\": 01}", "{\"a\": 11}"),
        ] {
            assert_ne!(form(line), form(other), "{line}");
        }
        for line in ["", "no number", "top5", "# 5", "1234567890123456"] {
            assert_eq!(form(line), None, "{line}");
        }
    }
}
