//! Target leakage: features that predict the label too well, alone or in pairs.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use trackway_core::checks::{CheckResult, Finding, Severity};

use super::golden::{self, GoldenFeature};
use super::power::{Binning, Label, LabelCode, Target, power_elsewhere};
use super::sample::{Sample, spread};
use crate::values::sampled::{Content, Values, each_bits};

/// From this power on, a feature predicts the label better than plausible.
const POWER_WARNS: f64 = 0.8;

/// A feature that predicts so much better on the training side than on the test side does not mean the same there.
const GAP_WARNS: f64 = 0.2;

/// A pair is reported only if it adds so much to the better of the two.
const PAIR_ADDS: f64 = 0.2;

/// A golden feature of less power is worth knowing, no more: some tasks have one good feature.
const GOLDEN_WARNS: f64 = 0.5;

/// Bins of a single feature.
const BINS: usize = 64;

/// Bins of each feature of a pair.
const PAIR_BINS: usize = 16;

/// The most pairs that are looked at: of the features with the most power.
const PAIRS_MAX: usize = 4950;

/// With fewer rows, the power of a feature is luck.
const ROWS_MIN: usize = 50;

/// A one-to-one recoding of the label is certain when its probability by coincidence is less than 2⁻⁴⁰.
const CERTAIN_BITS: f64 = 40.0;

/// How well one feature predicts the label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeaturePower {
    pub column: String,
    /// On the training side, out of sample, minus random labels: 0 nothing, 1 everything.
    pub train: f64,
    /// Trained on the training side, measured on the test side. `None` if no label is known there.
    pub test: Option<f64>,
    /// Whether it is the label, written differently.
    pub is_label: bool,
    /// Whether it is the label as it is: equal in every row.
    pub is_copy: bool,
}

/// How well two features together predict the label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairPower {
    pub columns: [String; 2],
    /// As [`FeaturePower::train`].
    pub train: f64,
    /// Of the better one of the two alone.
    pub better_alone: f64,
}

/// How well the features predict the label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetPower {
    /// Every feature, in the order of the columns.
    pub features: Vec<FeaturePower>,
    /// Pairs of power 0.8 or more with much more power than each alone, best first.
    pub pairs: Vec<PairPower>,
    /// A feature that alone predicts as well as all of them.
    pub golden: Option<GoldenFeature>,
    /// Pairs looked at.
    pub pairs_tried: usize,
    /// Pairs there are.
    pub pairs_all: usize,
    /// Rows of the training side that were looked at.
    pub train_rows: usize,
    /// Rows of the test side that were looked at.
    pub test_rows: usize,
}

/// Measures every feature, and pairs of them. `None` where no label is known, or too few rows have one.
pub(super) fn measure(names: &[String], train: &Sample, test: &Sample) -> Option<TargetPower> {
    let code = LabelCode::learn(train.label.as_ref()?)?;
    let label = code.read(train.label.as_ref()?);
    let known = match &label {
        Label::Classes { of_rows, .. } => of_rows.iter().filter(|class| **class != Label::NONE).count(),
        Label::Ranks(ranks) => ranks.iter().filter(|rank| !rank.is_nan()).count(),
    };
    if known < ROWS_MIN {
        return None;
    }
    let test_label = code.read(test.label.as_ref()?);
    let target = Target::new(label, train.places.iter().map(|place| spread(*place)));
    let features: Vec<FeaturePower> = (0..names.len())
        .into_par_iter()
        .map(|feature| {
            let (values, others) = (&train.features[feature], &test.features[feature]);
            let binning = Binning::learn(values, BINS);
            let (bins, other_bins) = (wide(&binning.read(values)), wide(&binning.read(others)));
            let known = train.label.as_ref().expect("it was read above");
            let is_label = is_recoding(values, known);
            FeaturePower {
                column: names[feature].clone(),
                train: target.power(&bins, BINS, 0.0),
                test: has_labels(&test_label)
                    .then(|| power_elsewhere((&bins, &target.label), (&other_bins, &test_label), BINS)),
                is_label,
                is_copy: is_label && is_equal(values, known),
            }
        })
        .collect();
    let best = features.iter().enumerate().max_by(|(_, one), (_, other)| one.train.total_cmp(&other.train));
    // What warns by its own power needs no second reason.
    let best = best.filter(|(_, it)| it.train < POWER_WARNS).map(|(index, it)| (index, it.train));
    let usable: Vec<usize> = (0..names.len()).filter(|it| is_usable(&train.features[*it])).collect();
    let golden = best.and_then(|best| golden::find(names, best, &usable, train, &target));
    let (pairs, pairs_tried) = pairs(&features, train, &target);
    let pairs_all = names.len() * names.len().saturating_sub(1) / 2;
    Some(TargetPower {
        features,
        pairs,
        golden,
        pairs_tried,
        pairs_all,
        train_rows: train.len(),
        test_rows: test.len(),
    })
}

