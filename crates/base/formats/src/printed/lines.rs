//! Lines from pieces: ended by a newline or a carriage return, without what only steers a terminal.

use super::LINE_BYTES_MAX;

/// Puts the lines of one output together.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    too_long: bool,
}

impl Lines {
    /// Takes the next bytes; calls `found` for every line as it is.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.take(&rest[..end]);
            self.end_line(&mut found);
            rest = &rest[end + 1..];
        }
        self.take(rest);
    }

    /// The last line may lack its end.
    pub fn finish(&mut self, mut found: impl FnMut(&[u8])) {
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

    fn end_line(&mut self, found: &mut impl FnMut(&[u8])) {
        if !self.too_long {
            found(&self.line);
        }
        self.line.clear();
        self.too_long = false;
    }
}

/// What is to be read of a line: its text, trimmed; nothing if it cannot have a metric or a setting.
pub(super) fn readable(line: &[u8]) -> Option<String> {
    let text = is_worth_reading(line).then(|| String::from_utf8_lossy(line))?;
    let plain = without_steering(&text);
    Some(plain.trim().to_owned()).filter(|plain| !plain.is_empty())
}

/// Whether a line may have a number, head a table or name a setting.
fn is_worth_reading(line: &[u8]) -> bool {
    line.iter().any(u8::is_ascii_digit)
        || line.first().is_some_and(|first| matches!(first, b'|' | b'-'))
        || line.windows(3).any(|part| matches!(part, b"nan" | b"inf" | b"NaN" | b"Inf" | b" = "))
        || line.windows(4).any(|part| matches!(part, b"loss" | b"Loss" | b"LOSS" | b"poch" | b"mAP5"))
}

/// The text without escape sequences and control characters. A backspace alone is left out: a program that prints it
/// then draws the whole line again.
pub(super) fn without_steering(text: &str) -> String {
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
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        pieces.iter().for_each(|piece| lines.push(piece, |line| found.extend(readable(line))));
        lines.finish(|line| found.extend(readable(line)));
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
            lines.push(&[b'1'; 10_000], |_| panic!("no line here"));
            assert!(lines.line.len() <= LINE_BYTES_MAX);
        }
        let mut found = Vec::new();
        lines.push(b"\nloss 1\n", |line| found.extend(readable(line)));
        assert_eq!(found, ["loss 1"]);
    }
}
