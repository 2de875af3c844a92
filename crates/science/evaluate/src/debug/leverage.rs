//! Outliers: by their features (leverage), and by their effect on the error (influence).
//!
//! Leverage is the diagonal of the hat matrix of the features, strings as indicators (D. Hoaglin and R. Welsch 1978).
//! Influence is Cook's distance (1977) of the model's residuals: exact for a linear model fitted to these rows, and for
//! any other model what a linear one with its residuals would do.

use std::collections::BTreeMap;

use trackway_data::model::{Cells, FrameColumn};

use super::model::Model;
use super::{HighRow, Leverage};
use crate::search::shown_value;

/// Rows that are reported.
const ROWS_LISTED: usize = 20;
/// Features reported for a row: those in which it is farthest from the others.
const FEATURES_LISTED: usize = 3;
/// Strings of a column beyond these, by frequency, are combined.
const TEXTS_MAX: usize = 50;
/// Strings of fewer rows are combined: one row alone would determine their effect.
const TEXT_ROWS_MIN: usize = 5;
/// From this leverage on a row alone determines a parameter, and has no residual.
const ALONE: f64 = 1.0 - 1e-9;
/// Independent columns, at most: features beyond are left out.
const PARAMETERS_MAX: usize = 300;
/// From so many times the mean leverage on a row is reported as high.
const HIGH: f64 = 3.0;
/// What is left of a column without the others, below which it is one of them.
const INDEPENDENT_MIN: f64 = 1e-7;

/// `None` where there are not more rows than there would be parameters.
pub(super) fn leverage(model: &Model<'_>) -> Option<Leverage> {
    let rows = model.rows;
    let mut base = Base { columns: vec![vec![1.0 / (rows as f64).sqrt(); rows]] };
    let mut left_out = Vec::new();
    // For each feature, the leverage of a row in it alone.
    let mut alone: Vec<Option<Vec<f64>>> = Vec::new();
    for feature in &model.features {
        let of_feature = indicators(feature).filter(|it| {
            base.columns.len() + it.len() <= PARAMETERS_MAX && (base.columns.len() + it.len()) * 2 <= rows
        });
        let Some(columns) = of_feature else {
            left_out.push(feature.name.clone());
            alone.push(None);
            continue;
        };
        let mut own = Base { columns: vec![base.columns[0].clone()] };
        for column in columns {
            own.add(&column);
            base.add(&column);
        }
        own.columns.remove(0);
        alone.push(Some(own.hat(rows)));
    }
    let parameters = base.columns.len();
    if parameters < 2 {
        return None;
    }
    let hat = base.hat(rows);
    let influence = model.left_over().map(|residuals| influence(&hat, &residuals, parameters));
    let mut order: Vec<usize> = (0..rows).collect();
    let strength = |row: usize| influence.as_ref().map_or(hat[row], |it| it[row].cook.unwrap_or(0.0));
    order.sort_by(|one, other| strength(*other).total_cmp(&strength(*one)));
    let mean = parameters as f64 / rows as f64;
    let high_row = |row: &usize| HighRow {
        row: *row,
        leverage: hat[*row],
        residual: influence.as_ref().map(|it| it[*row].residual),
        studentized: influence.as_ref().and_then(|it| it[*row].studentized),
        cook: influence.as_ref().and_then(|it| it[*row].cook),
        values: apart(&model.features, &alone, *row),
    };
    Some(Leverage {
        parameters: parameters as u64,
        mean,
        high: hat.iter().filter(|it| **it > HIGH * mean).count() as u64,
        rows: order.iter().take(ROWS_LISTED).map(high_row).collect(),
        skipped: left_out,
    })
}

/// Columns that are orthogonal and of length 1.
struct Base {
    columns: Vec<Vec<f64>>,
}

impl Base {
    /// What the column adds to the others, if anything (Gram and Schmidt, twice for the rounding).
    fn add(&mut self, column: &[f64]) {
        let dot =
            |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
        let before = dot(column, column).sqrt();
        let mut rest = column.to_vec();
        for _ in 0..2 {
            for known in &self.columns {
                let share = dot(known, &rest);
                rest.iter_mut().zip(known).for_each(|(rest, known)| *rest -= share * known);
            }
        }
        let length = dot(&rest, &rest).sqrt();
        if length > INDEPENDENT_MIN * before {
            rest.iter_mut().for_each(|it| *it /= length);
            self.columns.push(rest);
        }
    }

    /// For each row its part of the space that the columns span.
    fn hat(&self, rows: usize) -> Vec<f64> {
        let mut hat = vec![0.0; rows];
        for column in &self.columns {
            hat.iter_mut().zip(column).for_each(|(sum, it)| *sum += it * it);
        }
        hat
    }
}

/// A feature as numbers: numbers about their mean, and whether they are missing; strings as whether a row has them, all
/// but the most frequent one. `None` for a column with hardly any two equal strings.
fn indicators(feature: &FrameColumn) -> Option<Vec<Vec<f64>>> {
    match &feature.cells {
        Cells::Numbers(numbers) => {
            let known: Vec<f64> = numbers.iter().copied().filter(|it| it.is_finite()).collect();
            let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
            let of = |number: &f64| if number.is_finite() { number - mean } else { 0.0 };
            let missing = numbers.iter().map(|it| f64::from(u8::from(!it.is_finite()))).collect();
            Some(vec![numbers.iter().map(of).collect(), missing])
        }
        Cells::Categories { codes, names } if names.len() * 2 <= codes.len() => {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            codes.iter().for_each(|code| *counts.entry(*code).or_default() += 1);
            let mut order: Vec<u32> = counts.keys().copied().collect();
            order.sort_by_key(|code| (std::cmp::Reverse(counts[code]), *code));
            let kept = order.iter().take(TEXTS_MAX).take_while(|code| counts[code] >= TEXT_ROWS_MIN).count();
            let others = order.split_off(kept.max(1));
            let has =
                |wanted: &[u32]| codes.iter().map(|it| f64::from(u8::from(wanted.contains(it)))).collect();
            let own = order.iter().skip(1).map(|code| has(&[*code]));
            Some(own.chain((!others.is_empty()).then(|| has(&others))).collect())
        }
        Cells::Categories { .. } => None,
    }
}

