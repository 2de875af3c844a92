//! The rows of an evaluation as its task needs them: from a table's columns to numbers without gaps.

use std::collections::HashMap;
use std::sync::Arc;

use trackway_data::ColumnType;
use trackway_data::model::{Cells, Frame, FrameColumn, MISSING_CODE};

use super::class_rows::classes;
use super::ranking::documents;
use super::resample::Units;
use super::texts::{completions, exact_matches, words};
use crate::assess::AssessError;
use crate::{Columns, Task};

/// What is judged: rows, or what several rows are about (the query of documents, the task of completions).
#[derive(Debug, Clone)]
pub(crate) struct Items {
    /// For each item the (first) row of the table that it comes from.
    pub row_of_item: Vec<u32>,
    /// For each item the number of its group, and how many groups there are.
    pub groups: Option<(Vec<u32>, usize)>,
    pub content: Content,
}

/// What is known of each item.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Classes(Classes),
    Amounts(Amounts),
    /// Shares and means that need nothing but what each item adds.
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
    pub prediction: Vec<u32>,
    /// Of the positive class: more is surer.
    pub score: Option<Vec<f64>>,
    /// For each class, with three or more of them.
    pub class_scores: Vec<Vec<f64>>,
    /// Whether the scores are probabilities.
    pub are_probabilities: bool,
}

/// Labels and predictions that are amounts.
#[derive(Debug, Clone)]
pub(crate) struct Amounts {
    pub label: Vec<f64>,
    pub prediction: Vec<f64>,
    /// Predicted quantiles with the name of their share.
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

    /// What is drawn when items are drawn again.
    pub(crate) fn units(&self) -> Units<'_> {
        match &self.groups {
            None => Units::Items(self.len()),
            Some((of_item, groups)) => Units::Groups(of_item, *groups),
        }
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
        Self { row_of_item: pick(&self.row_of_item, items), groups, content }
    }
}

impl Classes {
    /// For each item its place in a confusion matrix: label × classes + prediction.
    pub(crate) fn cells(&self) -> Vec<u32> {
        let classes = self.names.len() as u32;
        self.label
            .iter()
            .zip(&self.prediction)
            .map(|(label, prediction)| label * classes + prediction)
            .collect()
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
fn renumbered<K: std::hash::Hash + Eq + Copy>(keys: &[K]) -> (Vec<u32>, usize) {
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

/// A table as the items of a task. Rows that lack something are left out; the items tell which are there.
pub(crate) fn items(
    frame: &Frame,
    task: Task,
    columns: &Columns,
    known: KnownClasses<'_>,
) -> Result<Items, AssessError> {
    let (rows, content) = match task {
        Task::Classification => classes(frame, columns, known)?,
        Task::Regression => amounts(frame, columns)?,
        Task::LanguageModel => language(frame, columns)?,
        Task::Transcription => words(frame, columns)?,
        Task::Ranking => documents(frame, columns)?,
    };
    let groups = match &columns.group {
        None => None,
        Some(name) => {
            column(frame, name)?;
            let keys = frame.group_keys(frame.index_of(name).expect("the column is there"));
            Some(renumbered(&pick(&keys, &rows)))
        }
    };
    if rows.is_empty() {
        return Err(AssessError::NoRows);
    }
    Ok(Items { row_of_item: rows, groups, content })
}

/// Rows with something in each of these columns.
pub(super) fn whole_rows(frame: &Frame, names: &[&str]) -> Result<Vec<u32>, AssessError> {
    let columns = names.iter().map(|name| column(frame, name)).collect::<Result<Vec<_>, _>>()?;
    let is_whole = |row: &u32| columns.iter().all(|column| !column.cells.is_missing(*row as usize));
    Ok((0..frame.rows() as u32).filter(is_whole).collect())
}

fn amounts(frame: &Frame, columns: &Columns) -> Result<(Vec<u32>, Content), AssessError> {
    let label = columns.label.as_deref().ok_or(AssessError::NoColumnFor("label"))?;
    let prediction = columns.prediction.as_deref().ok_or(AssessError::NoColumnFor("prediction"))?;
    let mut needed = vec![label, prediction];
    needed.extend(columns.quantiles.values().map(String::as_str));
    let rows = whole_rows(frame, &needed)?;
    let quantile =
        |(share, name): (&String, &String)| Ok((share.clone(), pick(numbers(frame, name)?, &rows)));
    let quantiles = columns.quantiles.iter().map(quantile).collect::<Result<_, AssessError>>()?;
    let (label, prediction) = (numbers(frame, label)?, numbers(frame, prediction)?);
    let content = Amounts { label: pick(label, &rows), prediction: pick(prediction, &rows), quantiles };
    Ok((rows, Content::Amounts(content)))
}

/// Losses, exact matches or completions: whichever columns there are.
fn language(frame: &Frame, columns: &Columns) -> Result<(Vec<u32>, Content), AssessError> {
    if let Some(correct) = &columns.correct {
        return completions(frame, columns, correct);
    }
    let (answers, loss) =
        (columns.label.as_deref().zip(columns.prediction.as_deref()), columns.loss.as_deref());
    let mut needed: Vec<&str> =
        answers.iter().flat_map(|(label, prediction)| [*label, *prediction]).collect();
    needed.extend([loss, columns.tokens.as_deref(), columns.bytes.as_deref()].into_iter().flatten());
    let rows = whole_rows(frame, &needed)?;
    let mut sums = Vec::new();
    if let Some((label, prediction)) = answers {
        sums.push(exact_matches(frame, label, prediction, &rows)?);
    }
    if let Some(name) = loss {
        let loss = pick(numbers(frame, name)?, &rows);
        let of = |name: &Option<String>| -> Result<Option<Vec<f64>>, AssessError> {
            name.as_ref().map(|name| Ok(pick(numbers(frame, name)?, &rows))).transpose()
        };
        let (tokens, bytes) = (of(&columns.tokens)?, of(&columns.bytes)?);
        if let Some(bytes) = bytes {
            let bits = loss.iter().map(|nats| nats / std::f64::consts::LN_2).collect();
            sums.push(Sum { below: Some(bytes), ..Sum::mean("bits_per_byte", bits) });
        }
        sums.push(Sum { below: tokens.clone(), ..Sum::mean("loss", loss.clone()) });
        sums.push(Sum { below: tokens, is_exponential: true, ..Sum::mean("perplexity", loss) });
    }
    if sums.is_empty() {
        return Err(AssessError::NoColumnFor("loss"));
    }
    Ok((rows, Content::Sums(sums)))
}

impl Sum {
    pub(super) fn mean(name: &str, above: Vec<f64>) -> Self {
        Self { name: name.to_owned(), above, below: None, is_share: false, is_exponential: false }
    }

    pub(super) fn share(name: &str, above: Vec<f64>) -> Self {
        Self { is_share: true, ..Self::mean(name, above) }
    }
}
