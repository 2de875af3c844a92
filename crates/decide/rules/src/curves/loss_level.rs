//! Where a loss is between its best level and that of its beginning, by means of values in a row: a single value says
//! nothing where there is noise.

use std::collections::VecDeque;

use trackway_core::Step;

/// Values in a row whose mean is the level.
const WINDOW: usize = 10;
/// Values at the beginning by whose mean the level of an untrained model is known, where it is above that of the first window.
const BEGINNING: usize = 30;
/// The first values, of an untrained model for certain: in a short curve the loss falls far within a window.
const UNTRAINED: usize = 3;
/// So far above the mean of the window they are where it falls fast, and not by noise.
const FAST: f64 = 1.25;
/// A model has learned when its loss is this fraction of the beginning below it, and that many standard errors of a window.
const LEARNED: f64 = 0.5;
const ERRORS: f64 = 4.0;
/// The part of the way from the best level to the beginning from which on the loss is back there, noise included.
const BACK: f64 = 0.9;
/// The part of the way from which on it is not near its best level.
const HALF: f64 = 0.5;
/// Values after which a loss that is back does not come down again by itself: a spike and a warm restart do.
const LASTING: u32 = 20;

/// Values at the beginning after each of which a loss may have gone back, where so few are recorded that it never has a level.
const FIRST_VALUES: usize = 60;
/// So many values are before that, and so many after it at least; and so many times the mean before is the mean after it.
const BEFORE_MIN: usize = 2;
const AFTER_MIN: usize = 5;
const TIMES: f64 = 2.0;
/// Times the least value after it that the greatest one is: a loss that falls from there, or rises further, is of
/// another training or another loss.
const SPREAD: f64 = 1.5;

/// Parts of names of losses that need not fall while a model learns: of two networks that play against each other, and
/// of reinforcement learning.
const PLAYED: [&str; 24] = [
    "d", "g", "disc", "discriminator", "gen", "generator", "adv", "adversarial", "critic", "actor", "policy",
    "pi", "value", "vf", "v", "q", "qf", "td", "entropy", "kl", "reward", "alpha", "temperature", "penalty",
];

/// Whether a loss of this name falls while its model learns.
pub fn falls_while_learning(name: &str) -> bool {
    !name.to_ascii_lowercase().split(['_', '/', '-', '.']).any(|part| PLAYED.contains(&part))
}

/// Values since a loss went back to where it began.
#[derive(Debug, Clone, Copy)]
struct Excursion {
    first: (Step, f64),
    count: u32,
    mean: f64,
}

impl Excursion {
    fn push(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        self.mean += (value - self.mean) / f64::from(self.count);
    }
}

/// The level of one loss.
#[derive(Debug, Clone, Default)]
pub struct LossLevel {
    seen: usize,
    /// Mean and squared deviations of the first values, and the greatest mean that is taken for the beginning.
    first_mean: f64,
    first_squares: f64,
    beginning: f64,
    /// The mean of the very first values.
    untrained: f64,
    recent: VecDeque<(Step, f64)>,
    /// The least level since the beginning; none before there is one.
    best: Option<f64>,
    back: Option<Excursion>,
    first: FirstValues,
}

/// The first values, and the least and the greatest of those that came later.
#[derive(Debug, Clone, Default)]
struct FirstValues {
    values: Vec<(Step, f64)>,
    later: Option<(f64, f64)>,
}

impl FirstValues {
    fn push(&mut self, step: Step, value: f64) {
        if self.values.len() < FIRST_VALUES {
            self.values.push((step, value));
        } else {
            let (least, greatest) = self.later.unwrap_or((value, value));
            self.later = Some((least.min(value), greatest.max(value)));
        }
    }

    /// The first value of those that are all far above every one before them, to the end.
    fn above_all_before(&self) -> Option<(Step, f64)> {
        let mean =
            |values: &[(Step, f64)]| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
        let last_place = self.values.len().checked_sub(AFTER_MIN)?;
        (BEFORE_MIN..=last_place).find_map(|place| {
            let (before, after) = self.values.split_at(place);
            let greatest = before.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
            let (later_least, later_greatest) = self.later.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
            let after_values = || after.iter().map(|(_, value)| *value);
            let least = after_values().fold(later_least, f64::min);
            let stays = after_values().fold(later_greatest, f64::max) <= SPREAD * least;
            let is_far = mean(before) > 0.0 && least >= TIMES * mean(before);
            (least > greatest && stays && is_far).then(|| after.first().copied()).flatten()
        })
    }
}

