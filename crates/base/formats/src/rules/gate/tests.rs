use super::*;
use crate::rules::rule::{Condition, Operand};

fn operands(text: &str) -> String {
    match Gate::parse(text) {
        Ok(gate) => {
            let comparisons = gate.comparisons();
            let names = comparisons.iter().flat_map(|it| it.operands()).map(ToString::to_string);
            names.collect::<Vec<_>>().join(", ")
        }
        Err(error) => {
            let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}: {}{hint}", &text[error.span], error.message)
        }
    }
}

/// Proves what each form of a number is read as, and that a mistake names its place and what to write.
#[test]
fn gates_are_read() {
    let cases = [
        ("accuracy >= 0.84", "accuracy"),
        ("accuracy >= baseline - 0.002", "accuracy, baseline(accuracy)"),
        ("min(slice.recall) >= 0.5 * baseline", "min(slice.recall), baseline(min(slice.recall))"),
        ("value(min(slice.recall)) > 0", "value(min(slice.recall))"),
        ("fairness.equal_opportunity <= 0.1 and size_bytes < 2e9", "fairness.equal_opportunity, size_bytes"),
        ("baseline(`my metric`) < `min`", "baseline(`my metric`), `min`"),
        ("slice.women.recall > 0.5", "slice.women.recall"),
        (
            "min(recall) > 0.5",
            "recall: goes over all slices, so it needs a slice metric here (write `min(slice.recall)`, `max(blind_spot.error)` or `max(probe.flipped)`)",
        ),
        (
            "best(recall) > 0.5",
            "best: calls `best(…)`, which does not exist (there are `min(slice.NAME)`, `max(slice.NAME)`, `value(NAME)` and `baseline(NAME)`)",
        ),
        (
            "accuracy + recall > baseline",
            "baseline: does not name the metric of `baseline` (name it: `baseline(accuracy)`)",
        ),
        ("accuracy", "accuracy: has a number here, not a condition (compare it, such as `accuracy < 0.5`)"),
    ];
    for (text, wanted) in cases {
        assert_eq!(operands(text), wanted, "{text}");
    }
}

/// Proves that a number reads back as what it was written from.
#[test]
fn numbers_are_written_as_they_are_read() {
    for text in ["a.b", "`max`", "min(`slice.a b.recall`)", "value(x)", "value(max(slice.y))", "`1st`"] {
        let gate = Gate::parse(&format!("{text} > 0")).unwrap();
        let Condition::Compare(comparison) = &gate.condition else { panic!("{text} is one comparison") };
        assert_eq!(comparison.operands()[0].to_string(), text);
        assert_eq!(comparison.operands()[0].clone().of_other().to_string(), format!("baseline({text})"));
    }
}

proptest::proptest! {
    /// Proves that no text makes the parser panic, and that what is read reads back from what its numbers are shown as.
    #[test]
    fn no_text_is_too_much(text in "[a-c0-9.<>=!+*/()` %-]{0,40}|(baseline|min\\(|value\\(|slice.a|a|<|and |\\(|\\)|1|-| ){0,30}|\\PC{0,40}") {
        match Gate::parse(&text) {
            Err(error) => proptest::prop_assert!(text.get(error.span).is_some()),
            Ok(gate) => {
                for number in gate.comparisons().iter().flat_map(|it| it.operands()) {
                    let again = Gate::parse(&format!("{number} > 0")).unwrap();
                    proptest::prop_assert_eq!(again.comparisons()[0].operands(), [number]);
                }
            }
        }
    }
}

/// Proves what a gate is about, by the numbers that it names.
#[test]
fn gates_have_kinds() {
    let of =
        |text: &str| kinds(&Gate::parse(text).unwrap()).into_iter().map(GateKind::as_str).collect::<Vec<_>>();
    assert_eq!(of("accuracy >= baseline - 0.01"), ["quality"]);
    assert_eq!(of("min(slice.recall) > 0.5 and max(blind_spot.error) < 0.4"), ["slice", "blind_spot"]);
    assert_eq!(
        of("fairness.sex.equal_opportunity < 0.1 or latency_p95_seconds < 1"),
        ["fairness", "latency"]
    );
    assert_eq!(of("size_bytes + weights_bytes < 2e9"), ["size"]);
    assert_eq!(of("max(probe.flipped) < 0.2 or probe.age.missing.increase < 1"), ["robustness"]);
    assert_eq!(of("cost_usd < 5 and training_seconds < 9"), ["cost"]);
}
