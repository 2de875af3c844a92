//! The words and numbers of a line of text.

use super::names;
use crate::record::ROUNDED_ZERO;

/// What the names of source files end with: `trainer.py:140` is a place in one, not a value.
const SOURCE_EXTENSIONS: [&str; 11] = ["py", "pyx", "cc", "cpp", "c", "cu", "cuh", "h", "hpp", "rs", "jl"];

/// Behind a word it is as good as a blank.
const ELLIPSIS: &str = "...";
/// Abbreviations in names, which a point may be behind: `Val. loss`, `Mel-Spec. Error`.
const ABBREVIATIONS: [&str; 34] = [
    "abs", "acc", "adv", "approx", "avg", "bal", "cls", "cum", "dev", "diff", "disc", "disp", "gen", "log",
    "max", "mel", "min", "norm", "num", "pos", "prec", "prob", "rec", "recon", "reg", "rel", "seg", "spec",
    "std", "temp", "val", "valid", "var", "vel",
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::printed) enum Token<'a> {
    Word(&'a str),
    Number {
        value: f64,
        whole: Option<u64>,
        /// The number as a fraction, where a percent sign follows it.
        share: Option<f64>,
        decimals: Decimals,
    },
    /// A number with commas or groups of digits; [`super::commas`] reads it.
    Grouped(&'a str),
    /// Any other character, or something that is neither a word nor a plain number: `12.3s`, a clock, a date, a place in
    /// a source file.
    Other(char),
}

/// What separates the decimals of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) enum Decimals {
    /// It has none.
    None,
    Point,
    Comma,
    /// Its comma may be one of thousands or of decimals: it is a count at most.
    Unclear,
    /// It is a step in thousands, which several steps are rounded to: `1K`.
    Scaled,
}

impl Token<'_> {
    pub fn word(&self) -> Option<&str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Token::Number { .. })
    }
}

pub(in crate::printed) fn tokens_of(line: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        if letter.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        if letter.is_ascii_digit()
            && let Some(end) = clock_at(rest)
        {
            drop_date(&mut tokens);
            tokens.push(Token::Other('0'));
            rest = &rest[end..];
            continue;
        }
        if (letter.is_ascii_digit() || matches!(letter, '+' | '-'))
            && let Some(end) = end_of_grouped(rest, &tokens)
        {
            let (text, behind) = rest.split_at(end);
            // `(0,47)` behind a name may as well be two numbers.
            let is_listed = matches!(tokens.last(), Some(Token::Other('(')));
            tokens.push(if is_listed { Token::Other('0') } else { Token::Grouped(text) });
            rest = behind;
            continue;
        }
        // `16_h1=0.5`
        if letter.is_ascii_digit()
            && let Some(end) = end_of_numbered_word(rest)
        {
            let word = word_in(&rest[..end]);
            tokens.push(Token::Word(word));
            rest = &rest[word.len()..];
            continue;
        }
        // `Step... (100 | Loss: 2.1)`
        if letter == '.' && rest.starts_with(ELLIPSIS) && matches!(tokens.last(), Some(Token::Word(_))) {
            rest = rest.trim_start_matches('.');
            continue;
        }
        let end = match letter {
            letter if letter.is_alphabetic() || letter == '_' => end_of(rest, belongs_to_word),
            '0'..='9' | '.' | '+' | '-' => end_of(rest, belongs_to_number),
            other => other.len_utf8(),
        };
        let (text, behind) = rest.split_at(end);
        let token = match end_of_range(text, &tokens) {
            Some(last) => token_of(last, &mut rest, behind),
            None => token_of(text, &mut rest, behind),
        };
        let token = match token {
            Token::Other('0'..='9') => scaled_step(text, &tokens).unwrap_or(token),
            _ => token,
        };
        if token.is_number() && is_in_source(&tokens) {
            tokens.truncate(tokens.len() - 2);
            tokens.push(Token::Other('.'));
        } else {
            tokens.push(token);
        }
        if token.word().is_some_and(|word| is_abbreviated(word, rest)) {
            rest = &rest[1..];
        }
    }
    tokens
}

/// Whether the point behind a word ends an abbreviation and no sentence.
fn is_abbreviated(word: &str, behind: &str) -> bool {
    let Some(behind) = behind.strip_prefix(". ") else { return false };
    let last = word.rsplit(['-', '_']).next().unwrap_or(word);
    behind.starts_with(char::is_alphabetic) && ABBREVIATIONS.contains(&last)
}

