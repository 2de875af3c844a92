//! The smallest change of a row that changes what is decided of it, over values that the data has.

use std::sync::atomic::{AtomicBool, Ordering};

use trackway_core::SplitMix64;
use trackway_data::model::{Cells, FrameColumn};

use super::cells::{Value, filled, grid, shuffled, value};
use super::model::{Decision, Model, text};
use super::{Counterfactual, ProbeError, ProbeSettings};
use crate::search::shown_value;

/// Values of each feature that are tried.
const VALUES_TRIED: usize = 12;
/// Unfinished changes that are extended further.
const BEAM: usize = 8;

/// Values that a row's features are set to.
#[derive(Debug, Clone)]
struct Change {
    set: Vec<(usize, Value)>,
    distance: f64,
}

/// `None` where nothing is decided.
pub(super) fn counterfactuals(
    model: &mut Model<'_>,
    settings: &ProbeSettings,
    cancelled: &AtomicBool,
) -> Result<Option<Vec<Counterfactual>>, ProbeError> {
    if model.decision == Decision::Never {
        return Ok(None);
    }
    let columns = model.features.clone();
    let values: Vec<Vec<Value>> = columns.iter().map(|column| grid(&column.cells, VALUES_TRIED)).collect();
    let sorted: Vec<Vec<f64>> = columns.iter().map(|column| sorted(&column.cells)).collect();
    let mut rows = shuffled(model.rows, &mut SplitMix64::new(settings.seed));
    rows.truncate(settings.counterfactuals);
    rows.sort_unstable();
    let mut found = Vec::new();
    for row in rows {
        if cancelled.load(Ordering::Relaxed) {
            return Err(ProbeError::Cancelled);
        }
        let search = Search { columns: &columns, values: &values, sorted: &sorted, row };
        found.push(search.smallest(model, settings.changes_max)?);
    }
    Ok(Some(found))
}

struct Search<'s> {
    columns: &'s [FrameColumn],
    values: &'s [Vec<Value>],
    /// The numbers of each column in order; empty for strings.
    sorted: &'s [Vec<f64>],
    row: usize,
}

