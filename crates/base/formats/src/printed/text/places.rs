//! Where the script is, by the words and brackets of a line of text.

use super::super::NAME_BYTES_MAX;
use super::parts::DECORATION;
use super::words::{WORDS_MAX, Words};
use crate::printed::lexical::named::LineValues;
use crate::printed::lexical::names::{self, Meaning, Place, is_training};
use crate::printed::lexical::tokens::{Decimals, Token};

/// Words of a line that only says where the script is.
const OF_PLACES: [&str; 24] = [
    "epoch", "ep", "step", "iter", "iteration", "round", "batch", "batches", "train", "training", "starting",
    "start", "begin", "learning", "of", "time", "per-step", "in", "sec", "secs", "seconds", "took",
    "running", "run",
];
/// What is between the name of a value and where it was measured: `loss at step 100: 0.5`.
const BEFORE_PLACES: [&str; 4] = ["at", "after", "for", "in"];
/// Names that are measures where a place follows them: `Cost after iteration 100: 0.5`.
const MEASURED_AT_PLACES: [&str; 5] = ["cost", "error", "energy", "objective", "likelihood"];
/// So many words and signs before it are looked at.
const BEFORE_PLACES_MAX: usize = 16;
/// A name in a line of names with numbers has so many words at most.
const PAIR_WORDS_MAX: usize = 2;
/// What is before such names has so many.
const LABEL_WORDS_MAX: usize = 3;
/// So many words and signs behind its step are looked at for what says that an evaluation begins.
const HEAD_MAX: usize = 4;

/// The name of a value behind where it was measured: `Training loss (for one batch) at step 200: 1.25`, `Loss after epoch 3: 0.5`.
pub(super) fn name_before_place(tokens: &[Token<'_>], at: usize, decimals: Decimals) -> Option<String> {
    use Token::{Number, Other, Word};
    let [before @ .., Word(link), Word(place), Number { .. }, Other(':' | '=')] = &tokens[..at] else {
        return None;
    };
    if !BEFORE_PLACES.contains(link)
        || !matches!(names::place_of(&[*place], place), Some(Place::Step | Place::Epoch))
    {
        return None;
    }
    let before = &before[before.len().saturating_sub(BEFORE_PLACES_MAX)..];
    let before = match before {
        [.., Other(')')] => &before[..before.iter().rposition(|token| *token == Other('('))?],
        _ => before,
    };
    let begin = before.iter().rposition(|token| token.word().is_none()).map_or(0, |at| at + 1);
    let words: Vec<&str> =
        before[begin..].iter().rev().take(WORDS_MAX).rev().filter_map(Token::word).collect();
    let (name, _) = names::joined(&words, false)?;
    // `Valid MR at step 200: 150.25`
    let is_of_part =
        words.len() > 1 && names::part_of_data(words[0]).is_some() && decimals == Decimals::Point;
    let is_measure =
        names::meaning_of(&name) == Meaning::Measure || MEASURED_AT_PLACES.contains(&&*name) || is_of_part;
    (is_measure && name.len() <= NAME_BYTES_MAX).then_some(name)
}

/// `[3][190/794]`, `[3/30][190/794]`: the epoch before the place in it.
pub(super) fn is_epoch_in_brackets(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::{Number, Other};
    let is_begin = at > 0 && tokens[at - 1] == Other('[');
    let is_place = |at: usize| {
        matches!(tokens.get(at..at + 4), Some([Other(']'), Other('['), Number { .. }, Other('/')]))
    };
    let of_epochs = matches!(tokens.get(at + 1..at + 3), Some([Other('/'), Number { .. }]));
    // `Step/Epoch [20/1][20/1234]`
    if at > 1 && tokens[at - 2] == Token::Word("step/epoch") {
        return false;
    }
    is_begin && if of_epochs { !is_named_epoch(tokens, at) && is_place(at + 3) } else { is_place(at + 1) }
}

/// Whether the count in brackets at this place is right behind the epoch, and so of it: `Epoch: [0] [ 20/1000]`,
/// `Train Epoch: 2 [640/60000 (1%)]`.
pub(super) fn is_behind_epoch(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::{Number, Other};
    let [before @ .., Other('[')] = &tokens[..at] else { return false };
    let before = before.strip_suffix(&[Other(']')]).unwrap_or(before);
    let number = match before {
        [.., Number { .. }, Other('/'), Number { .. }] => before.len() - 3,
        [.., Number { .. }] => before.len() - 1,
        _ => return false,
    };
    let is_epoch = |words: Words<'_>| {
        names::place_of(&words.words, &words.name) == Some(Place::Epoch) || is_training(&words.name)
    };
    is_epoch_in_brackets(tokens, number) || Words::before(tokens, number).is_some_and(is_epoch)
}

/// Whether the fraction at this place is the one of the epoch before it, and the line says no more: `Epoch 1 (1/200):`, `Epoch 0 (1/200):`.
pub(super) fn is_epoch_of_all(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::{Number, Other, Word};
    let [Word(_), Number { whole: Some(epoch), .. }, Other('(')] = &tokens[..at] else { return false };
    match &tokens[at..] {
        [Number { whole: Some(done), .. }, Other('/'), Number { .. }, Other(')'), rest @ ..] => {
            matches!(rest, [] | [Other(':')]) && (done == epoch || *done == epoch.saturating_add(1))
        }
        _ => false,
    }
}