/// The end of a word that begins with a number and has a letter behind its first underscore: `16_h1`.
fn end_of_numbered_word(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let begin = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let begins = matches!(bytes[begin..], [b'_', b'a'..=b'z' | b'A'..=b'Z', ..]);
    begins.then(|| end_of(text, belongs_to_word))
}

/// Most groups of a number behind its first digits. Each number of a long list is looked at for its groups.
const GROUPS_MAX: usize = 8;

/// The end of a number with commas between its digits, with all that is written at it; nothing if it has none.
pub(super) fn end_of_commas(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits_from = |at: usize| digits_from(bytes, at);
    let has_comma = |end: usize| bytes.get(end) == Some(&b',') && digits_from(end + 1) > 0;
    let first = digits_from(0);
    let mut end = first;
    // `1.234,5`, `1 234,5`
    let sign = bytes.get(first).copied().filter(|sign| (1..=3).contains(&first) && b". ".contains(sign));
    while sign.is_some()
        && end < first + 4 * GROUPS_MAX
        && bytes.get(end).copied() == sign
        && digits_from(end + 1) == 3
    {
        end += 4;
    }
    let has_groups = end > first;
    if first == 0 || !has_comma(end) || (has_groups && is_zero(&text[..first])) {
        return None;
    }
    let behind_groups = end;
    while has_comma(end) {
        end += 1 + digits_from(end + 1);
    }
    // `0.123,0.456` are two numbers, and `3 100,200` are several.
    let is_list = has_groups && bytes.get(end) == Some(&b'.') && digits_from(end + 1) > 0;
    let has_decimals = digits_from(behind_groups + 1) == end - behind_groups - 1 && end - behind_groups != 4;
    if is_list || (has_groups && sign == Some(b' ') && !has_decimals) {
        return None;
    }
    Some(end + length_of_number(&text[end..]))
}

/// The end of a number whose digits are in groups of three between signs that are nothing else, `1'234.5`, `1_234`,
/// with all that is written at it; nothing for any other.
pub(super) fn end_of_groups(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let first = digits_from(bytes, 0);
    let sign = bytes.get(first).filter(|sign| matches!(sign, b'\'' | b'_' | 0xc2 | 0xe2))?;
    let sign = text[first..].chars().next().filter(|letter| sign.is_ascii() || is_group_sign(*letter))?;
    let mut end = first;
    let group = sign.len_utf8() + 3;
    while end < first + group * GROUPS_MAX
        && text[end..].starts_with(sign)
        && digits_from(bytes, end + sign.len_utf8()) == 3
    {
        end += group;
    }
    // `16_123_h1` is a name.
    let continues = text[end..].starts_with(is_group_sign);
    if end == first || first > 3 || is_zero(&text[..first]) || continues {
        return None;
    }
    if bytes.get(end) == Some(&b',') && digits_from(bytes, end + 1) > 0 {
        end += 1;
    }
    Some(end + length_of_number(&text[end..]))
}

/// Whether a sign between digits groups them by thousands and is nothing else.
pub(super) fn is_group_sign(sign: char) -> bool {
    matches!(sign, '\'' | '’' | '_' | '\u{a0}' | '\u{2009}' | '\u{202f}')
}

