//! SliceLine's score of a slice, and the most that any slice below it can score (Sagadeeva and Boehm 2021).

/// The figures of a slice: of its rows, or upper bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stats {
    /// Rows.
    pub(super) size: u32,
    /// The sum of their errors.
    pub(super) error: f64,
    /// The largest error of a row.
    pub(super) worst: f64,
}

impl Stats {
    /// The most that a slice within both can have.
    pub(super) fn least(self, other: Self) -> Self {
        Self {
            size: self.size.min(other.size),
            error: self.error.min(other.error),
            worst: self.worst.min(other.worst),
        }
    }
}

/// How slices of one table are scored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scoring {
    /// The weight of the error against the size, above 0 and at most 1.
    pub(super) alpha: f64,
    /// The fewest rows of a slice.
    pub(super) min_support: u32,
    pub(super) rows: f64,
    /// The mean error of all rows, above 0.
    pub(super) average_error: f64,
}

impl Scoring {
    /// `α (ē(S) / ē − 1) − (1 − α) (n / |S| − 1)`: 0 for the whole table.
    pub(super) fn score(&self, size: f64, error: f64) -> f64 {
        let worse = error / size / self.average_error - 1.0;
        self.alpha * worse - (1.0 - self.alpha) * (self.rows / size - 1.0)
    }

    /// The most that a slice with at most these stats, or one within it, can score: Eq. 3 of the paper, where the term
    /// for the size is of the number of *rows*. The score is monotone between three sizes, so that these are enough:
    /// the smallest allowed, the largest, and the one where every row has the largest error.
    pub(super) fn bound(&self, most: Stats) -> f64 {
        let (low, high) = (f64::from(self.min_support), f64::from(most.size));
        if high < low || most.error <= 0.0 || most.worst <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let of_size = |size: f64| self.score(size, (size * most.worst).min(most.error));
        let all_worst = (most.error / most.worst).clamp(low, high);
        of_size(low).max(of_size(all_worst)).max(of_size(high))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Proves that no slice within limits scores above their bound, whatever its size and errors.
        #[test]
        fn nothing_scores_above_the_bound(
            (rows, min_support) in (2u32..500, 1u32..40),
            alpha in 0.01f64..=1.0,
            errors in prop::collection::vec(0.0f64..3.0, 1..60),
            keep in prop::collection::vec(any::<bool>(), 60),
            average_error in 0.01f64..2.0,
            slack in 0.0f64..2.0,
        ) {
            let scoring = Scoring { alpha, min_support, rows: f64::from(rows), average_error };
            let worst = errors.iter().copied().fold(0.0, f64::max);
            let limits = Stats { size: errors.len() as u32, error: errors.iter().sum::<f64>() + slack, worst };
            let within: Vec<f64> = errors.iter().zip(keep).filter(|(_, keep)| *keep).map(|(it, _)| *it).collect();
            prop_assume!(within.len() >= min_support as usize);
            let error: f64 = within.iter().sum();
            prop_assume!(error > 0.0);
            prop_assert!(scoring.score(within.len() as f64, error) <= scoring.bound(limits) + 1e-9);
        }
    }

    /// Proves by hand-made figures that the score is 0 for the whole table, and that at α = ½ twice the error
    /// compensates for half the rows.
    #[test]
    fn scores_by_hand() {
        let scoring = Scoring { alpha: 0.5, min_support: 1, rows: 100.0, average_error: 0.2 };
        assert_eq!(scoring.score(100.0, 20.0), 0.0);
        assert_eq!(scoring.score(50.0, 20.0), 0.0);
        assert!((scoring.score(50.0, 25.0) - 0.25).abs() < 1e-12);
    }
}
