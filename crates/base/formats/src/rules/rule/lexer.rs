//! From the text of a rule to its tokens.

use std::ops::Range;

use super::{Operator, Relation, RuleError};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Number(f64),
    /// A name as it is written, possibly a keyword.
    Word(String),
    /// A name in backticks.
    Quoted(String),
    Relation(Relation),
    Operator(Operator),
    Open,
    Close,
    End,
}

/// A token and its bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lexeme {
    pub token: Token,
    pub span: Range<usize>,
}

/// The name as a rule contains it: in backticks if it is not a plain word, or is one of the `keywords`.
pub(crate) fn quoted_name(name: &str, keywords: &[&str]) -> String {
    let starts = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let is_plain = starts && name.chars().all(is_of_name) && !is_keyword(name, keywords);
    if is_plain { name.to_owned() } else { format!("`{name}`") }
}

/// Words that cannot be the name of a metric without backticks.
pub(super) fn is_keyword(word: &str, keywords: &[&str]) -> bool {
    matches!(word, "and" | "or") || keywords.contains(&word)
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.')
}

/// The tokens of a rule, with [`Token::End`] after them.
pub(super) fn words(text: &str) -> Result<Vec<Lexeme>, RuleError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = word(&text[at..], first).map_err(|(message, length, hint)| RuleError {
            message,
            span: at..at + length,
            hint,
        })?;
        found.push(Lexeme { token, span: at..at + length });
        at += length;
    }
    found.push(Lexeme { token: Token::End, span: text.len()..text.len() });
    Ok(found)
}

type LexError = (String, usize, Option<String>);

fn word(rest: &str, first: char) -> Result<(Token, usize), LexError> {
    const SIGNS: &[(&str, Token)] = &[
        ("<=", Token::Relation(Relation::LessOrEqual)),
        (">=", Token::Relation(Relation::GreaterOrEqual)),
        ("==", Token::Relation(Relation::Equal)),
        ("!=", Token::Relation(Relation::NotEqual)),
        ("<", Token::Relation(Relation::Less)),
        (">", Token::Relation(Relation::Greater)),
        ("+", Token::Operator(Operator::Add)),
        ("-", Token::Operator(Operator::Subtract)),
        ("*", Token::Operator(Operator::Multiply)),
        ("/", Token::Operator(Operator::Divide)),
        ("(", Token::Open),
        (")", Token::Close),
    ];
    if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        return Ok((token.clone(), sign.len()));
    }
    if first == '`' {
        return quoted(rest);
    }
    if first.is_ascii_digit() || first == '.' {
        return number(rest);
    }
    let length = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
    if length > 0 {
        return Ok((Token::Word(rest[..length].to_owned()), length));
    }
    let hint = match first {
        '=' => Some("write `==`".to_owned()),
        '&' => Some("write `and`".to_owned()),
        '|' => Some("write `or`".to_owned()),
        '%' => Some("write a fraction as a number: `0.95`, not `95%`".to_owned()),
        '\'' | '"' => Some("put the name in backticks, or write it without quotes".to_owned()),
        _ => None,
    };
    Err((format!("holds `{first}`, which has no meaning in a rule"), first.len_utf8(), hint))
}

fn quoted(rest: &str) -> Result<(Token, usize), LexError> {
    let inner = &rest[1..];
    match inner.find('`') {
        Some(0) => Err(("names a metric without a name".into(), 2, None)),
        Some(length) => Ok((Token::Quoted(inner[..length].to_owned()), length + 2)),
        None => Err(("opens a backtick that is never closed".into(), rest.len(), None)),
    }
}

/// `1`, `0.95`, `.5`, `1e-3`.
fn number(rest: &str) -> Result<(Token, usize), LexError> {
    let digits = |text: &str| text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let mut length = digits(rest);
    let after = rest[length..].strip_prefix(['e', 'E']);
    if let Some(after) = after {
        let sign = usize::from(after.starts_with(['+', '-']));
        let exponent = after[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let text = &rest[..length];
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Token::Number(number), length)),
        _ => Err((format!("holds `{text}`, which is not a number"), length, None)),
    }
}
