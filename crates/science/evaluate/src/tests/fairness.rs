//! Fairness of several classes and of numbers.

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::Frame;

use super::{frame, numbers, texts};
use crate::{AssessError, Assessment, Spec, assess};

const CLASSES: [&str; 3] = ["a", "b", "c"];

fn by_group(table: &Frame) -> Assessment {
    assess(table, &Spec { fairness: vec!["group".into()], ..Spec::default() }, None).unwrap()
}

/// Rows of three classes in four groups, right with a probability by class and group.
fn classes(seed: u64, rows: usize, right: impl Fn(usize, usize) -> f64) -> Frame {
    let mut rng = SplitMix64::new(seed);
    let group = |row: usize| row / 3 % 4;
    let prediction = (0..rows).map(|row| {
        let is_right = rng.next_unit() < right(row % 3, group(row));
        CLASSES[if is_right { row % 3 } else { (row + 1) % 3 }]
    });
    let prediction: Vec<&str> = prediction.collect();
    frame(vec![
        texts("label", (0..rows).map(|row| CLASSES[row % 3])),
        texts("prediction", prediction),
        texts("group", (0..rows).map(|row| ["n", "e", "s", "w"][group(row)])),
    ])
}

/// Proves that the largest of 18 differences (three classes, six pairs of groups), and of the 36 of equalized odds, is
/// called more than 0 in at most 5 of 100 tables if groups do not differ, although it is always more than 0.
#[test]
fn random_groups_of_classes_are_not_unfair() {
    let tables = 200;
    let names = ["equal_opportunity", "equalized_odds"];
    let mut wrong = [0; 2];
    for seed in 0..tables {
        let found = by_group(&classes(seed, 1_200, |_, _| 0.8));
        let low = names.map(|name| found.fairness[0].measures[name].interval.low);
        wrong = [wrong[0] + u32::from(low[0] > 0.0), wrong[1] + u32::from(low[1] > 0.0)];
    }
    // 5 % is 10; three standard errors more is 19.
    assert!(wrong.iter().all(|wrong| *wrong <= 19), "{wrong:?} of {tables} tables");
}

/// Proves that equalized odds of several classes are those of the worst class against all others, as computed by hand, and
/// that the class of each measure is named.
#[test]
fn equalized_odds_of_several_classes() {
    // Of each group: label, prediction, rows. The rates of `c` are 1 and 0 everywhere but for its false positive rate.
    let cells = [
        ("n", "a", "a", 8),
        ("n", "a", "b", 2),
        ("n", "b", "b", 10),
        ("n", "c", "c", 10),
        ("s", "a", "a", 6),
        ("s", "a", "c", 4),
        ("s", "b", "b", 5),
        ("s", "b", "a", 5),
        ("s", "c", "c", 10),
    ];
    let rows = cells.iter().flat_map(|cell| std::iter::repeat_n(*cell, cell.3));
    let rows: Vec<(&str, &str, &str, usize)> = rows.collect();
    let found = by_group(&frame(vec![
        texts("label", rows.iter().map(|row| row.1)),
        texts("prediction", rows.iter().map(|row| row.2)),
        texts("group", rows.iter().map(|row| row.0)),
    ]));
    let fairness = &found.fairness[0];
    let value = |name: &str| fairness.measures[name].value;
    // True positive rates of n and s: a 0.8 and 0.6, b 1 and 0.5, c 1 and 1. False positive rates: a 0 of 20 and 5 of
    // 20, b 2 of 20 and 0 of 20, c 0 of 20 and 4 of 20.
    assert!((value("equal_opportunity") - 0.5).abs() < 1e-12);
    assert!((value("equalized_odds") - 0.5).abs() < 1e-12);
    assert!((value("equal_opportunity_ratio") - 0.5).abs() < 1e-12);
    assert!(value("equalized_odds_ratio").abs() < 1e-12, "a false positive rate is 0 in one group only");
    // Fractions predicted as a: 8/30 and 11/30; as b: 12/30 and 5/30; as c: 10/30 and 14/30.
    assert!((value("demographic_parity") - 7.0 / 30.0).abs() < 1e-12);
    assert!((value("demographic_parity_ratio") - 5.0 / 12.0).abs() < 1e-12);
    assert_eq!(fairness.worst_classes["equalized_odds"], "b");
    assert_eq!(fairness.worst_classes["demographic_parity_ratio"], "b");
    let south = fairness.groups.iter().find(|group| group.name == "s").unwrap();
    assert!((south.metrics["true_positive_rate_b"].value - 0.5).abs() < 1e-12);
    assert!(south.metrics["false_positive_rate_b"].value.abs() < 1e-12);
}

