//! A curve of any length in bounded memory: means of blocks, which are put together in pairs when there are too many.

use trackway_core::Step;

use crate::curves::began_again::BeganAgain;

/// Times the first value that a value is far above it.
pub(super) const FAR_ABOVE: f64 = 5.0;
/// Blocks of one curve at most.
const BLOCKS_MAX: usize = 64;
/// Values of [`Curve::start`].
const START_VALUES: u64 = 10;

/// Count, mean and squared deviations of values in a row (Welford 1962; put together as in Chan et al. 1979).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Part {
    /// How many values.
    pub count: u64,
    pub mean: f64,
    squares: f64,
    /// The step of the last one.
    pub last_step: Step,
}

impl Part {
    pub(super) fn push(&mut self, step: Step, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value - self.mean);
        self.last_step = step;
    }

    pub(super) fn with(self, other: Self) -> Self {
        let count = self.count + other.count;
        if count == 0 {
            return self;
        }
        let delta = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        Self {
            count,
            mean: self.mean + delta * share,
            squares: self.squares + other.squares + delta * delta * self.count as f64 * share,
            last_step: self.last_step.max(other.last_step),
        }
    }

    /// The standard error of the mean; infinite for a single value.
    #[must_use]
    pub fn error(&self) -> f64 {
        let count = self.count as f64;
        if self.count < 2 { f64::INFINITY } else { (self.squares / (count - 1.0) / count).sqrt() }
    }

    /// The standard deviation of a single value within two parts.
    pub(super) fn spread_with(&self, other: &Self) -> f64 {
        ((self.squares + other.squares) / (self.count + other.count).saturating_sub(2).max(1) as f64).sqrt()
    }

    /// The standard deviation of a single value; infinite for one.
    pub(super) fn spread(&self) -> f64 {
        self.error() * (self.count as f64).sqrt()
    }
}

/// The finite values of one metric of one rank, in the order in which they came: of several trainings of one script those of the last one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    blocks: Vec<Part>,
    block_count: u64,
    /// The first values.
    pub start: Part,
    /// The first value, and its step.
    pub first: Option<(Step, f64)>,
    /// The last one.
    pub last: Option<(Step, f64)>,
    /// The least and the greatest one.
    pub range: Option<(f64, f64)>,
    /// The first value that was far above the first one.
    pub rose: Option<(Step, f64)>,
    /// The value before that one.
    pub before_rise: Option<f64>,
    /// Trainings before this one, in the same script.
    pub trainings_before: u64,
    again: BeganAgain,
}

impl Curve {
    /// Takes a value; one that is not finite is left out.
    pub fn take(&mut self, step: Step, value: f64) {
        if self.again.take(step, value) {
            let (again, trainings_before) = (std::mem::take(&mut self.again), self.trainings_before + 1);
            *self = Self { again, trainings_before, ..Self::default() };
        }
        if !value.is_finite() {
            return;
        }
        let (_, first) = *self.first.get_or_insert((step, value));
        if value > FAR_ABOVE * first && self.rose.is_none() {
            (self.rose, self.before_rise) = (Some((step, value)), self.last.map(|(_, value)| value));
        }
        if self.start.count < START_VALUES {
            self.start.push(step, value);
        }
        self.last = Some((step, value));
        let (least, greatest) = self.range.unwrap_or((value, value));
        self.range = Some((least.min(value), greatest.max(value)));
        let block_count = self.block_count.max(1);
        if self.blocks.last().is_none_or(|block| block.count >= block_count) {
            if self.blocks.len() == BLOCKS_MAX {
                self.blocks = self.blocks.chunks(2).map(|pair| pair[0].with(pair[1])).collect();
                self.block_count = block_count * 2;
            }
            self.blocks.push(Part::default());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(step, value);
        }
    }

