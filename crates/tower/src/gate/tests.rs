use super::*;
use GateVerdict::{Fail, Inconclusive, Pass};

fn between(value: f64, low: f64, high: f64) -> Measured {
    Measured { value: Some(value), low: Some(low), high: Some(high), support: Some(1_000), exact: false }
}

fn exact(value: f64) -> Measured {
    Measured { value: Some(value), low: None, high: None, support: None, exact: true }
}

fn numbers(entries: &[(&str, Measured)]) -> Numbers {
    entries.iter().map(|(name, measured)| ((*name).to_owned(), *measured)).collect()
}

fn evidence() -> Evidence {
    Evidence {
        numbers: numbers(&[
            ("accuracy", between(0.86, 0.84, 0.88)),
            ("bare", Measured { value: Some(0.9), low: None, high: None, support: None, exact: false }),
            ("broken", Measured { value: None, low: None, high: None, support: None, exact: false }),
            ("slice.women.recall", between(0.7, 0.6, 0.8)),
            ("slice.old men.recall", between(0.5, 0.3, 0.7)),
            ("slice.women.precision", between(0.1, 0.0, 0.2)),
            ("size_bytes", exact(1e9)),
        ]),
        baseline: Some(numbers(&[("accuracy", between(0.855, 0.835, 0.875)), ("size_bytes", exact(8e8))])),
        differences: numbers(&[("accuracy", between(0.005, 0.001, 0.009))]),
    }
}

fn judged(rule: &str, evidence: &Evidence) -> JudgedGate {
    judge(rule, &Gate::parse(rule).unwrap(), evidence)
}

/// Proves the three verdicts: by intervals, by exact facts, over slices, and put together by `and` and `or`.
#[test]
fn a_gate_is_judged_by_its_interval() {
    let cases = [
        ("accuracy >= 0.83", Pass),
        ("accuracy >= 0.84", Pass),
        ("accuracy > 0.84", Inconclusive),
        ("accuracy >= 0.85", Inconclusive),
        ("accuracy >= 0.89", Fail),
        ("0.83 <= accuracy", Pass),
        ("accuracy < 0.84", Fail),
        ("accuracy == 0.86", Inconclusive),
        ("accuracy != 0.9", Pass),
        ("1 - accuracy <= 0.2", Pass),
        ("value(accuracy) >= 0.85", Pass),
        ("value(bare) >= 0.85", Pass),
        ("bare >= 0.85", Inconclusive),
        ("broken >= 0.85", Inconclusive),
        ("absent >= 0.85", Inconclusive),
        ("size_bytes <= 1e9", Pass),
        ("size_bytes < 1e9", Fail),
        ("size_bytes == 1000000000", Pass),
        ("size_bytes <= 1.2 * baseline", Fail),
        ("size_bytes / baseline <= 1.25", Pass),
        ("min(slice.recall) >= 0.3", Pass),
        ("min(slice.recall) >= 0.5", Inconclusive),
        ("min(slice.recall) > 0.7", Fail),
        ("max(slice.recall) >= 0.6", Pass),
        ("min(slice.f1) > 0", Inconclusive),
        ("accuracy >= 0.83 and size_bytes < 1e9", Fail),
        ("accuracy >= 0.85 or size_bytes < 1e9", Inconclusive),
        ("accuracy >= 0.85 or size_bytes <= 1e9", Pass),
        ("accuracy * accuracy >= 0.7", Pass),
        ("1 / accuracy <= 1.1", Fail),
        ("1 / (accuracy - 0.86) > 0", Inconclusive),
    ];
    for (rule, wanted) in cases {
        let judged = judged(rule, &evidence());
        assert_eq!(judged.verdict, wanted, "{rule}: {}", judged.why);
    }
}

/// Proves that the difference on the same rows is taken where there is one, and the two intervals where there is none.
#[test]
fn a_difference_on_the_same_rows_decides() {
    let rule = "accuracy >= baseline - 0.002";
    let with = judged(rule, &evidence());
    assert_eq!(with.verdict, Pass, "{}", with.why);
    let (low, high) = (with.comparisons[0].low.unwrap(), with.comparisons[0].high.unwrap());
    assert!((low - 0.003).abs() < 1e-12 && (high - 0.011).abs() < 1e-12, "{low} {high}");

    let without = judged(rule, &Evidence { differences: Numbers::new(), ..evidence() });
    assert_eq!(without.verdict, Inconclusive, "{}", without.why);
    assert!((without.comparisons[0].low.unwrap() + 0.033).abs() < 1e-12);

    // 0.98 of the difference, and 0.02 of the number itself.
    let share = judged("accuracy >= 0.98 * baseline", &evidence());
    let low = share.comparisons[0].low.unwrap();
    assert!((low - (0.98 * 0.001 + 0.02 * 0.84)).abs() < 1e-12, "{low}");
}

/// Proves that the first model passes what compares with a baseline, but only where its own side was measured.
#[test]
fn the_first_model_has_nothing_to_compare_with() {
    let first = Evidence { baseline: None, ..evidence() };
    assert_eq!(judged("accuracy >= baseline - 0.002", &first).verdict, Pass);
    assert_eq!(judged("absent >= baseline", &first).verdict, Inconclusive);
    assert_eq!(judged("bare >= baseline", &first).verdict, Inconclusive);
    let unmeasured = Evidence { baseline: Some(Numbers::new()), ..evidence() };
    assert_eq!(judged("accuracy >= baseline", &unmeasured).verdict, Inconclusive);
}

/// Proves that what is wrong is told: a bare number, a name that is nearly right, how many rows would settle it.
#[test]
fn a_verdict_says_why() {
    let cases = [
        (
            "bare > 0",
            "`bare` is 0.9 without an interval, which shows nothing; leave the rows behind it, or ask for `value(bare)`",
        ),
        ("acuracy > 0", "nobody measured `acuracy`; there is `accuracy`"),
        ("baseline(`slice.women.recall`) > 0", "the baseline has no `slice.women.recall`"),
        (
            "accuracy >= 0.85",
            "accuracy is 0.86 (0.84 … 0.88); left − right is 0.01 (-0.01 … 0.03), asked for >= 0; about 4000 rows would settle it",
        ),
    ];
    for (rule, wanted) in cases {
        assert_eq!(judged(rule, &evidence()).why, wanted);
    }
}

/// Proves that the worst gate decides, and that no gate is no pass.
#[test]
fn the_worst_gate_decides() {
    let all =
        |rules: &[&str]| overall(&rules.iter().map(|rule| judged(rule, &evidence())).collect::<Vec<_>>());
    assert_eq!(all(&["accuracy >= 0.83", "size_bytes <= 1e9"]), Pass);
    assert_eq!(all(&["accuracy >= 0.83", "accuracy >= 0.85"]), Inconclusive);
    assert_eq!(all(&["accuracy >= 0.85", "size_bytes < 1e9"]), Fail);
    assert_eq!(all(&[]), Inconclusive);
}
