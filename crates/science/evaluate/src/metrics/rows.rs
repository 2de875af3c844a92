//! The rows of an evaluation as its task needs them: from a table's columns to numbers without gaps.

use std::collections::HashMap;
use std::sync::Arc;

use trackway_data::ColumnType;
use trackway_data::model::{Cells, Frame, FrameColumn, MISSING_CODE};

use super::coverage::RowUse;
use super::resample::Units;
use crate::error::AssessError;

/// What is evaluated: rows, or groups of them (the documents of a query, the completions of a task).
#[derive(Debug, Clone)]
pub(crate) struct Items {
    /// For each item the (first) row of the table that it comes from.
    pub row_of_item: Vec<u32>,
    /// For each item the number of its group, and how many groups there are.
    pub groups: Option<(Vec<u32>, usize)>,
    pub content: Content,
    /// What became of each row of the table.
    pub rows: Arc<RowUse>,
}

/// Items before their rows are combined.
pub(super) struct Found {
    /// For each item the (first) row of the table that it comes from.
    pub row_of_item: Vec<u32>,
    pub content: Content,
    pub rows: RowUse,
}

/// What is known of each item.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Classes(Classes),
    Amounts(Amounts),
    /// Fractions and means that need only the sum of each item.
    Sums(Vec<Sum>),
}

/// Labels and predictions that are classes.
#[derive(Debug, Clone)]
pub(crate) struct Classes {
    /// Sorted.
    pub names: Arc<[String]>,
    /// The positive one of two.
    pub positive: Option<u32>,
    pub label: Vec<u32>,
    /// [`MISSING_CODE`] if there is none.
    pub prediction: Vec<u32>,
    /// Of the positive class: higher is more likely. NaN if there is none.
    pub score: Option<Vec<f64>>,
    /// For each class, with three or more of them.
    pub class_scores: Vec<Vec<f64>>,
    /// Whether the scores are probabilities.
    pub are_probabilities: bool,
}

/// Labels and predictions of a regression.
#[derive(Debug, Clone)]
pub(crate) struct Amounts {
    pub label: Vec<f64>,
    pub prediction: Vec<f64>,
    /// Predicted quantiles with the name of their level.
    pub quantiles: Vec<(String, Vec<f64>)>,
}

/// One metric by what each item adds above and below the line.
#[derive(Debug, Clone)]
pub(crate) struct Sum {
    pub name: String,
    pub above: Vec<f64>,
    pub below: Option<Vec<f64>>,
    pub is_share: bool,
    pub is_exponential: bool,
}

impl Items {
    pub(crate) fn len(&self) -> usize {
        self.row_of_item.len()
    }

    /// What is resampled.
    pub(crate) fn units(&self) -> Units<'_> {
        match &self.groups {
            None => Units::Items(self.len()),
            Some((of_item, groups)) => Units::Groups(of_item, *groups),
        }
    }

    /// The class that counts as positive, with two classes.
    pub(crate) fn positive_class(&self) -> Option<String> {
        let Content::Classes(rows) = &self.content else { return None };
        rows.positive.map(|positive| rows.names[positive as usize].clone())
    }

    /// Some of the items, in the order given.
    pub(crate) fn subset(&self, items: &[u32]) -> Self {
        let groups = self.groups.as_ref().map(|(of_item, _)| renumbered(&pick(of_item, items)));
        let content = match &self.content {
            Content::Classes(it) => Content::Classes(Classes {
                label: pick(&it.label, items),
                prediction: pick(&it.prediction, items),
                score: it.score.as_ref().map(|score| pick(score, items)),
                class_scores: it.class_scores.iter().map(|scores| pick(scores, items)).collect(),
                ..it.clone_shell()
            }),
            Content::Amounts(it) => Content::Amounts(Amounts {
                label: pick(&it.label, items),
                prediction: pick(&it.prediction, items),
                quantiles: it.quantiles.iter().map(|(name, it)| (name.clone(), pick(it, items))).collect(),
            }),
            Content::Sums(sums) => Content::Sums(sums.iter().map(|sum| sum.subset(items)).collect()),
        };
        Self { row_of_item: pick(&self.row_of_item, items), groups, content, rows: Arc::clone(&self.rows) }
    }
}

