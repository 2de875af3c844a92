//! What small steps along the model's own gradients do: I. Goodfellow et al. 2015 (the fast gradient sign method), with each number's step
//! in its standard deviations.

use std::sync::atomic::{AtomicBool, Ordering};

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Cells, FrameColumn};
use trackway_statistics::variance;
use trackway_tables::ColumnType;

use super::cells::shuffled;
use super::model::{Decision, Model, mean_of, share_of};
use super::{GradientCheck, ProbeError, ProbeSettings, Sensitivity, Slope, SmallStep};

/// Sizes of steps, in standard deviations.
const STEPS: [f64; 5] = [0.01, 0.03, 0.1, 0.3, 1.0];
/// Rows whose gradients are compared with differences.
const CHECKED_ROWS: usize = 100;
/// The step to each side for a difference, in standard deviations.
const DIFFERENCE: f64 = 0.01;
/// Gradients that are farther from the differences are reported.
const OFF_MAX: f64 = 0.1;

/// What is known before steps are taken.
struct Field {
    /// Features that can be moved, their standard deviations, and the gradients of their rows.
    moved: Vec<(usize, f64, Vec<f64>)>,
    /// For each row 1 or −1: the way its prediction is to go.
    way: Vec<f64>,
}

/// `None` if there is no feature to move.
pub(super) fn sensitivity(
    model: &mut Model<'_>,
    settings: &ProbeSettings,
    cancelled: &AtomicBool,
) -> Result<Option<Sensitivity>, ProbeError> {
    let gradients = model.ask_gradients()?;
    let movable = |(feature, gradients): (usize, Vec<f64>)| {
        let deviation = deviation(&model.features[feature])?;
        let is_known = gradients.iter().any(|it| it.is_finite());
        (is_known && deviation > 0.0).then_some((feature, deviation, gradients))
    };
    let moved: Vec<(usize, f64, Vec<f64>)> = gradients.into_iter().enumerate().filter_map(movable).collect();
    if moved.is_empty() {
        return Ok(None);
    }
    let field = Field { way: way(model), moved };
    let mut rng = SplitMix64::new(settings.seed);
    let mut steps = Vec::new();
    for size in STEPS {
        if cancelled.load(Ordering::Relaxed) {
            return Err(ProbeError::Cancelled);
        }
        let along = field.stepped(model, size, |gradient, way| way * sign(gradient));
        let random = field.stepped(model, size, |gradient, _| {
            if sign(gradient) == 0.0 {
                0.0
            } else if rng.next_unit() < 0.5 {
                -1.0
            } else {
                1.0
            }
        });
        let (along, random) = (model.ask(&along)?, model.ask(&random)?);
        let rises = model.rises(&along)?;
        let flipped = |said: &Cells| model.flips(&model.said, said).map(|flips| share_of(&flips));
        steps.push(SmallStep {
            deviations: size,
            flipped: flipped(&along),
            flipped_at_random: flipped(&random),
            shift: model.shift(&along).unwrap_or(0.0),
            shift_at_random: model.shift(&random).unwrap_or(0.0),
            increase: mean_of(&rises),
        });
    }
    let check = field.check(model, settings.seed)?;
    let mut slopes = field.slopes(model);
    slopes.sort_by(|one, other| other.per_deviation.value.total_cmp(&one.per_deviation.value));
    Ok(Some(Sensitivity { slopes, steps, check }))
}

impl Field {
    fn slopes(&self, model: &Model<'_>) -> Vec<Slope> {
        let slope = |(feature, deviation, gradients): &(usize, f64, Vec<f64>)| {
            let of_rows: Vec<f64> = gradients.iter().map(|it| it.abs() * deviation).collect();
            let feature = model.features[*feature].name.clone();
            mean_of(&of_rows).map(|per_deviation| Slope { feature, per_deviation })
        };
        self.moved.iter().filter_map(slope).collect()
    }

