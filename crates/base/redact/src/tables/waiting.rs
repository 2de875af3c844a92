//! Which lines of a stream stay in sight, since the value of a name in them may be in a later one.

use super::grid;

/// Lines of so many bytes together stay in sight.
const SIGHT_BYTES: usize = 512;

/// Where the last lines begin of which the next line may have the value: one that opens a value, and those below it that leave it open.
pub(crate) fn from(whole: &[u8], opens: fn(&[u8]) -> bool) -> usize {
    let (mut from, mut waiting) = (whole.len(), whole.len());
    while from > 0 {
        let start = memchr::memrchr(b'\n', &whole[..from - 1]).map_or(0, |newline| newline + 1);
        let line = &whole[start..from - 1];
        if whole.len() - start > SIGHT_BYTES {
            break;
        }
        if opens(line) || leaves_open(line) {
            waiting = start;
        } else if !is_inside(line) {
            break;
        }
        from = start;
    }
    waiting
}

/// Whether the value of what is in a line may be in the next one: an assignment or a document without its text, a name
/// of a pair, an open bracket, the header of a table.
fn leaves_open(line: &[u8]) -> bool {
    const CELLS: [&[u8]; 4] = [b"</th>", b"</td>", b"</dt>", b"</label>"];
    let line = line.trim_ascii();
    let word = |word: Option<&[u8]>| word.unwrap_or_default().to_owned();
    let last = word(line.rsplit(u8::is_ascii_whitespace).next());
    let mut words = line.split(u8::is_ascii_whitespace).map(|word| word.strip_prefix(b"+").unwrap_or(word));
    let first = word(words.find(|word| !matches!(*word, b"" | b"-" | b"{")));
    let is_name = first.ends_with(b":")
        && matches!(first.trim_ascii_end(), b"name:" | b"key:" | b"\"name\":" | b"\"key\":" | b"'name':");
    let count = |marks: &[u8]| line.iter().filter(|byte| marks.contains(byte)).count();
    line.ends_with(b"=")
        || last.starts_with(b"<<")
        || (last.len() <= 3 && matches!(last.first(), Some(b'|' | b'>')))
        || is_name
        || first == b"?"
        || CELLS.iter().any(|end| line.ends_with(end))
        || count(b"([{") > count(b")]}")
        || memchr::memmem::find(line, b": #").is_some()
        || grid::is_header(line)
}

/// Whether a line may be inside of what an earlier one has opened: to the right of it, an item, a row, or a part of a list.
fn is_inside(line: &[u8]) -> bool {
    let is_item = || {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.rev().nth(1) == Some(b"-")
    };
    let trimmed = line.trim_ascii_end();
    let text = line.strip_prefix(b"+").unwrap_or(line);
    matches!(text.first(), Some(b' ' | b'\t' | b'"' | b'\''))
        || trimmed.ends_with(b",")
        || grid::may_be_row(line)
        || is_item()
}
