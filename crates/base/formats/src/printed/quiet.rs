//! Forms of lines that said nothing: a log repeats a few forms with other numbers, and is read once for each of them.
//!
//! Two lines have the same form if they differ only in the digits of numbers, and neither number is 0 where the other is not. What a line says
//! depends on nothing else, as long as no table and no block is open that it may belong to. The digits of names (`top5`, `f1`) are kept.

/// So many forms are remembered; a new one replaces another.
const FORMS_MAX: usize = 4096;
/// A longer number may be read otherwise than another one of its length.
const DIGITS_MAX: usize = 15;
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

/// The hash of a line's form; `None` for a line that is read in any case: one without a number, an object, a comment, one with a number too long.
pub(super) fn form_of(line: &[u8]) -> Option<u64> {
    if matches!(line.first(), None | Some(b'{' | b'#')) {
        return None;
    }
    let mut hash = line.len() as u64;
    let mut mix = |byte: u8| hash = (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(MULTIPLIER);
    let (mut in_word, mut has_number, mut at) = (false, false, 0);
    while at < line.len() {
        let byte = line[at];
        if byte.is_ascii_digit() && !in_word {
            let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit());
            let (count, or) = digits.fold((0, 0), |(count, or), digit| (count + 1, or | (digit - b'0')));
            if count > DIGITS_MAX {
                return None;
            }
            (0..count).for_each(|_| mix(if or == 0 { b'0' } else { b'9' }));
            has_number = true;
            at += count;
            continue;
        }
        in_word = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => true,
            b'0'..=b'9' | b'/' | b'.' | b'-' | b'@' | b'\'' => in_word,
            _ => false,
        };
        mix(byte);
        at += 1;
    }
    has_number.then_some(hash.max(1))
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
        ] {
            assert_ne!(form(line), form(other), "{line}");
        }
        for line in ["", "no number", "top5", "{\"a\": 1}", "# 5", "1234567890123456"] {
            assert_eq!(form(line), None, "{line}");
        }
    }
}
