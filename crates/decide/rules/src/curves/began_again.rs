//! That another training of the same script begins: of a grid of learning rates, of another fold, of a second phase.
//! Its steps begin again, and its value is back where the one before it began.
//!
//! Both are needed: a script that counts the batches of each epoch from 1 learns further from where it was, and so does
//! one that reads an earlier checkpoint again.

use trackway_core::Step;

/// Values of a training, at least, before another one can begin.
const VALUES_MIN: u64 = 10;
/// Values at the end of a training by which its level is known.
const RECENT: usize = 5;
/// The part of the way back to the beginning on which the first value of another training is.
const BACK: f64 = 0.5;
/// Deviations of the last values that it is away from them.
const DEVIATIONS: f64 = 4.0;
/// The fraction of its first value by which the training before has moved.
const MOVED: f64 = 0.1;

/// Where the values of one metric of one rank began, and where they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BeganAgain {
    count: u64,
    first_step: Step,
    last_step: Step,
    greatest_step: Step,
    first: Option<f64>,
    recent: [f64; RECENT],
    /// So many values up to the last one were not finite.
    lost_in_a_row: u64,
}

impl BeganAgain {
    /// Takes the next value. Whether another training begins with it.
    pub(crate) fn take(&mut self, step: Step, value: f64) -> bool {
        let begins = self.begins(step, value);
        if begins {
            *self = Self::default();
        }
        if self.count == 0 {
            self.first_step = step;
        }
        self.count += 1;
        self.last_step = step;
        self.greatest_step = self.greatest_step.max(step);
        self.lost_in_a_row += 1;
        if value.is_finite() {
            self.lost_in_a_row = 0;
            self.first.get_or_insert(value);
            self.recent.rotate_left(1);
            self.recent[RECENT - 1] = value;
        }
        begins
    }

    fn begins(&self, step: Step, value: f64) -> bool {
        let is_early = step < self.last_step && (step <= self.first_step || step < self.greatest_step / 2);
        if self.count < VALUES_MIN || !is_early || !value.is_finite() {
            return false;
        }
        match self.first {
            Some(first) => self.is_back(first, value),
            None => self.is_lost(),
        }
    }

    /// Weights that are not finite do not become finite again.
    fn is_lost(&self) -> bool {
        self.lost_in_a_row >= RECENT as u64
    }

    fn is_back(&self, first: f64, value: f64) -> bool {
        let count = RECENT as f64;
        let level = self.recent.iter().sum::<f64>() / count;
        let squares: f64 = self.recent.iter().map(|value| (value - level).powi(2)).sum();
        let (moved, away) = (first - level, value - level);
        let has_moved = moved.abs() > MOVED * first.abs();
        let is_on_its_way = away / moved > BACK;
        match self.is_lost() {
            true => !has_moved || is_on_its_way,
            false => has_moved && is_on_its_way && away.abs() > DEVIATIONS * (squares / (count - 1.0)).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    /// The places at which another training begins.
    fn places(values: impl IntoIterator<Item = (Step, f64)>) -> Vec<usize> {
        let mut again = BeganAgain::default();
        let values = values.into_iter().enumerate();
        values.filter_map(|(place, (step, value))| again.take(step, value).then_some(place)).collect()
    }

    /// Proves that each further training of a grid is seen, of a loss and of an accuracy, also after one that was lost.
    #[test]
    fn each_training_of_a_grid_is_seen() {
        let grid = |at: fn(u64, f64) -> f64| {
            let rates = [0.5, 0.2, 0.1].into_iter();
            rates.flat_map(move |rate| (1..=40).map(move |step| (step, at(step, rate)))).collect::<Vec<_>>()
        };
        assert_eq!(places(grid(|step, rate| 6.7 * (-rate * (step - 1) as f64).exp())), [40, 80]);
        assert_eq!(places(grid(|step, rate| 1.0 - 0.9 * (-rate * (step - 1) as f64).exp())), [40, 80]);
        let lost = |step, rate| if rate > 0.4 && step > 9 { f64::NAN } else { 3.0 / step as f64 };
        assert_eq!(places(grid(lost)), [40, 80]);
    }

    /// Proves that steps that begin again with each epoch, a checkpoint that the script reads again, and a loss that is
    /// back without them are not another training.
    #[test]
    fn the_same_training_is_not_taken_for_another() {
        let noise = |place: u64| (place * 7919 % 13) as f64 / 13.0 - 0.5;
        let loss = move |place: u64| 2.3 * 0.99_f64.powf(place as f64) + 0.3 * noise(place);
        assert_eq!(places((0..400).map(|place| (place % 40 + 1, loss(place)))), NONE);
        let reads_again = (1..=200).chain(60..=200).map(|step| (step, loss(step)));
        assert_eq!(places(reads_again), NONE);
        let skips = |place: u64| if place % 40 == 39 { f64::NAN } else { loss(place) };
        assert_eq!(places((0..400).map(|place| (place % 40 + 1, skips(place)))), NONE);
        assert_eq!(places((1..=200).map(|step| (step, if step > 150 { 2.3 } else { loss(step) }))), NONE);
    }
}
