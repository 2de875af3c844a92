//! The last values of the metrics of a live attempt, in bounded memory, and which of them people look at first.

use std::collections::VecDeque;

use trackway_core::Step;
use trackway_formats::record::{is_internal_metric, unmarked};

/// Points of one metric that are kept.
const POINTS_MAX: usize = 512;
/// Metrics that are kept; a loss replaces one that is less often needed.
const METRICS_MAX: usize = 64;

/// The last values of one metric, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveCurve {
    /// The metric.
    pub name: String,
    /// The step of the last value.
    pub last_step: Step,
    /// The values; what JSON lacks is null there.
    pub values: VecDeque<f64>,
}

/// The curves of a live attempt, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Curves(Vec<LiveCurve>);

impl Curves {
    /// Takes a value.
    pub fn take(&mut self, name: &str, step: Step, value: f64) {
        let Some(curve) = self.place_of(name) else { return };
        if curve.values.len() == POINTS_MAX {
            curve.values.pop_front();
        }
        curve.last_step = step;
        curve.values.push_back(unmarked(value));
    }

    /// Forgets a curve: its values come from another writer from now on.
    pub fn forget(&mut self, name: &str) {
        self.0.retain(|curve| curve.name != name);
    }

    /// The one that is shown when there is room for one: `loss`, else one whose name ends in it, else the first one.
    pub fn first(&self) -> Option<&LiveCurve> {
        self.shown(1).pop()
    }

    /// So many of them, those that people look at first before others.
    pub fn shown(&self, count: usize) -> Vec<&LiveCurve> {
        let mut curves: Vec<&LiveCurve> = self.0.iter().filter(|curve| rank_of(&curve.name) > 0).collect();
        curves.sort_by_key(|curve| std::cmp::Reverse(rank_of(&curve.name)));
        curves.truncate(count);
        curves
    }

    /// The curve of a metric, begun where there is room or where it counts more than another.
    fn place_of(&mut self, name: &str) -> Option<&mut LiveCurve> {
        if let Some(place) = self.0.iter().position(|curve| curve.name == name) {
            return Some(&mut self.0[place]);
        }
        if self.0.len() == METRICS_MAX {
            let least = (0..METRICS_MAX).rev().min_by_key(|place| rank_of(&self.0[*place].name))?;
            if rank_of(&self.0[least].name) >= rank_of(name) {
                return None;
            }
            self.0.remove(least);
        }
        self.0.push(LiveCurve { name: name.to_owned(), ..LiveCurve::default() });
        self.0.last_mut()
    }
}

fn rank_of(name: &str) -> u8 {
    match name {
        // Trackway's own figures are shown elsewhere.
        _ if is_internal_metric(name) => 0,
        "loss" => 5,
        _ if name.ends_with("loss") => 4,
        _ if name.starts_with("val") || name.contains("accuracy") => 3,
        "grad_norm" | "learning_rate" | "samples_per_second" => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the order: the loss first, then other losses, validation, what the detectors watch; own figures never.
    #[test]
    fn the_loss_comes_first() {
        let mut curves = Curves::default();
        for name in
            ["trackway/checkpoint_bytes", "other", "learning_rate", "val_accuracy", "val_loss", "loss"]
        {
            curves.take(name, 1, 0.5);
        }
        let names = |count| curves.shown(count).iter().map(|curve| curve.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(9), ["loss", "val_loss", "val_accuracy", "learning_rate", "other"]);
        assert_eq!(names(1), ["loss"]);
        assert_eq!(Curves::default().first(), None);
    }

    /// Proves that neither many points nor many metrics take more memory, and that a loss finds its place even then.
    #[test]
    fn memory_is_bounded() {
        let mut curves = Curves::default();
        for number in 0..10_000_u64 {
            curves.take(&format!("m{number}"), number, 0.0);
            curves.take("loss", number, number as f64);
        }
        assert_eq!(curves.0.len(), METRICS_MAX);
        let loss = curves.first().unwrap();
        assert_eq!(
            (loss.values.len(), loss.values.back(), loss.last_step),
            (POINTS_MAX, Some(&9999.0), 9999)
        );
        curves.take("val_loss", 1, 0.5);
        assert!(curves.shown(METRICS_MAX).iter().any(|curve| curve.name == "val_loss"));
    }
}
