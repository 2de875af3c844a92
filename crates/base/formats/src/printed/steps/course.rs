//! Printed steps that begin again in each epoch, without a total beside them: `epoch 2 step 10`, `[2, 2000]`. Of those with one, such as
//! `Epoch 2 [10/600]`, whether the total is that of an epoch.
//!
//! Whether steps begin again is seen where the epoch grows: steps of the whole training rise there, the others fall back. From then on the
//! steps of the epochs before are added. How long an epoch is shows in those that are over.

use serde::{Deserialize, Serialize};

/// How the printed steps and epochs of a training are counted, and how far they were: the next attempt counts on from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrintedCourse {
    /// The number of the first epoch: 0 or 1, as far as it was seen.
    pub(super) first_epoch: Option<u64>,
    /// The steps begin again with each epoch.
    begin_again: bool,
    /// In one attempt they fell back to its first one, and no epoch was printed that says why.
    falls_back: bool,
    /// The steps before the epoch.
    before: u64,
    /// The training was first seen in a later epoch than its first, and how long epochs are was not known.
    is_late: bool,
    /// The longest epoch that is over.
    per_epoch: u64,
    /// The epoch whose steps came last.
    leg: Option<Leg>,
    records: Records,
    /// The count with the largest total.
    counted: Option<Counted>,
    /// The highest epoch that is the step of its values, where nothing finer is printed.
    epochs: Option<u64>,
}

/// What is said of a training whose script prints epochs and nothing finer.
const EPOCHS: &str = "its steps are epochs";

/// A count or a bar with a total beside an epoch: `Epoch 2 [10/600]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Counted {
    total: u64,
    over: Over,
    /// The epoch that was counted last.
    leg: Option<Leg>,
    /// Nothing of it was counted here yet: more may have been counted than was remembered.
    #[serde(skip)]
    is_remembered: bool,
}

/// What a total is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Over {
    /// No second epoch was seen.
    #[default]
    Unclear,
    /// The steps fell where the epoch grew.
    Epoch,
    /// The steps rose where the epoch grew.
    Training,
}

/// The printed steps of one epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Leg {
    epoch: Option<u64>,
    first: u64,
    highest: u64,
    /// From the first step to the next one; 0 if there was one only.
    stride: u64,
}

/// Records that have an epoch such as 0.58 and no step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Records {
    count: u64,
    epoch: f64,
}

/// What a printed number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) enum Counts {
    /// The steps of the training: `global_step`.
    Training,
    /// The steps of the epoch: `[2, 2000]`.
    Epoch,
    /// Either of them: `step`.
    Unclear,
}

impl PrintedCourse {
    /// The number of the first epoch, once it shows: an epoch 0, one that is written as one of so many, or an epoch 1 at first.
    pub(super) fn see_epoch(&mut self, epoch: u64, counted_from_one: bool) {
        let first = match epoch {
            0 => Some(0),
            1 => Some(1),
            _ => counted_from_one.then_some(1),
        };
        self.first_epoch = self.first_epoch.or(first);
    }

    /// Whether the steps of the epochs before are added to the printed ones.
    #[must_use]
    pub fn begins_again(&self) -> bool {
        self.begin_again
    }

    /// Whether printed steps fell back to the first one of an attempt, and no printed epoch says why: they may be those of an epoch.
    #[must_use]
    pub fn falls_back(&self) -> bool {
        self.falls_back
    }

    /// Notes that.
    pub(super) fn fell_back(&mut self) {
        self.falls_back = true;
    }

    /// The epoch is the step, as nothing finer is printed.
    pub(super) fn epoch_is_step(&mut self, epoch: u64) {
        self.epochs = self.epochs.max(Some(epoch));
    }

    /// Something finer than epochs is printed.
    pub(super) fn is_finer(&mut self) {
        self.epochs = None;
    }

