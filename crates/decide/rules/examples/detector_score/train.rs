//! One training run, with or without a fault, and the findings of its detectors. The arithmetic is real; the time axis
//! is made: see [`seconds`].

use std::ops::Range;

use trackway_core::detect::{Detector, Firing};
use trackway_core::{Rng, SplitMix64};
use trackway_rules::detect::{Detectors, WatchId};

use crate::config::{Config, Schedule};
use crate::data::{Data, Task, loss};
use crate::fault::Fault;
use crate::net::{Layer, Net, normal};

/// Makes a step of the smallest model 10 ms long, and one of the largest about a second.
const SECONDS_PER_PARAMETER: f64 = 1e-5;
/// Memory that the device would have.
const MEMORY_BYTES: f64 = 64e6;
const OVERFLOW: f32 = 65504.0;
const MOMENTUM: f32 = 0.9;

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    pub config: Config,
    pub fault: Option<(Fault, u64)>,
    pub firings: Vec<Firing>,
    /// Steps made before the fault, or all of them.
    pub healthy_steps: u64,
    pub points: u64,
}

struct Rank {
    net: Net,
    momentum: Vec<f32>,
    squares: Vec<f32>,
    updates: i32,
    watches: Vec<(String, WatchId)>,
    step_seconds: f64,
    loss: f64,
    digest: f64,
    input_digest: f64,
}

pub struct Run {
    config: Config,
    fault: Option<(Fault, u64)>,
    data: Data,
    ranks: Vec<Rank>,
    rng: SplitMix64,
    order: Vec<usize>,
    cursor: usize,
    scale: f64,
    good_updates: u32,
    leaked_bytes: f64,
    detectors: Detectors,
    firings: Vec<Firing>,
    now_seconds: f64,
    points: u64,
    stuck_batch: Option<Vec<usize>>,
}

/// How long a step takes: most steps vary by a tenth, one in 50 takes twice as long, one in 500 ten times (a checkpoint, an
/// evaluation). Counted work instead of a clock, because these steps take microseconds on a machine that others use.
fn seconds(net: &Net, batch: usize, rng: &mut SplitMix64) -> f64 {
    let work = SECONDS_PER_PARAMETER * net.parameters.len() as f64 * (8 + batch) as f64;
    let odd = match rng.next_u64() % 500 {
        0 => 10.0,
        1..=10 => 2.0,
        _ => 1.0,
    };
    work * odd * (0.1 * normal(rng)).exp()
}

fn new_net(config: &Config, data: &Data, rng: &mut SplitMix64) -> Net {
    let mut net = Net::new();
    let mut width = data.width;
    for depth in 0..config.depth {
        if depth == 0 && config.task == Task::Signals {
            width = net.convolution(width, 5, 6, rng);
        } else {
            net.dense(width, config.hidden, rng);
            width = config.hidden;
        }
        net.layers.push(if config.tanh { Layer::Tanh } else { Layer::Relu });
        if config.dropout > 0.0 {
            net.layers.push(Layer::Dropout(config.dropout));
        }
    }
    net.dense(width, data.classes, rng);
    net
}

impl Run {
    pub fn new(mut config: Config, fault: Option<(Fault, u64)>) -> Self {
        let mut rng = SplitMix64::new(config.seed);
        suit(&mut config, fault.map(|(fault, _)| fault));
        let data = Data::of(config.task, config.train_rows, config.seed);
        let net = {
            let mut net = new_net(&config, &data, &mut rng);
            if fault.is_some_and(|(fault, _)| fault == Fault::ZeroInit) {
                net.parameters.fill(0.0);
            }
            net
        };
        let count = net.parameters.len();
        let rank = |_| Rank {
            net: net.clone(),
            momentum: vec![0.0; count],
            squares: vec![0.0; count],
            updates: 0,
            watches: Vec::new(),
            step_seconds: 0.0,
            loss: 0.0,
            digest: 0.0,
            input_digest: 0.0,
        };
        let mut detectors = Detectors::default();
        detectors.set_memory_limit(MEMORY_BYTES);
        Self {
            ranks: (0..config.ranks).map(rank).collect(),
            order: (0..config.train_rows).collect(),
            cursor: config.train_rows,
            scale: if config.scaled { 65536.0 } else { 1.0 },
            good_updates: 0,
            leaked_bytes: 0.0,
            detectors,
            firings: Vec::new(),
            now_seconds: 0.0,
            points: 0,
            stuck_batch: None,
            rng,
            data,
            fault,
            config,
        }
    }

