//! What an import leaves out of a store, and what is not in the ledger as it is in the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trackway_core::closed_list;

/// So many are listed; further ones are counted.
const LISTED_MAX: usize = 1000;

closed_list!(
    /// What is left out or changed.
    OmissionKind, "kind of omission", {
        /// A run.
        Run = "run",
        /// A folder.
        Folder = "folder",
        /// A file.
        File = "file",
        /// A record of a file.
        Record = "record",
        /// A metric.
        Metric = "metric",
        /// Values of a metric.
        Value = "value",
        /// A parameter.
        Parameter = "parameter",
        /// A tag.
        Tag = "tag",
        /// Something that is not a number, such as an image or a text.
        Object = "object",
        /// More than are listed.
        Other = "other",
    }
);

/// Something that is left out or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    pub kind: OmissionKind,
    /// Where it is.
    pub path: PathBuf,
    /// How many there are.
    pub count: u64,
    pub why: String,
}

/// A bounded list of omissions, by place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Omissions {
    listed: BTreeMap<(PathBuf, OmissionKind, String), u64>,
    beyond: u64,
}

impl Omissions {
    /// Adds so many of a kind; none changes nothing. Those of one place and reason are counted together.
    pub fn add(&mut self, kind: OmissionKind, path: &Path, why: impl Into<String>, count: u64) {
        self.put((path.to_owned(), kind, why.into()), count);
    }

    fn put(&mut self, place: (PathBuf, OmissionKind, String), count: u64) {
        if count == 0 {
            return;
        }
        if self.listed.len() >= LISTED_MAX && !self.listed.contains_key(&place) {
            self.beyond = self.beyond.saturating_add(count);
            return;
        }
        let known = self.listed.entry(place).or_default();
        *known = known.saturating_add(count);
    }

    /// Adds all of another list.
    pub fn merge(&mut self, other: Self) {
        self.beyond = self.beyond.saturating_add(other.beyond);
        other.listed.into_iter().for_each(|(place, count)| self.put(place, count));
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The same with places and reasons of which `clean` has removed something.
    #[must_use]
    pub fn cleaned(self, mut clean: impl FnMut(&str) -> String) -> Self {
        let mut new = Self { beyond: self.beyond, ..Self::default() };
        for ((path, kind, why), count) in self.listed {
            let path = PathBuf::from(clean(&path.to_string_lossy()));
            new.put((path, kind, clean(&why)), count);
        }
        new
    }

    /// All of them, by place; one more for those that are not listed.
    #[must_use]
    pub fn list(&self) -> Vec<Omission> {
        let omission = |((path, kind, why), count): (&(PathBuf, OmissionKind, String), &u64)| Omission {
            kind: *kind,
            path: path.clone(),
            count: *count,
            why: why.clone(),
        };
        let beyond = (self.beyond > 0).then(|| Omission {
            kind: OmissionKind::Other,
            path: PathBuf::new(),
            count: self.beyond,
            why: format!("only the first {LISTED_MAX} are listed"),
        });
        self.listed.iter().map(omission).chain(beyond).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that those of one place and reason are counted together, that none is none, and that a list without end is cut and the rest
    /// counted.
    #[test]
    fn a_list_is_bounded() {
        let (mut list, path) = (Omissions::default(), Path::new("loss"));
        list.add(OmissionKind::Value, path, "NULL", 0);
        assert!(list.is_empty());
        list.add(OmissionKind::Value, path, "NULL", 2);
        list.add(OmissionKind::Value, path, "NULL", 3);
        let listed = list.list();
        assert_eq!((listed.len(), listed[0].count, &*listed[0].why), (1, 5, "NULL"));
        let mut other = Omissions::default();
        for number in 0..LISTED_MAX + 10 {
            other.add(OmissionKind::Record, path, number.to_string(), 1);
        }
        list.merge(other);
        let listed = list.list();
        let last = listed.last().unwrap();
        assert_eq!((listed.len(), last.kind, last.count), (LISTED_MAX + 1, OmissionKind::Other, 11));
    }
}
