//! Models whose insides are known: what is found out must be what is in them.

use std::sync::atomic::AtomicBool;

use trackway_core::{Rng, SplitMix64};
use trackway_data::ColumnType;
use trackway_data::model::{Cells, FrameColumn};

use super::*;
use crate::search::Loss;

static NEVER: AtomicBool = AtomicBool::new(false);

fn column(name: &str, kind: ColumnType, cells: Cells) -> FrameColumn {
    FrameColumn { name: name.to_owned(), kind, cells }
}

/// 400 rows: `age` from 20 to 60, a sector, and noise.
fn rows() -> Vec<FrameColumn> {
    let mut rng = SplitMix64::new(1);
    let ages = (0..400).map(|row| f64::from(20 + row % 41)).collect();
    let sectors: Vec<&str> =
        (0..400).map(|_| if rng.next_unit() < 0.3 { "retail" } else { "care" }).collect();
    let noise = (0..400).map(|_| rng.next_unit()).collect();
    vec![
        column("age", ColumnType::Int, Cells::Numbers(ages)),
        column("sector", ColumnType::Text, Cells::of_texts(sectors.into_iter().map(Some))),
        column("noise", ColumnType::Float, Cells::Numbers(noise)),
    ]
}

/// Above 0.5 from 50 on, and 0.2 higher in retail; does not know missing ages, and never looks at the noise.
fn chance(columns: &[FrameColumn]) -> Result<Cells, Unscored> {
    let (Cells::Numbers(ages), Cells::Categories { codes, names }) = (&columns[0].cells, &columns[1].cells)
    else {
        return Err(Unscored::Failed("other columns".to_owned()));
    };
    if ages.iter().any(|age| age.is_nan()) {
        return Err(Unscored::Refused("age is missing".to_owned()));
    }
    let retail = |code: &u32| names.get(*code as usize).is_some_and(|name| name == "retail");
    let of = |(age, code): (&f64, &u32)| (age / 100.0 + if retail(code) { 0.2 } else { 0.0 }).clamp(0.0, 1.0);
    Ok(Cells::Numbers(ages.iter().zip(codes).map(of).collect()))
}

fn classes(columns: &[FrameColumn]) -> Result<Cells, Unscored> {
    let Cells::Numbers(chances) = chance(columns)? else {
        return Err(Unscored::Failed("no numbers".to_owned()));
    };
    Ok(Cells::of_texts(chances.iter().map(|it| Some(if *it >= 0.5 { "yes" } else { "no" }))))
}

fn settings(parts: &[ProbePart]) -> ProbeSettings {
    ProbeSettings { parts: parts.to_vec(), ..ProbeSettings::default() }
}

fn truth() -> FrameColumn {
    let Ok(Cells::Numbers(chances)) = chance(&rows()) else { unreachable!("it answers numbers") };
    column(
        "y",
        ColumnType::Int,
        Cells::Numbers(chances.iter().map(|it| f64::from(u8::from(*it >= 0.5))).collect()),
    )
}

fn probed(parts: &[ProbePart], score: &mut Score<'_>, loss: Option<Loss>) -> ProbeAnswer {
    let mut model = Model::new(rows(), Some(truth()), loss, None, score).unwrap();
    probe(&mut model, &settings(parts), &|_| {}, &NEVER).unwrap()
}

/// Proves that features are ordered by what the model takes from them, and that one it never looks at has no importance
/// at all.
#[test]
fn importance_of_known_features() {
    let answer = probed(&[ProbePart::Importance], &mut chance, None);
    let names: Vec<&str> = answer.importance.iter().map(|it| it.feature.as_str()).collect();
    assert_eq!(names, ["age", "sector", "noise"]);
    assert_eq!(answer.loss, Some(Loss::Squared));
    let of = |index: usize| answer.importance[index].increase;
    assert!(of(0).low.unwrap() > 0.0 && of(1).low.unwrap() > 0.0, "{answer:?}");
    assert_eq!((of(2).value, answer.importance[2].repeats.as_slice()), (0.0, [0.0; 5].as_slice()));
    assert_eq!(answer.scored_rows, 400 * 16);
}

/// Proves that curves are those of the model: a line over ages, for the mean and for each row, and a step over sectors;
/// of classes, shares that sum to one.
#[test]
fn curves_of_known_features() {
    let answer = probed(&[ProbePart::Dependence], &mut chance, None);
    let ages = &answer.dependence[0];
    assert_eq!((ages.values[0].as_str(), ages.values[19].as_str()), ("20", "60"));
    let rise = |curve: &[f64]| curve[19] - curve[0];
    let curve = &ages.curves[0];
    assert!((rise(&curve.mean) - 0.4).abs() < 1e-12 && curve.rows.len() == 20);
    assert!(curve.rows.iter().all(|row| (rise(row) - 0.4).abs() < 1e-12));
    assert!((curve.high[0] - curve.low[0] - 0.2).abs() < 1e-12);
    let sectors = &answer.dependence[1];
    assert_eq!(sectors.values, ["care", "retail"]);
    assert!((sectors.curves[0].mean[1] - sectors.curves[0].mean[0] - 0.2).abs() < 1e-12);

    let mut score = classes;
    let mut model = Model::new(rows(), None, None, None, &mut score).unwrap();
    let answer = probe(&mut model, &settings(&[ProbePart::Dependence]), &|_| {}, &NEVER).unwrap();
    let curves = &answer.dependence[0].curves;
    assert_eq!(curves.len(), 2);
    assert!((0..20).all(|at| (curves[0].mean[at] + curves[1].mean[at] - 1.0).abs() < 1e-9));
}

