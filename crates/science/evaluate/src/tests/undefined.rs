//! Verdicts about slices, groups and baselines, and reports about missing rows.

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Frame, FrameColumn};

use super::{frame, numbers, texts};
use crate::{AssessError, Assessment, Baseline, ComparisonVerdict, SliceRows, Spec, Task, assess};

/// Rows of two classes, right with a probability by row.
fn predicted(rows: usize, seed: u64, right: impl Fn(usize) -> f64) -> Vec<FrameColumn> {
    let mut rng = SplitMix64::new(seed);
    let label: Vec<f64> = (0..rows).map(|row| (row % 2) as f64).collect();
    let prediction: Vec<f64> = (0..rows)
        .map(|row| if rng.next_unit() < right(row) { label[row] } else { 1.0 - label[row] })
        .collect();
    vec![
        numbers("id", (0..rows).map(|row| row as f64)),
        numbers("label", label),
        numbers("prediction", prediction),
    ]
}

fn slice(name: &str, rows: impl IntoIterator<Item = bool>) -> SliceRows {
    SliceRows {
        name: name.into(),
        predicate: name.into(),
        rows: rows.into_iter().collect(),
        metric: None,
        limits: None,
    }
}

fn is_noted(assessment: &Assessment, words: &str) -> bool {
    assessment.notes.iter().any(|note| note.contains(words))
}

/// Proves the four verdicts of a slice: a bad one, one like the rest, one too small, one that no row is in.
#[test]
fn slices_are_worse_alike_or_too_small() {
    let rows = 4_000;
    let table = frame(predicted(rows, 1, |row| if row < 400 { 0.6 } else { 0.9 }));
    let of = |from: usize, to: usize| (0..rows).map(move |row| (from..to).contains(&row));
    let asked = vec![
        slice("bad", of(0, 400)),
        slice("alike", (0..rows).map(|row| row % 5 < 2)),
        slice("small", of(3_000, 3_020)),
        slice("nobody", of(0, 0)),
        slice("all", of(0, rows)),
    ];
    let found = assess(&table, &Spec { slices: asked, ..Spec::default() }, None).unwrap().slices;
    let verdicts: Vec<ComparisonVerdict> = found.iter().map(|slice| slice.verdict).collect();
    let small = ComparisonVerdict::Inconclusive;
    assert_eq!(
        verdicts,
        [
            ComparisonVerdict::Worse,
            ComparisonVerdict::NoDifferenceShown,
            small,
            small,
            ComparisonVerdict::NoDifferenceShown
        ]
    );
    assert!(found[0].adjusted_p_value.unwrap() < 1e-6 && found[0].difference.unwrap().value < -0.2);
    assert_eq!(found[2].why.as_deref(), Some("it has 20 rows, fewer than 30"));
    assert!(found[2].metrics.contains_key("accuracy") && found[3].metrics.is_empty());
    assert!(found[4].difference.is_none(), "there is no rest");
}

/// Proves that no random slice is called better or worse more often than the confidence allows, over all slices
/// together.
#[test]
fn random_slices_are_not_worse() {
    let rows = 2_000;
    let tables = 200;
    let mut wrong = 0;
    for seed in 0..tables {
        let table = frame(predicted(rows, seed, |_| 0.8));
        let asked = (0..10).map(|part| slice("part", (0..rows).map(move |row| row % 10 == part))).collect();
        let found = assess(&table, &Spec { slices: asked, ..Spec::default() }, None).unwrap().slices;
        let is_said = |verdict: ComparisonVerdict| {
            matches!(verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse)
        };
        wrong += u32::from(found.iter().any(|slice| is_said(slice.verdict)));
    }
    // 5 % is 10; three standard errors more is 19.
    assert!(wrong <= 19, "{wrong} of {tables} tables");
}

