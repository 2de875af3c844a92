//! Tables of results, between bars, whose rows have no place.

use super::super::NAME_BYTES_MAX;
use super::super::lexical::commas;
use super::super::lexical::named::LineValues;
use super::super::lexical::names::{self, Meaning};
use super::cells::{Separator, cells_of};
use super::columns::Column;

/// The values of a row below a heading between bars with measures, and whether more rows may follow: it has numbers
/// only, or the part of the data before them, or a name and its value.
pub(super) fn row_of_results(columns: &[Column], line: &str) -> Option<(LineValues, bool)> {
    let cells = cells_of(line, Separator::Bar, false);
    let is_of_items = columns.first().is_some_and(|first| names::identifies(&first.name));
    if !line.starts_with('|') || cells.len() != columns.len() || is_of_items {
        return None;
    }
    let may_be = |(name, _): &(String, f64)| {
        !name.is_empty() && name.len() <= NAME_BYTES_MAX && names::may_be_metric(name)
    };
    if let ([_, _], [name, cell]) = (columns, &cells[..])
        && heads_list_of_results(columns)
    {
        let column = Column::of(name);
        let value = column.value(cell).filter(|_| is_result(&column.name, cell));
        let value = value.map(|value| (names::plain(column.name), value));
        let values = value.into_iter().filter(may_be).collect();
        return Some((LineValues { values, ..LineValues::default() }, true));
    }
    let part = cells.first().and_then(|cell| names::part_of_data(cell)).map(|part| part.unwrap_or("train"));
    let begin = usize::from(part.is_some());
    let columns = &columns[begin..];
    let numbers: Option<Vec<f64>> =
        columns.iter().zip(&cells[begin..]).map(|(column, cell)| column.value(cell)).collect();
    let titles = columns.iter().map(|column| column.name.clone());
    let values = titles.zip(numbers?).filter(may_be).collect();
    let mut named = LineValues { values, ..LineValues::default() };
    named.take_part(part);
    Some((named, part.is_some()))
}

/// Whether a line is a row between bars of a table of results that says nothing of what its rows are: it has a number
/// below a measure, and something else than the name of one in its first cell.
pub(super) fn is_row_of_anything(columns: &[Column], line: &str) -> bool {
    let cells = cells_of(line, Separator::Bar, false);
    let is_measured = |(column, cell): (&Column, &&str)| {
        names::meaning_of(&column.name) == Meaning::Measure && column.value(cell).is_some()
    };
    let first = cells.first().map(|cell| cell.to_lowercase()).unwrap_or_default();
    line.starts_with('|')
        && cells.len() == columns.len()
        && names::meaning_of(&first) == Meaning::Any
        && columns.iter().zip(&cells).skip(1).any(is_measured)
}

/// Whether a row of a name and a value is a result: whole numbers of names that are no measures are sizes, `| Total params | 11689512 |`.
pub(super) fn is_result(name: &str, cell: &str) -> bool {
    names::meaning_of(name) == Meaning::Measure || commas::pointed(cell).contains(['.', '%'])
}

/// Whether a heading of two columns is one of names and values of measures: `| Metric | Value |`.
pub(super) fn heads_list_of_results(columns: &[Column]) -> bool {
    let is_any = |column: &Column, known: &[&str]| known.contains(&column.name.as_str());
    matches!(columns, [first, second] if is_any(first, &["metric", "metrics", "measure"]) && is_any(second, &["value", "score", "result"]))
}

/// The group of the results that a line says follow: `bbox/` of `Evaluation results for bbox:`.
pub(super) fn results_of_line(line: &str) -> Option<String> {
    let (_, name) = line.trim_end().strip_suffix(':')?.rsplit_once(" results for ")?;
    let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX / 2 && !name.contains([' ', '/']);
    is_name.then(|| format!("{}/", name.to_lowercase()))
}

/// Whether the first column has the classes of an evaluation.
pub(super) fn is_of_classes(columns: &[Column]) -> bool {
    columns.first().is_some_and(|first| matches!(&*first.name, "class" | "classes"))
}
