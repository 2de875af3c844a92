//! Residuals of models whose faults are known.

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Cells, Frame, FrameColumn};
use trackway_tables::ColumnType;

use super::*;
use crate::{Spec, assess};

fn column(name: &str, kind: ColumnType, cells: Cells) -> FrameColumn {
    FrameColumn { name: name.to_owned(), kind, cells }
}

fn numbers(name: &str, values: Vec<f64>) -> FrameColumn {
    column(name, ColumnType::Float, Cells::Numbers(values))
}

fn texts(name: &str, values: &[&str]) -> FrameColumn {
    column(name, ColumnType::Text, Cells::of_texts(values.iter().map(|it| Some(*it))))
}

/// `rows` numbers of mean 0.
fn noise(rows: usize, seed: u64) -> Vec<f64> {
    let mut rng = SplitMix64::new(seed);
    (0..rows).map(|_| rng.next_unit() + rng.next_unit() - 1.0).collect()
}

fn leftover<'r>(predicted: &'r Cells, residuals: &'r [f64]) -> Leftover<'r> {
    Leftover { of: ResidualOf::Value, predicted, residuals, rows: None, groups: None, confidence: 0.95 }
}

/// Proves that a line fitted to a curve is detected by its feature, in the right places and with the right sign, that
/// an uninformative feature is not, and that a growing spread is reported as such.
#[test]
fn faults_of_a_regression() {
    let rows = 2_000;
    let x: Vec<f64> = (0..rows).map(|row| row as f64 / rows as f64).collect();
    let error = noise(rows, 1);
    let sector: Vec<&str> = (0..rows).map(|row| ["care", "retail", "craft"][row * 7 % 3]).collect();
    // The label is x² with more noise at larger x; the prediction is x − 1/6, the best line.
    let left: Vec<f64> =
        (0..rows).map(|row| x[row] * x[row] + error[row] * x[row] * 0.2 - (x[row] - 1.0 / 6.0)).collect();
    let predicted = Cells::Numbers(x.iter().map(|x| x - 1.0 / 6.0).collect());
    let features = [numbers("x", x), texts("sector", &sector), numbers("noise", noise(rows, 2))];
    let found = residuals(&features.iter().collect::<Vec<_>>(), leftover(&predicted, &left)).unwrap();
    assert_eq!((found.rows, found.features), (2_000, 3));
    assert_eq!(found.by_feature[0].feature, "x");
    let depends = |curve: &ResidualCurve| {
        (curve.mean_depends.unwrap().adjusted_p_value, curve.spread_depends.unwrap().adjusted_p_value)
    };
    let bins = &found.by_feature[0].bins;
    assert_eq!(bins.len(), 10);
    assert!(
        bins[0].mean.interval.low > 0.0
            && bins[9].mean.interval.low > 0.0
            && bins[5].mean.interval.high < 0.0,
        "{bins:?}"
    );
    assert!(bins[9].high - bins[9].low > 3.0 * (bins[1].high - bins[1].low), "{bins:?}");
    assert_eq!(depends(&found.by_feature[0]), depends(found.by_prediction.as_ref().unwrap()));
    assert!(depends(&found.by_feature[0]).0 < 1e-6 && depends(&found.by_feature[0]).1 < 1e-6);
    for other in &found.by_feature[1..] {
        assert!(depends(other).0 > 0.01 && depends(other).1 > 0.01, "{other:?}");
    }
    assert_eq!(found.by_feature.iter().filter(|it| it.feature == "sector").count(), 1);
    assert!(found.points.len() > POINTS_MAX / 2 && found.points.len() <= POINTS_MAX);
}

/// Proves that predictions which miss every label by the same number depend on nothing, whatever their rounding errors depend on.
#[test]
fn rounding_errors_are_no_dependence() {
    let labels: Vec<f64> = (0..2_000).map(|row| f64::from(row) / 7.0).collect();
    let predicted: Vec<f64> = labels.iter().map(|label| label + 2.1).collect();
    let left: Vec<f64> = labels.iter().zip(&predicted).map(|(label, predicted)| label - predicted).collect();
    assert!(left.iter().any(|it| *it != left[0]), "they have rounding errors");
    let predicted = Cells::Numbers(predicted);
    let feature = numbers("x", labels);
    let found = residuals(&[&feature], leftover(&predicted, &left)).unwrap();
    let depends = |curve: &ResidualCurve| {
        let all = [curve.mean_depends, curve.spread_depends];
        all.into_iter().flatten().any(|it| it.adjusted_p_value < 0.05)
    };
    assert!(!depends(&found.by_feature[0]) && !depends(found.by_prediction.as_ref().unwrap()), "{found:?}");
}

