//! Metrics of the order of scores of two classes: one pass through rows sorted once, whatever their weights.

/// Rows in the order of their scores.
#[derive(Debug, Clone)]
pub(crate) struct RankedRows {
    /// Items that have a score, by falling score; absent where all items are in that order already.
    order: Option<Vec<u32>>,
    /// In that order: bit 0 for positives, bit 1 where the score is another one than the next row's.
    flags: Vec<u8>,
}

/// Numbers of one pass; NaN where a class has no rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankNumbers {
    pub roc_auc: f64,
    pub average_precision: f64,
    pub precision_at_recall: f64,
}

const POSITIVE: u8 = 1;
const LAST_OF_TIE: u8 = 2;

impl RankedRows {
    pub(crate) fn new(scores: &[f64], is_positive: impl Fn(usize) -> bool) -> Self {
        let has_score = |item: &u32| !scores[*item as usize].is_nan();
        let is_sorted =
            scores.windows(2).all(|pair| pair[0] >= pair[1]) && scores.first().is_none_or(|it| !it.is_nan());
        let mut order: Vec<u32> = (0..scores.len() as u32).filter(has_score).collect();
        if !is_sorted {
            order.sort_by(|one, other| scores[*other as usize].total_cmp(&scores[*one as usize]));
        }
        let at = |place: usize| order[place] as usize;
        let flag = |place: usize| {
            let ends = place + 1 == order.len() || scores[at(place)] != scores[at(place + 1)];
            u8::from(is_positive(at(place))) * POSITIVE + u8::from(ends) * LAST_OF_TIE
        };
        let flags = (0..order.len()).map(flag).collect();
        Self { order: (!is_sorted).then_some(order), flags }
    }

    /// Definitions are scikit-learn's: the area by trapezoids, ties counting half; the sum of precision over the steps
    /// of recall; the best precision where at least `recall` of the positives are found.
    pub(crate) fn numbers(&self, weights: &[u8], recall: f64) -> RankNumbers {
        match &self.order {
            None => pass(&self.flags, || weights.iter().copied(), recall),
            Some(order) => pass(&self.flags, || order.iter().map(|item| weights[*item as usize]), recall),
        }
    }

    /// At the end of each tie, from the highest score on: positives and negatives so far.
    pub(crate) fn steps(&self) -> Vec<(u64, u64)> {
        let (mut positives, mut negatives) = (0, 0);
        let mut steps = Vec::new();
        for flag in &self.flags {
            positives += u64::from(flag & POSITIVE);
            negatives += u64::from(flag & POSITIVE == 0);
            if flag & LAST_OF_TIE != 0 {
                steps.push((positives, negatives));
            }
        }
        steps
    }
}

impl RankedRows {
    /// The standard error of the area under the ROC curve (E. DeLong et al. 1988), every row counted once. NaN where a
    /// class has fewer than two rows.
    pub(crate) fn standard_error(&self) -> f64 {
        let steps = self.steps();
        let Some(&(positives, negatives)) = steps.last() else { return f64::NAN };
        let (positives, negatives) = (positives as f64, negatives as f64);
        let (mut of_positives, mut of_negatives) = (Moments::default(), Moments::default());
        let mut before = (0, 0);
        for step in steps {
            let tied = ((step.0 - before.0) as f64, (step.1 - before.1) as f64);
            // The fraction of the other side that a row beats, or that beats it.
            of_positives.add((negatives - before.1 as f64 - tied.1 / 2.0) / negatives, tied.0);
            of_negatives.add((before.0 as f64 + tied.0 / 2.0) / positives, tied.1);
            before = step;
        }
        (of_positives.variance() / positives + of_negatives.variance() / negatives).sqrt()
    }
}

/// Count, mean and sum of squared distances from it.
#[derive(Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64, times: f64) {
        if times > 0.0 {
            self.count += times;
            let distance = value - self.mean;
            self.mean += distance * times / self.count;
            self.squares += times * distance * (value - self.mean);
        }
    }

    fn variance(&self) -> f64 {
        if self.count > 1.0 { self.squares / (self.count - 1.0) } else { f64::NAN }
    }
}

fn pass<I: Iterator<Item = u8>>(flags: &[u8], weights: impl Fn() -> I, recall: f64) -> RankNumbers {
    let positive = |flag: &u8, weight: u8| u64::from(weight * (flag & POSITIVE));
    let (mut all, mut positives) = (0u64, 0u64);
    for (flag, weight) in flags.iter().zip(weights()) {
        all += u64::from(weight);
        positives += positive(flag, weight);
    }
    let wanted = (recall * positives as f64).ceil() as u64;
    let negatives = all - positives;
    let (mut found, mut seen, mut tied_positives, mut tied) = (0u64, 0u64, 0u64, 0u64);
    // Twice the pairs that are in the right order, so that ties count in whole numbers.
    let mut twice_won = 0u64;
    let (mut precision_sum, mut best) = (0.0f64, 0.0f64);
    for (flag, weight) in flags.iter().zip(weights()) {
        tied += u64::from(weight);
        tied_positives += positive(flag, weight);
        if flag & LAST_OF_TIE != 0 {
            twice_won += (tied - tied_positives) * (2 * found + tied_positives);
            found += tied_positives;
            seen += tied;
            let precision = found as f64 / seen.max(1) as f64;
            precision_sum += tied_positives as f64 * precision;
            best = if found >= wanted && precision > best { precision } else { best };
            (tied, tied_positives) = (0, 0);
        }
    }
    let or_nan = |value: f64, exists: bool| if exists { value } else { f64::NAN };
    RankNumbers {
        roc_auc: or_nan(
            twice_won as f64 / (2.0 * positives as f64 * negatives as f64),
            positives > 0 && negatives > 0,
        ),
        average_precision: or_nan(precision_sum / positives as f64, positives > 0),
        precision_at_recall: or_nan(best, positives > 0),
    }
}