/// Proves that a value the model does not take is told as refused and ends nothing, that ages ten times as large flip all
/// that were below and none else, and that typos of a sector are worth its loss.
#[test]
fn perturbations_of_known_features() {
    let answer = probed(&[ProbePart::Perturbations], &mut chance, None);
    let of = |feature: &str, kind: PerturbationKind| {
        answer.perturbations.iter().find(|it| it.feature == feature && it.kind == kind).unwrap()
    };
    let missing = of("age", PerturbationKind::Missing);
    assert_eq!((missing.refused.as_deref(), &missing.flipped), (Some("age is missing"), &None));
    let Cells::Numbers(labels) = truth().cells else { unreachable!("labels are numbers") };
    let low = labels.iter().filter(|label| **label == 0.0).count() as f64 / 400.0;
    let flipped = of("age", PerturbationKind::TimesTen).flipped.unwrap();
    assert!((flipped.value - low).abs() < 1e-12 && flipped.low < Some(low) && flipped.high > Some(low));
    assert!(of("sector", PerturbationKind::Typo).increase.unwrap().value > 0.0);
    assert!(of("sector", PerturbationKind::Typo).flipped.unwrap().value > 0.05);
    assert_eq!(of("noise", PerturbationKind::OverTen).flipped.unwrap().value, 0.0);
    let kinds = answer.perturbations.iter().filter(|it| it.feature == "sector").count();
    assert_eq!(kinds, 3);
}

/// Proves that each row's smallest change is found: it crosses the threshold, no other single value of the data does with
/// a smaller step, and classes are flipped too; amounts have no decision.
#[test]
fn smallest_changes() {
    let answer = probed(&[ProbePart::Counterfactuals], &mut chance, None);
    let found = answer.counterfactuals.unwrap();
    assert_eq!(found.len(), 20);
    for one in &found {
        let [(feature, _, _)] = one.changes.as_slice() else { panic!("one change flips each row: {one:?}") };
        let before: f64 = one.before.parse().unwrap();
        let after: f64 = one.after.as_ref().unwrap().parse().unwrap();
        assert!((before >= 0.5) != (after >= 0.5), "{one:?}");
        assert!(feature == "age" && one.distance < 1.0 || feature == "sector", "{one:?}");
        if feature == "age" {
            // The first age on the other side is found, not only the next of the twelve that are tried.
            assert!((after - 0.5).abs() < 0.0101, "{one:?}");
        }
    }
    let mut score = classes;
    let mut model = Model::new(rows(), None, None, None, &mut score).unwrap();
    let answer = probe(&mut model, &settings(&[ProbePart::Counterfactuals]), &|_| {}, &NEVER).unwrap();
    assert!(
        answer
            .counterfactuals
            .unwrap()
            .iter()
            .all(|one| one.after.as_ref().is_some_and(|it| *it != one.before))
    );
    let mut amounts = |columns: &[FrameColumn]| match chance(columns)? {
        Cells::Numbers(chances) => Ok(Cells::Numbers(chances.iter().map(|it| it * 1000.0).collect())),
        texts => Ok(texts),
    };
    let mut model = Model::new(rows(), None, None, None, &mut amounts).unwrap();
    let answer = probe(&mut model, &settings(&ProbePart::ALL), &|_| {}, &NEVER).unwrap();
    assert_eq!((answer.counterfactuals, answer.importance.len()), (None, 0));
}

/// Proves that a model that answers too little, fails, or cannot be compared ends the probing with the reason.
#[test]
fn failures() {
    let told = |score: &mut Score<'_>, truth: FrameColumn| {
        Model::new(rows(), Some(truth), None, None, score)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let few = told(&mut |_| Ok(Cells::Numbers(vec![1.0])), truth());
    assert!(few.contains("it answered 1 of 400 rows"), "{few}");
    assert!(
        told(&mut |_| Ok(Cells::Numbers(vec![f64::NAN; 400])), truth()).contains("no prediction for row 1")
    );
    assert!(told(&mut |_| Err(Unscored::Refused("no".to_owned())), truth()).contains("no"));
    assert!(told(&mut classes, truth()).contains("--positive"));
    let empty = Model::new(Vec::new(), None, None, None, &mut chance).err();
    assert!(matches!(empty, Some(ProbeError::NoRows)));
}
