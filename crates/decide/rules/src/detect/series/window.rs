//! The median and the spread of the last values, exactly, in constant memory.

/// Values that a window holds. OLMo-core's rule for skipped steps looks at 128 as well.
pub(in crate::detect) const WINDOW: usize = 128;

/// Makes the median of absolute deviations comparable with a standard deviation, for normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;

/// The last [`WINDOW`] finite values, sorted as well as in order.
#[derive(Debug, Clone)]
pub(in crate::detect) struct Window {
    ring: [f64; WINDOW],
    sorted: [f64; WINDOW],
    len: usize,
    next: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { ring: [0.0; WINDOW], sorted: [0.0; WINDOW], len: 0, next: 0 }
    }
}

impl Window {
    pub(in crate::detect) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::detect) fn clear(&mut self) {
        (self.len, self.next) = (0, 0);
    }

    /// Takes a finite value; the oldest one goes when the window is full.
    pub(in crate::detect) fn push(&mut self, value: f64) {
        debug_assert!(value.is_finite(), "only finite values have an order");
        if self.len == WINDOW {
            self.replace(self.ring[self.next], value);
        } else {
            let at = self.position(value);
            self.sorted.copy_within(at..self.len, at + 1);
            self.sorted[at] = value;
            self.len += 1;
        }
        self.ring[self.next] = value;
        self.next = (self.next + 1) % WINDOW;
    }

    /// Moves only what is between the place that gets free and the place of the new value.
    fn replace(&mut self, old: f64, value: f64) {
        let (from, to) = (self.position(old), self.position(value));
        if to > from {
            self.sorted.copy_within(from + 1..to, from);
            self.sorted[to - 1] = value;
        } else {
            self.sorted.copy_within(to..from, to + 1);
            self.sorted[to] = value;
        }
    }

    fn position(&self, value: f64) -> usize {
        self.sorted[..self.len].partition_point(|other| *other < value)
    }

    /// The median; 0 when there is no value.
    pub(in crate::detect) fn median(&self) -> f64 {
        if self.len == 0 { 0.0 } else { self.sorted[self.len / 2] }
    }

    /// The spread about the median, as a standard deviation would be for normal noise.
    pub(in crate::detect) fn sigma(&self) -> f64 {
        if self.len == 0 {
            return 0.0;
        }
        let (sorted, middle) = (&self.sorted[..self.len], self.len / 2);
        let median = sorted[middle];
        // The half of the values that is nearest to the median is a run of the sorted ones: the shortest reach of such
        // a run is found by halving, because what it costs on one side falls while it grows on the other.
        let half = self.len / 2;
        let (mut low, mut high) = (middle.saturating_sub(half), middle.min(self.len - 1 - half));
        while low < high {
            let start = (low + high) / 2;
            let end = start + half;
            if end >= self.len || median - sorted[start] <= sorted[end] - median {
                high = start;
            } else {
                low = start + 1;
            }
        }
        let reach = |start: usize| {
            let end = (start + half).min(self.len - 1);
            (median - sorted[start]).max(sorted[end] - median)
        };
        let best = if low > 0 { reach(low).min(reach(low - 1)) } else { reach(low) };
        MAD_TO_SIGMA * best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trackway_core::{Rng, SplitMix64};

    /// Proves that median and spread are those of a plain sort, while values come and go, ties included.
    #[test]
    fn the_window_agrees_with_a_plain_sort() {
        let mut rng = SplitMix64::new(3);
        let mut window = Window::default();
        let mut all = Vec::new();
        for turn in 0..1000 {
            let value = (rng.next_unit() * 50.0).floor() * if turn % 3 == 0 { -1.0 } else { 0.1 };
            all.push(value);
            window.push(value);
            let mut last = all[all.len().saturating_sub(WINDOW)..].to_vec();
            last.sort_by(f64::total_cmp);
            let median = last[last.len() / 2];
            assert_eq!(window.median(), median);
            let mut deviations: Vec<f64> = last.iter().map(|value| (value - median).abs()).collect();
            deviations.sort_by(f64::total_cmp);
            let expected = MAD_TO_SIGMA * deviations[last.len() / 2];
            assert!((window.sigma() - expected).abs() < 1e-9, "{turn}: {} {expected}", window.sigma());
        }
    }
}
