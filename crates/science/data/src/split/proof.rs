//! An assignment is checked from scratch before it is used.

use std::collections::HashMap;

use super::parts::Part;

/// Something that must be on one side and is on two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The row on the one side.
    pub first_row: usize,
    /// The row on the other.
    pub second_row: usize,
}

/// Whether all rows of one key (equal content, the same group) have one part. The first overlap found, if there is
/// one. Memory: about 24 bytes for each different key.
///
/// # Errors
/// The [`Overlap`].
pub fn prove_disjoint(parts: &[Part], keys: impl IntoIterator<Item = u64>) -> Result<(), Overlap> {
    let mut seen: HashMap<u64, (Part, usize)> = HashMap::new();
    for (row, (part, key)) in parts.iter().zip(keys).enumerate() {
        let (first_part, first_row) = *seen.entry(key).or_insert((*part, row));
        if first_part != *part {
            return Err(Overlap { first_row, second_row: row });
        }
    }
    Ok(())
}
