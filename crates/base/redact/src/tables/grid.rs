//! Tables whose columns are between bars, as Markdown and databases print them, with a header that names a column of secrets.

use std::ops::Range;

use crate::names;

/// Neither a header nor a row is longer.
const LINE_BYTES_MAX: usize = 1024;
/// So many rows below a header are read.
const ROWS_MAX: usize = 64;

/// The cells below the header in this line, if it is one, of the columns whose names are those of secrets.
pub(crate) fn cells(bytes: &[u8], header: Range<usize>) -> Vec<Range<usize>> {
    let (count, columns) = secret_columns(&bytes[header.clone()]);
    let (mut found, mut start) = (Vec::new(), header.end + 1);
    for _ in 0..ROWS_MAX {
        if columns.is_empty() || start >= bytes.len() {
            break;
        }
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |newline| start + newline);
        let row = split(&bytes[start..end]);
        if !is_rule(&bytes[start..end]) {
            if row.len() != count {
                break;
            }
            found.extend(columns.iter().map(|column| start + row[*column].start..start + row[*column].end));
        }
        start = end + 1;
    }
    found.retain(|cell| !cell.is_empty());
    found
}

/// Whether this line is such a header.
pub(crate) fn is_header(line: &[u8]) -> bool {
    !secret_columns(line).1.is_empty()
}

/// Whether a line is between the rows of a table, or one of them.
pub(super) fn may_be_row(line: &[u8]) -> bool {
    line.contains(&b'|') || is_rule(line)
}

/// Whether a line is nothing but the rule below a header.
fn is_rule(line: &[u8]) -> bool {
    line.contains(&b'-') && line.iter().all(|byte| b"|-+:= \t\r".contains(byte))
}

/// How many cells a header has, and which are of secrets. All of them are names.
fn secret_columns(line: &[u8]) -> (usize, Vec<usize>) {
    if line.len() > LINE_BYTES_MAX || memchr::memchr(b'|', line).is_none() {
        return (0, Vec::new());
    }
    let cells = split(line);
    let name = |cell: &Range<usize>| std::str::from_utf8(&line[cell.clone()]).unwrap_or("0");
    let is_name = |name: &str| {
        name.is_empty()
            || name.starts_with(char::is_alphabetic)
                && name.chars().all(|letter| letter.is_alphanumeric() || "_-. ".contains(letter))
    };
    let named = cells.iter().filter(|cell| !cell.is_empty()).count();
    if named < 2 || !cells.iter().all(|cell| is_name(name(cell))) {
        return (0, Vec::new());
    }
    let is_secret =
        |(_, cell): &(usize, &Range<usize>)| names::is_secret(name(cell)) || names::may_be_secret(name(cell));
    (cells.len(), cells.iter().enumerate().filter(is_secret).map(|(column, _)| column).collect())
}

/// The cells between bars, without blanks, marks and quotes around them.
fn split(line: &[u8]) -> Vec<Range<usize>> {
    let is_around = |byte: &u8| b" \t\r`*+\"'".contains(byte);
    let mut start = 0;
    let bars = memchr::memchr_iter(b'|', line).chain([line.len()]);
    bars.map(|bar| {
        let cell = &line[start..bar];
        let from = cell.iter().take_while(|byte| is_around(byte)).count();
        let to = cell.iter().rposition(|byte| !is_around(byte)).map_or(from, |at| at + 1);
        let range = start + from..start + to;
        start = bar + 1;
        range
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the cells of a column of secrets are found below the rule, and that a table of a name and its value has none.
    #[test]
    fn cells_below_a_header_are_found() {
        let found = |text: &str| -> Vec<String> {
            let end = text.find('\n').unwrap();
            cells(text.as_bytes(), 0..end).into_iter().map(|cell| text[cell].to_owned()).collect()
        };
        assert_eq!(found("| a | password |\n|---|---|\n| x | `Zq7` |\n| y | b |\nend"), ["Zq7", "b"]);
        assert_eq!(found(" a | password\n---+----\n x | Zq7\n"), ["Zq7"]);
        assert!(found("| password | 7 |\n| a | Zq7 |\n").is_empty());
        assert!(is_header(b"| a | password |") && !is_header(b"| a | b |") && !is_header(b"password"));
    }
}
