//! Each detector on made streams: what sets it off, when, and what must not.

use trackway_core::detect::{DetectionSeverity, Detector, Firing};
use trackway_core::{Rng, SplitMix64, Step};
use trackway_formats::record::ROUNDED_ZERO;

use super::{Detectors, METRICS_MAX, Rule, Rules};

/// Values of one metric of rank 0, a step each.
fn firings_of(metric: &str, values: impl IntoIterator<Item = f64>) -> Vec<Firing> {
    stream(values.into_iter().zip(0..).map(|(value, step)| (step, vec![(0, metric, value)])))
}

/// Steps with the values of any ranks.
fn stream<'m>(steps: impl IntoIterator<Item = (Step, Vec<(u32, &'m str, f64)>)>) -> Vec<Firing> {
    let (mut detectors, mut firings) = (Detectors::default(), Vec::new());
    for (step, values) in steps {
        for (rank, metric, value) in values {
            let watch = detectors.watch(rank, metric);
            detectors.take(watch, step, value, step as f64, &mut firings);
        }
    }
    firings
}

fn fired(firings: &[Firing]) -> Vec<(Detector, Step)> {
    firings.iter().map(|firing| (firing.detector, firing.step)).collect()
}

/// About normal noise of deviation 1.
fn normal(rng: &mut SplitMix64) -> f64 {
    (0..12).map(|_| rng.next_unit()).sum::<f64>() - 6.0
}

/// A loss that falls from 2.3 to 0.3 with a noise of 10 %.
fn healthy_loss(step: Step, rng: &mut SplitMix64) -> f64 {
    (0.3 + 2.0 * (-(step as f64) / 200.0).exp()) * (1.0 + 0.1 * normal(rng))
}

/// Proves that the first NaN is reported at once, with the step and the learning rate that rose before it, and once more,
/// as critical, when the loss stays so.
#[test]
fn a_nan_is_reported_at_once_and_when_it_lasts() {
    let mut rng = SplitMix64::new(1);
    let firings = stream((0..100).map(|step| {
        let rate = if step < 60 { 0.01 } else { 1.0 };
        let loss = if step < 64 { healthy_loss(step, &mut rng) } else { f64::NAN };
        (step, vec![(0, "learning_rate", rate), (0, "loss", loss), (0, "grad_norm", loss)])
    }));
    assert_eq!(fired(&firings), [(Detector::NonFinite, 64), (Detector::NonFinite, 73)]);
    let firing = &firings[0];
    assert_eq!((firing.severity, firing.metric.as_deref()), (DetectionSeverity::Warn, Some("loss")));
    assert!(firing.evidence.starts_with("`loss` is NaN at step 64; it was"), "{}", firing.evidence);
    let lasting = &firings[1];
    assert_eq!((lasting.severity, lasting.first_step), (DetectionSeverity::Critical, 64));
    let expected = "`loss` is NaN or infinite from step 64 on, 10 values in a row; it was";
    assert!(lasting.evidence.starts_with(expected), "{}", lasting.evidence);
    assert_eq!(firing.cause, "the learning rate rose 100-fold at step 60");
    assert!(firing.advice.contains("clip gradients"));
}

/// Proves that single values that are not finite, and gradients alone, are never critical, and that a second episode is.
#[test]
fn only_a_loss_that_stays_so_is_critical() {
    let critical = |loss: fn(Step) -> f64, norm: fn(Step) -> f64| -> Vec<Step> {
        let firings =
            stream((0..300).map(|step| (step, vec![(0, "loss", loss(step)), (0, "grad_norm", norm(step))])));
        let critical = firings.iter().filter(|firing| firing.severity == DetectionSeverity::Critical);
        critical.map(|firing| firing.step).collect()
    };
    let falls = |step: Step| 2.0 / (1.0 + step as f64);
    let skips = |step: Step| if step.is_multiple_of(5) { f64::INFINITY } else { 2.0 / (1.0 + step as f64) };
    assert_eq!(critical(skips, |_| 1.0), [] as [Step; 0]);
    assert_eq!(critical(falls, |_| f64::NAN), [] as [Step; 0]);
    let twice = |step: Step| match step {
        50..70 | 200.. => f64::NAN,
        _ => 2.0 / (1.0 + step as f64),
    };
    assert_eq!(critical(twice, |_| 1.0), [59, 209]);
}

/// Proves that overflows are no problem while a loss scale is sought, and are one when they do not end.
#[test]
fn overflows_belong_to_a_loss_scale() {
    let run = |scaled: bool, overflows: std::ops::Range<Step>| {
        fired(&stream((0..200).map(|step| {
            let norm = if overflows.contains(&step) { f64::INFINITY } else { 1.0 };
            let scale = if scaled { vec![(0, "loss_scale", 1024.0)] } else { Vec::new() };
            (step, scale.into_iter().chain([(0, "grad_norm", norm)]).collect())
        })))
    };
    assert_eq!(run(true, 5..10), []);
    assert_eq!(run(false, 5..10), [(Detector::NonFinite, 5)]);
    assert_eq!(run(true, 50..80), [(Detector::NonFinite, 60)]);
}

