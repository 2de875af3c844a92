//! Tables with known answers: what can be learnt is learnt, and nothing else.

use std::fmt::Write as _;
use std::fs;

use trackway_core::{Rng, SplitMix64};
use trackway_tables::pass::{PassObserver, UNWATCHED};
use trackway_tables::read::Source;
use trackway_tables::{ColumnType, DataError, DataSpec, ReadContext};

use super::*;

fn numbers(name: &str, values: Vec<f64>) -> FrameColumn {
    FrameColumn { name: name.into(), kind: ColumnType::Float, cells: Cells::Numbers(values) }
}

fn texts(name: &str, values: &[&str]) -> FrameColumn {
    let cells = Cells::of_texts(values.iter().map(|text| (!text.is_empty()).then_some(*text)));
    FrameColumn { name: name.into(), kind: ColumnType::Text, cells }
}

fn units(seed: u64, rows: usize) -> Vec<f64> {
    let mut rng = SplitMix64::new(seed);
    (0..rows).map(|_| rng.next_unit()).collect()
}

fn classes(of_row: Vec<u32>, count: usize) -> Target {
    Target::Classes { of_row, names: (0..count).map(|class| class.to_string()).collect() }
}

/// Out-of-fold predictions from all columns, each row in a separate group.
fn predict(frame: &Frame, target: &Target) -> Predictions {
    let columns: Vec<usize> = (0..frame.columns().len()).collect();
    let folds = folds(frame.keys(), target, FoldSettings::default()).unwrap();
    out_of_fold(&Binned::of(frame), &columns, target, &folds, &BoosterSettings::default())
}

fn area(frame: &Frame, is_positive: &[bool]) -> f64 {
    let target = classes(is_positive.iter().map(|it| u32::from(*it)).collect(), 2);
    roc_auc(&predict(frame, &target).column(1), is_positive).unwrap().value
}

fn r_squared(predictions: &Predictions, truth: &[f64]) -> f64 {
    let mean = truth.iter().sum::<f64>() / truth.len() as f64;
    let left: f64 = truth.iter().zip(&predictions.values).map(|(truth, said)| (truth - said).powi(2)).sum();
    1.0 - left / truth.iter().map(|truth| (truth - mean).powi(2)).sum::<f64>()
}

/// Proves that numbers that depend on columns nonlinearly and jointly are learnt, and that one unrelated column gets
/// next to no importance.
#[test]
fn amounts_are_learnt() {
    let rows = 3_000;
    let (x, y, noise) = (units(1, rows), units(2, rows), units(3, rows));
    let truth: Vec<f64> =
        (0..rows).map(|row| (6.0 * x[row]).sin() + if y[row] > 0.5 { x[row] } else { -x[row] }).collect();
    let frame = Frame::of_columns(vec![numbers("x", x), numbers("y", y), numbers("noise", noise)]);
    let target = Target::Numbers(truth.clone());
    let explained = r_squared(&predict(&frame, &target), &truth);
    assert!(explained > 0.95, "{explained}");
    let booster = Booster::fit(
        &Binned::of(&frame),
        &[0, 1, 2],
        &target,
        &target.known_rows(),
        &BoosterSettings::default(),
    );
    let importance = booster.importance();
    assert!(importance[2].1 < 0.02 && importance[0].1 > 0.3 && importance[1].1 > 0.2, "{importance:?}");
}

