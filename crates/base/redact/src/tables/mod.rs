//! Tables of text (CSV and TSV) with a header that names a column of secrets.

pub(super) mod grid;
pub(super) mod waiting;

use std::ops::Range;

use super::names;

/// What is between cells.
const MARKS: [u8; 3] = [b',', b';', b'\t'];
/// A longer line is not a header.
const HEADER_BYTES_MAX: usize = 4096;

/// The cells below the header in this line, if it is one, of the columns whose names are those of secrets.
pub(super) fn cells(bytes: &[u8], header: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    let head = &bytes[header.clone()];
    let mut found = Vec::new();
    if let Some(Header { mark, count, columns, prefix_bytes }) = header_of(head) {
        let prefix = &head[..prefix_bytes];
        let mut start = header.end + 1;
        while start < bytes.len() {
            let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |newline| start + newline);
            start += if has_prefix(&bytes[start..end], prefix) { prefix.len() } else { 0 };
            let row = split(&bytes[start..end], mark);
            // What is not a row of the table ends it.
            if row.len() != count {
                break;
            }
            let secret = columns.iter().map(|column| &row[*column]);
            found.extend(
                secret
                    .map(|cell| (start + cell.start, start + cell.end))
                    .filter(|(from, to)| from + 4 <= *to),
            );
            start = end + 1;
        }
    }
    found.into_iter()
}

/// A line that names the columns of a table.
struct Header {
    mark: u8,
    count: usize,
    /// Those of secrets.
    columns: Vec<usize>,
    /// What a logger or a difference puts before it, or a text that is quoted.
    prefix_bytes: usize,
}

/// How long what is before a header may be: a text that begins there, marks, a time with a comma.
fn prefixes(line: &[u8]) -> [usize; 3] {
    let behind =
        |marks: &[u8], line: &[u8]| line.iter().rposition(|byte| marks.contains(byte)).map_or(0, |at| at + 1);
    let first = line.iter().position(|byte| MARKS.contains(byte)).unwrap_or(line.len());
    let is_open = line.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
    let quoted = if is_open { behind(b"\"", line) } else { line.len() };
    [behind(b" +-:", &line[..first]), quoted, behind(b" ", line)]
}

/// Whether a line begins as another one does, but for digits: those of a time.
fn has_prefix(line: &[u8], prefix: &[u8]) -> bool {
    let is_same =
        |(left, right): (&u8, &u8)| left == right || left.is_ascii_digit() && right.is_ascii_digit();
    line.len() >= prefix.len() && line.iter().zip(prefix).all(is_same)
}

/// Whether this line is such a header.
pub(super) fn is_header(line: &[u8]) -> bool {
    header_of(line).is_some()
}

fn header_of(line: &[u8]) -> Option<Header> {
    (line.len() <= HEADER_BYTES_MAX).then_some(())?;
    prefixes(line).into_iter().find_map(|prefix_bytes| {
        let (mark, count, columns) = secret_columns(line.get(prefix_bytes..)?)?;
        Some(Header { mark, count, columns, prefix_bytes })
    })
}

/// The mark between cells, how many there are, and which are of secrets. A header has names in all cells and no blank
/// behind a mark, as a sentence has.
fn secret_columns(line: &[u8]) -> Option<(u8, usize, Vec<usize>)> {
    let mark = MARKS.into_iter().find(|mark| line.contains(mark))?;
    let cells = split(line, mark);
    let name = |cell: &Range<usize>| std::str::from_utf8(&line[cell.clone()]).unwrap_or_default();
    let is_name = |cell: &Range<usize>| {
        let name = name(cell);
        name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
            && name.chars().all(|letter| letter.is_alphanumeric() || "_-. ".contains(letter))
    };
    let secret = |(_, cell): &(usize, &Range<usize>)| names::is_secret(name(cell));
    let columns: Vec<usize> = cells.iter().enumerate().filter(secret).map(|(column, _)| column).collect();
    (!columns.is_empty() && cells.iter().all(is_name)).then_some((mark, cells.len(), columns))
}

/// The cells of a line without the quotes around them.
fn split(line: &[u8], mark: u8) -> Vec<Range<usize>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // The quote of the text that the table is in.
    let is_closed = line.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
    let end = line.iter().rposition(|byte| *byte == b'"').filter(|_| is_closed).unwrap_or(line.len());
    let line = &line[..end];
    let (mut cells, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, byte) in line.iter().enumerate() {
        quoted ^= *byte == b'"';
        if *byte == mark && !quoted {
            cells.push(unquoted(line, start..at));
            start = at + 1;
        }
    }
    cells.push(unquoted(line, start..line.len()));
    cells
}

fn unquoted(line: &[u8], cell: Range<usize>) -> Range<usize> {
    match &line[cell.clone()] {
        [b'"', .., b'"'] => cell.start + 1..cell.end - 1,
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that of a table only the cells of a column of secrets are found, quoted ones and those of later rows too,
    /// and that neither a sentence nor a column of counts is one.
    #[test]
    fn the_column_of_a_secret_is_found() {
        let found = |text: &str| -> Vec<String> {
            let end = text.find('\n').unwrap();
            cells(text.as_bytes(), 0..end).map(|(from, to)| text[from..to].to_owned()).collect()
        };
        assert_eq!(found("user,password,age\nana,hunter2,3\nbo,\"a,b c\",4\nend"), ["hunter2", "a,b c"]);
        assert_eq!(found("\"user\";\"db_password\"\r\nana;\"hunter2\"\r\n"), ["hunter2"]);
        assert_eq!(found("+password,user\n+hunter2,ana\n b"), ["hunter2"]);
        assert_eq!(found("10:00:01,1 INFO user,password\n10:00:02,3 INFO ana,hunter2\n b"), ["hunter2"]);
        assert_eq!(found("{\"text\": \"user,password\nana,hunter2\"}"), ["hunter2"]);
        for text in
            ["a user, a password\nx, hunter2\n", "id,token_count\n1,12345\n", "f(x,password)\ny,hunter2\n"]
        {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}