/// Proves that a spike far out of everything is reported at its step, one within the range after three steps, a single
/// step within the range never, and that a second episode is reported again.
#[test]
fn spikes_are_reported_by_their_size_and_length() {
    let run = |spikes: &[(Step, f64)]| {
        let mut rng = SplitMix64::new(2);
        let losses = (0..1500).map(|step| {
            let spike = spikes.iter().find(|(at, _)| *at == step).map_or(0.0, |(_, height)| *height);
            healthy_loss(step, &mut rng) + spike
        });
        fired(&firings_of("loss", losses.collect::<Vec<_>>()))
    };
    assert_eq!(run(&[]), []);
    assert_eq!(run(&[(900, 20.0)]), [(Detector::LossSpike, 900)]);
    assert_eq!(run(&[(900, 1.0)]), []);
    assert_eq!(run(&[(900, 1.0), (901, 1.0), (902, 1.0)]), [(Detector::LossSpike, 902)]);
    let twice = [(900, 20.0), (1200, 20.0)];
    assert_eq!(run(&twice), [(Detector::LossSpike, 900), (Detector::LossSpike, 1200)]);
}

/// Proves that a loss which climbs too slowly for a spike is reported, and that a converged one is not.
#[test]
fn a_loss_that_climbs_is_reported() {
    let mut rng = SplitMix64::new(3);
    let climbing =
        (0..2000u64).map(|step| healthy_loss(step, &mut rng) + 0.001 * step.saturating_sub(1000) as f64);
    let firings = firings_of("loss", climbing.collect::<Vec<_>>());
    assert_eq!(firings.iter().map(|firing| firing.detector).collect::<Vec<_>>(), [Detector::LossShift]);
    assert!((1200..1500).contains(&firings[0].step), "{firings:?}");
}

/// Proves that the noise of a batch of one (exponential) and of a run that has learned all but single samples set
/// nothing off.
#[test]
fn heavy_tails_are_healthy() {
    let mut rng = SplitMix64::new(4);
    let exponential: Vec<f64> =
        (0..200_000).map(|step| -(1.0 - rng.next_unit()).ln() * if step < 500 { 2.0 } else { 1.0 }).collect();
    assert_eq!(fired(&firings_of("loss", exponential)), []);
    let mut rng = SplitMix64::new(5);
    let learned = (0..100_000u64).map(|step| {
        let odd = if rng.next_unit() < 0.01 { 0.4 } else { 0.0 };
        2.3 * (-(step as f64) / 50.0).exp() + 1e-4 * (1.0 + rng.next_unit()) + odd
    });
    assert_eq!(fired(&firings_of("loss", learned.collect::<Vec<_>>())), []);
}

/// Proves both ends of the gradient: an explosion in one step or three, nothing left, and what a learned run may have.
#[test]
fn gradients_explode_and_vanish() {
    let run = |odd: fn(Step) -> Option<f64>| {
        let mut rng = SplitMix64::new(6);
        let norms = (0..500).map(|step| odd(step).unwrap_or(1.0 + 0.2 * normal(&mut rng)));
        fired(&firings_of("grad_norm", norms.collect::<Vec<_>>()))
    };
    assert_eq!(run(|_| None), []);
    assert_eq!(run(|step| (step == 300).then_some(1e4)), [(Detector::GradientExplosion, 300)]);
    assert_eq!(run(|step| (step >= 300).then_some(14.0)), [(Detector::GradientExplosion, 302)]);
    assert_eq!(run(|step| (step >= 300).then_some(0.0)), [(Detector::GradientVanishing, 309)]);
    assert_eq!(run(|_| Some(0.0)), [(Detector::GradientVanishing, 9)]);
    let learned = stream((0..2000).map(|step| {
        let loss = 2.0 * (-(step as f64) / 60.0).exp();
        (step, vec![(0, "loss", loss + 1e-9 * (step % 7) as f64), (0, "grad_norm", loss)])
    }));
    assert_eq!(fired(&learned), []);
}

/// Proves that a loss which never falls is reported, and that one which falls slowly, or at once, is not.
#[test]
fn a_plateau_is_a_run_that_never_learned() {
    let run = |level: fn(Step) -> f64| {
        let mut rng = SplitMix64::new(7);
        let losses = (0..3000).map(|step| level(step) + 0.05 * normal(&mut rng));
        fired(&firings_of("loss", losses.collect::<Vec<_>>()))
    };
    assert_eq!(run(|_| 2.3), [(Detector::Plateau, 499)]);
    assert_eq!(run(|step| 2.3 - step as f64 * 3e-4), []);
    assert_eq!(run(|step| if step < 20 { 2.3 } else { 0.7 }), []);
}

