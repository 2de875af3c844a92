//! Bars and counts that begin again in each epoch: one growing step of their places, and what their drawings show.

use std::mem::take;

use trackway_core::MetricStep;

use super::super::{PrintedMetrics, VALUES_MAX, metric_step};
use super::course::Counted;

/// Parts of names whose values change once an epoch and are drawn at every step: they count when they change.
pub(super) const SELDOM: [&str; 5] = ["val", "valid", "validation", "test", "eval"];

/// Whether a value of this name changes once an epoch: of an evaluation, or the mean of an epoch as Lightning shows it, `train_loss_epoch`.
pub(super) fn changes_seldom(name: &str) -> bool {
    let parts = || name.split(['_', '/', '.', '-']);
    let is_mean_of_epoch = parts().count() > 1 && parts().next_back() == Some("epoch");
    is_mean_of_epoch || parts().any(|part| SELDOM.contains(&part))
}

/// Adds the values that a cut drawing lacks.
fn complete(values: &mut Vec<(String, f64)>, before: Vec<(String, f64)>) {
    let room = VALUES_MAX.saturating_sub(values.len());
    let is_missing = |(name, _): &(String, f64)| values.iter().all(|(shown, _)| shown != name);
    let missing: Vec<(String, f64)> = before.into_iter().filter(is_missing).take(room).collect();
    values.extend(missing);
}

/// Makes values a copy of others, which most often have the same names. `are_named`: they are known to.
fn copy_values(from: &[(String, f64)], are_named: bool, into: &mut Vec<(String, f64)>) {
    if are_named || from.iter().map(|(name, _)| name).eq(into.iter().map(|(name, _)| name)) {
        return into.iter_mut().zip(from).for_each(|((_, into), (_, from))| *into = *from);
    }
    from.clone_into(into);
}

/// The name and the total of a bar or a count.
pub(super) type Key<'a> = (&'a str, Option<u64>);

pub(super) fn lent((name, total): &(String, Option<u64>)) -> Key<'_> {
    (name, *total)
}

/// A bar or a count that begins again in each epoch.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub name: String,
    pub total: Option<u64>,
    /// The number of the first epoch: 0 or 1, as far as the script has shown.
    first_epoch: Option<u64>,
    /// Steps of the epochs before.
    pub before: u64,
    /// The epoch that was drawn last.
    pub epoch: Option<u64>,
    /// The epoch of the heading above the last count.
    pub heading: Option<u64>,
    /// The epoch that this bar began with after one of another length, and the steps before it.
    pub origin: Option<(u64, u64)>,
    pub done: u64,
    /// Whether it begins again with each epoch that is named.
    pub counted: Counted,
    pub has_values: bool,
    /// It is a bar that goes through steps, as far as its drawings show.
    pub may_train: bool,
    /// It has been at its end.
    pub has_ended: bool,
    /// The results of an evaluation were printed where it is.
    pub evaluates: bool,
    /// Measures of the training were printed while it was drawn.
    pub has_trained: bool,
    /// The newest drawing, or room for the next one, which most often has the same names.
    drawn: PrintedMetrics,
    /// The drawing counts when the bar moves on, because values are drawn late.
    is_pending: bool,
    /// The width of the terminal cuts it: it may lack values that are shown at other places.
    is_cut: bool,
    /// The last step that a drawing named, and the growing step of its place.
    named: Option<(u64, u64)>,
    /// The drawing reported last, with values before it that a cut one may lack.
    pub reported: PrintedMetrics,
    reported_step: Option<MetricStep>,
    /// The number of names, and whether a value of one of them changes once an epoch.
    seldom: Option<(u32, bool)>,
}

impl Track {
    /// `reported`: what the same bar with another total showed; `first_epoch`: as far as it is known.
    pub fn new(
        (name, total): Key<'_>,
        reported: PrintedMetrics,
        first_epoch: Option<u64>,
        counted: Counted,
    ) -> Self {
        Self { name: name.into(), total, reported, first_epoch, counted, ..Self::default() }
    }

    pub fn is(&self, (name, total): Key<'_>) -> bool {
        self.total == total && self.name == name
    }

    pub fn is_at_end(&self) -> bool {
        self.total.is_some_and(|total| self.done >= total)
    }

    /// The growing step of a count in a line; its total is that of an epoch, however far it was seen. `heading`: the
    /// epoch of the last heading; the count may be at the same place in the next one. `passed`: the epochs before the
    /// first count, by a heading.
    pub fn count(
        &mut self,
        done: u64,
        epoch: Option<(u64, bool)>,
        heading: Option<u64>,
        passed: Option<u64>,
    ) -> u64 {
        let total = self.total.unwrap_or(0);
        let is_next = self.heading.is_some() && heading > self.heading && done == self.done;
        self.heading = heading;
        if epoch.is_none() && (done < self.done || is_next) {
            (self.before, self.done) = (self.before.saturating_add(total.max(self.done)), 0);
        } else if epoch.is_none()
            && let Some(passed) = passed
        {
            self.before = passed.saturating_mul(total);
        }
        self.advance(done, epoch)
    }

