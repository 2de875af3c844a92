//! Which rows of a table are in which numbers, and which should be.

use trackway_core::{MissingPredictions, RowCoverage};

use crate::Metrics;

const IN_AN_ITEM: u8 = 1;
const NO_PREDICTION: u8 = 2;
const NO_SCORE: u8 = 4;
const NOT_A_TASK: u8 = 8;

/// Metrics that need a score (for texts: a loss) beside, or in place of, a prediction.
const OF_SCORES: [&str; 10] = [
    "roc_auc", "average_precision", "precision_at_recall", "log_loss", "brier", "ece", "loss", "perplexity",
    "bits_per_byte", "calibration_bias",
];

/// What became of each row of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowUse {
    flags: Vec<u8>,
    /// Tasks that no row answers.
    tasks_unanswered: u64,
}

/// Which rows count as covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Those that were evaluated; a row without a prediction according to the policy.
    Answers,
    /// Those with a prediction, whatever the policy.
    Predictions,
    /// Those with a score.
    Scores,
}

impl Needs {
    pub(crate) fn of(metric: &str) -> Self {
        if OF_SCORES.contains(&metric) { Self::Scores } else { Self::Answers }
    }
}

impl RowUse {
    /// Of a table of so many rows, of which these are in an item.
    pub(crate) fn of(rows: usize, in_items: impl IntoIterator<Item = u32>) -> Self {
        let mut flags = vec![0; rows];
        in_items.into_iter().for_each(|row| flags[row as usize] |= IN_AN_ITEM);
        Self { flags, tasks_unanswered: 0 }
    }

    pub(crate) fn without_prediction(&mut self, row: u32) {
        self.flags[row as usize] |= NO_PREDICTION;
    }

    pub(crate) fn without_score(&mut self, row: u32) {
        self.flags[row as usize] |= NO_SCORE;
    }

    /// Rows that answer no task of the set, or answer it again, and how many tasks nothing answers.
    pub(crate) fn with_tasks(&mut self, not_a_task: &[bool], unanswered: u64) {
        let rows = self.flags.iter_mut().zip(not_a_task);
        rows.filter(|(_, not)| **not).for_each(|(flags, _)| *flags |= NOT_A_TASK);
        self.tasks_unanswered = unanswered;
    }

    /// Rows that were evaluated.
    pub(crate) fn judged(&self) -> u64 {
        self.count(|flags| flags & IN_AN_ITEM != 0)
    }

    /// Rows that were evaluated without a prediction.
    pub(crate) fn unanswered(&self) -> u64 {
        self.count(|flags| flags & IN_AN_ITEM != 0 && flags & NO_PREDICTION != 0)
    }

    /// Rows that were evaluated without a score, where others have one.
    pub(crate) fn unscored(&self) -> u64 {
        self.count(|flags| flags & IN_AN_ITEM != 0 && flags & NO_SCORE != 0)
    }

    fn count(&self, is: impl Fn(u8) -> bool) -> u64 {
        self.flags.iter().filter(|flags| is(**flags)).count() as u64
    }

    /// How far numbers over a part of the rows cover it. A task that nothing answers may belong to any part.
    pub(crate) fn coverage(
        &self,
        needs: Needs,
        policy: MissingPredictions,
        is_in_part: impl Fn(usize) -> bool,
    ) -> RowCoverage {
        let lacking = match (needs, policy) {
            (Needs::Scores, MissingPredictions::Wrong) => NO_SCORE,
            (Needs::Scores, MissingPredictions::Inconclusive) => NO_SCORE | NO_PREDICTION,
            (Needs::Answers, MissingPredictions::Wrong) => 0,
            (Needs::Answers, MissingPredictions::Inconclusive) | (Needs::Predictions, _) => NO_PREDICTION,
        };
        let mut coverage = RowCoverage { rows_used: 0, rows_expected: self.tasks_unanswered };
        for flags in self.flags.iter().enumerate().filter(|(row, _)| is_in_part(*row)).map(|(_, flags)| flags)
        {
            coverage.rows_expected += 1;
            let is_used = flags & IN_AN_ITEM != 0 && flags & (NOT_A_TASK | lacking) == 0;
            coverage.rows_used += u64::from(is_used);
        }
        coverage
    }

    /// Records for every metric over a part of the rows how many of them it covers.
    pub(crate) fn cover(
        &self,
        metrics: &mut Metrics,
        policy: MissingPredictions,
        is_in_part: impl Fn(usize) -> bool + Copy,
    ) {
        let answers = self.coverage(Needs::Answers, policy, is_in_part);
        let scores = self.coverage(Needs::Scores, policy, is_in_part);
        for (name, estimate) in metrics {
            estimate.coverage = if Needs::of(name) == Needs::Scores { scores } else { answers };
        }
    }
}
