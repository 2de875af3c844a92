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
/// The form of a line of at most so many bytes is made without allocating.
const SHORT_BYTES: usize = 128;
/// So many bytes are looked at together.
pub(super) const WORD_BYTES: usize = 8;
/// 2⁶⁴ divided by the golden ratio: odd, and its bits are spread.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The forms that said nothing, each at the place that its hash names; 0 is none.
#[derive(Debug, Default)]
pub(in crate::printed) struct QuietForms {
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
pub(in crate::printed) struct Form {
    pub hash: u64,
    /// It has so many digits behind a point that they may be rounded to a whole number.
    pub has_long: bool,
    /// A line may say nothing because of more than its form: an object, and a number that is rounded.
    pub may_be_quiet: bool,
}

impl Form {
    /// The form of the same line below a heading that says where the script is.
    pub fn of_row(self) -> Self {
        Self { hash: (self.hash ^ MULTIPLIER).max(1), ..self }
    }
}

/// A line's form; `None` for a line that is read in any case: one without a number, a comment, one with a number too long.
pub(super) fn form_of(line: &[u8]) -> Option<Form> {
    if matches!(line.first(), None | Some(b'#')) {
        return None;
    }
    next_digit(line, 0)?;
    let has_object = has_object(line);
    let (mut short, mut long) = ([0; SHORT_BYTES], Vec::new());
    let same = match short.get_mut(..line.len()) {
        Some(same) => same,
        None => {
            long.resize(line.len(), 0);
            &mut long[..]
        }
    };
    same.copy_from_slice(line);
    let (mut in_word, mut has_number, mut has_long, mut at) = (false, false, false, 0);
    while let Some(begin) = next_digit(line, at) {
        in_word = continues_word(&line[at..begin], in_word);
        let digits = digits_at(line, begin);
        at = begin + digits.len();
        if in_word {
            continue;
        }
        let is_fraction = is_fraction(line, begin);
        let is_long = digits.len() > DIGITS_MAX;
        if digits.len() > FRACTION_DIGITS_MAX || (is_long && !is_fraction) {
            return None;
        }
        has_long |= is_long;
        has_number = true;
        same[begin..at].fill(Class::of(digits, may_lead(line, begin, has_object)).digit());
    }
    let may_be_quiet = !has_long && line.first() != Some(&b'{');
    has_number.then(|| Form { hash: hash_of(same), has_long, may_be_quiet })
}

/// What two numbers of one form have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Zero,
    /// JSON has no number that begins so.
    LedByZero,
    Other,
}

impl Class {
    /// The class of these digits. `may_lead`: it counts whether the first one is 0.
    pub fn of(digits: &[u8], may_lead: bool) -> Self {
        match digits.iter().all(|digit| *digit == b'0') {
            true => Self::Zero,
            false if may_lead && digits.first() == Some(&b'0') => Self::LedByZero,
            false => Self::Other,
        }
    }

    /// Which digit is in the form.
    fn digit(self) -> u8 {
        match self {
            Self::Zero => b'0',
            Self::LedByZero => b'1',
            Self::Other => b'9',
        }
    }
}

/// Whether a line may have an object.
pub(super) fn has_object(line: &[u8]) -> bool {
    memchr::memchr(b'{', line).is_some()
}

/// Whether it counts if a number that begins here begins with 0.
pub(super) fn may_lead(line: &[u8], begin: usize, has_object: bool) -> bool {
    has_object && !is_fraction(line, begin)
}

fn is_fraction(line: &[u8], begin: usize) -> bool {
    begin > 0 && line[begin - 1] == b'.'
}

/// Of eight bytes the highest bit of each that is none of the ten digits is set.
pub(super) fn without_digits(eight: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let beyond = eight ^ (EACH * u64::from(b'0'));
    (((beyond & (EACH * 0x7f)) + EACH * (0x80 - 10)) | beyond) & (EACH * 0x80)
}

/// Where the next digit is.
fn next_digit(line: &[u8], from: usize) -> Option<usize> {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let mut at = from;
    while let Some(eight) = line.get(at..).and_then(<[u8]>::first_chunk::<WORD_BYTES>) {
        let digits = !without_digits(u64::from_le_bytes(*eight)) & HIGHEST;
        if digits != 0 {
            return Some(at + digits.trailing_zeros() as usize / WORD_BYTES);
        }
        at += WORD_BYTES;
    }
    line.get(at..)?.iter().position(u8::is_ascii_digit).map(|digit| at + digit)
}

/// The digits that begin here.
fn digits_at(line: &[u8], begin: usize) -> &[u8] {
    let count = line[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    &line[begin..begin + count]
}

/// Never 0.
fn hash_of(text: &[u8]) -> u64 {
    let (eights, rest) = text.as_chunks();
    let length = text.len() as u64;
    let hash = eights.iter().fold(length, |hash, eight| spread(hash, u64::from_le_bytes(*eight)));
    spread(hash, rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))).max(1)
}

fn spread(hash: u64, eight: u64) -> u64 {
    let product = u128::from(hash.rotate_left(5) ^ eight) * u128::from(MULTIPLIER);
    (product >> 64) as u64 ^ product as u64
}

/// Where the digits are that lines of one form may differ in.
pub(super) fn runs_of(line: &[u8]) -> Vec<(usize, usize)> {
    let (mut runs, mut in_word, mut at) = (Vec::new(), false, 0);
    while let Some(begin) = next_digit(line, at) {
        in_word = continues_word(&line[at..begin], in_word);
        at = begin + digits_at(line, begin).len();
        if !in_word {
            runs.push((begin, at));
        }
    }
    runs
}

/// Whether digits behind this text are those of a word; `in_word`: it begins in one.
fn continues_word(text: &[u8], in_word: bool) -> bool {
    for byte in text.iter().rev() {
        match IN_WORDS[*byte as usize] {
            InWord::Begins => return true,
            InWord::Ends => return false,
            InWord::Continues => {}
        }
    }
    in_word
}

/// What a byte does to a word.
#[derive(Clone, Copy)]
enum InWord {
    Ends,
    Continues,
    Begins,
}

/// By byte.
static IN_WORDS: [InWord; 256] = {
    let mut table = [InWord::Ends; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => InWord::Begins,
            b'0'..=b'9' | b'/' | b'.' | b'-' | b'@' | b'\'' => InWord::Continues,
            _ => InWord::Ends,
        };
        byte += 1;
    }
    table
};

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