impl LossLevel {
    /// Takes a finite value. Whether the loss is now back where it began.
    pub fn take(&mut self, step: Step, value: f64) -> bool {
        self.first.push(step, value);
        self.recent.push_back((step, value));
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        if self.seen < BEGINNING {
            self.begin(value);
            return false;
        }
        let level = self.level();
        self.best = Some(self.best.map_or(level, |best| best.min(level)));
        let Some(way) = self.way_back(level) else { return false };
        match &mut self.back {
            Some(_) if way < HALF => self.back = None,
            Some(back) => back.push(value),
            None if way >= BACK => self.back = self.excursion(),
            None => {}
        }
        way >= BACK
    }

    fn begin(&mut self, value: f64) {
        self.seen += 1;
        let delta = value - self.first_mean;
        self.first_mean += delta / self.seen as f64;
        self.first_squares += delta * (value - self.first_mean);
        match self.seen {
            UNTRAINED => self.untrained = self.first_mean,
            WINDOW if self.untrained > FAST * self.first_mean => self.beginning = self.untrained,
            WINDOW | BEGINNING => self.beginning = self.beginning.max(self.first_mean),
            _ => {}
        }
    }

    /// How far a level is on the way from the best one back to the beginning; none: the loss never was far below it.
    fn way_back(&self, level: f64) -> Option<f64> {
        let fall = self.beginning - self.best?;
        let error = (self.first_squares / (BEGINNING - 1) as f64 / WINDOW as f64).sqrt();
        let has_learned = self.beginning > 0.0 && fall > (LEARNED * self.beginning).max(ERRORS * error);
        has_learned.then(|| 1.0 - (self.beginning - level) / fall)
    }

    /// The values of the window that are not near the best level.
    fn excursion(&self) -> Option<Excursion> {
        let is_away = |value: f64| self.way_back(value).is_some_and(|way| way > HALF);
        let mut away = self.recent.iter().copied().skip_while(|(_, value)| !is_away(*value));
        let first = away.next()?;
        let mut excursion = Excursion { first, count: 1, mean: first.1 };
        away.for_each(|(_, value)| excursion.push(value));
        Some(excursion)
    }

    /// Since when the loss is back where it began, and the value there; none where it has come down again in part, as
    /// after a step up of a curriculum.
    pub fn back_since(&self) -> Option<(Step, f64)> {
        let is_back = |level: f64| self.way_back(level).is_some_and(|way| way >= BACK);
        self.back.filter(|back| is_back(self.level()) || is_back(back.mean)).map(|back| back.first)
    }

    fn level(&self) -> f64 {
        self.recent.iter().map(|(_, value)| value).sum::<f64>() / self.recent.len() as f64
    }

    /// The same, if it is so for long and on the whole; or, where few values were recorded, if all since then are far above all before.
    pub fn back_for_long_since(&self) -> Option<(Step, f64)> {
        self.back_on_the_whole().or_else(|| self.first.above_all_before())
    }

    fn back_on_the_whole(&self) -> Option<(Step, f64)> {
        let back = self.back.filter(|back| back.count >= LASTING)?;
        (self.way_back(back.mean)? >= BACK).then_some(back.first)
    }

    /// Whether it is back, or its last value says that it may be soon.
    pub fn is_away(&self) -> bool {
        let newest = self.recent.back().and_then(|(_, value)| self.way_back(*value));
        self.back.is_some() || newest.is_some_and(|way| way > HALF)
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng, SplitMix64};

    use super::*;

    /// A level after these values, each with normal noise of a fraction of it.
    fn level(seed: u64, noise: f64, steps: u64, at: impl Fn(u64) -> f64) -> LossLevel {
        let mut rng = SplitMix64::new(seed);
        let mut level = LossLevel::default();
        for step in 1..=steps {
            let normal: f64 = (0..12).map(|_| rng.next_unit()).sum::<f64>() - 6.0;
            level.take(step, at(step) * (1.0 + noise * normal));
        }
        level
    }

    fn falls(step: u64) -> f64 {
        2.3 * 0.99_f64.powf(step as f64) + 0.15
    }

