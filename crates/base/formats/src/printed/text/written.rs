//! How the numbers of a line of text are written: percentages, fractions, lists, numbers that change.

use crate::printed::lexical::tokens::{Decimals, Token, share_of};

/// Words behind a number that make it a time.
pub(super) const TIME_UNITS: [&str; 10] =
    ["day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "secs", "ms"];

/// A number as it is written.
pub(super) struct Written {
    pub value: f64,
    pub whole: Option<u64>,
    /// What it is of 1, if it is written as a percentage.
    pub share: Option<f64>,
    /// The total behind it.
    pub of: Option<u64>,
    pub decimals: Decimals,
    /// It is the first of three or more: `3500/3250/64`.
    pub is_listed: bool,
}

/// The value behind an arrow: `learning rate 0.0002 -> 0.0001`.
pub(super) fn changed_to(tokens: &[Token<'_>], at: usize) -> Option<Written> {
    use Token::{Number, Other};
    let number = match tokens.get(at + 1..)? {
        [Other('-'), Other('>'), number @ Number { .. }, ..] | [Other('→'), number @ Number { .. }, ..] => {
            number
        }
        _ => return None,
    };
    let Number { value, whole, share, decimals } = *number else { return None };
    Some(Written { value, whole, share, of: None, decimals, is_listed: false })
}

/// The number with decimals right behind a whole one, which is the step then.
pub(super) fn value_at_step(tokens: &[Token<'_>], at: usize) -> Option<f64> {
    use Token::{Number, Other};
    let Number { whole: Some(_), share: None, decimals: Decimals::None, .. } = tokens[at] else {
        return None;
    };
    match tokens.get(at + 1..)? {
        [Number { value, decimals: Decimals::Point, .. }, ..]
        | [Other(':'), Number { value, decimals: Decimals::Point, .. }, ..] => Some(*value),
        _ => None,
    }
}

/// The values of a list in brackets that begins with this number, if it has two or more: `dice [0.8, 0.9]`.
pub(super) fn list_at(tokens: &[Token<'_>], at: usize) -> Option<Vec<f64>> {
    use Token::{Number, Other};
    let mut values = Vec::new();
    let mut rest = tokens.get(at.checked_sub(1)?..)?.strip_prefix(&[Other('[')])?;
    while let [Number { value, .. }, sign @ Other(',' | ']'), behind @ ..] = rest {
        values.push(*value);
        if *sign == Other(']') {
            return Some(values).filter(|values| values.len() > 1);
        }
        rest = behind;
    }
    None
}

/// Whether the number is one of a time: `time=5 minutes and 3 seconds`.
pub(super) fn is_time(tokens: &[Token<'_>], at: usize) -> bool {
    let is_unit = matches!(tokens.get(at + 1), Some(Token::Word(word)) if TIME_UNITS.contains(word));
    is_unit && !matches!(tokens.get(at + 2), Some(Token::Number { .. } | Token::Other('=' | ':')))
}

/// What a percentage is as a fraction, exactly as its digits say: `71.5 %`.
pub(super) fn share_in_percent(value: f64) -> Option<f64> {
    share_of(&format!("{value}%"))
}

/// A number that is the first part of `640/60000`.
pub(super) fn fraction_of(tokens: &[Token<'_>], at: usize) -> Option<u64> {
    match (tokens.get(at + 1), tokens.get(at + 2)) {
        (Some(Token::Other('/')), Some(Token::Number { whole, .. })) => *whole,
        _ => None,
    }
}

/// What a fraction is, as it is written behind it, `2461/10042 = 0.245`, and whether that has a plain number.
pub(super) fn result_of_fraction(tokens: &[Token<'_>], at: usize) -> Option<(f64, bool)> {
    use Token::{Number, Other};
    match tokens.get(at..)? {
        [
            Number { whole: Some(_), .. },
            Other('/'),
            Number { whole: Some(_), .. },
            Other('='),
            Number { value, share, decimals, .. },
            ..,
        ] if share.is_some() || *decimals == Decimals::Point => {
            Some((share.unwrap_or(*value), share.is_none()))
        }
        _ => None,
    }
}

/// The number in brackets right behind a value: `0.5 (0.25)`.
pub(super) fn mean_behind(tokens: &[Token<'_>], at: usize) -> Option<f64> {
    use Token::{Number, Other};
    match tokens.get(at + 1..)? {
        [Other('('), Number { value, share: None, decimals: Decimals::Point, .. }, Other(')'), ..] => {
            Some(*value)
        }
        _ => None,
    }
}

/// The number behind a slash: `1.5/1.0`.
pub(super) fn second_of(tokens: &[Token<'_>], at: usize) -> Option<f64> {
    match tokens.get(at + 1..)? {
        [Token::Other('/'), Token::Number { value, .. }, ..] => Some(*value),
        _ => None,
    }
}

/// The highest of three numbers or more that begin here: `At iteration 92/100/101`.
pub(super) fn highest_listed(tokens: &[Token<'_>], at: usize) -> Option<u64> {
    use Token::{Number, Other};
    match tokens.get(at..)? {
        [
            Number { whole: Some(first), .. },
            Other('/'),
            Number { whole: Some(second), .. },
            Other('/'),
            Number { whole: Some(third), .. },
            ..,
        ] => Some(*first.max(second).max(third)),
        _ => None,
    }
}

/// Whether a fraction is the one that a percentage shows: `Acc: 45.1% (451/1000)`.
pub(super) fn is_behind_share(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(&tokens[..at], [.., Token::Number { share: Some(_), .. }, Token::Other('(')])
}

/// `4 of 6`.
pub(super) fn is_one_of_so_many(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(tokens.get(at + 1..at + 3), Some([Token::Word("of"), Token::Number { whole: Some(_), .. }]))
}
