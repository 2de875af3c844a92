//! What is behind the name of a secret in code and in logs and is not a secret: a name, a type, a number, a word for no value.

use std::ops::Range;

use crate::names::{self, Says};
use crate::value::places::is_path;
use crate::value::{
    generated, like_a_pass, like_a_password, like_a_password_or_key, like_a_token, like_credentials,
    mixed_case, present, random_beyond_words,
};

/// Behind the name of a secret so many bytes back its name is read.
const NAME_BYTES_MAX: usize = 64;
/// Marks behind a value that are not of it.
const CLOSERS: &[u8] = b",;)]}";
/// What `…_key` is called that opens nothing.
const OTHER_KEYS: [&str; 22] = [
    "cache", "monitor", "sort", "best", "primary", "foreign", "partition", "group", "row", "map", "metric",
    "index", "state", "batch", "input", "hash", "label", "image", "feature", "target", "layer", "join",
];
const TYPES: [&str; 21] = [
    "Optional", "Union", "SecretStr", "SecretBytes", "Secret", "Field", "str", "bytes", "String", "string",
    "List", "Dict", "Literal", "Annotated", "Any", "Callable", "Type", "Final", "ClassVar", "InitVar",
    "Sequence",
];
/// With what the paths of a program begin.
const ROOTS: [&str; 14] = [
    "self", "args", "cfg", "config", "conf", "settings", "os", "env", "opt", "opts", "params", "this",
    "kwargs", "hparams",
];

/// What a text about an option has behind its name.
const USAGE: [&str; 33] = [
    "text", "str", "string", "value", "flag", "flags", "option", "options", "argument", "arguments",
    "parameter", "only", "with", "when", "must", "instead", "requires", "without", "before", "after", "from",
    "that", "this", "which", "using", "cannot", "should", "will", "have", "been", "into", "given", "missing",
];

/// The part of a value in its place that is a secret; `None` where it is an ordinary value. What is between quotes is read as it is.
pub(crate) fn secret_part(bytes: &[u8], value: Range<usize>) -> Option<Range<usize>> {
    let before = before(bytes, value.start);
    let text = &bytes[value.clone()];
    if is_other_key(before.name, text) || is_about_a_secret(before.name, text) {
        return None;
    }
    match before.mark {
        Mark::Quote { is_argument } => {
            let is_name = is_argument && is_name_of_secret(text);
            (!is_name && !is_path(text)).then_some(value)
        }
        Mark::Assigned => bare(bytes, value, before.name),
        Mark::Other => (!is_fraction(text) && !is_of_usage(text)).then_some(value),
    }
}

/// Whether the value of a setting with this name is a secret.
pub(crate) fn is_secret_setting(name: &str, value: &[u8]) -> bool {
    let is_secret = match names::says(name) {
        Says::Secret => present(value) && !names::is_count(name, value) && !is_path(value),
        Says::Credentials => like_credentials(value) && !is_path(value),
        Says::Pass => like_a_password_or_key(value),
        Says::Either => random_beyond_words(value),
        Says::About => generated(value),
        Says::Nothing => false,
    };
    is_secret && !is_of_setting(name, value)
}

/// The same of an option or a parameter, which a person gives: what is shorter is one, too.
pub(crate) fn is_secret_option(name: &str, value: &[u8]) -> bool {
    let is_secret = match names::says(name) {
        Says::Pass => like_a_pass(value),
        Says::Either => like_a_token(value),
        _ => false,
    };
    is_secret && !is_of_setting(name, value) || is_secret_setting(name, value)
}

/// Whether a value is a number, or what a key of another kind has.
fn is_of_setting(name: &str, value: &[u8]) -> bool {
    is_fraction(value) || is_other_key(name, value)
}

/// `use_auth_token=main`: what a name says about a secret, unless the value is as secrets are.
fn is_about_a_secret(name: &str, value: &[u8]) -> bool {
    names::says(name) == Says::About && !generated(value) && !like_a_password(value)
}

/// `--api-key API_KEY]`, `the --api-key flag`, `--password ./pw.txt`: what a text about an option has behind its name, or a path.
fn is_of_usage(value: &[u8]) -> bool {
    let end = value.iter().rposition(|byte| !b",;:.)]}".contains(byte)).map_or(0, |last| last + 1);
    let value = &value[..end];
    let is_capital = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_';
    let is_metavar = value.iter().all(is_capital) && is_secret_word(value);
    is_metavar || is_path(value) || USAGE.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// What is directly before a value.
enum Mark {
    /// `is_argument`: of something that is called and does not wrap a secret.
    Quote {
        is_argument: bool,
    },
    Assigned,
    Other,
}

struct Before<'a> {
    mark: Mark,
    /// What the value is assigned to, or the option before it, or empty.
    name: &'a str,
}

