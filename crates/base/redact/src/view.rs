//! A line as a reader sees it: without colour codes and NUL, with the escapes of JSON, `repr` and URLs resolved.
//!
//! A secret is looked for in the line as it is and in its views; its place in a view gives its place in the line.

/// Escapes within escapes are resolved so often: JSON in a JSON string, printed as a `repr`.
const ROUNDS_MAX: usize = 3;

/// A line with a place in the original for each of its bytes.
pub(super) struct View {
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
pub(super) fn first_escape(bytes: &[u8]) -> Option<usize> {
    let is_escape = |at: &usize| bytes[*at] != b'%' || hex(&bytes[*at..], 1, 2).is_some();
    let first = memchr::memchr3_iter(0x1b, b'\\', b'%', bytes).find(is_escape);
    memchr::memchr(0, &bytes[..first.unwrap_or(bytes.len())]).or(first)
}

/// One round of resolving; `None` when there is nothing to resolve.
fn resolve(line: &[u8]) -> Option<View> {
    if first_escape(line).is_none() || u32::try_from(line.len()).is_err() {
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
        0x1b => (None, 1 + control(&bytes[1..])),
        b'%' => hex(bytes, 1, 2).map_or((Some(b'%'), 1), |byte| (Some(byte), 3)),
        b'\\' => backslash(bytes),
        byte => (Some(byte), 1),
    }
}

fn backslash(bytes: &[u8]) -> (Option<u8>, usize) {
    // Escape characters that were themselves escaped: `\x1b[31m`, `\u001b[31m`, `\033[31m`, `\e[31m`.
    for spelled in [&b"\\x1b"[..], b"\\x1B", b"\\u001b", b"\\u001B", b"\\033", b"\\e["] {
        if bytes.starts_with(spelled) {
            let length = if spelled == b"\\e[" { 2 } else { spelled.len() };
            return (None, length + control(&bytes[length..]));
        }
    }
    match bytes.get(1) {
        Some(b'n' | b'r' | b't') => (Some(b' '), 2),
        Some(byte @ (b'"' | b'\'' | b'\\' | b'/')) => (Some(*byte), 2),
        Some(b'x') => hex(bytes, 2, 2).map_or((Some(b'\\'), 1), |byte| (Some(byte), 4)),
        Some(b'u') => hex(bytes, 2, 4).map_or((Some(b'\\'), 1), |byte| (Some(byte), 6)),
        _ => (Some(b'\\'), 1),
    }
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
