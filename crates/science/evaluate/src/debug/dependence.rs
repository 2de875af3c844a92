//! What is predicted for each value of a feature.

use std::collections::BTreeMap;

use trackway_core::SplitMix64;
use trackway_data::model::Cells;

use super::cells::{filled, grid, shuffled};
use super::model::{Model, text};
use super::{Curve, Dependence, ProbeError, ProbeSettings};
use crate::search::shown_value;

/// Classes beyond these, by frequency, have no curve.
const CLASSES_MAX: usize = 10;

pub(super) fn dependence(
    model: &mut Model<'_>,
    feature: usize,
    settings: &ProbeSettings,
) -> Result<Dependence, ProbeError> {
    let column = model.features[feature].clone();
    let values = grid(&column.cells, settings.grid);
    let mut said = Vec::with_capacity(values.len());
    for set in &values {
        said.push(model.ask_with(feature, filled(&column.cells, std::iter::repeat_n(*set, model.rows)))?);
    }
    let mut rng = SplitMix64::new(settings.seed);
    let mut chosen = shuffled(model.rows, &mut rng);
    chosen.truncate(settings.curves);
    chosen.sort_unstable();
    let shown =
        |value_cells: Cells| shown_value(&column, &value_cells, 0).unwrap_or_else(|| "missing".to_owned());
    Ok(Dependence {
        feature: column.name.clone(),
        values: values.iter().map(|set| shown(filled(&column.cells, std::iter::once(*set)))).collect(),
        curves: match &model.said {
            Cells::Numbers(_) => vec![of_numbers(&said, &chosen)],
            Cells::Categories { .. } => of_classes(&model.said, &said),
        },
    })
}

fn of_numbers(said: &[Cells], chosen: &[usize]) -> Curve {
    let numbers = |cells: &Cells| match cells {
        Cells::Numbers(numbers) => numbers.clone(),
        Cells::Categories { .. } => Vec::new(),
    };
    let at: Vec<Vec<f64>> = said.iter().map(numbers).collect();
    let quantile = |numbers: &Vec<f64>, share: f64| {
        let mut sorted = numbers.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(((sorted.len().max(1) - 1) as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    };
    Curve {
        class: None,
        mean: at.iter().map(|numbers| numbers.iter().sum::<f64>() / numbers.len() as f64).collect(),
        low: at.iter().map(|numbers| quantile(numbers, 0.1)).collect(),
        high: at.iter().map(|numbers| quantile(numbers, 0.9)).collect(),
        rows: chosen.iter().map(|row| at.iter().map(|numbers| numbers[*row]).collect()).collect(),
    }
}

/// For each class its fraction, the most frequent first.
fn of_classes(usual: &Cells, said: &[Cells]) -> Vec<Curve> {
    let shares = |cells: &Cells| {
        let rows = cells.rows();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let texts = (0..rows).filter_map(|row| text(cells, row));
        texts.for_each(|text| *counts.entry(text).or_default() += 1);
        let share = |(text, count)| (text, count as f64 / rows as f64);
        counts.into_iter().map(share).collect::<BTreeMap<String, f64>>()
    };
    let mut classes: BTreeMap<String, f64> = shares(usual);
    let at: Vec<BTreeMap<String, f64>> = said.iter().map(shares).collect();
    at.iter().flat_map(BTreeMap::keys).for_each(|class| {
        classes.entry(class.clone()).or_default();
    });
    let mut classes: Vec<(String, f64)> = classes.into_iter().collect();
    classes.sort_by(|one, other| other.1.total_cmp(&one.1));
    classes.truncate(CLASSES_MAX);
    let curve = |(class, _): (String, f64)| Curve {
        mean: at.iter().map(|shares| shares.get(&class).copied().unwrap_or(0.0)).collect(),
        class: Some(class),
        low: Vec::new(),
        high: Vec::new(),
        rows: Vec::new(),
    };
    classes.into_iter().map(curve).collect()
}
