//! Everything that is computed of a set of items, with every item counted as often as it was drawn: the numbers
//! themselves (each item once), and the numbers of a draw.

use super::boxes::{MeanPrecision, Precisions};
use super::calibrated::Calibrated;
use super::cells::{ClassMean, cell_table, of_classes};
use super::pixels::Pixels;
use super::ranked::{RankNumbers, RankedRows};
use super::ratio::{Link, Ratio, Terms};
use super::resample::{Resampling, Units, draw, draw_strata};
use super::rows::{Amounts, Classes, Content, Items};
use super::uplift::{Effect, Experiment, Sorted};

/// scikit-learn's: the distance from `1` that counts as different, and the least value that an error is related to.
const EPSILON: f64 = f64::EPSILON;

/// How one metric is computed.
#[derive(Debug, Clone)]
pub(crate) enum Recipe {
    Ratio(Box<Ratio>),
    ClassMean(ClassMean),
    /// As the average precision the mean over classes, each against all others, with three and more of them.
    RocAuc,
    AveragePrecision,
    PrecisionAtRecall,
    Calibration,
    Effect(Effect),
    MeanIou,
    MeanPrecision(MeanPrecision),
}

impl Recipe {
    /// Whether it is computed from the confusion matrix.
    fn needs_counts(&self) -> bool {
        match self {
            Self::Ratio(ratio) => matches!(ratio.terms, Terms::Cells { .. }),
            Self::ClassMean(_) => true,
            _ => false,
        }
    }
}

/// A metric by its name.
#[derive(Debug, Clone)]
pub(crate) struct Metric {
    pub name: String,
    pub recipe: Recipe,
}

/// Items made ready to be counted again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scoring {
    pub items: usize,
    pub groups: Option<(Vec<u32>, usize)>,
    pub metrics: Vec<Metric>,
    /// For each item its cell of the confusion matrix.
    pub cells: Vec<u32>,
    pub classes: usize,
    /// By the score of the positive class, or by those of each of three and more.
    pub ranked: Vec<RankedRows>,
    calibrated: Option<Calibrated>,
    pub experiment: Option<Sorted>,
    pub pixels: Option<Pixels>,
    precisions: Option<Precisions>,
    recall: f64,
}

impl Scoring {
    /// `recall` is that of `precision_at_recall`.
    pub(crate) fn of(items: &Items, recall: f64) -> Self {
        let groups = items.groups.clone();
        let mut scoring = Self { items: items.len(), groups, recall, ..Self::default() };
        match &items.content {
            Content::Classes(classes) => scoring.add_classes(classes),
            Content::Amounts(amounts) => scoring.add_amounts(amounts),
            Content::Experiment(rows) => scoring.add_experiment(rows),
            Content::Pixels(pixels) => scoring.add_pixels(pixels),
            Content::Boxes(boxes) if boxes.has_both() => {
                scoring.precisions = Some(Precisions::new(boxes));
                scoring.add_recipe("map", Recipe::MeanPrecision(MeanPrecision::All));
                scoring.add_recipe("map_50", Recipe::MeanPrecision(MeanPrecision::At50));
                scoring.add_recipe("map_75", Recipe::MeanPrecision(MeanPrecision::At75));
            }
            Content::Boxes(_) => {}
            Content::Sums(sums) => sums.iter().for_each(|sum| scoring.add(sum.clone())),
        }
        scoring
    }

    /// For each resample, the numbers that `values` computes from how often each item was sampled; in an experiment as
    /// many treated rows and others as there are, unless rows are resampled by groups that have both.
    pub(crate) fn draw(
        &self,
        resampling: Resampling,
        values: impl Fn(&[u8]) -> Vec<f64> + Sync,
    ) -> Vec<Vec<f64>> {
        match self.strata() {
            Some(strata) => draw_strata(self.units(), &strata, resampling, values),
            None => draw(self.units(), resampling, values),
        }
    }

    /// For each unit whether it was treated.
    fn strata(&self) -> Option<Vec<bool>> {
        let treated = &self.experiment.as_ref()?.rows().treated;
        let Some((of_item, groups)) = &self.groups else { return Some(treated.clone()) };
        let mut of_group: Vec<Option<bool>> = vec![None; *groups];
        for (group, treated) in of_item.iter().zip(treated) {
            if *of_group[*group as usize].get_or_insert(*treated) != *treated {
                return None;
            }
        }
        of_group.into_iter().collect()
    }

