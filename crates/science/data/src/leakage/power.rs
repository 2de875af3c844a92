//! How well one feature, or two together, predict the label: out of sample, minus the score on random labels.
//!
//! The predictor is a table: the feature's values fall into bins, and each bin predicts what the rows of the other
//! folds in it have most often (a label of classes) or on average (a label of numbers, by rank). Its score is the part
//! of the error that it removes from a predictor that uses only the label: 0 is nothing, 1 is everything. That is the
//! scale of the predictive power score (ppscore), whose 0.8 Deepchecks warns at; minus the score on shuffled labels.

use std::collections::HashMap;

use trackway_core::{Rng, SplitMix64};

use crate::values::sampled::{Content, Values, each_bits};

/// Labels of at most so many different numbers are classes.
const CLASS_NUMBERS_MAX: usize = 20;

/// The most classes; rarer ones are one class together.
const CLASSES_MAX: usize = 64;

/// Folds: each row is predicted from the others' rows.
const FOLDS: usize = 4;

/// A bin predicts for itself from so many rows on.
const BIN_ROWS_MIN: f64 = 3.0;

/// How often labels are shuffled to estimate the score of a useless feature.
const SHUFFLES: u64 = 3;

/// What is predicted, for each row of a sample.
#[derive(Debug, Clone)]
pub(super) enum Label {
    /// Classes, numbered; [`Label::NONE`] where it is missing or unknown.
    Classes { of_rows: Vec<u8>, count: usize },
    /// The fraction of the known labels below it; NaN if it is missing.
    Ranks(Vec<f64>),
}

/// How labels are encoded: derived from the training side.
pub(super) enum LabelCode {
    Classes(HashMap<u64, u8>),
    Sorted(Vec<f64>),
}

impl Label {
    pub(super) const NONE: u8 = u8::MAX;

    fn len(&self) -> usize {
        match self {
            Self::Classes { of_rows, .. } => of_rows.len(),
            Self::Ranks(ranks) => ranks.len(),
        }
    }

    /// Labels in another order, always the same for a seed.
    fn shuffled(&self, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let mut order: Vec<usize> = (0..self.len()).collect();
        for end in (1..order.len()).rev() {
            order.swap(end, (rng.next_u64() % (end as u64 + 1)) as usize);
        }
        match self {
            Self::Classes { of_rows, count } => {
                Self::Classes { of_rows: order.iter().map(|row| of_rows[*row]).collect(), count: *count }
            }
            Self::Ranks(ranks) => Self::Ranks(order.iter().map(|row| ranks[*row]).collect()),
        }
    }
}

impl LabelCode {
    /// Learns from the training side; `None` where fewer than two different labels are known.
    pub(super) fn learn(values: &Values) -> Option<Self> {
        let by_frequency = by_frequency(values);
        if by_frequency.len() < 2 {
            return None;
        }
        if let Content::Numbers(numbers) = &values.content
            && by_frequency.len() > CLASS_NUMBERS_MAX
        {
            return Some(Self::Sorted(sorted(numbers)));
        }
        let class = |(index, bits): (usize, u64)| (bits, index.min(CLASSES_MAX - 1) as u8);
        Some(Self::Classes(by_frequency.into_iter().enumerate().map(class).collect()))
    }

    pub(super) fn read(&self, values: &Values) -> Label {
        match (self, &values.content) {
            (Self::Sorted(sorted), Content::Numbers(numbers)) => Label::Ranks(
                numbers
                    .iter()
                    .map(|number| match number.is_nan() {
                        true => f64::NAN,
                        false => sorted.partition_point(|other| other < number) as f64 / sorted.len() as f64,
                    })
                    .collect(),
            ),
            (Self::Classes(classes), content) => {
                let count = classes.values().max().map_or(0, |last| usize::from(*last) + 1);
                let mut of_rows = vec![Label::NONE; content.len()];
                each_bits(values, |row, bits| {
                    of_rows[row] = classes.get(&bits).copied().unwrap_or(Label::NONE);
                });
                Label::Classes { of_rows, count }
            }
            (Self::Sorted(_), Content::Codes(codes)) => Label::Ranks(vec![f64::NAN; codes.len()]),
        }
    }
}

