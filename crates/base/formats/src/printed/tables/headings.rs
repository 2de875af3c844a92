//! The headings of tables whose rows have names: what the rows are, and what is in the columns behind their names.

use super::super::lexical::names::{self, Meaning};
use super::cells::{COLUMNS_MAX, DRAWN_BARS, EPOCH_COLUMNS, STEP_COLUMNS, has_value_behind_name};
use super::columns::Column;

/// A word that heads the names of rows is not longer.
const KIND_BYTES_MAX: usize = 24;
/// So many columns of measures has a heading at least that does not say what its rows are.
const UNNAMED_COLUMNS_MIN: usize = 2;
/// The columns of scikit-learn's report that the names of its rows, of classes and means, are beside.
const OF_REPORT: [&str; 3] = ["precision", "recall", "f1-score"];
/// What is in the columns behind the names of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Values, of a measure in each column.
    Measures,
    /// The name of a measure, its value and perhaps its error: `| arc_easy | acc | 0.62 | ± | 0.01 |`.
    Pairs { metric: usize, value: usize, error: Option<usize> },
    /// Names of measures take the place of those of rows, and their values are in the only column: `metric  value`.
    List,
    /// The same with a column for each of several models or folds: `metric  resnet  vit`.
    Transposed,
}

/// The cells of a line that may head named rows.
pub(super) struct Heading {
    titles: Vec<Column>,
    /// What the rows are. Empty: the first cell does not say.
    pub kind: String,
    has_bars: bool,
}

impl Heading {
    /// The heading that cells may be: names alone, of which none is that of a place.
    pub fn of(cells: &[&str], has_bars: bool) -> Option<Self> {
        let first = Column::of(cells.first()?);
        let kind = if names::heads_rows(&first.name) { first.name.clone() } else { String::new() };
        // Of tables of classes that have blanks between their cells, only the row of all classes is read.
        let is_other = !has_bars && matches!(&*kind, "class" | "classes");
        let is_of_measures = names::heads_measures(&first.name);
        let may_be_first = match has_bars {
            true => first.name.is_empty() || !kind.is_empty() || (is_of_measures && cells.len() > 2),
            false => !kind.is_empty() || names::heads_measures(&first.name) || is_measure(&first),
        };
        if is_other || !may_be_first {
            return None;
        }
        let is_title = |cell: &&str| cell.is_empty() || cell.contains(char::is_alphabetic);
        let titles: Vec<Column> = cells.iter().map(|cell| Column::of(cell)).collect();
        let is_heading = (2..=COLUMNS_MAX).contains(&titles.len())
            && cells.iter().all(|cell| {
                is_title(cell) && (!has_value_behind_name(cell) || (is_of_measures && is_numbered(cell)))
            })
            && !titles.iter().any(is_place);
        is_heading.then_some(Self { titles, kind, has_bars })
    }

    /// The columns behind the names of the rows and what is in them, if these show what was measured.
    pub fn columns(&self) -> Option<(Vec<Column>, Layout)> {
        let Self { titles, kind, has_bars } = self;
        let is_list = !has_bars
            && matches!(&titles[..], [first, second] if names::heads_measures(&first.name) && heads_values(&second.name));
        let has_names = *has_bars || !kind.is_empty();
        if self.is_transposed() {
            return Some((titles[1..].to_vec(), Layout::Transposed));
        }
        let columns = titles[usize::from(has_names || is_list)..].to_vec();
        if is_list {
            return Some((columns, Layout::List));
        }
        if let Some(pairs) = pairs_of(&columns).filter(|_| !kind.is_empty()) {
            return Some((columns, pairs));
        }
        let measures = columns.iter().filter(|column| is_measure(column)).count();
        let has_measures_only = measures == columns.len() && measures >= UNNAMED_COLUMNS_MIN;
        let is_table = has_measures_only || self.is_report() || (has_names && measures > 0);
        is_table.then_some((columns, Layout::Measures))
    }

    /// Whether measures are below its first cell, and models or folds beside it. One between bars of parts of the data is another.
    fn is_transposed(&self) -> bool {
        let [first, others @ ..] = &self.titles[..] else { return false };
        let is_part = |column: &Column| names::part_of_data(&column.name).is_some();
        let is_name = |column: &Column| {
            !column.name.is_empty() && !is_measure(column) && !names::heads_measures(&column.name)
        };
        names::heads_measures(&first.name)
            && others.len() > 1
            && others.iter().all(is_name)
            && !(self.has_bars && others.iter().any(is_part))
    }

    /// Whether it is the one of scikit-learn's report.
    pub fn is_report(&self) -> bool {
        !self.has_bars && self.titles.iter().map(|column| &*column.name).take(3).eq(OF_REPORT)
    }
}