fn digits_from(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn length_of_number(text: &str) -> usize {
    end_of(text, belongs_to_number)
}

pub(super) fn is_zero(digits: &str) -> bool {
    digits.bytes().all(|digit| digit == b'0')
}

/// A plain number: decimal or scientific, `nan`, `inf`, with a percent sign at most.
pub(in crate::printed) fn number_of(text: &str) -> Option<f64> {
    let text = text.strip_suffix('%').unwrap_or(text);
    let first = text.trim_start_matches(['+', '-']).as_bytes().first()?;
    let word = matches!(
        text.trim_start_matches(['+', '-']),
        // With `.0` as Lightning's bar formats them.
        "nan" | "inf" | "NaN" | "Inf" | "infinity" | "Infinity" | "nan.0" | "inf.0"
    );
    let text = if word { text.strip_suffix(".0").unwrap_or(text) } else { text };
    (first.is_ascii_digit() || *first == b'.' || word).then(|| value_of(text)).flatten()
}

/// The value of a number. A zero with two decimals or more was rounded, unless a power follows them.
pub(in crate::printed) fn value_of(text: &str) -> Option<f64> {
    value_in(text.as_bytes())
}

/// The same of bytes.
pub(in crate::printed) fn value_in(text: &[u8]) -> Option<f64> {
    let value = exact_value(text).or_else(|| {
        let text = std::str::from_utf8(text).ok()?;
        text.parse().ok().or_else(|| single_precision(text))
    })?;
    Some(if value == 0.0 && has_zero_decimals(text) { ROUNDED_ZERO } else { value })
}

fn has_zero_decimals(text: &[u8]) -> bool {
    let decimals = memchr::memchr(b'.', text).map(|point| &text[point + 1..]).unwrap_or_default();
    decimals.len() > 1 && decimals.iter().all(|byte| *byte == b'0')
}

/// The value of up to 15 digits and a small power of ten, of which most numbers are: as a double has both exactly,
/// their quotient or product is rounded once, to what the digits mean (Clinger, *How to read floating point numbers
/// accurately*, 1990).
fn exact_value(text: &[u8]) -> Option<f64> {
    let (is_negative, unsigned) = text.strip_prefix(b"-").map_or((false, text), |unsigned| (true, unsigned));
    let (mut digits, mut point, mut end, mut power) = (0_u64, None, unsigned.len(), 0);
    for (at, byte) in unsigned.iter().enumerate() {
        match byte {
            // More digits than fit are counted below.
            b'0'..=b'9' => digits = digits.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            b'.' if point.is_none() => point = Some(at),
            b'e' | b'E' => {
                power = power_of(&unsigned[at + 1..])?;
                end = at;
                break;
            }
            _ => return None,
        }
    }
    let count = end - usize::from(point.is_some());
    if count == 0 || count > EXACT_DIGITS_MAX {
        return None;
    }
    power -= point.map_or(0, |point| end - point - 1) as i32;
    let ten = EXACT_POWERS.get(power.unsigned_abs() as usize)?;
    let value = if power < 0 { digits as f64 / ten } else { digits as f64 * ten };
    Some(if is_negative { -value } else { value })
}

/// A power of up to two digits, with or without a sign.
pub(in crate::printed) fn power_of(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let is_short = matches!(digits.len(), 1 | 2) && digits.iter().all(u8::is_ascii_digit);
    is_short.then(|| sign * digits.iter().fold(0, |power, digit| power * 10 + i32::from(digit - b'0')))
}

/// A double has all whole numbers of so many digits.
pub(in crate::printed) const EXACT_DIGITS_MAX: usize = 15;
/// The powers of ten that a double has exactly.
pub(in crate::printed) const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// A number of single precision as Julia writes it, with `f` before the power of ten: `0.25f0`, `1.5f-5`.
fn single_precision(text: &str) -> Option<f64> {
    let (digits, power) = text.split_once('f')?;
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let is_power = power.strip_prefix('-').unwrap_or(power).bytes().all(is_digit);
    let is_decimal = digits.contains('.') && digits.ends_with(|last: char| last.is_ascii_digit());
    (is_decimal && is_power).then(|| format!("{digits}e{power}").parse().ok()).flatten()
}

/// `97.2%` as 0.972, exactly the number that these digits mean.
pub(in crate::printed) fn share_of(text: &str) -> Option<f64> {
    let digits = text.strip_suffix('%')?;
    let value = number_of(digits)?;
    match digits.contains(['e', 'E']) || !value.is_finite() || value == 0.0 {
        true => Some(value / 100.0),
        false => format!("{digits}e-2").parse().ok(),
    }
}

/// The token of `text`. A word gives punctuation at its end back: it is the line's.
fn token_of<'a>(text: &'a str, rest: &mut &'a str, behind: &'a str) -> Token<'a> {
    let whole_text = *rest;
    *rest = behind;
    let first = text.chars().next().unwrap_or(' ');
    if let Some(value) = number_of(text) {
        // The end of a sentence: `Step: 12000. Mean reward: 1.25`.
        let text = text.strip_suffix('.').unwrap_or(text);
        let decimals = if text.contains('.') { Decimals::Point } else { Decimals::None };
        return Token::Number { value, whole: text.parse().ok(), share: share_of(text), decimals };
    }
    // `30.12dB`
    if let Some((value, text)) = text.strip_suffix("db").and_then(|text| Some((number_of(text)?, text))) {
        let decimals = if text.contains('.') { Decimals::Point } else { Decimals::None };
        return Token::Number { value, whole: None, share: None, decimals };
    }
    // The mean and the deviation of a cross validation of XGBoost: `0.51250+0.01250`.
    let sum = text.rsplit_once('+').filter(|(mean, deviation)| {
        first.is_ascii_digit() && !mean.ends_with('e') && number_of(deviation).is_some()
    });
    if let Some((value, (mean, _))) = sum.and_then(|sum| Some((number_of(sum.0)?, sum))) {
        *rest = &whole_text[mean.len()..];
        let decimals = if mean.contains('.') { Decimals::Point } else { Decimals::None };
        return Token::Number { value, whole: mean.parse().ok(), share: None, decimals };
    }
    if first.is_alphabetic() || first == '_' {
        let word = word_in(text);
        *rest = &whole_text[word.len()..];
        return Token::Word(word);
    }
    // A sentence may end after a number.
    let sentence = text.trim_end_matches('.');
    match number_of(sentence).filter(|_| sentence.len() < text.len()) {
        Some(value) => {
            let text = sentence;
            let decimals = if text.contains('.') { Decimals::Point } else { Decimals::None };
            Token::Number { value, whole: text.parse().ok(), share: None, decimals }
        }
        None => Token::Other(first),
    }
}

