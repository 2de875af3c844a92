use std::collections::BTreeMap;

use GateVerdict::{Fail, Inconclusive, Pass};
use trackway_core::RowCoverage;

use super::*;

fn between(value: f64, low: f64, high: f64) -> Measured {
    Measured::estimate(Some(value), Interval { low, high }, Some(1_000), RowCoverage::complete(1_000))
}

fn exact(value: f64) -> Measured {
    Measured::fact(value)
}

fn partial() -> RowCoverage {
    RowCoverage { rows_used: 10, rows_expected: 1_000 }
}

fn numbers(entries: &[(&str, Measured)]) -> Numbers {
    entries.iter().map(|(name, measured)| ((*name).to_owned(), *measured)).collect()
}

fn evidence() -> GateEvidence {
    GateEvidence {
        numbers: numbers(&[
            ("accuracy", between(0.86, 0.84, 0.88)),
            ("bare", Measured::estimate(Some(0.9), Interval::UNKNOWN, None, RowCoverage::UNKNOWN)),
            ("broken", Measured::estimate(None, Interval::UNKNOWN, None, RowCoverage::complete(10))),
            (
                "partial",
                Measured::estimate(Some(0.9), Interval { low: 0.8, high: 0.95 }, Some(10), partial()),
            ),
            (
                "unknown",
                Measured::estimate(Some(0.9), Interval { low: 0.8, high: 0.95 }, None, RowCoverage::UNKNOWN),
            ),
            ("of_one_class", between(0.9, 0.8, 1.0)),
            (
                "slice.men.auc",
                Measured::estimate(Some(0.9), Interval { low: 0.8, high: 0.95 }, Some(10), partial()),
            ),
            ("slice.women.auc", between(0.9, 0.8, 0.95)),
            ("slice.women.recall", between(0.7, 0.6, 0.8)),
            ("slice.old men.recall", between(0.5, 0.3, 0.7)),
            ("slice.women.precision", between(0.1, 0.0, 0.2)),
            ("size_bytes", exact(1e9)),
        ]),
        baseline: Some(numbers(&[("accuracy", between(0.855, 0.835, 0.875)), ("size_bytes", exact(8e8))])),
        differences: numbers(&[("accuracy", between(0.005, 0.001, 0.009))]),
        inconclusive: BTreeMap::from([("of_one_class".to_owned(), "every label is `a`".to_owned())]),
        unmatched: None,
    }
}

fn judged(rule: &str, evidence: &GateEvidence) -> JudgedGate {
    judge(rule, &Gate::parse(rule).unwrap(), evidence)
}

/// Proves that numbers over rows decide nothing, in whatever form they are used, if the rows could not be matched with
/// the tasks, and that facts do.
#[test]
fn unmatched_rows_decide_nothing() {
    let unmatched = GateEvidence { unmatched: Some("the tasks are no table".into()), ..evidence() };
    for rule in [
        "accuracy >= 0.83",
        "accuracy < 0.5",
        "value(accuracy) >= 0.1",
        "slice.women.recall > 0.1",
        "min(slice.recall) > 0.1",
        "accuracy - baseline.accuracy >= -1",
        "accuracy >= 0.83 and size_bytes < 2e9",
    ] {
        let judged = judged(rule, &unmatched);
        assert_eq!(judged.verdict, Inconclusive, "{rule}: {}", judged.why);
        assert!(judged.why.contains("cannot be judged: the tasks are no table"), "{rule}: {}", judged.why);
    }
    assert_eq!(judged("size_bytes < 2e9", &unmatched).verdict, Pass);
}

/// Proves the three verdicts: by intervals, by exact facts, over slices, and combined by `and` and `or`.
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