    /// The growing step of a place in an epoch.
    pub fn advance(&mut self, done: u64, epoch: Option<(u64, bool)>) -> u64 {
        // What continues behind the results does not evaluate. A bar's last drawing may be read behind them.
        self.evaluates &= done <= self.done || self.total.is_some_and(|total| done >= total);
        match (epoch, self.total) {
            (Some((epoch, counted_from_one)), Some(total)) => {
                if epoch == 0 {
                    self.first_epoch = Some(0);
                }
                let first = *self.first_epoch.get_or_insert(u64::from(counted_from_one || epoch == 1));
                let origin = self.origin.filter(|(from, _)| epoch >= *from);
                let begins_again = self.counted.begins_again(epoch, done) || origin.is_some();
                let (first, before) = origin.unwrap_or((first, 0));
                let passed = if begins_again { epoch.saturating_sub(first) } else { 0 };
                self.before = before.saturating_add(passed.saturating_mul(total));
                self.epoch = Some(epoch);
            }
            (Some((epoch, _)), None) => {
                // Without a total each epoch may have the same length: `Epoch #2: 1000it`.
                let is_next = self.epoch.is_some_and(|last| epoch > last) && done <= self.done;
                if is_next || self.begins_again_at(done) {
                    self.begin_again();
                }
                self.epoch = Some(epoch);
            }
            _ if self.begins_again_at(done) => self.begin_again(),
            _ => {}
        }
        self.done = done;
        self.before.saturating_add(done)
    }

    /// The step that a drawing names, `env_step=2500`; of one that names none, as many steps behind the last one that did as the bar moved.
    pub fn named_step(&mut self, named: Option<u64>, counted: u64) -> u64 {
        // The values of a bar are repeated until others are set.
        let is_same = self.named.is_some_and(|(step, _)| named == Some(step));
        if let Some(step) = named {
            self.named = self.named.filter(|_| is_same).or(Some((step, counted)));
            return step;
        }
        self.named.map_or(counted, |(step, at)| step.saturating_add(counted.saturating_sub(at)))
    }

    /// A bar that falls back by less than half of its way is another one's, of a rank beside it, or an old drawing.
    pub fn begins_again_at(&self, done: u64) -> bool {
        done < self.done && done <= self.done / 2
    }

    fn begin_again(&mut self) {
        self.before = self.before.saturating_add(self.done);
        self.done = 0;
    }

    /// An epoch counted from 1. After the ones seen, or later in a training that continues; a second training adds its steps to the first.
    pub fn begin_epoch(&mut self, epoch: Option<u64>) {
        self.begin_again();
        let passed = epoch.unwrap_or(1).saturating_sub(1);
        self.before = self.before.max(passed.saturating_mul(self.total.unwrap_or(0)));
    }

    pub fn shows_already(&self, values: &[(String, f64)]) -> bool {
        let pending = self.drawn.values.iter().filter(|_| self.is_pending);
        let shown =
            |name: &str| pending.clone().chain(&self.reported.values).find(|(known, _)| known == name);
        let is_same = |(name, value): &(String, f64)| {
            shown(name).is_some_and(|(_, was)| was.to_bits() == value.to_bits())
        };
        values.iter().all(is_same)
    }

    /// Takes in the newest drawing, with its step and the number of its names. One that is cut lacks values that one
    /// before it, of the same step, may have.
    pub fn draw(&mut self, (step, names): (u64, Option<u32>), values: &[(String, f64)], is_cut: bool) {
        let step = metric_step(step);
        self.is_cut = is_cut;
        if std::mem::replace(&mut self.is_pending, true) && is_cut && self.drawn.step == step {
            let before = std::mem::replace(&mut self.drawn.values, values.to_vec());
            complete(&mut self.drawn.values, before);
            self.drawn.names = None;
            return;
        }
        copy_values(values, names.is_some() && names == self.drawn.names, &mut self.drawn.values);
        (self.drawn.step, self.drawn.names) = (step, names);
    }

    /// Reports the newest drawing if the bar is at another step now, or begins again.
    pub fn leave(&mut self, step: u64, begins_again: bool, found: &mut dyn FnMut(&PrintedMetrics)) {
        if begins_again || self.drawn.step != metric_step(step) {
            self.report(found);
        }
    }

    /// Reports the newest drawing, without what was reported at its step already and without evaluations that did not
    /// change.
    pub fn report(&mut self, found: &mut dyn FnMut(&PrintedMetrics)) {
        if !take(&mut self.is_pending) {
            return;
        }
        let is_same_step = self.reported_step == Some(self.drawn.step);
        self.reported_step = Some(self.drawn.step);
        if is_same_step || self.shows_seldom() {
            self.report_news(is_same_step, found);
        } else {
            found(&self.drawn);
        }
        std::mem::swap(&mut self.reported, &mut self.drawn);
        if self.is_cut {
            complete(&mut self.reported.values, take(&mut self.drawn).values);
            self.reported.names = None;
        }
    }

    fn report_news(&self, is_same_step: bool, found: &mut dyn FnMut(&PrintedMetrics)) {
        let drawn = &self.drawn;
        let is_new = |(name, value): &&(String, f64)| {
            let is_known = |(known, was): &(String, f64)| was.to_bits() == value.to_bits() && known == name;
            !(self.reported.values.iter().any(is_known) && (is_same_step || changes_seldom(name)))
        };
        let count = drawn.values.iter().filter(is_new).count();
        if count == drawn.values.len() {
            found(drawn);
        } else if count > 0 {
            let values = drawn.values.iter().filter(is_new).cloned().collect();
            found(&PrintedMetrics { step: drawn.step, values, ..PrintedMetrics::default() });
        }
    }

    /// Whether the drawing has a value that changes once an epoch.
    fn shows_seldom(&mut self) -> bool {
        let (drawn, known) = (&self.drawn, self.seldom);
        if let Some((_, shows)) = known.filter(|(names, _)| drawn.names == Some(*names)) {
            return shows;
        }
        let shows = drawn.values.iter().any(|(name, _)| changes_seldom(name));
        self.seldom = drawn.names.map(|names| (names, shows));
        shows
    }
}