    /// The rows, each number moved by so many standard deviations times the direction of its gradient and its row.
    fn stepped(
        &self,
        model: &Model<'_>,
        size: f64,
        mut direction: impl FnMut(f64, f64) -> f64,
    ) -> Vec<FrameColumn> {
        let mut columns = model.features.clone();
        for (feature, deviation, gradients) in &self.moved {
            if let Cells::Numbers(numbers) = &mut columns[*feature].cells {
                for ((number, gradient), way) in numbers.iter_mut().zip(gradients).zip(&self.way) {
                    *number += size * deviation * direction(*gradient, *way);
                }
            }
        }
        columns
    }

    /// The gradients beside differences of predictions, of some rows.
    fn check(&self, model: &mut Model<'_>, seed: u64) -> Result<GradientCheck, ProbeError> {
        let mut rows = shuffled(model.rows, &mut SplitMix64::new(seed));
        rows.truncate(CHECKED_ROWS);
        let of_rows =
            |column: &FrameColumn| FrameColumn { cells: column.cells.in_order(&rows), ..column.clone() };
        let usual: Vec<FrameColumn> = model.features.iter().map(of_rows).collect();
        let mut check = GradientCheck { rows: rows.len() as u64, relative_error: 0.0, features: Vec::new() };
        let (mut apart, mut size) = (0.0, 0.0);
        for (feature, deviation, gradients) in &self.moved {
            let mut beside = |step: f64| {
                let mut columns = usual.clone();
                if let Cells::Numbers(numbers) = &mut columns[*feature].cells {
                    numbers.iter_mut().for_each(|number| *number += step);
                }
                model.ask(&columns)
            };
            let step = DIFFERENCE * deviation;
            let (Cells::Numbers(above), Cells::Numbers(below)) = (beside(step)?, beside(-step)?) else {
                continue;
            };
            let pairs = rows.iter().zip(above.iter().zip(&below));
            let pairs = pairs.map(|(row, (above, below))| {
                (gradients[*row] * deviation, (above - below) / (2.0 * DIFFERENCE))
            });
            let pairs: Vec<(f64, f64)> =
                pairs.filter(|(reported, seen)| reported.is_finite() && seen.is_finite()).collect();
            let own_apart: f64 = pairs.iter().map(|(reported, seen)| (reported - seen).powi(2)).sum();
            let own_size: f64 =
                pairs.iter().map(|(reported, seen)| reported.abs().max(seen.abs()).powi(2)).sum();
            if own_apart > OFF_MAX * OFF_MAX * own_size {
                check.features.push(model.features[*feature].name.clone());
            }
            apart += own_apart;
            size += own_size;
        }
        check.relative_error = if size > 0.0 { (apart / size).sqrt() } else { 0.0 };
        Ok(check)
    }
}

/// Towards the other decision; if nothing is decided, away from the label; else upwards.
fn way(model: &Model<'_>) -> Vec<f64> {
    let Cells::Numbers(said) = &model.said else { return vec![1.0; model.rows] };
    if let Decision::Threshold(at) = model.decision {
        return said.iter().map(|said| if *said < at { 1.0 } else { -1.0 }).collect();
    }
    match model.left_over() {
        // A residual is positive where the prediction is too low: lower still is worse.
        Some(residuals) => residuals.iter().map(|it| if *it > 0.0 { -1.0 } else { 1.0 }).collect(),
        None => vec![1.0; model.rows],
    }
}

fn sign(gradient: f64) -> f64 {
    if gradient > 0.0 {
        1.0
    } else if gradient < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Of numbers; booleans and timestamps are not moved.
fn deviation(column: &FrameColumn) -> Option<f64> {
    let Cells::Numbers(numbers) = &column.cells else { return None };
    if !matches!(column.kind, ColumnType::Int | ColumnType::Float) {
        return None;
    }
    let known: Vec<f64> = numbers.iter().copied().filter(|it| it.is_finite()).collect();
    Some(variance(&known).sqrt()).filter(|it| it.is_finite())
}
