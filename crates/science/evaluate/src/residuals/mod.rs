//! Residuals: does the mean or the spread of label minus prediction depend on the prediction or on a feature? Then the
//! model could have used it.
//!
//! Columns are cut into bins as in the search for slices. Means of bins are compared by Welch's analysis of variance, spreads
//! by that of the distances from the median (Brown and Forsythe); p-values are corrected for the number of columns (Holm).

mod bins;
mod judged;
#[cfg(test)]
mod tests;

use rayon::prelude::*;
use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Cells, FrameColumn};
pub use trackway_results::assessment::{
    CURVES_MAX, Depends, POINTS_MAX, ResidualBin, ResidualCurve, ResidualOf, Residuals,
};
use trackway_statistics::{VarianceAnalysis, holm, variance_analysis};
use trackway_tables::ColumnType;

use crate::Point;
use crate::search::{Binning, Feature};
use bins::{BIN_ROWS_MIN, Left, members};
pub(crate) use judged::residuals_of;

/// Bins of numbers.
const BINS: usize = 10;
/// Residuals that differ by less than this fraction of the numbers they come from differ by rounding alone.
const ROUNDING: f64 = 1e-12;
/// What the column of predictions is called.
const PREDICTION: &str = "prediction";

/// Rows with what was predicted of them and what that leaves over.
#[derive(Debug, Clone, Copy)]
pub struct Leftover<'r> {
    pub of: ResidualOf,
    /// The prediction of each row: a number, a probability or a class.
    pub predicted: &'r Cells,
    /// What is left over.
    pub residuals: &'r [f64],
    /// The rows of the features that these are, in this order; all of them where absent.
    pub rows: Option<&'r [u32]>,
    /// The group of each row, if rows of one group are not independent.
    pub groups: Option<&'r [u32]>,
    /// The confidence level of intervals.
    pub confidence: f64,
}

/// Looks for what residuals depend on. `None` for fewer than 60 rows, and for residuals that
/// are not all finite numbers.
#[must_use]
pub fn residuals(features: &[&FrameColumn], leftover: Leftover<'_>) -> Option<Residuals> {
    let rows = leftover.residuals.len();
    if rows < 2 * BIN_ROWS_MIN as usize || leftover.residuals.iter().any(|it| !it.is_finite()) {
        return None;
    }
    let constant = constant_but_for_rounding(leftover);
    let leftover = Leftover { residuals: constant.as_deref().unwrap_or(leftover.residuals), ..leftover };
    let expected = expected(leftover);
    let left = Left {
        of: leftover.of,
        residuals: leftover.residuals,
        expected: expected.as_deref(),
        groups: leftover.groups,
        confidence: leftover.confidence,
    };
    let predicted = FrameColumn {
        name: PREDICTION.to_owned(),
        kind: ColumnType::Float,
        cells: leftover.predicted.clone(),
    };
    let features: Vec<&FrameColumn> =
        features.iter().copied().filter(|column| has_few_values(column)).collect();
    let of_feature = |column: &&FrameColumn| looked(taken(column, leftover.rows), left);
    let mut looked = vec![looked(predicted, left)];
    looked.extend(features.par_iter().map(of_feature).collect::<Vec<_>>());
    let features_looked = looked.iter().skip(1).flatten().count() as u64;
    let mut curves = corrected(looked);
    let by_prediction = curves.remove(0);
    let mut by_feature: Vec<ResidualCurve> = curves.into_iter().flatten().collect();
    let explained = |curve: &ResidualCurve| curve.mean_depends.map_or(0.0, |it| it.explained);
    by_feature.sort_by(|one, other| explained(other).total_cmp(&explained(one)));
    by_feature.truncate(CURVES_MAX);
    Some(Residuals {
        of: leftover.of,
        rows: rows as u64,
        mean: bins::estimate(bins::group(left.residuals, left.groups), rows, left),
        by_prediction,
        by_feature,
        points: points(leftover),
        features: features_looked,
    })
}

/// The residuals without their rounding errors, of predictions that all miss their label by the same number; `None` for others.
fn constant_but_for_rounding(leftover: Leftover<'_>) -> Option<Vec<f64>> {
    let Cells::Numbers(predicted) = leftover.predicted else { return None };
    let range = |values: &[f64]| {
        values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(*it), high.max(*it)))
    };
    let ((low, high), (least, most)) = (range(leftover.residuals), range(predicted));
    let scale = low.abs().max(high.abs()) + least.abs().max(most.abs());
    (high - low <= ROUNDING * scale).then(|| vec![low; leftover.residuals.len()])
}

