//! Whether two checkpoints hold the same weights.

use std::path::Path;

use trackway_formats::checkpoint_manifest::{Kind, ManifestFile};

/// So much of the weights of two checkpoints is read at most, up to the first difference between them.
pub const COMPARED_BYTES_MAX: u64 = 1 << 30;

/// The files of a checkpoint, and the folder that they are in.
pub type CheckpointFiles<'h> = (&'h Path, &'h [ManifestFile]);

/// Whether two files, each in its folder, hold the same tensors though their bytes differ; not, where they cannot be
/// read or there is more than the budget.
pub type SameTensors = fn((&Path, &ManifestFile), (&Path, &ManifestFile), &mut u64) -> bool;

/// Whether the weights of two checkpoints are the same: byte for byte, or by what `same_tensors` says of two files.
/// They are compared in the order of their names.
#[must_use]
pub fn have_same_weights(
    before: CheckpointFiles<'_>,
    after: CheckpointFiles<'_>,
    same_tensors: SameTensors,
) -> bool {
    let (files, other_files) = (weights_of(before.1), weights_of(after.1));
    let mut budget_bytes = COMPARED_BYTES_MAX;
    let mut is_same = |one: &ManifestFile, other: &ManifestFile| {
        one.blake3 == other.blake3 || same_tensors((before.0, one), (after.0, other), &mut budget_bytes)
    };
    !files.is_empty()
        && files.len() == other_files.len()
        && files.into_iter().zip(other_files).all(|(one, other)| is_same(one, other))
}

/// The files with weights, in the order of their names; without any, those that may have weights beside everything else.
#[must_use]
pub fn weights_of(files: &[ManifestFile]) -> Vec<&ManifestFile> {
    let of = |kind| files.iter().filter(move |file| file.kind == kind);
    let mut found: Vec<&ManifestFile> = of(Kind::Weights).collect();
    if found.is_empty() {
        found.extend(of(Kind::State));
    }
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    found
}