impl Classes {
    /// For each item its cell of the [confusion matrix](super::cells).
    pub(crate) fn cells(&self) -> Vec<u32> {
        let classes = self.names.len() as u32;
        let pairs = self.label.iter().zip(&self.prediction);
        pairs.map(|(label, prediction)| label * (classes + 1) + (*prediction).min(classes)).collect()
    }

    /// The same classes without rows.
    fn clone_shell(&self) -> Self {
        Self {
            names: Arc::clone(&self.names),
            positive: self.positive,
            label: Vec::new(),
            prediction: Vec::new(),
            score: None,
            class_scores: Vec::new(),
            are_probabilities: self.are_probabilities,
        }
    }
}

impl Sum {
    fn subset(&self, items: &[u32]) -> Self {
        Self {
            name: self.name.clone(),
            above: pick(&self.above, items),
            below: self.below.as_ref().map(|below| pick(below, items)),
            ..*self
        }
    }
}

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
pub(super) fn column<'f>(frame: &'f Frame, name: &str) -> Result<&'f FrameColumn, AssessError> {
    let index = frame.index_of(name).ok_or_else(|| AssessError::no_column(frame, name))?;
    Ok(&frame.columns()[index])
}

pub(super) fn numbers<'f>(frame: &'f Frame, name: &str) -> Result<&'f [f64], AssessError> {
    match &column(frame, name)?.cells {
        Cells::Numbers(values) => Ok(values),
        Cells::Categories { .. } => Err(AssessError::NoNumbers(name.to_owned())),
    }
}

/// The text of each different value, and for each row which one it has ([`MISSING_CODE`]: none).
pub(crate) fn values_of(column: &FrameColumn) -> (Vec<String>, Vec<u32>) {
    match &column.cells {
        Cells::Categories { codes, names } => (names.clone(), codes.clone()),
        Cells::Numbers(values) => {
            let mut names = Vec::new();
            let mut known: HashMap<u64, u32> = HashMap::new();
            let mut code = |value: &f64| {
                if value.is_nan() {
                    return MISSING_CODE;
                }
                *known.entry((value + 0.0).to_bits()).or_insert_with(|| {
                    names.push(number_text(*value, column.kind));
                    names.len() as u32 - 1
                })
            };
            let codes = values.iter().map(&mut code).collect();
            (names, codes)
        }
    }
}

fn number_text(value: f64, kind: ColumnType) -> String {
    match kind {
        ColumnType::Bool => (value != 0.0).to_string(),
        _ => (value + 0.0).to_string(),
    }
}

/// What is known of the classes beside the table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownClasses<'k> {
    /// The positive one of two.
    pub positive: Option<&'k str>,
    /// Classes that there are even where the table lacks them.
    pub names: &'k [String],
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
pub(super) fn whole_rows(frame: &Frame, names: &[&str]) -> Result<Vec<u32>, AssessError> {
    let columns = names.iter().map(|name| column(frame, name)).collect::<Result<Vec<_>, _>>()?;
    let is_usable = |cells: &Cells, row: usize| match cells {
        Cells::Numbers(values) => values[row].is_finite(),
        Cells::Categories { .. } => !cells.is_missing(row),
    };
    let is_whole = |row: &u32| columns.iter().all(|column| is_usable(&column.cells, *row as usize));
    Ok((0..frame.rows() as u32).filter(is_whole).collect())
}

impl Found {
    /// Each item is a row.
    pub(super) fn rows(frame: &Frame, row_of_item: Vec<u32>, content: Content) -> Self {
        let rows = RowUse::of(frame.rows(), row_of_item.iter().copied());
        Self { row_of_item, content, rows }
    }
}

impl Sum {
    pub(super) fn mean(name: &str, above: Vec<f64>) -> Self {
        Self { name: name.to_owned(), above, below: None, is_share: false, is_exponential: false }
    }

    pub(super) fn share(name: &str, above: Vec<f64>) -> Self {
        Self { is_share: true, ..Self::mean(name, above) }
    }
}
