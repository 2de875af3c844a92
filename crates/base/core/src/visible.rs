//! Letters that change how a text is displayed instead of being displayed themselves: a name, a message or a cell
//! of a table that holds them could steer a terminal, forge a line, or show its own letters in another order.

use std::borrow::Cow;

/// Whether a letter steers what displays it: the control characters (C0 with ESC, BEL, CR and line feed, DEL, C1; not
/// the tab), line and paragraph separators, and Unicode's directional formatting characters (UAX #9: marks,
/// embeddings, overrides, isolates, their deprecated relatives) and interlinear annotations.
#[must_use]
pub fn steers_display(letter: char) -> bool {
    (letter.is_control() && letter != '\t')
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}')
}

/// One line that displays as what it holds: each letter that [steers](steers_display) is U+FFFD.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.contains(steers_display) {
        Cow::Owned(text.replace(steers_display, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A JSON document whose strings steer nothing, with the same meaning: JSON itself escapes C0; DEL, C1 and the other
/// characters that [steer](steers_display), which only its strings can hold, become `\u…`. Line feeds between members
/// stay.
#[must_use]
pub fn escaped_json(document: String) -> String {
    let steers = |letter: char| steers_display(letter) && letter != '\n';
    if !document.contains(steers) {
        return document;
    }
    let mut escaped = String::with_capacity(document.len());
    for letter in document.chars() {
        if steers(letter) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// A line of a log without its colours: sequences that only set the look of letters (ESC `[` digits `m`) are gone.
#[must_use]
pub fn without_colours(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "\u{1b}[";
    if !text.contains(BEGIN) {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split(BEGIN);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.trim_start_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, ';' | ':'))
        {
            rest if rest.starts_with('m') => plain.push_str(&rest[1..]),
            _ => plain.extend([BEGIN, piece]),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that nothing that steers is left, and that other letters, tabs and emoji stay as they are.
    #[test]
    fn what_steers_is_replaced() {
        for hostile in
            ["\u{1b}", "\u{7}", "\r", "\n", "\u{0}", "\u{7f}", "\u{9b}", "\u{202e}", "\u{2066}", "\u{2028}"]
        {
            assert_eq!(visible(&format!("a{hostile}b")), "a\u{fffd}b");
        }
        let harmless = "name\twith ünïcödé, 日本語, עברית, 👩‍👩‍👧";
        assert!(matches!(visible(harmless), Cow::Borrowed(text) if text == harmless));
    }

    /// Proves that JSON keeps its layout and that its strings are escaped.
    #[test]
    fn json_is_escaped() {
        let document = "{\n  \"a\u{9b}\u{202e}\": \"ü\"\n}".to_owned();
        assert_eq!(escaped_json(document), "{\n  \"a\\u009b\\u202e\": \"ü\"\n}");
    }

    /// Proves that colours go and that a sequence that does more is still there to be seen.
    #[test]
    fn only_colours_are_dropped() {
        assert_eq!(without_colours("\u{1b}[1;31mred\u{1b}[0m, \u{1b}[mplain"), "red, plain");
        assert_eq!(without_colours("\u{1b}[2Jx\u{1b}[38:5:1"), "\u{1b}[2Jx\u{1b}[38:5:1");
    }
}