/// Proves that the steps of a plateau are steps of the training, however often its loss is recorded.
#[test]
fn a_plateau_is_counted_in_steps() {
    for every in [10, 50] {
        let run = |level: fn(Step) -> f64| {
            let mut rng = SplitMix64::new(7);
            fired(&stream(
                (0..3000)
                    .filter(|step| step % every == 0)
                    .map(|step| (step, vec![(0, "loss", level(step) + 0.02 * normal(&mut rng))])),
            ))
        };
        let found = run(|_| 2.3);
        assert!(matches!(found[..], [(Detector::Plateau, 499..1500)]), "every {every}: {found:?}");
        assert_eq!(run(|step| 2.3 - step as f64 * 3e-4), [], "every {every}");
        assert_eq!(run(|step| if step < 200 { 2.3 } else { 0.7 }), [], "every {every}");
    }
}

/// Proves that a plateau is found under noise that a first block of few values could not show it under, and that a run
/// which learned before the second of its rare values is none.
#[test]
fn a_plateau_of_rare_or_noisy_values_is_found() {
    let run = |every: Step, noise: f64, level: fn(Step, Step) -> f64| {
        let mut rng = SplitMix64::new(7);
        fired(&stream(
            (0..3000)
                .filter(|step| step % every == 0)
                .map(|step| (step, vec![(0, "loss", level(step, every) + noise * normal(&mut rng))])),
        ))
    };
    for (every, noise) in [(1, 0.3), (10, 0.15), (50, 0.1)] {
        let found = run(every, noise, |_, _| 2.3);
        assert!(matches!(found[..], [(Detector::Plateau, 500..3000)]), "every {every}: {found:?}");
    }
    for every in [10, 20, 50, 100] {
        let at_once = run(every, 0.005, |step, every| if step < every { 2.3 } else { 0.4 });
        assert_eq!(at_once, [], "every {every}");
    }
}

/// Proves that a validation loss which rises while the training loss falls is reported, and that noise, and both
/// rising, are not.
#[test]
fn validation_parts_from_training() {
    let run = |validation: fn(f64) -> f64, training: fn(f64) -> f64| {
        let mut rng = SplitMix64::new(8);
        fired(&stream((0..3000).map(|step| {
            let progress = step as f64 / 3000.0;
            let mut values = vec![(0, "loss", training(progress) * (1.0 + 0.02 * normal(&mut rng)))];
            if step % 100 == 99 {
                values.push((0, "val_loss", validation(progress) * (1.0 + 0.02 * normal(&mut rng))));
            }
            (step, values)
        })))
    };
    let falls: fn(f64) -> f64 = |progress| 2.3 - 1.8 * progress;
    let overfits: fn(f64) -> f64 = |progress| 1.0 + (progress - 0.5).abs();
    let found = run(overfits, falls);
    assert_eq!(
        found.iter().map(|(detector, _)| *detector).collect::<Vec<_>>(),
        [Detector::ValidationDivergence]
    );
    assert_eq!(run(|progress| 2.4 - 1.5 * progress, falls), []);
    assert_eq!(run(|_| 4.0, falls)[0].0, Detector::ValidationDivergence);
}

/// Proves that a repeated batch is reported after five, one batch from the beginning on only as a note, and an epoch
/// never.
#[test]
fn repeated_batches_are_reported() {
    let run = |digest: fn(Step) -> f64| firings_of("batch_digest", (0..200).map(digest));
    let stuck = run(|step| step.min(100) as f64);
    assert_eq!(fired(&stuck), [(Detector::DeadInput, 105)]);
    assert_eq!(stuck[0].severity, DetectionSeverity::Warn);
    assert_eq!(run(|step| (step % 4) as f64), []);
    let only = run(|_| 7.0);
    assert_eq!((fired(&only), only[0].severity), (vec![(Detector::DeadInput, 20)], DetectionSeverity::Note));
    let equal = fired(&firings_of("loss", (0..200).map(|step| 1.0 / (1.0 + step.min(50) as f64))));
    assert_eq!(equal, [(Detector::DeadInput, 70)]);
    let printed = |step: u64| ((1.0 / (1.0 + step.min(50) as f64)) * 1000.0).round() / 1000.0;
    assert_eq!(fired(&firings_of("loss", (0..200).map(printed))), [], "rounded to three decimals");
}

/// Proves that inputs which stop changing are reported although labels change, that a batch which repeats as a whole is
/// reported once, and that inputs which never differed are intended.
#[test]
fn repeated_inputs_are_reported() {
    let run =
        |inputs: fn(Step) -> f64, batch: fn(Step) -> f64| {
            fired(&stream((0..200).map(|step| {
                (step, vec![(0, "batch_digest", batch(step)), (0, "input_digest", inputs(step))])
            })))
        };
    let differs = |step: Step| step as f64;
    let stuck = |step: Step| step.min(100) as f64;
    assert_eq!(run(stuck, differs), [(Detector::DeadInput, 105)]);
    assert_eq!(run(stuck, stuck), [(Detector::DeadInput, 105)]);
    assert_eq!(run(|_| 7.0, differs), []);
    assert_eq!(run(differs, differs), []);
}