fn before(bytes: &[u8], at: usize) -> Before<'_> {
    let head = &bytes[at.saturating_sub(NAME_BYTES_MAX)..at];
    let line = memchr::memrchr(b'\n', head).map_or(head, |newline| &head[newline + 1..]);
    let is_quoted = line.last().is_some_and(|byte| b"\"'`".contains(byte));
    let end = line.trim_ascii_end();
    let is_assigned = end.last().is_some_and(|byte| b"=:".contains(byte));
    let mark = match (is_quoted, is_assigned) {
        (true, _) => Mark::Quote { is_argument: is_argument(end) },
        (false, true) => Mark::Assigned,
        (false, false) => Mark::Other,
    };
    let is_between = |byte: &u8| !is_of_name(*byte);
    let name_end = line.iter().rposition(|byte| !is_between(byte)).map_or(0, |last| last + 1);
    let separator = &line[name_end..];
    let name_start = line[..name_end].iter().rposition(is_between).map_or(0, |last| last + 1);
    let name = std::str::from_utf8(&line[name_start..name_end]).unwrap_or_default();
    let is_near = separator.iter().any(|byte| b"=:".contains(byte)) || name.starts_with('-');
    Before { mark, name: if is_near && separator.len() <= 12 { name } else { "" } }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// Whether this ends as a call with a text does, and what is called does not make a secret of it.
fn is_argument(head: &[u8]) -> bool {
    let Some(call) = head.trim_ascii_end().strip_suffix(b"\"").or(head.strip_suffix(b"'")) else {
        return false;
    };
    let Some(callee) = call.trim_ascii_end().strip_suffix(b"(") else { return false };
    let start = callee.iter().rposition(|byte| !is_of_name(*byte)).map_or(0, |last| last + 1);
    let callee = callee[start..].to_ascii_lowercase();
    !callee.is_empty() && !callee.windows(6).any(|part| part == b"secret")
}

/// `cache_key=…`: a key of another kind, unless the value is as generated ones are.
fn is_other_key(name: &str, value: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let first =
        lower.trim_end_matches('s').strip_suffix("key").map(|first| first.trim_end_matches(['_', '-']));
    let kind = first.and_then(|first| first.rsplit(['_', '-', '.']).next());
    kind.is_some_and(|kind| OTHER_KEYS.contains(&kind))
        && !names::is_secret(name)
        && !(mixed_case(value) && generated(value))
}

/// Of a value without quotes what is secret, without the marks that are behind it.
fn bare(bytes: &[u8], value: Range<usize>, name: &str) -> Option<Range<usize>> {
    let text = &bytes[value.clone()];
    let end = value.start + text.iter().rposition(|byte| !CLOSERS.contains(byte)).map_or(0, |last| last + 1);
    let (mut start, mut name) = (value.start, name);
    loop {
        let is_mark = |byte: &u8| b",;".contains(byte);
        let piece_end = bytes[start..end].iter().position(is_mark).map_or(end, |mark| start + mark);
        let is_other = start > value.start && !name.is_empty() && !may_be_secret(name);
        if !is_other && !is_ordinary(&bytes[start..piece_end], &bytes[piece_end..], name) {
            return Some(start..end);
        }
        start = piece_end + 1;
        if start >= end {
            return None;
        }
        // What is assigned to the next name in the same run: `a=None,b=…`
        let next = &bytes[start..end];
        let mark = next.iter().take_while(|byte| !is_mark(byte)).position(|byte| b"=:".contains(byte));
        name = mark.and_then(|mark| std::str::from_utf8(&next[..mark]).ok()).unwrap_or_default();
        start += mark.map_or(0, |mark| mark + 1);
        if start >= end {
            return None;
        }
    }
}

fn may_be_secret(name: &str) -> bool {
    names::is_secret(name)
        || names::may_be_secret(name)
        || names::is_whole_name(name)
        || name.eq_ignore_ascii_case("pwd")
}

/// Whether a value without quotes is none of a secret. `behind`: what comes next.
fn is_ordinary(value: &[u8], behind: &[u8], name: &str) -> bool {
    let is_closed = behind.first().is_some_and(|byte| b",;()[]}".contains(byte));
    let is_vocabulary = name.to_ascii_lowercase().ends_with("tokens") && !names::is_secret(name);
    !present(value.strip_suffix(b":").unwrap_or(value))
        || is_variable(value, is_closed, name)
        || is_fraction(value)
        || is_named_type(value)
        || is_tag(value, behind)
        || value.starts_with(b"${")
        || is_constant(value) && (is_closed || is_secret_word(value))
        || is_dotted_name(value, is_closed)
        || is_called(value, behind)
        || is_path(value)
        || names::is_count(name, value)
        || is_vocabulary && is_word_with_digit(value)
}

/// A number with a point or an exponent.
fn is_fraction(value: &[u8]) -> bool {
    const BYTES_MAX: usize = 26;
    let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE%".contains(byte);
    let text = std::str::from_utf8(value.strip_suffix(b"%").unwrap_or(value)).unwrap_or_default();
    let has_point = text.contains('.') || text.find(['e', 'E']).is_some_and(|at| at <= 3);
    value.len() <= BYTES_MAX && value.iter().all(is_number) && has_point && text.parse::<f64>().is_ok()
}

