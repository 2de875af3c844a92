//! The p-value of what held-out rows show of a slice.
//!
//! The slice was chosen without these rows, so that its p-value here is one of a single test, however many slices were
//! looked at. All tests are one-sided: only *more* error is of interest.

use rayon::prelude::*;
use trackway_core::{Rng, SplitMix64};
use trackway_results::search::Test;
use trackway_statistics::{binomial_p_value, hypergeometric_p_value};

/// Random arrangements that a p-value rests on, where there are few rows; none is below one in so many.
const ROUNDS_MAX: usize = 9_999;
/// The fewest, however many rows there are.
const ROUNDS_MIN: usize = 999;
/// Rows drawn for one p-value, but for [`ROUNDS_MIN`].
const DRAWS_MAX: usize = 200_000_000;

/// Differences below this fraction count as equal: sums in another order round differently.
const ROUNDING: f64 = 1e-12;

/// Whether the members of `values` have more error than as many random rows. `None` if there is no member, or no other
/// row.
pub(super) fn more_than_elsewhere(values: &[f64], members: &[bool], seed: u64) -> Option<(f64, Test)> {
    let size = members.iter().filter(|is_member| **is_member).count();
    if size == 0 || size == values.len() {
        return None;
    }
    let of_members = || values.iter().zip(members).filter(|(_, is_member)| **is_member).map(|(it, _)| *it);
    if values.iter().all(|value| *value == 0.0 || *value == 1.0) {
        let wrong = values.iter().filter(|value| **value == 1.0).count() as u64;
        let hits = of_members().filter(|value| *value == 1.0).count() as u64;
        let p_value = hypergeometric_p_value(values.len() as u64, wrong, size as u64, hits);
        return Some((p_value.max(f64::MIN_POSITIVE), Test::Hypergeometric));
    }
    let sum: f64 = of_members().sum();
    // The smaller side is drawn: many errors inside are few outside.
    let total: f64 = values.iter().sum();
    let (drawn, observed, sign) =
        if size * 2 <= values.len() { (size, sum, 1.0) } else { (values.len() - size, total - sum, -1.0) };
    let slack = ROUNDING * total.abs();
    let round = |(pool, rng): &mut (Vec<f64>, SplitMix64)| {
        let drawn: f64 = (0..drawn).map(|at| take(pool, at, rng)).sum();
        sign * drawn >= sign * observed - slack
    };
    let p_value = share_of_rounds(drawn, seed, |rng| (values.to_vec(), rng), round);
    Some((p_value, Test::Permutation))
}

/// Whether the sum of differences is above what random signs give. `units` are the differences of rows, or their sums
/// over groups; those of 0 do not count. `None` if all are 0.
pub(super) fn above_zero(units: &[f64], are_groups: bool, seed: u64) -> Option<(f64, Test)> {
    let units: Vec<f64> = units.iter().copied().filter(|unit| *unit != 0.0).collect();
    if units.is_empty() {
        return None;
    }
    if !are_groups && units.iter().all(|unit| unit.abs() == 1.0) {
        let worse = units.iter().filter(|unit| **unit > 0.0).count() as u64;
        return Some((binomial_p_value(units.len() as u64, worse, 0.5).max(f64::MIN_POSITIVE), Test::Sign));
    }
    let observed: f64 = units.iter().sum();
    let slack = ROUNDING * units.iter().map(|unit| unit.abs()).sum::<f64>();
    let round = |rng: &mut SplitMix64| {
        let of_word = |units: &[f64]| {
            let signs = rng.next_u64();
            let signed = |(bit, unit): (usize, &f64)| if signs >> bit & 1 == 1 { *unit } else { -unit };
            units.iter().enumerate().map(signed).sum::<f64>()
        };
        units.chunks(64).map(of_word).sum::<f64>() >= observed - slack
    };
    let p_value = share_of_rounds(units.len(), seed, |rng| rng, round);
    Some((p_value, if are_groups { Test::GroupSignFlips } else { Test::SignFlips }))
}

/// Draws one of what is left of the pool, without putting it back.
fn take(pool: &mut [f64], at: usize, rng: &mut SplitMix64) -> f64 {
    let left = (pool.len() - at) as u128;
    let other = at + ((u128::from(rng.next_u64()) * left) >> 64) as usize;
    pool.swap(at, other);
    pool[at]
}

