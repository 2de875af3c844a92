//! What the lines of a private key's block look like, whatever holds them: quotes, escapes of JSON, of `repr` and of
//! URLs, marks between the parts of a text, what a logger puts there.

/// A word of so many letters of base64 is of a key, whatever is beside it in its line.
const LONG_BYTES_MIN: usize = 40;
/// The same in a line of which the end was cut off, right behind the beginning of the block.
const CUT_BYTES_MIN: usize = 16;
/// A header of a block is not longer.
const HEADER_BYTES_MAX: usize = 120;
/// The names of headers that a block may begin with.
const HEADERS: [&[u8]; 6] = [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Charset:", b"Hash:"];
/// The end of a line in other spellings than a backslash.
const LINE_ENDS: [&[u8]; 8] = [b"%0A", b"%0a", b"%0D", b"%0d", b"&#10;", b"&#13;", b"&#xA;", b"&#xa;"];
/// Quotes and blanks in other spellings.
const MARKS: [&[u8]; 10] =
    [b"%20", b"%22", b"%27", b"%2C", b"%2c", b"&quot;", b"&#34;", b"&#39;", b"&apos;", b"&#x27;"];
/// Letters of base64 in other spellings, in capitals.
const LETTERS: [&[u8]; 3] = [b"%2B", b"%2F", b"%3D"];

/// What is between words: how many bytes, and whether the end of a line is among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Gap {
    length: usize,
    ends_line: bool,
}

/// The gap with which these bytes begin.
fn gap(bytes: &[u8]) -> Gap {
    let mut gap = Gap::default();
    loop {
        let rest = &bytes[gap.length..];
        let (length, ends_line) = match rest.first() {
            Some(b'\n' | b'\r') => (1, true),
            Some(byte) if byte.is_ascii_whitespace() || b"\"'`,;()[]{}<>".contains(byte) => (1, false),
            Some(b'\\') => escape(rest),
            Some(b'%' | b'&') => spelled(rest),
            _ => (0, false),
        };
        if length == 0 {
            return gap;
        }
        gap = Gap { length: gap.length + length, ends_line: gap.ends_line || ends_line };
    }
}

/// The gap between the parts of a text that are put together, with the marks that do it.
fn joint(bytes: &[u8]) -> Gap {
    let mut joint = gap(bytes);
    while joint.length > 0 && bytes[joint.length..].starts_with(b"+") {
        let after = gap(&bytes[joint.length + 1..]);
        if after.length == 0 {
            break;
        }
        joint = Gap { length: joint.length + 1 + after.length, ends_line: true };
    }
    joint
}

/// A backslash and what it escapes, in texts within texts several of them. One before a slash is of a word.
fn escape(bytes: &[u8]) -> (usize, bool) {
    let slashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
    let rest = &bytes[slashes..];
    let is_end =
        |letters: &[u8]| rest.get(..letters.len()).is_some_and(|it| it.eq_ignore_ascii_case(letters));
    match rest.first() {
        Some(b'n' | b'r') => (slashes + 1, true),
        Some(b't') => (slashes + 1, false),
        Some(b'/') => (0, false),
        _ if is_end(b"u000a") || is_end(b"u000d") => (slashes + 5, true),
        _ if is_end(b"x0a") || is_end(b"x0d") => (slashes + 3, true),
        _ if is_end(b"u0022") || is_end(b"u0027") => (slashes + 5, false),
        _ => (slashes, false),
    }
}

fn spelled(bytes: &[u8]) -> (usize, bool) {
    let of = |spellings: &[&[u8]]| spellings.iter().find(|it| bytes.starts_with(it)).map(|it| it.len());
    match (of(&LINE_ENDS), of(&MARKS)) {
        (Some(length), _) => (length, true),
        (None, Some(length)) => (length, false),
        (None, None) => (0, false),
    }
}

