//! Metrics of the confusion matrix that are means over classes. A matrix is a list of counts, row by row: the count of
//! label `l` and prediction `p` of `k` classes is at `l · (k + 1) + p`; rows without a prediction are in the last
//! column. They are wrong: a false negative of their class, and a false positive of every other one.

use trackway_statistics::{Interval, wilson};

/// A mean over classes. Classes without rows (for precision and F1: neither label nor prediction) are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassMean {
    /// Of recall, over the classes that have labels.
    BalancedAccuracy,
    Precision,
    Recall,
    F1,
}

/// One class against the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassCounts {
    pub hits: f64,
    pub labelled: f64,
    pub predicted: f64,
}

impl ClassCounts {
    /// Hits over all, 0 where nothing is there: scikit-learn's `zero_division=0`.
    fn part(self, mean: ClassMean) -> (f64, f64) {
        match mean {
            ClassMean::BalancedAccuracy | ClassMean::Recall => (self.hits, self.labelled),
            ClassMean::Precision => (self.hits, self.predicted),
            ClassMean::F1 => (2.0 * self.hits, self.labelled + self.predicted),
        }
    }

    fn counts_for(self, mean: ClassMean) -> bool {
        match mean {
            ClassMean::BalancedAccuracy => self.labelled > 0.0,
            _ => self.labelled + self.predicted > 0.0,
        }
    }
}

/// 1 for the cells of a label and a prediction (`None`: there is none) for which `is` holds, 0 for the others.
pub(crate) fn cell_table(classes: usize, is: impl Fn(usize, Option<usize>) -> bool) -> Vec<f64> {
    let width = classes + 1;
    let holds = |cell: usize| is(cell / width, Some(cell % width).filter(|class| *class < classes));
    (0..classes * width).map(|cell| f64::from(u8::from(holds(cell)))).collect()
}

/// Each class of a matrix.
pub(crate) fn of_classes(counts: &[f64], classes: usize) -> Vec<ClassCounts> {
    let mut found = vec![ClassCounts { hits: 0.0, labelled: 0.0, predicted: 0.0 }; classes];
    let mut unanswered = 0.0;
    for label in 0..classes {
        let row = &counts[label * (classes + 1)..(label + 1) * (classes + 1)];
        for (prediction, count) in row[..classes].iter().enumerate() {
            found[label].labelled += count;
            found[prediction].predicted += count;
        }
        found[label].hits = row[label];
        found[label].labelled += row[classes];
        found[label].predicted -= row[classes];
        unanswered += row[classes];
    }
    found.iter_mut().for_each(|class| class.predicted += unanswered);
    found
}

impl ClassMean {
    pub(crate) fn value(self, classes: &[ClassCounts]) -> f64 {
        let parts = classes.iter().filter(|class| class.counts_for(self)).map(|class| class.part(self));
        let (sum, count) = parts.fold((0.0, 0.0), |(sum, count), (above, below)| {
            (sum + if below > 0.0 { above / below } else { 0.0 }, count + 1.0)
        });
        sum / count
    }

    /// The interval from those of the classes, which are independent (MOVER: G. Zou and A. Donner 2008). `None` for F1,
    /// whose classes have rows in common.
    pub(crate) fn interval(self, classes: &[ClassCounts], confidence: f64) -> Option<Interval> {
        if self == Self::F1 {
            return None;
        }
        let (mut below_squares, mut above_squares, mut count) = (0.0, 0.0, 0.0);
        for class in classes.iter().filter(|class| class.counts_for(self)) {
            let (hits, all) = class.part(self);
            let value = if all > 0.0 { hits / all } else { 0.0 };
            let interval = wilson(hits, all, confidence);
            below_squares += (value - interval.low).powi(2);
            above_squares += (interval.high - value).powi(2);
            count += 1.0;
        }
        let value = self.value(classes);
        Some(Interval {
            low: (value - below_squares.sqrt() / count).max(0.0),
            high: (value + above_squares.sqrt() / count).min(1.0),
        })
    }
}