/// Proves that the difference on the same rows is used if there is one, and the two intervals otherwise.
#[test]
fn a_difference_on_the_same_rows_decides() {
    let rule = "accuracy >= baseline - 0.002";
    let with = judged(rule, &evidence());
    assert_eq!(with.verdict, Pass, "{}", with.why);
    let (low, high) = (with.comparisons[0].interval.low, with.comparisons[0].interval.high);
    assert!((low - 0.003).abs() < 1e-12 && (high - 0.011).abs() < 1e-12, "{low} {high}");

    let without = judged(rule, &GateEvidence { differences: Numbers::new(), ..evidence() });
    assert_eq!(without.verdict, Inconclusive, "{}", without.why);
    assert!((without.comparisons[0].interval.low + 0.033).abs() < 1e-12);

    // 0.98 of the difference, and 0.02 of the number itself.
    let share = judged("accuracy >= 0.98 * baseline", &evidence());
    let low = share.comparisons[0].interval.low;
    assert!((low - (0.98 * 0.001 + 0.02 * 0.84)).abs() < 1e-12, "{low}");
}

/// Proves that the first model passes what compares with a baseline, but only where its own side was measured.
#[test]
fn the_first_model_has_nothing_to_compare_with() {
    let first = GateEvidence { baseline: None, ..evidence() };
    assert_eq!(judged("accuracy >= baseline - 0.002", &first).verdict, Pass);
    assert_eq!(judged("absent >= baseline", &first).verdict, Inconclusive);
    assert_eq!(judged("bare >= baseline", &first).verdict, Inconclusive);
    let unmeasured = GateEvidence { baseline: Some(Numbers::new()), ..evidence() };
    assert_eq!(judged("accuracy >= baseline", &unmeasured).verdict, Inconclusive);
}

/// Proves that what is wrong is reported: a bare number, a name that is nearly right, how many rows would settle it.
#[test]
fn a_verdict_says_why() {
    let cases = [
        (
            "bare > 0",
            "`bare` is 0.9 without an interval, so it cannot be judged; record the rows behind it, or use `value(bare)`",
        ),
        ("acuracy > 0", "there is no metric `acuracy`; did you mean `accuracy`?"),
        ("aoao > 0", "there is no metric `aoao`"),
        ("brXX > 0", "there is no metric `brXX`"),
        ("baseline(`slice.women.recall`) > 0", "the baseline has no metric `slice.women.recall`"),
        (
            "accuracy >= 0.85",
            "accuracy is 0.86 (0.84 … 0.88); the difference of both sides is 0.01 (-0.01 … 0.03), required >= 0; about 4000 rows would be enough to decide",
        ),
    ];
    for (rule, wanted) in cases {
        assert_eq!(judged(rule, &evidence()).why, wanted);
    }
}

/// Proves that a number of only some of its rows decides nothing, in whatever form it is used, nor does one whose rows
/// are unknown or that cannot decide; and that pairs of some rows are not taken for the difference.
#[test]
fn only_numbers_of_all_rows_decide() {
    for rule in [
        "partial >= 0.5",
        "value(partial) >= 0.5",
        "partial < 0.5",
        "1 - partial <= 0.5",
        "min(slice.auc) >= 0.5",
        "unknown >= 0.5",
        "of_one_class >= 0.5",
        "value(of_one_class) >= 0.5",
    ] {
        let judged = judged(rule, &evidence());
        assert_eq!(judged.verdict, Inconclusive, "{rule}: {}", judged.why);
    }
    let why = judged("partial >= 0.5", &evidence()).why;
    assert_eq!(why, "`partial` covers only 10 of 1000 rows");
    assert_eq!(judged("max(slice.recall) >= 0.6", &evidence()).verdict, Pass);
    let of_some = Measured::estimate(Some(0.005), Interval { low: 0.001, high: 0.009 }, Some(10), partial());
    let of_some = GateEvidence { differences: numbers(&[("accuracy", of_some)]), ..evidence() };
    assert_eq!(judged("accuracy >= baseline - 0.002", &of_some).verdict, Inconclusive);
}

