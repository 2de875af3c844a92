//! Uplift: the predicted effect of a treatment.

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Frame, FrameColumn};

use super::coverage::{check, coverage, logistic, normal};
use super::{frame, numbers, texts};
use crate::metrics::resample::{Resampling, Units, draw_strata};
use crate::{AssessError, Baseline, Columns, ComparisonVerdict, Method, Spec, Task, assess};

/// Rows of which a part is treated; the effect depends on a feature that the score shows with some noise. Rows of one
/// household of `size` are treated or not together.
fn experiment(seed: u64, rows: usize, noise: f64, size: usize) -> Vec<FrameColumn> {
    let mut rng = SplitMix64::new(seed * 6_700_417 + 11);
    let (mut treatment, mut label, mut score, mut household) = (vec![], vec![], vec![], vec![]);
    let (mut is_treated, mut base) = (false, 0.0);
    for row in 0..rows {
        if row.is_multiple_of(size) {
            is_treated = rng.next_unit() < 0.4;
            base = if size > 1 { normal(&mut rng) } else { 0.0 };
        }
        let gain = normal(&mut rng);
        let logit = base - 0.5 + if is_treated { 0.4 + gain } else { 0.0 };
        treatment.push(f64::from(u8::from(is_treated)));
        label.push(f64::from(u8::from(rng.next_unit() < logistic(logit))));
        score.push(gain + noise * normal(&mut rng));
        household.push((row / size) as f64);
    }
    vec![
        numbers("treatment", treatment),
        numbers("label", label),
        numbers("score", score),
        numbers("household", household),
        numbers("id", (0..rows).map(|row| row as f64)),
    ]
}

fn independent(seed: u64, rows: usize) -> Frame {
    frame(experiment(seed, rows, 0.5, 1))
}

/// Proves that the task is inferred only from a treatment of 0 and 1 beside a label and a score without a prediction, and
/// that a column of that name is otherwise a feature like any other.
#[test]
fn the_task_is_inferred_from_a_treatment() {
    let columns = experiment(1, 200, 0.5, 1);
    let with = |changed: FrameColumn| {
        let mut columns = columns.clone();
        columns.retain(|column| column.name != changed.name);
        columns.push(changed);
        assess(&frame(columns), &Spec::default(), None).unwrap()
    };
    let found = assess(&frame(columns.clone()), &Spec::default(), None).unwrap();
    assert_eq!((found.task, found.main_metric.as_str()), (Task::Uplift, "qini"));
    assert_eq!(found.columns.treatment.as_deref(), Some("treatment"));
    assert_eq!(found.coverage.rows_used, 200);
    assert_eq!(with(texts("treatment", ["drug", "none"].repeat(100))).task, Task::Classification);
    assert_eq!(with(numbers("treatment", (0..200).map(|row| f64::from(row % 3)))).task, Task::Classification);
    let predicted = with(numbers("prediction", (0..200).map(|row| f64::from(row % 2))));
    assert_eq!((predicted.task, predicted.columns.treatment), (Task::Classification, None));
    let forced = Spec { task: Some(Task::Classification), ..Spec::default() };
    let forced = assess(&frame(columns), &forced, None).unwrap();
    let of = |name: &str| forced.residuals.iter().flat_map(|it| &it.by_feature).any(|it| it.feature == name);
    assert!(of("treatment") && of("household"), "a feature has residuals");
}

/// Proves that a treatment that is neither 0 nor 1 is reported with its row, and that one arm is not an experiment.
#[test]
fn a_treatment_is_zero_or_one_and_both() {
    let table = |treatment: [f64; 4]| {
        frame(vec![
            numbers("arm", treatment),
            numbers("label", [1.0, 0.0, 1.0, 0.0]),
            numbers("score", [0.1, 0.2, 0.3, 0.4]),
        ])
    };
    let columns = Columns { treatment: Some("arm".into()), ..Columns::default() };
    let spec = Spec { columns, ..Spec::default() };
    let wrong = assess(&table([0.0, 1.0, 2.0, 0.0]), &spec, None).unwrap_err();
    assert_eq!(wrong.to_string(), "`arm` is 2 in row 3: a treatment is 1 (treated) or 0 (not treated)");
    let wrong = assess(&table([1.0; 4]), &spec, None);
    assert_eq!(wrong, Err(AssessError::OneArm { column: "arm".into(), value: 1 }));
}