/// Proves that if nothing depends on anything, a dependence is hardly ever reported: of 200 tables with 5 features each
/// at a level of 5 %, at most 20 (10 are expected).
#[test]
fn clean_residuals_stay_clean() {
    let rows = 400;
    let reported = (0..200).filter(|seed| {
        let features: Vec<FrameColumn> = (0..5)
            .map(|feature| numbers(&format!("x{feature}"), noise(rows, 1_000 + seed * 7 + feature)))
            .collect();
        let left = noise(rows, 77 + seed * 1_000_003);
        let predicted = Cells::Numbers(noise(rows, 5 + seed * 13));
        let found = residuals(&features.iter().collect::<Vec<_>>(), leftover(&predicted, &left)).unwrap();
        let curves = found.by_feature.iter().chain(&found.by_prediction);
        curves.filter_map(|it| it.mean_depends).any(|it| it.adjusted_p_value < 0.05)
    });
    let reported = reported.count();
    assert!(reported <= 20, "{reported} of 200");
}

/// Proves that correct probabilities are not called wrong, though most bins have hardly any positives, nor classes that
/// are wrong equally rarely everywhere: of 200 tables each at a level of 5 %, at most 20 (10 are expected). And that if
/// probabilities are half of what they should be, all are reported.
#[test]
fn rare_events_stay_clean() {
    let rows = 600;
    let reported = |of: ResidualOf, factor: f64| {
        let is_reported = |seed: &u64| {
            let mut rng = SplitMix64::new(1 + seed * 977);
            let probabilities: Vec<f64> = (0..rows).map(|_| rng.next_unit().powi(6) * 0.5).collect();
            let came =
                |probability: f64, rng: &mut SplitMix64| f64::from(u8::from(rng.next_unit() < probability));
            let left: Vec<f64> = match of {
                ResidualOf::Probability => {
                    probabilities.iter().map(|it| came(it * factor, &mut rng) - it).collect()
                }
                _ => probabilities.iter().map(|_| came(0.04, &mut rng)).collect(),
            };
            let predicted = Cells::Numbers(probabilities);
            let feature = numbers("x", noise(rows, 3 + seed));
            let found = residuals(&[&feature], Leftover { of, ..leftover(&predicted, &left) }).unwrap();
            let curves = found.by_feature.iter().chain(&found.by_prediction);
            curves.filter_map(|it| it.mean_depends).any(|it| it.adjusted_p_value < 0.05)
        };
        (0..200).filter(is_reported).count()
    };
    let (probabilities, wrong, low) = (
        reported(ResidualOf::Probability, 1.0),
        reported(ResidualOf::WrongClass, 1.0),
        reported(ResidualOf::Probability, 2.0),
    );
    assert!(probabilities <= 20 && wrong <= 20 && low >= 150, "{probabilities} {wrong} {low}");
}

/// Proves that a residual which is the same within a group of rows counts once per group, not once per row.
#[test]
fn rows_of_a_group_count_once() {
    let rows = 3_000;
    let groups: Vec<u32> = (0..rows as u32).map(|row| row / 100).collect();
    let of_group = noise(30, 3);
    let left: Vec<f64> = groups.iter().map(|group| of_group[*group as usize]).collect();
    // Neighbours in `x` are in one group, so that bins of it differ by the few groups that are in them.
    let features = [numbers("x", (0..rows).map(f64::from).collect())];
    let features: Vec<&FrameColumn> = features.iter().collect();
    let predicted = Cells::Numbers(noise(rows as usize, 4));
    let alone = residuals(&features, leftover(&predicted, &left)).unwrap();
    let grouped =
        residuals(&features, Leftover { groups: Some(&groups), ..leftover(&predicted, &left) }).unwrap();
    let p_value = |it: &Residuals| it.by_feature[0].mean_depends.unwrap().adjusted_p_value;
    assert!(p_value(&alone) < 1e-9 && p_value(&grouped) > 0.01, "{} {}", p_value(&alone), p_value(&grouped));
    let width = |it: &Residuals| it.mean.interval.high - it.mean.interval.low;
    assert!(width(&grouped) > 5.0 * width(&alone));
}

