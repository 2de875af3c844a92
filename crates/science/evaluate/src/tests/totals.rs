//! Errors by their sum: `bias`, `relative_bias` and `wape`.

use trackway_data::model::Frame;

use super::{frame, numbers};
use crate::{Baseline, Columns, ComparisonVerdict, SliceRows, Spec, Task, assess};

/// Labels of a mean, and predictions that are off by `excess` on average, a little more or less in turn.
fn table(rows: usize, mean: f64, excess: f64) -> Frame {
    let label = |row: usize| mean + (row % 7) as f64 - 3.0;
    let off = |row: usize| excess + if row.is_multiple_of(2) { 0.5 } else { -0.5 };
    frame(vec![
        numbers("id", (0..rows).map(|row| row as f64)),
        numbers("label", (0..rows).map(label)),
        numbers("prediction", (0..rows).map(|row| label(row) + off(row))),
    ])
}

fn spec() -> Spec {
    Spec { task: Some(Task::Regression), ..Spec::default() }
}

/// Proves that predictions below the labels give negative values with intervals below 0, by formula and by bootstrap.
#[test]
fn predictions_that_are_too_low_have_a_negative_bias() {
    for always_resample in [false, true] {
        let found = assess(&table(700, 20.0, -2.0), &Spec { always_resample, ..spec() }, None).unwrap();
        let (bias, relative) = (found.metrics["bias"], found.metrics["relative_bias"]);
        assert!((bias.value + 2.0).abs() < 1e-9 && (relative.value + 0.1).abs() < 1e-9, "{bias:?}");
        assert!(bias.interval.high < -1.9 && relative.interval.high < -0.09, "{bias:?} {relative:?}");
        assert_eq!((bias.coverage.rows_used, bias.coverage.rows_expected), (700, 700));
        assert!((found.metrics["wape"].value - 0.1).abs() < 1e-9);
    }
}

/// Proves that labels whose sum may as well be 0 give a relative bias without an interval, and a sum of exactly 0 none at
/// all, with a note.
#[test]
fn a_sum_near_zero_has_no_interval() {
    let near = assess(&table(701, 0.05, 1.0), &spec(), None).unwrap();
    assert!(near.metrics["relative_bias"].interval.bounds().is_none(), "{:?}", near.metrics["relative_bias"]);
    assert!(near.metrics["wape"].interval.bounds().is_some());
    let zero = assess(&table(700, 0.0, 1.0), &spec(), None).unwrap();
    assert!(!zero.metrics.contains_key("relative_bias"));
    assert!(
        zero.notes.iter().any(|note| note.contains("relative_bias cannot be computed")),
        "{:?}",
        zero.notes
    );
}

/// Proves that rows of one group widen the interval of the relative bias, and that the open denominator is found by
/// groups.
#[test]
fn groups_widen_the_relative_bias() {
    let mut columns = table(700, 20.0, 1.0).columns().to_vec();
    columns.push(numbers("batch", (0..700).map(|row| (row % 7) as f64)));
    let table = frame(columns);
    let width = |group: Option<&str>| {
        let columns = Columns { group: group.map(str::to_owned), ..Columns::default() };
        let interval = assess(&table, &Spec { columns, ..spec() }, None).unwrap().metrics["wape"].interval;
        interval.high - interval.low
    };
    assert!(width(Some("batch")) > 1.5 * width(None), "{} {}", width(Some("batch")), width(None));
}

/// Proves that a bias nearer to 0 is better, from either side, in a comparison and in a slice.
#[test]
fn a_bias_nearer_to_zero_is_better() {
    let verdict = |baseline: f64, candidate: f64| {
        let (baseline, candidate) = (table(500, 20.0, baseline), table(500, 20.0, candidate));
        let sides = Baseline { frame: &baseline, id: Some("id") };
        let found = assess(&candidate, &spec(), Some(sides)).unwrap().comparison.unwrap();
        let compared = found.metrics["bias"].clone();
        (compared.verdict, compared.difference.value)
    };
    assert_eq!(verdict(-2.0, 1.0), (ComparisonVerdict::Better, -1.0));
    assert_eq!(verdict(1.0, -2.0), (ComparisonVerdict::Worse, 1.0));
    // The same distance on either side.
    assert_eq!(verdict(-1.0, 1.0), (ComparisonVerdict::Inconclusive, 0.0));

    let part = |from: usize| (0..600).map(|row| row >= from).collect::<Vec<bool>>();
    let excess = |row: usize| if row < 300 { -2.0 } else { 1.0 };
    let rows = || 0..600;
    let table = frame(vec![
        numbers("label", rows().map(|row| row as f64)),
        numbers("prediction", rows().map(|row| row as f64 + excess(row) + 0.1 * (row % 3) as f64)),
    ]);
    let slices = vec![SliceRows {
        name: "late".into(),
        predicate: "late".into(),
        rows: part(300),
        metric: None,
        limits: None,
    }];
    let spec = Spec { slices, main_metric: Some("bias".into()), ..spec() };
    let found = assess(&table, &spec, None).unwrap();
    assert_eq!(found.slices[0].verdict, ComparisonVerdict::Better, "{:?}", found.slices[0]);
}
