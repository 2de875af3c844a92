//! Tables whose columns are parts of the data: `| Metric | Train | Val |`.

use super::super::NAME_BYTES_MAX;
use super::super::lexical::named::LineValues;
use super::super::lexical::names;
use super::LABELS_MAX;
use super::cells::COLUMNS_MAX;
use super::columns::{Column, NAME_WORDS_MAX};

/// The name of a part of the data is not longer.
const PART_BYTES_MAX: usize = 10;
/// The prefixes of the parts of the data, two or more of which are all that a heading has: `Training |  Validation`,
/// `| Metric | Train | Val |`.
pub(super) fn parts_in(message: &str) -> Vec<&'static str> {
    let (cells, _) = cells_of_parts(message);
    let is_part = |cell: &&str| names::part_of_data(cell).is_some();
    // What the rows have in their first cells.
    let begin = usize::from(cells.first().is_some_and(|cell| !is_part(cell) && message.contains('|')));
    let parts: Option<Vec<&str>> = cells[begin.min(cells.len())..]
        .iter()
        .map(|cell| names::part_of_data(cell).map(|part| part.unwrap_or("train")))
        .collect();
    let is_heading = |parts: &Vec<&str>| {
        (2..=LABELS_MAX).contains(&parts.len()) && parts.iter().any(|part| *part != parts[0])
    };
    parts.filter(is_heading).unwrap_or_default()
}

/// Whether a line ends as a heading of parts of the data does, with one of them or a bar behind it.
pub(in crate::printed) fn ends_with_part(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let line = line.strip_suffix("│".as_bytes()).or(line.strip_suffix(b"|")).unwrap_or(line).trim_ascii_end();
    let begin = line.iter().rposition(|byte| matches!(byte, b' ' | b'|' | b'\t')).map_or(0, |at| at + 1);
    let is_long = line.len() - begin > PART_BYTES_MAX;
    !is_long && std::str::from_utf8(&line[begin..]).is_ok_and(|word| names::part_of_data(word).is_some())
}

/// The cells of a line between bars or blanks, without empty ones at its ends, and whether they are between bars.
fn cells_of_parts(message: &str) -> (Vec<&str>, bool) {
    let has_bars = message.contains('|');
    let cells = match has_bars {
        true => message.trim().trim_matches('|').split('|').map(str::trim).take(COLUMNS_MAX).collect(),
        false => message.split_whitespace().take(COLUMNS_MAX).collect(),
    };
    (cells, has_bars)
}

pub(super) fn row_of_parts(parts: &[&'static str], message: &str) -> Option<LineValues> {
    let (cells, has_bars) = cells_of_parts(message);
    let count = cells
        .len()
        .checked_sub(parts.len())
        .filter(|count| if has_bars { *count == 1 } else { *count > 0 })?;
    let (words, cells) = cells.split_at(count);
    let column = Column::of_row(&words.join(" ").to_lowercase());
    let name = names::plain(column.name.clone());
    let is_name = name.starts_with(char::is_alphabetic)
        && words.len() <= NAME_WORDS_MAX
        && name.len() <= NAME_BYTES_MAX / 2
        && !name.contains([':', '='])
        && names::may_be_metric(&name);
    let is_empty = |cell: &str| matches!(cell, "N/A" | "n/a" | "-" | "--" | "None" | "");
    let mut values = Vec::new();
    for (part, cell) in parts.iter().zip(cells) {
        match column.value(cell) {
            Some(value) => values.push((names::prefixed(part, &name), value)),
            None if is_empty(cell) => {}
            None => return None,
        }
    }
    // A table of how large the parts are has whole numbers.
    let has_decimals = cells.iter().any(|cell| cell.contains(['.', 'n']));
    Some(LineValues { values, ..LineValues::default() }).filter(|_| is_name && has_decimals)
}
