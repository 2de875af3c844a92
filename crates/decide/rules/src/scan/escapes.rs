//! What a terminal does not show: colours, movements of the cursor, titles and links. They part words and are before
//! the first one of a line.

use std::borrow::Cow;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
/// What colours end with where a copy of the log has lost its control characters.
const BARE_RESET: &[u8] = b"[0m";
/// The longest text between `[` and `m` of a colour without its control character.
const BARE_COLOUR_BYTES: usize = 12;

/// Bytes without their escape sequences.
pub(super) struct Plain<'a> {
    bytes: Cow<'a, [u8]>,
    /// Where something was taken out, and how many bytes were taken out up to there.
    cuts: Vec<(usize, usize)>,
}

impl<'a> Plain<'a> {
    /// Takes the sequences out. Bytes without any are not copied.
    pub(super) fn of(raw: &'a [u8]) -> Self {
        let has_escapes = memchr::memchr(ESCAPE, raw).is_some();
        if !has_escapes && memchr::memmem::find(raw, BARE_RESET).is_none() {
            return Self { bytes: Cow::Borrowed(raw), cuts: Vec::new() };
        }
        let mut plain = Vec::with_capacity(raw.len());
        let mut cuts = Vec::new();
        let mut removed = 0;
        for line in raw.split_inclusive(|byte| *byte == b'\n') {
            let is_bare = memchr::memmem::find(line, BARE_RESET).is_some();
            let mut rest = line;
            while let Some(at) = memchr::memchr2(ESCAPE, if is_bare { b'[' } else { ESCAPE }, rest) {
                plain.extend_from_slice(&rest[..at]);
                rest = &rest[at..];
                let length = if rest[0] == ESCAPE { sequence_length(rest) } else { bare_colour_length(rest) };
                if length == 0 {
                    plain.push(rest[0]);
                    rest = &rest[1..];
                } else {
                    removed += length;
                    cuts.push((plain.len(), removed));
                    rest = &rest[length..];
                }
            }
            plain.extend_from_slice(rest);
        }
        Self { bytes: Cow::Owned(plain), cuts }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the byte at `position` was before something was taken out. Of a line that begins with a sequence it is the sequence's start.
    pub(super) fn offset_of(&self, position: usize) -> usize {
        let before = self.cuts.partition_point(|(at, _)| *at < position);
        position + before.checked_sub(1).map_or(0, |last| self.cuts[last].1)
    }
}

/// The length of the escape sequence that `bytes` begin with. One that its line does not end is its first bytes only.
fn sequence_length(bytes: &[u8]) -> usize {
    let is_of = |range: std::ops::RangeInclusive<u8>| move |byte: &&u8| range.contains(*byte);
    match bytes.get(1) {
        Some(b'[') => {
            let inner = bytes[2..].iter().take_while(is_of(0x20..=0x3f)).count();
            2 + inner + usize::from(bytes.get(2 + inner).is_some_and(|last| (0x40..=0x7e).contains(last)))
        }
        Some(b']' | b'P' | b'^' | b'_' | b'X') => text_length(bytes),
        Some(0x20..=0x2f) => {
            let inner = bytes[1..].iter().take_while(is_of(0x20..=0x2f)).count();
            1 + inner + usize::from(bytes.get(1 + inner).is_some_and(|last| (0x30..=0x7e).contains(last)))
        }
        Some(0x30..=0x7e) => 2,
        _ => 1,
    }
}

/// The length of a sequence that carries a text, such as a title or the address of a link, up to its terminator.
fn text_length(bytes: &[u8]) -> usize {
    let end = bytes[2..].iter().position(|byte| matches!(*byte, BELL | ESCAPE | b'\n'));
    match end.map(|end| (end + 2, bytes[end + 2])) {
        Some((at, BELL)) => at + 1,
        Some((at, ESCAPE)) if bytes.get(at + 1) == Some(&b'\\') => at + 2,
        _ => 2,
    }
}

/// The length of a colour whose control character is lost, such as `[1;31m`.
fn bare_colour_length(bytes: &[u8]) -> usize {
    let inner = bytes[1..].iter().take_while(|byte| matches!(**byte, b'0'..=b'9' | b';')).count();
    match bytes.get(1 + inner) {
        Some(b'm') if inner > 0 && inner <= BARE_COLOUR_BYTES => inner + 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that colours, movements, titles and links are taken out, whole or torn, with or without their control
    /// character; and that brackets of other texts stay.
    #[test]
    fn escapes_are_taken_out() {
        for (raw, shown) in [
            ("\x1b[31mERROR\x1b[0m one", "ERROR one"),
            ("\x1b[1;31mValueError\x1b[0m\x1b[1;31m:\x1b[0m two", "ValueError: two"),
            ("\x1b[38;5;28;01mfor\x1b[39;00m x", "for x"),
            ("\x1b[2K\x1b[1A\rthree", "\rthree"),
            ("\x1b]0;a title\x07four", "four"),
            ("\x1b]8;;file:///a.py\x1b\\a.py\x1b]8;;\x1b\\:7", "a.py:7"),
            ("\x1b]0;no end\nfive", "0;no end\nfive"),
            ("\x1b(Bsix\x1b7", "six"),
            ("seven\x1b[", "seven"),
            ("eight\x1b", "eight"),
            ("[31mERROR[0m nine", "ERROR nine"),
            ("eta [5m left]\n[1mten[0m", "eta [5m left]\nten"),
            ("loss[3] = 0.1, a[12;4m]", "loss[3] = 0.1, a[12;4m]"),
        ] {
            assert_eq!(String::from_utf8_lossy(Plain::of(raw.as_bytes()).bytes()), shown, "{raw:?}");
        }
    }

    /// Proves that a place in the plain text is found in the raw one, the start of a coloured line included.
    #[test]
    fn places_are_found_again() {
        let raw = b"one\n\x1b[31mtwo\x1b[0m three\n\x1b[1mfour";
        let plain = Plain::of(raw);
        let offset = |words: &[u8]| {
            let at = memchr::memmem::find(plain.bytes(), words).unwrap();
            plain.offset_of(at)
        };
        assert_eq!(offset(b"one"), 0);
        assert_eq!(offset(b"two"), 4);
        assert_eq!(&raw[offset(b" three")..][..6], b"\x1b[0m t");
        assert_eq!(&raw[offset(b"hree")..][..4], b"hree");
        assert_eq!(raw[offset(b"four")], 0x1b);
    }
}