    /// What the steps of the training are, where they are known to be epochs. `highest`: the highest step that was
    /// recorded or committed. One above the last printed epoch is counted by something else, such as a callback or what
    /// a checkpoint contains.
    #[must_use]
    pub fn steps_are(&self, highest: Option<u64>) -> Option<&'static str> {
        self.epochs.zip(highest).filter(|(epochs, highest)| highest <= epochs).map(|_| EPOCHS)
    }

    /// The growing step of a printed one. `is_judging`: the line is of an evaluation, whose steps may be others.
    pub(super) fn step(&mut self, epoch: Option<u64>, step: u64, counts: Counts, is_judging: bool) -> u64 {
        if counts == Counts::Training {
            return step;
        }
        let falls = self.leg.is_some_and(|leg| step <= leg.highest);
        if !(is_judging && falls) {
            self.follow(epoch, step, counts);
        }
        match self.begin_again {
            true => self.before.saturating_add(step),
            false => step,
        }
    }

    fn follow(&mut self, epoch: Option<u64>, step: u64, counts: Counts) {
        match &mut self.leg {
            Some(leg) if epoch.is_none() || leg.epoch == epoch => leg.take(step),
            Some(leg) => {
                let leg = *leg;
                self.epoch_changes(leg, epoch.unwrap_or(0), step, counts);
                self.leg = Some(Leg::new(epoch, step));
            }
            None => {
                self.begin_again |= counts == Counts::Epoch && epoch.is_some();
                let first = self.first_epoch.unwrap_or(1);
                self.is_late = epoch.is_some_and(|epoch| epoch > first);
                self.leg = Some(Leg::new(epoch, step));
            }
        }
    }

    fn epoch_changes(&mut self, leg: Leg, epoch: u64, step: u64, counts: Counts) {
        if leg.epoch.is_some_and(|last| epoch < last) {
            // An attempt that continues before the end of the last one, or a second training.
            let back = leg.epoch.unwrap_or(0) - epoch;
            self.before = self.before.saturating_sub(back.saturating_mul(self.per_epoch));
            return;
        }
        // Until an epoch was added, a place that rises where the epoch grows is one of the training: `Epoch[1] Batch
        // [450]` behind `Epoch[0] Batch [400]`.
        let rises = self.per_epoch == 0 && !leg.is_fallen_behind(step);
        self.begin_again = match counts {
            Counts::Epoch => !rises,
            _ => self.begin_again || leg.is_fallen_behind(step),
        };
        if !self.begin_again {
            return;
        }
        let length = leg.length().max(self.per_epoch);
        self.per_epoch = length;
        let passed = leg.epoch.map_or(1, |last| epoch - last);
        self.before = match std::mem::take(&mut self.is_late) {
            true => epoch.saturating_sub(self.first_epoch.unwrap_or(1)).saturating_mul(length),
            false => self.before.saturating_add(passed.saturating_mul(length)),
        };
    }

    /// What is remembered of the counts with a total.
    pub(super) fn counted(&self, total: Option<u64>) -> Counted {
        let total = total.unwrap_or(0);
        let known = self.counted.filter(|counted| counted.total == total);
        Counted { total, is_remembered: true, ..known.unwrap_or_default() }
    }

    /// Remembers a count of the training, not a shorter one beside it: that may be of an evaluation.
    pub(super) fn remember(&mut self, counted: Counted) {
        let is_longer = self.counted.is_none_or(|known| counted.total >= known.total);
        if is_longer && counted.leg.is_some() {
            self.counted = Some(Counted { is_remembered: false, ..counted });
        }
    }

    /// The number of a further record that has the values of the one before; nothing, and nothing is changed, where it is this one.
    pub(super) fn next_record(&mut self, epoch: f64, but: Option<u64>) -> Option<u64> {
        let before = self.records;
        let record = self.record(epoch, true);
        if Some(record) == but {
            self.records = before;
            return None;
        }
        Some(record)
    }

    /// The number of a record that names a part of an epoch and no step. `is_next`: it has a value that the one before
    /// had, too. A training that continues counts on from where it was at that epoch.
    pub(super) fn record(&mut self, epoch: f64, is_next: bool) -> u64 {
        let Records { count, epoch: last } = self.records;
        let count = match count {
            0 => 1,
            _ if epoch < last => ((count as f64) * epoch / last).round().max(1.0) as u64,
            _ => count.saturating_add(u64::from(is_next || epoch > last)),
        };
        self.records = Records { count, epoch };
        count
    }
}

impl Counted {
    /// Its total is that of an epoch, by the form of the line.
    pub(super) fn is_of_epoch(&mut self) {
        self.over = Over::Epoch;
    }

    /// Takes a place in an epoch; whether the steps of the epochs before are to be added to it.
    pub(super) fn begins_again(&mut self, epoch: u64, step: u64) -> bool {
        match &mut self.leg {
            Some(leg) if leg.epoch == Some(epoch) => leg.take(step),
            Some(leg) if leg.epoch < Some(epoch) => {
                let falls = leg.is_fallen_behind(step) || (step == leg.highest && step == self.total);
                let rises = step > leg.highest;
                self.over = match self.over {
                    Over::Unclear if falls => Over::Epoch,
                    Over::Unclear if rises && !self.is_remembered => Over::Training,
                    over => over,
                };
                // A bar over all epochs is drawn where it is when its epoch changes.
                if falls || rises {
                    self.leg = Some(Leg::new(Some(epoch), step));
                }
            }
            _ => self.leg = Some(Leg::new(Some(epoch), step)),
        }
        self.is_remembered = false;
        self.over == Over::Epoch
    }
}

impl Leg {
    fn new(epoch: Option<u64>, step: u64) -> Self {
        Self { epoch, first: step, highest: step, stride: 0 }
    }

    fn take(&mut self, step: u64) {
        if self.stride == 0 {
            self.stride = step.saturating_sub(self.highest);
        }
        self.highest = self.highest.max(step);
    }

    /// Whether the first step of another epoch shows that steps begin again: it is lower, or the same where each epoch has one only.
    fn is_fallen_behind(&self, step: u64) -> bool {
        let has_one = self.epoch.is_some() && self.first == self.highest;
        step < self.highest || (step == self.highest && has_one)
    }

    /// The steps of the epoch: up to the last printed one, or, where the steps are printed at equal distances, to where the next one
    /// would be the first of the next epoch. 0, 10, 20 are of 30 steps, and so are 1, 11, 21 and 10, 20, 30.
    fn length(&self) -> u64 {
        let stride = if self.stride > 0 { self.stride } else { self.first.max(1) };
        let way = self.highest.saturating_sub(self.first);
        let regular = if way.is_multiple_of(stride) { way.saturating_add(stride) } else { 0 };
        regular.max(self.highest.saturating_add(u64::from(self.first == 0)))
    }
}
