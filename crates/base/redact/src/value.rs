//! Whether a value looks like a secret: what a regex cannot express.

pub(super) fn any(_: &[u8]) -> bool {
    true
}

/// Letters and digits mixed, as in a generated key and not in a word or a number.
pub(super) fn mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// Mixed and at least 16 bytes: for names such as `token`, which are not always secret.
pub(super) fn random(value: &[u8]) -> bool {
    value.len() >= 16 && mixed(value) && present(value)
}

/// Not one of the words for "no value", nor a value that was redacted already.
pub(super) fn present(value: &[u8]) -> bool {
    const ABSENT: [&[u8]; 7] = [b"none", b"null", b"true", b"false", b"nil", b"undefined", b"redacted"];
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
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    value.ends_with(b"=")
        || (has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
}

/// A header with a name is always secret; a bare `bearer` or `basic` may be prose.
pub(super) fn authorization(value: &[u8]) -> bool {
    let scheme =
        ["bearer", "digest", "negotiate"].iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    !scheme && present(value) && (value.len() < 16 || base64(value) || mixed(value))
}
