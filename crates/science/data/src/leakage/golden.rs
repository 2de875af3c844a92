//! The golden feature: one that alone predicts the label as well as all features together.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::power::{Label, Target};
use super::sample::Sample;
use crate::model::{
    Binned, BoosterSettings, Cells, FoldSettings, Frame, FrameColumn, MISSING_CODE, Predictions, folds,
    out_of_fold,
};
use crate::values::sampled::{Content, Values, each_bits};

/// A feature is golden when it reaches this part of what all features reach (skore's SKD011 takes the same).
const PART_OF_ALL: f64 = 0.9;

/// A best feature of less power is not worth the question.
const POWER_MIN: f64 = 0.2;

/// Rows the model of all features learns from: enough to see whether others add anything.
const ROWS_MAX: usize = 10_000;

/// A feature that alone predicts nearly as well as all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoldenFeature {
    pub column: String,
    /// Its power, out of sample, minus that of random labels.
    pub alone: f64,
    /// The power of all features together, of the quick model out of fold.
    pub all: f64,
}

/// Looks whether `best`, a feature and its power, is golden. `usable` features make up the model.
pub(super) fn find(
    names: &[String],
    (best, alone): (usize, f64),
    usable: &[usize],
    train: &Sample,
    target: &Target,
) -> Option<GoldenFeature> {
    if alone < POWER_MIN || usable.len() < 2 {
        return None;
    }
    let all = power_of_all(usable, train, &target.label)?;
    (alone >= PART_OF_ALL * all).then(|| GoldenFeature { column: names[best].clone(), alone, all })
}

/// On the scale of a single feature's power: errors of the quick model, out of fold, against those of no feature.
fn power_of_all(usable: &[usize], train: &Sample, label: &Label) -> Option<f64> {
    let count = train.len().min(ROWS_MAX);
    let rows: Vec<usize> = (0..count).map(|index| index * train.len() / count).collect();
    let column = |feature: &usize| FrameColumn {
        name: feature.to_string(),
        kind: train.features[*feature].kind,
        cells: cells(&train.features[*feature], &rows),
    };
    let frame = Frame::of_columns(usable.iter().map(column).collect());
    let target = model_target(label, &rows);
    let folds = folds(frame.keys(), &target, FoldSettings { count: 3, seed: 0 }).ok()?;
    let settings = BoosterSettings { rounds_max: 60, ..BoosterSettings::default() };
    let columns: Vec<usize> = (0..usable.len()).collect();
    let predictions = out_of_fold(&Binned::of(&frame), &columns, &target, &folds, &settings);
    Some(score(&predictions, &target))
}

fn cells(values: &Values, rows: &[usize]) -> Cells {
    match &values.content {
        Content::Numbers(numbers) => Cells::Numbers(rows.iter().map(|row| numbers[*row]).collect()),
        Content::Codes(_) => {
            let mut codes_of: HashMap<u64, u32> = HashMap::new();
            let mut of_rows = vec![MISSING_CODE; values.content.len()];
            each_bits(values, |row, bits| {
                let next = codes_of.len() as u32;
                of_rows[row] = *codes_of.entry(bits).or_insert(next);
            });
            let names = (0..codes_of.len()).map(|code| code.to_string()).collect();
            Cells::Categories { codes: rows.iter().map(|row| of_rows[*row]).collect(), names }
        }
    }
}

fn model_target(label: &Label, rows: &[usize]) -> crate::model::Target {
    match label {
        Label::Classes { of_rows, count } => {
            let class = |row: &usize| match of_rows[*row] {
                Label::NONE => MISSING_CODE,
                class => u32::from(class),
            };
            let names = (0..*count).map(|class| class.to_string()).collect();
            crate::model::Target::Classes { of_row: rows.iter().map(class).collect(), names }
        }
        Label::Ranks(ranks) => crate::model::Target::Numbers(rows.iter().map(|row| ranks[*row]).collect()),
    }
}

fn score(predictions: &Predictions, target: &crate::model::Target) -> f64 {
    let known = target.known_rows();
    match target {
        crate::model::Target::Classes { of_row, .. } => {
            let most = target.class_rows().into_iter().max().unwrap_or(0) as f64;
            let is_right = |row: &&u32| {
                let scores = predictions.row(**row as usize);
                let best = (0..scores.len()).max_by(|one, other| scores[*one].total_cmp(&scores[*other]));
                best == Some(of_row[**row as usize] as usize)
            };
            let right = known.iter().filter(is_right).count() as f64;
            (right - most) / (known.len() as f64 - most).max(1.0)
        }
        crate::model::Target::Numbers(values) => {
            let mean = known.iter().map(|row| values[*row as usize]).sum::<f64>() / known.len() as f64;
            let squares = |at: &dyn Fn(u32) -> f64| -> f64 {
                known.iter().map(|row| (values[*row as usize] - at(*row)).powi(2)).sum()
            };
            let error = squares(&|row| predictions.row(row as usize)[0]);
            1.0 - (error / squares(&|_| mean).max(f64::MIN_POSITIVE)).sqrt()
        }
    }
}