    /// Proves that a loss which is back where it began, and stays there to the end, is found from its first step on,
    /// with noise that takes single values below that level too.
    #[test]
    fn a_loss_that_is_back_is_found() {
        for seed in 0..50 {
            for noise in [0.0, 0.02, 0.05, 0.1] {
                let found = level(seed, noise, 500, |step| if step > 300 { 2.3 } else { falls(step) });
                let (step, _) = found.back_for_long_since().unwrap_or_else(|| panic!("{seed} {noise}"));
                let latest = if noise < 0.1 { 301 } else { 320 };
                assert!((301..=latest).contains(&step), "{seed} {noise}: {step}");
            }
        }
    }

    /// Proves that a loss of few values is found too, as one of each epoch, from the first value on that is far above
    /// all before; and that one which came down again, is a little higher, or has too few values there is not.
    #[test]
    fn a_loss_of_few_values_that_is_back_is_found() {
        let of = |values: &[f64]| {
            let mut level = LossLevel::default();
            (1..).zip(values).for_each(|(epoch, value)| _ = level.take(epoch, *value));
            level.back_for_long_since()
        };
        let lost = [&[4.1, 2.0, 1.1, 0.6, 0.3][..], &[8.06; 35]].concat();
        assert_eq!(of(&lost), Some((6, 8.06)));
        assert_eq!(of(&lost[..10]), Some((6, 8.06)));
        assert_eq!(of(&lost[..9]), None, "four values");
        assert_eq!(of(&[&lost[..], &[8.06; 60]].concat()), Some((6, 8.06)));
        assert_eq!(of(&[&lost[..], &[8.06; 60], &[0.2]].concat()), None, "it came down again");
        let phases: Vec<f64> = (0..40).map(|step| 2.6 * 0.95_f64.powi(step)).collect();
        assert_eq!(of(&[&lost[2..5], &phases].concat()), None, "it falls from there");
        assert_eq!(of(&[1.0, 0.9, 1.2, 1.3, 1.25, 1.2, 1.3, 1.2]), None, "a little higher");
        assert_eq!(of(&[2.3, 1.0, 0.5, 0.4, 0.3, 0.35, 0.3, 0.3]), None);
    }

    /// Proves that a loss is not back any more where it has come down in part, as after a step up of a curriculum.
    #[test]
    fn a_loss_that_came_down_in_part_is_not_back() {
        let at = |step: u64| match step {
            ..=200 => 1.0 + 2.0 * (-(step as f64) / 15.0).exp(),
            _ => 2.1 + 1.5 * (-((step - 201) as f64) / 5.0).exp(),
        };
        assert!(level(1, 0.0, 215, at).back_since().is_some());
        let later = level(1, 0.0, 300, at);
        assert_eq!((later.back_since(), later.back_for_long_since()), (None, None));
    }

    /// Proves that losses of trainings that go well are not: noisy ones, spikes, restarts that come back, a climb of a part of the way, and
    /// losses that never were far below their beginning.
    #[test]
    fn a_healthy_loss_is_not() {
        let restarts = |step: u64| {
            let (cycle, place) = (step / 100, step % 100);
            0.3 + 2.0 * 0.6_f64.powf(cycle as f64) * (1.0 + (place as f64 * 0.0314).cos()) / 2.0
        };
        let harder =
            |step: u64| 0.3 + 2.3 * (-(step as f64) / 5.0).exp() + if step > 250 { 1.1 } else { 0.0 };
        type Curve<'c> = &'c dyn Fn(u64) -> f64;
        let table: [(&str, f64, Curve<'_>); 8] = [
            ("a harder task", 0.05, &harder),
            ("falls", 0.3, &falls),
            ("never falls", 0.3, &|_| 2.3),
            ("spikes", 0.05, &|step| if step % 60 == 0 { 9.0 } else { falls(step) }),
            ("an epoch", 0.05, &|step| if (300..340).contains(&step) { 2.4 } else { falls(step) }),
            ("restarts", 0.05, &restarts),
            ("climbs", 0.05, &|step| if step > 250 { 1.3 } else { falls(step) }),
            ("falls at once", 0.3, &|step| 0.1 + 2.0 / step as f64),
        ];
        for seed in 0..50 {
            for (name, noise, at) in &table {
                let found = level(seed, *noise, 500, at);
                assert_eq!(found.back_for_long_since(), None, "{name} {seed}");
            }
        }
    }
}
