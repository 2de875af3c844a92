//! What is seen only by comparing ranks: one that is slow, and one whose numbers part from the others'.
//!
//! Speeds are medians of 32 steps, compared every 16 steps with the middle rank's (NVIDIA's resiliency extension calls
//! a rank a straggler below 0.75), three times in a row, and a millisecond apart at least. Numbers are compared bit for
//! bit by step: only where ranks had the same gradient norm (size of the update, learning rate, loss scale) for 20
//! steps, as data-parallel ranks have, is a difference reported.

use std::collections::BTreeMap;

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::{Critical, Warn};

use super::anomaly::{DetectorChange, Sample, number};
use super::rules::Rule;
use super::series::streak::Streak;

/// Steps of a rank's median.
const SPEED_STEPS: usize = 32;
/// Steps from one look to the next.
const LOOK_STEPS: u32 = 16;
/// Steps that are slower by less, in seconds, are not reported.
const SLOWER_SECONDS_MIN: f64 = 1e-3;
/// Comparisons without a problem after which it is over.
const CALM: u32 = 2;
/// Steps with equal numbers before a difference means something.
const AGREED_MIN: u32 = 20;
/// Steps of which the numbers wait for other ranks.
const STEPS_OPEN: usize = 16;

/// The durations of one rank's steps.
#[derive(Debug, Clone, Default)]
struct Speed {
    ring: Vec<f64>,
    next: usize,
    streak: Streak,
}

impl Speed {
    fn push(&mut self, seconds: f64) {
        if self.ring.len() < SPEED_STEPS {
            self.ring.push(seconds);
        } else {
            self.ring[self.next] = seconds;
        }
        self.next = (self.next + 1) % SPEED_STEPS;
    }

    fn median(&self) -> Option<f64> {
        if self.ring.len() < SPEED_STEPS {
            return None;
        }
        let mut sorted = self.ring.clone();
        sorted.sort_by(f64::total_cmp);
        Some(sorted[SPEED_STEPS / 2])
    }
}

/// The speeds of all ranks.
#[derive(Debug, Clone, Default)]
pub(super) struct Stragglers {
    speeds: BTreeMap<u32, Speed>,
    since_look: u32,
}

impl Stragglers {
    /// Takes the duration of a rank's step, in seconds; answers for any rank.
    pub(super) fn take(&mut self, rule: Rule, rank: u32, sample: Sample) -> Vec<(u32, DetectorChange)> {
        self.speeds.entry(rank).or_default().push(sample.value);
        let first = self.speeds.first_key_value().is_some_and(|(first, _)| *first == rank);
        if !first || self.speeds.len() < 2 {
            return Vec::new();
        }
        self.since_look += 1;
        if self.since_look < LOOK_STEPS {
            return Vec::new();
        }
        self.since_look = 0;
        self.look(rule, sample.step)
    }

    fn look(&mut self, rule: Rule, step: Step) -> Vec<(u32, DetectorChange)> {
        let medians: BTreeMap<u32, f64> =
            self.speeds.iter().filter_map(|(rank, speed)| Some((*rank, speed.median()?))).collect();
        let mut sorted: Vec<f64> = medians.values().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let Some(middle) = sorted.get(sorted.len().saturating_sub(1) / 2).copied() else { return Vec::new() };
        let judge = |(rank, speed): (&u32, &mut Speed)| {
            let own = *medians.get(rank)?;
            let score = middle / own;
            let bad = score < rule.threshold && own - middle > SLOWER_SECONDS_MIN;
            let turn = speed.streak.take(bad, step, rule.patience, CALM);
            let change = turn.change(Warn, Some(score), rule.threshold, || {
                let (own, middle, ranks) = (number(own), number(middle), medians.len());
                format!("rank {rank} takes {own} s per step, the median of {ranks} ranks {middle} s")
            });
            Some((*rank, change?))
        };
        self.speeds.iter_mut().filter_map(judge).collect()
    }
}

/// Numbers that ranks should have in common.
#[derive(Debug, Clone, Default)]
pub(super) struct Agreement {
    reported: [Option<Sample>; STEPS_OPEN],
    agreed: u32,
    streaks: BTreeMap<u32, Streak>,
}

impl Agreement {
    /// Takes a rank's number of a step.
    pub(super) fn take(&mut self, rule: Rule, rank: u32, sample: Sample) -> Option<DetectorChange> {
        let slot = &mut self.reported[sample.step as usize % STEPS_OPEN];
        let Some(reported) = slot.filter(|reported| reported.step == sample.step) else {
            *slot = Some(sample);
            return None;
        };
        let scale = reported.value.abs().max(sample.value.abs());
        let difference = (reported.value - sample.value).abs() / scale.max(f64::MIN_POSITIVE);
        let differs = difference > rule.threshold;
        if !differs {
            self.agreed = self.agreed.saturating_add(1);
        }
        if self.agreed < AGREED_MIN {
            return None;
        }
        let streak = self.streaks.entry(rank).or_default();
        let turn = streak.take(differs, sample.step, rule.patience, CALM);
        turn.change(Critical, Some(difference), rule.threshold, || {
            let (own, other) = (number(sample.value), number(reported.value));
            format!("rank {rank} has {own} where another rank has {other}; they were equal before")
        })
    }
}
