//! Several lines without what is before each of them: the marks of a difference, the time and level of a logger, the indent of a notebook.

use std::ops::Range;

/// The lines, and where in the bytes each of their bytes is.
pub(crate) struct Unprefixed {
    pub bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Unprefixed {
    /// At most `count` lines from `first` on, as long as they begin as the first one does. What is at `at` is not of the prefix.
    pub fn new(bytes: &[u8], first: Range<usize>, at: usize, count: usize) -> Self {
        let second = line_behind(bytes, first.end);
        let head = &bytes[first.start..at];
        let length = second.clone().map_or(0, |second| common(head, &bytes[second]));
        let mut lines = Self { bytes: Vec::new(), places: Vec::new() };
        lines.add(bytes, first.start + length..first.end);
        let mut next = second;
        for _ in 1..count {
            let Some(line) = next.filter(|line| common(&head[..length], &bytes[line.clone()]) == length)
            else {
                break;
            };
            lines.bytes.push(b'\n');
            lines.places.push(line.start - 1);
            lines.add(bytes, line.start + length..line.end);
            next = line_behind(bytes, line.end);
        }
        lines
    }

    /// Where in the bytes this byte is.
    pub fn place(&self, at: usize) -> usize {
        self.places[at]
    }

    fn add(&mut self, bytes: &[u8], part: Range<usize>) {
        self.bytes.extend_from_slice(&bytes[part.clone()]);
        self.places.extend(part);
    }
}

/// The line behind the end of another one.
fn line_behind(bytes: &[u8], end: usize) -> Option<Range<usize>> {
    let start = (end < bytes.len()).then_some(end + 1)?;
    let length = memchr::memchr(b'\n', &bytes[start..]).unwrap_or(bytes.len() - start);
    Some(start..start + length)
}

/// How many bytes two lines have in common from their beginnings on; of a time the digits may differ.
fn common(left: &[u8], right: &[u8]) -> usize {
    let same =
        |(left, right): &(&u8, &u8)| left == right || (left.is_ascii_digit() && right.is_ascii_digit());
    left.iter().zip(right).take_while(same).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what is before each line is left out, that the first line without it ends them, and that places lead back.
    #[test]
    fn lines_lose_their_prefix() {
        for (text, seen) in [
            ("+a:\n+  b\n c", "a:\n  b"),
            ("10:01 INFO a:\n10:02 INFO   b\nc", "a:\n  b"),
            ("    a:\n      b\n    c: 1\n d", "a:\n  b\nc: 1"),
            ("a:\n  b", "a:\n  b"),
            ("a:", "a:"),
        ] {
            let (at, end) = (text.find("a:").unwrap(), text.find('\n').unwrap_or(text.len()));
            let lines = Unprefixed::new(text.as_bytes(), 0..end, at, 4);
            assert_eq!(String::from_utf8_lossy(&lines.bytes), seen);
            assert_eq!(lines.place(0), at);
        }
    }
}