impl Search<'_> {
    /// Fewest features first; of as many, the smallest change.
    fn smallest(&self, model: &mut Model<'_>, changes_max: usize) -> Result<Counterfactual, ProbeError> {
        let mut beam = vec![Change { set: Vec::new(), distance: 0.0 }];
        for _ in 0..changes_max {
            let mut tried: Vec<Change> = beam.iter().flat_map(|change| self.one_more(change)).collect();
            if tried.is_empty() {
                break;
            }
            let said = match model.ask(&self.columns_with(&tried)) {
                // That the model refuses a value proves nothing: such a row has no counterfactual.
                Err(ProbeError::Refused(_)) => break,
                said => said?,
            };
            if let Some(best) = self.smallest_flip(model, &tried, &said) {
                let (change, after) = self.refined(model, tried.swap_remove(best), text(&said, best))?;
                return Ok(self.described(model, Some((&change, after))));
            }
            let mut order: Vec<usize> = (0..tried.len()).collect();
            let far = |index: usize| still_to_go(model.decision, &said, index);
            order.sort_by(|one, other| {
                far(*one)
                    .total_cmp(&far(*other))
                    .then(tried[*one].distance.total_cmp(&tried[*other].distance))
            });
            order.truncate(BEAM);
            beam = order.into_iter().map(|index| tried[index].clone()).collect();
        }
        Ok(self.described(model, None))
    }

    /// The index of the smallest change with another decision.
    fn smallest_flip(&self, model: &Model<'_>, tried: &[Change], said: &Cells) -> Option<usize> {
        let before = model.said.in_order(&vec![self.row; tried.len()]);
        let flips = model.flips(&before, said).unwrap_or_default();
        let flipped = (0..tried.len()).filter(|index| flips[*index]);
        flipped.min_by(|one, other| tried[*one].distance.total_cmp(&tried[*other].distance))
    }

    /// The same features changed, each number to the nearest one of the data that is enough, found by halving.
    fn refined(
        &self,
        model: &mut Model<'_>,
        mut change: Change,
        mut after: Option<String>,
    ) -> Result<(Change, Option<String>), ProbeError> {
        for index in 0..change.set.len() {
            let mut nearer = self.nearer(&change, index);
            while !nearer.is_empty() {
                let middle = nearer.len() / 2;
                let tried = [self.with_number(&change, index, nearer[middle])];
                let said = match model.ask(&self.columns_with(&tried)) {
                    Err(ProbeError::Refused(_)) => break,
                    said => said?,
                };
                if self.smallest_flip(model, &tried, &said).is_some() {
                    nearer.truncate(middle);
                    [change] = tried;
                    after = text(&said, 0);
                } else {
                    nearer.drain(..=middle);
                }
            }
        }
        Ok((change, after))
    }

    /// The numbers between the row's own and the one it is changed to, the nearest to its own first.
    fn nearer(&self, change: &Change, index: usize) -> Vec<f64> {
        let (feature, to) = change.set[index];
        let own = value(&self.columns[feature].cells, self.row);
        let (Value::Number(from), Value::Number(to)) = (own, to) else { return Vec::new() };
        let sorted = &self.sorted[feature];
        let rank =
            |number: f64, above: bool| sorted.partition_point(|it| *it < number || above && *it == number);
        let (low, high) = (from.min(to), from.max(to));
        let mut between = sorted.get(rank(low, true)..rank(high, false)).unwrap_or_default().to_vec();
        between.dedup();
        if to < from {
            between.reverse();
        }
        between
    }

    /// The change with another number for one of its features.
    fn with_number(&self, change: &Change, index: usize, number: f64) -> Change {
        let (feature, to) = change.set[index];
        let own = value(&self.columns[feature].cells, self.row);
        let mut set = change.set.clone();
        set[index].1 = Value::Number(number);
        let distance = |to: Value| self.distance(feature, own, to);
        Change { set, distance: change.distance - distance(to) + distance(Value::Number(number)) }
    }

    /// The change with a further feature set to each of its values.
    fn one_more(&self, change: &Change) -> Vec<Change> {
        let is_set = |feature: &usize| change.set.iter().any(|(set, _)| set == feature);
        let free = (0..self.columns.len()).filter(|feature| !is_set(feature));
        free.flat_map(|feature| {
            let own = value(&self.columns[feature].cells, self.row);
            let others = self.values[feature].iter().filter(move |other| **other != own);
            others.map(move |other| Change {
                set: [change.set.as_slice(), &[(feature, *other)]].concat(),
                distance: change.distance + self.distance(feature, own, *other),
            })
        })
        .collect()
    }

    /// The fraction of rows between two numbers; 1 between strings, and to or from a missing value.
    fn distance(&self, feature: usize, from: Value, to: Value) -> f64 {
        match (from, to) {
            (Value::Number(from), Value::Number(to)) if !from.is_nan() && !to.is_nan() => {
                let rank = |number: f64| self.sorted[feature].partition_point(|it| *it < number) as f64;
                let step = 1.0 / self.sorted[feature].len().max(1) as f64;
                ((rank(to) - rank(from)).abs() * step).max(step)
            }
            _ => 1.0,
        }
    }

    /// The row once for each change, with it.
    fn columns_with(&self, changes: &[Change]) -> Vec<FrameColumn> {
        let cell = |feature: usize, change: &Change| {
            let set = change.set.iter().find(|(set, _)| *set == feature);
            set.map_or_else(|| value(&self.columns[feature].cells, self.row), |(_, value)| *value)
        };
        let columns = self.columns.iter().enumerate();
        let column = |(feature, column): (usize, &FrameColumn)| FrameColumn {
            cells: filled(&column.cells, changes.iter().map(|change| cell(feature, change))),
            ..column.clone()
        };
        columns.map(column).collect()
    }

    fn described(&self, model: &Model<'_>, found: Option<(&Change, Option<String>)>) -> Counterfactual {
        let change = |(feature, to): &(usize, Value)| {
            let column = &self.columns[*feature];
            let to = filled(&column.cells, std::iter::once(*to));
            (column.name.clone(), shown_value(column, &column.cells, self.row), shown_value(column, &to, 0))
        };
        let before = text(&model.said, self.row).unwrap_or_default();
        let (changes, distance) = found
            .as_ref()
            .map_or((Vec::new(), 0.0), |(it, _)| (it.set.iter().map(change).collect(), it.distance));
        Counterfactual { row: self.row, before, after: found.and_then(|(_, after)| after), changes, distance }
    }
}

/// How far a prediction is from another decision; nothing is known of classes.
fn still_to_go(decision: Decision, said: &Cells, row: usize) -> f64 {
    match (decision, said) {
        (Decision::Threshold(at), Cells::Numbers(numbers)) => (numbers[row] - at).abs(),
        _ => 0.0,
    }
}

fn sorted(cells: &Cells) -> Vec<f64> {
    let Cells::Numbers(numbers) = cells else { return Vec::with_capacity(cells.rows()) };
    let mut sorted: Vec<f64> = numbers.iter().copied().filter(|number| !number.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