/// The fraction of rounds, the observed one included, in which `round` reports at least the observed value.
fn share_of_rounds<S>(
    draws: usize,
    seed: u64,
    start: impl Fn(SplitMix64) -> S + Sync,
    round: impl Fn(&mut S) -> bool + Sync,
) -> f64 {
    let rounds = (DRAWS_MAX / draws.max(1)).clamp(ROUNDS_MIN, ROUNDS_MAX);
    // As many streams whatever the number of threads, so that the answer is always the same.
    const STREAMS: usize = 16;
    let in_stream = |stream: usize| {
        let mut state = start(SplitMix64::new(SplitMix64::new(seed ^ stream as u64).next_u64()));
        (stream..rounds).step_by(STREAMS).filter(|_| round(&mut state)).count()
    };
    let as_much: usize = (0..STREAMS).into_par_iter().map(in_stream).sum();
    (as_much + 1) as f64 / (rounds + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(seed: u64, rows: usize) -> Vec<f64> {
        let mut rng = SplitMix64::new(seed);
        (0..rows).map(|_| rng.next_unit()).collect()
    }

    /// Proves that random permutations agree with the exact test, by errors of 0 and 2, which are permuted, and the
    /// same of 0 and 1, which are counted; also for slices of more than half of the rows.
    #[test]
    fn permutations_agree_with_the_exact_test() {
        let ones: Vec<f64> = uniform(1, 400).into_iter().map(|it| f64::from(u8::from(it < 0.2))).collect();
        let twos: Vec<f64> = ones.iter().map(|it| it * 2.0).collect();
        for size in [60, 300] {
            for seed in 0..6 {
                let members: Vec<bool> =
                    uniform(10 + seed, 400).into_iter().map(|it| it < f64::from(size) / 400.0).collect();
                let (exact, test) = more_than_elsewhere(&ones, &members, 3).unwrap();
                assert_eq!(test, Test::Hypergeometric);
                let (drawn, test) = more_than_elsewhere(&twos, &members, 3).unwrap();
                assert_eq!(test, Test::Permutation);
                assert!((exact - drawn).abs() < 0.02, "{exact} and {drawn}");
            }
        }
        assert_eq!(more_than_elsewhere(&ones, &[false; 400], 0), None);
    }

    /// Proves the same of signs: drawn for differences of ±2, counted for ±1.
    #[test]
    fn flips_agree_with_the_sign_test() {
        let signs: Vec<f64> =
            uniform(5, 120).into_iter().map(|it| if it < 0.58 { 1.0 } else { -1.0 }).collect();
        let twice: Vec<f64> = signs.iter().map(|it| it * 2.0).collect();
        let (exact, test) = above_zero(&signs, false, 1).unwrap();
        assert_eq!(test, Test::Sign);
        let (drawn, test) = above_zero(&twice, false, 1).unwrap();
        assert_eq!(test, Test::SignFlips);
        assert!((exact - drawn).abs() < 0.02, "{exact} and {drawn}");
        assert_eq!(above_zero(&[0.0, 0.0], false, 1), None);
    }

    /// Proves that p-values of rows with errors that depend on groups are right at 5 % when whole groups are permuted,
    /// and that they would not be if each row were independent.
    #[test]
    fn groups_are_drawn_whole() {
        let (mut by_group, mut by_row) = (0, 0);
        for seed in 0..300 {
            // 60 groups of 20 rows that differ in half of what they differ in at all.
            let own = uniform(seed, 60);
            let noise = uniform(seed + 1000, 1200);
            let values: Vec<f64> = (0..1200).map(|row| own[row / 20] + noise[row] - 1.0).collect();
            let sums: Vec<f64> = values.chunks(20).map(|rows| rows.iter().sum()).collect();
            by_group += usize::from(above_zero(&sums, true, seed).unwrap().0 <= 0.05);
            by_row += usize::from(above_zero(&values, false, seed).unwrap().0 <= 0.05);
        }
        assert!((5..=28).contains(&by_group), "{by_group} of 300");
        assert!(by_row > 60, "{by_row} of 300");
    }
}