/// Proves that the largest difference between five equal groups is called more than 0 in at most 5 of 100 tables,
/// although it is always more than 0, and that a true difference is within its interval.
#[test]
fn random_groups_are_not_unfair() {
    let (rows, tables) = (1_000, 300);
    let (mut wrong, mut missed) = (0, 0);
    for seed in 0..tables {
        let mut columns = predicted(rows, seed, |row| if row % 10 == 0 { 0.7 } else { 0.85 });
        columns.push(texts("alike", (0..rows).map(|row| ["a", "b", "c", "d", "e"][row / 10 % 5])));
        // Rows 0, 2, 4 … have label 0 and rows 1, 3, 5 … label 1: of the first ones every fifth is right less often.
        columns.push(texts("unlike", (0..rows).map(|row| if row % 10 == 0 { "hard" } else { "easy" })));
        let spec = Spec { fairness: vec!["alike".into(), "unlike".into()], ..Spec::default() };
        let found = assess(&frame(columns), &spec, None).unwrap().fairness;
        wrong += u32::from(found[0].measures["equal_opportunity"].interval.low > 0.0);
        let difference = found[1].measures["demographic_parity"];
        // Selected are 15 % of easy rows with label 0 and 85 % of those with label 1; of hard rows (label 0) 30 %.
        let truth = (0.15 * 4.0 + 0.85 * 5.0) / 9.0 - 0.30;
        missed += u32::from(difference.interval.low > truth || difference.interval.high < truth);
    }
    // 5 % is 15; three standard errors more is 26.
    assert!(wrong <= 26 && missed <= 26, "{wrong} and {missed} of {tables} tables");
}

/// Proves that groups that do not fare alike have a difference whose interval is beyond 0, and that a small group is
/// inconclusive and leaves the measure open.
#[test]
fn groups_are_unlike_or_too_small() {
    let rows = 6_000;
    let mut columns = predicted(rows, 3, |row| if row % 3 == 0 { 0.7 } else { 0.9 });
    let unlike = (0..rows).map(|row| if row % 3 == 0 { "one" } else { "other" });
    columns.push(texts("unlike", unlike));
    columns.push(texts("small", (0..rows).map(|row| if row < 12 { "few" } else { "many" })));
    let spec = Spec { fairness: vec!["unlike".into(), "small".into()], ..Spec::default() };
    let found = assess(&frame(columns), &spec, None).unwrap().fairness;
    let opportunity = |place: usize| found[place].measures["equal_opportunity"];
    assert!(opportunity(0).interval.low > 0.15, "{:?}", opportunity(0));
    assert!(opportunity(1).interval.high > 0.2, "a small group leaves much open: {:?}", opportunity(1));
    let few = found[1].groups.iter().find(|group| group.name == "few").unwrap();
    assert!(few.inconclusive && few.why.as_deref() == Some("it has 12 rows, fewer than 30"));
}

fn compared(baseline: &Frame, candidate: &Frame, id: Option<&str>, slices: Vec<SliceRows>) -> Assessment {
    let spec = Spec { slices, ..Spec::default() };
    assess(candidate, &spec, Some(Baseline { frame: baseline, id })).unwrap()
}

/// Proves the four answers of a comparison, McNemar's test, and how many rows would settle what is open.
#[test]
fn a_candidate_is_better_worse_alike_or_open() {
    let table = |seed: u64, rows: usize, right: f64| frame(predicted(rows, seed, move |_| right));
    let answer = |baseline: &Frame, candidate: &Frame| {
        let found = compared(baseline, candidate, Some("id"), Vec::new()).comparison.unwrap();
        (found.metrics["accuracy"].clone(), found.mcnemar.unwrap())
    };
    let (better, test) = answer(&table(1, 3_000, 0.8), &table(2, 3_000, 0.9));
    assert!(better.verdict == ComparisonVerdict::Better && better.difference.interval.low > 0.05);
    assert!(test.p_value < 1e-6 && test.only_candidate_right > test.only_baseline_right);
    let (worse, _) = answer(&table(2, 3_000, 0.9), &table(1, 3_000, 0.8));
    assert!(worse.verdict == ComparisonVerdict::Worse && worse.settles_at.is_none());
    let same = table(1, 3_000, 0.8);
    let (alike, test) = answer(&same, &same);
    assert_eq!(
        (alike.verdict, alike.difference.value, test.p_value),
        (ComparisonVerdict::NoDifferenceShown, 0.0, 1.0)
    );
    let (open, _) = answer(&table(1, 200, 0.80), &table(2, 200, 0.82));
    assert_eq!(open.verdict, ComparisonVerdict::Inconclusive);
    let settles_at = open.settles_at.unwrap();
    assert!(settles_at > 200, "{settles_at}");
    // So many rows show a difference of this size in about 4 of 5 tables.
    let half = (open.difference.interval.high - open.difference.interval.low) / 2.0;
    let expected = 200.0 * (half / 1.96 * 2.8 / open.difference.value.abs().max(open.margin)).powi(2);
    assert!((settles_at as f64 / expected - 1.0).abs() < 0.2, "{settles_at} for {expected}");
}

