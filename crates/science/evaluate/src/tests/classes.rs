//! Labels and predictions that name classes differently, or different classes.

use trackway_data::model::{Cells, FrameColumn};
use trackway_tables::ColumnType;

use super::{frame, numbers, texts};
use crate::spellings::MatchedClass;
use crate::{AssessError, Assessment, Spec, assess};

/// 40 rows, of which every eighth is wrong.
fn is_positive(row: usize) -> bool {
    row.is_multiple_of(3)
}

fn is_predicted(row: usize) -> bool {
    is_positive(row) != row.is_multiple_of(8)
}

fn column(name: &str, of: impl Fn(usize) -> bool, words: [&'static str; 2]) -> FrameColumn {
    texts(name, (0..40).map(move |row| words[usize::from(of(row))]))
}

fn assessed(label: FrameColumn, prediction: FrameColumn) -> Result<Assessment, AssessError> {
    assess(&frame(vec![label, prediction]), &Spec::default(), None)
}

/// Proves that booleans and 0 and 1, another case, blanks and zeros behind a point are matched, with the accuracy that
/// equal spellings have, and that the result says what was matched with what.
#[test]
fn other_spellings_are_matched_and_reported() {
    let truths = FrameColumn {
        name: "label".into(),
        kind: ColumnType::Bool,
        cells: Cells::Numbers((0..40).map(|row| f64::from(u8::from(is_positive(row)))).collect()),
    };
    let ones = numbers("prediction", (0..40).map(|row| f64::from(u8::from(is_predicted(row)))));
    let label = |words| column("label", is_positive, words);
    let prediction = |words| column("prediction", is_predicted, words);
    for (label, prediction, expected) in [
        (truths, ones, ("0", "false")),
        (label(["No", "Yes"]), prediction(["no", "yes"]), ("no", "No")),
        (label(["no", "yes"]), prediction(["no ", " yes"]), (" yes", "yes")),
        (label(["0", "1"]), prediction(["False", "True"]), ("False", "0")),
        (label(["1", "2"]), prediction(["1.0", "2.0"]), ("1.0", "1")),
    ] {
        let found = assessed(label, prediction).unwrap();
        assert_eq!(found.metrics["accuracy"].value, 0.875, "{expected:?}");
        assert_eq!((found.matched_classes.len(), found.classes.len()), (2, 2), "{expected:?}");
        let pair = MatchedClass { prediction: expected.0.into(), label: expected.1.into() };
        assert_eq!(found.matched_classes[0], pair);
        let note = format!("`{}` is `{}`", pair.prediction, pair.label);
        assert!(
            found.notes.iter().any(|it| it.contains("were matched") && it.contains(&note)),
            "{:?}",
            found.notes
        );
    }
    let same = assessed(label(["a", "b"]), prediction(["a", "b"])).unwrap();
    assert!(same.matched_classes.is_empty() && same.notes.iter().all(|note| !note.contains("matched")));
}

/// Proves that labels and predictions without a class in common are an error that shows both sets, that a positive class
/// may be named as either has it, and that a few rows of one class each are no error.
#[test]
fn classes_without_one_in_common_are_refused() {
    let wrong =
        assessed(column("label", is_positive, ["a", "b"]), column("prediction", is_predicted, ["c", "d"]));
    let message = wrong.unwrap_err().to_string();
    assert!(message.contains("labels `a`, `b`; predictions `c`, `d`."), "{message}");
    let both = || {
        vec![column("label", is_positive, ["no", "yes"]), column("prediction", is_predicted, ["No", "Yes"])]
    };
    let positive = |class: &str| Spec { positive: Some(class.into()), ..Spec::default() };
    for class in ["yes", "Yes", "YES"] {
        let found = assess(&frame(both()), &positive(class), None).unwrap();
        assert_eq!(found.positive_class.as_deref(), Some("yes"), "{class}");
    }
    let few = assess(
        &frame(vec![texts("label", ["a", "a"]), texts("prediction", ["b", "b"])]),
        &Spec::default(),
        None,
    );
    assert_eq!(few.unwrap().metrics["accuracy"].value, 0.0);
}

/// Proves that scores that are named by the other spelling of a class are those of the class.
#[test]
fn scores_of_other_spellings() {
    let score = |class: bool| (0..40).map(move |row| if is_predicted(row) == class { 0.8 } else { 0.2 });
    let columns = vec![
        column("label", is_positive, ["false", "true"]),
        numbers("score_0", score(false)),
        numbers("score_1", score(true)),
    ];
    let found = assess(&frame(columns), &Spec::default(), None).unwrap();
    assert_eq!(found.columns.class_scores["true"], "score_1");
    assert!((found.metrics["accuracy"].value - 0.875).abs() < 1e-12, "{:?}", found.metrics["accuracy"]);
}

/// Proves that a prediction in another Unicode form than the label counts as the label, with a note, and that labels in
/// two forms are two classes that a note names.
#[test]
fn unicode_forms_of_a_class_are_noted() {
    let label = || column("label", is_positive, ["no", "caf\u{e9}"]);
    let found = assessed(label(), column("prediction", is_predicted, ["no", "cafe\u{301}"])).unwrap();
    assert_eq!((found.metrics["accuracy"].value, found.classes.len()), (0.875, 2));
    assert_eq!(found.matched_classes.len(), 1);
    let both = || (0..40).map(|row| ["no", "caf\u{e9}", "cafe\u{301}"][row % 3]);
    let found = assessed(texts("label", both()), texts("prediction", both())).unwrap();
    assert_eq!((found.metrics["accuracy"].value, found.classes.len()), (1.0, 3));
    let note = "`cafe\\u{301}` and `caf\u{e9}` are one text in several Unicode forms";
    assert!(found.notes.iter().any(|it| it.starts_with(note)), "{:?}", found.notes);
}

/// Proves that answers that differ from the expected text in case or blanks only are wrong, and counted in a note.
#[test]
fn nearly_exact_answers_are_noted() {
    let columns =
        vec![texts("label", ["Paris", "Rome", "Bern"]), texts("prediction", ["paris ", "Rome", "Oslo"])];
    let spec = Spec { task: Some(crate::Task::LanguageModel), ..Spec::default() };
    let found = assess(&frame(columns), &spec, None).unwrap();
    assert!((found.metrics["exact_match"].value - 1.0 / 3.0).abs() < 1e-12);
    assert!(
        found.notes.iter().any(|note| note.starts_with("1 prediction differs from")),
        "{:?}",
        found.notes
    );
}
