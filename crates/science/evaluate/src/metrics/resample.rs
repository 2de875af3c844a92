//! Drawing items again, many times, always the same for the same seed whatever the number of threads.

use rayon::prelude::*;
use trackway_core::{Rng, SplitMix64};
use trackway_statistics::{fill_poisson_one, poisson};

use crate::Method;

/// How often, and beginning with what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resampling {
    /// Draws.
    pub resamples: u32,
    /// The same seed gives the same draws.
    pub seed: u64,
    /// The confidence level of an interval.
    pub confidence: f64,
}

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Units<'u> {
    Items(usize),
    /// Whole groups: for each item the number of its group, and how many groups there are.
    Groups(&'u [u32], usize),
}

impl Units<'_> {
    /// How many items there are.
    pub(crate) fn items(self) -> usize {
        match self {
            Self::Items(items) => items,
            Self::Groups(of_item, _) => of_item.len(),
        }
    }

    /// How many are drawn by themselves.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Items(items) => items,
            Self::Groups(_, groups) => groups,
        }
    }

    /// Whether each item is drawn by itself.
    pub(crate) fn are_items(self) -> bool {
        matches!(self, Self::Items(_))
    }

    /// The method of an interval: `alone`, where each item is by itself.
    pub(crate) fn method(self, alone: Method) -> Method {
        if self.are_items() { alone } else { Method::Clustered }
    }
}

/// For each resample, the numbers that `values` computes from how often each item was sampled.
pub(crate) fn draw(
    units: Units<'_>,
    resampling: Resampling,
    values: impl Fn(&[u8]) -> Vec<f64> + Sync,
) -> Vec<Vec<f64>> {
    let buffers = || match units {
        Units::Items(items) => (vec![0; items], Vec::new()),
        Units::Groups(of_item, groups) => (vec![0; of_item.len()], vec![0; groups]),
    };
    let drawn = (0..resampling.resamples).into_par_iter().map_init(buffers, |(items, groups), draw| {
        let mut rng = rng_of(resampling.seed, draw);
        match units {
            Units::Items(_) => fill_poisson_one(items, &mut rng),
            Units::Groups(of_item, _) => {
                fill_poisson_one(groups, &mut rng);
                items.iter_mut().zip(of_item).for_each(|(item, group)| *item = groups[*group as usize]);
            }
        }
        values(items)
    });
    drawn.collect()
}

/// The same with as many units of either stratum as there are (`strata`: for each unit whether it is of the second one),
/// sampled with replacement.
pub(crate) fn draw_strata(
    units: Units<'_>,
    strata: &[bool],
    resampling: Resampling,
    values: impl Fn(&[u8]) -> Vec<f64> + Sync,
) -> Vec<Vec<f64>> {
    let members = [false, true].map(|stratum| {
        let is_in = |unit: &u32| strata[*unit as usize] == stratum;
        (0..strata.len() as u32).filter(is_in).collect::<Vec<u32>>()
    });
    let buffers = || (vec![0u8; strata.len()], vec![0u8; units.items()]);
    let drawn = (0..resampling.resamples).into_par_iter().map_init(buffers, |(counts, items), draw| {
        let mut rng = rng_of(resampling.seed, draw);
        counts.fill(0);
        for members in &members {
            for _ in members {
                let place = (u128::from(rng.next_u64()) * members.len() as u128) >> 64;
                let count = &mut counts[members[place as usize] as usize];
                *count = count.saturating_add(1);
            }
        }
        match units {
            Units::Items(_) => values(counts),
            Units::Groups(of_item, _) => {
                items.iter_mut().zip(of_item).for_each(|(item, group)| *item = counts[*group as usize]);
                values(items)
            }
        }
    });
    drawn.collect()
}

/// The same for items that are alike, `counts` of each kind: their sums are drawn, and not they themselves.
pub(crate) fn draw_counts(
    counts: &[u64],
    resampling: Resampling,
    values: impl Fn(&[f64]) -> Vec<f64> + Sync,
) -> Vec<Vec<f64>> {
    let drawn = (0..resampling.resamples).into_par_iter().map_init(
        || vec![0.0; counts.len()],
        |drawn, draw| {
            let mut rng = rng_of(resampling.seed, draw);
            drawn.iter_mut().zip(counts).for_each(|(drawn, count)| {
                *drawn = poisson(*count as f64, &mut rng) as f64;
            });
            values(drawn)
        },
    );
    drawn.collect()
}

/// A separate generator for each resample: the result does not depend on the thread.
fn rng_of(seed: u64, draw: u32) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new(seed ^ (u64::from(draw) << 32)).next_u64())
}

/// One number's draws, sorted, without those that had none (a draw may miss a class).
pub(crate) fn sorted_column(drawn: &[Vec<f64>], column: usize) -> Vec<f64> {
    let mut values: Vec<f64> =
        drawn.iter().map(|values| values[column]).filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}