/// Proves that a regression in one slice is found although the whole is not worse, and that other slices are not.
#[test]
fn a_slice_got_worse() {
    let rows = 6_000;
    let baseline = frame(predicted(rows, 1, |_| 0.85));
    let candidate = frame(predicted(rows, 2, |row| if row < 600 { 0.6 } else { 0.88 }));
    let asked = vec![
        slice("broken", (0..rows).map(|row| row < 600)),
        slice("odd", (0..rows).map(|row| row % 2 == 1)),
    ];
    let found = compared(&baseline, &candidate, Some("id"), asked).comparison.unwrap();
    let [broken, odd] = found.slices.as_slice() else { panic!("two slices") };
    assert_eq!((broken.compared.verdict, broken.support), (ComparisonVerdict::Worse, 600));
    assert!(broken.adjusted_p_value < 1e-6);
    assert_ne!(odd.compared.verdict, ComparisonVerdict::Worse);
}

/// Proves that rows that do not match are counted and reported: on one side only, twice, without an id, with another
/// label; and that tables without ids must have as many rows.
#[test]
fn rows_that_do_not_match_are_counted() {
    let side = |ids: &[&str], labels: &[f64]| {
        frame(vec![
            texts("name", ids.iter().copied()),
            numbers("label", labels.iter().copied()),
            numbers("prediction", labels.iter().map(|_| 1.0)),
        ])
    };
    let baseline = side(&["a", "b", "c", "c", "e", "f", ""], &[1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    let candidate = side(&["f", "e", "b", "a", "x"], &[1.0, 1.0, 0.0, 1.0, 0.0]);
    let found = compared(&baseline, &candidate, Some("name"), Vec::new()).comparison.unwrap().pairing;
    assert_eq!((found.pairs, found.only_baseline, found.only_candidate), (3, 0, 1));
    assert_eq!((found.repeated_ids, found.different_labels), (3, 1));
    let wrong = assess(&candidate, &Spec::default(), Some(Baseline { frame: &baseline, id: None }));
    assert_eq!(wrong, Err(AssessError::DifferentRows { baseline: 7, candidate: 5 }));
    let stranger = side(&["q", "r"], &[0.0, 1.0]);
    let wrong = assess(&stranger, &Spec::default(), Some(Baseline { frame: &baseline, id: Some("name") }));
    assert!(matches!(wrong, Err(AssessError::NoPairs(_))), "{wrong:?}");
}

/// Proves that guessed roles and left-out rows are noted, and that errors about unknown names list the existing ones.
#[test]
fn guesses_and_gaps_are_noted() {
    let columns = vec![
        texts("label", ["yes", "no", "", "yes", "no"]),
        numbers("score", [0.9, 0.2, 0.4, 0.4, f64::NAN]),
    ];
    let found = assess(&frame(columns.clone()), &Spec::default(), None).unwrap();
    assert_eq!((found.task, found.rows, found.rows_skipped), (Task::Classification, 4, 1));
    assert_eq!((found.rows_unanswered, found.coverage.rows_used, found.coverage.rows_expected), (1, 4, 5));
    assert_eq!(found.metrics["roc_auc"].coverage.rows_used, 3);
    assert_eq!(found.positive_class.as_deref(), Some("yes"));
    for words in [
        "task detected from the columns: classification",
        "1 row has no label",
        "1 row has no prediction: counted as wrong",
        "`yes` counts as positive",
        "0.5 on",
    ] {
        assert!(is_noted(&found, words), "{words}: {:?}", found.notes);
    }
    let positive = |class: &str| Spec { positive: Some(class.into()), ..Spec::default() };
    let turned = assess(&frame(columns.clone()), &positive("no"), None).unwrap();
    assert_eq!(turned.positive_class.as_deref(), Some("no"));
    let wrong = assess(&frame(columns), &positive("maybe"), None).unwrap_err();
    assert_eq!(wrong.to_string(), "`label` has no class `maybe`; there are no, yes");
    let nothing = assess(&frame(vec![numbers("x", [1.0])]), &Spec::default(), None);
    assert_eq!(nothing, Err(AssessError::NoTask));
}

/// Proves that an assessment is the same for the same seed on any number of threads, and is read back from JSON as it was.
#[test]
fn the_same_on_any_number_of_threads() {
    let rows = 500;
    let mut rng = SplitMix64::new(9);
    let columns = vec![
        numbers("label", (0..rows).map(|row| f64::from(row % 3 == 0))),
        numbers("score", (0..rows).map(|_| rng.next_unit())),
        texts("side", (0..rows).map(|row| if row % 2 == 0 { "left" } else { "right" })),
    ];
    let table = frame(columns);
    let spec = Spec {
        fairness: vec!["side".into()],
        slices: vec![slice("first", (0..rows).map(|row| row < 250))],
        always_resample: true,
        ..Spec::default()
    };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let baseline = Baseline { frame: &table, id: None };
        pool.install(|| assess(&table, &spec, Some(baseline)).unwrap())
    };
    let found = with(1);
    assert_eq!(found, with(3));
    let text = serde_json::to_string(&found).unwrap();
    assert!(!text.contains("null,\"high\":0"), "no end of an interval is lost");
    let back: Assessment = serde_json::from_str(&text).unwrap();
    assert_eq!(back.metrics.keys().collect::<Vec<_>>(), found.metrics.keys().collect::<Vec<_>>());
    assert_eq!(back.comparison.unwrap().pairing, found.comparison.unwrap().pairing);
}

/// Proves that a column named like a score is a class's only if every class of the label has one.
#[test]
fn scores_of_classes_are_found_by_the_label() {
    let with = |names: [&str; 2]| {
        let scores = names.map(|name| numbers(name, [0.7, 0.2, 0.6, 0.4]));
        let mut columns =
            vec![texts("label", ["a", "b", "a", "b"]), texts("prediction", ["a", "b", "b", "b"])];
        columns.extend(scores);
        assess(&frame(columns), &Spec::default(), None).unwrap().columns.class_scores.len()
    };
    assert_eq!((with(["score_a", "score_b"]), with(["score_a", "score_old"])), (2, 0));
}

/// Proves that what only the candidate has is left out of the comparison, and that a metric that cannot be computed is
/// noted.
#[test]
fn what_one_side_lacks_is_not_compared() {
    let sides = || predicted(100, 1, |_| 0.8);
    let mut with_score = sides();
    with_score.push(numbers("score", (0..100).map(|row| f64::from(row % 7) / 7.0)));
    let found = compared(&frame(sides()), &frame(with_score), Some("id"), Vec::new());
    let metrics = found.comparison.unwrap().metrics;
    assert!(metrics.contains_key("accuracy") && !metrics.contains_key("roc_auc"));
    let never = frame(vec![numbers("label", [0.0, 1.0, 1.0]), numbers("prediction", [0.0; 3])]);
    let found = assess(&never, &Spec::default(), None).unwrap();
    assert!(is_noted(&found, "precision cannot be computed") && !found.metrics.contains_key("precision"));
}

/// Proves that no interval contains impossible values: a mean of fractions near 1 ends at 1, an error near 0 begins
/// there.
#[test]
fn intervals_end_where_values_do() {
    let tasks = numbers("task_id", (0..200).map(|row| f64::from(row / 10)));
    let correct = numbers("correct", (0..200).map(|row| f64::from(u8::from(row >= 10 && row % 10 < 3))));
    let found = assess(&frame(vec![tasks, correct]), &Spec::default(), None).unwrap();
    let best = found.metrics["pass_at_10"];
    assert!(best.value == 0.95 && best.interval.high == 1.0 && best.interval.low < 0.95, "{best:?}");
    let label = numbers("label", (0..50).map(f64::from));
    let prediction =
        numbers("prediction", (0..50).map(|row| f64::from(row) + f64::from(u8::from(row == 7)) * 0.5));
    let found = assess(
        &frame(vec![label, prediction]),
        &Spec { task: Some(Task::Regression), ..Spec::default() },
        None,
    )
    .unwrap();
    assert_eq!((found.metrics["mae"].interval.low, found.metrics["mae"].value), (0.0, 0.01));
}
