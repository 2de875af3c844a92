//! The usual level of a series: what is normal is learned from normal values only.

use super::window::{WINDOW, Window};

/// Values before the level is known.
const START: u64 = 20;
/// Outliers in a row after which they are the new normal.
const ACCEPTED_AFTER: u32 = WINDOW as u32;
/// A series without noise, such as the loss over all data, still has this much of its level as noise.
const SIGMA_FLOOR_SHARE: f64 = 1e-3;

/// The level of one series.
#[derive(Debug, Clone, Default)]
pub(in crate::detect) struct Level {
    window: Window,
    seen: u64,
    rejected: u32,
    initial: f64,
    /// The highest normal value ever.
    pub record: f64,
    /// The lowest usual value of a whole window; infinite before the first one.
    pub lowest: f64,
    /// The highest usual value ever.
    pub highest: f64,
}

/// One value against the level before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::detect) struct Deviation {
    /// The usual value.
    pub median: f64,
    /// The spread of usual values around it.
    pub sigma: f64,
    /// How many of these the value is above it.
    pub z: f64,
    /// How far the value is above it.
    pub rise: f64,
}

impl Level {
    /// How `value` compares with the level; none before the level is known.
    pub(in crate::detect) fn standing(&self, value: f64) -> Option<Deviation> {
        if self.window.len() < START as usize {
            return None;
        }
        let median = self.window.median();
        let sigma = self.window.sigma().max(SIGMA_FLOOR_SHARE * median.abs()).max(f64::MIN_POSITIVE);
        let rise = value - median;
        Some(Deviation { median, sigma, z: rise / sigma, rise })
    }

    /// Takes a value that is normal.
    pub(in crate::detect) fn accept(&mut self, value: f64) {
        if self.seen == 0 {
            (self.record, self.lowest, self.highest) = (value, f64::INFINITY, f64::NEG_INFINITY);
        }
        self.seen += 1;
        self.rejected = 0;
        self.window.push(value);
        self.record = self.record.max(value);
        if self.seen == START {
            self.initial = self.window.median();
        }
        if self.window.len() >= START as usize {
            let median = self.window.median();
            self.highest = self.highest.max(median);
            if self.window.len() == WINDOW {
                self.lowest = self.lowest.min(median);
            }
        }
    }

    /// Takes a value that is not normal: it leaves the level as it is, until there were so many in a row that they are
    /// the new normal.
    pub(in crate::detect) fn reject(&mut self, value: f64) {
        self.rejected += 1;
        if self.rejected >= ACCEPTED_AFTER {
            self.window.clear();
            self.accept(value);
            self.lowest = f64::INFINITY;
        }
    }

    /// The usual value at the beginning; none before it is known.
    pub(in crate::detect) fn initial(&self) -> Option<f64> {
        (self.seen >= START).then_some(self.initial)
    }

    /// The usual value now; none before it is known.
    pub(in crate::detect) fn usual(&self) -> Option<f64> {
        (self.window.len() >= START as usize).then(|| self.window.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that outliers do not move what is normal, and that enough of them in a row become it.
    #[test]
    fn outliers_stay_out_until_they_are_normal() {
        let mut level = Level::default();
        for step in 0..50 {
            level.accept(1.0 + f64::from(step % 3) * 0.1);
        }
        for _ in 0..ACCEPTED_AFTER - 1 {
            level.reject(100.0);
            assert!(level.standing(1.1).is_some_and(|standing| standing.z.abs() < 3.0));
        }
        for _ in 0..=START {
            level.reject(100.0);
            level.accept(100.0);
        }
        assert_eq!(level.usual(), Some(100.0));
    }
}
