//! What is learned: five small tasks, one of them real text.

use trackway_core::{Rng, SplitMix64};

use crate::net::normal;

/// Real text: documents of this repository.
const TEXT: &str = concat!(
    include_str!("../../../../../README.md"),
    include_str!("../../../../../ARCHITECTURE.md"),
    include_str!("../../../../../docs/checkpoints.md"),
);
/// Letters, and everything else as one.
const ALPHABET: usize = 27;
const CONTEXT: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Points around centres.
    Blobs,
    /// A line through noise, with wrong labels among them.
    Noisy,
    /// Which frequency a noisy signal has.
    Signals,
    /// The next letter of a text.
    Letters,
    /// The output of another network.
    Regression,
}

pub const TASKS: [Task; 5] = [Task::Blobs, Task::Noisy, Task::Signals, Task::Letters, Task::Regression];

/// Rows of inputs, and a class or a number for each.
#[derive(Debug, Clone)]
pub struct Data {
    pub width: usize,
    /// 1: a number is to be predicted.
    pub classes: usize,
    pub inputs: Vec<f32>,
    pub targets: Vec<f32>,
    /// The first rows are for training, the rest for validation.
    pub train_rows: usize,
}

impl Data {
    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    pub fn of(task: Task, train_rows: usize, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed ^ 0x5eed);
        let rows = train_rows + 256;
        let (width, classes) = match task {
            Task::Blobs => (16, 5),
            Task::Noisy => (10, 2),
            Task::Signals => (32, 4),
            Task::Letters => (CONTEXT * ALPHABET, ALPHABET),
            Task::Regression => (8, 1),
        };
        let mut data = Self { width, classes, inputs: Vec::new(), targets: Vec::new(), train_rows };
        let weights: Vec<f64> = (0..width * 8).map(|_| normal(&mut rng)).collect();
        let letters: Vec<usize> = TEXT.bytes().map(letter).collect();
        for _ in 0..rows {
            data.row(task, &weights, &letters, &mut rng);
        }
        data
    }

    fn row(&mut self, task: Task, weights: &[f64], letters: &[usize], rng: &mut SplitMix64) {
        let width = self.width;
        let any = |rng: &mut SplitMix64, count: usize| (rng.next_u64() % count as u64) as usize;
        match task {
            Task::Blobs => {
                let class = any(rng, self.classes);
                let centre = &weights[class * width..(class + 1) * width];
                self.inputs.extend(centre.iter().map(|centre| (0.6 * centre + normal(rng)) as f32));
                self.targets.push(class as f32);
            }
            Task::Noisy => {
                let inputs: Vec<f64> = (0..width).map(|_| normal(rng)).collect();
                let score: f64 = inputs.iter().zip(weights).map(|(input, weight)| input * weight).sum();
                let wrong = rng.next_unit() < 0.1;
                self.inputs.extend(inputs.iter().map(|input| *input as f32));
                self.targets.push(f32::from(u8::from((score > 0.0) != wrong)));
            }
            Task::Signals => {
                let class = any(rng, self.classes);
                let phase = 0.4 * normal(rng);
                let pace = 0.3 * (class + 1) as f64;
                self.inputs.extend(
                    (0..width).map(|at| ((phase + pace * at as f64).sin() + 0.7 * normal(rng)) as f32),
                );
                self.targets.push(class as f32);
            }
            Task::Letters => {
                let at = any(rng, letters.len() - CONTEXT);
                let begin = self.inputs.len();
                self.inputs.resize(begin + width, 0.0);
                for place in 0..CONTEXT {
                    self.inputs[begin + place * ALPHABET + letters[at + place]] = 1.0;
                }
                self.targets.push(letters[at + CONTEXT] as f32);
            }
            Task::Regression => {
                let inputs: Vec<f64> = (0..width).map(|_| normal(rng)).collect();
                let unit = |unit: usize| -> f64 {
                    let row = &weights[unit * width..(unit + 1) * width];
                    inputs.iter().zip(row).map(|(input, weight)| input * weight).sum::<f64>().tanh()
                };
                let target = (0..4).map(unit).sum::<f64>() + 0.2 * normal(rng);
                self.inputs.extend(inputs.iter().map(|input| *input as f32));
                self.targets.push(target as f32);
            }
        }
    }
}

fn letter(byte: u8) -> usize {
    let lower = byte.to_ascii_lowercase();
    if lower.is_ascii_lowercase() { usize::from(lower - b'a') } else { ALPHABET - 1 }
}

/// The mean loss of outputs, and its gradient: cross-entropy, or half the squared distance.
pub fn loss(outputs: &[f32], targets: &[f32], classes: usize) -> (f64, Vec<f32>) {
    let rows = targets.len() as f32;
    if classes == 1 {
        let error: Vec<f32> =
            outputs.iter().zip(targets).map(|(output, target)| (output - target) / rows).collect();
        let sum: f64 =
            outputs.iter().zip(targets).map(|(output, target)| f64::from((output - target).powi(2))).sum();
        return (0.5 * sum / f64::from(rows), error);
    }
    let (mut sum, mut error) = (0.0, Vec::with_capacity(outputs.len()));
    for (scores, target) in outputs.chunks_exact(classes).zip(targets) {
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f32> = scores.iter().map(|score| (score - highest).exp()).collect();
        let total: f32 = powers.iter().sum();
        let class = *target as usize;
        sum += f64::from(total.ln() - (scores[class] - highest));
        error.extend(
            powers
                .iter()
                .enumerate()
                .map(|(place, power)| (power / total - f32::from(u8::from(place == class))) / rows),
        );
    }
    // `max` ignores NaN; a NaN among the scores must come through.
    if outputs.iter().any(|output| output.is_nan()) {
        sum = f64::NAN;
    }
    (sum / f64::from(rows), error)
}