/// Strings of which none repeats cannot be used by a model.
fn is_usable(values: &Values) -> bool {
    match &values.content {
        Content::Numbers(_) => true,
        Content::Codes(codes) => {
            let different: std::collections::HashSet<&u64> = codes.iter().collect();
            different.len() * 2 < codes.len()
        }
    }
}

fn wide(bins: &[u8]) -> Vec<usize> {
    bins.iter().map(|bin| usize::from(*bin)).collect()
}

fn has_labels(label: &Label) -> bool {
    match label {
        Label::Classes { of_rows, .. } => {
            of_rows.iter().filter(|class| **class != Label::NONE).count() >= ROWS_MIN
        }
        Label::Ranks(ranks) => ranks.iter().filter(|rank| !rank.is_nan()).count() >= ROWS_MIN,
    }
}

fn pairs(features: &[FeaturePower], train: &Sample, target: &Target) -> (Vec<PairPower>, usize) {
    // A feature that predicts everything does so in every pair as well.
    let mut order: Vec<usize> = (0..features.len()).filter(|it| features[*it].train < POWER_WARNS).collect();
    order.sort_by(|one, other| features[*other].train.total_cmp(&features[*one].train));
    let widest = (1..).take_while(|count| count * (count - 1) / 2 <= PAIRS_MAX).last().unwrap_or(1);
    order.truncate(widest);
    let bins: Vec<Vec<u8>> = order
        .par_iter()
        .map(|feature| {
            let values = &train.features[*feature];
            Binning::learn(values, PAIR_BINS).read(values)
        })
        .collect();
    let both: Vec<(usize, usize)> =
        (0..order.len()).flat_map(|one| (0..one).map(move |other| (other, one))).collect();
    let mut found: Vec<PairPower> = both
        .par_iter()
        .filter_map(|(one, other)| {
            let joint: Vec<usize> = bins[*one]
                .iter()
                .zip(&bins[*other])
                .map(|(one, other)| usize::from(*one) * PAIR_BINS + usize::from(*other))
                .collect();
            let (one, other) = (&features[order[*one]], &features[order[*other]]);
            let better_alone = one.train.max(other.train);
            let train = target.power(&joint, PAIR_BINS * PAIR_BINS, POWER_WARNS);
            (train >= POWER_WARNS && train - better_alone >= PAIR_ADDS).then(|| PairPower {
                columns: [one.column.clone(), other.column.clone()],
                train,
                better_alone,
            })
        })
        .collect();
    found.sort_by(|one, other| other.train.total_cmp(&one.train));
    (found, both.len())
}

/// Whether the feature is the label, written differently: each value of the one goes with one value of the other, or
/// the larger the one, the larger (or the smaller) the other, without an exception.
fn is_recoding(feature: &Values, label: &Values) -> bool {
    match (&feature.content, &label.content) {
        (Content::Numbers(values), Content::Numbers(labels)) if is_monotone(values, labels) => true,
        _ => is_one_to_one(feature, label),
    }
}

/// Whether both have the same value, or none, in every row.
fn is_equal(feature: &Values, label: &Values) -> bool {
    let bits = |values: &Values| {
        let mut of_rows = vec![None; values.content.len()];
        each_bits(values, |row, bits| of_rows[row] = Some(bits));
        of_rows
    };
    let is_same_kind = matches!(
        (&feature.content, &label.content),
        (Content::Numbers(_), Content::Numbers(_)) | (Content::Codes(_), Content::Codes(_))
    );
    is_same_kind && bits(feature) == bits(label)
}

fn is_one_to_one(feature: &Values, label: &Values) -> bool {
    let mut labels: HashMap<usize, u64> = HashMap::new();
    each_bits(label, |row, bits| {
        labels.insert(row, bits);
    });
    let (mut to, mut from): (HashMap<u64, u64>, HashMap<u64, u64>) = Default::default();
    let mut counts: HashMap<u64, f64> = HashMap::new();
    let (mut holds, mut rows) = (true, 0.0);
    each_bits(feature, |row, bits| {
        if let (true, Some(label)) = (holds, labels.get(&row)) {
            holds =
                *to.entry(bits).or_insert(*label) == *label && *from.entry(*label).or_insert(bits) == bits;
            *counts.entry(bits).or_default() += 1.0;
            rows += 1.0;
        }
    });
    // A value that occurs once is not evidence: it goes with one label whatever the column is.
    let bits: f64 =
        counts.values().filter(|count| **count > 1.0).map(|count| count * (rows / count).log2()).sum();
    holds && counts.len() > 1 && bits >= CERTAIN_BITS
}

