//! Confident learning: which given labels an out-of-fold model contradicts with more confidence than usual.
//!
//! C. Northcutt, L. Jiang, I. Chuang, "Confident learning: estimating uncertainty in dataset labels" (2021).

use crate::model::{MISSING_CODE, Predictions};

/// A label is suspect if mistakes explain at least this part of the probability that the model gives it. The model
/// gives rare labels too much (it shrinks towards the middle), so this is low: of labels just above it one in four was
/// wrong on planted tables, and clean tables have next to none.
const MISTAKE_PROBABILITY_MIN: f64 = 0.05;

/// The rate of mistakes is measured where the model is most confident: in this fraction of its rows.
const SUREST_SHARE: f64 = 0.25;

/// A mean of equal numbers may be a little more than each of them.
const ROUNDING: f64 = 1e-9;

/// A row whose label is suspect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuspectRow {
    /// Its index.
    pub row: usize,
    /// The class given.
    pub given: usize,
    /// The class that the model finds most likely.
    pub likely: usize,
    /// The probability of the given class.
    pub given_probability: f64,
    /// The probability of the likely class.
    pub likely_probability: f64,
}

impl SuspectRow {
    /// How much more likely the other class is, −1 to 1: what suspects are ranked by (the normalised margin).
    #[must_use]
    pub fn margin(&self) -> f64 {
        self.likely_probability - self.given_probability
    }
}

/// What confident learning finds.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelErrors {
    /// Suspects, the surest first.
    pub suspects: Vec<SuspectRow>,
    /// The estimated fraction of rows by given class (outer) and true class (inner); sums to one.
    pub joint: Vec<Vec<f64>>,
    /// Rows with a class.
    pub rows: usize,
}

impl LabelErrors {
    /// The estimated fraction of labels that are wrong: the joint outside its diagonal.
    #[must_use]
    pub fn noise_fraction(&self) -> f64 {
        let right: f64 = (0..self.joint.len()).map(|class| self.joint[class][class]).sum();
        (1.0 - right).max(0.0)
    }
}

/// Given classes beside the predictions of a model.
struct Rows<'r> {
    of_row: &'r [u32],
    predictions: &'r Predictions,
    classes: usize,
}

/// Finds suspect labels. `of_row` is each row's class, [`MISSING_CODE`] for rows without one; the probabilities must
/// come from models that did not train on the rows they predict.
///
/// Each class has a threshold, the mean probability of its rows; a row counts as confidently of a class where it
/// reaches that class's threshold. The counts by given and confident class, scaled to the classes' sizes, estimate the
/// joint of given and true labels. For each pair of classes as many rows are taken as the joint gives, those with the
/// largest margin (pruning by noise rate), unless the given label is a rare true one rather than a mistake: see
/// `mistake_chance`.
#[must_use]
pub fn label_errors(of_row: &[u32], predictions: &Predictions) -> LabelErrors {
    let rows = Rows { of_row, predictions, classes: predictions.outputs };
    let joint = rows.joint();
    let labelled = rows.labelled().count();
    let rates = rows.mistake_rates();
    let mut suspects = Vec::new();
    for (given, shares) in joint.iter().enumerate() {
        for (likely, share) in shares.iter().enumerate().filter(|(likely, _)| *likely != given) {
            let expected = (share * labelled as f64).round() as usize;
            suspects.extend(rows.surest(given, likely, expected, rates[likely][given]));
        }
    }
    suspects.sort_by(|one: &SuspectRow, other| {
        other.margin().total_cmp(&one.margin()).then(one.row.cmp(&other.row))
    });
    LabelErrors { suspects, joint, rows: labelled }
}

/// What the model contradicts where it is surest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Surest {
    /// Of the quarter of the rows that it is surest of, and of the next one: labels that it contradicts, and rows.
    pub(super) quarters: [(u64, u64); 2],
}

impl Surest {
    pub(super) fn of(of_row: &[u32], predictions: &Predictions) -> Self {
        let rows = Rows { of_row, predictions, classes: predictions.outputs };
        let row = |(row, given): (usize, usize)| {
            let said = predictions.row(row);
            let most = said.iter().copied().fold(0.0, f64::max);
            (most, said[given] < most)
        };
        let mut said: Vec<(f64, bool)> = rows.labelled().map(row).collect();
        said.sort_by(|one, other| other.0.total_cmp(&one.0));
        let quarter = (said.len() as f64 * SUREST_SHARE).ceil() as usize;
        // Equally sure rows belong together.
        let end = |from: usize| {
            let last = said.get((from + quarter).saturating_sub(1)).map_or(0.0, |(most, _)| *most);
            said.partition_point(|(most, _)| *most >= last)
        };
        let first = end(0);
        let counted = |of: &[(f64, bool)]| {
            (of.iter().filter(|(_, contradicted)| *contradicted).count() as u64, of.len() as u64)
        };
        Self { quarters: [counted(&said[..first]), counted(&said[first..end(first)])] }
    }
}

