use super::*;

pub(super) const NAN: f64 = f64::NAN;
const NONE: [Step; 0] = [];

/// Losses of steps 1, 2, …; `f` gives the loss and, if there is one, the loss scale after the step.
pub(super) fn record(steps: u64, f: impl Fn(u64) -> (f64, Option<f64>)) -> LossRecord {
    let mut losses = LossRecord::new(SAFE_AFTER, true);
    for step in 1..=steps {
        let (loss, scale) = f(step);
        losses.take(0, "loss", step, loss);
        if let Some(scale) = scale {
            losses.take(0, "loss_scale", step, scale);
        }
    }
    losses
}

/// Proves that a checkpoint which counts updates is judged by the batch that was printed when it was written, one that
/// counts updates beside printed epochs by the epoch, and one that counts the same by its own step, which is known more
/// exactly.
#[test]
fn checkpoints_that_count_otherwise_are_judged_by_what_was_printed() {
    let batches = record(100, |step| (if step >= 70 { NAN } else { 1.0 }, None));
    let is_unsafe =
        |losses: &LossRecord, step, reached| losses.unsafe_at(losses.judged(step, reached).step).is_some();
    for (step, reached, expected) in [
        (18, Some(72), true),
        (12, Some(48), false),
        (72, Some(70), true),
        (69, Some(70), false),
        (80, None, true),
    ] {
        assert_eq!(is_unsafe(&batches, step, reached), expected, "{step} {reached:?}");
    }
    let epochs = record(9, |epoch| (if epoch >= 5 { NAN } else { 1.0 }, None));
    assert!(!is_unsafe(&epochs, 400, Some(4)) && is_unsafe(&epochs, 500, Some(5)));
}

pub(super) fn unsafe_steps(losses: &LossRecord, steps: &[Step]) -> Vec<Step> {
    steps.iter().copied().filter(|step| losses.unsafe_at(*step).is_some()).collect()
}

/// Proves at which steps a checkpoint is unsafe after losses that are not finite: from the first one on, to the end or
/// until the loss was good for fifty recorded steps in a row, whatever a gradient norm was.
#[test]
fn what_follows_a_nan_is_unsafe() {
    let saves: Vec<Step> = (1..=15).map(|save| save * 20).collect();
    let of = |f: &dyn Fn(u64) -> f64| unsafe_steps(&record(300, |step| (f(step), None)), &saves);
    assert_eq!(of(&|step| 1.0 / step as f64), NONE);
    assert_eq!(of(&|step| if step > 50 { NAN } else { 1.0 }).first(), Some(&60));
    assert_eq!(of(&|step| if step > 50 { NAN } else { 1.0 }).len(), 13, "to the end");
    assert_eq!(
        of(&|step| if step == 60 { f64::INFINITY } else { 1.0 }),
        [60, 80, 100],
        "110 is the fiftieth good one"
    );
    assert_eq!(of(&|step| if step == 60 || step == 100 { NAN } else { 1.0 }), [60, 80, 100, 120, 140]);
    let sparse = record(40, |step| (if step == 5 { NAN } else { 1.0 }, None));
    assert_eq!(unsafe_steps(&sparse, &[4, 5, 40, 400]), [5, 40, 400], "too few recorded steps");
    let mut norms = record(100, |_| (1.0, None));
    norms.take(0, "grad_norm", 101, f64::INFINITY);
    assert_eq!(unsafe_steps(&norms, &[101]), NONE);
    let evidence = record(60, |step| (if step > 50 { NAN } else { 1.0 }, None)).unsafe_at(60).unwrap();
    assert_eq!(
        (evidence.first_step, evidence.value.as_deref(), &*evidence.found_by),
        (Some(51), Some("NaN"), "non_finite")
    );
    assert!(evidence.why.contains("`loss` is NaN from step 51 on"), "{}", evidence.why);
}

/// Proves that an update which a loss scale left out does no harm, whether the scale falls in the same step or the next
/// one, and that a row of them, or one without a lower scale, is.
#[test]
fn a_skipped_step_of_a_scaler_is_no_harm() {
    let at = |lowered_at: u64, nan: std::ops::Range<u64>| {
        record(100, move |step| {
            let halvings = step.saturating_sub(lowered_at - 1).min(nan.end - nan.start);
            (if nan.contains(&step) { NAN } else { 1.0 }, Some(65536.0 / 2f64.powi(halvings as i32)))
        })
    };
    assert_eq!(unsafe_steps(&at(20, 20..21), &[20, 30]), NONE, "in the same step");
    assert_eq!(unsafe_steps(&at(21, 20..21), &[20, 30]), NONE, "in the next one");
    assert_eq!(unsafe_steps(&at(20, 20..29), &[30]), NONE, "nine in a row");
    assert_eq!(unsafe_steps(&at(20, 20..60), &[19, 40, 60]), [40, 60], "forty in a row");
    let mut kept = record(30, |step| (if step == 20 { NAN } else { 1.0 }, Some(1024.0)));
    assert_eq!(unsafe_steps(&kept, &[19, 20, 30]), [20, 30], "the scale stayed");
    kept = LossRecord::new(SAFE_AFTER, true);
    kept.take(0, "loss_scale", 1, 8.0);
    kept.take(0, "loss", 2, NAN);
    assert_eq!(unsafe_steps(&kept, &[2]), NONE, "not known yet");
    kept.finish();
    assert_eq!(unsafe_steps(&kept, &[2]), [2], "nothing explains it");
}