fn is_monotone(values: &[f64], labels: &[f64]) -> bool {
    let mut both: Vec<(f64, f64)> = values
        .iter()
        .zip(labels)
        .filter(|(value, label)| !value.is_nan() && !label.is_nan())
        .map(|(value, label)| (*value, *label))
        .collect();
    both.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut different = 0.0;
    let (mut rises, mut falls) = (true, true);
    for pair in both.windows(2) {
        let ((value, label), (next_value, next_label)) = (pair[0], pair[1]);
        match value == next_value {
            true => (rises, falls) = (rises && label == next_label, falls && label == next_label),
            false => {
                different += 1.0;
                (rises, falls) = (rises && label < next_label, falls && label > next_label);
            }
        }
    }
    // The probability that a further value falls into the right place is one over the number of places.
    (rises || falls) && different * f64::log2(different + 1.0) >= CERTAIN_BITS * 2.0
}

impl TargetPower {
    /// `leakage.target`: features of certain or likely leakage. `rows` are those of the smaller side.
    #[must_use]
    pub fn result(&self, rows: u64, label: &str) -> CheckResult {
        let mut findings: Vec<Finding> =
            self.features.iter().filter_map(|it| self.finding(it, label)).collect();
        findings.extend(self.pairs.iter().take(5).map(|pair| {
            let [one, other] = &pair.columns;
            let message = format!(
                "`{one}` and `{other}` together predict `{label}` with power {:.2}, the better one alone with {:.2}",
                pair.train, pair.better_alone
            );
            Finding::new("leakage.target", Severity::Warn, message)
                .about(one)
                .action("check whether their difference or combination is only known once the label is")
        }));
        findings.extend(self.golden.as_ref().map(|golden| {
            let column = &golden.column;
            let message = format!(
                "`{column}` alone predicts `{label}` with power {:.2}, all features together with {:.2}",
                golden.alone, golden.all
            );
            let severity = if golden.alone >= GOLDEN_WARNS { Severity::Warn } else { Severity::Note };
            Finding::new("leakage.target", severity, message)
                .about(column)
                .action("check whether it is known at prediction time")
        }));
        let pairs = match self.pairs_tried == self.pairs_all {
            true => crate::counted(self.pairs_tried as u64, "pair"),
            false => format!("{} of {}", self.pairs_tried, crate::counted(self.pairs_all as u64, "pair")),
        };
        let has_test = self.features.iter().any(|it| it.test.is_some());
        let untested = match has_test {
            true => String::new(),
            false => format!(
                "; not measured on the test side, where fewer than {ROWS_MIN} rows have a label that the training side has"
            ),
        };
        let why = format!(
            "{} and {pairs} on {} training and {} test rows{untested}",
            crate::counted(self.features.len() as u64, "feature"),
            self.train_rows,
            self.test_rows
        );
        CheckResult::of_rows("leakage.target", rows, findings).because(why)
    }

    fn finding(&self, it: &FeaturePower, label: &str) -> Option<Finding> {
        let column = &it.column;
        // Worse than random on the test side counts as random: few rows do that to an uninformative feature.
        let gap = it.test.map_or(0.0, |test| it.train - test.max(0.0));
        let (severity, message) = if it.is_label {
            let rows = self.train_rows;
            let message = match it.is_copy {
                true => format!("`{column}` is a copy of `{label}`, in all {rows} rows looked at"),
                false => format!("`{column}` is `{label}` written differently, in all {rows} rows looked at"),
            };
            (Severity::Block, message)
        } else if it.train >= POWER_WARNS {
            let message = format!(
                "`{column}` alone predicts `{label}` with power {:.2} (0: not at all, 1: perfectly)",
                it.train
            );
            (Severity::Warn, message)
        } else if gap >= GAP_WARNS {
            let message = format!(
                "`{column}` predicts `{label}` with power {:.2} on the training side, but {:.2} on the test side",
                it.train,
                it.test.unwrap_or_default()
            );
            (Severity::Warn, message)
        } else {
            return None;
        };
        let action = match it.is_label {
            true => "remove the column",
            false => "check whether it is known at prediction time; remove it if not",
        };
        let name = if it.is_copy { super::LABEL_COPY } else { "leakage.target" };
        Some(Finding::new(name, severity, message).about(column).action(action))
    }

    /// The power of a column on the training side.
    #[must_use]
    pub fn of(&self, column: &str) -> Option<f64> {
        self.features.iter().find(|it| it.column == column).map(|it| it.train)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a gap between the sides warns if the training side predicts the label, and not if the test side only
    /// looks worse than random.
    #[test]
    fn a_gap_needs_something_to_lose() {
        let verdict = |train, test| {
            let feature = FeaturePower {
                column: "age".into(),
                train,
                test: Some(test),
                is_label: false,
                is_copy: false,
            };
            let power = TargetPower { features: vec![feature], ..TargetPower::default() };
            power.result(power.train_rows as u64, "stays").findings.len()
        };
        assert_eq!([verdict(0.0, -0.24), verdict(0.5, 0.45)], [0, 0]);
        assert_eq!([verdict(0.5, -0.24), verdict(0.5, 0.2)], [1, 1]);
    }
}
