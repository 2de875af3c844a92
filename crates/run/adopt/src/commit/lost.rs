//! Whether values in the copies of an attempt became NaN or infinite: what a training has lost is often found late, and
//! until then the good copies stay.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use trackway_checkpoint::Kind;
use trackway_formats::path_text::text_of;
use trackway_layouts::{Entry, Folder, tensors_of};

/// Bytes of one checkpoint that are read for it.
const LOOK_BYTES_MAX: u64 = 4 << 30;

/// Tensors that are not finite, each by the place of its file and its name.
type Tensors = BTreeSet<(usize, String)>;

/// What is known of the values in the copies so far.
#[derive(Debug, Default)]
pub(crate) struct LostValues {
    /// Those of the last copy that had no new ones; none: nothing was read.
    known: Option<Tensors>,
    are_new: bool,
}

impl LostValues {
    /// Takes the tensors of the next copy that are not finite.
    pub fn take(&mut self, lost: Tensors) {
        self.are_new = self.known.as_ref().is_some_and(|known| !lost.is_subset(known));
        if !self.are_new {
            self.known = Some(lost);
        }
    }

    /// Whether the last copy holds some that an earlier one did not.
    pub const fn are_new(&self) -> bool {
        self.are_new
    }
}

/// The tensors of a checkpoint that are not finite, as far as its files can be read.
pub(crate) fn lost_in(files: &[(PathBuf, Kind)]) -> Tensors {
    let has_tensors = |kind| matches!(kind, Kind::Weights | Kind::State | Kind::Optimizer);
    let mut budget_bytes = LOOK_BYTES_MAX;
    let with_tensors = files.iter().filter(|(_, kind)| has_tensors(*kind)).enumerate();
    with_tensors.flat_map(|(place, (path, _))| lost_in_file(place, path, &mut budget_bytes)).collect()
}

fn lost_in_file(place: usize, path: &Path, budget_bytes: &mut u64) -> Vec<(usize, String)> {
    let (Some(folder), Some(name), Ok(metadata)) = (path.parent(), path.file_name(), path.metadata()) else {
        return Vec::new();
    };
    let found = tensors_of(&Folder::new(folder), &Entry::named(&text_of(name), metadata.len()), budget_bytes);
    found.non_finite.into_iter().map(|one| (place, one.tensor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that values count as lost once an earlier copy did not have them, until they are finite again, and that a
    /// buffer which has them from the beginning does not.
    #[test]
    fn values_are_lost_that_were_finite_before() {
        let of = |copies: &[&[&str]]| {
            let mut values = LostValues::default();
            let look = |copy: &&[&str]| {
                values.take(copy.iter().map(|name| (0, (*name).to_owned())).collect());
                values.are_new()
            };
            copies.iter().map(look).collect::<Vec<_>>()
        };
        assert_eq!(of(&[&[], &["w"], &["w"], &[], &["w"]]), [false, true, true, false, true]);
        assert_eq!(of(&[&["mask"], &["mask"], &["mask", "w"]]), [false, false, true]);
        assert_eq!(of(&[&["w"], &["w"]]), [false, false], "never finite");
    }
}
