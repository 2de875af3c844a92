//! How a finding names ranks.

use std::collections::BTreeMap;

use trackway_core::Step;

/// Ranks that a sentence names; the others are counted.
const RANKS_MAX: usize = 8;

/// `rank 1 (last step 11)`, `ranks 1 (last step 11), 3`.
pub(super) fn named_ranks(ranks: &[u32], last_steps: &BTreeMap<u32, Step>) -> String {
    let one = |rank: &u32| match last_steps.get(rank) {
        Some(step) => format!("{rank} (last step {step})"),
        None => rank.to_string(),
    };
    let mut names: Vec<String> = ranks.iter().take(RANKS_MAX).map(one).collect();
    if ranks.len() > RANKS_MAX {
        names.push(format!("{} more", ranks.len() - RANKS_MAX));
    }
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, names.join(", "))
}