/// A word without punctuation at its end, which is the line's.
fn word_in(text: &str) -> &str {
    text.trim_end_matches(['/', '.', '-', '@'])
}

fn belongs_to_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '/' | '.' | '-' | '@' | '\'')
}

fn belongs_to_number(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | '+' | '-' | '%')
}

/// The end of a number with groups of digits or commas between them, if one begins here. Numbers at the beginning of
/// brackets are listed there, `[1,2000]`, unless a name is before them: `loss (0,47)`.
fn end_of_grouped(text: &str, tokens: &[Token<'_>]) -> Option<usize> {
    let sign = usize::from(text.starts_with(['+', '-']));
    if let Some(end) = end_of_groups(&text[sign..]) {
        return Some(sign + end);
    }
    let may_be = match tokens {
        [.., Token::Word(_), Token::Other('(')] => true,
        [.., Token::Other('[' | '(')] => false,
        _ => true,
    };
    let end = Some(text).filter(|_| may_be).and_then(|text| end_of_commas(&text[sign..]))?;
    // `epoch 1 234,5` are two numbers.
    let may_have_blank = || {
        matches!(tokens, [.., Token::Word(word)] | [.., Token::Word(word), Token::Other(':' | '=')]
            if names::meaning_of(word) == names::Meaning::Measure)
    };
    (!text[..sign + end].contains(' ') || may_have_blank()).then_some(sign + end)
}

/// A step in thousands behind its name: `step:1K`, `step 1.2k`.
fn scaled_step<'a>(text: &str, tokens: &[Token<'_>]) -> Option<Token<'a>> {
    let thousands = text.strip_suffix('k')?;
    let ([.., Token::Word(word)] | [.., Token::Word(word), Token::Other(':' | '=')]) = tokens else {
        return None;
    };
    let is_step = names::place_of(&[*word], word) == Some(names::Place::Step);
    let value = number_of(thousands).filter(|_| is_step)? * 1e3;
    let whole = (0.0..9e15).contains(&value).then(|| value.round() as u64)?;
    Some(Token::Number { value: value.round(), whole: Some(whole), share: None, decimals: Decimals::Scaled })
}

/// The last batch of several, `Batch [0-100]`.
fn end_of_range<'t>(text: &'t str, tokens: &[Token<'_>]) -> Option<&'t str> {
    let [.., Token::Word("batch"), Token::Other('[')] = tokens else { return None };
    let (first, last) = text.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(first) && is_number(last)).then_some(last)
}

/// The length of a clock at the beginning of the text: `10:02`, `1:02:03`, `10:02:03,123`.
pub(super) fn clock_at(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits_from = |at: usize| {
        bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
    };
    let mut end = digits_from(0);
    if end > 3 || bytes.get(end) != Some(&b':') || digits_from(end + 1) != 2 {
        return None;
    }
    end += 3;
    if bytes.get(end) == Some(&b':') && digits_from(end + 1) == 2 {
        end += 3;
    }
    let fraction = digits_from(end + 1);
    if matches!(bytes.get(end), Some(b'.' | b',')) && fraction > 0 {
        end += 1 + fraction;
    }
    let continues =
        text[end..].chars().next().is_some_and(|letter| letter.is_alphanumeric() || letter == '%');
    (!continues).then_some(end)
}

