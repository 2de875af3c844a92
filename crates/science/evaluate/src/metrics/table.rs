//! Columns of a table as values, and rows that have them.

use std::collections::HashMap;

use trackway_data::model::{Cells, Frame, FrameColumn, MISSING_CODE};

use crate::error::{AssessError, Result};
pub(crate) use crate::spellings::values::values_of;

pub(super) fn pick<T: Copy>(values: &[T], items: &[u32]) -> Vec<T> {
    items.iter().map(|item| values[*item as usize]).collect()
}

/// Numbers from 0 on without gaps, and how many there are.
pub(super) fn renumbered<K: std::hash::Hash + Eq + Copy>(keys: &[K]) -> (Vec<u32>, usize) {
    let mut known = HashMap::new();
    let mut number = |key: &K| {
        let next = known.len() as u32;
        *known.entry(*key).or_insert(next)
    };
    let numbers = keys.iter().map(&mut number).collect();
    (numbers, known.len())
}

/// A table's column, by a role's name.
pub(super) fn column<'f>(frame: &'f Frame, name: &str) -> Result<&'f FrameColumn> {
    let index = frame.index_of(name).ok_or_else(|| AssessError::no_column(frame, name))?;
    Ok(&frame.columns()[index])
}

pub(super) fn numbers<'f>(frame: &'f Frame, name: &str) -> Result<&'f [f64]> {
    match &column(frame, name)?.cells {
        Cells::Numbers(values) => Ok(values),
        Cells::Categories { .. } => Err(AssessError::NoNumbers(name.to_owned())),
    }
}

/// A column of answers: a text without a letter and a number that is not finite are none, unless a label is the same
/// text.
pub(super) fn answers_of(column: &FrameColumn, labels: &[String]) -> (Vec<String>, Vec<u32>) {
    let (names, mut codes) = values_of(column);
    let is_number = matches!(column.cells, Cells::Numbers(_));
    let is_none = |name: &String| match is_number {
        true => name.parse::<f64>().is_ok_and(|number| !number.is_finite()),
        false => name.trim().is_empty() && !labels.contains(name),
    };
    let none: Vec<bool> = names.iter().map(is_none).collect();
    if none.contains(&true) {
        let is_gone = |code: &u32| none.get(*code as usize).copied().unwrap_or(false);
        codes.iter_mut().filter(|code| is_gone(code)).for_each(|code| *code = MISSING_CODE);
    }
    (names, codes)
}

/// The numbers that are finite, NaN for the others.
pub(super) fn finite(mut values: Vec<f64>) -> Vec<f64> {
    values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = f64::NAN);
    values
}

/// Rows with a usable value in each of these columns: numbers must be finite.
pub(super) fn whole_rows(frame: &Frame, names: &[&str]) -> Result<Vec<u32>> {
    let columns = names.iter().map(|name| column(frame, name)).collect::<Result<Vec<_>, _>>()?;
    let is_usable = |cells: &Cells, row: usize| match cells {
        Cells::Numbers(values) => values[row].is_finite(),
        Cells::Categories { .. } => !cells.is_missing(row),
    };
    let is_whole = |row: &u32| columns.iter().all(|column| is_usable(&column.cells, *row as usize));
    Ok((0..frame.rows() as u32).filter(is_whole).collect())
}
