//! Commas between the digits of a number: of thousands in `5,001`, of decimals in `0,35`, of a list in `1,2,3`.
//!
//! A line decides by its other numbers: `0,35` behind the name of a measure has a decimal comma, `1,234.5` and `0.5`
//! have a point. Where a line shows nothing, what the output showed before decides; until then such a number is a count
//! at most, and no value. No number is cut at its comma.

use std::borrow::Cow;

use super::names::{self, Meaning};
use super::tokens::{
    Decimals, Token, end_of_commas, end_of_groups, is_group_sign, is_zero, number_of, share_of, tokens_of,
};

/// What a comma between digits means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) enum Comma {
    Decimal,
    Thousands,
}

/// What the lines of one output have shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::printed) struct SeenCommas {
    decimal: bool,
    thousands: bool,
}

impl SeenCommas {
    /// A line with values showed this.
    pub fn see(&mut self, shown: Comma) {
        self.decimal |= shown == Comma::Decimal;
        self.thousands |= shown == Comma::Thousands;
    }

    /// What a comma is, unless the lines contradict each other.
    pub fn comma(self) -> Option<Comma> {
        match (self.decimal, self.thousands) {
            (true, false) => Some(Comma::Decimal),
            (false, true) => Some(Comma::Thousands),
            _ => None,
        }
    }
}

/// What a number with commas looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `1,234.5`, `1,234,567`
    Thousands,
    /// `0,35`, `0,912`, `1,0e-3`, `91,21%`
    Decimal,
    /// `1,234`
    Either,
    /// `1,2,3`, `1,23.5`, `1,5ms`
    List,
}

/// Makes numbers of those with commas. What the line itself shows.
pub(in crate::printed) fn resolve(tokens: &mut [Token<'_>], known: Option<Comma>) -> Option<Comma> {
    let (decimal, thousands) = shown(tokens);
    let shown = match (decimal, thousands) {
        (true, false) => Some(Comma::Decimal),
        (false, true) => Some(Comma::Thousands),
        _ => None,
    };
    let comma = shown.or(known.filter(|_| !decimal));
    for token in tokens {
        if let Token::Grouped(text) = *token {
            *token = number(text, comma, decimal);
        }
    }
    shown
}

/// Whether what a line says depends on the lines before it.
pub(in crate::printed) fn depends_on_others(line: &str) -> bool {
    if !has_comma_between_digits(line) {
        return false;
    }
    let small = line.to_lowercase();
    let tokens = tokens_of(&small);
    let is_open = |token: &Token<'_>| matches!(token, Token::Grouped(text) if matches!(shape_of(text), Shape::Either | Shape::Decimal));
    shown(&tokens) == (false, false) && tokens.iter().any(is_open)
}

/// How many values of measures a line has whose comma nothing in it explains: `loss 1,234`, `loss 1.234,5`. A count has
/// its total behind it: `9,834/10,000`.
pub(in crate::printed) fn unclear_values(line: &str) -> u64 {
    if !has_comma_between_digits(line) {
        return 0;
    }
    let small = line.to_lowercase();
    let tokens = tokens_of(&small);
    let mut read = tokens.clone();
    resolve(&mut read, None);
    let is_unclear = |at: &usize| {
        let is_open = matches!(tokens[*at], Token::Grouped(text) if shape_of(text) != Shape::List);
        let is_read = matches!(read[*at], Token::Number { decimals, .. } if decimals != Decimals::Unclear);
        let is_measure =
            name_before(&tokens, *at).is_some_and(|name| names::meaning_of(name) == Meaning::Measure);
        is_open && !is_read && is_measure && tokens.get(at + 1) != Some(&Token::Other('/'))
    };
    (0..tokens.len()).filter(is_unclear).count() as u64
}

fn has_comma_between_digits(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_between = |at: usize| {
        at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    memchr::memchr_iter(b',', bytes).any(is_between)
}

/// The word before a number, or before the sign that assigns it.
fn name_before<'l>(tokens: &[Token<'l>], at: usize) -> Option<&'l str> {
    let before = |back: usize| at.checked_sub(back).map(|at| tokens[at]);
    let is_assigned = matches!(before(1), Some(Token::Other('=' | ':')));
    match before(1 + usize::from(is_assigned)) {
        Some(Token::Word(name)) => Some(name),
        _ => None,
    }
}