/// `08/21` right before a clock, at the beginning of a line or of a bracket, is a date and not a place in an epoch.
fn drop_date(tokens: &mut Vec<Token<'_>>) {
    use Token::{Number, Other};
    let length = match tokens[..] {
        [.., Number { .. }, Other('/'), Number { .. }, Other('/'), Number { .. }] => 5,
        [.., Number { .. }, Other('/'), Number { .. }] => 3,
        _ => return,
    };
    let begin = tokens.len() - length;
    if begin == 0 || tokens[begin - 1] == Other('[') {
        tokens.truncate(begin);
    }
}

/// Whether a number at this place is a line of a source file.
fn is_in_source(tokens: &[Token<'_>]) -> bool {
    let [.., Token::Word(word), Token::Other(':')] = tokens else { return false };
    word.rsplit_once('.').is_some_and(|(_, extension)| SOURCE_EXTENSIONS.contains(&extension))
}

fn end_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !belongs(letter)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::super::commas;
    use super::*;

    /// Proves that a number has no end where it has more groups than any number has: a long list is read in one pass.
    #[test]
    fn groups_are_bounded() {
        for (sign, groups, expected) in [(" ", 8, true), (" ", 9, false), (" ", 9000, false)] {
            let text = format!("1{},5", format!("{sign}234").repeat(groups));
            assert_eq!(end_of_commas(&text).is_some(), expected, "{groups}");
        }
        for (groups, expected) in [(8, true), (9, false)] {
            assert_eq!(end_of_groups(&format!("1{}", "'234".repeat(groups))).is_some(), expected, "{groups}");
        }
    }

    fn numbers(line: &str) -> Vec<f64> {
        let value = |token: &Token<'_>| match token {
            Token::Number { value, .. } => Some(*value),
            _ => None,
        };
        let mut tokens = tokens_of(line);
        commas::resolve(&mut tokens, None);
        tokens.iter().filter_map(value).collect()
    }

    /// Proves that clocks, dates and places in source files are no numbers, that groups of three digits are one, and
    /// that what may be a list has none.
    #[test]
    fn what_is_a_number() {
        for (line, expected) in [
            ("[INFO|trainer.py:1626] 2026-01-02 10:02:03,123 >> steps = 5,001", vec![5001.0]),
            ("I0102 10:02:03.123456 1400 train.py:140] a 1", vec![1400.0, 1.0]),
            ("08/21 02:58:41 x: 2", vec![2.0]),
            ("01/02/2026 10:02:03 x: 2", vec![2.0]),
            ("eta: 1:02:03 [3/4] 1,234,567 1,23 (1,234)", vec![3.0, 4.0, 1_234_567.0, 1.0, 234.0]),
            ("loss 0,35 x 1,23 loss (0,47) -0,5", vec![0.35, 1.23, -0.5]),
            ("10: 20:x loss:0.5 3s", vec![10.0, 20.0, 0.5]),
            ("0.25f0 -1.5f-3 2.5f 3f5 1.f2 0.5ff", vec![0.25, -0.0015]),
            ("1,234.50 12,345,678.25 1,222.0, 5,001. 1,23.5", vec![1234.5, 12_345_678.25, 1222.0, 5001.0]),
        ] {
            assert_eq!(numbers(line), expected, "{line}");
        }
        assert_eq!(share_of("97.20%"), Some(0.972));
        assert_eq!(share_of("97.2"), None);
    }

    proptest::proptest! {
        /// Proves that a number that is read from its digits has the same bits as the one that the standard library
        /// reads, and that none is read of other text.
        #[test]
        fn exact_values_are_those_of_the_standard_library(text in r"[-+]?[0-9]{0,9}[.]?[0-9]{0,9}([eE][-+]?[0-9]{0,3})?|[0-9.eE+ -]{0,6}") {
            if let Some(value) = exact_value(text.as_bytes()) {
                proptest::prop_assert_eq!(Ok(value.to_bits()), text.parse::<f64>().map(f64::to_bits));
            }
        }
    }
}
