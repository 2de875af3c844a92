//! Which of several of one kind a line is about: `Fold 1 accuracy: 0.9`.

use super::parts::DECORATION;
use crate::printed::NAME_BYTES_MAX;
use crate::printed::lexical::named::LineValues;
use crate::printed::lexical::names;
use crate::printed::lexical::tokens::{Decimals, Token};

/// The kind that a line may name anywhere.
const FOLD: &str = "fold";
/// Kinds of which one training has several, each with values of the same names; a line begins with them.
/// What counts trainings, such as a seed, a trial or a run, is none: their values have one name.
const KINDS: [&str; 5] = ["agent", "class", "client", "split", "task"];
/// From this number on values have plain names.
const NUMBERS_MAX: u64 = 100;

/// Takes the words and signs that name a fold out of those of a line, `(fold 1)` of `Accuracy (fold 1): 0.9`, and
/// returns its number.
pub(super) fn take_fold(tokens: &mut Vec<Token<'_>>) -> Option<u64> {
    use Token::{Number, Other, Word};
    let at = tokens.iter().position(|token| *token == Word(FOLD))?;
    let (number, length) = number_behind(&tokens[at..])?;
    let (mut begin, mut end) = (at, at + length);
    if let [Other('/') | Word("of"), Number { whole: Some(_), .. }, ..] = tokens[end..] {
        end += 2;
    }
    if let Some(Word(word)) = begin.checked_sub(1).map(|before| tokens[before])
        && names::is_linking(word)
    {
        begin -= 1;
    }
    let before = begin.checked_sub(1).map(|before| tokens[before]);
    if let (Some(Other('(' | '[')), Some(Other(')' | ']'))) = (before, tokens.get(end)) {
        (begin, end) = (begin - 1, end + 1);
    }
    let is_sign = |token: &&Token<'_>| matches!(token, Other(':' | ',' | '-' | '|'));
    if begin == 0 {
        end += tokens[end..].iter().take_while(is_sign).count();
    }
    tokens.drain(begin..end);
    Some(number)
}

/// Gives all values what their line is about, `fold_1/accuracy`, as tables that have it in a column do. The number of a
/// kind is left out: `Task: 0 | loss 0.5`.
pub(super) fn name_by_group(named: &mut LineValues, tokens: &[Token<'_>], fold: Option<u64>) {
    if named.values.is_empty() {
        return;
    }
    let group = fold.map(|number| (FOLD, number)).or_else(|| group_of(tokens));
    let Some((kind, number)) = group else { return };
    // Means have places among the values.
    let has_means = named.beside.is_some();
    named.values.retain(|(name, _)| name != kind || has_means);
    if number >= NUMBERS_MAX {
        return;
    }
    let group = format!("{kind}_{number}");
    for (name, _) in &mut named.values {
        if name.len() + group.len() < NAME_BYTES_MAX {
            *name = format!("{group}/{name}");
        }
    }
}

/// The kind that a line begins with, and its number.
fn group_of<'t>(tokens: &[Token<'t>]) -> Option<(&'t str, u64)> {
    let is_decoration =
        |token: &&Token<'_>| matches!(token, Token::Other(sign) if DECORATION.contains(*sign));
    let begin = tokens.iter().take_while(is_decoration).count();
    let Token::Word(kind) = tokens.get(begin)? else { return None };
    let (number, _) = Some(&tokens[begin..]).filter(|_| KINDS.contains(kind)).and_then(number_behind)?;
    Some((*kind, number))
}

/// The number behind a word, and how many words and signs both are.
fn number_behind(tokens: &[Token<'_>]) -> Option<(u64, usize)> {
    use Token::{Number, Other};
    let (number, length) = match tokens {
        [_, Other(':' | '=' | '#'), number, ..] => (*number, 3),
        [_, number, ..] => (*number, 2),
        _ => return None,
    };
    match number {
        Number { whole: Some(number), share: None, decimals: Decimals::None, .. } => Some((number, length)),
        _ => None,
    }
}
