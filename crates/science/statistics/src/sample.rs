//! Samples of numbers with weights, such as what a quantile sketch keeps.

/// Values in ascending order with their weights: a distribution function in steps.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedSample {
    /// Distinct values with the weight up to and including each.
    steps: Vec<(f64, f64)>,
}

impl WeightedSample {
    /// Of values with weights, in any order. NaN and weights that are not positive are left out.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut steps: Vec<_> =
            values.into_iter().filter(|(value, weight)| !value.is_nan() && *weight > 0.0).collect();
        steps.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let mut cumulative = 0.0;
        for step in &mut steps {
            cumulative += step.1;
            step.1 = cumulative;
        }
        // Of equal values the last holds the weight of all.
        steps.reverse();
        steps.dedup_by(|next, kept| next.0 == kept.0);
        steps.reverse();
        Self { steps }
    }

    /// The weight of everything.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.1)
    }

    /// Proportions within each of the bins that the ascending `edges` part: below the first, up to the last, above.
    /// A value on an edge belongs to the bin below it.
    #[must_use]
    pub fn proportions(&self, edges: &[f64]) -> Vec<f64> {
        let up_to: Vec<_> = edges.iter().map(|edge| self.proportion_up_to(*edge)).chain([1.0]).collect();
        let below = [0.0].into_iter().chain(up_to.iter().copied());
        up_to.iter().zip(below).map(|(upper, lower)| upper - lower).collect()
    }

    /// The fraction of the weight at values of at most `value`; NaN for an empty sample.
    pub(crate) fn proportion_up_to(&self, value: f64) -> f64 {
        let steps = self.steps.partition_point(|step| step.0 <= value);
        let cumulative = if steps == 0 { 0.0 } else { self.steps[steps - 1].1 };
        cumulative / self.weight()
    }

    /// The smallest value with at least this fraction of the weight at or below it; `None` for an empty sample.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = share * self.weight();
        let index = self.steps.partition_point(|step| step.1 < wanted);
        self.steps.get(index.min(self.steps.len().saturating_sub(1))).map(|step| step.0)
    }

    /// The Kolmogorov–Smirnov statistic: the largest distance of the two distribution functions, between 0 and 1.
    #[must_use]
    pub fn kolmogorov_smirnov(&self, other: &Self) -> f64 {
        self.walk(other).map(|(_, own, others)| (own - others).abs()).fold(f64::NAN, f64::max)
    }

    /// The first Wasserstein distance, in the unit of the values: how far the weight must be moved on average. The
    /// same as SciPy's `wasserstein_distance`. Infinite values make it infinite or NaN.
    #[must_use]
    pub fn wasserstein(&self, other: &Self) -> f64 {
        let walked: Vec<_> = self.walk(other).collect();
        let moved = walked.windows(2).map(|pair| (pair[0].1 - pair[0].2).abs() * (pair[1].0 - pair[0].0));
        if walked.is_empty() { f64::NAN } else { moved.sum() }
    }

    /// Every value of either with both distribution functions there; nothing when one of them is empty.
    fn walk<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
        let (own_weight, other_weight) = (self.weight(), other.weight());
        let (mut own, mut others) = (0, 0);
        let empty = own_weight == 0.0 || other_weight == 0.0;
        let reached = |steps: &[(f64, f64)], count: usize| if count == 0 { 0.0 } else { steps[count - 1].1 };
        std::iter::from_fn(move || {
            let value = match (self.steps.get(own), other.steps.get(others)) {
                _ if empty => return None,
                (Some(one), Some(two)) => one.0.min(two.0),
                (Some(step), None) | (None, Some(step)) => step.0,
                (None, None) => return None,
            };
            own += usize::from(self.steps.get(own).is_some_and(|step| step.0 == value));
            others += usize::from(other.steps.get(others).is_some_and(|step| step.0 == value));
            let shares =
                (reached(&self.steps, own) / own_weight, reached(&other.steps, others) / other_weight);
            Some((value, shares.0, shares.1))
        })
    }
}