/// Proves that two classes, and three, are separated by numbers with missing cells and by categories with many rare
/// values; probabilities sum to one; and that noise, and a column with a different value in each row, are not used.
#[test]
fn classes_are_learnt_and_noise_is_not() {
    let rows = 3_000;
    let (x, y) = (units(4, rows), units(5, rows));
    let city: Vec<String> =
        units(6, rows).iter().map(|unit| format!("c{}", (unit * unit * 60.0) as u32)).collect();
    let odd = |city: &str| city[1..].parse::<u32>().unwrap() % 2 == 1;
    let predicted = |row: usize, x: f64| 0.1 + 0.4 * x + 0.4 * f64::from(u8::from(odd(&city[row])));
    let probability = |row: usize| predicted(row, f64::from(u8::from(x[row] > 0.6)));
    let is_positive: Vec<bool> = (0..rows).map(|row| y[row] < probability(row)).collect();
    // The best possible loss, when a seventh of `x` is missing.
    let best: Vec<f64> =
        (0..rows).map(|row| if row % 7 == 0 { predicted(row, 0.4) } else { probability(row) }).collect();
    let best = roc_auc(&best, &is_positive).unwrap().value;
    let holed: Vec<f64> =
        x.iter().enumerate().map(|(row, x)| if row % 7 == 0 { f64::NAN } else { *x }).collect();
    let names: Vec<&str> = city.iter().map(String::as_str).collect();
    let both = Frame::of_columns(vec![numbers("x", holed), texts("city", &names)]);
    let found = area(&both, &is_positive);
    assert!(found > best - 0.03, "{found}, the best possible is {best}");

    let id: Vec<String> = (0..rows).map(|row| format!("id{row}")).collect();
    let id: Vec<&str> = id.iter().map(String::as_str).collect();
    let nothing = Frame::of_columns(vec![numbers("noise", units(7, rows)), texts("id", &id)]);
    let found = area(&nothing, &is_positive);
    assert!((0.46..0.54).contains(&found), "{found}");

    let third: Vec<u32> = (0..rows).map(|row| (x[row] * 3.0) as u32).collect();
    let target = classes(third.clone(), 3);
    let predictions = predict(&Frame::of_columns(vec![numbers("x", x.clone()), numbers("y", y)]), &target);
    let right = (0..rows).filter(|row| {
        let said = predictions.row(*row);
        assert!((said.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        said[third[*row] as usize] > 0.5
    });
    let right = right.count();
    assert!(right > rows * 98 / 100, "{right} of {rows}");
    assert!(log_loss(&predictions, &target) < 0.1);
}

/// Proves that the model is the same, to the bit, on one core and on several.
#[test]
fn the_number_of_cores_changes_nothing() {
    let rows = 20_000;
    let frame = Frame::of_columns((0..4).map(|seed| numbers("x", units(seed, rows))).collect());
    let noise = units(9, rows);
    let Cells::Numbers(first) = &frame.columns()[0].cells else { unreachable!() };
    let of_row: Vec<u32> = (0..rows).map(|row| u32::from(first[row] > noise[row])).collect();
    let target = classes(of_row, 2);
    let settings = BoosterSettings { rounds_max: 5, ..BoosterSettings::default() };
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            Booster::fit(&Binned::of(&frame), &[0, 1, 2, 3], &target, &target.known_rows(), &settings)
        })
    };
    assert_eq!(fit(1), fit(3));
}

/// Proves the area and its standard error computed by hand, ties and hopeless sides included.
#[test]
fn the_area_under_the_curve() {
    let found = roc_auc(&[0.1, 0.4, 0.35, 0.8], &[false, false, true, true]).unwrap();
    assert!((found.value - 0.75).abs() < 1e-12 && (found.standard_error - 0.353_553_390_6).abs() < 1e-9);
    let tied = roc_auc(&[1.0; 4], &[false, false, true, true]).unwrap();
    assert!((tied.value - 0.5).abs() < 1e-12 && tied.standard_error == 0.0);
    assert_eq!(roc_auc(&[1.0, 2.0, 3.0], &[true, false, false]), None);
    assert_eq!(roc_auc(&[f64::NAN, 2.0, 3.0, 1.0], &[true, false, true, false]), None);
    assert!(found.interval(1.96).holds(1.0) && found.interval(1.96).high <= 1.0);
}

/// Proves that a key is never in two folds, that classes are spread evenly, and that too few keys are refused.
#[test]
fn folds_keep_keys_together() {
    let rows = 2_000;
    let keys: Vec<u64> = (0..rows as u64).map(|row| row / 3).collect();
    let target = classes((0..rows as u32).map(|row| u32::from(row % 10 == 0)).collect(), 2);
    let found = folds(&keys, &target, FoldSettings::default()).unwrap();
    for (row, fold) in found.iter().enumerate() {
        assert_eq!(*fold, found[row / 3 * 3]);
    }
    let Target::Classes { of_row, .. } = &target else { unreachable!() };
    for fold in 0..5 {
        let rare = (0..rows).filter(|row| found[*row] == fold && of_row[*row] == 1).count();
        assert!((38..=42).contains(&rare), "{rare}");
    }
    let two = classes(vec![0, 1, 0], 2);
    let refused = folds(&[1, 1, 1], &two, FoldSettings::default());
    assert!(
        matches!(refused, Err(crate::split::SplitError::Folds { folds: 5, groups: 1 })),
        "one key is too few for 5 folds: {refused:?}"
    );
}