    /// Only this metric, and what it needs.
    pub(crate) fn only(mut self, name: &str) -> Self {
        self.metrics.retain(|metric| metric.name == name);
        self
    }

    pub(crate) fn units(&self) -> Units<'_> {
        match &self.groups {
            None => Units::Items(self.items),
            Some((of_item, groups)) => Units::Groups(of_item, *groups),
        }
    }

    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == name)
    }

    fn add(&mut self, ratio: Ratio) {
        self.metrics.push(Metric { name: ratio.name.clone(), recipe: Recipe::Ratio(Box::new(ratio)) });
    }

    fn add_recipe(&mut self, name: &str, recipe: Recipe) {
        self.metrics.push(Metric { name: name.to_owned(), recipe });
    }

    fn add_classes(&mut self, rows: &Classes) {
        let classes = rows.names.len();
        self.classes = classes;
        self.cells = rows.cells();
        let hits = cell_table(classes, |l, p| p == Some(l));
        self.add(Ratio::cells("accuracy", hits, cell_table(classes, |_, _| true), Link::Itself));
        self.add_recipe("balanced_accuracy", Recipe::ClassMean(ClassMean::BalancedAccuracy));
        if let Some(costs) = &rows.costs {
            let all = cell_table(classes, |_, _| true);
            self.add(Ratio { is_share: false, ..Ratio::cells("cost", costs.to_vec(), all, Link::Itself) });
        }
        match rows.positive {
            Some(positive) => {
                class_ratios(classes, positive as usize).into_iter().for_each(|ratio| self.add(ratio));
                let of_positive = positive as usize;
                let found = cell_table(classes, |l, p| l == of_positive && p == Some(of_positive));
                let there = cell_table(classes, |l, _| l == of_positive);
                self.add(Ratio::cells("sensitivity", found, there, Link::Itself));
                let spared =
                    cell_table(classes, |l, p| l != of_positive && p.is_some_and(|p| p != of_positive));
                let absent = cell_table(classes, |l, _| l != of_positive);
                self.add(Ratio::cells("specificity", spared, absent, Link::Itself));
                self.add_score(rows, positive);
            }
            None => {
                self.add_recipe("precision", Recipe::ClassMean(ClassMean::Precision));
                self.add_recipe("recall", Recipe::ClassMean(ClassMean::Recall));
                self.add_recipe("f1", Recipe::ClassMean(ClassMean::F1));
                self.add_class_scores(rows);
            }
        }
    }

    fn add_score(&mut self, rows: &Classes, positive: u32) {
        let Some(scores) = &rows.score else { return };
        let is_positive = |item: usize| rows.label[item] == positive;
        self.ranked = vec![RankedRows::new(scores, is_positive)];
        self.add_recipe("roc_auc", Recipe::RocAuc);
        self.add_recipe("average_precision", Recipe::AveragePrecision);
        self.add_recipe("precision_at_recall", Recipe::PrecisionAtRecall);
        if !rows.are_probabilities {
            return;
        }
        let truth = |item: usize| f64::from(u8::from(is_positive(item)));
        let log_loss = |(item, score): (usize, &f64)| {
            let given = if is_positive(item) { *score } else { 1.0 - score };
            -given.clamp(EPSILON, 1.0 - EPSILON).ln()
        };
        let log_loss = scores.iter().enumerate().map(log_loss).collect();
        self.add(Ratio::mean_of_known("log_loss", log_loss));
        let square = |(item, score): (usize, &f64)| (score - truth(item)).powi(2);
        self.add(Ratio::mean_of_known("brier", scores.iter().enumerate().map(square).collect()));
        self.calibrated = Some(Calibrated::new(scores, truth));
        self.add_recipe("ece", Recipe::Calibration);
    }

    fn add_class_scores(&mut self, rows: &Classes) {
        if rows.class_scores.is_empty() {
            return;
        }
        let ranked = rows.class_scores.iter().enumerate();
        self.ranked = ranked
            .map(|(class, scores)| RankedRows::new(scores, |item| rows.label[item] as usize == class))
            .collect();
        self.add_recipe("roc_auc", Recipe::RocAuc);
        self.add_recipe("average_precision", Recipe::AveragePrecision);
        if !rows.are_probabilities {
            return;
        }
        let items = 0..self.items;
        let log_loss = |item: usize| {
            -rows.class_scores[rows.label[item] as usize][item].clamp(EPSILON, 1.0 - EPSILON).ln()
        };
        self.add(Ratio::mean_of_known("log_loss", items.clone().map(log_loss).collect()));
        let squares = |item: usize| -> f64 {
            let truth = |class: usize| f64::from(u8::from(rows.label[item] as usize == class));
            let of = |(class, scores): (usize, &Vec<f64>)| (scores[item] - truth(class)).powi(2);
            rows.class_scores.iter().enumerate().map(of).sum()
        };
        self.add(Ratio::mean_of_known("brier", items.clone().map(squares).collect()));
        let surest = |item: usize| {
            let better = |best: usize, class: usize| {
                if rows.class_scores[class][item] > rows.class_scores[best][item] { class } else { best }
            };
            (0..self.classes).reduce(better).expect("there is a class")
        };
        let surest: Vec<usize> = items.map(surest).collect();
        let sure: Vec<f64> =
            surest.iter().enumerate().map(|(item, class)| rows.class_scores[*class][item]).collect();
        let is_right = |item: usize| f64::from(u8::from(rows.label[item] as usize == surest[item]));
        self.calibrated = Some(Calibrated::new(&sure, is_right));
        self.add_recipe("ece", Recipe::Calibration);
    }

    fn add_amounts(&mut self, rows: &Amounts) {
        let pairs = || rows.label.iter().zip(&rows.prediction);
        let error = |(label, prediction): (&f64, &f64)| label - prediction;
        let squared_error: Vec<f64> = pairs().map(error).map(|error| error * error).collect();
        self.add(Ratio::mean("mae", pairs().map(error).map(f64::abs).collect(), Link::Itself));
        self.add(Ratio::mean("rmse", squared_error.clone(), Link::Root));
        let relative = |pair: (&f64, &f64)| error(pair).abs() / pair.0.abs().max(EPSILON);
        self.add(Ratio::mean("mape", pairs().map(relative).collect(), Link::Itself));
        self.add_totals(rows);
        self.add_pinball(rows);
        let mean = rows.label.iter().sum::<f64>() / self.items as f64;
        let spread = rows.label.iter().map(|label| (label - mean).powi(2)).collect();
        self.add(Ratio {
            name: "r2".to_owned(),
            terms: Terms::Items { above: squared_error, below: Some(spread) },
            link: Link::Complement,
            is_share: false,
        });
    }

    fn add_experiment(&mut self, rows: &Experiment) {
        let sorted = Sorted::new(rows);
        if sorted.is_binary() {
            self.add_recipe("qini", Recipe::Effect(Effect::Qini));
            self.add_recipe("auuc", Recipe::Effect(Effect::Uplift));
        }
        self.add_recipe("uplift_at_30", Recipe::Effect(Effect::Top));
        self.add_recipe("ate", Recipe::Effect(Effect::Average));
        self.experiment = Some(sorted);
    }

    fn add_pixels(&mut self, pixels: &Pixels) {
        pixels.ratios().into_iter().for_each(|ratio| self.add(ratio));
        if pixels.classes.is_some() {
            self.add_recipe("mean_iou", Recipe::MeanIou);
        }
        self.pixels = Some(pixels.clone());
    }

    /// Errors by their sum: whether predictions are too high or too low, and by which part of the labels.
    fn add_totals(&mut self, rows: &Amounts) {
        let excess: Vec<f64> =
            rows.label.iter().zip(&rows.prediction).map(|(label, prediction)| prediction - label).collect();
        let sizes = rows.label.iter().map(|label| label.abs()).collect();
        let errors = excess.iter().map(|excess| excess.abs()).collect();
        self.add(Ratio::mean("bias", excess.clone(), Link::Itself));
        // The sum of predictions over that of labels, less 1.
        self.add(Ratio::of_sums("relative_bias", excess, rows.label.clone()));
        self.add(Ratio::of_sums("wape", errors, sizes));
    }

    /// Of each predicted quantile, and the mean over them; of the prediction as the median if there are none.
    fn add_pinball(&mut self, rows: &Amounts) {
        let loss = |share: f64, predicted: &[f64]| -> Vec<f64> {
            let one = |(label, predicted): (&f64, &f64)| {
                let error = label - predicted;
                (share * error).max((share - 1.0) * error)
            };
            rows.label.iter().zip(predicted).map(one).collect()
        };
        if rows.quantiles.is_empty() {
            return self.add(Ratio::mean("pinball", loss(0.5, &rows.prediction), Link::Itself));
        }
        let mut all = vec![0.0; self.items];
        for (name, predicted) in &rows.quantiles {
            let own = loss(name.parse().unwrap_or(0.5), predicted);
            let part = 1.0 / rows.quantiles.len() as f64;
            all.iter_mut().zip(&own).for_each(|(all, own)| *all += own * part);
            self.add(Ratio::mean(&format!("pinball_{name}"), own, Link::Itself));
        }
        self.add(Ratio::mean("pinball", all, Link::Itself));
    }

    /// The confusion matrix of a draw.
    pub(crate) fn counts(&self, weights: &[u8]) -> Vec<f64> {
        let mut counts = vec![0u64; self.classes * (self.classes + 1)];
        for (cell, weight) in self.cells.iter().zip(weights) {
            counts[*cell as usize] += u64::from(*weight);
        }
        counts.into_iter().map(|count| count as f64).collect()
    }

    /// The metrics for which `wanted` holds, in their order; NaN for the others and where there is nothing to divide
    /// by.
    pub(crate) fn values(&self, weights: &[u8], wanted: impl Fn(&Metric) -> bool) -> Vec<f64> {
        let counts = match self.metrics.iter().any(|metric| metric.recipe.needs_counts() && wanted(metric)) {
            true => self.counts(weights),
            false => Vec::new(),
        };
        let classes = if counts.is_empty() { Vec::new() } else { of_classes(&counts, self.classes) };
        let (mut ranks, mut effects, mut precisions) = (None, None, None);
        let mut value = |recipe: &Recipe| match recipe {
            Recipe::Ratio(ratio) => ratio.value(weights, &counts),
            Recipe::ClassMean(mean) => mean.value(&classes),
            Recipe::RocAuc | Recipe::AveragePrecision | Recipe::PrecisionAtRecall => {
                let of_each = ranks.get_or_insert_with(|| {
                    let numbers = self.ranked.iter().map(|it| it.numbers(weights, self.recall));
                    numbers.collect::<Vec<_>>()
                });
                let number = |numbers: &RankNumbers| match recipe {
                    Recipe::RocAuc => numbers.roc_auc,
                    Recipe::AveragePrecision => numbers.average_precision,
                    _ => numbers.precision_at_recall,
                };
                of_each.iter().map(number).sum::<f64>() / of_each.len() as f64
            }
            Recipe::Calibration => self.calibrated.as_ref().map_or(f64::NAN, |it| it.error(weights)),
            Recipe::Effect(effect) => self
                .experiment
                .as_ref()
                .map_or(f64::NAN, |it| effects.get_or_insert_with(|| it.effects(weights)).get(*effect)),
            Recipe::MeanIou => self.pixels.as_ref().map_or(f64::NAN, |it| it.mean_iou(weights)),
            Recipe::MeanPrecision(mean) => self
                .precisions
                .as_ref()
                .map_or(f64::NAN, |it| mean.of(precisions.get_or_insert_with(|| it.means(weights)))),
        };
        let metrics = self.metrics.iter();
        metrics.map(|metric| if wanted(metric) { value(&metric.recipe) } else { f64::NAN }).collect()
    }
}

/// Precision, recall and F1 of one class against all others.
pub(crate) fn class_ratios(classes: usize, class: usize) -> [Ratio; 3] {
    let table = |is: &dyn Fn(usize, Option<usize>) -> bool| cell_table(classes, is);
    let hits = || table(&|l, p| l == class && p == Some(class));
    // No prediction is a false alarm of every class but the row's own.
    let alarms = |l: usize, p: Option<usize>| p.map_or(l != class, |p| p == class);
    [
        Ratio::cells("precision", hits(), table(&|l, p| alarms(l, p)), Link::Itself),
        Ratio::cells("recall", hits(), table(&|l, _| l == class), Link::Itself),
        Ratio::cells("f1", hits(), table(&|l, p| l == class || alarms(l, p)), Link::Dice),
    ]
}
