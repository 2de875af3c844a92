//! Numbers that JSON does not have: Python's `json` writes `NaN`, `Infinity` and `-Infinity` all the same.

/// In front of such a word that is written as a string: a noncharacter, which texts do not have.
const MARK: char = '\u{10FFFF}';

const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Whether a text has such a word, as a number or within a string.
pub(super) fn may_have(text: &[u8]) -> bool {
    let is_word = |at: usize| WORDS[..2].iter().any(|word| text[at..].starts_with(word.as_bytes()));
    memchr::memchr2_iter(b'N', b'I', text).any(is_word)
}

/// The line with each of its words that is a value as a marked string; `None` without one.
pub(super) fn marked(line: &[u8]) -> Option<Vec<u8>> {
    if !may_have(line) {
        return None;
    }
    let (mut marked, mut copied, mut at) = (Vec::new(), 0, 0);
    while let Some(byte) = line.get(at) {
        if *byte == b'"' {
            at = string_end(line, at);
            continue;
        }
        match WORDS.iter().find(|word| line[at..].starts_with(word.as_bytes())) {
            Some(word) if is_value(&line[..at], &line[at + word.len()..]) => {
                marked.extend_from_slice(&line[copied..at]);
                marked.extend_from_slice(format!("\"{MARK}{word}\"").as_bytes());
                at += word.len();
                copied = at;
            }
            _ => at += 1,
        }
    }
    (copied > 0).then(|| [&marked, &line[copied..]].concat())
}

/// Where the string that begins at a quote ends.
fn string_end(line: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', line.get(at..).unwrap_or_default()) {
        if line[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    line.len()
}

/// Whether what is between is a value: a key would be followed by a colon.
fn is_value(before: &[u8], behind: &[u8]) -> bool {
    matches!(before.trim_ascii_end().last(), Some(b':' | b'[' | b','))
        && matches!(behind.trim_ascii_start().first(), Some(b',' | b']' | b'}'))
}

/// The number that a marked string is.
pub(super) fn number(text: &str) -> Option<f64> {
    text.strip_prefix(MARK)?.parse().ok()
}

/// A list or an object that is written out, with its marked strings as the numbers that the file has.
pub(super) fn unmarked(mut text: String) -> String {
    for word in WORDS.iter().filter(|_| text.contains(MARK)).collect::<Vec<_>>() {
        text = text.replace(&format!("\"{MARK}{word}\""), word);
    }
    text
}

/// How such a number is written; `None` of another one.
pub(super) fn word(number: f64) -> Option<&'static str> {
    let at = if number.is_nan() { 0 } else { 1 + usize::from(number < 0.0) };
    (!number.is_finite()).then(|| WORDS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a word is a number where a value may be, and nothing in strings, as a key, and as a part of something else.
    #[test]
    fn words_are_numbers_where_values_are() {
        let read = |line: &str| {
            let marked = marked(line.as_bytes())?;
            Some(String::from_utf8(marked).unwrap().replace(MARK, "#"))
        };
        assert_eq!(
            read(r#"{"a":NaN,"b": [1, -Infinity]}"#).unwrap(),
            r##"{"a":"#NaN","b": [1, "#-Infinity"]}"##
        );
        assert_eq!(read(r#"{"a\"":Infinity }"#).unwrap(), r##"{"a\"":"#Infinity" }"##);
        for line in [
            r#"{"a":"NaN","b":":NaN,"}"#,
            r#"{"a":1,NaN:2}"#,
            r#"{"a":NaNs}"#,
            r#"{"a":-NaN}"#,
            r#"{"a":"\":NaN,"#,
            r#"{"a":"\"#,
            "NaN",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