/// Proves which targets are classes and which are continuous, and what cannot be predicted.
#[test]
fn targets_are_classes_or_amounts() {
    let many: Vec<String> = (0..100).map(|row| format!("v{row}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut grade: Vec<f64> = (0..100).map(|row| f64::from(row % 3)).collect();
    grade[0] = f64::NAN;
    let frame = Frame::of_columns(vec![
        texts("many", &many),
        numbers("grade", grade),
        numbers("price", (0..100).map(f64::from).collect()),
        numbers("same", vec![1.0; 100]),
    ]);
    assert!(matches!(Target::of(&frame, "many"), Err(TargetError::TooManyClasses { classes: 100, .. })));
    assert!(matches!(Target::of(&frame, "price"), Ok(Target::Numbers(_))));
    assert!(matches!(Target::of(&frame, "same"), Err(TargetError::Constant(_))));
    assert!(matches!(Target::of(&frame, "gone"), Err(TargetError::NoColumn(_))));
    let grade = Target::of(&frame, "grade").unwrap();
    assert_eq!((grade.class_rows(), grade.known_rows().len()), (vec![33, 33, 33], 99));
}

fn open(text: &str) -> (tempfile::TempDir, Source) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), text).unwrap();
    let spec = DataSpec { path: "a.csv".into(), ..DataSpec::default() };
    let source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
    (folder, source)
}

/// Proves that a sample holds as many rows as requested, each from its place, evenly from the whole file, the same ones
/// however many units are read at once; that equal rows have equal keys; and that what the model cannot use is named.
#[test]
fn a_sample_is_even_and_reproducible() {
    let mut text = "id,word,label\n".to_owned();
    (0..60_000).for_each(|row| writeln!(text, "{row},w{},{}", row % 7, row % 2).unwrap());
    let (_folder, source) = open(&text);
    let sample = |units_in_flight: usize, seed: u64| {
        let watch = PassObserver { units_in_flight, ..*UNWATCHED };
        Frame::sample(&mut source.clone(), Some("label"), (1_000, seed), &watch).unwrap().0
    };
    let frame = sample(4, 1);
    assert_eq!((frame.rows(), frame.rows_seen()), (1_000, 60_000));
    assert_eq!(frame, sample(1, 1));
    assert_ne!(frame.places(), sample(1, 2).places());
    let Cells::Numbers(ids) = &frame.columns()[0].cells else { panic!("numbers") };
    for (id, place) in ids.iter().zip(frame.places()) {
        assert_eq!(*id as u64 + 2, place.row, "the header is line 1");
    }
    let mean = ids.iter().sum::<f64>() / 1_000.0;
    assert!((mean - 30_000.0).abs() < 1_700.0, "{mean}: three standard errors of the middle");

    let (_folder, mut source) = open("a,b,label\n1,x,0\n2.5,,1\n1,x,1\n");
    let (frame, _) = Frame::sample(&mut source, Some("label"), (10, 0), &UNWATCHED).unwrap();
    assert_eq!((frame.keys()[0] == frame.keys()[2], frame.keys()[0] == frame.keys()[1]), (true, false));
    assert!(frame.columns()[1].cells.is_missing(1));
    let missing = Frame::sample(&mut source, Some("lable"), (10, 0), &UNWATCHED);
    assert!(matches!(missing, Err(DataError::NoColumn { .. })));
}

/// Proves that two frames are joined over their common columns, with one code for one string, and report what they
/// lack.
#[test]
fn frames_are_stacked_by_name() {
    let one = Frame::of_columns(vec![texts("word", &["a", "b"]), numbers("x", vec![1.0, 2.0])]);
    let other =
        Frame::of_columns(vec![numbers("x", vec![3.0]), texts("word", &["b"]), texts("more", &["z"])]);
    let both = one.stacked(&other);
    let Cells::Categories { codes, .. } = &both.columns()[0].cells else { panic!("texts") };
    assert_eq!((codes.as_slice(), both.rows()), ([0, 1, 1].as_slice(), 3));
    let unlike = one.stacked(&Frame::of_columns(vec![texts("x", &["q"]), texts("word", &["a"])]));
    assert_eq!((unlike.columns().len(), unlike.left_out().len()), (1, 1));
}
