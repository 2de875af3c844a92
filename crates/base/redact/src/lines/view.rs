//! A line as a reader sees it: without colour codes and NUL, with the escapes of JSON, `repr` and URLs resolved.
//!
//! A secret is looked for in the line as it is and in its views; its place in a view gives its place in the line.

/// The first of the characters below are looked for; the others are in ordinary text, and their beginnings in every progress bar.
pub(crate) const SEARCHED: usize = 3;
/// Characters that are not seen and hide a secret from a search: spaces without a width, a mark of the order of bytes,
/// joiners, a soft hyphen.
pub(crate) const INVISIBLE: [&[u8]; 6] =
    [b"\xe2\x80\x8b", b"\xe2\x81\xa0", b"\xef\xbb\xbf", b"\xe2\x80\x8c", b"\xe2\x80\x8d", b"\xc2\xad"];

/// The same behind the backslash of JSON.
const SPELLED_INVISIBLE: [&[u8]; 6] = [b"u200b", b"u200c", b"u200d", b"u2060", b"ufeff", b"u00ad"];

/// Escapes within escapes are resolved so often: JSON in a JSON string, printed as a `repr`.
const ROUNDS_MAX: usize = 3;

/// A line with a place in the original for each of its bytes.
pub(crate) struct View {
    pub bytes: Vec<u8>,
    /// Where in the line each byte begins and ends.
    places: Vec<(u32, u32)>,
}

impl View {
    /// The views that show more than the line itself does; none for most lines.
    pub fn of(line: &[u8]) -> Vec<Self> {
        let mut views: Vec<Self> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let seen = views.last().map_or(line, |view| &view.bytes);
            let Some(resolved) = resolve(seen) else { break };
            let next = match views.last() {
                Some(view) => {
                    let back = |(from, to): &(u32, u32)| {
                        (view.places[*from as usize].0, view.places[*to as usize - 1].1)
                    };
                    Self { places: resolved.places.iter().map(back).collect(), ..resolved }
                }
                None => resolved,
            };
            views.push(next);
        }
        views
    }

    /// The bytes of the line for these bytes of the view, at least one.
    pub fn in_line(&self, start: usize, end: usize) -> (usize, usize) {
        (self.places[start].0 as usize, self.places[end - 1].1 as usize)
    }
}

/// Where the first byte is that a view may show otherwise. A percent sign that begins no escape is none: every progress bar has one.
pub(crate) fn first_escape(bytes: &[u8]) -> Option<usize> {
    let is_escape = |at: &usize| bytes[*at] != b'%' || hex(&bytes[*at..], 1, 2).is_some();
    let first = memchr::memchr3_iter(0x1b, b'\\', b'%', bytes).find(is_escape);
    memchr::memchr(0, &bytes[..first.unwrap_or(bytes.len())]).or(first)
}

/// One round of resolving; `None` when there is nothing to resolve.
fn resolve(line: &[u8]) -> Option<View> {
    if (first_escape(line).is_none() && !has_invisible(line)) || u32::try_from(line.len()).is_err() {
        return None;
    }
    let mut view = View { bytes: Vec::with_capacity(line.len()), places: Vec::with_capacity(line.len()) };
    let mut at = 0;
    let mut changed = false;
    while at < line.len() {
        let (shown, length) = escape(&line[at..]);
        changed |= length > 1 || shown.is_none();
        if let Some(byte) = shown {
            view.bytes.push(byte);
            view.places.push((at as u32, (at + length) as u32));
        }
        at += length;
    }
    changed.then_some(view)
}

/// The escape at the beginning of these bytes: the byte that is shown, if any, and how many bytes it takes.
fn escape(bytes: &[u8]) -> (Option<u8>, usize) {
    match bytes[0] {
        0 => (None, 1),
        0xc2 | 0xe2 | 0xef => invisible(bytes).map_or((Some(bytes[0]), 1), |length| (None, length)),
        0x1b => (None, 1 + control(&bytes[1..])),
        b'%' => hex(bytes, 1, 2).map_or((Some(b'%'), 1), |byte| (Some(byte), 3)),
        b'\\' => backslash(bytes),
        byte => (Some(byte), 1),
    }
}

/// How many bytes the invisible character takes with which these bytes begin.
fn invisible(bytes: &[u8]) -> Option<usize> {
    INVISIBLE.iter().find(|character| bytes.starts_with(character)).map(|character| character.len())
}

fn has_invisible(line: &[u8]) -> bool {
    memchr::memchr3_iter(0xc2, 0xe2, 0xef, line).any(|at| invisible(&line[at..]).is_some())
}