    /// The fault, once its step has come.
    fn at(&self, step: u64, fault: Fault) -> bool {
        self.fault.is_some_and(|(found, from)| found == fault && step >= from)
    }

    /// The fault at its first step only.
    fn first(&self, step: u64, fault: Fault) -> bool {
        self.fault == Some((fault, step))
    }

    pub fn train(mut self) -> Outcome {
        let steps = self.config.steps;
        for step in 0..steps {
            if self.at(step, Fault::Hang) {
                for second in 0..4000 {
                    self.detectors.tick(f64::from(second), &mut self.firings);
                }
                break;
            }
            self.resume(step);
            self.step(step);
            if step % self.config.evaluate_every == self.config.evaluate_every - 1 {
                self.evaluate(step);
            }
            self.detectors.tick(0.0, &mut self.firings);
        }
        let healthy_steps = self.fault.map_or(steps, |(_, from)| from);
        Outcome {
            config: self.config,
            fault: self.fault,
            firings: self.firings,
            healthy_steps,
            points: self.points,
        }
    }

    fn resume(&mut self, step: u64) {
        let (new_model, lost) =
            (self.first(step, Fault::NotRestored), self.first(step, Fault::OptimizerLost));
        if self.config.resume_at != Some(step) && !new_model && !lost {
            return;
        }
        self.detectors.begins_again();
        if new_model {
            let net = new_net(&self.config, &self.data, &mut self.rng);
            self.ranks.iter_mut().for_each(|rank| rank.net.parameters.clone_from(&net.parameters));
        }
        if new_model || lost {
            for rank in &mut self.ranks {
                rank.momentum.fill(0.0);
                rank.squares.fill(0.0);
                rank.updates = 0;
            }
        }
    }

    fn next_rows(&mut self, step: u64) -> Vec<usize> {
        if let Some(rows) = &self.stuck_batch {
            return rows.clone();
        }
        let rows: Vec<usize> = (0..self.config.batch)
            .map(|_| {
                if self.cursor >= self.order.len() {
                    for place in (1..self.order.len()).rev() {
                        self.order.swap(place, (self.rng.next_u64() % (place as u64 + 1)) as usize);
                    }
                    self.cursor = 0;
                }
                self.cursor += 1;
                self.order[self.cursor - 1]
            })
            .collect();
        if self.at(step, Fault::SameBatch) || self.at(step, Fault::SameBatchFromStart) {
            self.stuck_batch = Some(rows.clone());
        }
        rows
    }

    fn batch(&mut self, step: u64) -> (Vec<f32>, Vec<f32>) {
        let width = self.data.width;
        let rows = self.next_rows(step);
        let mut inputs: Vec<f32> =
            rows.iter().flat_map(|row| &self.data.inputs[row * width..(row + 1) * width]).copied().collect();
        let mut targets: Vec<f32> = rows.iter().map(|row| self.data.targets[*row]).collect();
        if self.first(step, Fault::NanInBatch) {
            inputs[0] = f32::NAN;
        }
        if self.first(step, Fault::InfInLabel) {
            if self.data.classes == 1 { targets[0] = f32::INFINITY } else { inputs[0] = f32::INFINITY }
        }
        if self.first(step, Fault::WildBatch) {
            inputs.iter_mut().for_each(|input| *input = 1e4 * normal(&mut self.rng) as f32);
            if self.data.classes == 1 {
                targets.iter_mut().for_each(|target| *target *= 1e4);
            }
        }
        if self.at(step, Fault::ZeroInput) {
            inputs.fill(0.0);
        }
        if self.at(step, Fault::WrongNormalisation) {
            inputs.iter_mut().for_each(|input| *input = *input * 50.0 + 100.0);
        }
        if self.at(step, Fault::ShuffledLabels) {
            for target in &mut targets {
                *target = self.data.targets[(self.rng.next_u64() % self.data.rows() as u64) as usize];
            }
        }
        (inputs, targets)
    }