/// Proves that waiting is reported by its fraction, and not when it is short, rare or at the beginning.
#[test]
fn waiting_for_batches_is_reported() {
    let run = |wait: fn(Step) -> f64| {
        fired(&stream((0..300).map(|step| {
            let wait = wait(step);
            (step, vec![(0, "batch_wait_seconds", wait), (0, "step_seconds", 0.1 + wait)])
        })))
    };
    assert_eq!(run(|_| 0.002), []);
    assert_eq!(run(|step| if step % 50 == 0 { 0.5 } else { 0.0 }), []);
    assert_eq!(run(|step| if step < 8 { 2.0 } else { 0.0 }), []);
    let starved = run(|step| if step < 100 { 0.001 } else { 0.06 });
    assert_eq!(starved[0].0, Detector::DataStarvation);
    assert!(starved[0].1 < 125, "{starved:?}");
}

/// Proves that waiting is reported where a step's duration is recorded before its wait, as the callbacks of Python record
/// them, and from the same step on.
#[test]
fn waiting_is_reported_in_either_order() {
    let run = |duration_first: bool| {
        fired(&stream((0..100).map(|step| {
            let mut values = vec![(0, "batch_wait_seconds", 0.05), (0, "step_seconds", 0.06)];
            if duration_first {
                values.reverse();
            }
            (step, values)
        })))
    };
    assert_eq!(run(true), run(false));
    assert_eq!(run(true), [(Detector::DataStarvation, 19)]);
}

/// Proves that a lasting drop in speed is reported, by either metric, and that slow steps now and then are not.
#[test]
fn slower_steps_are_reported() {
    let run = |metric: &str, value: fn(Step) -> f64| fired(&firings_of(metric, (0..400).map(value)));
    assert_eq!(run("step_seconds", |step| if step % 10 == 0 { 9.0 } else { 0.1 }), []);
    assert_eq!(
        run("step_seconds", |step| if step < 250 { 0.1 } else { 0.2 }),
        [(Detector::ThroughputDrop, 273)]
    );
    assert_eq!(
        run("samples_per_second", |step| if step < 250 { 900.0 } else { 400.0 }),
        [(Detector::ThroughputDrop, 273)]
    );
}

/// Proves that steps of a millisecond which are slow for a tenth of a second are not reported, and for longer they are.
#[test]
fn a_blip_of_short_steps_is_not_reported() {
    let run = |slow: std::ops::Range<Step>| {
        let seconds = |step| if slow.contains(&step) { 0.002 } else { 0.001 };
        fired(&firings_of("step_seconds", (0..1000).map(seconds)))
    };
    assert_eq!(run(300..360), []);
    assert_eq!(run(300..1000), [(Detector::ThroughputDrop, 441)]);
}

/// Proves that the slow rank is named, and none when all are slow.
#[test]
fn the_slow_rank_is_named() {
    let run = |seconds: fn(u32, Step) -> f64| {
        stream((0..400).map(|step| {
            (step, (0..8).map(|rank| (rank, "step_seconds", seconds(rank, step))).collect::<Vec<_>>())
        }))
    };
    let slow = run(|rank, step| if rank == 5 && step >= 100 { 0.149 } else { 0.1 });
    assert_eq!(
        slow.iter().map(|firing| (firing.detector, firing.rank)).collect::<Vec<_>>(),
        [(Detector::Straggler, 5)]
    );
    assert_eq!(run(|_, step| 0.1 + (step % 5) as f64 * 0.01), []);
}

/// Proves that a leak is reported with the step at which memory is full, and that batches of different lengths are not
/// one.
#[test]
fn a_leak_is_reported_with_its_end() {
    let run = |bytes: fn(Step, &mut SplitMix64) -> f64| {
        let (mut detectors, mut firings, mut rng) = (Detectors::default(), Vec::new(), SplitMix64::new(9));
        detectors.set_memory_limit(2e9);
        let watch = detectors.watch(0, "memory_allocated_bytes");
        for step in 0..1000 {
            detectors.take(watch, step, bytes(step, &mut rng), 0.0, &mut firings);
        }
        firings
    };
    let leak = run(|step, rng| 1e9 + 1e6 * step as f64 + 1e7 * rng.next_unit());
    assert_eq!(fired(&leak), [(Detector::MemoryCreep, 159)]);
    let end = leak[0].evidence.split("runs out at step ").nth(1).unwrap();
    let end: Step = end.split(';').next().unwrap().parse().unwrap();
    assert!((980..=1020).contains(&end), "{}", leak[0].evidence);
    assert!(leak[0].evidence.contains("`loss.item()`"), "says what to do: {}", leak[0].evidence);
    assert_eq!(run(|_, rng| 1e9 + 5e8 * rng.next_unit()), []);
    assert_eq!(run(|step, _| 1e9 + 1e8 * (step / 300) as f64), []);
}

