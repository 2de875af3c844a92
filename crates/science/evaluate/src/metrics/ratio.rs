//! Metrics that are a sum over a sum: fractions, means, and functions of them.

use trackway_statistics::{Interval, student_quantile, wilson};

use super::resample::Units;
use super::table::pick;
use crate::{Estimate, Method};

/// A metric that is the sum of what its items add above the line, over the sum below it.
#[derive(Debug, Clone)]
pub(crate) struct Ratio {
    pub name: String,
    pub terms: Terms,
    pub link: Link,
    /// Whether both sums count things, the upper one some of those of the lower one.
    pub is_share: bool,
}

/// What each item adds.
#[derive(Debug, Clone)]
pub(crate) enum Terms {
    /// Item by item; 1 below the line where there is nothing.
    Items { above: Vec<f64>, below: Option<Vec<f64>> },
    /// By the kind of the item: its label and prediction.
    Cells { above: Vec<f64>, below: Vec<f64> },
}

/// What becomes of the ratio. All of them rise with it, but for the complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Itself,
    Root,
    Exponential,
    /// 1 less the ratio: R² from the squared errors over the squared distances from the mean.
    Complement,
    /// From the fraction of hits among all hits and errors to F1 (Dice from Jaccard).
    Dice,
}

impl Link {
    pub(crate) fn apply(self, ratio: f64) -> f64 {
        match self {
            Self::Itself => ratio,
            Self::Root => ratio.max(0.0).sqrt(),
            Self::Exponential => ratio.exp(),
            Self::Complement => 1.0 - ratio,
            Self::Dice => 2.0 * ratio / (1.0 + ratio),
        }
    }
}

impl Ratio {
    pub(crate) fn mean(name: &str, values: Vec<f64>, link: Link) -> Self {
        Self::weighted(name, values, None, link)
    }

    /// One sum over another, or over the number of items.
    pub(crate) fn weighted(name: &str, above: Vec<f64>, below: Option<Vec<f64>>, link: Link) -> Self {
        Self { name: name.to_owned(), terms: Terms::Items { above, below }, link, is_share: false }
    }

    /// One sum over another; the lower one may have terms of both signs.
    pub(crate) fn of_sums(name: &str, above: Vec<f64>, below: Vec<f64>) -> Self {
        Self::weighted(name, above, Some(below), Link::Itself)
    }