    fn step(&mut self, step: u64) {
        if self.first(step, Fault::WeightsCorrupted) {
            let seed = self.config.seed;
            self.ranks.iter_mut().for_each(|rank| corrupt(&mut rank.net.parameters, seed));
        }
        if self.first(step, Fault::RankCorrupted) {
            let seed = self.config.seed;
            corrupt(&mut self.ranks.last_mut().expect("there is a rank").net.parameters, seed);
        }
        if self.first(step, Fault::DeadUnits) {
            let parts = self.ranks[0].net.parts();
            for rank in &mut self.ranks {
                kill_units(&mut rank.net, parts[0].clone(), self.config.tanh);
            }
        }
        if self.first(step, Fault::DropoutEverything) {
            for layer in self.ranks.iter_mut().flat_map(|rank| &mut rank.net.layers) {
                if let Layer::Dropout(share) = layer {
                    *share = 0.9;
                }
            }
        }
        for place in 0..self.ranks.len() {
            self.gradients_of(place, step);
        }
        let gradients = self.all_reduce(step);
        self.update(step, gradients);
    }

    /// Forward and backward of one rank.
    fn gradients_of(&mut self, place: usize, step: u64) {
        let (inputs, targets) = self.batch(step);
        let keep = self.at(step, Fault::NoZeroGrad) || self.at(step, Fault::NoZeroGradLater);
        let ascent = self.at(step, Fault::GradientAscent);
        let classes = self.data.classes;
        let mut rng = SplitMix64::new(self.config.seed ^ (step * 64 + place as u64));
        let rank = &mut self.ranks[place];
        rank.digest = digest(&inputs, &targets);
        rank.input_digest = digest(&inputs, &[]);
        if !keep {
            rank.net.gradients.fill(0.0);
        }
        let rows = targets.len();
        let outputs = rank.net.forward(inputs, rows, Some(&mut rng));
        let (loss, mut error) = loss(outputs, &targets, classes);
        if ascent {
            error.iter_mut().for_each(|error| *error = -*error);
        }
        rank.net.backward(error, rows);
        rank.loss = loss;
        rank.step_seconds = seconds(&rank.net, rows, &mut rng);
    }

    /// The gradients that each rank updates with, damaged as the fault has it.
    fn all_reduce(&mut self, step: u64) -> Vec<Vec<f32>> {
        let count = self.ranks.len() as f32;
        let mut mean = vec![0.0f32; self.ranks[0].net.gradients.len()];
        for rank in &self.ranks {
            mean.iter_mut().zip(&rank.net.gradients).for_each(|(sum, gradient)| *sum += gradient / count);
        }
        let parts = self.ranks[0].net.parts();
        if self.at(step, Fault::ExplodingGradient) {
            mean.iter_mut().for_each(|gradient| *gradient *= 1e4);
        }
        if self.at(step, Fault::VanishingGradient) {
            mean.iter_mut().for_each(|gradient| *gradient *= 1e-9);
        }
        if self.at(step, Fault::FrozenLayer) {
            mean[parts[0].clone()].fill(0.0);
        }
        if self.at(step, Fault::LossScaleCollapse) {
            mean[0] = f32::INFINITY;
        }
        let mut all = vec![mean; self.ranks.len()];
        if self.at(step, Fault::RankParts) {
            *all.last_mut().expect("there is a rank") =
                self.ranks.last().expect("there is a rank").net.gradients.clone();
        }
        all
    }