/// Whether a line without numbers may be the heading of a table of named rows: its first cell says what the rows are, or
/// is a measure or the word for one.
pub(in crate::printed) fn may_head_named_rows(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    if heads_index_of_two(line) {
        return true;
    }
    if DRAWN_BARS.iter().any(|bar| line.starts_with(bar.encode_utf8(&mut [0; 4]).as_bytes())) {
        return true;
    }
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(0);
    let is_cell =
        line.get(end + 1).is_some_and(|next| matches!(next, b' ' | b'\t')) || line.get(end) == Some(&b'\t');
    let word = Some(&line[..end]).filter(|word| is_cell && !word.is_empty() && word.len() <= KIND_BYTES_MAX);
    word.and_then(|word| std::str::from_utf8(word).ok()).is_some_and(|word| {
        let word = word.to_lowercase();
        names::heads_rows(&word) || names::heads_measures(&word) || names::meaning_of(&word) != Meaning::Any
    })
}

/// How many rows the cells of a heading have beside one another: the same names again and again.
pub(super) fn rows_beside(cells: &[&str]) -> usize {
    let Some((first, rest)) = cells.split_first().filter(|(first, _)| !first.is_empty()) else { return 1 };
    let width = rest.iter().position(|cell| cell == first).map_or(cells.len(), |at| at + 1);
    let is_repeated = width > 1 && cells.len().is_multiple_of(width);
    match is_repeated && cells.chunks_exact(width).all(|row| row == &cells[..width]) {
        true => cells.len() / width,
        false => 1,
    }
}

/// Whether a line has two words alone that say what rows are, as pandas names an index of two below its heading.
fn heads_index_of_two(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_kind = |word: &[u8]| {
        word.len() <= KIND_BYTES_MAX
            && std::str::from_utf8(word).is_ok_and(|word| names::heads_rows(&word.to_lowercase()))
    };
    match (words.next(), words.next(), words.next()) {
        (Some(first), Some(second), None) => is_kind(first) && is_kind(second),
        _ => false,
    }
}

/// The cells of a line, also of one with blanks or tabs between them.
pub(super) fn cells_between(line: &str, has_bars: bool) -> Vec<&str> {
    match has_bars {
        true => {
            let inside = line.strip_prefix('|').unwrap_or(line);
            let inside = inside.strip_suffix('|').unwrap_or(inside);
            inside.split('|').take(COLUMNS_MAX + 1).map(str::trim).collect()
        }
        false => {
            let cells = line.split("  ").flat_map(|part| part.split('\t')).map(str::trim);
            cells.filter(|cell| !cell.is_empty()).take(COLUMNS_MAX + 1).collect()
        }
    }
}

/// Where the names of measures, their values and errors are, if a heading has them.
fn pairs_of(columns: &[Column]) -> Option<Layout> {
    let at = |is_it: &dyn Fn(&str) -> bool| columns.iter().position(|column| is_it(&column.name));
    let metric = at(&names::heads_measures)?;
    let value = at(&heads_values).filter(|value| *value > metric)?;
    let error = at(&|name: &str| matches!(name, "stderr" | "std_error")).filter(|error| *error > value);
    Some(Layout::Pairs { metric, value, error })
}

/// Whether a cell has one of several by its number: `fold 1`.
fn is_numbered(cell: &str) -> bool {
    let parts = cell.rsplit_once(' ');
    parts.is_some_and(|(kind, number)| {
        names::heads_rows(&kind.to_lowercase()) && number.bytes().all(|letter| letter.is_ascii_digit())
    })
}

pub(super) fn heads_values(name: &str) -> bool {
    matches!(name, "value" | "values" | "score" | "result")
}

pub(super) fn is_measure(column: &Column) -> bool {
    let name = column.name.as_str();
    let is_any = matches!(name, "precision" | "map") || is_average_precision(name);
    is_any || names::meaning_of(name) == Meaning::Measure
}

/// `ap`, `ap50`, `aps`: the average precision at an overlap or of a size.
pub(super) fn is_average_precision(name: &str) -> bool {
    let behind = name.strip_prefix("ap");
    behind.is_some_and(|behind| {
        matches!(behind, "" | "s" | "m" | "l") || behind.bytes().all(|letter| letter.is_ascii_digit())
    })
}

/// Whether a column has the step or epoch of each row.
pub(super) fn is_place(column: &Column) -> bool {
    let name = column.name.as_str();
    STEP_COLUMNS.contains(&name) || EPOCH_COLUMNS.contains(&name) || name == "batch"
}
