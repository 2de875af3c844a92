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

fn counted() -> RungProof {
    RungProof::Proved { rows: 100, rows_total: 1_000, rows_of_data: None }
}

fn cut(fraction: f64, rows: u64, rows_total: u64) -> RungCut {
    RungCut { fraction, rows, rows_total, by_key: false, is_claimed: false }
}

/// Proves that a rung counts only by rows that something counted: not without a count, not where all rows were kept, not for another
/// rung, and that one wrong count among the ranks is enough; whole groups may be far from the fraction.
#[test]
fn a_rung_is_proved_by_counted_rows() {
    let ten = rung("10%");
    assert!(prove(ten, &[], &[], None).rows().is_none());
    assert_eq!(prove(ten, &[cut(0.1, 104, 1_000)], &[], None).rows(), Some((104, 1_000)));
    assert_eq!(prove(ten, &[cut(0.1, 52, 500), cut(0.1, 104, 1_000)], &[], None).rows(), Some((104, 1_000)));
    let all = prove(ten, &[cut(0.1, 104, 1_000), cut(0.1, 1_000, 1_000)], &[], None);
    let why = "1000 of 1000 rows were kept, which is not 10% of them";
    assert_eq!(all, RungProof::NotProved { why: why.into() });
    assert!(
        prove(ten, &[cut(0.1, 104, 1_000)], &["train".to_owned()], None).rows().is_none(),
        "rows of something else"
    );
    assert!(prove(ten, &[cut(0.01, 10, 1_000)], &[], None).rows().is_none(), "of the rung before");
    assert!(prove(ten, &[cut(0.1, 300, 1_000)], &[], None).rows().is_none());
    let groups = RungCut { by_key: true, ..cut(0.1, 300, 1_000) };
    assert_eq!(prove(ten, &[groups], &[], None).rows(), Some((300, 1_000)));
    assert_eq!(
        prove(rung("1%"), &[cut(0.01, 1, 7)], &[], None).rows(),
        Some((1, 7)),
        "of any rows it is one at least"
    );
    assert!(prove(Rung::FULL, &[], &[], None).rows().is_none());
}

/// Proves that a number of rows which the script gave itself must be that of the training data, or most of it, where a part may be held
/// out; that both numbers are in the reason; and that the rows of a loader, which are counted, and of data that was not counted are
/// taken as they are.
#[test]
fn a_claimed_number_of_rows_is_compared_with_the_data() {
    let claimed = RungCut { is_claimed: true, ..cut(0.1, 5, 50) };
    let prove = |cut: RungCut, counted| prove(rung("10%"), &[cut], &[], counted);
    let of_data = |proof| match proof {
        RungProof::Proved { rows_of_data, .. } => Ok(rows_of_data),
        RungProof::NotProved { why } => Err(why),
    };
    assert_eq!(of_data(prove(claimed, Some(50))), Ok(None));
    assert_eq!(of_data(prove(claimed, None)), Ok(None));
    assert_eq!(of_data(prove(claimed, Some(62))), Ok(Some(62)), "a fifth is held out");
    let why = of_data(prove(claimed, Some(32_561))).unwrap_err();
    assert!(why.starts_with("the script cut 5 of 50 rows, but the training data has 32561 rows"), "{why}");
    let why = of_data(prove(claimed, Some(40))).unwrap_err();
    assert!(why.starts_with("the script cut 5 of 50 rows, but the training data has 40 rows"), "{why}");
    assert_eq!(of_data(prove(cut(0.1, 5, 50), Some(32_561))), Ok(None), "counted in the loader");
}

/// Proves that a rung whose rows were not counted is not promoted, however good its metrics are and without a rule too.
#[test]
fn a_rung_that_is_not_proved_is_not_promoted() {
    let why = "no rows were counted";
    let unproved = || RungProof::NotProved { why: why.into() };
    let end = RungEnd { rung: rung("10%"), metrics: metrics(&[("a", 1.0)]), previous: None };
    let judged = judge("a < 2", &Rule::parse("a < 2").unwrap(), &end, unproved());
    assert!(
        !judged.promoted && judged.why.starts_with("not proved: no rows were counted; at 10%"),
        "{}",
        judged.why
    );
    assert!(!judge_without_rule(rung("1%"), unproved()).promoted);
    assert!(judge_without_rule(rung("1%"), counted()).promoted);
}

fn judged(rule: &str, here: &[(&str, f64)], before: Option<&[(&str, f64)]>) -> Judgement {
    let end = RungEnd {
        rung: rung("10%"),
        metrics: metrics(here),
        previous: before.map(|before| (rung("1%"), metrics(before))),
    };
    judge(rule, &Rule::parse(rule).unwrap(), &end, counted())
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
    let judged = judge("a != 3", &Rule::parse("a != 3").unwrap(), &end, counted());
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