    fn update(&mut self, step: u64, gradients: Vec<Vec<f32>>) {
        let mut rate = self.config.rate_at(step);
        if self.at(step, Fault::RateTimes100) {
            rate *= 100.0;
        }
        if self.at(step, Fault::RateTooHighFromStart) {
            rate *= 1e4;
        }
        if self.at(step, Fault::RateZero) {
            rate = 0.0;
        }
        let overflows =
            |gradient: &f32| !gradient.is_finite() || gradient.abs() * self.scale as f32 > OVERFLOW;
        let skip = self.config.scaled && gradients[0].iter().any(overflows);
        let nonfinite = gradients[0].iter().filter(|gradient| !gradient.is_finite()).count();
        let used_scale = self.scale;
        self.rescale(skip);
        let idle = self.at(step, Fault::OptimizerWithoutParameters) || self.at(step, Fault::OptimizerStops);
        let decay = if self.at(step, Fault::WeightDecay) {
            (20.0 / rate) as f32 * 0.02
        } else {
            self.config.weight_decay
        };
        let mut measured = Vec::new();
        for (place, gradient) in gradients.iter().enumerate() {
            let norm = norm(gradient);
            let parts: Vec<f64> =
                self.ranks[place].net.parts().into_iter().map(|part| self::norm(&gradient[part])).collect();
            let ratio = if skip || idle {
                0.0
            } else {
                apply(&mut self.ranks[place], &self.config, gradient, rate as f32, decay, norm as f32)
            };
            measured.push((norm, parts, ratio));
        }
        for (place, (norm, parts, ratio)) in measured.into_iter().enumerate() {
            let norm = if skip { f64::INFINITY } else { norm };
            let mut values = vec![
                ("loss".to_owned(), self.ranks[place].loss),
                ("learning_rate".to_owned(), rate),
                ("grad_norm".to_owned(), norm),
                (
                    "nonfinite_gradients".to_owned(),
                    if skip { nonfinite.max(1) as f64 } else { nonfinite as f64 },
                ),
                ("batch_digest".to_owned(), self.ranks[place].digest),
                ("input_digest".to_owned(), self.ranks[place].input_digest),
            ];
            if !skip {
                values.extend(
                    parts.into_iter().enumerate().map(|(part, norm)| (format!("grad_norm/{part}"), norm)),
                );
                values.push(("update_ratio".to_owned(), ratio));
            }
            if self.config.scaled {
                values.push(("loss_scale".to_owned(), used_scale));
            }
            values.extend(self.resources(place, step));
            for (name, value) in values {
                self.record(place, step, &name, value);
            }
        }
    }

    fn rescale(&mut self, skipped: bool) {
        if !self.config.scaled {
            return;
        }
        self.good_updates = if skipped { 0 } else { self.good_updates + 1 };
        if skipped {
            self.scale /= 2.0;
        } else if self.good_updates == 2000 {
            (self.scale, self.good_updates) = (self.scale * 2.0, 0);
        }
    }

    /// Time and memory of a step.
    fn resources(&mut self, place: usize, step: u64) -> Vec<(String, f64)> {
        let mut seconds = self.ranks[place].step_seconds;
        let mut wait = 0.02 * seconds;
        if self.at(step, Fault::LoaderSleeps) {
            wait = seconds;
        }
        if self.at(step, Fault::Throttled) {
            seconds *= 2.0;
        }
        if self.at(step, Fault::RankSlow) && place == self.ranks.len() - 1 {
            seconds *= 1.6;
        }
        let net = &self.ranks[place].net;
        let held = 16.0 * net.parameters.len() as f64 + net.activation_bytes() as f64;
        if self.at(step, Fault::MemoryLeak) && place == 0 {
            self.leaked_bytes += net.activation_bytes() as f64;
        }
        if place == 0 {
            self.now_seconds += seconds + wait;
        }
        vec![
            ("batch_wait_seconds".to_owned(), wait),
            ("step_seconds".to_owned(), seconds + wait),
            ("memory_allocated_bytes".to_owned(), held + self.leaked_bytes),
        ]
    }

    fn evaluate(&mut self, step: u64) {
        let width = self.data.width;
        let rows: Range<usize> = self.data.train_rows..self.data.rows();
        let mut inputs = self.data.inputs[rows.start * width..rows.end * width].to_vec();
        if self.at(step, Fault::ValidationNotNormalised) {
            inputs.iter_mut().for_each(|input| *input = *input * 50.0 + 100.0);
        }
        let classes = self.data.classes;
        let outputs = self.ranks[0].net.forward(inputs, rows.len(), None);
        let (value, _) = loss(outputs, &self.data.targets[rows], classes);
        self.record(0, step, "val_loss", value);
    }

    fn record(&mut self, place: usize, step: u64, name: &str, value: f64) {
        let rank = &mut self.ranks[place];
        let known = rank.watches.iter().find(|(known, _)| known == name).map(|(_, watch)| *watch);
        let watch = known.unwrap_or_else(|| {
            let watch = self.detectors.watch(place as u32, name);
            rank.watches.push((name.to_owned(), watch));
            watch
        });
        self.points += 1;
        self.detectors.take(watch, step, value, self.now_seconds, &mut self.firings);
    }
}