/// How many bytes the letter of base64 takes with which these bytes begin; 0: there is none.
fn letter(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=') => 1,
        Some(b'%') => {
            let is_letter = |it: &&&[u8]| bytes.get(..3).is_some_and(|three| three.eq_ignore_ascii_case(it));
            LETTERS.iter().find(is_letter).map_or(0, |it| it.len())
        }
        Some(b'\\') => {
            let slashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
            if bytes.get(slashes) == Some(&b'/') { slashes + 1 } else { 0 }
        }
        _ => 0,
    }
}

/// Of the letters of base64 with which these bytes begin how many bytes they take, and how many there are.
fn letters(bytes: &[u8]) -> (usize, usize) {
    let (mut length, mut count) = (0, 0);
    loop {
        match letter(&bytes[length..]) {
            0 => return (length, count),
            more => (length, count) = (length + more, count + 1),
        }
    }
}

/// The words of a line. What has neither letters nor digits is between words: the marks of a comment, of a table, of
/// parts that are put together.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    let words = std::iter::from_fn(move || {
        rest = &rest[gap(rest).length..];
        let mut length = 0;
        while length < rest.len() && gap(&rest[length..]).length == 0 {
            length += letter(&rest[length..]).max(1);
        }
        let (word, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        (!word.is_empty()).then_some(word)
    });
    words.filter(|word| word.iter().any(u8::is_ascii_alphanumeric))
}

/// A number for words that come after those of another such number: equal for equal words, whatever their digits are, as those of a time.
pub(super) fn print<'w>(before: u64, words: impl Iterator<Item = &'w [u8]>) -> u64 {
    // FNV-1a.
    const PRIME: u64 = 0x100_0000_01b3;
    let with = |print: u64, byte: u8| (print ^ u64::from(byte)).wrapping_mul(PRIME);
    words.fold(before, |print, word| {
        let mut last = b' ';
        word.iter().fold(with(print, b' '), |print, byte| {
            let shown = if byte.is_ascii_digit() { b'0' } else { *byte };
            let is_same_number = shown == b'0' && last == b'0';
            last = shown;
            if is_same_number { print } else { with(print, shown) }
        })
    })
}

/// A word without the marks that touch it: of a difference, of a comment, of a list, of a cut.
fn bare(word: &[u8]) -> &[u8] {
    let word = word.strip_suffix("…".as_bytes()).unwrap_or(word);
    let from = word.iter().position(|byte| !b"-+|>#*:.~$".contains(byte)).unwrap_or(word.len());
    let to = word.iter().rposition(|byte| !b"|:.".contains(byte)).map_or(from, |at| at + 1);
    &word[from..to]
}

fn is_base64(word: &[u8]) -> bool {
    letters(bare(word)).0 == bare(word).len()
}

/// Whether a word is a line of a key, wherever it is.
pub(super) fn is_key(word: &[u8]) -> bool {
    is_base64(word) && letters(bare(word)).1 >= LONG_BYTES_MIN
}

/// Whether a word may be the last line of a key, which is short, or its checksum.
pub(super) fn is_end_of_key(word: &[u8]) -> bool {
    !word.is_empty() && is_base64(word)
}

fn header(bytes: &[u8]) -> Option<usize> {
    HEADERS.iter().find(|name| bytes.starts_with(name)).map(|name| name.len())
}

/// Whether a line has a header of a block.
pub(super) fn has_header(line: &[u8]) -> bool {
    let is_before = |byte: &u8| b"-+|>#*".contains(byte);
    words(line).any(|word| {
        let from = word.iter().position(|byte| !is_before(byte)).unwrap_or(word.len());
        header(&word[from..]).is_some()
    })
}

/// Whether what is behind a part of a block, to the end of that line, may be of the block: nothing but marks, the key
/// itself, or what is behind the end of a line of the text that has the key. `is_first`: that part is the first line of
/// the block, behind which a text may end.
pub(super) fn may_continue(rest: &[u8], is_first: bool) -> bool {
    let is_mark = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let rest = &rest[..rest.len().min(HEADER_BYTES_MAX)];
    let mut behind = words(rest);
    let first = behind.next();
    let is_only = first.is_some_and(is_end_of_key) && behind.next().is_none();
    first.is_none_or(is_key)
        || is_only
        || gap(rest).ends_line
        || is_first && rest.first().is_some_and(is_mark)
        || has_header(rest)
}