/// The features in which a row is farthest from the others, with its values.
fn apart(features: &[FrameColumn], alone: &[Option<Vec<f64>>], row: usize) -> Vec<(String, Option<String>)> {
    let known =
        features.iter().zip(alone).filter_map(|(feature, alone)| Some((feature, alone.as_ref()?[row])));
    let mut known: Vec<(&FrameColumn, f64)> = known.collect();
    known.sort_by(|one, other| other.1.total_cmp(&one.1));
    known.truncate(FEATURES_LISTED);
    let shown =
        |(feature, _): (&FrameColumn, f64)| (feature.name.clone(), shown_value(feature, &feature.cells, row));
    known.into_iter().map(shown).collect()
}

struct Influence {
    residual: f64,
    studentized: Option<f64>,
    cook: Option<f64>,
}

fn influence(hat: &[f64], residuals: &[f64], parameters: usize) -> Vec<Influence> {
    let known = residuals.iter().filter(|it| !it.is_nan());
    let squares: f64 = known.clone().map(|it| it * it).sum();
    let freedom = known.count() as f64 - parameters as f64;
    let variance = squares / freedom.max(1.0);
    let of = |(hat, residual): (&f64, &f64)| {
        let has_own = *hat < ALONE && variance > 0.0 && !residual.is_nan();
        let studentized = has_own.then(|| residual / (variance * (1.0 - hat)).sqrt());
        let cook = studentized.map(|it| it * it * hat / (1.0 - hat) / parameters as f64);
        Influence { residual: *residual, studentized, cook }
    };
    hat.iter().zip(residuals).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that leverage and Cook's distance are those of a simple regression by its closed formulas, that they sum to the number of
    /// parameters, and that a column which others make up adds nothing.
    #[test]
    fn a_line_by_hand() {
        let x = [1.0, 2.0, 3.0, 4.0, 10.0];
        let mut base = Base { columns: vec![vec![1.0 / 5f64.sqrt(); 5]] };
        base.add(&x);
        base.add(&x.map(|it| 3.0 * it - 7.0));
        assert_eq!(base.columns.len(), 2);
        let hat = base.hat(5);
        let spread: f64 = x.iter().map(|it| (it - 4.0) * (it - 4.0)).sum();
        for (hat, x) in hat.iter().zip(x) {
            assert!((hat - (0.2 + (x - 4.0) * (x - 4.0) / spread)).abs() < 1e-12);
        }
        assert!((hat.iter().sum::<f64>() - 2.0).abs() < 1e-12);
        // Of y = (1, 3, 2, 5, 4) on x, with Cook's distances by their definition: NumPy, the line fitted again without each row.
        let residuals = [-1.22, 0.52, -0.74, 2.0, -0.56];
        let expected = [
            (-1.0430271627412964, 0.3333904448726938),
            (0.41254253038399463, 0.0330927604341504),
            (-0.5640479836129211, 0.04486732571789522),
            (1.5052777242722788, 0.2832326283987925),
            (-1.332829713548294, 10.214501510574008),
        ];
        let influences = influence(&hat, &residuals, 2);
        for (influence, (studentized, cook)) in influences.iter().zip(expected) {
            let near = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-9;
            assert!(near(influence.studentized, studentized) && near(influence.cook, cook));
        }
    }

    /// Proves that strings are indicators of all but the most frequent, that missing is a separate value, that rare
    /// ones are combined and that a column of ids is left out.
    #[test]
    fn features_as_numbers() {
        let column =
            |cells| FrameColumn { name: "x".to_owned(), kind: trackway_data::ColumnType::Text, cells };
        let texts = (0..16).map(|row| [Some("a"), Some("b"), None][row % 3]).chain([Some("c"), Some("d")]);
        let found = indicators(&column(Cells::of_texts(texts))).unwrap();
        let rows = |it: &Vec<f64>| (0..18).filter(|row| it[*row] == 1.0).collect::<Vec<_>>();
        let expected = [vec![1, 4, 7, 10, 13], vec![2, 5, 8, 11, 14], vec![16, 17]];
        assert_eq!(found.iter().map(rows).collect::<Vec<_>>(), expected);
        assert_eq!(indicators(&column(Cells::of_texts([Some("a"), Some("b"), Some("c")]))), None);
        let numbers = column(Cells::Numbers(vec![1.0, f64::NAN, 3.0]));
        assert_eq!(indicators(&numbers).unwrap(), [[-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]);
    }

    /// Proves that a row which alone determines a parameter has leverage 1 and no computable influence.
    #[test]
    fn a_row_alone() {
        let influences = influence(&[1.0, 0.5], &[0.1, 0.2], 1);
        assert_eq!((influences[0].studentized, influences[0].cook), (None, None));
        assert!(influences[1].cook > Some(0.0));
    }
}
