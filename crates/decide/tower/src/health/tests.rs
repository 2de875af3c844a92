use trackway_core::SplitMix64;

use super::*;
use crate::trust::SAFE_AFTER;

/// Noise of about one, the same in every run.
fn noise(step: u64) -> f64 {
    let mut rng = SplitMix64::new(step);
    let uniform =
        |rng: &mut SplitMix64| (trackway_core::Rng::next_u64(rng) >> 11) as f64 / (1_u64 << 53) as f64;
    (uniform(&mut rng) + uniform(&mut rng) + uniform(&mut rng) - 1.5) * 2.0
}

/// The verdict over metrics, each given as a function of the step.
fn judged(steps: u64, every: u64, metrics: &[(&str, &dyn Fn(u64) -> f64)]) -> (Health, Vec<String>) {
    let (mut curves, mut losses) = (Curves::default(), LossRecord::new(SAFE_AFTER, true));
    for step in (1..=steps).filter(|step| step % every == 0) {
        for (name, value) in metrics {
            curves.take(0, name, step, value(step));
            losses.take(0, name, step, value(step));
        }
    }
    losses.finish();
    let (health, report) = judge(&HealthEvidence {
        reason: TerminationReason::Completed,
        last_step: Some(steps),
        from_the_beginning: true,
        on_all_data: true,
        curves: &curves,
        losses: &losses,
        standing: &[],
        unmoved: None,
        earlier: &[EarlierEnd { run: "run A".into(), last_step: steps, last_value: 0.4 }],
    });
    (health, report.findings.into_iter().map(|finding| finding.found_by).collect())
}

/// Proves that trainings that go well are ok, however often they print: those that converge at once, that are noisy, that overfit a little, that
/// climb a little, and whose loss is negative.
#[test]
fn what_goes_well_is_ok() {
    let falls = |step: u64| 2.3 / (1.0 + step as f64 / 40.0) + 0.05 * noise(step);
    for every in [1, 10, 25] {
        let (health, found) = judged(500, every, &[("loss", &falls)]);
        assert_eq!((health, found), (Health::Ok, Vec::new()), "every {every}");
    }
    let at_once = |step: u64| if step < 10 { 2.0 / step as f64 } else { 0.1 + 0.01 * noise(step) };
    assert_eq!(judged(300, 1, &[("loss", &at_once)]).0, Health::Ok);
    let noisy = |step: u64| 2.3 - step as f64 / 1000.0 + 0.5 * noise(step);
    assert_eq!(judged(100, 10, &[("loss", &noisy)]).0, Health::Ok);
    let (train, val) = (|step: u64| 0.6 + step as f64 / 1300.0, |step: u64| 0.6 + step as f64 / 1700.0);
    assert_eq!(judged(500, 1, &[("train_acc", &train), ("val_acc", &val), ("loss", &falls)]).0, Health::Ok);
    let (rises, level) = (|step: u64| 0.1 * step as f64, |step: u64| 2_f64.ln() + 0.001 * noise(step));
    assert_eq!(judged(300, 1, &[("value_loss", &rises), ("policy_loss", &level)]).0, Health::Ok);
    assert_eq!(judged(300, 1, &[("D_loss", &level), ("G_loss", &level)]).0, Health::Ok);
    let negative = |step: u64| -1.0 - step as f64;
    assert_eq!(judged(300, 1, &[("loss", &negative)]).0, Health::Ok);
}

/// Proves what is broken: a loss that is not finite at the end, one that exploded and came back only in part, and a model that guesses; and that
/// an accuracy above that of a guess says that it does not.
#[test]
fn what_is_lost_is_broken() {
    let nan = |step: u64| if step > 40 { f64::NAN } else { 1.0 / step as f64 };
    assert_eq!(judged(100, 1, &[("loss", &nan)]), (Health::Broken, vec!["non_finite".into()]));
    let exploded = |step: u64| match step {
        1 => 0.9,
        2..20 => 5e17,
        _ => 548.0,
    };
    assert!(judged(100, 1, &[("loss", &exploded)]).1.contains(&"loss_exploded".into()));
    for every in [1, 5] {
        let guess = |step: u64| 10_f64.ln() + 0.02 * noise(step);
        let (health, found) = judged(120, every, &[("train_loss", &guess)]);
        assert_eq!((health, &*found[0]), (Health::Broken, "chance_level"), "every {every}");
        let (accuracy, better) = (|_: u64| 0.101, |step: u64| 0.1 + step as f64 / 300.0);
        let found = judged(120, every, &[("train_loss", &guess), ("accuracy", &accuracy)]).1;
        assert_eq!(found[0], "chance_level");
        let found = judged(120, every, &[("train_loss", &guess), ("accuracy", &better)]).1;
        assert!(!found.contains(&"chance_level".into()), "{found:?}");
    }
}

