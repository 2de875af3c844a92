//! Lines from pieces: ended by a newline or a carriage return, without what only steers a terminal.

use std::borrow::Cow;

use super::{LINE_BYTES_MAX, tables};

/// Puts the lines of one output together.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    too_long: bool,
    /// The number of line ends so far.
    ended: u64,
    /// How many lines were too long, and the number of the first.
    long: Option<(u64, u64)>,
}

impl Lines {
    /// Takes the next bytes; calls `found` for every line as it is, with its number: what a carriage return begins is
    /// still of the same line.
    pub fn push(&mut self, mut bytes: &[u8], mut found: impl FnMut(u64, &[u8])) {
        while self.push_line(&mut bytes, &mut found) {}
    }

    /// The same of the first of the lines that end in the bytes, and leaves what is behind it. False: none does, and all bytes are taken.
    pub fn push_line(&mut self, bytes: &mut &[u8], mut found: impl FnMut(u64, &[u8])) -> bool {
        let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
            self.take(bytes);
            *bytes = &[];
            return false;
        };
        let (part, is_newline) = (&bytes[..end], bytes[end] == b'\n');
        *bytes = &bytes[end + 1..];
        // Most lines arrive whole and need no copy.
        if self.line.is_empty() && !self.too_long && part.len() <= LINE_BYTES_MAX {
            found(self.number(), part);
        } else {
            self.take(part);
            self.end_line(&mut found);
        }
        self.ended += u64::from(is_newline);
        true
    }

    /// So many whole lines were read elsewhere.
    pub fn pass(&mut self, newlines: u64) {
        self.ended += newlines;
    }

    /// How many lines were too long, and the number of the first.
    pub fn long(&self) -> Option<(u64, u64)> {
        self.long
    }

    /// The number of the line that has not ended, from 1.
    fn number(&self) -> u64 {
        self.ended + 1
    }

    /// The beginning of a line that has no end yet.
    pub fn open(&self) -> &[u8] {
        &self.line
    }

    /// The last line may lack its end.
    pub fn finish(&mut self, mut found: impl FnMut(u64, &[u8])) {
        self.end_line(&mut found);
    }

    fn take(&mut self, part: &[u8]) {
        if self.too_long || self.line.len() + part.len() > LINE_BYTES_MAX {
            self.too_long = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self, found: &mut impl FnMut(u64, &[u8])) {
        let number = self.number();
        match self.too_long {
            true => self.long.get_or_insert((0, number)).0 += 1,
            false => found(number, &self.line),
        }
        self.line.clear();
        self.too_long = false;
    }
}

/// What is to be read of a line: its text, trimmed; nothing if it cannot have a metric or a setting.
pub(super) fn readable(line: &[u8]) -> Option<Cow<'_, str>> {
    let plain = is_worth_reading(line).then(|| plain_text(line)).filter(|plain| !plain.is_empty())?;
    Some(if line.first() == Some(&b'{') { without_comma(plain) } else { plain })
}

/// An object in a line without the comma behind it, which is between those of a list.
fn without_comma(object: Cow<'_, str>) -> Cow<'_, str> {
    match object {
        Cow::Borrowed(object) => Cow::Borrowed(object.strip_suffix(',').unwrap_or(object)),
        Cow::Owned(mut object) => {
            object.truncate(object.trim_end_matches(',').len());
            Cow::Owned(object)
        }
    }
}

/// The text of a line, trimmed, without what only steers a terminal.
fn plain_text(line: &[u8]) -> Cow<'_, str> {
    match without_steering(String::from_utf8_lossy(line)) {
        Cow::Borrowed(plain) => Cow::Borrowed(plain.trim()),
        Cow::Owned(plain) => Cow::Owned(plain.trim().to_owned()),
    }
}

/// Whether a line may have a number, head a table or name a setting.
fn is_worth_reading(line: &[u8]) -> bool {
    has_digit(line)
        || line.first().is_some_and(|first| matches!(first, b'|' | b'-'))
        || names_measure(line)
        || may_head_table(line)
        || tables::may_head_named_rows(line)
}

