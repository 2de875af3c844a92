//! Damaged copies of good files and texts, for tests of what reads them.

use trackway_core::{Rng as _, SplitMix64};

/// The longest piece that is left out or doubled, in bytes.
const PIECE_MAX: usize = 40;

/// Changes a good text in one to three places: bits, bytes, `signs` of its format, pieces left out, doubled, and the end.
pub(crate) fn mutate(good: &[u8], signs: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.next_u64() % 3 {
        if bytes.is_empty() {
            break;
        }
        let at = random.next_u64() as usize % bytes.len();
        let to = (at + 1 + random.next_u64() as usize % PIECE_MAX).min(bytes.len());
        match random.next_u64() % 6 {
            0 => bytes[at] ^= 1 << (random.next_u64() % 8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes[at] = signs[random.next_u64() as usize % signs.len()],
            3 => drop(bytes.drain(at..to)),
            4 => bytes.extend_from_within(at..to),
            _ => bytes.truncate(at),
        }
    }
    bytes
}
