//! Confidence sequences: a band around the running mean of a stream that holds at every time at once, so that a caller
//! may look after each value and stop at any time. An interval for one sample size that is looked at again and again is
//! wrong sooner or later.
//!
//! What a band holds at time `t` is the average of the means that the values had, given what came before: the values
//! need be neither independent nor alike, as the losses of a model that learns are not.

use crate::Interval;
use crate::interval::normal_quantile;

/// A band for a stream whose values are between known bounds; it holds for every number of values.
///
/// The empirical-Bernstein sequence with a stitched boundary of Howard, Ramdas, McAuliffe and Sekhon (Annals of
/// Statistics 49, 2021: theorem 4 and equation 10, with η = 2 and s = 1.4).
#[derive(Debug, Clone, PartialEq)]
pub struct BoundedMean {
    bounds: Interval,
    alpha: f64,
    count: u64,
    sum: f64,
    /// Squares of how far each value was from the mean of those before it, in units of the bounds' distance.
    variation: f64,
    is_outside: bool,
}

impl BoundedMean {
    /// For values within `bounds`; `confidence` such as 0.95.
    #[must_use]
    pub fn new(bounds: Interval, confidence: f64) -> Self {
        Self { bounds, alpha: 1.0 - confidence, count: 0, sum: 0.0, variation: 0.0, is_outside: false }
    }

    /// Takes the next value. One that is not within the bounds ends the promise: there is no band from then on.
    pub fn push(&mut self, value: f64) {
        if !self.bounds.holds(value) {
            self.is_outside = true;
            return;
        }
        let scaled = (value - self.bounds.low) / self.width();
        let foretold = if self.count == 0 { 0.5 } else { self.sum / self.count as f64 };
        self.variation += (scaled - foretold).powi(2);
        self.sum += scaled;
        self.count += 1;
    }

    /// The band now; `None` before the first value, and after one outside of the bounds.
    #[must_use]
    pub fn band(&self) -> Option<Interval> {
        if self.count == 0 || self.is_outside {
            return None;
        }
        let count = self.count as f64;
        let half = stitched(self.variation, self.alpha / 2.0) / count;
        let at = |share: f64| self.bounds.low + share.clamp(0.0, 1.0) * self.width();
        let mean = self.sum / count;
        Some(Interval { low: at(mean - half), high: at(mean + half) })
    }

    fn width(&self) -> f64 {
        self.bounds.high - self.bounds.low
    }
}

/// How far the sum of values within `[0, 1]` is from that of their means, at most, at every time, but for a probability
/// of `alpha`; by the observed variation.
fn stitched(variation: f64, alpha: f64) -> f64 {
    const ETA: f64 = 2.0;
    const S: f64 = 1.4;
    /// ζ(1.4)
    const ZETA: f64 = 3.105_546_1;
    let variation = variation.max(1.0);
    let level = S * (variation.ln() / ETA.ln() + 1.0).ln() + (ZETA / alpha).ln();
    let k1 = (ETA.powf(0.25) + ETA.powf(-0.25)) / std::f64::consts::SQRT_2;
    let k2 = f64::midpoint(ETA.sqrt(), 1.0);
    (k1 * k1 * variation * level + k2 * k2 * level * level).sqrt() + k2 * level
}

/// A band for a stream of any finite variance. It holds as the number of values grows; it is given from
/// [`VALUES_MIN`] values on.
///
/// The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (Annals of Statistics 52,
/// 2024: theorem 2.2), narrowest at [`NARROWEST_AT`] values.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningMean {
    alpha: f64,
    count: u64,
    mean: f64,
    squares: f64,
    is_finite: bool,
}

/// With fewer values their variance is too uncertain for the band to hold.
pub const VALUES_MIN: u64 = 100;
/// The number of values at which a [`RunningMean`] is as narrow as such a band can be.
pub const NARROWEST_AT: f64 = 1_000.0;

impl RunningMean {
    /// `confidence` such as 0.95.
    #[must_use]
    pub fn new(confidence: f64) -> Self {
        Self { alpha: 1.0 - confidence, count: 0, mean: 0.0, squares: 0.0, is_finite: true }
    }

    /// Takes the next value. One that is not finite ends the promise: there is no band from then on.
    pub fn push(&mut self, value: f64) {
        self.is_finite &= value.is_finite();
        if !self.is_finite {
            return;
        }
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }

