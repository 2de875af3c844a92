//! How level a curve is, by means of many noisy values and how certain these are.

use super::curve::{Curve, Part};

/// Groups of blocks by whose means an error is known.
const GROUPS_MIN: usize = 8;
/// The first fraction of a curve that is left out, where a new model is fast; of the rest those of its beginning and of its end.
const FIRST: f64 = 0.1;
const BEGINNING: f64 = 0.2;
const END: f64 = 0.5;
/// Standard errors by which a single one of many blocks is lower for certain.
const LOWER: f64 = 4.0;

/// A mean, its standard error, and the deviation of a single value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mean {
    pub mean: f64,
    pub error: f64,
    pub spread: f64,
}

impl Mean {
    /// Of blocks in a row. Values in a row may be like each other: the error is the greatest of those by values and by
    /// groups of 1, 2, 4 … blocks (Flyvbjerg and Petersen 1989).
    pub fn of(blocks: &[Part]) -> Self {
        let sum = blocks.iter().fold(Part::default(), |sum, block| sum.with(*block));
        let size = blocks.first().map_or(0, |block| block.count);
        let full: Vec<f64> =
            blocks.iter().filter(|block| block.count == size).map(|block| block.mean).collect();
        let sizes = (0..6).map(|power| 1_usize << power);
        let error = sizes
            .take_while(|size| full.len() / size >= GROUPS_MIN)
            .map(|size| error_by_groups(&full, size))
            .fold(sum.error(), f64::max);
        Self { mean: sum.mean, error, spread: sum.spread() }
    }
}

fn error_by_groups(means: &[f64], size: usize) -> f64 {
    let mut groups = Part::default();
    means.chunks_exact(size).for_each(|group| groups.push(0, group.iter().sum::<f64>() / size as f64));
    groups.error()
}

/// A curve without its first values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Body {
    pub begin: Mean,
    pub end: Mean,
}

impl Body {
    pub fn of(curve: &Curve) -> Self {
        let blocks = curve.blocks();
        let body = &blocks[(blocks.len() as f64 * FIRST) as usize..];
        let part = |fraction: f64| (body.len() as f64 * fraction).ceil() as usize;
        Self { begin: Mean::of(&body[..part(BEGINNING)]), end: Mean::of(&body[body.len() - part(END)..]) }
    }

    pub const fn fall(&self) -> f64 {
        self.begin.mean - self.end.mean
    }

    /// The standard error of the fall.
    pub fn error(&self) -> f64 {
        self.begin.error.hypot(self.end.error)
    }
}

/// Whether a curve is nowhere lower than this for certain, where single values have such a deviation.
pub(super) fn is_never_below(curve: &Curve, level: f64, spread: f64) -> bool {
    curve.blocks().iter().all(|block| block.mean > level - LOWER * spread / (block.count as f64).sqrt())
}

/// How far the first values are above a level, for certain.
pub(super) fn starts_above(curve: &Curve, level: f64, spread: f64) -> f64 {
    curve.start.mean - level - LOWER * spread / (curve.start.count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng, SplitMix64};

    use super::*;

    /// Proves that the error of a mean covers where the mean is, whether values are independent or follow each other.
    #[test]
    fn an_error_counts_values_that_follow_each_other() {
        for (follows, most) in [(0.0, 3), (0.9, 10)] {
            let far = (0..200_u64).filter(|seed| {
                let (mut rng, mut curve, mut value) = (SplitMix64::new(*seed), Curve::default(), 0.0);
                for step in 0..2000 {
                    value = follows * value + rng.next_unit() - 0.5;
                    curve.take(step, 10.0 + value);
                }
                let mean = Mean::of(curve.blocks());
                (mean.mean - 10.0).abs() > 3.0 * mean.error
            });
            let far = far.count();
            assert!(far <= most, "{follows}: {far} of 200");
        }
    }
}
