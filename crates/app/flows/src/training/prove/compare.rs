//! Compares the states of two checkpoints file by file. Pure.

use std::collections::BTreeMap;

use trackway_api::runs::rehearsal::Difference;
use trackway_checkpoint::{Kind, ManifestFile};
use trackway_formats::checkpoint_manifest::state_digest;

/// What differs between two states, by kind and then name. Files of kind `other` are no state.
pub fn differences(control: &[ManifestFile], other: &[ManifestFile]) -> Vec<Difference> {
    let (control, other) = (by_name(control), by_name(other));
    let mut names: Vec<_> = control.keys().chain(other.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let differing = names.into_iter().filter_map(|key| {
        let (kind, name) = key;
        let what = match (control.get(&key), other.get(&key)) {
            (Some(left), Some(right)) if left.blake3 == right.blake3 => return None,
            (Some(left), Some(right)) if left.size_bytes == right.size_bytes => {
                format!("{} bytes in both, not the same ones", left.size_bytes)
            }
            (Some(left), Some(right)) => {
                format!("{} bytes against {} in the control", right.size_bytes, left.size_bytes)
            }
            (Some(_), None) => "only in the control".into(),
            _ => "not in the control".into(),
        };
        Some(Difference { kind, name: name.into(), what })
    });
    differing.collect()
}

fn by_name(files: &[ManifestFile]) -> BTreeMap<(Kind, &str), &ManifestFile> {
    let state = files.iter().filter(|file| file.kind != Kind::Other);
    state.map(|file| ((file.kind, file.name.as_str()), file)).collect()
}

/// A digest of the files of each kind, as [`state_digest`] makes it of all of them.
pub fn digests_by_kind(files: &[ManifestFile]) -> BTreeMap<Kind, String> {
    let mut kinds: BTreeMap<Kind, Vec<ManifestFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.kind != Kind::Other) {
        kinds.entry(file.kind).or_default().push(file.clone());
    }
    kinds.into_iter().map(|(kind, files)| (kind, state_digest(&files))).collect()
}

/// The kinds that a resume usually needs and a state lacks.
pub fn missing_kinds(files: &[ManifestFile]) -> Vec<&'static str> {
    let usual = [Kind::Weights, Kind::Optimizer, Kind::Rng, Kind::DataCursor];
    let missing = usual.into_iter().filter(|kind| !files.iter().any(|file| file.kind == *kind));
    missing.map(Kind::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, kind: Kind, content: &str) -> ManifestFile {
        ManifestFile::new(name, kind, content.len() as u64, &blake3::hash(content.as_bytes()))
    }

    /// Proves that each way of differing is named, that a file's kind counts, and that files of kind `other` do not.
    #[test]
    fn differences_are_named() {
        let control = [
            file("a", Kind::Weights, "same"),
            file("b", Kind::Optimizer, "left"),
            file("c", Kind::Rng, "long"),
            file("d", Kind::DataCursor, "d"),
            file("e", Kind::Scheduler, "e"),
            file("sample.png", Kind::Other, "1"),
        ];
        let other = [
            file("a", Kind::Weights, "same"),
            file("b", Kind::Optimizer, "rite"),
            file("c", Kind::Rng, "longer"),
            file("e", Kind::Scaler, "e"),
            file("sample.png", Kind::Other, "2"),
        ];
        let found: Vec<_> = differences(&control, &other)
            .into_iter()
            .map(|it| format!("{} {}: {}", it.kind.as_str(), it.name, it.what))
            .collect();
        let expected = [
            "optimizer b: 4 bytes in both, not the same ones",
            "scheduler e: only in the control",
            "scaler e: not in the control",
            "rng c: 6 bytes against 4 in the control",
            "data_cursor d: only in the control",
        ];
        assert_eq!(found, expected);
        assert!(differences(&control, &control).is_empty());
        let digests = digests_by_kind(&control);
        assert_eq!(digests.len(), 5);
        assert_eq!(digests[&Kind::Weights], digests_by_kind(&other)[&Kind::Weights]);
        assert_ne!(digests[&Kind::Optimizer], digests_by_kind(&other)[&Kind::Optimizer]);
        assert_eq!(missing_kinds(&other), ["data_cursor"]);
    }
}