/// Proves that a number in a file that people write is read as a fact or as one that covers its rows, and is written as it was.
#[test]
fn numbers_of_a_fixture() {
    let read = |text: &str| serde_json::from_str::<Measured>(text).unwrap();
    assert_eq!(read(r#"{"value": 2.0, "exact": true}"#), exact(2.0));
    let bare = read(r#"{"value": 0.5, "low": 0.4, "high": 0.6, "support": 9}"#);
    assert_eq!(bare.coverage(), Some(RowCoverage::complete(9)));
    for measured in [bare, exact(3.0), Measured::estimate(Some(0.9), Interval::UNKNOWN, None, partial())] {
        assert_eq!(read(&serde_json::to_string(&measured).unwrap()), measured);
    }
}

/// Proves that the worst gate decides, and that without a gate nothing passes.
#[test]
fn the_worst_gate_decides() {
    let all =
        |rules: &[&str]| overall(&rules.iter().map(|rule| judged(rule, &evidence())).collect::<Vec<_>>());
    assert_eq!(all(&["accuracy >= 0.83", "size_bytes <= 1e9"]), Pass);
    assert_eq!(all(&["accuracy >= 0.83", "accuracy >= 0.85"]), Inconclusive);
    assert_eq!(all(&["accuracy >= 0.85", "size_bytes < 1e9"]), Fail);
    assert_eq!(all(&[]), Inconclusive);
}

/// Proves the arithmetic of a comparison, in values and in both ends of their intervals: factors, products, quotients, sums, and
/// what is shared with the baseline.
#[test]
fn arithmetic_keeps_values_and_intervals() {
    let cases = [
        ("2 * accuracy >= 1", (0.72, 0.68, 0.76)),
        ("accuracy * 2 >= 1", (0.72, 0.68, 0.76)),
        ("accuracy / 2 >= 0.4", (0.03, 0.02, 0.04)),
        ("accuracy + accuracy >= 1", (0.72, 0.68, 0.76)),
        ("-accuracy <= 0", (-0.86, -0.88, -0.84)),
        ("accuracy * accuracy >= 0.7", (0.0396, 0.0056, 0.0744)),
        ("1 / accuracy <= 1.2", (-0.037_209_302_325, -0.063_636_363_636, -0.009_523_809_523)),
        ("2 * (accuracy + 1) >= 3.5", (0.22, 0.18, 0.26)),
        // Of the shared rows the measured difference counts; what is left over has both intervals.
        ("accuracy - baseline >= 0", (0.005, 0.001, 0.009)),
        ("2 * accuracy - baseline >= 0.8", (0.065, 0.041, 0.089)),
        ("accuracy - 2 * baseline >= -1", (0.15, 0.126, 0.174)),
        ("accuracy + baseline >= 1", (0.715, 0.675, 0.755)),
        ("baseline - accuracy <= 0", (-0.005, -0.009, -0.001)),
    ];
    for (rule, (value, low, high)) in cases {
        let judged = judged(rule, &evidence());
        let found = judged.comparisons[0].interval;
        let shown =
            format!("the difference of both sides is {} ({} … {})", digits(value), digits(low), digits(high));
        assert!((found.low - low).abs() < 1e-9 && (found.high - high).abs() < 1e-9, "{rule}: {found:?}");
        assert!(judged.why.contains(&shown), "{rule}: {shown}: {}", judged.why);
    }
}

/// Proves each relation at the ends of intervals that touch zero, hold it, or are zero.
#[test]
fn each_relation_is_certain_only_beyond_zero() {
    use Relation::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let table = [
        ((-2.0, -1.0), [Fail, Fail, Pass, Pass, Fail, Pass]),
        ((-1.0, 0.0), [Inconclusive, Fail, Pass, Inconclusive, Inconclusive, Inconclusive]),
        ((-1.0, 1.0), [Inconclusive; 6]),
        ((0.0, 0.0), [Pass, Fail, Pass, Fail, Pass, Fail]),
        ((0.0, 1.0), [Pass, Inconclusive, Inconclusive, Fail, Inconclusive, Inconclusive]),
        ((1.0, 2.0), [Pass, Pass, Fail, Fail, Fail, Pass]),
    ];
    for ((low, high), wanted) in table {
        let range = Range { value: low, interval: Interval { low, high } };
        let found =
            [GreaterOrEqual, Greater, LessOrEqual, Less, Equal, NotEqual].map(|it| judged_by(it, range));
        assert_eq!(found, wanted, "{low} … {high}");
    }
}

/// Proves how many rows would settle a difference: those that move the nearer end of its interval to zero.
#[test]
fn rows_that_would_settle_it_are_estimated() {
    let of = |value, low, high| rows_needed(Range { value, interval: Interval { low, high } }, 100);
    assert_eq!(of(1.0, -1.0, 3.0), Some(400));
    assert_eq!(of(-1.0, -3.0, 1.0), Some(400));
    assert_eq!(of(0.0, -1.0, 1.0), None);
    assert_eq!(of(1e-9, -1.0, 1.0), None, "more than there can be");
}

/// Proves that a number moved to another value keeps the width of its interval on both sides.
#[test]
fn a_moved_number_keeps_its_width() {
    let moved = between(0.86, 0.84, 0.88).moved_to(0.5);
    let interval = moved.interval().unwrap();
    assert!((interval.low - 0.48).abs() < 1e-12 && (interval.high - 0.52).abs() < 1e-12, "{interval:?}");
    assert_eq!(moved.value(), Some(0.5));
}

/// Proves that the command which tests gates has each as one word of a shell, and the evaluation whose predictions are
/// shuffled, and that a fact of the model, which they do not change, is set to a worse number.
#[test]
fn a_gate_is_tested_by_a_command() {
    let rules = ["min(slice.recall) >= 0.3".to_owned(), "slice.`it's`.recall > 0.5".to_owned()];
    assert_eq!(
        super::how_to_verify(&rules, "evl_1"),
        r"trackway gates test --gate 'min(slice.recall) >= 0.3' --gate 'slice.`it'\''s`.recall > 0.5' --bad shuffled:evl_1"
    );
    let rules = ["size_bytes <= 1e6".to_owned(), "accuracy > 0.5".to_owned()];
    assert_eq!(
        super::how_to_verify(&rules, "evl_1"),
        "trackway gates test --gate 'accuracy > 0.5' --bad shuffled:evl_1; \
         trackway gates fixture evl_1 --name 'a bad model' --set size_bytes=2000000 --out bad.json; \
         trackway gates test --gate 'size_bytes <= 1e6' --bad bad.json"
    );
    let rules = ["value(latency_p95_seconds) < 1".to_owned(), "rows_per_second > 10".to_owned()];
    assert_eq!(
        super::how_to_verify(&rules, "evl_1"),
        "trackway gates fixture evl_1 --name 'a bad model' --set latency_p95_seconds=2 --set rows_per_second=5 --out bad.json; \
         trackway gates test --gate 'value(latency_p95_seconds) < 1' --gate 'rows_per_second > 10' --bad bad.json"
    );
}

/// Proves that an extreme over all probes decides nothing if one of them was not measured, with its reason; the baseline is not concerned.
#[test]
fn an_extreme_needs_every_probe() {
    let measured = GateEvidence {
        numbers: numbers(&[("probe.age.shuffle.flipped", between(0.1, 0.05, 0.15))]),
        ..GateEvidence::default()
    };
    assert_eq!(judged("max(probe.flipped) < 0.5", &measured).verdict, Pass);
    let unmeasured = [("probe.age.missing.flipped".to_owned(), "it ended with `ValueError`".to_owned())];
    let one_is_open = GateEvidence { inconclusive: unmeasured.into(), ..measured };
    let found = judged("max(probe.flipped) < 0.5", &one_is_open);
    let why = "`probe.age.missing.flipped` cannot be judged: it ended with `ValueError`";
    assert_eq!((found.verdict, found.why.as_str()), (Inconclusive, why));
    assert_eq!(judged("probe.age.shuffle.flipped < 0.5", &one_is_open).verdict, Pass);
}
