//! Which parts the states of a training have: a later one that lacks one of them is not finished.

use std::collections::{BTreeMap, BTreeSet};

use trackway_layouts::{Part, PartName};

/// The parts by folder and by the names without their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Families(BTreeMap<(String, String), BTreeSet<Part>>);

impl Families {
    /// A state in several files was whole: `path` is that of the model's file, as receipts show it.
    pub fn put(&mut self, path: &str, beside: &[String]) {
        let Some((key, parts)) = parts_of(path, beside).filter(|_| !beside.is_empty()) else { return };
        let known = self.0.entry(key).or_insert_with(|| parts.clone());
        known.retain(|part| parts.contains(part));
    }

    /// What a state lacks that those before have; none if nothing, or none is known.
    pub fn missing(&self, path: &str, beside: &[String]) -> Option<String> {
        let (key, parts) = parts_of(path, beside)?;
        let missing = self.0.get(&key)?.iter().find(|part| !parts.contains(part))?;
        let what = match missing {
            Part::Model => "model",
            Part::Average => "averaged weights",
            Part::Optimizer => "optimizer",
            Part::Scheduler => "schedule",
            Part::Scaler => "scaler",
            Part::Rng => "random numbers",
            Part::DataCursor => "place in the data",
        };
        Some(format!("the file of its {what} is missing, which those before have"))
    }
}

/// What states of one training have in common, and the parts of this one.
fn parts_of(path: &str, beside: &[String]) -> Option<((String, String), BTreeSet<Part>)> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let model = PartName::of(name)?;
    let family = model.family();
    let others = beside.iter().filter_map(|name| PartName::of(name)).map(|name| name.part);
    Some(((folder.to_owned(), family), [model.part].into_iter().chain(others).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a state is missing what every one before it had, in its own folder and under its own name, and
    /// nothing that only some had.
    #[test]
    fn a_part_that_all_have_may_be_missing() {
        let mut families = Families::default();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(families.missing("out/model-10.pt", &[]), None, "nothing is known");
        families.put("out/model-10.pt", &names(&["optim-10.pt", "scaler-10.pt"]));
        families.put("out/model-20.pt", &names(&["optim-20.pt"]));
        for (path, beside, expected) in [
            ("out/model-30.pt", &[][..], Some("optimizer")),
            ("out/optim-30.pt", &[], Some("model")),
            ("out/model-30.pt", &["optim-30.pt"], None),
            ("out/model-final.pt", &[], None),
            ("other/model-30.pt", &[], None),
        ] {
            let found = families.missing(path, &names(beside));
            assert_eq!(found.is_some(), expected.is_some(), "{path}: {found:?}");
            assert!(found.is_none_or(|what| what.contains(expected.unwrap())));
        }
    }
}