/// By how much a line is indented.
pub(super) fn indent_of(line: &[u8]) -> usize {
    line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// By how much a line is indented that is an item of a list, with a sign before its text; nothing if it is none. Bars
/// and arrows that are not indented are none of a list.
pub(super) fn indent_of_item(line: &[u8]) -> Option<usize> {
    let blanks = indent_of(line);
    let is_item = match line[blanks..] {
        [b'*' | b'-', b' ', ..] => true,
        [b'|' | b'>', b' ', ..] => blanks > 0,
        _ => false,
    };
    is_item.then_some(blanks)
}

/// Rows below a heading. Those that end their names in one column are aligned to the right: `            Mean reward: 0.5`.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The indentation of the last indented one.
    indent: usize,
    /// Where it has its colon.
    colon: usize,
    is_right_aligned: bool,
    /// The last one had pairs of names and values only.
    has_pairs: bool,
}

impl Rows {
    /// Whether a line is one of them: it is indented, or its name fills the room before the colon, `throughput/tokens_per_second: 512`.
    pub fn has(&mut self, line: &[u8]) -> bool {
        // The last row may have one pair.
        let pairs = pairs_in(line);
        self.has_pairs = pairs > 1 || (pairs == 1 && self.has_pairs);
        if self.has_pairs {
            return true;
        }
        let (indent, colon) = (indent_of(line), memchr::memchr(b':', line));
        let Some(colon) = colon.filter(|_| indent == 0) else {
            if let Some(colon) = colon {
                self.is_right_aligned =
                    colon == self.colon && (self.is_right_aligned || indent != self.indent);
                (self.indent, self.colon) = (indent, colon);
            }
            return indent > 0 || line.is_empty();
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let fills = self.is_right_aligned && colon >= self.colon && name.contains(&b'/');
        let of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b'e');
        let is_number = matches!(value, b"nan" | b"inf") || value.iter().all(of_number);
        fills && !name.contains(&b' ') && !value.is_empty() && is_number
    }
}

/// How many names with values a line has that has nothing else, `return_mean:   2.5\tloss:   0.5`; 0 for any other line.
fn pairs_in(line: &[u8]) -> usize {
    let is_name = |word: &[u8]| word.len() > 1 && word[0].is_ascii_alphabetic() && word.ends_with(b":");
    let is_value = |word: &[u8]| {
        word.contains(&b'.') && word.iter().all(|byte| byte.is_ascii_digit() || b".+-e".contains(byte))
    };
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut pairs = 0;
    while let Some(name) = words.next() {
        if !is_name(name) || !words.next().is_some_and(is_value) {
            return 0;
        }
        pairs += 1;
    }
    pairs
}

/// Whether there is a digit. Without an early end, so that many bytes are compared at once.
pub(super) fn has_digit(line: &[u8]) -> bool {
    line.iter().fold(false, |any, byte| any | byte.is_ascii_digit())
}

/// Whether a line begins as the heading of a table does, with the column of the step.
fn may_head_table(line: &[u8]) -> bool {
    const FIRST: [&[u8]; 7] = [b"iter", b"iteration", b"step", b"global_step", b"round", b"classes", b"gen"];
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"# ").unwrap_or(line).trim_ascii_start();
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t' | b',' | b'|'));
    end.is_some_and(|end| FIRST.iter().any(|first| line[..end].eq_ignore_ascii_case(first)))
}

/// Whether a line without a number has a part that a measure, a heading or a setting has. Each of these parts has one
/// of three letters at its second place.
fn names_measure(line: &[u8]) -> bool {
    let Some(behind_first) = line.get(1..) else { return false };
    memchr::memchr3_iter(b'a', b'n', b'o', behind_first).any(|at| is_part(&line[at..]))
        || memchr::memchr3_iter(b'=', b'A', b'O', behind_first).any(|at| is_part(&line[at..]))
}

fn is_part(line: &[u8]) -> bool {
    const PARTS: [&[u8]; 10] =
        [b"nan", b"inf", b"NaN", b"Inf", b" = ", b"loss", b"Loss", b"LOSS", b"poch", b"mAP5"];
    PARTS.iter().any(|part| line.starts_with(part))
}

