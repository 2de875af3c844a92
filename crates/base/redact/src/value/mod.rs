//! Whether a value looks like a secret: what a regex cannot express.

pub(super) mod places;
mod spelling;

use places::is_place;
use spelling::{is_made_of_words, is_word, parts};

pub(super) fn any(_: &[u8]) -> bool {
    true
}

/// Letters and digits mixed, as in a generated key and not in a word or a number.
pub(super) fn mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// Capitals, other letters and digits, as base64 has them.
pub(super) fn mixed_case(value: &[u8]) -> bool {
    mixed(value) && value.iter().any(u8::is_ascii_lowercase) && value.iter().any(u8::is_ascii_uppercase)
}

/// Short words in small letters with hyphens between them, as names of environments are.
pub(super) fn hyphened(value: &[u8]) -> bool {
    const WORDS_MIN: usize = 3;
    const WORD_BYTES_MAX: usize = 10;
    let words = || value.split(|byte| *byte == b'-');
    !value.iter().any(u8::is_ascii_uppercase)
        && words().count() >= WORDS_MIN
        && words().all(|word| word.len() <= WORD_BYTES_MAX)
}

/// Mixed and at least 16 bytes: for names such as `token`, which are not always secret.
pub(super) fn random(value: &[u8]) -> bool {
    value.len() >= 16 && mixed(value) && present(value) && !is_special(value)
}

/// An entry of a vocabulary that is none of its words: `[MASK]`, `</s>`, `<|reserved_token_12|>`.
pub(super) fn is_special(value: &[u8]) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"_|/-".contains(byte);
    match value {
        [b'<', .., b'>'] => true,
        [b'[', inner @ .., b']'] => inner.iter().all(is_inner),
        _ => false,
    }
}

/// The same, and neither a place nor words: `meta-llama/Llama-2-7b-hf` is an entry of a vocabulary as well.
pub(super) fn random_beyond_words(value: &[u8]) -> bool {
    random(value) && !is_place(value) && !is_made_of_words(value)
}

/// For the same names where it is clear that a value follows, as behind an option: shorter ones too.
pub(super) fn like_a_token(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 8;
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+/=.~!@#$%^&*:,".contains(byte);
    let begins = value.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_+/".contains(byte));
    let is_called_secret = value.to_ascii_lowercase().windows(6).any(|six| six == b"secret");
    value.len() >= BYTES_MIN
        && begins
        && value.iter().all(is_letter)
        && mixed(value)
        && present(value)
        && !is_place(value)
        && (is_called_secret || !is_made_of_words(value))
}

/// Behind `pass` where it is not the number of passes: a password with digits or marks, or several words.
pub(super) fn like_a_pass(value: &[u8]) -> bool {
    const MARKED_BYTES_MIN: usize = 8;
    const PHRASE_BYTES_MIN: usize = 16;
    let is_marked = value.len() >= MARKED_BYTES_MIN && value.iter().any(|byte| b"!@#$^&".contains(byte));
    let is_phrase = value.len() >= PHRASE_BYTES_MIN && hyphened(value);
    // `2nd_pass`, `train,val2`
    let is_counted = value.first().is_some_and(u8::is_ascii_digit) || value.contains(&b',');
    present(value)
        && (said_in_words(value) || is_marked || is_phrase)
        && !is_place(value)
        && !(is_counted && is_made_of_words(value))
}

/// What credentials are where it is more than a word or a number: `default` and `12` are none.
pub(super) fn like_credentials(value: &[u8]) -> bool {
    unlike_a_word(value) && unlike_a_count(value)
}

/// Not one of the words for "no value", nor a value that was redacted already.
pub(super) fn present(value: &[u8]) -> bool {
    const ABSENT: [&[u8]; 13] = [
        b"none", b"null", b"true", b"false", b"nil", b"undefined", b"redacted", b"yes", b"no", b"on", b"off",
        b"required", b"optional",
    ];
    let stars = value.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X'));
    !stars
        && !value.starts_with(b"[redacted:")
        && !ABSENT.iter().any(|absent| value.eq_ignore_ascii_case(absent))
}

/// Present, and more than a word: the next item of a list of names is not.
pub(super) fn unlike_a_word(value: &[u8]) -> bool {
    present(value)
        && !value.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b' ' | b'.'))
}

/// Beyond a word, a password as people make them: `the password is required` names none.
pub(super) fn said_in_words(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 6;
    const ENCODINGS: [&[u8]; 5] = [b"sha", b"base64", b"utf", b"md5", b"argon2"];
    let begins = |word: &&[u8]| value.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    value.len() >= BYTES_MIN && mixed(value) && present(value) && !ENCODINGS.iter().any(begins)
}