/// Proves that the order of rows with the same score does not matter, even where the top 30 % end.
#[test]
fn the_order_of_ties_does_not_matter() {
    let mut columns = experiment(3, 300, 0.5, 1);
    columns[2] = numbers("score", (0..300).map(|row| f64::from(row % 3)));
    let turned = columns.iter().map(|column| {
        let trackway_data::model::Cells::Numbers(values) = &column.cells else { panic!("numbers") };
        numbers(&column.name, values.iter().rev().copied())
    });
    let values = |columns: Vec<FrameColumn>| -> Vec<f64> {
        let found = assess(&frame(columns), &Spec::default(), None).unwrap().metrics;
        ["uplift_at_30", "qini", "auuc", "ate"].map(|name| found[name].value).to_vec()
    };
    let (there, back) = (values(columns.clone()), values(turned.collect()));
    assert!(there.iter().zip(&back).all(|(one, other)| (one - other).abs() < 1e-12), "{there:?} {back:?}");
}

/// Proves that every resample has as many units of each stratum as there are, and that all units of a group are sampled
/// together.
#[test]
fn resamples_keep_the_size_of_each_arm() {
    let resampling = Resampling { resamples: 100, seed: 5, confidence: 0.95 };
    let strata: Vec<bool> = (0..30).map(|unit| unit < 8).collect();
    let counted = |weights: &[u8]| -> Vec<f64> { weights.iter().map(|weight| f64::from(*weight)).collect() };
    let drawn = draw_strata(Units::Items(30), &strata, resampling, counted);
    assert!(drawn.iter().all(|weights| weights[..8].iter().sum::<f64>() == 8.0));
    assert!(drawn.iter().all(|weights| weights[8..].iter().sum::<f64>() == 22.0));
    assert!(drawn.iter().any(|weights| weights[0] > 1.0) && drawn.iter().any(|weights| weights[0] == 0.0));
    let of_item: Vec<u32> = (0..60).map(|item| item / 2).collect();
    let drawn = draw_strata(Units::Groups(&of_item, 30), &strata, resampling, counted);
    assert!(drawn.iter().all(|weights| weights.chunks(2).all(|pair| pair[0] == pair[1])));
}

/// Proves that intervals of independent rows hold the true value in about 95 of 100 tables, by formula and by bootstrap.
#[test]
fn intervals_of_effects_hold() {
    let names = ["ate", "uplift_at_30", "qini", "auuc"];
    let spec = Spec { resamples: 300, ..Spec::default() };
    check(coverage(independent, 600, &spec, &names), 0.91);
    let drawn = Spec { always_resample: true, ..spec };
    check(coverage(independent, 600, &drawn, &["ate"]), 0.91);
}

/// Proves that households that were treated together are resampled together, which makes intervals wider.
#[test]
fn groups_that_were_treated_together_widen_intervals() {
    let table = frame(experiment(5, 1_200, 0.5, 12));
    let of = |group: Option<&str>| {
        let columns = Columns { group: group.map(str::to_owned), ..Columns::default() };
        assess(&table, &Spec { columns, ..Spec::default() }, None).unwrap().metrics["ate"]
    };
    let (alone, grouped) = (of(None), of(Some("household")));
    let width = |it: crate::Estimate| it.interval.high - it.interval.low;
    assert_eq!((alone.method, grouped.method), (Method::Analytic, Method::Clustered));
    assert!(width(grouped) > 1.3 * width(alone), "{alone:?} {grouped:?}");
}

/// Proves that a score that shows the effect better is better, and that rows whose outcome or treatment differs are not
/// compared.
#[test]
fn a_better_score_is_better() {
    let baseline = frame(experiment(7, 3_000, 6.0, 1));
    let mut columns = experiment(7, 3_000, 6.0, 1);
    columns[2] = experiment(7, 3_000, 0.0, 1)[2].clone();
    let compared = |columns: Vec<FrameColumn>| {
        let sides = Baseline { frame: &baseline, id: Some("id") };
        assess(&frame(columns), &Spec::default(), Some(sides)).unwrap().comparison.unwrap()
    };
    let found = compared(columns.clone());
    assert_eq!(found.metrics["ate"].difference.value, 0.0);
    assert_eq!(found.metrics["qini"].verdict, ComparisonVerdict::Better, "{:?}", found.metrics["qini"]);
    let trackway_data::model::Cells::Numbers(values) = &mut columns[0].cells else { panic!("numbers") };
    values[3] = 1.0 - values[3];
    assert_eq!(compared(columns).pairing.different_labels, 1);
}
