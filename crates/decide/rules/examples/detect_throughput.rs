//! Feeds the detectors ten metrics of one rank and prints the rate.
//! `cargo run --release -p trackway-rules --example detect_throughput`.

use trackway_core::{Rng, SplitMix64};
use trackway_rules::detect::Detectors;

const STEPS: u64 = 2_000_000;
const NAMES: [&str; 10] = [
    "loss", "val_loss", "grad_norm", "learning_rate", "loss_scale", "batch_wait_seconds", "step_seconds",
    "samples_per_second", "memory_allocated_bytes", "batch_digest",
];

#[allow(clippy::disallowed_methods, clippy::print_stdout)] // a measuring program: it needs the clock and a place to print
fn main() {
    let mut rng = SplitMix64::new(7);
    // Values are made beforehand, so that only the detectors are measured.
    let noise: Vec<f64> = (0..1 << 16).map(|_| rng.next_unit()).collect();
    let measured = |names: &[&str]| {
        let (mut detectors, mut firings) = (Detectors::default(), Vec::new());
        let watches: Vec<_> = names.iter().map(|name| detectors.watch(0, name)).collect();
        let started = std::time::Instant::now();
        for step in 0..STEPS {
            for (place, watch) in watches.iter().enumerate() {
                let value = 1.0 + noise[(step as usize * 7 + place) & 0xffff];
                detectors.take(*watch, step, value, step as f64, &mut firings);
            }
        }
        let points = STEPS as f64 * names.len() as f64;
        println!(
            "{}: {:.1} million points a second, {} findings",
            names.join(", "),
            points / 1e6 / started.elapsed().as_secs_f64(),
            firings.len()
        );
    };
    measured(&NAMES);
    for name in NAMES {
        measured(&[name]);
    }
}