fn backslash(bytes: &[u8]) -> (Option<u8>, usize) {
    // Escape characters that were themselves escaped: `\x1b[31m`, `\u001b[31m`, `\033[31m`, `\e[31m`.
    for spelled in [&b"\\x1b"[..], b"\\x1B", b"\\u001b", b"\\u001B", b"\\033", b"\\e["] {
        if bytes.starts_with(spelled) {
            let length = if spelled == b"\\e[" { 2 } else { spelled.len() };
            return (None, length + control(&bytes[length..]));
        }
    }
    if SPELLED_INVISIBLE
        .iter()
        .any(|spelled| bytes.get(1..6).is_some_and(|five| five.eq_ignore_ascii_case(spelled)))
    {
        return (None, 6);
    }
    if let Some(length) = braced_invisible(bytes) {
        return (None, length);
    }
    match bytes.get(1) {
        // A line end is one for the rules of several lines, too.
        Some(b'n') => (Some(b'\n'), 2),
        Some(b'r' | b't') => (Some(b' '), 2),
        Some(byte @ (b'"' | b'\'' | b'\\' | b'/')) => (Some(*byte), 2),
        Some(b'x') => hex(bytes, 2, 2).map_or((Some(b'\\'), 1), |byte| (Some(byte), 4)),
        Some(b'u') => hex(bytes, 2, 4).map_or((Some(b'\\'), 1), |byte| (Some(byte), 6)),
        _ => (Some(b'\\'), 1),
    }
}

/// How many bytes a character takes that is not seen, as Rust and JavaScript spell it: `\u{200b}`.
fn braced_invisible(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.strip_prefix(b"\\u{")?;
    let end = memchr::memchr(b'}', &digits[..digits.len().min(8)])?;
    let is_spelled = |spelled: &&[u8]| {
        let plain = spelled.strip_prefix(b"u").map(|digits| digits.strip_prefix(b"00").unwrap_or(digits));
        plain.is_some_and(|plain| plain.eq_ignore_ascii_case(&digits[..end]))
    };
    SPELLED_INVISIBLE.iter().any(is_spelled).then_some(end + 4)
}

/// How many bytes the rest of a control sequence takes (ECMA-48: CSI, OSC and the two-byte ones).
fn control(rest: &[u8]) -> usize {
    match rest.first() {
        Some(b'[') => {
            let parameters = rest[1..].iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
            1 + parameters + usize::from(rest.len() > 1 + parameters)
        }
        Some(b']') => {
            let end = memchr::memchr2(0x07, 0x1b, rest).unwrap_or(rest.len() - 1);
            let closing = usize::from(rest[end] == 0x1b && rest.get(end + 1) == Some(&b'\\'));
            end + 1 + closing
        }
        Some(b'(' | b')') => rest.len().min(2),
        Some(byte) if (0x40..0x60).contains(byte) => 1,
        _ => 0,
    }
}

/// The printable ASCII byte that these hexadecimal digits spell.
fn hex(bytes: &[u8], from: usize, digits: usize) -> Option<u8> {
    let text = std::str::from_utf8(bytes.get(from..from + digits)?).ok()?;
    let all = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = if all { u32::from_str_radix(text, 16).ok()? } else { return None };
    u8::try_from(number).ok().filter(|byte| (0x20..0x7f).contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that colours, escapes and URL-encoding are seen through, one within the other too, and that places lead
    /// back.
    #[test]
    fn a_view_is_what_a_reader_sees() {
        for (line, seen) in [
            (&b"\x1b[36mpassword\x1b[0m=\x1b[1;35mx\x1b[0m"[..], &b"password=x"[..]),
            (br"\u001b[31mkey\x1b[0m", b"key"),
            (br#"{\"a\":\"b\\\"c\"}"#, br#"{"a":"b"c"}"#),
            (b"a%3Db%2fc 50%", b"a=b/c 50%"),
            (b"p\0a\0s\0", b"pas"),
            (br"p\u{200b}a\u200bs\u{ad}", b"pas"),
            ("p\u{200b}a\u{feff}s…█".as_bytes(), "pas…█".as_bytes()),
            (b"\x1b]8;;http://x\x07link\x1b]8;;\x1b\\", b"link"),
            (b"\x1b[", b""),
            (b"\x1b]", b""),
        ] {
            let views = View::of(line);
            let last = views.last().unwrap();
            assert_eq!(String::from_utf8_lossy(&last.bytes), String::from_utf8_lossy(seen));
        }
        let line = b"\x1b[36mab\x1b[0m";
        assert_eq!(View::of(line)[0].in_line(0, 2), (5, 7));
        assert!(View::of(b"plain 50% done").is_empty());
    }
}
