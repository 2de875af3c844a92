//! Whether what two sides of a split share is more than a random split of the same rows would leave on both: one rule for rows
//! and images.

use trackway_statistics::hypergeometric_p_value;

/// From this fraction of the test rows on, overlap makes the test worthless. (Deepchecks lets 5 % pass.)
const SHARED_FRACTION_BLOCKS: f64 = 0.01;

/// Up to so many times the fraction that equal rows within the training side explain is expected.
const EXPECTED_FACTOR: f64 = 2.0;

/// So many shared rows are expected as well when a random split has them with this probability or a higher one.
const COINCIDENCE_EXPLAINS: f64 = 0.01;

/// What a random split would have on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Explanation {
    /// About as much: so many rows of the training side have an equal one there.
    Repetition,
    /// As much with this probability: the rows are too few to say.
    Coincidence(f64),
    /// Less.
    None,
}

/// What two sides share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    /// Rows of the test side.
    pub(crate) test: u64,
    /// Those that the training side has too.
    pub(crate) shared: u64,
    /// Rows of the training side.
    pub(crate) train: u64,
    /// The fraction of them that has an equal one there.
    pub(crate) repeated: f64,
}

impl Shared {
    /// The fraction of the test side that is shared.
    pub(crate) fn fraction(self) -> f64 {
        if self.test == 0 { 0.0 } else { self.shared as f64 / self.test as f64 }
    }

    /// Whether a random split explains it.
    pub(crate) fn explanation(self) -> Explanation {
        if self.fraction() <= self.repeated * EXPECTED_FACTOR {
            return Explanation::Repetition;
        }
        let repeated = (self.repeated * self.train as f64).round() as u64 + self.shared;
        let probability = hypergeometric_p_value(self.train + self.test, repeated, self.test, self.shared);
        if probability >= COINCIDENCE_EXPLAINS {
            Explanation::Coincidence(probability)
        } else {
            Explanation::None
        }
    }

    /// Whether the test is worthless.
    pub(crate) fn blocks(self) -> bool {
        self.fraction() >= SHARED_FRACTION_BLOCKS && self.explanation() == Explanation::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the one duplicate of the iris flowers does not block, that repetition within the training side does not,
    /// and that copies do, in a small test set as well.
    #[test]
    fn what_a_random_split_explains_does_not_block() {
        for (train, repeated, test, shared, blocks) in [
            (112, 0.0, 38, 1, false),
            (112, 0.0, 38, 3, false),
            (1_000, 0.2, 300, 80, false),
            (1_000, 0.0, 300, 2, false),
            (1_000, 0.0, 300, 4, true),
            (112, 0.0, 38, 10, true),
            (6, 0.0, 6, 6, true),
            (1_000_000, 0.001, 100_000, 1_500, true),
        ] {
            let sides = Shared { test, shared, train, repeated };
            assert_eq!(sides.blocks(), blocks, "{sides:?}: {:?}", sides.explanation());
        }
    }
}