/// As people make passwords where the name says little: letters in both cases or a mark beside digits, and neither a
/// path nor a word with a capital.
pub(super) fn like_a_password(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 8;
    const MARKS: &[u8] = b"!@#$^";
    let is_code = value.iter().any(|byte| b"/\\.()=".contains(byte)) || value.starts_with(b"$");
    let is_capitalised = value.first().is_some_and(u8::is_ascii_uppercase)
        && value.iter().skip(1).take(2).all(u8::is_ascii_lowercase);
    let is_made = mixed_case(value) && !is_capitalised || value.iter().any(|byte| MARKS.contains(byte));
    value.len() >= BYTES_MIN && said_in_words(value) && !is_code && is_made
}

/// The same, or as a generated key is.
pub(super) fn like_a_password_or_key(value: &[u8]) -> bool {
    like_a_password(value) || generated(value)
}

/// A password of a wireless network, which has eight letters at least.
pub(super) fn of_network(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 8;
    value.len() >= BYTES_MIN && said_in_words(value)
}

/// Random, and with letters in both cases.
pub(super) fn random_case(value: &[u8]) -> bool {
    random(value) && mixed_case(value)
}

/// As a generated key is: letters and digits all over it, not words and numbers that are put together, no path and no expression.
pub(super) fn generated(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 12;
    const ONE_CASE_BYTES_MIN: usize = 16;
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+/=.~!@#$%^&*".contains(byte);
    let is_plain = value.first().is_some_and(u8::is_ascii_alphanumeric) && value.iter().all(is_letter);
    if value.len() < BYTES_MIN || !is_plain || !present(value) || !mixed(value) {
        return false;
    }
    let is_encoded = value.len() >= 2 * ONE_CASE_BYTES_MIN && value.iter().all(u8::is_ascii_hexdigit);
    let has_extension = value.contains(&b'/') && value.contains(&b'.');
    // Of a generated value a part has digits among letters, again and again.
    let changes = |part: &[u8]| part.windows(2).filter(|two| kind(two[0]) != kind(two[1])).count();
    let is_scattered =
        |part: &[u8]| part.len() >= 6 && mixed(part) && changes(part) * 3 >= part.len() && !is_word(part);
    let is_long = mixed_case(value) || value.len() >= ONE_CASE_BYTES_MIN;
    is_encoded || is_long && !has_extension && parts(value).any(is_scattered)
}

/// Capitals, other letters, digits.
fn kind(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        _ => 2,
    }
}

pub(super) fn unlike_a_path(value: &[u8]) -> bool {
    present(value) && !value.starts_with(b"/")
}

pub(super) fn unlike_a_count(value: &[u8]) -> bool {
    present(value) && !value.iter().all(u8::is_ascii_digit)
}

pub(super) fn has_pair(value: &[u8]) -> bool {
    value.contains(&b'=')
}

/// Upper case, lower case and a digit, or padding: base64 rather than a word.
fn base64(value: &[u8]) -> bool {
    value.ends_with(b"=") || mixed_case(value)
}

/// A header with a name is always secret; a bare `bearer` or `basic` may be prose.
pub(super) fn authorization(value: &[u8]) -> bool {
    let scheme =
        ["bearer", "digest", "negotiate"].iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    !scheme && present(value) && (value.len() < 16 || base64(value) || mixed(value))
}

/// An address with a path: who has it may send.
pub(super) fn address(value: &[u8]) -> bool {
    const PATH_BYTES_MIN: usize = 8;
    let text = String::from_utf8_lossy(value);
    let path = text.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    present(value) && path.is_some_and(|(_, path)| path.len() >= PATH_BYTES_MIN)
}

/// What a registry's file has under `auth`: a user and a password in base64, or a key.
pub(super) fn registry_login(value: &[u8]) -> bool {
    encoded_pair(value) || random_case(value)
}

/// A user and a password in base64, all of it text: what is behind `basic` may be a word of a sentence.
pub(super) fn encoded_text_pair(value: &[u8]) -> bool {
    encoded_pair(value) && decoded(value).iter().all(u8::is_ascii_graphic)
}

/// A user and a password in base64, as a registry's file and the header of HTTP have them.
fn encoded_pair(value: &[u8]) -> bool {
    let decoded = decoded(value);
    let colon = decoded.iter().position(|byte| *byte == b':');
    colon.is_some_and(|at| at > 0 && at + 1 < decoded.len() && decoded[..at].iter().all(u8::is_ascii_graphic))
}

/// The bytes that base64 spells, in either of its alphabets.
fn decoded(value: &[u8]) -> Vec<u8> {
    let letters: Vec<u8> = value.iter().copied().filter(|byte| *byte != b'=').collect();
    let digit = |byte: &u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    };
    let decoded = letters.chunks(4).flat_map(|four| {
        let bits =
            four.iter().fold(0u32, |bits, byte| bits << 6 | u32::from(digit(byte))) << (6 * (4 - four.len()));
        let [_, bytes @ ..] = bits.to_be_bytes();
        bytes.into_iter().take(four.len().saturating_sub(1))
    });
    decoded.collect()
}
