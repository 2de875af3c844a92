//! Damaged files: every length, and seeded changes of bytes.

use super::build;
use crate::{Source, Tree, Wholeness, file_wholeness, find, recognise, wholeness};

fn of_file(name: &str, bytes: &[u8]) -> Wholeness {
    let mut tree = Tree::default();
    tree.add(name, bytes);
    file_wholeness(&tree, tree.listing().file(name).unwrap())
}

/// Proves that a file of every format that is checked is whole, and that none of its beginnings is.
#[test]
fn no_beginning_of_a_file_is_whole() {
    for (name, bytes) in build::whole_files() {
        assert!(
            matches!(of_file(name, &bytes), Wholeness::Whole { .. }),
            "{name}: {:?}",
            of_file(name, &bytes)
        );
        for length in 0..bytes.len() {
            let found = of_file(name, &bytes[..length]);
            assert!(
                !matches!(found, Wholeness::Whole { .. }),
                "{name} of {length} bytes of {}: {found:?}",
                bytes.len()
            );
        }
    }
}

/// Proves that bytes after the end are noticed in every format that is checked.
#[test]
fn bytes_after_the_end_are_not_whole() {
    for (name, mut bytes) in build::whole_files() {
        bytes.extend(b"more of something else");
        let found = of_file(name, &bytes);
        assert!(!matches!(found, Wholeness::Whole { .. }), "{name}: {found:?}");
    }
}

/// Proves that an empty file is torn, whatever its name.
#[test]
fn an_empty_file_is_torn() {
    for name in ["ckpt.pt", "model.safetensors", "notes.txt", "no_extension"] {
        assert!(matches!(of_file(name, &[]), Wholeness::Torn { .. }), "{name}");
    }
}

/// Proves that a checkpoint of the Trainer or of DCP is not whole if any of its files is shorter than it was.
#[test]
fn no_folder_with_a_shortened_file_is_whole() {
    for (tree, path) in [(build::trainer(), "out/checkpoint-20"), (build::dcp(), "step-30")] {
        let checkpoint = super::recognised(&tree, path);
        assert!(matches!(wholeness(&tree.listing(), &tree, &checkpoint), Wholeness::Whole { .. }));
        for file in tree.listing().files() {
            for length in 0..file.size {
                let mut damaged = tree.clone();
                damaged.shorten(&file.path, length);
                let found = wholeness(&damaged.listing(), &damaged, &checkpoint);
                assert!(
                    !matches!(found, Wholeness::Whole { .. }),
                    "{} of {length} bytes: {found:?}",
                    file.path
                );
            }
        }
    }
}

/// Proves that no change of bytes makes recognising or checking panic or run without end.
#[test]
fn changed_bytes_never_panic() {
    let mut random = Random(7);
    for (name, bytes) in build::whole_files() {
        for _ in 0..1500 {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(changed.len());
                changed[at] = random.byte();
            }
            changed.truncate(changed.len() - random.below(changed.len() / 4 + 1));
            let mut tree = Tree::default();
            tree.add(name, changed);
            let listing = tree.listing();
            let _ = file_wholeness(&tree, listing.file(name).unwrap());
            let _ = find(&listing, &tree);
        }
    }
}

/// Proves the same for folders: the metadata that names other files and says steps may hold anything.
#[test]
fn changed_bytes_in_a_folder_never_panic() {
    let mut random = Random(13);
    for (tree, path) in [(build::trainer(), "out/checkpoint-20"), (build::dcp(), "step-30")] {
        let files = tree.listing();
        for round in 0..1500 {
            let file = &files.files()[round % files.files().len()];
            let size = usize::try_from(file.size).unwrap();
            let mut bytes = tree.read_at(&file.path, 0, size).unwrap();
            for _ in 0..=random.below(3) {
                let at = random.below(size);
                bytes[at] = random.byte();
            }
            let mut changed = tree.clone();
            changed.add(&file.path, bytes);
            let listing = changed.listing();
            let _ = find(&listing, &changed);
            if let Some(checkpoint) = recognise(&listing, &changed, path) {
                let _ = wholeness(&listing, &changed, &checkpoint);
            }
        }
    }
}

/// Proves that random bytes under every name are never called whole, and never make a parser panic.
#[test]
fn random_bytes_are_not_whole() {
    let mut random = Random(11);
    for (name, whole) in build::whole_files() {
        for length in [1, 2, 7, 30, 200, 3000] {
            // The format's own first bytes, then anything.
            let mut bytes: Vec<u8> = whole[..whole.len().min(8)].to_vec();
            bytes.extend((0..length).map(|_| random.byte()));
            let found = of_file(name, &bytes);
            assert!(!matches!(found, Wholeness::Whole { .. }), "{name}: {bytes:?}");
        }
    }
}

/// A small generator with a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).unwrap() % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