    /// How many values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.blocks.iter().map(|block| block.count).sum()
    }

    /// The values of at least the first `share` of the blocks.
    #[must_use]
    pub fn head(&self, share: f64) -> Part {
        let wanted = (self.blocks.len() as f64 * share).ceil() as usize;
        self.blocks.iter().take(wanted).fold(Part::default(), |sum, block| sum.with(*block))
    }

    /// The values of at least the last `share` of the blocks.
    #[must_use]
    pub fn tail(&self, share: f64) -> Part {
        let wanted = (self.blocks.len() as f64 * share).ceil() as usize;
        self.blocks.iter().rev().take(wanted).fold(Part::default(), |sum, block| sum.with(*block))
    }

    /// The values of the fewest last blocks that hold so many.
    #[must_use]
    pub fn last_values(&self, count: u64) -> Part {
        gathered(self.blocks.iter().rev(), count)
    }

    /// The least mean of so many values in a row, by blocks; none: there are fewer.
    #[must_use]
    pub fn least_of(&self, count: u64) -> Option<Part> {
        self.parts_of(count).min_by(|one, other| one.mean.total_cmp(&other.mean))
    }

    /// The greatest mean of so many values in a row, by blocks; none: there are fewer.
    #[must_use]
    pub fn greatest_of(&self, count: u64) -> Option<Part> {
        self.parts_of(count).max_by(|one, other| one.mean.total_cmp(&other.mean))
    }

    fn parts_of(&self, count: u64) -> impl Iterator<Item = Part> {
        let starts = (0..self.blocks.len()).map(move |start| gathered(self.blocks[start..].iter(), count));
        starts.filter(move |part| part.count >= count)
    }

    /// Means of values in a row, as many values each except for the last one.
    pub(super) fn blocks(&self) -> &[Part] {
        &self.blocks
    }

    /// The first step of the last blocks whose means are all so.
    pub(super) fn since(&self, is_so: impl Fn(f64) -> bool) -> Option<Step> {
        let held = self.blocks.iter().rev().take_while(|block| is_so(block.mean)).count();
        let is_any = held > 0 || self.blocks.is_empty();
        is_any.then(|| self.first_step_of(self.blocks.len() - held)).flatten()
    }

    /// The first step of a block.
    pub(super) fn first_step_of(&self, block: usize) -> Option<Step> {
        match block.checked_sub(1).and_then(|before| self.blocks.get(before)) {
            Some(before) => Some(before.last_step + 1),
            None => self.first.map(|(step, _)| step),
        }
    }

    /// Which training of its script the curve is of, for a sentence; nothing where there is one.
    #[must_use]
    pub fn which(&self) -> String {
        match self.trainings_before {
            0 => String::new(),
            before => format!(", in the last of the {} trainings that this script printed", before + 1),
        }
    }
}

/// Blocks put together until they hold so many values.
fn gathered<'b>(blocks: impl Iterator<Item = &'b Part>, count: u64) -> Part {
    let mut sum = Part::default();
    for block in blocks {
        if sum.count >= count {
            break;
        }
        sum = sum.with(*block);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the least and the last values of a curve are found, and from which step on it is above a level to the end.
    #[test]
    fn the_way_down_and_back_is_seen() {
        let mut curve = Curve::default();
        (1..=200).for_each(|step| curve.take(step, if (81..=160).contains(&step) { 1.0 } else { 5.0 }));
        let (least, last) = (curve.least_of(20).unwrap(), curve.last_values(20));
        assert_eq!((least.mean, last.mean, curve.start.mean, curve.start.count), (1.0, 5.0, 5.0, 10));
        assert!(least.count >= 20 && last.count >= 20 && last.count < 30, "{least:?} {last:?}");
        assert_eq!((curve.since(|mean| mean > 3.0), curve.since(|mean| mean > 9.0)), (Some(161), None));
        assert_eq!((curve.since(|mean| mean > 0.5), curve.least_of(201)), (Some(1), None));
    }

    /// Proves that the parts of a curve are those of all its values, however many there are.
    #[test]
    fn parts_are_those_of_all_values() {
        for count in [1_u64, 5, 64, 65, 1000, 100_000] {
            let mut curve = Curve::default();
            curve.take(0, f64::NAN);
            (1..=count).for_each(|step| curve.take(step, step as f64));
            assert_eq!(curve.count(), count);
            let all = curve.tail(1.0);
            let mean = (count + 1) as f64 / 2.0;
            assert!((all.mean - mean).abs() < 1e-6 * mean, "{count}: {}", all.mean);
            assert_eq!((all.last_step, curve.range), (count, Some((1.0, count as f64))));
            if count > 1 {
                let error = ((count * (count + 1)) as f64 / 12.0 / count as f64).sqrt();
                assert!((all.error() - error).abs() < 1e-6 * error, "{count}");
            }
            let half = curve.head(0.5);
            assert!(
                half.count >= count.div_ceil(2) && half.count <= count * 3 / 4 + 1,
                "{count}: {}",
                half.count
            );
            assert!(curve.blocks.len() <= BLOCKS_MAX);
        }
    }
}
