//! Paths as text, also those that are not UTF-8, so that JSON, SQL and patterns can name every file
//! (`docs/formats/checkpoint-manifest.md`).
//!
//! A byte that is part of no character is `\x` with its two hexadecimal digits, such as `ckpt-\xff.pt`. A `\` of a name
//! that would be read so is itself `\x5c`. Every other path is its own text. No text has an escape for a `/`, a full
//! stop or NUL, so that what a text says of folders is true of its path.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// How long an escape is.
const ESCAPE_BYTES: usize = 4;

/// The text of a name or path.
#[must_use]
pub fn text_of(path: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for chunk in path.as_ref().as_bytes().utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find('\\') {
            text.push_str(&rest[..at]);
            text.push_str(if escaped(&rest.as_bytes()[at..]).is_some() { "\\x5c" } else { "\\" });
            rest = &rest[at + 1..];
        }
        text.push_str(rest);
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes every text");
        }
    }
    text
}

/// What is shown of a word or value that may be no path: it is as it is where it is text.
#[must_use]
pub fn shown_word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    word.to_str().map_or_else(|| text_of(word), str::to_owned)
}

/// The name or path of such a text.
#[must_use]
pub fn path_of(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some(first) = rest.first() {
        let (byte, length) = escaped(rest).map_or((*first, 1), |byte| (byte, ESCAPE_BYTES));
        bytes.push(byte);
        rest = &rest[length..];
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The path of such a text below a folder; the folder itself for an empty one.
#[must_use]
pub fn join(folder: &Path, text: &str) -> PathBuf {
    if text.is_empty() { folder.to_owned() } else { folder.join(path_of(text)) }
}

/// Whether a text is not simply the path that it names.
#[must_use]
pub fn has_escapes(text: &str) -> bool {
    matches!(without_escapes(text), Cow::Owned(_))
}

/// The same text for what looks for words and numbers in names: of the same length, with `?` for each character of an escape.
#[must_use]
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(text);
    let mut from = 0;
    while let Some(at) = text[from..].find('\\').map(|at| from + at) {
        from = at + 1;
        if escaped(&text.as_bytes()[at..]).is_some() {
            from = at + ESCAPE_BYTES;
            plain.to_mut().replace_range(at..from, "????");
        }
    }
    plain
}

/// The byte of an escape at the beginning.
fn escaped(bytes: &[u8]) -> Option<u8> {
    let digits = bytes.strip_prefix(b"\\x")?.get(..2)?;
    let is_lower = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_lower)?;
    u8::from_str_radix(digits, 16).ok().filter(|byte| !byte.is_ascii() || *byte == b'\\')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Proves that every name comes back from its text, that two names never have one text, and that a name which is
    /// UTF-8 is its own text unless it looks like an escape.
    #[test]
    fn every_name_comes_back() {
        for (name, text) in [
            (&b"out/ckpt-10.pt"[..], "out/ckpt-10.pt"),
            (b"\xc3\xb6-\xff.pt", "\u{f6}-\\xff.pt"),
            (b"\xff", "\\xff"),
            (b"a\\b", "a\\b"),
            (b"\\x41", "\\x41"),
            (b"\\xff", "\\x5cxff"),
            (b"\\\\xff", "\\\\x5cxff"),
            (b"\\x5cxff", "\\x5cx5cxff"),
            (b"\\xFF", "\\xFF"),
            (b"\\\xff", "\\\\xff"),
            (b"cut \xe2\x82", "cut \\xe2\\x82"),
            (b"", ""),
        ] {
            assert_eq!(text_of(OsStr::from_bytes(name)), text);
            assert_eq!(path_of(text).as_os_str().as_bytes(), name, "{text}");
            assert_eq!(has_escapes(text), text.as_bytes() != name, "{text}");
        }
        let parts = [&b"\\"[..], b"x", b"5c", b"ff", b"\xff", b"\xc3", b"\xb6"];
        let (mut texts, mut names) = (BTreeSet::new(), BTreeSet::new());
        for number in 0..parts.len().pow(4) {
            let name = (0..4).flat_map(|place| parts[number / parts.len().pow(place) % parts.len()]);
            let name: Vec<u8> = name.copied().collect();
            let text = text_of(OsStr::from_bytes(&name));
            assert_eq!(path_of(&text).as_os_str().as_bytes(), name, "{text}");
            texts.insert(text);
            names.insert(name);
        }
        assert_eq!(texts.len(), names.len());
    }

    /// Proves that no text hides a folder, its parent or an end: these have no escapes.
    #[test]
    fn no_escape_leaves_a_folder() {
        for text in ["\\x2e\\x2e\\x2fetc", "a\\x00", "\\x2a"] {
            assert_eq!(path_of(text), Path::new(text));
        }
        assert_eq!(join(Path::new("/a"), ""), Path::new("/a"));
        assert_eq!(join(Path::new("/a"), "\\xff").as_os_str().as_bytes(), b"/a/\xff");
    }

    /// Proves that the digits of an escape are no number of a name, and that everything else stays where it is.
    #[test]
    fn escapes_are_no_numbers() {
        for (text, plain) in [
            ("ckpt-\\x89-30.pt", "ckpt-????-30.pt"),
            ("\u{f6}\\x5cx\\xe9", "\u{f6}????x????"),
            ("a\\x9", "a\\x9"),
        ] {
            assert_eq!(without_escapes(text), plain);
        }
        assert!(matches!(without_escapes("a\\b"), Cow::Borrowed(_)));
    }
}
