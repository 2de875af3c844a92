//! Models whose insides are known: what is found out must be what is in them.

use std::sync::atomic::AtomicBool;

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Cells, FrameColumn};
use trackway_tables::ColumnType;

use super::*;
use crate::residuals::ResidualOf;
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

/// Above 0.5 from 50 on, and 0.2 higher in retail; ignores missing ages and the noise.
fn probability(columns: &[FrameColumn]) -> Result<Cells, Unscored> {
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
    let Cells::Numbers(probabilities) = probability(columns)? else {
        return Err(Unscored::Failed("no numbers".to_owned()));
    };
    Ok(Cells::of_texts(probabilities.iter().map(|it| Some(if *it >= 0.5 { "yes" } else { "no" }))))
}

fn settings(parts: &[ProbePart]) -> ProbeSettings {
    ProbeSettings { parts: parts.to_vec(), ..ProbeSettings::default() }
}

fn truth() -> FrameColumn {
    let Ok(Cells::Numbers(probabilities)) = probability(&rows()) else { unreachable!("it answers numbers") };
    column(
        "y",
        ColumnType::Int,
        Cells::Numbers(probabilities.iter().map(|it| f64::from(u8::from(*it >= 0.5))).collect()),
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
    let answer = probed(&[ProbePart::Importance], &mut probability, None);
    let names: Vec<&str> = answer.importance.iter().map(|it| it.feature.as_str()).collect();
    assert_eq!(names, ["age", "sector", "noise"]);
    assert_eq!(answer.loss, Some(Loss::Squared));
    let of = |index: usize| answer.importance[index].increase;
    assert!(of(0).interval.low > 0.0 && of(1).interval.low > 0.0, "{answer:?}");
    assert_eq!((of(2).value, answer.importance[2].repeats.as_slice()), (0.0, [0.0; 5].as_slice()));
    assert_eq!(answer.scored_rows, 400 * 16);
}

/// Proves that curves are those of the model: a line over ages, for the mean and for each row, and a step over sectors;
/// of classes, fractions that sum to one.
#[test]
fn curves_of_known_features() {
    let answer = probed(&[ProbePart::Dependence], &mut probability, None);
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

/// Proves that a value which the model rejects is reported as refused and ends nothing, that ages ten times as large
/// flip all that were below and no other, and that the loss of typos in a sector is computed.
#[test]
fn perturbations_of_known_features() {
    let answer = probed(&[ProbePart::Perturbations], &mut probability, None);
    let of = |feature: &str, kind: PerturbationKind| {
        answer.perturbations.iter().find(|it| it.feature == feature && it.kind == kind).unwrap()
    };
    let missing = of("age", PerturbationKind::Missing);
    assert_eq!((missing.refused.as_deref(), &missing.flipped), (Some("age is missing"), &None));
    let Cells::Numbers(labels) = truth().cells else { unreachable!("labels are numbers") };
    let low = labels.iter().filter(|label| **label == 0.0).count() as f64 / 400.0;
    let flipped = of("age", PerturbationKind::TimesTen).flipped.unwrap();
    assert!((flipped.value - low).abs() < 1e-12 && flipped.interval.low < low && flipped.interval.high > low);
    assert!(of("sector", PerturbationKind::Typo).increase.unwrap().value > 0.0);
    assert!(of("sector", PerturbationKind::Typo).flipped.unwrap().value > 0.05);
    assert_eq!(of("noise", PerturbationKind::OverTen).flipped.unwrap().value, 0.0);
    let kinds = answer.perturbations.iter().filter(|it| it.feature == "sector").count();
    assert_eq!(kinds, 3);
}

/// Proves that a regression makes no decision: no change of a value flips one, and the prediction moves.
#[test]
fn a_regression_decides_nothing() {
    let mut amounts = |columns: &[FrameColumn]| match probability(columns)? {
        Cells::Numbers(probabilities) => {
            Ok(Cells::Numbers(probabilities.iter().map(|it| it * 1000.0).collect()))
        }
        texts => Ok(texts),
    };
    let mut model = Model::new(rows(), None, None, None, &mut amounts).unwrap();
    let answer = probe(&mut model, &settings(ProbePart::ALL), &|_| {}, &NEVER).unwrap();
    assert!(answer.perturbations.iter().all(|it| it.flipped.is_none()));
    assert!(answer.perturbations.iter().any(|it| it.shift > Some(0.0)));
    assert_eq!(answer.importance.len(), 0);
}

/// Proves that a model that answers too little, fails, or cannot be compared ends the probing with the reason.
#[test]
fn failures() {
    let reported = |score: &mut Score<'_>, truth: FrameColumn| {
        Model::new(rows(), Some(truth), None, None, score)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let few = reported(&mut |_| Ok(Cells::Numbers(vec![1.0])), truth());
    assert!(few.contains("it answered 1 of 400 rows"), "{few}");
    assert!(
        reported(&mut |_| Ok(Cells::Numbers(vec![f64::NAN; 400])), truth())
            .contains("no prediction for row 1")
    );
    assert!(reported(&mut |_| Err(Unscored::Refused("no".to_owned())), truth()).contains("no"));
    assert!(reported(&mut classes, truth()).contains("--positive"));
    let empty = Model::new(Vec::new(), None, None, None, &mut probability).err();
    assert!(matches!(empty, Some(ProbeError::NoRows)));
}

/// One part, of a model that may give gradients.
fn asked(
    part: ProbePart,
    (rows, truth): (Vec<FrameColumn>, Option<FrameColumn>),
    score: &mut Score<'_>,
    gradients: Option<&mut Gradients<'_>>,
) -> ProbeAnswer {
    let mut ask = |columns: &[FrameColumn]| score(columns);
    let mut none = |_: &[FrameColumn]| Err(Unscored::Refused("it gives no gradients".to_owned()));
    let model = Model::new(rows, truth, None, None, &mut ask).unwrap();
    match gradients {
        Some(gradients) => {
            let mut slope = |columns: &[FrameColumn]| gradients(columns);
            probe(&mut model.with_gradients(&mut slope), &settings(&[part]), &|_| {}, &NEVER).unwrap()
        }
        None => probe(&mut model.with_gradients(&mut none), &settings(&[part]), &|_| {}, &NEVER).unwrap(),
    }
}

/// Proves that a feature on which the label depends and the prediction does not is found in the residuals, of
/// probabilities and of classes, and that without labels there are none.
#[test]
fn residuals_show_what_is_missed() {
    let Cells::Numbers(noise) = &rows()[2].cells else { unreachable!("noise is a number") };
    let truth = || {
        let is_high = |noise: &f64| f64::from(u8::from(*noise > 0.6));
        column("y", ColumnType::Int, Cells::Numbers(noise.iter().map(is_high).collect()))
    };
    let found = asked(ProbePart::Residuals, (rows(), Some(truth())), &mut probability, None);
    let residuals = found.residuals.unwrap();
    assert_eq!((residuals.of, residuals.rows), (ResidualOf::Probability, 400));
    assert_eq!(residuals.by_feature[0].feature, "noise");
    let bins = &residuals.by_feature[0].bins;
    assert!(bins[0].mean.interval.high < 0.0 && bins[9].mean.interval.low > 0.0, "{bins:?}");
    assert_eq!(found.scored_rows, 400);

    let Cells::Numbers(is_high) = truth().cells else { unreachable!("labels are numbers") };
    let words = is_high.iter().map(|it| Some(if *it == 1.0 { "yes" } else { "no" }));
    let truth = column("y", ColumnType::Text, Cells::of_texts(words));
    let found = asked(ProbePart::Residuals, (rows(), Some(truth)), &mut classes, None);
    let residuals = found.residuals.unwrap();
    assert_eq!(
        (residuals.of, Some(residuals.mean.value)),
        (ResidualOf::WrongClass, found.error.map(|it| it.value))
    );

    let found = asked(ProbePart::Residuals, (rows(), None), &mut probability, None);
    assert_eq!(found.residuals, None);
}

/// Proves that steps along gradients move predictions as far as the gradients say and flip more than random steps, that
/// features the model does not use are flat, that gradients which are not those of the predictions are reported, and
/// that a model without any ends nothing.
#[test]
fn small_steps() {
    let mut gradients = |columns: &[FrameColumn]| {
        let rows = columns[0].cells.rows();
        Ok(vec![vec![0.01; rows], vec![f64::NAN; rows], vec![0.0; rows]])
    };
    let labelled = || (rows(), Some(truth()));
    let found = asked(ProbePart::Sensitivity, labelled(), &mut probability, Some(&mut gradients))
        .sensitivity
        .unwrap();
    let slopes: Vec<(&str, f64)> =
        found.slopes.iter().map(|it| (it.feature.as_str(), it.per_deviation.value)).collect();
    let ages = (0..400).map(|row| f64::from(20 + row % 41));
    let mean = ages.clone().sum::<f64>() / 400.0;
    let deviation = (ages.map(|age| (age - mean).powi(2)).sum::<f64>() / 399.0).sqrt();
    assert!(
        slopes[0].0 == "age" && (slopes[0].1 - deviation / 100.0).abs() < 1e-9 && slopes[1] == ("noise", 0.0)
    );
    for step in &found.steps {
        assert!((step.shift - step.deviations * slopes[0].1).abs() < 1e-9, "{step:?}");
        assert!(step.flipped.unwrap().value >= step.flipped_at_random.unwrap().value);
    }
    let largest = found.steps.last().unwrap();
    assert!(
        largest.flipped.unwrap().value > 0.2
            && largest.flipped_at_random.unwrap().interval.high < largest.flipped.unwrap().interval.low
    );
    assert!(found.check.relative_error < 1e-6 && found.check.features.is_empty(), "{:?}", found.check);

    let mut wrong = |columns: &[FrameColumn]| {
        let rows = columns[0].cells.rows();
        Ok(vec![vec![0.01; rows], vec![f64::NAN; rows], vec![0.5; rows]])
    };
    let found =
        asked(ProbePart::Sensitivity, labelled(), &mut probability, Some(&mut wrong)).sensitivity.unwrap();
    assert_eq!(found.check.features, ["noise"]);
    assert!(found.check.relative_error > 0.5);

    let mut dead = |_: &[FrameColumn]| Err(Unscored::Failed("it died".to_owned()));
    let found = asked(ProbePart::Sensitivity, labelled(), &mut probability, Some(&mut dead));
    assert_eq!(found.no_sensitivity.as_deref(), Some("it died"));

    let found = asked(ProbePart::Sensitivity, labelled(), &mut probability, None);
    assert_eq!((found.sensitivity, found.no_sensitivity.as_deref()), (None, Some("it gives no gradients")));
}