/// Proves what is suspect: a loss that never fell, training far above held-out data, a loss far above that of earlier runs; and that a run that
/// recorded neither loss nor accuracy is unknown, and says what is missing.
#[test]
fn what_is_odd_is_suspect() {
    let flat = |step: u64| 0.31 + 0.004 * noise(step);
    assert_eq!(judged(300, 10, &[("loss", &flat)]), (Health::Suspect, vec!["plateau".into()]));
    let (train, val) = (|step: u64| 0.5 + step as f64 / 200.0, |_: u64| 0.61);
    let found = judged(100, 10, &[("train_accuracy", &train), ("val_accuracy", &val)]);
    assert_eq!(found, (Health::Suspect, vec!["generalization_gap".into()]));
    let (train, val) = (|step: u64| 0.02 / step as f64, |step: u64| 4.0 + step as f64 / 1000.0);
    let found = judged(100, 1, &[("loss", &train), ("val_loss", &val)]);
    assert_eq!(found, (Health::Suspect, vec!["generalization_gap".into()]));
    let high = |step: u64| 9.0 - step as f64 / 20.0;
    assert_eq!(judged(100, 1, &[("loss", &high)]), (Health::Suspect, vec!["unlike_earlier_runs".into()]));
    assert_eq!(judged(100, 1, &[("rows_per_second", &high)]), (Health::Unknown, Vec::new()));
}

/// Proves that a loss which fell and went back is found, however it is recorded: broken where it is back at the beginning, suspect where it is more than
/// half of the way; and with noise.
#[test]
fn a_loss_that_went_back_is_found() {
    let falls = |step: u64| 2.3 * 0.99_f64.powf(step as f64) + 0.15;
    let lost = |step: u64| (if step > 300 { 2.3 } else { falls(step) }) * (1.0 + 0.05 * noise(step));
    for every in [1, 5] {
        let (health, found) = judged(500, every, &[("loss", &lost)]);
        assert_eq!((health, &*found[0]), (Health::Broken, "loss_went_back"), "every {every}");
    }
    let in_part = |step: u64| if step > 100 { 2.2 } else { 3.0 * 0.97_f64.powf(step as f64) + 0.2 };
    let (health, found) = judged(140, 1, &[("loss", &in_part)]);
    assert_eq!(health, Health::Suspect);
    assert!(found.contains(&"loss_went_back".into()), "{found:?}");
}

/// Proves that noise, spikes of one epoch, warm restarts, a loss that never fell and losses that need not fall are not called so, at any length and any
/// rate of records.
#[test]
fn a_loss_that_comes_back_down_did_not_go_back() {
    let falls = |step: u64| 2.3 * 0.99_f64.powf(step as f64) + 0.15;
    let restarts = |step: u64| {
        let place = (step % 100) as f64 / 100.0;
        0.3 + 2.0 * 0.6_f64.powf((step / 100) as f64) * (1.0 + (place * std::f64::consts::PI).cos()) / 2.0
    };
    type Curve<'c> = &'c dyn Fn(u64) -> f64;
    let table: [(&str, f64, Curve<'_>); 6] = [
        ("falls", 0.3, &falls),
        ("never falls", 0.3, &|_| 2.3),
        ("spikes", 0.05, &|step| if step % 60 == 0 { 9.0 } else { falls(step) }),
        ("an epoch", 0.05, &|step| if (300..340).contains(&step) { 2.4 } else { falls(step) }),
        ("restarts", 0.05, &restarts),
        ("falls at once", 0.3, &|step| 0.1 + 2.0 / step as f64),
    ];
    for (name, share, at) in &table {
        for (steps, every) in [(60, 1), (200, 1), (500, 1), (500, 5), (2000, 1), (2000, 10)] {
            let noisy = |step: u64| at(step) * (1.0 + share * noise(step + steps));
            let found = judged(steps, every, &[("loss", &noisy)]).1;
            assert!(!found.contains(&"loss_went_back".into()), "{name} {steps} {every}: {found:?}");
        }
    }
    let rises = |step: u64| if step > 300 { 2.3 } else { falls(step) };
    for name in ["g_loss", "policy_loss", "value_loss"] {
        assert!(!judged(500, 1, &[(name, &rises)]).1.contains(&"loss_went_back".into()), "{name}");
    }
}
