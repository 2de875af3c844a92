//! Results whose names are not right before their number: `Accuracy on test data: 0.84`,
//! `0.84 = Validation score (accuracy)`, `Final Train: 29.11`.

use super::super::NAME_BYTES_MAX;
use super::words::{Line, PHRASE_WORDS_MAX, WORDS_MAX};
use crate::printed::lexical::named::LineValues;
use crate::printed::lexical::names::{self, Meaning, Place};
use crate::printed::lexical::tokens::{Decimals, Token};

/// Words that say which result of a part of the data this is: `Highest Train: 29.11`.
const OF_RESULTS: [&str; 5] = ["best", "final", "highest", "last", "lowest"];
/// Words behind the part of the data that a measure is of: `accuracy on test data`.
const BEHIND_PARTS: [&str; 5] = ["data", "dataset", "set", "sets", "split"];

/// The name of the number at this place, if the words before it name a result of a part of the data.
pub(super) fn name_of_result(line: &Line<'_>, at: usize) -> Option<String> {
    let Token::Number { decimals, share, .. } = line.tokens[at] else { return None };
    let behind = line.tokens.get(at + 1);
    let is_end = !matches!(behind, Some(Token::Word(_) | Token::Other('/' | ':' | '=')));
    let may_be_result = is_end && (decimals == Decimals::Point || share.is_some());
    let before = Some(&line.tokens[..at]).filter(|_| may_be_result)?;
    let name = name_on_part(before).or_else(|| name_at_end(before)).or_else(|| best_of_part(line, before));
    name.filter(|name| name.len() <= NAME_BYTES_MAX)
}

/// The words right before the sign at the end.
fn words_before_sign<'t>(before: &'t [Token<'_>]) -> Option<Vec<&'t str>> {
    let [words @ .., Token::Other(':' | '=')] = before else { return None };
    let begin = words.iter().rposition(|token| token.word().is_none()).map_or(0, |at| at + 1);
    Some(words[begin.max(words.len().saturating_sub(WORDS_MAX))..].iter().filter_map(Token::word).collect())
}

/// The name that all of some words make, if it is one of a measure.
fn measure_of(words: &[&str]) -> Option<String> {
    names::joined(words, false)
        .filter(|(name, left)| *left == 0 && names::meaning_of(name) == Meaning::Measure)
        .map(|(name, _)| name)
}

/// `Accuracy on test data: 0.84`, `ROC AUC on the validation set: 0.91`
fn name_on_part(before: &[Token<'_>]) -> Option<String> {
    let words = words_before_sign(before)?;
    let link = words.iter().position(|word| *word == "on")?;
    let (measure, behind) = (&words[..link], &words[link + 1..]);
    let behind = behind.strip_prefix(&["the"]).unwrap_or(behind);
    let (part, data) = behind.split_first()?;
    let part = names::part_of_data(part)?.unwrap_or("train");
    let is_part = matches!(data, [] | [_]) && data.iter().all(|word| BEHIND_PARTS.contains(word));
    measure_of(measure).filter(|_| is_part).map(|name| names::prefixed(part, &name))
}

/// `Loss for final step: 0.48`: the step is the last one.
fn name_at_end(before: &[Token<'_>]) -> Option<String> {
    let words = words_before_sign(before)?;
    let [measure @ .., "for" | "at" | "after", "final" | "last", place] = &words[..] else { return None };
    let is_place = matches!(names::place_of(&[*place], place), Some(Place::Step | Place::Epoch));
    measure_of(measure).filter(|_| is_place)
}

/// `Highest Train: 29.11`, `bestTest = 0.28` alone in a line.
fn best_of_part(line: &Line<'_>, before: &[Token<'_>]) -> Option<String> {
    use Token::{Other, Word};
    let name = match before {
        [Word(which), Word(part), Other(':' | '=')] => format!("{which} {part}"),
        [Word(word), Other(':' | '=')] => line.words_of_camel_case(word)?,
        _ => return None,
    };
    let (which, part) = name.split_once(' ')?;
    let is_result = OF_RESULTS.contains(&which) && names::part_of_data(part).is_some();
    is_result.then(|| format!("{which}_{part}"))
}

/// Takes the value of a line that begins with it and names it behind a sign: `0.84 = Validation score (accuracy)`. Whether it is such.
pub(super) fn read_value_before_name(tokens: &[Token<'_>], named: &mut LineValues) -> bool {
    use Token::{Number, Other};
    let [Number { value, decimals: Decimals::Point, .. }, Other('='), rest @ ..] = tokens else {
        return false;
    };
    let words: Vec<&str> = rest.iter().map_while(Token::word).take(PHRASE_WORDS_MAX + 1).collect();
    let is_explained = matches!(rest[words.len()..], [] | [Other('('), .., Other(')')]);
    let name = measure_of(&words).filter(|name| is_explained && name.len() <= NAME_BYTES_MAX);
    let Some(name) = name.filter(|_| words.len() <= PHRASE_WORDS_MAX) else { return false };
    named.take_value(name, *value, "");
    true
}
