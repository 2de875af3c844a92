//! Whether two committed files hold the same tensors.

use std::path::Path;

use trackway_checkpoint::ManifestFile;
use trackway_layouts::{Entry, Folder, have_same_tensors};

/// Whether all that was learned is the same in two files, each in its folder, as far as they can be read without loading
/// ([`trackway_checkpoint::SameTensors`]).
#[must_use]
pub fn same_tensors(
    before: (&Path, &ManifestFile),
    after: (&Path, &ManifestFile),
    budget_bytes: &mut u64,
) -> bool {
    let of = |file: &ManifestFile| Entry::named(&file.name, file.size_bytes);
    let (folder, other_folder) = (Folder::new(before.0), Folder::new(after.0));
    have_same_tensors((&folder, &of(before.1)), (&other_folder, &of(after.1)), budget_bytes) == Some(true)
}
