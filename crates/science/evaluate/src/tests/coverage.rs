//! Simulations: how often an interval of 95 % holds the true value.

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::Frame;

use super::{frame, numbers};
use crate::{Columns, Metrics, Spec, assess};

/// Random tables. The coverage of intervals has a standard error of about 1 %.
const TABLES: u64 = 400;

/// How many intervals of each metric hold the value that a very large table of the same making has.
pub(super) fn coverage(
    make: impl Fn(u64, usize) -> Frame,
    rows: usize,
    spec: &Spec,
    truth_of: &[&str],
) -> Vec<(String, f64)> {
    let truth =
        assess(&make(1 << 40, 400_000), &Spec { resamples: 100, ..spec.clone() }, None).unwrap().metrics;
    let mut held = vec![0.0; truth_of.len()];
    for table in 0..TABLES {
        let found: Metrics = assess(&make(table, rows), spec, None).unwrap().metrics;
        for (held, name) in held.iter_mut().zip(truth_of) {
            let (estimate, truth) = (found[*name], truth[*name].value);
            let holds = estimate.interval.bounds().is_some() && estimate.interval.holds(truth);
            *held += f64::from(u8::from(holds)) / TABLES as f64;
        }
    }
    truth_of.iter().map(|name| (*name).to_owned()).zip(held).collect()
}

pub(super) fn check(found: Vec<(String, f64)>, low: f64) {
    for (name, share) in found {
        println!("{name}: {share:.3}");
        assert!((low..=0.995).contains(&share), "{name}: {share} of the intervals hold the true value");
    }
}

pub(super) fn normal(rng: &mut SplitMix64) -> f64 {
    let (radius, angle) = (rng.next_unit().max(1e-300), rng.next_unit());
    (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).cos()
}

pub(super) fn logistic(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// Two classes with scores that are off by a factor, so that there is a calibration error to be found.
fn scored(seed: u64, rows: usize) -> Frame {
    let mut rng = SplitMix64::new(seed * 7_919 + 13);
    let drawn = (0..rows).map(|_| {
        let logit = 1.5 * normal(&mut rng) - 0.5;
        let label = f64::from(u8::from(rng.next_unit() < logistic(logit)));
        (label, logistic(2.5 * logit))
    });
    let (label, score): (Vec<f64>, Vec<f64>) = drawn.unzip();
    frame(vec![numbers("label", label), numbers("score", score)])
}

/// Proves that intervals by formula and by draws hold the true value in about 95 of 100 tables of 400 rows.
#[test]
fn intervals_of_independent_rows_hold() {
    let names = [
        "accuracy", "balanced_accuracy", "precision", "recall", "f1", "roc_auc", "log_loss", "brier",
        "average_precision",
    ];
    let spec = Spec { resamples: 400, ..Spec::default() };
    check(coverage(scored, 400, &spec, &names), 0.92);
    // The distance of means is never negative, which no interval of draws makes up for quite.
    check(coverage(scored, 400, &spec, &["ece"]), 0.87);
    let drawn = Spec { always_resample: true, ..spec };
    check(
        coverage(scored, 400, &drawn, &["accuracy", "f1", "roc_auc", "balanced_accuracy", "log_loss"]),
        0.91,
    );
}

/// A regression, in which every tenth row's error is so many times as wide.
fn amounts(seed: u64, rows: usize, wide: f64) -> Frame {
    let mut rng = SplitMix64::new(seed * 104_729 + 5);
    let drawn = (0..rows).map(|_| {
        let label = 10.0 + 3.0 * normal(&mut rng);
        (label, label + normal(&mut rng) * if rng.next_unit() < 0.1 { wide } else { 1.0 })
    });
    let (label, prediction): (Vec<f64>, Vec<f64>) = drawn.unzip();
    frame(vec![numbers("label", label), numbers("prediction", prediction)])
}

/// Proves the same for regression; where a few outliers make up most of the squares, 400 rows give about 90 of 100.
#[test]
fn intervals_of_amounts_hold() {
    let spec = Spec { resamples: 400, ..Spec::default() };
    let names = ["mae", "rmse", "pinball", "r2", "bias", "relative_bias", "wape"];
    check(coverage(|seed, rows| amounts(seed, rows, 1.0), 400, &spec, &names), 0.92);
    check(coverage(|seed, rows| amounts(seed, rows, 3.0), 400, &spec, &names), 0.87);
}

/// Two classes where 10 rows of a group are right or wrong, easy or hard, together.
fn grouped(seed: u64, rows: usize) -> Frame {
    let mut rng = SplitMix64::new(seed * 15_485_863 + 3);
    let (mut label, mut score, mut group) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..rows / 10 {
        let shift = normal(&mut rng);
        for _ in 0..10 {
            let is_positive = rng.next_unit() < 0.5;
            let side = if is_positive { 1.0 } else { -1.0 };
            let logit = side * (1.0 + shift) + 0.7 * normal(&mut rng);
            label.push(f64::from(u8::from(is_positive)));
            score.push(logistic(logit));
            group.push(number as f64);
        }
    }
    frame(vec![numbers("label", label), numbers("score", score), numbers("group", group)])
}

/// Proves that intervals hold if rows have groups and these are given; and that they do not otherwise, which is why
/// groups exist.
#[test]
fn intervals_of_groups_hold() {
    let names = ["accuracy", "balanced_accuracy", "recall", "f1", "roc_auc", "log_loss", "average_precision"];
    let columns = Columns { group: Some("group".into()), ..Columns::default() };
    let spec = Spec { resamples: 400, columns, ..Spec::default() };
    check(coverage(grouped, 600, &spec, &names), 0.90);
    let blind = Spec { columns: Columns::default(), ..spec };
    for (name, share) in coverage(grouped, 600, &blind, &["accuracy", "roc_auc"]) {
        assert!(share < 0.8, "{name}: {share}");
    }
}