/// Proves that a run of 60 steps is enough for a leak that is fast and even, also where its memory is looked at once in many steps
/// from some step on, and that no healthy short run has one: not with what is allocated in the first steps, with batches of
/// different lengths, with a cache that fills up and is full, nor with a rise that stops.
#[test]
fn a_short_run_can_leak() {
    let run = |seed: u64, steps: &mut dyn Iterator<Item = Step>, bytes: &dyn Fn(Step, f64) -> f64| {
        let (mut detectors, mut firings, mut rng) = (Detectors::default(), Vec::new(), SplitMix64::new(seed));
        let watch = detectors.watch(0, "memory_allocated_bytes");
        for step in steps {
            detectors.take(watch, step, bytes(step, rng.next_unit()), 0.0, &mut firings);
        }
        firings
    };
    for seed in 0..200 {
        let leak = run(seed, &mut (0..60), &|step, noise| 1e9 + 1e7 * step as f64 + 1e6 * noise);
        assert_eq!(fired(&leak), [(Detector::MemoryCreep, 51)]);
        let mut sparse = (0..40).chain((40..).step_by(25).take(40));
        let leak = run(seed, &mut sparse, &|step, noise| 1e9 + 1e7 * step as f64 + 1e6 * noise);
        assert_eq!(fired(&leak).len(), 1, "the rise of a step is what must be even");
        let healthy: [&dyn Fn(Step, f64) -> f64; 4] = [
            &|step, noise| 1e9 + 4e8 * (step.min(12) as f64 / 12.0) + 1e6 * noise,
            &|_, noise| 1e9 + 5e8 * noise,
            &|step, noise| 1e9 + 1e9 * (1.0 - (-(step as f64) / 15.0).exp()) + 1e5 * noise,
            &|step, noise| 1e9 + 1e7 * (step % 30) as f64 + 1e6 * noise,
        ];
        for (kind, bytes) in healthy.iter().enumerate() {
            assert_eq!(run(seed, &mut (0..400), *bytes), [], "healthy run {kind}");
        }
    }
}

/// Proves that silence counts from five times the longest step on, that a rank behind the others is named, and that
/// the next value ends the episode.
#[test]
fn silence_is_measured_by_the_longest_step() {
    let (mut detectors, mut firings) = (Detectors::default(), Vec::new());
    let watches = [detectors.watch(0, "loss"), detectors.watch(1, "loss")];
    for step in 0..10 {
        for (rank, watch) in watches.iter().enumerate() {
            if rank == 0 || step < 7 {
                detectors.take(*watch, step, 1.0 / (step + 1) as f64, 60.0 * step as f64, &mut firings);
            }
        }
    }
    detectors.tick(100.0, &mut firings);
    assert!(firings.is_empty());
    detectors.tick(170.0, &mut firings);
    assert_eq!(firings.iter().map(|firing| (firing.rank, firing.step)).collect::<Vec<_>>(), [(1, 6)]);
    detectors.tick(320.0, &mut firings);
    detectors.tick(400.0, &mut firings);
    assert_eq!(firings.len(), 1, "the run hangs already: one finding, not one a rank");
    detectors.take(watches[0], 10, 0.1, 900.0, &mut firings);
    detectors.take(watches[1], 10, 0.1, 900.0, &mut firings);
    detectors.tick(5000.0, &mut firings);
    assert_eq!(firings.len(), 2);
}

/// Proves that jumps and zeros are reported, and that warm-up, decay, warm restarts and a last zero are not.
#[test]
fn schedules_are_healthy_and_jumps_are_not() {
    let run = |rate: fn(Step) -> f64| fired(&firings_of("learning_rate", (0..1000).map(rate)));
    let cosine = |step: Step| 5e-4 * (1.0 + (step as f64 / 1000.0 * std::f64::consts::PI).cos());
    assert_eq!(run(cosine), []);
    assert_eq!(run(|step| (step as f64 / 100.0).min(1.0) * 1e-3), []);
    assert_eq!(run(|step| 1e-3 * (1.0 - (step % 250) as f64 / 250.0).max(1e-6)), []);
    assert_eq!(run(|step| if step < 100 { 1e-6 } else { 1e-3 }), []);
    assert_eq!(run(|step| if step < 600 { 1e-3 } else { 0.1 }), [(Detector::LearningRate, 600)]);
    assert_eq!(run(|step| if step < 600 { 1e-3 } else { 0.0 }), [(Detector::LearningRate, 609)]);
    assert_eq!(run(|_| 50.0), [(Detector::LearningRate, 0)]);
    let still = firings_of("update_ratio", (0..100).map(|step| if step < 50 { 1e-3 } else { 0.0 }));
    assert_eq!(fired(&still), [(Detector::LearningRate, 59)]);
}