/// One update; its size against that of the weights.
fn apply(rank: &mut Rank, config: &Config, gradient: &[f32], rate: f32, decay: f32, norm: f32) -> f64 {
    let shrink = config.clip.filter(|clip| norm > *clip).map_or(1.0, |clip| clip / norm);
    rank.updates += 1;
    let (first, second) = (1.0 - 0.9f32.powi(rank.updates), 1.0 - 0.999f32.powi(rank.updates));
    let (mut moved, mut size) = (0.0f64, 0.0f64);
    for (place, gradient) in gradient.iter().enumerate() {
        let weight = &mut rank.net.parameters[place];
        let gradient = gradient * shrink;
        let change = if config.adam {
            let momentum = &mut rank.momentum[place];
            *momentum = 0.9 * *momentum + 0.1 * gradient;
            let squares = &mut rank.squares[place];
            *squares = 0.999 * *squares + 0.001 * gradient * gradient;
            (*momentum / first) / ((*squares / second).sqrt() + 1e-8)
        } else {
            let momentum = &mut rank.momentum[place];
            *momentum = MOMENTUM * *momentum + gradient;
            *momentum
        };
        let change = rate * (change + decay * *weight);
        size += f64::from(*weight * *weight);
        moved += f64::from(change * change);
        *weight -= change;
    }
    (moved / size.max(f64::MIN_POSITIVE)).sqrt()
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt()
}

/// 53 bits of FNV-1a over the bytes of a batch.
fn digest(inputs: &[f32], targets: &[f32]) -> f64 {
    let hash = inputs.iter().chain(targets).fold(0xcbf2_9ce4_8422_2325u64, |hash, value| {
        (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 11) as f64
}

/// Flips the highest exponent bit that makes a weight large, in one weight of a hundred.
fn corrupt(parameters: &mut [f32], seed: u64) {
    let mut rng = SplitMix64::new(seed ^ 0xb17);
    for _ in 0..parameters.len().div_ceil(100) {
        let place = (rng.next_u64() % parameters.len() as u64) as usize;
        let flipped = f32::from_bits(parameters[place].to_bits() ^ (1 << 27));
        parameters[place] =
            if flipped.abs() > parameters[place].abs() { flipped } else { parameters[place] * 65536.0 };
    }
}

/// Biases of the first layer so low that ReLU gives nothing and tanh is saturated.
fn kill_units(net: &mut Net, part: Range<usize>, tanh: bool) {
    let outputs = match net.layers[0] {
        Layer::Dense { outputs, .. } => outputs,
        Layer::Convolution { channels, .. } => channels,
        _ => return,
    };
    let low = if tanh { -40.0 } else { -1e3 };
    net.parameters[part.end - outputs..part.end].fill(low);
}

/// What a fault needs to be possible at all.
fn suit(config: &mut Config, fault: Option<Fault>) {
    let Some(fault) = fault else { return };
    config.resume_at = None;
    match fault {
        Fault::RankSlow | Fault::RankParts | Fault::RankCorrupted => config.ranks = config.ranks.max(2),
        Fault::LossScaleCollapse => config.scaled = true,
        // A loss scaler leaves such an update out by itself, and saturated units pass nothing on.
        Fault::InfInLabel => config.scaled = false,
        Fault::WildBatch => config.tanh = false,
        Fault::DropoutEverything => config.dropout = 0.1,
        Fault::Overfit => {
            (config.train_rows, config.weight_decay, config.dropout) = (40, 0.0, 0.0);
            // The others are learned from forty rows nearly as well as from thousands.
            config.task = match config.task {
                Task::Signals | Task::Regression => Task::Blobs,
                task => task,
            };
            (config.batch, config.hidden) = (config.batch.min(20), 24);
            (config.rate, config.schedule) = (if config.adam { 4e-3 } else { 0.04 }, Schedule::Constant);
        }
        Fault::OptimizerLost => config.adam = true,
        _ => {}
    }
    let needs_hidden = matches!(
        fault,
        Fault::DeadUnits | Fault::DropoutEverything | Fault::FrozenLayer | Fault::ZeroInit | Fault::Overfit
    );
    if needs_hidden {
        config.depth = config.depth.max(1);
    }
}

/// The detectors that a fault was found by, after it began: each with its delay in steps.
pub fn found(outcome: &Outcome) -> Vec<(Detector, u64)> {
    let Some((fault, from)) = outcome.fault else { return Vec::new() };
    let expected = fault.expected();
    outcome
        .firings
        .iter()
        .filter(|firing| firing.step >= from.saturating_sub(1) && expected.contains(&firing.detector))
        .map(|firing| (firing.detector, firing.step.saturating_sub(from)))
        .collect()
}