/// For booleans the variance of each row if the predicted probabilities are right, or of right and wrong if all rows
/// are alike.
fn expected(leftover: Leftover<'_>) -> Option<Vec<f64>> {
    match (leftover.of, leftover.predicted) {
        (ResidualOf::Probability, Cells::Numbers(probabilities)) => {
            Some(probabilities.iter().map(|probability| probability * (1.0 - probability)).collect())
        }
        (ResidualOf::WrongClass, _) => {
            let wrong = leftover.residuals.iter().sum::<f64>() / leftover.residuals.len() as f64;
            Some(vec![wrong * (1.0 - wrong); leftover.residuals.len()])
        }
        _ => None,
    }
}

/// A curve whose p-values are not yet corrected.
struct UncorrectedCurve {
    curve: ResidualCurve,
    mean: Option<VarianceAnalysis>,
    spread: Option<VarianceAnalysis>,
}

/// `None` for a column of one value.
fn looked(column: FrameColumn, left: Left<'_>) -> Option<UncorrectedCurve> {
    let name = column.name.clone();
    let bins = BINS.min(left.residuals.len() / BIN_ROWS_MIN as usize);
    let feature = Feature::of(column, &Binning::Quantiles(bins), BIN_ROWS_MIN);
    let members = members(&feature, left.residuals.len());
    if members.len() < 2 {
        return None;
    }
    let groups = |of: fn(&bins::Members, Left<'_>) -> Option<trackway_statistics::Group>| {
        members.iter().filter_map(|it| of(it, left)).collect::<Vec<_>>()
    };
    let spread = (left.of == ResidualOf::Value).then(|| variance_analysis(&groups(bins::Members::spread)));
    Some(UncorrectedCurve {
        mean: variance_analysis(&groups(bins::Members::means)),
        spread: spread.flatten(),
        curve: ResidualCurve {
            feature: name,
            bins: members.iter().map(|it| it.bin(left)).collect(),
            mean_depends: None,
            spread_depends: None,
        },
    })
}

/// The curves with p-values corrected for the number of columns.
fn corrected(looked: Vec<Option<UncorrectedCurve>>) -> Vec<Option<ResidualCurve>> {
    let of = |analysis: fn(&UncorrectedCurve) -> Option<VarianceAnalysis>| {
        let found: Vec<Option<VarianceAnalysis>> =
            looked.iter().map(|it| it.as_ref().and_then(analysis)).collect();
        let p_values: Vec<f64> = found.iter().map(|it| it.map_or(f64::NAN, |it| it.p_value)).collect();
        let depends = |(found, adjusted_p_value): (Option<VarianceAnalysis>, f64)| {
            let known = found.filter(|_| !adjusted_p_value.is_nan());
            known.map(|it| Depends { explained: it.explained, adjusted_p_value })
        };
        found.into_iter().zip(holm(&p_values)).map(depends).collect::<Vec<Option<Depends>>>()
    };
    let (means, spreads) = (of(|it| it.mean), of(|it| it.spread));
    let curve = |((looked, mean_depends), spread_depends): ((Option<UncorrectedCurve>, _), _)| {
        looked.map(|it| ResidualCurve { mean_depends, spread_depends, ..it.curve })
    };
    looked.into_iter().zip(means).zip(spreads).map(curve).collect()
}

/// The column with these rows, in this order.
fn taken(column: &FrameColumn, rows: Option<&[u32]>) -> FrameColumn {
    let Some(rows) = rows else { return column.clone() };
    let order: Vec<usize> = rows.iter().map(|row| *row as usize).collect();
    FrameColumn { name: column.name.clone(), kind: column.kind, cells: column.cells.in_order(&order) }
}

/// Not the column of a text that is another one in most rows.
fn has_few_values(column: &FrameColumn) -> bool {
    match &column.cells {
        Cells::Numbers(_) => true,
        Cells::Categories { codes, names } => names.len() * 2 <= codes.len(),
    }
}

/// Some rows, each with the same probability.
fn points(leftover: Leftover<'_>) -> Vec<Point> {
    let Cells::Numbers(predicted) = leftover.predicted else { return Vec::new() };
    let rows = predicted.len();
    let mut rng = SplitMix64::new(rows as u64);
    let mut chosen: Vec<usize> = match rows <= POINTS_MAX {
        true => (0..rows).collect(),
        // The same row may come twice: of many rows that is rare.
        false => (0..POINTS_MAX).map(|_| (rng.next_unit() * rows as f64) as usize).collect(),
    };
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|row| Point { x: predicted[row], y: leftover.residuals[row] }).collect()
}
