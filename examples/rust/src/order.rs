use trackway_core::{Rng, SplitMix64};

/// A permutation of `0..count` that depends on nothing but `seed` and `epoch` (Fisher and Yates).
#[must_use]
pub fn permutation(seed: u64, epoch: u64, count: usize) -> Vec<u32> {
    let mut random = SplitMix64::new(seed ^ epoch.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93));
    let mut items: Vec<u32> = (0..count as u32).collect();
    for last in (1..items.len()).rev() {
        // The bias of the remainder is below 2^-40 for any table that fits here.
        let other = (random.next_u64() % (last as u64 + 1)) as usize;
        items.swap(last, other);
    }
    items
}

/// Which items each step trains on: every epoch is a new permutation cut into whole batches; the rest that does not
/// fill a batch waits for another epoch. A function of seed and step, so nothing is lost in a kill.
#[derive(Debug)]
pub struct DataOrder {
    seed: u64,
    item_count: usize,
    batch: usize,
    epoch: u64,
    items: Vec<u32>,
}

impl DataOrder {
    /// The order over `item_count` items in batches of `batch`, which is cut down to `item_count` where it is larger.
    #[must_use]
    pub fn new(seed: u64, item_count: usize, batch: usize) -> Self {
        let batch = batch.min(item_count).max(1);
        Self { seed, item_count, batch, epoch: 0, items: permutation(seed, 0, item_count) }
    }

    /// Epoch and batch within it that come after `steps_done` updates, both counted from 0.
    #[must_use]
    pub fn position_after(&self, steps_done: u64) -> (u64, u64) {
        let batches = (self.item_count / self.batch).max(1) as u64;
        (steps_done / batches, steps_done % batches)
    }

    /// The items of the update that comes after `steps_done` updates.
    pub fn batch_after(&mut self, steps_done: u64) -> &[u32] {
        let (epoch, position) = self.position_after(steps_done);
        if epoch != self.epoch {
            self.items = permutation(self.seed, epoch, self.item_count);
            self.epoch = epoch;
        }
        let start = position as usize * self.batch;
        &self.items[start..(start + self.batch).min(self.items.len())]
    }
}

/// Draws from the normal distribution (Box and Muller 1958), replayed by the same seed.
#[derive(Debug)]
pub struct Normal(SplitMix64);

impl Normal {
    /// Draws that depend on `seed` only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    /// `count` draws with mean 0 and the given deviation.
    pub fn draws(&mut self, count: usize, deviation: f64) -> Vec<f32> {
        (0..count)
            .map(|_| {
                let radius = (-2.0 * (1.0 - self.0.next_unit()).ln()).sqrt();
                (deviation * radius * (std::f64::consts::TAU * self.0.next_unit()).cos()) as f32
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the batch of a step is the same whether the steps before it were taken or not, and that one epoch
    /// shows every item once.
    #[test]
    fn the_order_is_a_function_of_the_step() {
        let mut walked = DataOrder::new(3, 10, 5);
        let batches: Vec<Vec<u32>> = (0..6).map(|step| walked.batch_after(step).to_vec()).collect();
        assert_eq!(DataOrder::new(3, 10, 5).batch_after(5), batches[5]);
        for epoch in batches.chunks(2) {
            let mut seen = epoch.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..10).collect::<Vec<u32>>());
        }
        assert_ne!(batches[0..2], batches[2..4]);
    }

    /// Proves that the draws have the requested mean and deviation.
    #[test]
    fn normal_draws_have_the_asked_moments() {
        let draws = Normal::new(1).draws(20_000, 2.0);
        let mean = draws.iter().map(|&draw| f64::from(draw)).sum::<f64>() / draws.len() as f64;
        let variance =
            draws.iter().map(|&draw| (f64::from(draw) - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.05, "mean {mean}");
        assert!((variance - 4.0).abs() < 0.15, "variance {variance}");
    }
}
