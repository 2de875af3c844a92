//! Whether the files of an attempt that ran elsewhere are here as a whole.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use trackway_core::text::first_few;

/// Names that are shown of the files that are not here.
const SHOWN_MAX: usize = 3;

/// How many of these files are in the folder with all of their bytes, such as `2 of 3 files`, and which are not; none: all are, or none was
/// to be brought here.
pub(super) fn completeness(folder: &Path, files: &BTreeMap<String, u64>) -> Option<String> {
    let is_whole = |name: &str, bytes: u64| size_in(folder, name).is_some_and(|here| here >= bytes);
    let lacking: Vec<&String> =
        files.iter().filter(|(name, bytes)| !is_whole(name, **bytes)).map(|(name, _)| name).collect();
    let here = files.len() - lacking.len();
    (!lacking.is_empty())
        .then(|| format!("{here} of {} files, without {}", files.len(), first_few(lacking, SHOWN_MAX)))
}

/// The bytes of a file in the folder; none where it is not there, or the name leads out of the folder.
fn size_in(folder: &Path, name: &str) -> Option<u64> {
    let is_inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let found = folder.join(name).symlink_metadata().ok().filter(std::fs::Metadata::is_file);
    found.filter(|_| is_inside).map(|file| file.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a file counts when all of its bytes are here, that one which is absent, cut or outside of the folder does not, and that
    /// nothing is said of an attempt whose files are all here or were written here.
    #[test]
    fn what_is_not_here_as_a_whole_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stdout.log"), "four").unwrap();
        std::fs::create_dir(folder.path().join("records")).unwrap();
        std::fs::write(folder.path().join("records/a.seg"), "four").unwrap();
        let of = |files: &[(&str, u64)]| {
            let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
            completeness(folder.path(), &files)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("stdout.log", 4), ("records/a.seg", 3)]), None);
        let text = of(&[("stdout.log", 4), ("records/a.seg", 5), ("stderr.log", 0)]).unwrap();
        assert!(text.starts_with("1 of 3 files, without ") && text.contains("records/a.seg"), "{text}");
        assert!(of(&[("../x", 0), ("/etc/hosts", 0)]).unwrap().starts_with("0 of 2 files"));
    }
}
