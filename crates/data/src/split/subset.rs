//! Subsets that hold one another: 1 % ⊂ 10 % ⊂ 100 %.

/// Where a key falls in `[0, 1)`, evenly and independently for each seed. `purpose` keeps uses apart: a row that is
/// early in the subsets is not for that reason in the training part.
#[must_use]
pub fn unit_of(seed: u64, purpose: &str, key: &[u8]) -> f64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&(purpose.len() as u64).to_le_bytes());
    hasher.update(purpose.as_bytes());
    hasher.update(key);
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
}

/// Whether a row belongs to the subset of this fraction (0 to 1). One that does belongs to every larger one too.
#[must_use]
pub fn subset_of(seed: u64, key: &[u8], fraction: f64) -> bool {
    unit_of(seed, "subset", key) < fraction
}
