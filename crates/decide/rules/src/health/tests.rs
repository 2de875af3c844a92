use trackway_core::SplitMix64;
use trackway_formats::record::ROUNDED_ZERO;

use super::*;
use crate::detect::Detectors;
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
    let steps: Vec<u64> = (1..=steps).filter(|step| step % every == 0).collect();
    let earlier = [EarlierEnd { run: "run A".into(), last_step: steps[steps.len() - 1], last_value: 0.4 }];
    let (health, report) = reported(&steps, None, &earlier, metrics);
    (health, report.findings.into_iter().map(|finding| finding.found_by).collect())
}

/// What metrics show, given as functions of the step, at these steps in this order; detectors saw them as well.
fn reported(
    steps: &[u64],
    unmoved: Option<Unmoved>,
    earlier: &[EarlierEnd],
    metrics: &[(&str, &dyn Fn(u64) -> f64)],
) -> (Health, HealthReport) {
    let values = steps.iter().map(|step| (*step, metrics.iter().map(|(name, value)| (*name, value(*step)))));
    reported_of(values, unmoved, earlier, false)
}

fn reported_of<'m>(
    values: impl Iterator<Item = (u64, impl Iterator<Item = (&'m str, f64)>)>,
    unmoved: Option<Unmoved>,
    earlier: &[EarlierEnd],
    with_detectors: bool,
) -> (Health, HealthReport) {
    let (mut curves, mut losses) = (Curves::default(), LossRecord::new(SAFE_AFTER, true));
    let (mut detectors, mut firings, mut last_step) = (Detectors::default(), Vec::new(), 0);
    for (step, values) in values {
        last_step = last_step.max(step);
        for (name, value) in values {
            curves.take(0, name, step, value);
            losses.take(0, name, step, value);
            let watch = detectors.watch(0, name);
            detectors.take(watch, step, value, step as f64, &mut firings);
        }
    }
    losses.finish();
    let standing = detectors.standing();
    judge(&HealthEvidence {
        reason: TerminationReason::Completed,
        last_step: Some(last_step),
        from_the_beginning: true,
        on_all_data: true,
        curves: &curves,
        losses: &losses,
        standing: if with_detectors { &standing } else { &[] },
        unmoved,
        earlier,
        not_kept: None,
    })
}

/// Proves that trainings that go well are ok, however often they print: those that converge at once, that are noisy,
/// that overfit a little, that climb a little, and whose loss is negative.
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

/// Proves what is broken: a loss that is not finite at the end, one that exploded and came back only in part, and a
/// model that guesses; and that an accuracy above that of a guess says that it does not.
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
    let before = |step: u64| if step == 1 { 5e17 } else { 800.0 + 100.0 * noise(step) };
    assert!(judged(400, 1, &[("loss", &before)]).1.contains(&"loss_exploded".into()));
    let learned = |step: u64| if step == 1 { 5e17 } else { 800.0 / step as f64 };
    assert!(!judged(400, 1, &[("loss", &learned)]).1.contains(&"loss_exploded".into()));
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

/// Proves what is suspect: a loss that never fell, training far above held-out data, a loss far above that of earlier
/// runs; and that a run that recorded neither loss nor accuracy is unknown, and says what is missing.
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

/// Proves that of a record which has not all no one claims that nothing was recorded or printed: what is not in it is said.
#[test]
fn what_could_not_be_kept_is_no_absence() {
    let said = |curves: &Curves| {
        let (_, report) = judge(&HealthEvidence {
            reason: TerminationReason::Completed,
            last_step: None,
            from_the_beginning: true,
            on_all_data: true,
            curves,
            losses: &LossRecord::new(SAFE_AFTER, true),
            standing: &[],
            unmoved: None,
            earlier: &[],
            not_kept: Some("2 values could not be kept"),
        });
        report.missing
    };
    let mut curves = Curves::default();
    assert_eq!(said(&curves), ["no loss and no accuracy is in the record: 2 values could not be kept"]);
    curves.take(0, "accuracy", 1, 0.5);
    assert_eq!(said(&curves), ["no training loss is in the record: 2 values could not be kept"]);
}

/// Proves that a loss which fell and went back is found, however it is recorded: broken where it is back at the
/// beginning, suspect where it is more than half of the way; and with noise.
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

/// Proves that noise, spikes of one epoch, warm restarts, a loss that never fell and losses that need not fall are not
/// called so, at any length and any rate of records.
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

/// The verdict over several trainings of one script, whose steps begin again, with what detectors saw.
fn judged_grid(trainings: &[&dyn Fn(u64) -> f64], name: &str, steps: u64) -> (Health, HealthReport) {
    let all = trainings.iter().flat_map(|at| (1..=steps).map(move |step| (step, at(step))));
    reported_of(all.map(|(step, value)| (step, [(name, value)].into_iter())), None, &[], true)
}

/// Proves that of several trainings in one script the last one decides, that the sentence says so, and that the
/// beginning of each is not taken for a jump of the one before.
#[test]
fn the_last_training_of_a_script_decides() {
    let at = |rate: f64| move |step: u64| 6.7 * (-rate * (step - 1) as f64).exp() + 1e-4 * noise(step).abs();
    let (fast, middle, slow) = (at(0.3), at(0.05), at(0.004));
    let (health, report) = judged_grid(&[&fast, &middle, &slow], "loss", 60);
    assert_eq!((health, &report.findings[..]), (Health::Ok, &[][..]));
    let flat = |step: u64| 6.7 + 0.001 * noise(step);
    let (health, report) = judged_grid(&[&fast, &middle, &flat], "loss", 60);
    assert_eq!((health, &*report.findings[0].found_by), (Health::Suspect, "plateau"));
    let evidence = &report.findings[0].evidence;
    assert!(evidence.contains("in the last of the 3 trainings that this script printed"), "{evidence}");
    let lost = |step: u64| if step > 20 { f64::NAN } else { 5.0 };
    assert_eq!(judged_grid(&[&lost, &middle], "loss", 60).0, Health::Ok);
    assert_eq!(judged_grid(&[&middle, &lost], "loss", 60).0, Health::Broken);
    let folds = |step: u64| 1.0 - 0.5 * (-(step as f64) / 8.0).exp();
    assert_eq!(judged_grid(&[&folds, &folds, &folds], "val_acc", 30).0, Health::Ok);
}

/// Proves that a loss which is at another level at once, and falls from there, is not judged, as it may be that of
/// another model in the same script, and that it does not make checkpoints unsafe; and that one which stays there
/// exploded.
#[test]
fn a_second_phase_is_not_taken_for_an_explosion() {
    let phases = |step: u64| match step {
        ..=40 => 0.05 + 0.06 * 0.8_f64.powf(step as f64),
        _ => 1.0 + 1.6 * 0.95_f64.powf((step - 41) as f64),
    };
    let stays = |step: u64| if step > 40 { 2.6 } else { phases(step) };
    let judged = |at: &dyn Fn(u64) -> f64| {
        let values = (1..=100).map(|step| (step, [("loss", at(step))].into_iter()));
        reported_of(values, None, &[], true)
    };
    let (health, report) = judged(&phases);
    assert_eq!((health, report.findings.len()), (Health::Unknown, 0), "{report:?}");
    assert!(report.missing[0].starts_with("`loss` rose by step 41 and has fallen since"), "{report:?}");
    assert_eq!(judged(&stays).0, Health::Broken);
    let exploded_from = |at: &dyn Fn(u64) -> f64| {
        let mut curves = Curves::default();
        (1..=100).for_each(|step| curves.take(0, "loss", step, at(step)));
        curves.exploded_from().map(|(step, _)| step)
    };
    assert_eq!((exploded_from(&phases), exploded_from(&stays)), (None, Some(41)));
}

/// The verdict over metrics that detectors saw as well.
fn with_detectors(steps: u64, metrics: &[(&str, &dyn Fn(u64) -> f64)]) -> (Health, Vec<String>) {
    let values = (1..=steps).map(|step| (step, metrics.iter().map(move |(name, at)| (*name, at(step)))));
    let (health, report) = reported_of(values, None, &[], true);
    (health, report.findings.into_iter().map(|found| found.found_by).collect())
}

/// `high` times what is left of a fall after so many steps of `length`.
fn left(high: f64, steps: u64, length: f64) -> f64 {
    high * (-(steps as f64) / length).exp()
}

/// Proves that healthy trainings of unusual kinds are neither suspect nor broken: a queue that fills, longer inputs at
/// equal distances, a second phase, a test of the range of the learning rate, a second task by its accuracy, examples
/// that are mixed, and a critic whose loss grows.
#[test]
fn an_unusual_training_is_not_held_to_its_beginning() {
    let near = |level: f64, step: u64| level + 0.01 * noise(step);
    let queue =
        |step: u64| near(1.0 + 0.08 * step.min(80) as f64 - 0.012 * step.saturating_sub(80) as f64, step);
    let longer = |step: u64| {
        let (stage, place) = ((step - 1) / 100, (step - 1) % 100);
        let rise = if stage == 0 { left(2.5, place, 15.0) } else { left(0.75, place, 10.0) };
        near(1.2 + 0.6 * stage as f64 + rise, step)
    };
    let phases = |step: u64| match step {
        ..=100 => near(left(2.0, step, 40.0) + 0.2, step),
        _ => near(left(3.5, step - 100, 40.0) + 1.2, step),
    };
    let rate = |step: u64| 1e-6 * 10_f64.powf(0.07 * step as f64);
    let tested = |step: u64| match step {
        ..=80 => 2.3 - 0.02 * step.saturating_sub(20) as f64 + 0.01 * noise(step),
        _ => 1.1 * 1.4_f64.powi(step as i32 - 80),
    };
    let second_task = |step: u64| match step {
        ..=30 => 0.9 - left(0.85, step, 6.0),
        _ => 0.62 - left(0.3, step - 30, 6.0),
    };
    let mixed = |step: u64| near(left(2.3, step, 8.0) + if step > 30 { 1.4 } else { 0.3 }, step);
    let held_out = |step: u64| near(left(2.3, step, 15.0) + 0.4, step);
    let (critic, policy) = (|step: u64| 1.0 + 0.5 * step as f64, |step: u64| 0.005 * noise(step) - 0.02);
    type Metrics<'c> = &'c [(&'c str, &'c dyn Fn(u64) -> f64)];
    let table: [(u64, Metrics<'_>, Health); 7] = [
        (200, &[("loss", &queue)], Health::Unknown),
        (300, &[("loss", &longer)], Health::Unknown),
        (200, &[("loss", &phases)], Health::Unknown),
        (100, &[("lr", &rate), ("loss", &tested)], Health::Unknown),
        (60, &[("val_acc", &second_task)], Health::Unknown),
        (80, &[("train_loss", &mixed), ("val_loss", &held_out)], Health::Ok),
        (200, &[("policy_loss", &policy), ("value_loss", &critic), ("reward", &critic)], Health::Ok),
    ];
    for (steps, metrics, expected) in table {
        assert_eq!(with_detectors(steps, metrics), (expected, Vec::new()), "{} {steps}", metrics[0].0);
    }
}

/// Proves that trainings which are lost are not taken for those: a loss that jumps and stays or rises, also where the
/// learning rate rises by equal steps or at once, that comes down from a spike to where an untrained model has it, and
/// one that rises and stays.
#[test]
fn a_lost_training_is_not_taken_for_an_unusual_one() {
    let learned = |step: u64| left(2.3, step, 40.0) + 0.2;
    let after = |level: f64, fall: f64| {
        move |step: u64| {
            let lost = level + left(fall, step.saturating_sub(200), 8.0);
            (if step > 200 { lost } else { learned(step) }) * (1.0 + 0.03 * noise(step))
        }
    };
    let (stays, higher, spike) = (after(2.4, 0.0), after(3.0, 0.0), after(2.4, 40.0));
    let (warm_up, jump) = (|step: u64| 1e-6 * step as f64, |step: u64| if step > 200 { 1.0 } else { 0.1 });
    let rises = |step: u64| 1.1 + 0.08 * step.min(80) as f64 + 0.05 * noise(step);
    type Metrics<'c> = &'c [(&'c str, &'c dyn Fn(u64) -> f64)];
    let table: [Metrics<'_>; 5] = [
        &[("loss", &stays)],
        &[("lr", &warm_up), ("loss", &stays)],
        &[("lr", &jump), ("loss", &higher)],
        &[("loss", &spike)],
        &[("loss", &rises)],
    ];
    for (place, metrics) in table.into_iter().enumerate() {
        assert_eq!(with_detectors(400, metrics).0, Health::Broken, "{place}");
    }
}

/// Proves that losses which need not fall are not judged by their level: beside a reward, beside a part that is learned
/// while another part gets more weight, and, by that of a guess, a loss of numbers.
#[test]
fn losses_that_need_not_fall_are_not_judged() {
    let all = |metrics: &[(&'static str, &dyn Fn(u64) -> f64)]| with_detectors(100, metrics);
    let rises = |step: u64| 0.5 + 0.05 * step as f64 + 0.05 * noise(step);
    let (reward, weighted) =
        (|step: u64| 2.0 * step as f64, |step: u64| 1.0 / step as f64 + (step as f64 / 80.0).min(1.0) * 9.0);
    let recon = |step: u64| 1.0 / step as f64;
    assert_eq!(all(&[("reward", &reward), ("loss", &rises)]), (Health::Ok, Vec::new()));
    assert_eq!(all(&[("loss", &rises)]).0, Health::Broken);
    assert_eq!(all(&[("loss", &weighted), ("recon", &recon)]), (Health::Ok, Vec::new()));
    assert_eq!(all(&[("loss", &weighted), ("recon", &rises)]).0, Health::Broken);
    let guess = |step: u64| 2_f64.ln() + 0.002 * noise(step);
    for (name, expected) in [("mse_loss", "plateau"), ("loss", "chance_level")] {
        assert_eq!(all(&[(name, &guess)]).1, [expected], "{name}");
    }
}

/// Proves that weights which did not change over most of an attempt are broken whatever was learned, and that over a
/// small part of it they are suspect only where nothing was learned and the learning rate was not 0.
#[test]
fn weights_that_rest_at_the_end_are_not_broken() {
    let (falls, flat) =
        (|step: u64| 2.0 * 0.95_f64.powf(step as f64) + 0.1, |step: u64| 2.0 + 0.2 * noise(step));
    let (zero_at_end, constant) = (|step: u64| if step >= 60 { 0.0 } else { 0.1 }, |_: u64| 0.1);
    type At<'c> = &'c dyn Fn(u64) -> f64;
    let table: [(Step, At<'_>, At<'_>, Option<Health>); 6] = [
        (10, &falls, &constant, Some(Health::Broken)),
        (10, &flat, &zero_at_end, Some(Health::Broken)),
        (70, &falls, &constant, None),
        (70, &falls, &zero_at_end, None),
        (70, &flat, &zero_at_end, None),
        (70, &flat, &constant, Some(Health::Suspect)),
    ];
    for (first_step, loss, rate, expected) in table {
        let found = Some(Unmoved { first_step, last_step: 80 });
        let steps: Vec<u64> = (1..=80).collect();
        let (_, report) = reported(&steps, found, &[], &[("loss", loss), ("lr", rate)]);
        let found = report.findings.iter().find(|found| found.found_by == UNMOVED_WEIGHTS);
        assert_eq!(found.map(|found| found.health), expected, "{first_step} {report:?}");
        if expected == Some(Health::Suspect) {
            assert_eq!(found.unwrap().evidence, "the weights did not change between step 70 and step 80");
        }
    }
}

/// Proves that parameters which no update changed are found: broken from the beginning, suspect where something was
/// learned, and neither after a warm-up that begins at a rate of 0 nor in a resume at the end of a schedule.
#[test]
fn updates_that_change_nothing_are_found() {
    let (falls, flat) = (|step: u64| 2.0 / step as f64, |step: u64| 2.0 + 0.2 * noise(step));
    let (all, warm_up) = (|step: u64| step as f64, |step: u64| if step < 5 { step as f64 } else { 0.0 });
    let (zero, constant) = (|_: u64| 0.0, |_: u64| 0.1);
    type At<'c> = &'c dyn Fn(u64) -> f64;
    let table: [(bool, At<'_>, At<'_>, At<'_>, u64, Option<Health>); 7] = [
        (true, &flat, &constant, &all, 40, Some(Health::Broken)),
        (true, &flat, &zero, &all, 40, Some(Health::Broken)),
        (true, &falls, &constant, &all, 40, Some(Health::Suspect)),
        (true, &flat, &constant, &warm_up, 40, None),
        (true, &flat, &constant, &all, 9, None),
        (false, &flat, &constant, &all, 40, Some(Health::Suspect)),
        (false, &flat, &zero, &all, 40, None),
    ];
    for (from_the_beginning, loss, rate, updates, last_step, expected) in table {
        let mut curves = Curves::default();
        for step in 1..=last_step {
            curves.take(0, "loss", step, loss(step));
            curves.take(0, "learning_rate", step, rate(step));
            curves.take(0, UNMOVED_UPDATES, step, updates(step));
        }
        let (_, report) = judge(&HealthEvidence {
            reason: TerminationReason::Completed,
            last_step: Some(last_step),
            from_the_beginning,
            on_all_data: true,
            curves: &curves,
            losses: &LossRecord::new(SAFE_AFTER, true),
            standing: &[],
            unmoved: None,
            earlier: &[],
            not_kept: None,
        });
        let found = report.findings.iter().find(|found| found.found_by == UNMOVED_WEIGHTS);
        assert_eq!(found.map(|found| found.health), expected, "{report:?}");
        if let Some(found) = found {
            assert_eq!(found.evidence, "no trained parameter changed in 40 updates");
        }
    }
}

/// Proves that an accuracy, or another score, that was high and fell for good is found: broken where it is back at its
/// beginning or next to a guess, suspect where half of the way is lost, and neither for noise, a fit by heart, one bad
/// epoch, nor a reward.
#[test]
fn a_score_that_fell_for_good_is_found() {
    let learns = |step: u64| 1.0 - 0.5 * (-(step as f64) / 10.0).exp();
    let lost = |step: u64| if step > 40 { 0.5 + 0.002 * noise(step) } else { learns(step) };
    let in_part = |step: u64| if step > 40 { 0.72 + 0.002 * noise(step) } else { learns(step) };
    for name in ["val_acc", "train_acc", "accuracy", "f1", "eval_auc", "mAP"] {
        assert_eq!(
            judged(60, 1, &[(name, &lost)]),
            (Health::Broken, vec!["score_went_back".into()]),
            "{name}"
        );
        assert_eq!(judged(60, 1, &[(name, &in_part)]).0, Health::Suspect, "{name}");
    }
    assert_eq!(judged(600, 10, &[("val_acc", &|step| lost(step / 10))]).0, Health::Broken);
    let (_, report) = reported(&(1..=60).collect::<Vec<_>>(), None, &[], &[("val_acc", &lost)]);
    assert_eq!(report.findings[0].first_step, Some(41));
    let tuned = |step: u64| if step > 40 { 0.1 } else { 0.93 + 0.002 * noise(step) };
    assert_eq!(judged(60, 1, &[("val_acc", &tuned)]).0, Health::Broken);
    type At<'c> = &'c dyn Fn(u64) -> f64;
    let healthy: [(&str, At<'_>); 5] = [
        ("rises", &learns),
        ("noisy", &|step| (learns(step) + 0.12 * noise(step)).clamp(0.0, 1.0)),
        ("by heart", &|step| learns(step) - (step as f64 / 1000.0).min(0.1)),
        ("an epoch", &|step| if (30..36).contains(&step) { 0.5 } else { learns(step) }),
        ("at the end", &|step| if step > 57 { 0.5 } else { learns(step) }),
    ];
    for (name, at) in &healthy {
        for (steps, every) in [(60, 1), (200, 1), (2000, 1), (2000, 20)] {
            let at = |step: u64| if *name == "at the end" { at(step.min(60)) } else { at(step) };
            if *name != "at the end" || steps == 60 {
                let found = judged(steps, every, &[("val_acc", &at)]);
                assert_eq!(found, (Health::Ok, Vec::new()), "{name} {steps} {every}");
            }
        }
    }
    assert_eq!(judged(60, 1, &[("reward", &lost)]).0, Health::Unknown);
}

/// Proves that the noise of an accuracy over small batches, of a model that never learned, is hardly ever taken for a fall.
#[test]
fn noise_of_an_accuracy_is_not_a_fall() {
    for right in [0.1, 0.5] {
        let fell = (0..200_u64).filter(|seed| {
            let mut rng = SplitMix64::new(*seed);
            let mut curve = Curve::default();
            for step in 1..=600 {
                let hits = (0..16).filter(|_| trackway_core::Rng::next_unit(&mut rng) < right).count();
                curve.take(step, hits as f64 / 16.0);
            }
            scores::went_back("acc", &curve).is_some()
        });
        assert!(fell.count() <= 1, "{right}");
    }
}

/// Proves that a score of the training which is the same at every value is suspect, unless it is next to perfect, too
/// small for what is printed of it, or another score moves.
#[test]
fn a_score_that_never_moves_is_suspect() {
    let (falls, constant) = (|step: u64| 0.6 / step as f64 + 0.3, |_: u64| 0.894);
    let found = judged(30, 1, &[("loss", &falls), ("accuracy", &constant), ("val_accuracy", &constant)]);
    assert_eq!(found, (Health::Suspect, vec!["score_never_moved".into()]));
    let moves = |step: u64| 0.8 + step as f64 / 1000.0;
    for metrics in [
        &[("accuracy", &constant as &dyn Fn(u64) -> f64), ("val_accuracy", &moves)][..],
        &[("val_accuracy", &constant)],
        &[("accuracy", &|_| 1.0)],
        &[("accuracy", &|_| 99.8)],
        &[("accuracy", &|_| ROUNDED_ZERO)],
    ] {
        assert_eq!(judged(30, 1, metrics).0, Health::Ok, "{}", metrics[0].0);
    }
    assert_eq!(judged(19, 1, &[("accuracy", &constant)]).0, Health::Ok);
    assert_eq!(judged(30, 1, &[("accuracy", &|_| 0.0)]).0, Health::Suspect);
}