    /// Of the known values; NaN means unknown.
    pub(crate) fn mean_of_known(name: &str, mut values: Vec<f64>) -> Self {
        if values.iter().all(|value| !value.is_nan()) {
            return Self::mean(name, values, Link::Itself);
        }
        let known = values.iter().map(|value| f64::from(u8::from(!value.is_nan()))).collect();
        values.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0);
        Self::of_sums(name, values, known)
    }

    pub(crate) fn share(name: &str, hits: Vec<f64>) -> Self {
        Self { is_share: true, ..Self::mean(name, hits, Link::Itself) }
    }

    /// Of a fraction of items, what each of them adds.
    pub(crate) fn hits(&self) -> Option<&[f64]> {
        match &self.terms {
            Terms::Items { above, .. } if self.is_share => Some(above),
            _ => None,
        }
    }

    /// Of some of the items, in the order given.
    pub(crate) fn subset(&self, items: &[u32]) -> Self {
        let terms = match &self.terms {
            Terms::Items { above, below } => Terms::Items {
                above: pick(above, items),
                below: below.as_ref().map(|below| pick(below, items)),
            },
            Terms::Cells { .. } => self.terms.clone(),
        };
        Self { name: self.name.clone(), terms, ..*self }
    }

    /// A fraction among the rows of some cells.
    pub(crate) fn cells(name: &str, above: Vec<f64>, below: Vec<f64>, link: Link) -> Self {
        Self { name: name.to_owned(), terms: Terms::Cells { above, below }, link, is_share: true }
    }

    fn term(&self, cells: &[u32], item: usize) -> (f64, f64) {
        match &self.terms {
            Terms::Items { above, below } => (above[item], below.as_ref().map_or(1.0, |below| below[item])),
            Terms::Cells { above, below } => (above[cells[item] as usize], below[cells[item] as usize]),
        }
    }

    /// The value of items that were drawn so often. NaN where there is nothing below the line.
    pub(crate) fn value(&self, weights: &[u8], counts: &[f64]) -> f64 {
        let (above, below) = match &self.terms {
            Terms::Items { above, below: None } => (
                weights.iter().zip(above).map(|(weight, above)| f64::from(*weight) * above).sum::<f64>(),
                weights.iter().map(|weight| u64::from(*weight)).sum::<u64>() as f64,
            ),
            Terms::Items { above, below: Some(below) } => (
                weights.iter().zip(above).map(|(weight, above)| f64::from(*weight) * above).sum(),
                weights.iter().zip(below).map(|(weight, below)| f64::from(*weight) * below).sum(),
            ),
            Terms::Cells { above, below } => (dot(counts, above), dot(counts, below)),
        };
        self.link.apply(above / below)
    }

    /// The number with its interval: Wilson's for a fraction (with the effective number of rows, if rows have groups),
    /// Student's for a mean, with the variance by linearization, summed by group. `None` if the denominator is empty.
    pub(crate) fn estimate(
        &self,
        cells: &[u32],
        counts: &[f64],
        units: Units<'_>,
        confidence: f64,
    ) -> Option<Estimate> {
        let items = units.items();
        let (above, below) = match &self.terms {
            Terms::Cells { above, below } => (dot(counts, above), dot(counts, below)),
            Terms::Items { above, below } => {
                (above.iter().sum(), below.as_ref().map_or(items as f64, |below| below.iter().sum()))
            }
        };
        if below.is_nan() || below == 0.0 {
            return None;
        }
        let ratio = above / below;
        let interval = if self.is_share && units.are_items() {
            wilson(above, below, confidence)
        } else {
            let is_open = self.has_open_denominator(units, confidence);
            let (variance, units) = self.variance(ratio, below, cells, items, units);
            if self.is_share {
                wilson_of_groups(ratio, variance, units, confidence)
            } else if is_open {
                Interval::UNKNOWN
            } else {
                student(ratio, variance, units, confidence, self.link)?
            }
        };
        let (low, high) = (self.link.apply(interval.low), self.link.apply(interval.high));
        let interval = match self.link {
            Link::Complement => Interval { low: high, high: low },
            Link::Dice => Interval { low: self.link.apply(interval.low.max(0.0)), high },
            _ => Interval { low, high },
        };
        let value = self.link.apply(ratio);
        let in_it = |item: &usize| self.term(cells, *item) != (0.0, 0.0);
        let support =
            if self.is_share { below.round() as u64 } else { (0..items).filter(in_it).count() as u64 };
        let method = units.method(Method::Analytic);
        value.is_finite().then(|| Estimate { method, ..Estimate::new(value, interval, support, method) })
    }

    /// Whether the lower sum, whose terms have both signs, may be 0 or of the other sign: then every number is
    /// consistent with the data (E. Fieller 1954).
    fn has_open_denominator(&self, units: Units<'_>, confidence: f64) -> bool {
        let Terms::Items { below: Some(below), .. } = &self.terms else { return false };
        if below.iter().all(|below| *below >= 0.0) {
            return false;
        }
        let sums = match units {
            Units::Items(_) => below.clone(),
            Units::Groups(of_item, groups) => {
                let mut sums = vec![0.0; groups];
                below.iter().zip(of_item).for_each(|(below, group)| sums[*group as usize] += below);
                sums
            }
        };
        let count = sums.len() as f64;
        let total: f64 = sums.iter().sum();
        let squares: f64 = sums.iter().map(|sum| (sum - total / count).powi(2)).sum();
        let half = student_quantile(f64::midpoint(1.0, confidence), count - 1.0)
            * (squares * count / (count - 1.0)).sqrt();
        half.is_nan() || half >= total.abs()
    }

    /// The variance of the ratio, and its number of independent units.
    fn variance(&self, ratio: f64, below: f64, cells: &[u32], items: usize, units: Units<'_>) -> (f64, f64) {
        let residual = |item: usize| {
            let (above, below) = self.term(cells, item);
            above - ratio * below
        };
        let (squares, count) = match units {
            Units::Items(_) => {
                let in_it = |item: &usize| self.term(cells, *item) != (0.0, 0.0);
                let squares = (0..items).map(|item| residual(item).powi(2)).sum::<f64>();
                (squares, (0..items).filter(in_it).count() as f64)
            }
            Units::Groups(of_item, groups) => {
                let mut sums = vec![0.0; groups];
                let mut counted = vec![false; groups];
                for item in 0..items {
                    sums[of_item[item] as usize] += residual(item);
                    counted[of_item[item] as usize] |= self.term(cells, item).1 != 0.0;
                }
                let count = counted.iter().filter(|counted| **counted).count() as f64;
                (sums.iter().map(|sum| sum * sum).sum::<f64>(), count)
            }
        };
        (squares * count / (count - 1.0) / (below * below), count)
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Wilson's interval of as many independent rows as give this variance, fewer by what the few groups cost (E. Korn and
/// B. Graubard 1998). Where the groups do not differ at all, each counts as one row.
fn wilson_of_groups(share: f64, variance: f64, groups: f64, confidence: f64) -> Interval {
    if groups < 2.0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let tail = f64::midpoint(1.0, confidence);
    let wider = (student_quantile(tail, 1e6) / student_quantile(tail, groups - 1.0)).powi(2);
    let worth = if variance > 0.0 { share * (1.0 - share) / variance } else { groups };
    let trials = (worth * wider).max(1.0);
    wilson(share * trials, trials, confidence)
}

/// Student's interval; of squares on the scale of logarithms, where a few large ones skew it less.
fn student(mean: f64, variance: f64, units: f64, confidence: f64, link: Link) -> Option<Interval> {
    if units < 2.0 {
        return Some(Interval::UNKNOWN);
    }
    let half = student_quantile(f64::midpoint(1.0, confidence), units - 1.0) * variance.sqrt();
    if matches!(link, Link::Root | Link::Complement) && mean > 0.0 {
        let factor = (half / mean).exp();
        return factor.is_finite().then_some(Interval { low: mean / factor, high: mean * factor });
    }
    half.is_finite().then_some(Interval { low: mean - half, high: mean + half })
}