/// The different values, the most frequent first, as the bits that identify them.
fn by_frequency(values: &Values) -> Vec<u64> {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    each_bits(values, |_, bits| *counts.entry(bits).or_default() += 1);
    let mut by_count: Vec<(u64, u64)> = counts.into_iter().collect();
    by_count.sort_by_key(|(bits, count)| (std::cmp::Reverse(*count), *bits));
    by_count.into_iter().map(|(bits, _)| bits).collect()
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = numbers.iter().copied().filter(|number| !number.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// How the values of a column fall into bins: derived from the training side.
pub(super) enum Binning {
    /// Upper bounds, inclusive; the last bin is open. Bin 0 is for what is missing.
    Edges(Vec<f64>),
    /// The frequent values; the others are in one bin.
    Codes(HashMap<u64, u8>),
}

impl Binning {
    /// At most `bins` bins (up to 256), each of about as many rows.
    pub(super) fn learn(values: &Values, bins: usize) -> Self {
        match &values.content {
            Content::Numbers(numbers) => Self::Edges(edges(&sorted(numbers), bins.saturating_sub(2).max(1))),
            Content::Codes(_) => {
                let kept = by_frequency(values).into_iter().take(bins.saturating_sub(2));
                Self::Codes(kept.enumerate().map(|(index, bits)| (bits, index as u8 + 2)).collect())
            }
        }
    }

    /// The bin of each row.
    pub(super) fn read(&self, values: &Values) -> Vec<u8> {
        let mut bins = vec![0; values.content.len()];
        match (self, &values.content) {
            (Self::Edges(edges), Content::Numbers(numbers)) => {
                for (bin, number) in bins.iter_mut().zip(numbers).filter(|(_, number)| !number.is_nan()) {
                    *bin = edges.partition_point(|edge| edge < number) as u8 + 1;
                }
            }
            (Self::Codes(codes), Content::Codes(_)) => {
                each_bits(values, |row, bits| bins[row] = codes.get(&bits).copied().unwrap_or(1));
            }
            // One side has no value at all.
            _ => {}
        }
        bins
    }
}

/// Between `bins` parts of about as many values; one for each value if there are few different ones.
fn edges(sorted: &[f64], bins: usize) -> Vec<f64> {
    let mut different: Vec<f64> = Vec::with_capacity(bins + 1);
    for value in sorted {
        if different.last() != Some(value) {
            different.push(*value);
            if different.len() > bins {
                break;
            }
        }
    }
    if different.len() <= bins {
        different.pop();
        return different;
    }
    let mut edges: Vec<f64> = (1..bins).map(|part| sorted[part * sorted.len() / bins]).collect();
    edges.dedup();
    edges
}

/// A label, and the same label shuffled a few times.
pub(super) struct Target {
    pub(super) label: Label,
    shuffled: Vec<Label>,
    /// The fold of each row.
    folds: Vec<u8>,
}

impl Target {
    /// `hashes` are of the rows' places.
    pub(super) fn new(label: Label, hashes: impl Iterator<Item = u64>) -> Self {
        let shuffled = (0..SHUFFLES).map(|seed| label.shuffled(seed)).collect();
        Self { label, shuffled, folds: hashes.map(fold_of).collect() }
    }

    /// The score of bins on the rows they were derived from, each fold predicted by the others, minus the best score on
    /// shuffled labels. 0 if that is below `least`.
    pub(super) fn power(&self, bins: &[usize], bin_count: usize, least: f64) -> f64 {
        let found = out_of_fold(bins, bin_count, &self.label, &self.folds);
        if found <= least {
            return 0.0;
        }
        let expected = self.shuffled.iter().map(|label| out_of_fold(bins, bin_count, label, &self.folds));
        (found - expected.fold(0.0, f64::max)).max(0.0)
    }
}

/// Four folds, by a hash of the row's place.
fn fold_of(hash: u64) -> u8 {
    (hash >> 40) as u8 % FOLDS as u8
}

fn out_of_fold(bins: &[usize], bin_count: usize, label: &Label, folds: &[u8]) -> f64 {
    match label {
        Label::Classes { of_rows, count } => {
            let mut tables = vec![vec![0.0; bin_count * count]; FOLDS];
            for (row, class) in of_rows.iter().enumerate().filter(|(_, class)| **class != Label::NONE) {
                tables[usize::from(folds[row])][bins[row] * count + usize::from(*class)] += 1.0;
            }
            let all = summed(&tables);
            let (mut hits, mut base_hits, mut rows) = (0.0, 0.0, 0.0);
            for table in &tables {
                let others: Vec<f64> = all.iter().zip(table).map(|(all, own)| all - own).collect();
                let (right, base_right) = class_hits(&others, table, *count);
                hits += right;
                base_hits += base_right;
                rows += table.iter().sum::<f64>();
            }
            gain_of_hits(hits, base_hits, rows)
        }
        Label::Ranks(ranks) => {
            let mut tables = vec![vec![(0.0, 0.0, 0.0); bin_count]; FOLDS];
            for (row, rank) in ranks.iter().enumerate().filter(|(_, rank)| !rank.is_nan()) {
                add_rank(&mut tables[usize::from(folds[row])][bins[row]], *rank);
            }
            let (mut error, mut base_error) = (0.0, 0.0);
            for (fold, table) in tables.iter().enumerate() {
                let others = tables.iter().enumerate().filter(|(other, _)| *other != fold).map(|(_, it)| it);
                let (more, more_base) = rank_errors(&summed_ranks(others, bin_count), table);
                error += more;
                base_error += more_base;
            }
            gain_of_errors(error, base_error)
        }
    }
}

/// The score of bins on other rows than those they were derived from.
pub(super) fn power_elsewhere(
    (bins, label): (&[usize], &Label),
    (other_bins, other_label): (&[usize], &Label),
    bin_count: usize,
) -> f64 {
    match (label, other_label) {
        (Label::Classes { of_rows, count }, Label::Classes { of_rows: other_rows, .. }) => {
            let table = |bins: &[usize], rows: &[u8]| {
                let mut table = vec![0.0; bin_count * count];
                for (bin, class) in bins.iter().zip(rows).filter(|(_, class)| **class != Label::NONE) {
                    table[bin * count + usize::from(*class)] += 1.0;
                }
                table
            };
            let (learnt, tested) = (table(bins, of_rows), table(other_bins, other_rows));
            let (hits, base_hits) = class_hits(&learnt, &tested, *count);
            gain_of_hits(hits, base_hits, tested.iter().sum())
        }
        (Label::Ranks(ranks), Label::Ranks(other_ranks)) => {
            let table = |bins: &[usize], ranks: &[f64]| {
                let mut table = vec![(0.0, 0.0, 0.0); bin_count];
                for (bin, rank) in bins.iter().zip(ranks).filter(|(_, rank)| !rank.is_nan()) {
                    add_rank(&mut table[*bin], *rank);
                }
                table
            };
            let (error, base_error) = rank_errors(&table(bins, ranks), &table(other_bins, other_ranks));
            gain_of_errors(error, base_error)
        }
        _ => 0.0,
    }
}

fn summed(tables: &[Vec<f64>]) -> Vec<f64> {
    let mut all = tables[0].clone();
    for table in &tables[1..] {
        all.iter_mut().zip(table).for_each(|(sum, more)| *sum += more);
    }
    all
}

/// Rows predicted right by their bins, and by the most frequent class alone.
fn class_hits(learnt: &[f64], tested: &[f64], count: usize) -> (f64, f64) {
    let mut totals = vec![0.0; count];
    learnt.chunks(count).for_each(|bin| totals.iter_mut().zip(bin).for_each(|(sum, more)| *sum += more));
    let most = most_of(&totals);
    let (mut hits, mut base_hits) = (0.0, 0.0);
    for (learnt, tested) in learnt.chunks(count).zip(tested.chunks(count)) {
        let enough = learnt.iter().sum::<f64>() >= BIN_ROWS_MIN;
        hits += tested[if enough { most_of(learnt) } else { most }];
        base_hits += tested[most];
    }
    (hits, base_hits)
}

fn most_of(counts: &[f64]) -> usize {
    let better = |best: usize, next: usize| if counts[next] > counts[best] { next } else { best };
    (0..counts.len()).reduce(better).unwrap_or(0)
}

fn gain_of_hits(hits: f64, base_hits: f64, rows: f64) -> f64 {
    if rows > base_hits { (hits - base_hits) / (rows - base_hits) } else { 0.0 }
}

/// Count, sum and sum of squares.
type RankSums = (f64, f64, f64);

fn add_rank(bin: &mut RankSums, rank: f64) {
    *bin = (bin.0 + 1.0, bin.1 + rank, bin.2 + rank * rank);
}

fn summed_ranks<'t>(tables: impl Iterator<Item = &'t Vec<RankSums>>, bin_count: usize) -> Vec<RankSums> {
    let mut all = vec![(0.0, 0.0, 0.0); bin_count];
    for table in tables {
        for (sum, more) in all.iter_mut().zip(table) {
            *sum = (sum.0 + more.0, sum.1 + more.1, sum.2 + more.2);
        }
    }
    all
}

/// Squared errors of the bins' means, and of the mean of all.
fn rank_errors(learnt: &[RankSums], tested: &[RankSums]) -> (f64, f64) {
    let (count, sum) = learnt.iter().fold((0.0, 0.0), |(count, sum), bin| (count + bin.0, sum + bin.1));
    let mean = if count > 0.0 { sum / count } else { 0.5 };
    let squares = |tested: &RankSums, at: f64| tested.2 - 2.0 * at * tested.1 + tested.0 * at * at;
    learnt.iter().zip(tested).fold((0.0, 0.0), |(error, base_error), (learnt, tested)| {
        let own = if learnt.0 >= BIN_ROWS_MIN { learnt.1 / learnt.0 } else { mean };
        (error + squares(tested, own), base_error + squares(tested, mean))
    })
}

/// As a fraction of the spread, not of its square: near the scale of absolute errors.
fn gain_of_errors(error: f64, base_error: f64) -> f64 {
    if base_error > 0.0 { 1.0 - (error / base_error).max(0.0).sqrt() } else { 0.0 }
}