/// Proves that a zero that was printed with decimals shows neither a learning rate of 0 nor a gradient that is gone nor
/// updates that change nothing, and that a loss does not jump from it with its next digit, where an exact zero does;
/// and that a loss which jumps far from it is found.
#[test]
fn a_printed_zero_may_be_a_small_number() {
    for (metric, detector) in [
        ("learning_rate", Detector::LearningRate),
        ("grad_norm", Detector::GradientVanishing),
        ("update_ratio", Detector::LearningRate),
    ] {
        assert_eq!(fired(&firings_of(metric, [0.0; 100])), [(detector, 9)], "{metric}");
        assert_eq!(fired(&firings_of(metric, [ROUNDED_ZERO; 100])), [], "{metric}");
    }
    let loss = |zero: f64, jump: f64| {
        let values = (0..200).map(|step| if step == 150 { jump } else { zero });
        fired(&firings_of("loss", values))
    };
    assert_eq!(loss(0.0, 1e-4), [(Detector::LossSpike, 150)]);
    assert_eq!(loss(ROUNDED_ZERO, 1e-4), []);
    assert_eq!(loss(ROUNDED_ZERO, 2.0), [(Detector::LossSpike, 150)]);
}

/// Proves that a scale that is sought is healthy, and one that falls to nothing is not.
#[test]
fn a_loss_scale_may_be_sought_but_not_fall() {
    let run = |scale: fn(Step) -> f64| fired(&firings_of("loss_scale", (0..400).map(scale)));
    assert_eq!(run(|step| 65536.0 / 2f64.powi(step.min(7) as i32)), []);
    assert_eq!(run(|step| 65536.0 / 2f64.powi((step / 150) as i32)), []);
    let falls = run(|step| 65536.0 / 2f64.powi(step.saturating_sub(200).min(40) as i32));
    assert_eq!(falls, [(Detector::LossScaleCollapse, 208)]);
}

/// Proves that a rank whose gradient parts from the others' is named, and that ranks which never agreed are left alone.
#[test]
fn ranks_that_diverge_are_reported() {
    let run =
        |norm: fn(u32, Step) -> f64| {
            stream((0..100).map(|step| {
                (step, (0..4).map(|rank| (rank, "grad_norm", norm(rank, step))).collect::<Vec<_>>())
            }))
        };
    assert_eq!(run(|_, step| 1.0 + 0.1 * (step % 7) as f64), []);
    assert_eq!(run(|rank, step| 1.0 + 0.01 * f64::from(rank) + 0.1 * (step % 7) as f64), []);
    let parted = run(|rank, step| if rank == 2 && step >= 50 { 1.35 } else { 1.0 + 0.1 * (step % 7) as f64 });
    assert_eq!(parted[0].detector, Detector::RankDivergence);
    assert_eq!((parted[0].rank, parted[0].first_step), (2, 50), "{parted:?}");
}

/// Proves that a detector that is off reports nothing, and that a changed limit holds.
#[test]
fn rules_are_obeyed() {
    let mut rules = Rules::default();
    let rule = rules.of(Detector::NonFinite);
    rules.set(Detector::NonFinite, Rule { enabled: false, ..rule });
    rules.set(Detector::DeadInput, Rule { patience: 2, ..rules.of(Detector::DeadInput) });
    let (mut detectors, mut firings) = (Detectors::new(rules), Vec::new());
    let (loss, digest) = (detectors.watch(0, "loss"), detectors.watch(0, "batch_digest"));
    for step in 0..10 {
        detectors.take(loss, step, f64::NAN, 0.0, &mut firings);
        detectors.take(digest, step, step.min(3) as f64, 0.0, &mut firings);
    }
    assert_eq!(fired(&firings), [(Detector::DeadInput, 5)]);
}

/// Proves that metrics without end cost no more memory than their bound, and that the rest is counted.
#[test]
fn the_number_of_metrics_is_bounded() {
    let mut detectors = Detectors::default();
    for number in 0..METRICS_MAX + 100 {
        detectors.watch(0, &format!("grad_norm/{number}"));
        detectors.watch(0, &format!("accuracy/{number}"));
    }
    assert_eq!(detectors.not_watched(), 100);
}

/// Proves that every detector has a symptom, a default and a meaning of its numbers.
#[test]
fn every_detector_is_described() {
    let rules = Rules::default();
    for detector in Detector::ALL {
        let symptom = crate::symptom_of_detector(*detector);
        let rule = rules.of(*detector);
        let (threshold, patience) = Rules::meaning(*detector);
        assert!(!symptom.causes.is_empty() && rule.enabled && rule.patience > 0, "{detector}");
        assert!(!threshold.is_empty() && !patience.is_empty());
    }
}

/// Between -1 and 1, without an order.
fn wobble(step: Step) -> f64 {
    SplitMix64::new(step).next_unit() * 2.0 - 1.0
}

/// Steps of eight ranks.
fn of_ranks(metric: &str, value: fn(u32, Step) -> f64) -> Vec<Firing> {
    stream(
        (0..400).map(|step| (step, (0..8).map(|rank| (rank, metric, value(rank, step))).collect::<Vec<_>>())),
    )
}