/// Whether the number at this place says where the script is or was.
pub(super) fn is_place_of(tokens: &[Token<'_>], at: usize) -> bool {
    let names_place = |words: Words<'_>| names::place_of(&words.words, &words.name).is_some();
    tokens[at].is_number() && Words::before(tokens, at).is_some_and(names_place)
}

/// Whether a line says where the script is and nothing else: `-- Epoch 3`, `=== epoch 4 of 6 ===`, `Epoch 0/24`,
/// `[step=10/5000]`, `[epoch=0/1][batch=10/100]:`.
pub(super) fn is_place(named: &LineValues, tokens: &[Token<'_>]) -> bool {
    let says_no_more = |token: &Token<'_>| match token {
        Token::Word(word) => OF_PLACES.contains(word) || names::place_of(&[*word], word) == Some(Place::Step),
        Token::Number { .. } => true,
        Token::Grouped(_) => false,
        // A clock or a number with a unit.
        Token::Other(sign) => DECORATION.contains(*sign) || !sign.is_ascii() || sign.is_ascii_digit(),
    };
    let is_step = |token: &Token<'_>| matches!(token, Token::Word(word) if names::place_of(&[*word], word) == Some(Place::Step));
    let counts_steps = named.position.is_some() && tokens.iter().any(is_step);
    let says_place =
        named.step.is_some() || named.epoch.is_some() || named.early_step.is_some() || counts_steps;
    // A bar of Rich without values: `Epoch 0/2 ━━━━ 10/10 0:00:01 • 0:00:00`.
    let is_drawn = named.epoch.is_some() && named.position.is_some() && named.is_drawn;
    if shows_vector(tokens) {
        return false;
    }
    is_drawn
        || (says_place && named.values.is_empty() && is_place_in_brackets(tokens))
        || heads_evaluation(named, tokens)
        || ends_with_place(tokens)
        || lists_pairs(named, tokens)
        || (says_place && tokens.iter().all(says_no_more))
}

/// Whether brackets around all of a line begin with the step or the epoch: `[step=10/1000,epoch=1,eta=2 hours]`.
fn is_place_in_brackets(tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other, Word};
    let [Other('['), Word(first), Other('=' | ':'), Number { .. }, inside @ .., Other(']')] = tokens else {
        return false;
    };
    let is_place = matches!(names::place_of(&[*first], first), Some(Place::Step | Place::Epoch));
    is_place && !inside.iter().any(|token| matches!(token, Other('[' | ']')))
}

/// Whether a line shows numbers as R prints them, behind the index of the first: `[1] 0.9134`.
fn shows_vector(tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other};
    let [Other('['), Number { .. }, Other(']'), numbers @ ..] = tokens else { return false };
    !numbers.is_empty() && numbers.iter().all(|token| token.is_number())
}

/// Whether the word for an epoch is before the brackets: `Epoch [3/30]`.
fn is_named_epoch(tokens: &[Token<'_>], at: usize) -> bool {
    let word = at.checked_sub(2).and_then(|at| tokens[at].word());
    word.is_some_and(|word| names::place_of(&[word], word) == Some(Place::Epoch))
}

/// Whether a line has a step and nothing but names with numbers: `Updates 10, num timesteps 880, FPS 520`.
fn lists_pairs(named: &LineValues, tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other, Word};
    let is_separator = |token: &Token<'_>| matches!(token, Other(',' | '|' | ';'));
    let is_pair = |part: &[Token<'_>]| match part {
        [words @ .., Number { .. }] => {
            let words = words.strip_suffix(&[Other(':')]).unwrap_or(words);
            (1..=PAIR_WORDS_MAX).contains(&words.len())
                && words.iter().all(|token| matches!(token, Word(word) if !names::is_linking(word)))
        }
        _ => false,
    };
    let is_label = |part: &[Token<'_>]| {
        let is_other =
            |token: &Token<'_>| matches!(token, Word(word) if names::meaning_of(word) == Meaning::Any);
        (1..=LABEL_WORDS_MAX).contains(&part.len()) && part.iter().all(is_other)
    };
    let mut parts = tokens.split(is_separator).peekable();
    // `Recent Stats | t_env: 10048 | Episode: 190`
    parts.next_if(|part| is_label(part));
    let (mut pairs, mut others) = (0, 0);
    parts.for_each(|part| if is_pair(part) { pairs += 1 } else { others += 1 });
    named.step.is_some() && others == 0 && pairs > 1
}

/// Whether a line has a count of steps with their total: `Iteration [10/100000], D/latent_real: [0.75]`.
pub(super) fn names_count_of_steps(tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other, Word};
    let is_step = |word: &str| names::place_of(&[word], word) == Some(Place::Step);
    tokens.windows(5).any(|window| match window {
        [Word(word), Number { .. }, Other('/'), Number { .. }, _]
        | [Word(word), Other(':' | '['), Number { .. }, Other('/'), Number { .. }] => is_step(word),
        _ => false,
    })
}

/// `evaluating`, `Testing`
fn is_evaluating(token: &Token<'_>) -> bool {
    token
        .word()
        .is_some_and(|word| names::whose_line(word).is_some() || matches!(word, "evaluating" | "validating"))
}

/// Whether a line says that an evaluation begins and ends with where: `Evaluating the model on the dev set after epoch 3:`.
fn ends_with_place(tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other, Word};
    let [before @ .., Word(link), Word(place), Number { whole: Some(_), .. }, Other(':')] = tokens else {
        return false;
    };
    let is_place = matches!(names::place_of(&[*place], place), Some(Place::Step | Place::Epoch));
    BEFORE_PLACES.contains(link) && is_place && before.iter().any(is_evaluating)
}

/// Whether a line says that an evaluation begins at a step: `Iteration 500, Testing net (#0)`.
fn heads_evaluation(named: &LineValues, tokens: &[Token<'_>]) -> bool {
    let [Token::Word(first), Token::Number { whole: Some(_), .. }, rest @ ..] = tokens else { return false };
    let is_step = names::place_of(&[*first], first) == Some(Place::Step);
    is_step && named.step.is_some() && rest.iter().take(HEAD_MAX).any(is_evaluating)
}