/// Proves that missing and rare values are separate bins, that a column of ids is left out, that few rows and residuals
/// without a value give no result, and that a constant column has no curve.
#[test]
fn edges_of_columns() {
    let rows = 300;
    let ids: Vec<String> = (0..rows).map(|row| format!("id{row}")).collect();
    let ids = column("id", ColumnType::Text, Cells::of_texts(ids.iter().map(|it| Some(it.as_str()))));
    let town: Vec<Option<&str>> = (0..rows).map(|row| [Some("Ulm"), Some("Bonn"), None][row % 3]).collect();
    let mut town = town;
    (0..40).for_each(|row| town[row] = Some(["a", "b"][row % 2]));
    let town = column("town", ColumnType::Text, Cells::of_texts(town));
    let same = numbers("same", vec![1.0; rows]);
    let left = noise(rows, 9);
    let predicted = Cells::Numbers(vec![0.5; rows]);
    let found = residuals(&[&ids, &town, &same], leftover(&predicted, &left)).unwrap();
    assert_eq!((found.by_prediction, found.features, found.by_feature.len()), (None, 1, 1));
    let shown: Vec<Option<&str>> = found.by_feature[0].bins.iter().map(|it| it.values.as_deref()).collect();
    assert_eq!(shown.len(), 4);
    assert!(shown[..2].contains(&Some("Ulm")) && shown[..2].contains(&Some("Bonn")));
    assert_eq!(shown[2..], [None, Some("(others)")]);
    let few = Cells::Numbers(vec![0.5; 59]);
    assert_eq!(residuals(&[], leftover(&few, &left[..59])), None);
    let mut broken = left.clone();
    broken[7] = f64::NAN;
    assert_eq!(residuals(&[&town], leftover(&predicted, &broken)), None);
}

/// Proves that an assessment has residuals of its rows by every column that is not part of the evaluation, nor says how
/// right it was: of the probability if there is one, of classes those of right and wrong, in the order of the table's
/// rows whatever the order of scores.
#[test]
fn residuals_of_a_table() {
    let rows = 900;
    let sex: Vec<&str> = (0..rows).map(|row| ["m", "f"][row % 2]).collect();
    let mut rng = SplitMix64::new(5);
    let label: Vec<f64> = sex
        .iter()
        .map(|sex| f64::from(u8::from(rng.next_unit() < if *sex == "m" { 0.7 } else { 0.3 })))
        .collect();
    let score: Vec<f64> = (0..rows).map(|_| 0.4 + 0.2 * rng.next_unit()).collect();
    let wrong: Vec<f64> = label
        .iter()
        .zip(&score)
        .map(|(label, score)| f64::from(u8::from((*score >= 0.5) != (*label == 1.0))))
        .collect();
    let columns = vec![
        column("label", ColumnType::Int, Cells::Numbers(label)),
        numbers("score", score),
        texts("sex", &sex),
        numbers("correct", wrong.iter().map(|it| 1.0 - it).collect()),
        numbers("abs_error", wrong),
    ];
    let found =
        assess(&Frame::of_columns(columns.clone()), &Spec::default(), None).unwrap().residuals.unwrap();
    assert_eq!((found.of, found.by_feature.len()), (ResidualOf::Probability, 1));
    let means: Vec<f64> = found.by_feature[0].bins.iter().map(|it| it.mean.value).collect();
    assert!(means.iter().all(|it| it.abs() > 0.1) && means[0] * means[1] < 0.0, "{means:?}");
    assert!(found.by_feature[0].mean_depends.unwrap().adjusted_p_value < 1e-9);

    let prediction = column(
        "prediction",
        ColumnType::Int,
        Cells::Numbers((0..rows).map(|row| f64::from(u8::from(row % 2 == 0))).collect()),
    );
    let table = Frame::of_columns(vec![columns[0].clone(), prediction, columns[2].clone()]);
    let found = assess(&table, &Spec::default(), None).unwrap().residuals.unwrap();
    assert_eq!((found.of, found.points.len()), (ResidualOf::WrongClass, 0));
    assert!((found.mean.value - 0.3).abs() < 0.06, "{:?}", found.mean);
}
