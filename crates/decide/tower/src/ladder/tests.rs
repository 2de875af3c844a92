use super::*;

fn rung(text: &str) -> Rung {
    text.parse().unwrap()
}

fn metrics(values: &[(&str, f64)]) -> RungMetrics {
    let one = |(name, last): &(&str, f64)| {
        let values = MetricValues { last: Some(*last), least: Some(last - 1.0), greatest: Some(last + 1.0) };
        ((*name).to_owned(), values)
    };
    values.iter().map(one).collect()
}

fn judged(rule: &str, here: &[(&str, f64)], before: Option<&[(&str, f64)]>) -> Judgement {
    let end = RungEnd {
        rung: rung("10%"),
        metrics: metrics(here),
        previous: before.map(|before| (rung("1%"), metrics(before))),
    };
    judge(rule, &Rule::parse(rule).unwrap(), &end)
}

/// Proves that a rule uses the rung's values and those of the rung before, and that the numbers are reported.
#[test]
fn a_rung_is_judged_against_the_one_before() {
    let rule = "val_loss < 0.95 * previous";
    let good = judged(rule, &[("val_loss", 0.5)], Some(&[("val_loss", 0.6)]));
    assert!(good.promoted);
    assert_eq!(
        good.why,
        "at 10% of the data `val_loss < 0.95 * previous` is met: val_loss is 0.5, previous(val_loss) is 0.6, and 0.5 < 0.57 holds"
    );
    let bad = judged(rule, &[("val_loss", 0.58)], Some(&[("val_loss", 0.6)]));
    assert!(!bad.promoted);
    assert!(bad.why.ends_with("and 0.58 < 0.57 does not hold"), "{}", bad.why);
    assert_eq!(bad.values["previous(val_loss)"], Some(0.6));
    assert!(judged("best(a) == 1 and best(max a) == 3 and a - 1 >= 1", &[("a", 2.0)], None).promoted);
}

/// Proves that the first rung meets what compares with a rung before, and nothing else for free.
#[test]
fn the_first_rung_compares_with_constants_only() {
    let rule = "val_loss < 0.95 * previous and accuracy > 0.5";
    assert!(judged(rule, &[("val_loss", 9.0), ("accuracy", 0.6)], None).promoted);
    assert!(!judged(rule, &[("val_loss", 9.0), ("accuracy", 0.4)], None).promoted);
    let unlogged = judged("val_loss < 0.95 * previous", &[("loss", 1.0)], None);
    assert!(!unlogged.promoted);
    assert!(unlogged.why.ends_with("`val_loss` was not logged at 10%"), "{}", unlogged.why);
}

/// Proves that what was not recorded, or is not a number, meets nothing, in any comparison.
#[test]
fn what_is_not_known_meets_nothing() {
    for rule in ["b != 1", "b < 1", "b >= 1", "a < previous(b)", "a / 0 > 1", "a < 1 or b < 1"] {
        let judged = judged(rule, &[("a", 2.0)], Some(&[("a", 3.0)]));
        assert!(!judged.promoted, "{rule}: {}", judged.why);
    }
    let mut end = RungEnd { rung: rung("1%"), metrics: metrics(&[("a", 1.0)]), previous: None };
    end.metrics.get_mut("a").unwrap().last = None;
    let judged = judge("a != 3", &Rule::parse("a != 3").unwrap(), &end);
    assert!(!judged.promoted);
    assert!(judged.why.ends_with("`a` is not a finite number"), "{}", judged.why);
}

/// Proves that `and` and `or` put every comparison where it belongs.
#[test]
fn conditions_are_put_together() {
    let here = [("yes", 2.0), ("no", 0.0)];
    let cases = [
        ("yes > 1 and no > 1", false),
        ("yes > 1 or no > 1", true),
        ("no > 1 or no > 1 or yes > 1", true),
        ("no > 1 and no > 1 or yes > 1", true),
        ("no > 1 and (no > 1 or yes > 1)", false),
        ("(yes > 1 or no > 1) and yes > 1", true),
    ];
    for (rule, wanted) in cases {
        assert_eq!(judged(rule, &here, None).promoted, wanted, "{rule}");
    }
}

/// Proves the order of the ladder, also from a rung that is not on it any more.
#[test]
fn the_ladder_is_climbed_in_order() {
    let ladder = [rung("1%"), rung("10%"), rung("100%")];
    assert_eq!(next_rung(&ladder, rung("1%")), Some(rung("10%")));
    assert_eq!(next_rung(&ladder, rung("100%")), None);
    assert_eq!(previous_rung(&ladder, rung("10%")), Some(rung("1%")));
    assert_eq!(previous_rung(&ladder, rung("1%")), None);
    assert_eq!(next_rung(&ladder, rung("5%")), Some(rung("10%")));
}
