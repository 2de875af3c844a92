//! The rows of an evaluation as its task needs them: from a table's columns to numbers without gaps.

mod box_rows;
mod class_rows;
mod clusters;
pub(crate) mod coverage;
mod experiment_rows;
pub(crate) mod items;
mod pixel_rows;
pub(super) mod ranking;
mod texts;

use std::sync::Arc;

use trackway_data::model::Frame;

use super::boxes::Boxes;
use super::pixels::Pixels;
use super::ratio::Ratio;
use super::resample::Units;
pub(crate) use super::table::values_of;
pub(super) use super::table::{answers_of, column, finite, numbers, pick, renumbered, whole_rows};
use super::uplift::Experiment;
use crate::documents::costs::Costs;
use crate::spellings::{Agreement, MatchedClass};
use coverage::RowUse;

/// What is evaluated: rows, or groups of them (the documents of a query, the completions of a task, the boxes of an
/// image).
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
pub(super) struct RowItems {
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
    Experiment(Experiment),
    Pixels(Pixels),
    Boxes(Boxes),
    /// Fractions and means that need only the sum of each item.
    Sums(Vec<Ratio>),
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
    /// The cost of each cell of the [confusion matrix](super::cells).
    pub costs: Option<Arc<[f64]>>,
    /// Which predictions were labels written differently.
    pub agreement: Arc<Agreement>,
}

/// Labels and predictions of a regression.
#[derive(Debug, Clone)]
pub(crate) struct Amounts {
    pub label: Vec<f64>,
    pub prediction: Vec<f64>,
    /// Predicted quantiles with the name of their level.
    pub quantiles: Vec<(String, Vec<f64>)>,
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

    /// Predicted classes that are labels written differently.
    pub(crate) fn matched_classes(&self) -> &[MatchedClass] {
        match &self.content {
            Content::Classes(rows) => &rows.agreement.matched,
            _ => &[],
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
                names: Arc::clone(&it.names),
                positive: it.positive,
                are_probabilities: it.are_probabilities,
                costs: it.costs.clone(),
                agreement: Arc::clone(&it.agreement),
            }),
            Content::Amounts(it) => Content::Amounts(Amounts {
                label: pick(&it.label, items),
                prediction: pick(&it.prediction, items),
                quantiles: it.quantiles.iter().map(|(name, it)| (name.clone(), pick(it, items))).collect(),
            }),
            Content::Experiment(it) => Content::Experiment(it.subset(items)),
            Content::Pixels(it) => Content::Pixels(it.subset(items)),
            Content::Boxes(it) => Content::Boxes(it.subset(items)),
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
}

/// What is known of the classes beside the table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownClasses<'k> {
    /// The positive one of two.
    pub positive: Option<&'k str>,
    /// Classes that there are even where the table lacks them.
    pub names: &'k [String],
    /// What each kind of error costs.
    pub costs: Option<&'k Costs>,
}

impl RowItems {
    pub(super) fn rows(frame: &Frame, row_of_item: Vec<u32>, content: Content) -> Self {
        let rows = RowUse::of(frame.rows(), row_of_item.iter().copied());
        Self { row_of_item, content, rows }
    }
}