/// A text that is a number with a decimal comma or groups of digits for sure, such as `0,35`, `1,234.5` and `1'234.5`, with
/// a point and without groups; any other as it is.
pub(in crate::printed) fn pointed(text: &str) -> Cow<'_, str> {
    let digits = text.trim_start_matches(['+', '-']);
    if end_of_groups(digits) == Some(digits.len()) {
        return Cow::Owned(without_groups(text));
    }
    match end_of_commas(digits).filter(|end| *end == digits.len()).map(|_| shape_of(digits)) {
        Some(Shape::Decimal) => Cow::Owned(with_point(text)),
        Some(Shape::Thousands) => Cow::Owned(without_commas(text)),
        _ => Cow::Borrowed(text),
    }
}

/// Whether a line has a decimal comma for sure, and whether it has a point or commas of thousands.
fn shown(tokens: &[Token<'_>]) -> (bool, bool) {
    let decimal = (0..tokens.len()).any(|at| is_decimal(tokens, at));
    let is_other = |token: &Token<'_>| match token {
        Token::Number { decimals, .. } => *decimals == Decimals::Point,
        Token::Grouped(text) => shape_of(text) == Shape::Thousands,
        _ => false,
    };
    (decimal, tokens.iter().any(is_other))
}

/// Whether the number at this place shows that a comma is one of decimals: it has a percent sign, has a power, or is
/// the value of a measure.
fn is_decimal(tokens: &[Token<'_>], at: usize) -> bool {
    let Token::Grouped(text) = tokens[at] else { return false };
    if shape_of(text) != Shape::Decimal || text.contains(['.', ' ']) {
        return false;
    }
    let is_share = text.ends_with('%') || tokens.get(at + 1) == Some(&Token::Other('%'));
    let is_measure = name_before(tokens, at).is_some_and(|name| {
        name == "rate" || names::is_share(name) || names::meaning_of(name) != Meaning::Any
    });
    is_share || is_measure || text.contains('e')
}

fn number(text: &str, comma: Option<Comma>, shows_decimal: bool) -> Token<'_> {
    let text = text.trim_end_matches('.');
    let unread = Token::Other('0');
    if text.contains(is_group_sign) {
        let digits = without_groups(text);
        let decimals = match digits.contains('.') {
            true if text.contains(',') => Decimals::Comma,
            true => Decimals::Point,
            false => Decimals::None,
        };
        return number_of(&digits).map_or(unread, |value| Token::Number {
            value,
            whole: digits.parse().ok(),
            share: share_of(&digits),
            decimals,
        });
    }
    let grouped = |decimals| {
        let digits = without_commas(text);
        number_of(&digits).map_or(unread, |value| Token::Number {
            value,
            whole: digits.parse().ok(),
            share: share_of(&digits),
            decimals,
        })
    };
    // As a count it has no decimals.
    let decimal = |whole| {
        let digits = with_point(text);
        let share = share_of(&digits);
        number_of(&digits).map_or(unread, |value| Token::Number {
            value,
            whole,
            share,
            decimals: Decimals::Comma,
        })
    };
    match (shape_of(text), comma) {
        (Shape::Thousands, _) => grouped(Decimals::None),
        (Shape::Decimal, Some(Comma::Decimal)) => decimal(None),
        (Shape::Decimal, _) if shows_decimal => decimal(None),
        (Shape::Either, Some(Comma::Decimal)) => decimal(without_commas(text).parse().ok()),
        (Shape::Either, Some(Comma::Thousands)) => grouped(Decimals::None),
        (Shape::Either, None) => grouped(Decimals::Unclear),
        (Shape::Decimal | Shape::List, _) => unread,
    }
}