/// Proves that a class on which one group fares worse is found and named, that its rates are shown for each group, and
/// that the note names it.
#[test]
fn the_worst_class_is_named() {
    let found = by_group(&classes(3, 3_600, |class, group| if class == 1 && group == 2 { 0.5 } else { 0.9 }));
    let fairness = &found.fairness[0];
    let opportunity = fairness.measures["equal_opportunity"];
    assert!((opportunity.value - 0.4).abs() < 0.08 && opportunity.interval.low > 0.2, "{opportunity:?}");
    assert_eq!(fairness.worst_classes["equal_opportunity"], "b");
    let south = fairness.groups.iter().find(|group| group.name == "s").unwrap();
    assert!((south.metrics["true_positive_rate_b"].value - 0.5).abs() < 0.06);
    let note = "equal_opportunity by `group` differs most for the class `b`";
    assert!(found.notes.iter().any(|it| it.contains(note)), "{:?}", found.notes);
}

/// Proves that a group with few rows of one class is inconclusive, and why.
#[test]
fn a_rare_class_is_inconclusive() {
    let rows = 600;
    let label = |row: usize| if row.is_multiple_of(100) { "rare" } else { CLASSES[row % 2] };
    let table = frame(vec![
        texts("label", (0..rows).map(label)),
        texts("prediction", (0..rows).map(label)),
        texts("group", (0..rows).map(|row| if row < 300 { "one" } else { "other" })),
    ]);
    let group = &by_group(&table).fairness[0].groups[0];
    assert_eq!(group.why.as_deref(), Some("it has 3 rows with the label `rare`, fewer than 30"));
}

/// Labels around 10, and predictions with an error that is `wide` in one of three groups.
fn values(seed: u64, rows: usize, wide: f64) -> Frame {
    let mut rng = SplitMix64::new(seed);
    let label: Vec<f64> = (0..rows).map(|row| 10.0 + (row % 13) as f64 / 3.0).collect();
    let error = |row: usize, rng: &mut SplitMix64| {
        (rng.next_unit() - 0.5) * if row.is_multiple_of(3) { wide } else { 1.0 }
    };
    let prediction: Vec<f64> = (0..rows).map(|row| label[row] + error(row, &mut rng)).collect();
    frame(vec![
        numbers("label", label),
        numbers("prediction", prediction),
        texts("group", (0..rows).map(|row| ["x", "y", "z"][row % 3])),
    ])
}

/// Proves that the mean error of groups that do not differ is called different in at most 5 of 100 tables, and that one
/// that differs is found.
#[test]
fn errors_of_groups_are_compared() {
    let tables = 200;
    let differ = |seed: u64, wide: f64| {
        by_group(&values(seed, 300, wide)).fairness[0].measures["mean_error_parity"].interval.low > 0.0
    };
    let wrong = (0..tables).filter(|seed| differ(*seed, 1.0)).count();
    assert!(wrong <= 19, "{wrong} of {tables} tables");
    assert!((0..20).all(|seed| differ(seed, 3.0)));
}

/// Proves that a group of a single row leaves the upper end open, and that fairness of texts is an error.
#[test]
fn a_group_of_one_row_leaves_the_measure_open() {
    let table = values(1, 90, 1.0);
    let mut columns = table.columns().to_vec();
    columns[2] = texts("group", (0..90).map(|row| if row == 0 { "single" } else { "many" }));
    let found = by_group(&frame(columns));
    let parity = found.fairness[0].measures["mean_error_parity"];
    assert!(parity.interval.low == 0.0 && parity.interval.known_high().is_none(), "{parity:?}");
    assert!(found.fairness[0].groups[1].inconclusive);

    let texts = frame(vec![
        texts("reference", ["a b", "c"]),
        texts("hypothesis", ["a b", "d"]),
        texts("group", ["x", "y"]),
    ]);
    let wrong = assess(&texts, &Spec { fairness: vec!["group".into()], ..Spec::default() }, None);
    assert_eq!(wrong, Err(AssessError::NotFairly));
}