/// The text without escape sequences and control characters. A backspace alone is left out: a program that prints it
/// then draws the whole line again.
pub(super) fn without_steering(text: Cow<'_, str>) -> Cow<'_, str> {
    // The second half of the control characters (U+0080 to U+009F) begins with this byte.
    const LATER_CONTROLS: u8 = 0xc2;
    let may_steer = |byte: &u8| (*byte < b' ' && *byte != b'\t') || matches!(*byte, 0x7f | LATER_CONTROLS);
    match text.bytes().fold(false, |any, byte| any | may_steer(&byte)) {
        true => Cow::Owned(plain_letters(&text)),
        false => text,
    }
}

fn plain_letters(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.peek() == Some(&'[') => {
                letters.next();
                // Parameters, then one final byte between `@` and `~` (ECMA-48, 5.4).
                letters.by_ref().find(|letter| ('@'..='~').contains(letter));
            }
            '\t' => plain.push('\t'),
            letter if letter.is_control() => {}
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy as _;

    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        let mut read = |_, line: &[u8]| found.extend(readable(line).map(Cow::into_owned));
        pieces.iter().for_each(|piece| lines.push(piece, &mut read));
        lines.finish(&mut read);
        found
    }

    /// Proves that both ends count, that pieces join, and that colours, blanks and lines without a number go.
    #[test]
    fn lines_end_at_both_ends() {
        let found = lines(&[b"a 1\r\x1b[1m2/6\x1b[0m x\x08\x08\r   \r\nwords only\nlo", b"ss 3"]);
        assert_eq!(found, ["a 1", "2/6 x", "loss 3"]);
        assert_eq!(lines(&[b"loss: nan"]), ["loss: nan"]);
    }

    /// Proves that a giant line costs bounded memory and that the next line counts.
    #[test]
    fn giant_lines_are_passed() {
        let mut lines = Lines::default();
        for _ in 0..1_000 {
            lines.push(&[b'1'; 10_000], |_, _| panic!("no line here"));
            assert!(lines.line.len() <= LINE_BYTES_MAX);
        }
        let mut found = Vec::new();
        lines.push(b"\nloss 1\n", |_, line| found.extend(readable(line).map(Cow::into_owned)));
        assert_eq!(found, ["loss 1"]);
    }

    /// What decides without a search for several letters at once.
    fn is_worth_reading_slowly(line: &[u8]) -> bool {
        line.iter().any(u8::is_ascii_digit)
            || line.first().is_some_and(|first| matches!(first, b'|' | b'-'))
            || line.windows(3).any(|part| matches!(part, b"nan" | b"inf" | b"NaN" | b"Inf" | b" = "))
            || line.windows(4).any(|part| matches!(part, b"loss" | b"Loss" | b"LOSS" | b"poch" | b"mAP5"))
            || may_head_table(line)
            || tables::may_head_named_rows(line)
    }

    proptest::proptest! {
        /// Proves that what is passed quickly is what would be passed letter by letter, for any bytes.
        #[test]
        fn the_short_way_is_the_long_way(
            parts in proptest::collection::vec(
                proptest::prop_oneof![
                    proptest::sample::select(vec![
                        "nan", "inf", "NaN", "Inf", " = ", "loss", "Los", "LOSS", "poch", "mAP5", "7", "|", "\u{1b}[31m", "\t", "\u{85}",
                        "\u{e9}", "\u{7f}", "a", "n", "o", "A", "O", "=", " ",
                    ]).prop_map(|text| text.as_bytes().to_vec()),
                    proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4),
                ],
                0..8,
            )
        ) {
            let line = parts.concat();
            proptest::prop_assert_eq!(is_worth_reading(&line), is_worth_reading_slowly(&line));
            let text = String::from_utf8_lossy(&line);
            let plain = plain_letters(&text);
            proptest::prop_assert_eq!(without_steering(text), plain);
        }
    }
}