/// Steps with two values each.
fn two(metrics: [&str; 2], values: fn(Step) -> [f64; 2]) -> Vec<Firing> {
    stream((0..3000).map(|step| {
        let [one, other] = values(step);
        (step, vec![(0, metrics[0], one), (0, metrics[1], other)])
    }))
}

/// Memory that grows to its limit.
fn leak() -> Vec<Firing> {
    let (mut detectors, mut firings) = (Detectors::default(), Vec::new());
    detectors.set_memory_limit(2e9);
    let watch = detectors.watch(0, "memory_allocated_bytes");
    for step in 0..1000 {
        let bytes = 1e9 + 1e6 * step as f64 + 1e7 * wobble(step);
        detectors.take(watch, step, bytes, 0.0, &mut firings);
    }
    firings
}

/// Ten steps, and nothing after them.
fn silence() -> Vec<Firing> {
    let (mut detectors, mut firings) = (Detectors::default(), Vec::new());
    let watch = detectors.watch(0, "loss");
    for step in 0..10 {
        detectors.take(watch, step, 1.0 / (step + 1) as f64, step as f64, &mut firings);
    }
    detectors.tick(1e6, &mut firings);
    firings
}

/// What is found in a run that has the symptom of a detector.
fn run_with(detector: Detector) -> Vec<Firing> {
    let mut rng = SplitMix64::new(12);
    let falling: Vec<f64> = (0..2000).map(|step| healthy_loss(step, &mut rng)).collect();
    let loss = |change: fn(Step) -> f64| {
        firings_of("loss", falling.iter().zip(0..).map(|(loss, step)| loss + change(step)))
    };
    let of_one = |metric: &str, value: fn(Step) -> f64| firings_of(metric, (0..1000).map(value));
    match detector {
        Detector::NonFinite => loss(|step| if step < 900 { 0.0 } else { f64::NAN }),
        Detector::GradientExplosion => {
            of_one("grad_norm", |step| if step == 300 { 1e4 } else { 1.0 + (step % 7) as f64 / 10.0 })
        }
        Detector::GradientVanishing => {
            of_one("grad_norm", |step| if step >= 300 { 0.0 } else { 1.0 + (step % 7) as f64 / 10.0 })
        }
        Detector::LossSpike => loss(|step| if step == 900 { 20.0 } else { 0.0 }),
        Detector::LossShift => loss(|step| 0.001 * step.saturating_sub(1000) as f64),
        Detector::Plateau => of_one("loss", |step| 2.3 + 0.05 * wobble(step)),
        Detector::ValidationDivergence => stream((0..3000).map(|step| {
            let noise = 1.0 + 0.02 * wobble(step);
            let mut values = vec![(0, "loss", (2.3 - 0.0006 * step as f64) * noise)];
            if step % 100 == 99 {
                values.push((0, "val_loss", 4.0 * noise));
            }
            (step, values)
        })),
        Detector::DeadInput => of_one("batch_digest", |step| step.min(100) as f64),
        Detector::SeenBefore => two(["batch_digest", "progressive_loss"], |step| {
            [(SplitMix64::new(step % 1000).next_u64() >> 32) as f64, 1.0 / (1 + step) as f64]
        }),
        Detector::DataStarvation => {
            two(
                ["batch_wait_seconds", "step_seconds"],
                |step| {
                    if step < 100 { [0.001, 0.1] } else { [0.06, 0.16] }
                },
            )
        }
        Detector::ThroughputDrop => of_one("step_seconds", |step| if step < 250 { 0.1 } else { 0.2 }),
        Detector::Straggler => {
            of_ranks("step_seconds", |rank, step| if rank == 2 && step >= 100 { 0.2 } else { 0.1 })
        }
        Detector::MemoryCreep => leak(),
        Detector::Hang => silence(),
        Detector::LearningRate => of_one("learning_rate", |step| if step < 600 { 1e-3 } else { 0.1 }),
        Detector::LossScaleCollapse => {
            of_one("loss_scale", |step| 65536.0 / 2f64.powi(step.saturating_sub(200).min(40) as i32))
        }
        Detector::RankDivergence => {
            of_ranks(
                "grad_norm",
                |rank, step| {
                    if rank == 2 && step >= 50 { 1.35 } else { 1.0 + 0.1 * (step % 7) as f64 }
                },
            )
        }
    }
}

/// Proves that each symptom is reached by a run that has it: the detector of each fires, with the causes and the advice of its symptom, or
/// with a cause seen in the numbers.
#[test]
fn every_symptom_is_reached() {
    for detector in Detector::ALL {
        let firings = run_with(*detector);
        let found = firings.iter().find(|firing| firing.detector == *detector);
        let found = found.unwrap_or_else(|| panic!("{detector}: {firings:?}"));
        let symptom = crate::symptom_of_detector(*detector);
        assert!(
            found.cause == crate::joined(symptom.causes) || found.cause.contains(" at step "),
            "{detector}: {}",
            found.cause
        );
        assert_eq!(found.advice, crate::joined(symptom.try_first), "{detector}");
    }
}

