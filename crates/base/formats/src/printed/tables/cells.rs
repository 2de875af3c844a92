//! The cells of a line of a table, and what is between them.

use std::borrow::Cow;

use super::super::VALUES_MAX;
use super::super::lexical::names;
use super::super::lexical::tokens::number_of;
use super::columns::Column;

/// Columns with these names are the step of a row; the first of them that a table has counts.
pub(super) const STEP_COLUMNS: [&str; 14] = [
    "#", "step", "global_step", "iteration", "iter", "round", "it", "counter", "num_updates",
    "total_train_updates", "updates", "num_timesteps", "total_timesteps", "gen",
];
pub(super) const EPOCH_COLUMNS: [&str; 2] = ["epoch", "e"];
pub(super) const COLUMNS_MAX: usize = 32;
/// So many columns has a heading at least that has one blank between two of them.
const SINGLE_BLANKS_MIN: usize = 3;
/// Bars that are drawn between the cells of a row.
pub(super) const DRAWN_BARS: [char; 3] = ['│', '┃', '║'];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    #[default]
    Blanks,
    Comma,
    Bar,
}

/// What is between the columns of a heading, if the line may be one.
pub(super) fn separator_of(line: &str) -> Option<Separator> {
    let is_word = |cell: &str| !cell.trim().is_empty() && !cell.trim().contains(' ');
    if line.contains('|') {
        Some(Separator::Bar)
    } else if line.contains("  ") || line.contains('\t') {
        Some(Separator::Blanks)
    } else if line.contains(',') && line.split(',').all(is_word) {
        Some(Separator::Comma)
    } else {
        let first = line.split(' ').next().unwrap_or_default();
        let is_place = STEP_COLUMNS.iter().chain(&EPOCH_COLUMNS).any(|name| name.eq_ignore_ascii_case(first));
        (is_place && line.split(' ').count() >= SINGLE_BLANKS_MIN).then_some(Separator::Blanks)
    }
}

/// The cells of a line. Headings of columns may have several words, which one blank is between.
pub(super) fn cells_of(line: &str, separator: Separator, is_heading: bool) -> Vec<&str> {
    let cells: Vec<&str> = match separator {
        Separator::Comma => line.split(',').collect(),
        Separator::Bar => line.trim_matches('|').split('|').collect(),
        Separator::Blanks if is_heading => line.split("  ").flat_map(|part| part.split('\t')).collect(),
        Separator::Blanks => line.split_whitespace().take(COLUMNS_MAX + 1).collect(),
    };
    let cells = cells.into_iter().map(str::trim);
    match separator {
        Separator::Blanks => cells.filter(|cell| !cell.is_empty()).collect(),
        _ => cells.collect(),
    }
}

/// The columns that the cells of a heading have. YOLO's `P` is beside its `R`.
pub(super) fn columns_of(cells: Vec<&str>) -> Vec<Column> {
    let mut columns: Vec<Column> = cells.into_iter().map(Column::of).collect();
    if columns.iter().any(|column| column.name == "recall")
        && let Some(precision) = columns.iter_mut().find(|column| column.name == "p")
    {
        precision.name = "precision".into();
    }
    columns
}

/// Numbers columns that have the name of one before: `Fitness` of the mean and of the best one.
pub(super) fn number_equal(columns: &mut [Column]) {
    for at in 1..columns.len() {
        let count = columns[..at].iter().filter(|column| column.name == columns[at].name).count();
        if count > 0 && !columns[at].name.is_empty() {
            columns[at].name = format!("{}_{}", columns[at].name, count + 1);
        }
    }
}

/// The cells of a row between blanks, in which lists are in brackets: `1000  [8.4e-03, 8.5e-02]  []`.
pub(super) fn cells_with_lists(line: &str) -> Vec<&str> {
    let (mut cells, mut rest) = (Vec::new(), line.trim());
    while !rest.is_empty() && cells.len() <= COLUMNS_MAX {
        let end = match rest.starts_with('[') {
            true => rest.find(']').map_or(rest.len(), |at| at + 1),
            false => rest.find(|letter: char| letter.is_whitespace() || letter == '[').unwrap_or(rest.len()),
        };
        let (cell, behind) = rest.split_at(end);
        cells.push(cell);
        rest = behind.trim_start();
    }
    cells
}

/// The values of a list in a cell, each with its place in its name unless it is alone. A part that is not a number leaves all out.
pub(super) fn list_of(name: &str, cell: &str) -> Option<Vec<(String, f64)>> {
    let inside = cell.strip_prefix('[')?.strip_suffix(']')?.trim();
    let numbers: Option<Vec<f64>> =
        inside.split([',', ' ']).filter(|part| !part.is_empty()).take(VALUES_MAX).map(number_of).collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty() && names::may_be_metric(name))?;
    let name = names::plain(name.to_owned());
    Some(match numbers[..] {
        [number] => vec![(name, number)],
        _ => numbers.into_iter().enumerate().map(|(at, number)| (format!("{name}_{at}"), number)).collect(),
    })
}

/// `train_loss 0.5`: what has a number behind its name does not name a column.
pub(super) fn has_value_behind_name(cell: &str) -> bool {
    let begins_with_digit = |word: &str| {
        word.trim_start_matches(['+', '-', '.']).starts_with(|letter: char| letter.is_ascii_digit())
    };
    cell.split_whitespace().skip(1).any(|word| begins_with_digit(word) || number_of(word).is_some())
}

/// A row of a table with the bars that others write: `│ loss │ 0.5 │`, `┃ Epoch ┃ Loss ┃`.
pub(super) fn with_plain_bars(line: &str) -> Cow<'_, str> {
    match line.starts_with(DRAWN_BARS) && line.ends_with(DRAWN_BARS) {
        true => Cow::Owned(line.replace(DRAWN_BARS, "|")),
        false => Cow::Borrowed(line),
    }
}

pub(super) fn is_rule(line: &str) -> bool {
    line.chars().all(|letter| matches!(letter, '-' | '=' | '+' | '|' | ':' | ' '))
}

/// A rule of a table whose bars are drawn: `├──────┼──────┤`.
pub(super) fn is_drawn_rule(line: &str) -> bool {
    line.chars().all(|letter| ('\u{2500}'..='\u{257f}').contains(&letter))
}
