//! The recipe of one run, drawn from its seed: what healthy training looks like in many ways.

use trackway_core::{Rng, SplitMix64};

use crate::data::{TASKS, Task};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    Constant,
    Cosine,
    WarmUpCosine,
    Steps,
    Restarts,
}

#[derive(Debug, Clone)]
pub struct Config {
    pub seed: u64,
    pub task: Task,
    pub hidden: usize,
    pub depth: usize,
    pub tanh: bool,
    pub dropout: f32,
    pub adam: bool,
    pub rate: f64,
    pub weight_decay: f32,
    pub clip: Option<f32>,
    pub schedule: Schedule,
    pub batch: usize,
    pub train_rows: usize,
    /// Gradients are scaled, and an update that overflows is left out.
    pub scaled: bool,
    pub ranks: usize,
    pub steps: u64,
    pub evaluate_every: u64,
    /// A healthy run may be interrupted and resumed with everything.
    pub resume_at: Option<u64>,
}

impl Config {
    pub fn draw(seed: u64, steps: u64) -> Self {
        let mut rng = SplitMix64::new(seed.wrapping_mul(0x9e37_79b9) ^ 0xc0f1);
        let mut pick = |count: u64| rng.next_u64() % count;
        let task = TASKS[pick(5) as usize];
        let adam = pick(2) == 0;
        let schedules = [
            Schedule::Constant,
            Schedule::Cosine,
            Schedule::WarmUpCosine,
            Schedule::Steps,
            Schedule::Restarts,
        ];
        let batches: &[usize] = if task == Task::Noisy { &[1, 4, 16, 64] } else { &[4, 8, 16, 32] };
        let batch = batches[pick(4) as usize];
        let low = if adam { 1e-3 } else { 0.01 };
        // Small batches are noisy and take smaller steps, as one would choose them.
        let rate = low * [0.5, 1.0, 2.0][pick(3) as usize] * (batch as f64 / 16.0).min(1.0);
        Self {
            seed,
            task,
            hidden: [12, 16, 24][pick(3) as usize],
            depth: if task == Task::Noisy { pick(2) as usize } else { 1 + pick(2) as usize },
            tanh: pick(2) == 0,
            dropout: [0.0, 0.0, 0.1, 0.3][pick(4) as usize],
            adam,
            rate,
            weight_decay: [0.0, 0.0, 1e-4, 1e-3][pick(4) as usize],
            clip: [None, Some(1.0)][pick(2) as usize],
            schedule: schedules[pick(5) as usize],
            batch,
            train_rows: [8000, 16_000, 32_000][pick(3) as usize],
            scaled: pick(3) == 0,
            ranks: [1, 1, 1, 2, 4][pick(5) as usize],
            steps,
            evaluate_every: [50, 100][pick(2) as usize],
            resume_at: (pick(4) == 0).then_some(steps / 2),
        }
    }

    pub fn rate_at(&self, step: u64) -> f64 {
        let progress = step as f64 / self.steps as f64;
        let cosine = |progress: f64| 0.5 * (1.0 + (std::f64::consts::PI * progress).cos());
        let warm_up = (self.steps / 20).max(10) as f64;
        self.rate
            * match self.schedule {
                Schedule::Constant => 1.0,
                Schedule::Cosine => cosine(progress).max(1e-3),
                Schedule::WarmUpCosine => ((step + 1) as f64 / warm_up).min(1.0) * cosine(progress).max(1e-3),
                Schedule::Steps => 0.3f64.powi((progress * 3.0) as i32),
                Schedule::Restarts => cosine((progress * 4.0).fract()).max(1e-3),
            }
    }
}