/// Proves that a run that a new process resumes keeps the level of its loss and forgets its speed.
#[test]
fn a_new_attempt_keeps_the_level_of_the_loss() {
    let (mut detectors, mut firings, mut rng) = (Detectors::default(), Vec::new(), SplitMix64::new(12));
    let (loss, seconds) = (detectors.watch(0, "loss"), detectors.watch(0, "step_seconds"));
    for step in 0..400 {
        detectors.take(loss, step, healthy_loss(step, &mut rng), step as f64, &mut firings);
        detectors.take(seconds, step, 0.1, step as f64, &mut firings);
    }
    detectors.begins_again();
    for step in 400..450 {
        detectors.take(loss, step, 3.0 + 0.1 * normal(&mut rng), 1e6 + step as f64, &mut firings);
        detectors.take(seconds, step, 0.5, 1e6 + step as f64, &mut firings);
    }
    let found: Vec<Detector> = firings.iter().map(|firing| firing.detector).collect();
    assert_eq!(found, [Detector::LossSpike, Detector::LossShift], "{firings:?}");
}

/// Proves that an attempt which begins where the training began is judged without the levels of the attempt before, and
/// that one which goes back a little is not.
#[test]
fn a_new_attempt_from_the_start_is_another_training() {
    let found_after = |resumed_at: Step| {
        let (mut detectors, mut firings) = (Detectors::default(), Vec::new());
        let loss = detectors.watch(0, "loss");
        let learned = |step: Step| 2.0 * (-(step as f64) / 30.0).exp() + 0.02 + 1e-4 * (step % 7) as f64;
        for step in 1..=400 {
            detectors.take(loss, step, learned(step), step as f64, &mut firings);
        }
        assert!(firings.is_empty(), "{firings:?}");
        detectors.begins_again();
        // It was not resumed: the loss is that of a model which knows nothing, whatever its step is called.
        for step in 0..100 {
            detectors.take(loss, resumed_at + step, learned(step), 1e6 + step as f64, &mut firings);
        }
        !firings.is_empty()
    };
    assert!(!found_after(1), "a retry from the start must not be reported");
    assert!(!found_after(150), "nor one from long before");
    assert!(found_after(390), "a resume that lost the weights must be");
}

/// Proves that `docs/detectors.md` names every detector with its defaults (`TRACKWAY_BLESS=1` writes it).
#[test]
fn the_documentation_has_every_detector() {
    use std::fmt::Write as _;

    const BEGIN: &str = "<!-- detectors: written by a test -->\n";
    const END: &str = "<!-- end of detectors -->";
    let rules = Rules::default();
    let mut table = String::from("\n| detector | finds | threshold | patience |\n|---|---|---|---|\n");
    for detector in Detector::ALL {
        let (rule, (threshold, patience)) = (rules.of(*detector), Rules::meaning(*detector));
        let seen = crate::symptom_of_detector(*detector).seen;
        let limit = match threshold {
            "not used" => "–".to_owned(),
            meaning if rule.threshold < 1e-3 => format!("{:e} ({meaning})", rule.threshold),
            meaning => format!("{} ({meaning})", rule.threshold),
        };
        let _ = writeln!(table, "| `{detector}` | {seen} | {limit} | {} {patience} |", rule.patience);
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/detectors.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = found.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{table}\n{END}{after}");
    if std::env::var_os("TRACKWAY_BLESS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert_eq!(found, wanted, "run with TRACKWAY_BLESS=1");
    }
}

/// Proves that the beginning of another training in the same script is not taken for a jump of the loss, that one is
/// found where steps begin again with each epoch; and that no level is watched where a reward says that the loss need
/// not fall.
#[test]
fn another_training_of_the_script_begins_without_a_finding() {
    let grid = |rates: &[f64]| {
        let values = rates.iter().flat_map(|rate| {
            (1..=60).map(move |step| (step, vec![(0, "loss", 6.7 * (-rate * (step - 1) as f64).exp())]))
        });
        fired(&stream(values.collect::<Vec<_>>()))
    };
    assert_eq!(grid(&[0.3, 0.05, 0.004]), []);
    let jumps = |place: u64| if place >= 215 { 9.0 } else { 0.3 + 2.0 * (-(place as f64) / 50.0).exp() };
    let by_epoch = (0..300).map(|place| (place % 40 + 1, vec![(0, "loss", jumps(place))]));
    assert!(!stream(by_epoch).is_empty());
    for (name, expected) in [("reward", 0), ("rows", 1)] {
        let rises = (0..200).map(|step| {
            let loss = if step < 100 { 1.0 + 0.01 * (step % 7) as f64 } else { 20.0 };
            (step, vec![(0, name, step as f64), (0, "loss", loss)])
        });
        assert_eq!(stream(rises).len().min(1), expected, "{name}");
    }
}