/// How many bytes behind the first line of a key are of the key, where all of it is in one line whose end was cut off.
pub(super) fn cut_off(behind: &[u8]) -> usize {
    let (mut body, mut at, mut has_key) = (0, 0, false);
    loop {
        let before = joint(&behind[at..]);
        // Lines that are separate are looked at one by one.
        if behind[at..at + before.length].contains(&b'\n') {
            return body;
        }
        let rest = &behind[at + before.length..];
        if let Some(name) = header(rest).filter(|_| !has_key) {
            let value = rest[name..].iter().take(HEADER_BYTES_MAX);
            let end =
                value.take_while(|byte| !matches!(byte, b'\\' | b'%' | b'&' | b'"' | b'\'' | b'\n')).count();
            at += before.length + name + end;
            continue;
        }
        let (length, count) = letters(rest);
        let word = &rest[..length];
        let is_last = has_key && before.ends_line && count >= 4 && is_like_a_key(word);
        if count < CUT_BYTES_MIN && !is_last {
            return body;
        }
        at += before.length + length;
        (body, has_key) = (at, true);
    }
}

/// Whether a short word is like the last line of a key rather than a word of a sentence.
fn is_like_a_key(word: &[u8]) -> bool {
    word.ends_with(b"=")
        || super::value::mixed(word)
        || word.iter().skip(1).any(u8::is_ascii_uppercase) && word.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";

    /// Proves that lines of a key are known in whatever holds them, and lines of logs are none.
    #[test]
    fn lines_of_a_key_are_known() {
        for line in [
            format!("{LINE}\n"),
            format!("    \"{LINE}\\n\" +\n"),
            format!("+'{LINE}\\n'"),
            format!("| {LINE} |"),
            format!("{LINE}…"),
            format!("{{\"log\":\"{LINE}\\n\",\"stream\":\"stdout\"}}"),
            format!("10:00:00,123 INFO x: {LINE}"),
            format!("# {}", LINE.replace('A', "\\/")),
            format!("{}%0A", LINE.replace('A', "%2B")),
        ] {
            assert_eq!(words(line.as_bytes()).filter(|word| is_key(word)).count(), 1, "{line}");
        }
        for line in [
            "step 17 loss 0.31",
            "  File \"/opt/lib/python3.11/site-packages/torch/nn/modules/x.py\", line 3",
            "a + b | c",
        ] {
            assert!(!words(line.as_bytes()).any(is_key), "{line}");
        }
        assert_eq!(words(b"// \"a\\n\" + b\\\"c").collect::<Vec<_>>(), [&b"a"[..], b"b", b"c"]);
    }

    /// Proves what is of a key whose end was cut off, and that the words behind it are not.
    #[test]
    fn what_was_cut_off_is_of_the_key() {
        for between in [
            "", "\\n", "\\\\n", "\\\\\\\\n", "\\r\\n", "\\u000a", "%0A", "&#10;", " ", "\", \"", "\\n\" + \"",
        ] {
            for headers in ["", "Proc-Type: 4,ENCRYPTED<DEK-Info: AES-256-CBC,0A1B<<"] {
                if between.trim().is_empty() && !headers.is_empty() {
                    continue;
                }
                let key = format!("{between}{}{LINE}{between}{LINE}", headers.replace('<', between));
                assert_eq!(cut_off(format!("{key}… and more").as_bytes()), key.len(), "{key}");
                assert_eq!(cut_off(format!("{key} and more").as_bytes()), key.len(), "{key}");
            }
        }
        let next_line = "\nModuleNotFoundError: no module";
        for text in [" is how it begins", "", "\\n", "\" in a text", "\\nProc-Type: 4", next_line] {
            assert_eq!(cut_off(text.as_bytes()), 0, "{text}");
        }
        assert!(
            !may_continue(b" is how it begins", true) && may_continue(b"\\n\",\"stream\":\"stdout\"}", true)
        );
        assert!(may_continue(b"\", \"MIIE", true) && !may_continue(b"\", \"step\": 1}", false));
    }
}