/// Proves that a loss which a detector found to have jumped, and which stays where it was before the training, is
/// unsafe from there on until it was lower for long; and that a higher level, a short jump, or one in a training that
/// was resumed is not.
#[test]
fn a_loss_as_without_training_is_unsafe() {
    let curve = |at: fn(u64) -> f64, from_the_beginning: bool| {
        let mut losses = LossRecord::new(SAFE_AFTER, from_the_beginning);
        for step in 1..=300 {
            losses.take(0, "loss", step, at(step));
            if step == 105 {
                losses.take_finding(Detector::LossShift);
            }
        }
        unsafe_steps(&losses, &[90, 120, 200, 290])
    };
    assert_eq!(curve(|step| if (31..=100).contains(&step) { 0.5 } else { 2.3 }, true), [120, 200, 290]);
    assert_eq!(curve(|step| if (31..=100).contains(&step) { 0.5 } else { 2.3 }, false), NONE);
    assert_eq!(
        curve(|step| if (31..=100).contains(&step) { 0.5 } else { 1.5 + 0.8 * f64::from(step <= 30) }, true),
        NONE
    );
    assert_eq!(
        curve(|step| if (101..=160).contains(&step) || step <= 30 { 2.3 } else { 0.5 }, true),
        [120, 200]
    );
    assert_eq!(curve(|step| if (101..=106).contains(&step) || step <= 30 { 2.3 } else { 0.5 }, true), NONE);
}

/// Proves that a loss which goes back to where it began and stays there to the end is unsafe from there on, without a
/// finding of any detector and with noise, and that one which comes down again, goes back only a part of the way, or
/// need not fall is not.
#[test]
fn a_loss_that_is_back_at_the_end_is_unsafe() {
    let curve = |name: &str, from_the_beginning: bool, at: &dyn Fn(u64) -> f64| {
        let mut losses = LossRecord::new(SAFE_AFTER, from_the_beginning);
        for step in 1..=500 {
            // Some of five values in a row are below the level of the beginning.
            losses.take(0, name, step, at(step) * (0.94 + 0.03 * (step * 2 % 5) as f64));
        }
        assert_eq!(unsafe_steps(&losses, &[450]), NONE, "not known yet");
        losses.finish();
        unsafe_steps(&losses, &[300, 301, 450])
    };
    let falls = |step: u64| 2.3 * 0.99_f64.powf(step as f64) + 0.15;
    let lost = |step: u64| if step > 300 { 2.35 } else { falls(step) };
    assert_eq!(curve("loss", true, &lost), [301, 450]);
    assert_eq!(curve("loss", false, &lost), NONE);
    assert_eq!(curve("d_loss", true, &lost), NONE);
    assert_eq!(curve("loss", true, &|step| if step > 300 { 1.3 } else { falls(step) }), NONE);
    let comes_down = |step: u64| if (301..=400).contains(&step) { 2.35 } else { falls(step) };
    assert_eq!(curve("loss", true, &comes_down), NONE);
}

/// Proves that the beginning of another training in the same script, whose steps begin again, makes no checkpoint
/// unsafe, also after one that was lost, and that a reward beside the loss says that it need not fall.
#[test]
fn another_training_of_the_script_is_judged_by_itself() {
    let grid = |first: fn(u64) -> f64, second: fn(u64) -> f64, beside: &str| {
        let mut losses = LossRecord::new(SAFE_AFTER, true);
        for (step, loss) in
            (1..=80).map(|step| (step, first(step))).chain((1..=80).map(|step| (step, second(step))))
        {
            losses.take(0, beside, step, 1.0);
            losses.take(0, "loss", step, loss);
            losses.take_finding(Detector::LossSpike);
        }
        losses.finish();
        unsafe_steps(&losses, &[40, 80])
    };
    let slow: fn(u64) -> f64 = |step| 6.7 * 0.998_f64.powf(step as f64);
    let fast: fn(u64) -> f64 = |step| 6.7 * 0.8_f64.powf(step as f64);
    assert_eq!(grid(fast, slow, "rows"), NONE);
    assert_eq!(grid(|step| if step > 20 { NAN } else { 3.0 }, slow, "rows"), NONE);
    assert_eq!(grid(fast, |step| if step > 50 { NAN } else { 3.0 }, "rows"), [80]);
    let back: fn(u64) -> f64 = |step| if step > 40 { 6.7 } else { 6.7 * 0.8_f64.powf(step as f64) };
    assert_eq!(grid(slow, back, "rows"), [80]);
    assert_eq!(grid(slow, back, "reward"), NONE);
}
