use std::ops::Range;

/// Environment variable: seeds instead of those of an ordinary test run, `N` (the first N) or `FROM..TO`.
const SEEDS: &str = "TRACKWAY_SEEDS";
/// Environment variable: one seed, to play it again.
const SEED: &str = "TRACKWAY_SEED";

/// The seeds that a simulation runs: those given in the environment, else the first `usual` ones.
///
/// # Panics
/// When a variable holds something else.
#[must_use]
pub fn seeds(usual: u64) -> Range<u64> {
    let one = number(SEED).map(|seed| seed..seed + 1);
    one.or_else(seeds_asked_for).unwrap_or(0..usual)
}

/// The seeds given in the environment by number; then everything else runs more often too.
///
/// # Panics
/// When the variable holds something else.
#[must_use]
pub fn seeds_asked_for() -> Option<Range<u64>> {
    let text = std::env::var(SEEDS).ok()?;
    let parsed = |text: &str| text.parse::<u64>().expect("TRACKWAY_SEEDS is N or FROM..TO");
    Some(match text.split_once("..") {
        Some((from, to)) => parsed(from)..parsed(to),
        None => 0..parsed(&text),
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("the seed is a number"))
}