impl Rows<'_> {
    /// Rows with a class.
    fn labelled(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let rows = self.of_row.iter().enumerate().filter(|(_, class)| **class != MISSING_CODE);
        rows.map(|(row, class)| (row, *class as usize))
    }

    fn thresholds(&self) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.classes];
        for (row, class) in self.labelled() {
            sums[class].0 += self.predictions.row(row)[class];
            sums[class].1 += 1.0;
        }
        sums.into_iter().map(|(sum, count)| if count > 0.0 { sum / count } else { f64::INFINITY }).collect()
    }

    fn joint(&self) -> Vec<Vec<f64>> {
        let thresholds = self.thresholds();
        let mut counts = vec![vec![0.0; self.classes]; self.classes];
        let mut given_rows = vec![0.0; self.classes];
        for (row, given) in self.labelled() {
            given_rows[given] += 1.0;
            let said = self.predictions.row(row);
            let confident = (0..self.classes).filter(|class| said[*class] >= thresholds[*class] - ROUNDING);
            if let Some(class) = confident.max_by(|one, other| said[*one].total_cmp(&said[*other])) {
                counts[given][class] += 1.0;
            }
        }
        let all: f64 = given_rows.iter().sum();
        for (given, row) in counts.iter_mut().enumerate() {
            let sum: f64 = row.iter().sum();
            // A class without any confident row is unknown: its labels are kept.
            if sum == 0.0 {
                row[given] = 1.0;
            }
            let scale = given_rows[given] / sum.max(1.0) / f64::max(all, 1.0);
            row.iter_mut().for_each(|count| *count *= scale);
        }
        counts
    }

    /// How often a row that is surely of one class (outer) is given another one (inner): the fraction of that label
    /// among the [`SUREST_SHARE`] of the rows that the model finds most likely to be of the class. The irreducible
    /// error is least there, so what is left are mistakes.
    fn mistake_rates(&self) -> Vec<Vec<f64>> {
        let mut rates = vec![vec![0.0; self.classes]; self.classes];
        for (class, rates) in rates.iter_mut().enumerate() {
            let mut likely: Vec<(f64, usize)> = self
                .labelled()
                .map(|(row, given)| (self.predictions.row(row), given))
                .filter(|(said, _)| said.iter().all(|other| *other <= said[class]))
                .map(|(said, given)| (said[class], given))
                .collect();
            if likely.is_empty() {
                continue;
            }
            let surest = (likely.len() as f64 * SUREST_SHARE).ceil() as usize;
            let (_, (least, _), _) =
                likely.select_nth_unstable_by(surest - 1, |one, other| other.0.total_cmp(&one.0));
            // Equally sure rows belong together.
            let least = *least;
            likely.retain(|(said, _)| *said >= least);
            likely.iter().for_each(|(_, given)| rates[*given] += 1.0 / likely.len() as f64);
        }
        rates
    }

    /// The rows of a pair of classes that are suspect, at most `expected`.
    fn surest(&self, given: usize, likely: usize, expected: usize, rate: f64) -> Vec<SuspectRow> {
        let of_pair = self.labelled().filter(|(_, class)| *class == given).filter_map(|(row, _)| {
            let said = self.predictions.row(row);
            let is_likely = said.iter().all(|other| *other <= said[likely]) && said[likely] > said[given];
            let (given_probability, likely_probability) = (said[given], said[likely]);
            let suspect = SuspectRow { row, given, likely, given_probability, likely_probability };
            (is_likely && mistake_probability(&suspect, rate) >= MISTAKE_PROBABILITY_MIN).then_some(suspect)
        });
        let mut found: Vec<SuspectRow> = of_pair.collect();
        found.sort_by(|one, other| other.margin().total_cmp(&one.margin()).then(one.row.cmp(&other.row)));
        found.truncate(expected);
        found
    }
}

/// The probability that a label is a mistake: of the probability that the model gives this label here, the part that
/// mistakes explain. The model is trained on the labels as they are, so where a class is certain it still gives the
/// other label `rate`; anything above that is the other class itself.
fn mistake_probability(suspect: &SuspectRow, rate: f64) -> f64 {
    (rate * suspect.likely_probability / suspect.given_probability.max(f64::MIN_POSITIVE)).min(1.0)
}
