//! Many small trees, each of which corrects the errors of those before it.

use super::bins::Binned;
use super::loss::Loss;
use super::target::Target;
use super::tree::{Grower, Tree};
use crate::values::hashed::scrambled;

/// How a booster learns.
#[derive(Debug, Clone, PartialEq)]
pub struct BoosterSettings {
    /// The most rounds; each grows a tree, with three classes and more one for each class.
    pub rounds_max: usize,
    /// Chooses the rows kept aside.
    pub seed: u64,
}

impl Default for BoosterSettings {
    fn default() -> Self {
        Self { rounds_max: 100, seed: 0 }
    }
}

/// The fraction of a tree's output that is added.
const LEARNING_RATE: f64 = 0.1;

/// Learning ends after so many rounds without progress on rows kept aside.
const PATIENCE: usize = 10;

/// The fraction of rows kept aside to decide when to stop.
const ASIDE_SHARE: f64 = 0.1;

/// With fewer rows kept aside than this, their loss is too uncertain: all rows are used for training, for
/// [`ROUNDS_WITHOUT_ASIDE`] rounds.
const ASIDE_ROWS_MIN: usize = 20;
const ROUNDS_WITHOUT_ASIDE: usize = 30;

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Booster {
    loss: Loss,
    start: Vec<f64>,
    /// For each round a tree per score.
    rounds: Vec<Vec<Tree>>,
    columns: Vec<usize>,
}

/// Predictions of a model for rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// Numbers for each row: 1 for regression, else a probability for each class.
    pub outputs: usize,
    /// Row by row.
    pub values: Vec<f64>,
}

impl Predictions {
    /// The number, or the probability of each class, of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.outputs..(row + 1) * self.outputs]
    }

    /// One output for all rows: the probability of a class.
    #[must_use]
    pub fn column(&self, output: usize) -> Vec<f64> {
        self.values.iter().skip(output).step_by(self.outputs).copied().collect()
    }
}

impl Booster {
    /// Learns to predict `target` from `columns` (indexes of the frame) of `rows`, all of which must have a target.
    /// Without columns or rows it predicts what is most likely without any.
    ///
    /// # Panics
    /// Where an index is out of range.
    #[must_use]
    pub fn fit(
        binned: &Binned,
        columns: &[usize],
        target: &Target,
        rows: &[u32],
        settings: &BoosterSettings,
    ) -> Self {
        let (mut learn, mut aside) = parted(rows, settings);
        let mut rounds_max = settings.rounds_max;
        if aside.len() < ASIDE_ROWS_MIN {
            learn.append(&mut aside);
            learn.sort_unstable();
            rounds_max = rounds_max.min(ROUNDS_WITHOUT_ASIDE);
        }
        let mut learning = Learning::new(binned, columns, target, (&mut learn, &aside));
        learning.run(rounds_max);
        learning.booster
    }

    /// Predicts these rows, one after the other.
    ///
    /// # Panics
    /// Where an index is out of range.
    #[must_use]
    pub fn predict(&self, binned: &Binned, rows: &[u32]) -> Predictions {
        let mut values = Vec::with_capacity(rows.len() * self.loss.outputs());
        let mut scores = vec![0.0; self.start.len()];
        for row in rows {
            scores.copy_from_slice(&self.start);
            for trees in &self.rounds {
                for (score, tree) in scores.iter_mut().zip(trees) {
                    *score += LEARNING_RATE * tree.value(binned, *row as usize);
                }
            }
            self.loss.predict(&scores, &mut values);
        }
        Predictions { outputs: self.loss.outputs(), values }
    }

    /// The fraction of all gain that came from each column, by its index in the frame; all zero if nothing was learnt.
    #[must_use]
    pub fn importance(&self) -> Vec<(usize, f64)> {
        let length = self.columns.iter().max().map_or(0, |last| last + 1);
        let mut gains = vec![0.0; length];
        self.rounds.iter().flatten().for_each(|tree| tree.add_gains(&mut gains));
        let sum: f64 = gains.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        self.columns.iter().map(|column| (*column, gains[*column] / sum)).collect()
    }

    /// Rounds that were kept; none where no column helps.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds.len()
    }
}

/// Rows to learn from and rows kept aside.
fn parted(rows: &[u32], settings: &BoosterSettings) -> (Vec<u32>, Vec<u32>) {
    let limit = (ASIDE_SHARE * u64::MAX as f64) as u64;
    rows.iter().partition(|row| scrambled(scrambled(settings.seed) ^ u64::from(**row)) >= limit)
}

/// A booster while it learns.
struct Learning<'l> {
    binned: &'l Binned,
    target: &'l Target,
    learn: &'l mut [u32],
    aside: &'l [u32],
    /// For each row of the frame its scores.
    scores: Vec<f64>,
    derivatives: Vec<(f32, f32)>,
    booster: Booster,
}

impl<'l> Learning<'l> {
    fn new(
        binned: &'l Binned,
        columns: &[usize],
        target: &'l Target,
        (learn, aside): (&'l mut [u32], &'l [u32]),
    ) -> Self {
        let loss = Loss::of(target);
        let start = loss.start(target, learn);
        let scores = start.iter().copied().cycle().take(loss.scores() * binned.rows()).collect();
        let booster = Booster { loss, start, rounds: Vec::new(), columns: columns.to_vec() };
        Self { binned, target, learn, aside, scores, derivatives: vec![(0.0, 0.0); binned.rows()], booster }
    }

    fn run(&mut self, rounds_max: usize) {
        let mut best = (self.loss_aside(), 0);
        for round in 1..=rounds_max {
            let trees = self.round();
            self.booster.rounds.push(trees);
            let loss = self.loss_aside();
            if self.aside.is_empty() || loss < best.0 {
                best = (loss, round);
            } else if round - best.1 >= PATIENCE {
                break;
            }
        }
        self.booster.rounds.truncate(best.1);
    }

    /// One tree for each score, all from the scores before the round.
    fn round(&mut self) -> Vec<Tree> {
        let (loss, outputs) = (self.booster.loss, self.booster.loss.scores());
        let before = if outputs > 1 { self.scores.clone() } else { Vec::new() };
        let mut trees = Vec::with_capacity(outputs);
        for output in 0..outputs {
            let scores = if outputs > 1 { &before } else { &self.scores };
            for row in self.learn.iter().map(|row| *row as usize) {
                let own = &scores[row * outputs..(row + 1) * outputs];
                let (first, second) = loss.derivatives(self.target, row, own, output);
                self.derivatives[row] = (first as f32, second as f32);
            }
            trees.push(self.tree(output, outputs));
        }
        trees
    }

    fn tree(&mut self, output: usize, outputs: usize) -> Tree {
        let grower =
            Grower { binned: self.binned, columns: &self.booster.columns, derivatives: &self.derivatives };
        let scores = &mut self.scores;
        let tree = grower.grow(self.learn, |rows, value| {
            rows.iter().for_each(|row| scores[*row as usize * outputs + output] += LEARNING_RATE * value);
        });
        for row in self.aside {
            scores[*row as usize * outputs + output] +=
                LEARNING_RATE * tree.value(self.binned, *row as usize);
        }
        tree
    }

    fn loss_aside(&self) -> f64 {
        let outputs = self.booster.loss.scores();
        let loss = |row: &u32| {
            let row = *row as usize;
            self.booster.loss.value(self.target, row, &self.scores[row * outputs..(row + 1) * outputs])
        };
        self.aside.iter().map(loss).sum()
    }
}
