//! Which lines of text show settings.

use crate::printed::lexical::names;
use crate::printed::lexical::tokens::Token;

/// So many words and signs of a line are looked at for what says that settings follow.
const SETTINGS_HEAD_MAX: usize = 8;

/// Whether the text before a dict says that it has settings: `best params {…}`, `config: {…}`, and where nothing in it
/// is measured `Best: 0.9 using {…}`.
pub(in crate::printed) fn heads_settings(before: &str, is_measured: bool) -> bool {
    let small = before.to_lowercase();
    let words = || {
        small.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
    };
    let last = words().next_back();
    let is_with = matches!(last, Some("using" | "with")) && !is_measured;
    is_with || words().rev().take(3).any(names::names_settings)
}

/// Whether a line of text shows settings: `Namespace(lr=0.1, …)`, `optimizer = dict(lr=0.1, …)`, `args: lr=0.1, …`,
/// `Best parameters: lr=0.1, …`.
pub(super) fn shows_settings(tokens: &[Token<'_>]) -> bool {
    use Token::{Other, Word};
    let is_head = |token: &Token<'_>| matches!(token, Word(word) if names::names_settings(word));
    let behind_brackets = match tokens {
        [Other('['), Word(_), Other(']'), rest @ ..] => rest,
        _ => tokens,
    };
    let at_begin = match behind_brackets {
        [first, Other('(' | ':' | '=' | '|'), third, ..] => is_head(first) && matches!(third, Word(_)),
        _ => false,
    };
    if let [Word(_), Other('='), Word("dict"), Other('('), ..] | [Word("dict"), Other('('), ..] = tokens {
        return true;
    }
    let first = &tokens[..tokens.len().min(SETTINGS_HEAD_MAX)];
    let is_best = |token: &Token<'_>| matches!(token, Word("best" | "optimal" | "chosen" | "selected"));
    at_begin
        || first
            .windows(2)
            .any(|pair| (is_best(&pair[0]) && is_head(&pair[1])) || pair == [Word("namespace"), Other('(')])
}

/// Whether a line shows an object by its class, with what it was made from: `Best pipeline: GradientBoostingClassifier(max_depth=7, …)`.
pub(super) fn shows_object(printed: &str) -> bool {
    let Some((before, inside)) = printed.split_once('(') else { return false };
    let class = before.rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or(before);
    let capitals = class.bytes().filter(u8::is_ascii_uppercase).count();
    let has_small = class.bytes().any(|letter| letter.is_ascii_lowercase());
    let first = inside.split(',').next().unwrap_or(inside);
    capitals > 1 && has_small && inside.contains('=') && !first.contains(' ')
}

/// Whether a line shows an object by its class, which is none of settings: `LogisticRegression(C=1.0, max_iter=500)`
/// says nothing of the training.
pub(super) fn is_estimator(printed: &str) -> bool {
    /// How classes of settings end.
    const OF_SETTINGS: [&str; 7] =
        ["Arguments", "Args", "Config", "Namespace", "Options", "Params", "Settings"];
    let Some((class, _)) = printed.split_once('(') else { return false };
    class.starts_with(|letter: char| letter.is_ascii_uppercase())
        && class.chars().all(char::is_alphanumeric)
        && !OF_SETTINGS.iter().any(|end| class.ends_with(end))
}
