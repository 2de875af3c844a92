//! Scores the detectors: trains hundreds of small models for real, some of them with a fault, and counts what is found,
//! how late, and the false alarms.
//!
//! `cargo run --release -p trackway-rules --example detector_score -- [tune|report|all] [HEALTHY STEPS
//! FAULTY_PER_FAULT]`
//!
//! Even seeds are for tuning, odd ones are reported. `--details` lists what was missed and what was wrong.

mod config;
mod data;
mod fault;
mod net;
mod score;
mod train;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use config::Config;
use fault::{FAULTS, Fault};
use score::Score;
use train::{Outcome, Run};

/// Steps of a faulty run.
const FAULTY_STEPS: u64 = 1600;
/// A fault in the middle begins at one of these steps.
const FAULT_FROM: u64 = 600;
const FAULT_SPREAD: u64 = 400;

/// One run to make.
#[derive(Debug, Clone, Copy)]
struct Job {
    seed: u64,
    steps: u64,
    fault: Option<Fault>,
}

impl Job {
    fn run(self) -> Outcome {
        let config = Config::draw(self.seed, self.steps);
        let from = |fault: Fault| {
            if fault.is_there_from_start() { 0 } else { FAULT_FROM + self.seed * 37 % FAULT_SPREAD }
        };
        Run::new(config, self.fault.map(|fault| (fault, from(fault)))).train()
    }
}

fn jobs(parity: Option<u64>, healthy: u64, steps: u64, each: u64) -> Vec<Job> {
    let wanted = |seed: &u64| parity.is_none_or(|parity| seed % 2 == parity);
    let mut jobs: Vec<Job> =
        (0..2 * healthy).filter(wanted).map(|seed| Job { seed, steps, fault: None }).collect();
    for (place, fault) in FAULTS.iter().enumerate() {
        let seeds = (0..2 * each).map(|seed| 1_000_000 + 1000 * place as u64 + seed);
        jobs.extend(seeds.filter(wanted).map(|seed| Job { seed, steps: FAULTY_STEPS, fault: Some(*fault) }));
    }
    jobs
}

fn run_all(jobs: &[Job]) -> Vec<Outcome> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = job.run();
            outcomes.lock().expect("no run panics while it holds this").push(outcome);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(work);
        });
    });
    let mut outcomes = outcomes.into_inner().expect("no run panics while it holds this");
    outcomes.sort_by_key(|outcome| (outcome.fault, outcome.config.seed));
    outcomes
}

#[allow(clippy::print_stdout)] // a measuring program prints
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let details = arguments.iter().any(|argument| argument == "--details");
    let parity = match arguments.first().map(String::as_str) {
        Some("tune") => Some(0),
        Some("all") => None,
        _ => Some(1),
    };
    let number = |place: usize, default: u64| {
        arguments.iter().filter_map(|argument| argument.parse().ok()).nth(place).unwrap_or(default)
    };
    let score = Score::of(run_all(&jobs(parity, number(0, 220), number(1, 15_000), number(2, 7))));
    println!("{}", score.markdown());
    if details {
        println!("{}", score.details());
    }
}