fn is_named_type(value: &[u8]) -> bool {
    let last = value.rsplit(|byte| *byte == b'.').next().unwrap_or(value);
    TYPES.iter().any(|name| name.as_bytes() == last)
}

/// `!ENV` before what a loader of YAML replaces.
fn is_tag(value: &[u8], behind: &[u8]) -> bool {
    let word = value.strip_prefix(b"!").map(|rest| rest.strip_prefix(b"!").unwrap_or(rest));
    let is_word = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_alphabetic);
    word.is_some_and(is_word) && behind.first() == Some(&b' ')
}

/// `OPENAI_API_KEY`: the name of a variable.
fn is_constant(value: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        part.iter().all(u8::is_ascii_uppercase)
            || part.len() <= 3 && part.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    value.contains(&b'_')
        && value.first().is_some_and(u8::is_ascii_uppercase)
        && value.split(|byte| *byte == b'_').all(is_part)
}

fn is_secret_word(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(may_be_secret)
}

/// `args.api_key`: names with points between them. Where nothing behind it says that it is code the first or the last one must.
fn is_dotted_name(value: &[u8], is_closed: bool) -> bool {
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'.').collect();
    let [first, .., last] = parts[..] else { return false };
    let is_root = ROOTS.iter().any(|root| root.as_bytes() == first);
    parts.iter().all(|part| is_identifier(part)) && (is_closed || is_root || is_secret_word(last))
}

/// A letter, then letters and at most one digit, which ends a word.
fn is_identifier(part: &[u8]) -> bool {
    const BYTES_MAX: usize = 40;
    let is_word = |word: &[u8]| {
        let word = word.split_last().filter(|(last, _)| last.is_ascii_digit()).map_or(word, |(_, word)| word);
        word.iter().all(u8::is_ascii_alphabetic)
    };
    part.len() <= BYTES_MAX
        && part.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && part.split(|byte| *byte == b'_').all(is_word)
}

/// `get_key(` and `config['`
fn is_called(value: &[u8], behind: &[u8]) -> bool {
    let is_code = ["()", "['", "[\""].iter().any(|marks| behind.starts_with(marks.as_bytes()));
    let is_open = behind.first().is_some_and(|byte| b"([".contains(byte));
    is_identifier(value) && (is_code || is_open && value.contains(&b'_'))
}

/// `api_key=api_key`: a variable with the name of a secret.
fn is_variable(value: &[u8], is_closed: bool, name: &str) -> bool {
    is_identifier(value) && is_secret_word(value) && (is_closed || name.as_bytes().ends_with(value))
}

/// `OPENAI_API_KEY` or `hub_token`, as a call gets it to look the secret up.
fn is_name_of_secret(value: &[u8]) -> bool {
    is_constant(value) || is_identifier(value) && value.contains(&b'_') && is_secret_word(value)
}

/// `transformers4rec`: small letters with vowels among them and one digit.
fn is_word_with_digit(value: &[u8]) -> bool {
    const BYTES_MAX: usize = 20;
    let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
    let vowels = count(|byte| b"aeiou".contains(byte));
    value.len() <= BYTES_MAX
        && count(u8::is_ascii_digit) == 1
        && count(u8::is_ascii_lowercase) + 1 == value.len()
        && vowels * 4 >= value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, value: &str) -> Option<String> {
        let start = text.find(value).unwrap();
        secret_part(text.as_bytes(), start..start + value.len()).map(|part| text[part].to_owned())
    }

    /// Proves that what is like code, a number or another key is passed only where nothing of it may be a password.
    #[test]
    fn passwords_like_code_are_kept_secret() {
        for value in [
            "hunter2", "correct.horse", "BIG_RED_HORSE", "!Hunter", "12345678", "12345678e9", "my_secret_pw",
            "a_b.c12",
        ] {
            assert_eq!(part(&format!("password={value}"), value).as_deref(), Some(value));
        }
        assert_eq!(part("f(pw=a.pw,x=1,pw=b4)", "a.pw,x=1,pw=b4").as_deref(), Some("b4"));
        assert_eq!(part("SecretStr('BIG_RED')", "BIG_RED").as_deref(), Some("BIG_RED"));
        assert_eq!(part("getenv('BIG_RED')", "BIG_RED"), None);
        assert_eq!(
            part("primary_key=aB3dE5fG7hI9jK1l", "aB3dE5fG7hI9jK1l").as_deref(),
            Some("aB3dE5fG7hI9jK1l")
        );
        assert!(!is_secret_setting("cache_key", b"train_224px_v2") && !is_secret_setting("loss_pw", b"0.31"));
        assert!(is_secret_setting("api_key", b"train_224px_v2"));
    }
}