    /// Values so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; `None` before the first one, and after one that is not finite.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0 && self.is_finite).then_some(self.mean)
    }

    /// The square of the standard error of the mean. Where the mean moves meanwhile it is too large rather than too
    /// small.
    fn error_squared(&self) -> f64 {
        self.squares / (self.count as f64 * self.count.saturating_sub(1) as f64)
    }

    /// The band now; `None` before [`VALUES_MIN`] values, and after one that is not finite.
    #[must_use]
    pub fn band(&self) -> Option<Interval> {
        if self.count < VALUES_MIN || !self.is_finite {
            return None;
        }
        let count = self.count as f64;
        let variance = self.squares / count;
        // ρ² that makes the band narrowest at a given count (their appendix B.2).
        let log_alpha = -2.0 * self.alpha.ln();
        let rho_squared = (log_alpha + (log_alpha + 1.0).ln()) / NARROWEST_AT;
        let grown = count * rho_squared + 1.0;
        let half = (variance * 2.0 * grown / (count * count * rho_squared)
            * (grown.sqrt() / self.alpha).ln())
        .sqrt();
        Some(Interval { low: self.mean - half, high: self.mean + half })
    }
}

/// How far the mean fell from one window of a stream to the next, for a caller that compares window after window and
/// stops at any time: all bands of a stream hold together, but for a probability of `1 - confidence`, because the
/// `look`-th comparison (the first is 1) is given only `1 / (look (look + 1))` of it. `None` if a window has fewer than
/// [`VALUES_MIN`] values, or one that is not finite.
///
/// The sum of what the values of both windows are off their means is a martingale, which is about normal for so many
/// values (Hall and Heyde, Martingale Limit Theory, 1980, theorem 3.2); looks divide the probability as in Bonferroni's
/// inequality.
#[must_use]
pub fn fall_between(
    before: &RunningMean,
    after: &RunningMean,
    look: u64,
    confidence: f64,
) -> Option<Interval> {
    if before.count.min(after.count) < VALUES_MIN {
        return None;
    }
    let fall = before.mean()? - after.mean()?;
    let look = look.max(1) as f64;
    let tail = (1.0 - confidence) / (look * (look + 1.0));
    let half = normal_quantile(1.0 - tail / 2.0) * (before.error_squared() + after.error_squared()).sqrt();
    Some(Interval { low: fall - half, high: fall + half })
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng as _, SplitMix64};

    use super::*;

    const STREAMS: u64 = 2_000;
    const LENGTH: u64 = 5_000;

    /// The fraction of streams in which the band misses the average mean at any time: for a caller that stops when it
    /// does.
    fn missed(mut stream: impl FnMut(u64, &mut SplitMix64) -> (f64, f64), band: impl Fn() -> Band) -> f64 {
        let mut misses = 0;
        for seed in 0..STREAMS {
            let mut rng = SplitMix64::new(seed);
            let mut band = band();
            let mut means = 0.0;
            let missed = (1..=LENGTH).any(|time| {
                let (value, mean) = stream(time, &mut rng);
                means += mean;
                band.push(value);
                band.band().is_some_and(|band| !band.holds(means / time as f64))
            });
            misses += u64::from(missed);
        }
        misses as f64 / STREAMS as f64
    }

    enum Band {
        Bounded(BoundedMean),
        Running(RunningMean),
    }

    impl Band {
        fn bounded() -> Self {
            Self::Bounded(BoundedMean::new(Interval { low: 0.0, high: 1.0 }, 0.95))
        }

        fn running() -> Self {
            Self::Running(RunningMean::new(0.95))
        }

        fn push(&mut self, value: f64) {
            match self {
                Self::Bounded(band) => band.push(value),
                Self::Running(band) => band.push(value),
            }
        }

        fn band(&self) -> Option<Interval> {
            match self {
                Self::Bounded(band) => band.band(),
                Self::Running(band) => band.band(),
            }
        }
    }

    fn coin(share: f64) -> impl Fn(u64, &mut SplitMix64) -> (f64, f64) {
        move |_, rng| (f64::from(u8::from(rng.next_unit() < share)), share)
    }

    /// A loss that falls as a model learns, with a long tail.
    fn falling_loss(time: u64, rng: &mut SplitMix64) -> (f64, f64) {
        let mean = 0.5 + 2.0 / (time as f64).sqrt();
        (-mean * (1.0 - rng.next_unit()).ln(), mean)
    }

    /// Proves that the bounded band holds at every time of 2,000 streams of 5,000 values, for fair, rare and certain
    /// coins and for a fraction that changes; with a margin for randomness.
    #[test]
    fn the_bounded_band_holds_whenever_one_looks() {
        for share in [0.5, 0.01, 1.0] {
            let share = missed(coin(share), Band::bounded);
            assert!(share <= 0.06, "{share}");
        }
        let moving = missed(
            |time, rng| {
                let share = if (time / 100) % 2 == 0 { 0.2 } else { 0.7 };
                (f64::from(u8::from(rng.next_unit() < share)), share)
            },
            Band::bounded,
        );
        assert!(moving <= 0.06, "{moving}");
    }

    /// Proves that the band for any variance holds at every time too, for a skewed loss that falls; and that an
    /// interval for one sample size, looked at again and again, does not.
    #[test]
    fn the_running_band_holds_whenever_one_looks() {
        let running = missed(falling_loss, Band::running);
        assert!(running <= 0.06, "{running}");
        let mut misses = 0;
        for seed in 0..STREAMS {
            let (mut rng, mut sum) = (SplitMix64::new(seed), 0.0);
            misses += u64::from((1..=LENGTH).any(|time| {
                sum += falling_or_not(&mut rng);
                time >= VALUES_MIN && (sum / time as f64).abs() > 1.96 / (time as f64).sqrt()
            }));
        }
        assert!(misses as f64 / STREAMS as f64 > 0.2, "{misses}");
    }

    /// A value of mean 0 and variance 1.
    fn falling_or_not(rng: &mut SplitMix64) -> f64 {
        if rng.next_unit() < 0.5 { 1.0 } else { -1.0 }
    }

    /// Proves that the bands are useful: they narrow as values come, and little variation makes them narrow.
    #[test]
    fn the_bands_are_narrow() {
        let width = |mut band: Band, count: u64, stream: &dyn Fn(u64, &mut SplitMix64) -> (f64, f64)| {
            let mut rng = SplitMix64::new(3);
            (1..=count).for_each(|time| band.push(stream(time, &mut rng).0));
            band.band().map_or(f64::INFINITY, |band| band.high - band.low)
        };
        assert!(width(Band::bounded(), 10_000, &coin(0.5)) < 0.05);
        assert!(width(Band::bounded(), 10_000, &coin(0.0)) < 0.005);
        let at = [100, 1_000, 10_000].map(|count| width(Band::running(), count, &coin(0.5)));
        assert!(at[0] > at[1] && at[1] > at[2] && at[1] < 0.11 && at[2] < 0.04, "{at:?}");
        assert_eq!(width(Band::running(), VALUES_MIN - 1, &coin(0.5)), f64::INFINITY);
    }

    /// Proves that a value which breaks what was promised of the stream ends the band.
    #[test]
    fn a_broken_promise_ends_the_band() {
        let mut bounded = BoundedMean::new(Interval { low: 0.0, high: 2.0 }, 0.95);
        assert_eq!(bounded.band(), None);
        bounded.push(1.5);
        assert!(bounded.band().is_some_and(|band| band.holds(1.5)));
        bounded.push(2.5);
        assert_eq!(bounded.band(), None);
        let mut running = RunningMean::new(0.95);
        (0..200).for_each(|value| running.push(f64::from(value)));
        assert!(running.band().is_some());
        running.push(f64::NAN);
        running.push(1.0);
        assert_eq!((running.band(), running.count()), (None, 200));
    }

    /// Proves that the falls from window to window are within their bands at every comparison of a stream at once, for
    /// a skewed loss that falls and one that stays level; and that bands which do not divide the probability are not.
    #[test]
    fn falls_are_within_their_bands_whichever_window_one_stops_at() {
        const WINDOW: u64 = 200;
        let missed = |mean: &dyn Fn(u64) -> f64, shared: bool| {
            let misses = (0..STREAMS).filter(|seed| {
                let mut rng = SplitMix64::new(*seed);
                let mut before: Option<(RunningMean, f64)> = None;
                (0..LENGTH / WINDOW).any(|window| {
                    let (mut now, mut true_mean) = (RunningMean::new(0.95), 0.0);
                    for time in 1 + window * WINDOW..=(window + 1) * WINDOW {
                        now.push(-mean(time) * (1.0 - rng.next_unit()).ln());
                        true_mean += mean(time) / WINDOW as f64;
                    }
                    let look = if shared { window } else { 1 };
                    let missed = before.as_ref().is_some_and(|(before, true_before)| {
                        let band = fall_between(before, &now, look, 0.95);
                        band.is_none_or(|band| !band.holds(true_before - true_mean))
                    });
                    before = Some((now, true_mean));
                    missed
                })
            });
            misses.count() as f64 / STREAMS as f64
        };
        let falls = |time: u64| 0.5 + 2.0 / (time as f64).sqrt();
        for share in [missed(&falls, true), missed(&|_| 1.0, true)] {
            assert!(share <= 0.06, "{share}");
        }
        assert!(missed(&|_| 1.0, false) > 0.15);
        let few = RunningMean::new(0.95);
        assert_eq!(fall_between(&few, &few, 1, 0.95), None);
    }
}