fn without_commas(text: &str) -> String {
    text.chars().filter(|letter| *letter != ',').collect()
}

/// `1.234,5` and `1 234,5` as `1234.5`.
fn with_point(text: &str) -> String {
    text.chars()
        .filter(|letter| !matches!(letter, '.' | ' '))
        .map(|letter| if letter == ',' { '.' } else { letter })
        .collect()
}

/// `1'234.5` and `1'234,5` as `1234.5`.
fn without_groups(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !is_group_sign(*letter)).collect();
    text.replace(',', ".")
}

fn shape_of(text: &str) -> Shape {
    let text = text.trim_start_matches(['+', '-']).trim_end_matches('.');
    let mut groups = text.split(',');
    let first = groups.next().unwrap_or_default();
    let (mut commas, mut all_three, mut last) = (0u32, true, "");
    for group in groups {
        all_three &= commas == 0 || last.len() == 3;
        (commas, last) = (commas.saturating_add(1), group);
    }
    let digits = last.bytes().take_while(u8::is_ascii_digit).count();
    let tail = last[digits..].strip_suffix('%').unwrap_or(&last[digits..]);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_group = first.len() <= 3 && is_digits(first) && !is_zero(first) && all_three && digits == 3;
    let is_fraction = tail.strip_prefix('.').is_some_and(is_digits);
    let is_power =
        tail.strip_prefix('e').is_some_and(|power| is_digits(power.trim_start_matches(['+', '-'])));
    match (is_group, commas) {
        (true, _) if is_fraction => Shape::Thousands,
        (true, 1) if tail.is_empty() => Shape::Either,
        (true, _) if tail.is_empty() => Shape::Thousands,
        (_, 1) if tail.is_empty() || is_power => Shape::Decimal,
        _ => Shape::List,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what a number with commas may be by its form alone, where it ends, and that two numbers behind one
    /// another are no such number.
    #[test]
    fn forms_of_numbers_with_commas() {
        for (text, shape) in [
            ("1,234.5", Shape::Thousands),
            ("1,234,567", Shape::Thousands),
            ("12,345,678.25", Shape::Thousands),
            ("1,234", Shape::Either),
            ("-5,001.", Shape::Either),
            ("0,35", Shape::Decimal),
            ("-0,912", Shape::Decimal),
            ("1,0e-3", Shape::Decimal),
            ("91,21%", Shape::Decimal),
            ("1.234,5", Shape::Decimal),
            ("1,2,3", Shape::List),
            ("1,23.5", Shape::List),
            ("1,5ms", Shape::List),
            ("0,123,456", Shape::List),
        ] {
            assert_eq!(shape_of(text), shape, "{text}");
            let digits = text.trim_start_matches('-');
            assert_eq!(end_of_commas(digits), Some(digits.len()), "{text}");
        }
        for text in ["5", "0.5", "5, 6", "0.123,0.456", "0.123,4", "5,acc", ",5", ""] {
            assert_eq!(end_of_commas(text), None, "{text}");
        }
        for (text, expected) in [
            ("0,35", "0.35"),
            ("1.234,5", "1234.5"),
            ("-91,5%", "-91.5%"),
            ("1,234", "1,234"),
            ("0.5", "0.5"),
        ] {
            assert_eq!(pointed(text), expected, "{text}");
        }
    }

    /// Proves which lines are read by what the lines before showed.
    #[test]
    fn lines_that_depend_on_others() {
        for line in ["step 5 loss 1,234", "step 5 workers 0,1"] {
            assert!(depends_on_others(line), "{line}");
        }
        for line in ["step 5 loss 1,234 acc 0.5", "loss 0,35 mae 1,234", "10:02:03,123 x", "1,2,3"] {
            assert!(!depends_on_others(line), "{line}");
        }
    }
}
