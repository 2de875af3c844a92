//! Rows by the keys of their bands: rows with a band in common are candidates.

/// A key of more rows than this is not informative.
const SHARED_BY_MAX: usize = 64;

/// One band's keys, sorted, with a directory by their first bits. 8 bytes for each row, and 4 to 8 for the directory.
#[derive(Debug)]
pub(in crate::leakage) struct BandIndex {
    /// Where the keys with each prefix begin.
    starts: Vec<u32>,
    /// The 32 bits after the prefix, and the row.
    entries: Vec<(u32, u32)>,
    prefix_bits: u32,
}

impl BandIndex {
    /// Of the key of each row.
    pub(in crate::leakage) fn new(keys: impl ExactSizeIterator<Item = u64>) -> Self {
        let prefix_bits = usize::BITS - keys.len().leading_zeros();
        let mut full: Vec<(u64, u32)> = keys.enumerate().map(|(row, key)| (key, row as u32)).collect();
        full.sort_unstable();
        let mut starts = vec![0; (1 << prefix_bits) + 1];
        full.iter().for_each(|(key, _)| starts[prefix(*key, prefix_bits) + 1] += 1);
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let entries = full.iter().map(|(key, row)| (rest(*key, prefix_bits), *row)).collect();
        Self { starts, entries, prefix_bits }
    }

    /// The rows with this key (or, once in four billion times, another one); none where too many have it.
    pub(in crate::leakage) fn rows(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let prefix = prefix(key, self.prefix_bits);
        let entries = &self.entries[self.starts[prefix] as usize..self.starts[prefix + 1] as usize];
        let rest = rest(key, self.prefix_bits);
        let from = entries.partition_point(|(other, _)| *other < rest);
        let same = entries[from..].iter().take_while(move |(other, _)| *other == rest);
        let crowded = entries.get(from + SHARED_BY_MAX).is_some_and(|(other, _)| *other == rest);
        same.take(if crowded { 0 } else { SHARED_BY_MAX }).map(|(_, row)| *row)
    }
}

fn prefix(key: u64, bits: u32) -> usize {
    if bits == 0 { 0 } else { (key >> (u64::BITS - bits)) as usize }
}

fn rest(key: u64, bits: u32) -> u32 {
    ((key << bits) >> u32::BITS) as u32
}

/// Mixes a value into a key: the product of 128 bits, folded.
pub(in crate::leakage) fn mix(state: u64, value: u64) -> u64 {
    let product = u128::from(state ^ 0x243f_6a88_85a3_08d3) * u128::from(value ^ 0xb7e1_5162_8aed_2a6b);
    ((product as u64) ^ (product >> 64) as u64).wrapping_add(state.rotate_left(23))
}
