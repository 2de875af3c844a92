//! Where a checkpoint is: one path, or several files of one folder that hold one state together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use trackway_formats::path_text::{path_of, text_of};
use trackway_layouts::{PartName, together};

/// A path, with the files beside it that hold the rest of its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path: of several files that of the model.
    pub path: PathBuf,
    /// The names of the other files in its folder, as [`trackway_formats::path_text`] has them.
    pub beside: Vec<String>,
    /// Which of the paths are named for themselves.
    named: Vec<PathBuf>,
}

impl Place {
    /// One path.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), beside: Vec::new(), named: vec![path.to_owned()] }
    }

    /// A path with these files beside it.
    #[must_use]
    pub fn with(path: &Path, beside: Vec<String>) -> Self {
        Self { beside, ..Self::of(path) }
    }

    /// Each of the paths that are named, for itself: where the files turn out not to be one state.
    #[must_use]
    pub fn apart(&self) -> Vec<Self> {
        self.named.iter().map(|path| Self::of(path)).collect()
    }

    /// All paths.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        [self.path.clone()]
            .into_iter()
            .chain(self.beside.iter().map(|name| self.path.with_file_name(path_of(name))))
    }
}

/// The same paths, with what is beside them: a file whose name says that it holds a part of a state belongs to the
/// others of that state, also where only some of them are named. `entries_max`: so many entries of folders are looked
/// at.
pub(crate) fn places_of(paths: BTreeSet<PathBuf>, entries_max: usize) -> Vec<Place> {
    let mut left = entries_max;
    let folders: BTreeSet<&Path> =
        paths.iter().filter(|path| is_part(path)).filter_map(|path| path.parent()).collect();
    let mut of_states: BTreeMap<PathBuf, Place> = BTreeMap::new();
    for folder in folders {
        let names = file_names(folder, &mut left);
        for state in together(names.iter().map(String::as_str)) {
            let mut place = Place::with(&folder.join(path_of(&state.model)), state.beside);
            place.named = place.paths().filter(|path| paths.contains(path)).collect();
            for path in place.paths().collect::<Vec<_>>() {
                of_states.insert(path, place.clone());
            }
        }
    }
    let mut places: Vec<Place> = Vec::new();
    for path in &paths {
        match of_states.get(path) {
            Some(place) if places.contains(place) => {}
            Some(place) => places.push(place.clone()),
            None => places.push(Place::of(path)),
        }
    }
    places
}

fn is_part(path: &Path) -> bool {
    path.file_name().is_some_and(|name| PartName::of(&text_of(name)).is_some())
}

/// The names of the files in a folder that may be parts of a state. A link is none.
fn file_names(folder: &Path, left: &mut usize) -> Vec<String> {
    let entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().take(*left).collect();
    *left -= entries.len();
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let names = entries.iter().filter(|entry| is_file(entry));
    let names = names.map(|entry| text_of(entry.file_name()));
    names.filter(|name| PartName::of(name).is_some()).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use super::*;

    /// Proves that what is named belongs to the files of its state, that only what is named is looked at for itself
    /// where they are not one, and that neither links nor the files of another folder belong to it.
    #[test]
    fn what_is_named_is_found_with_its_state() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("a")).unwrap();
        for name in ["model-10.pt", "optim-10.pt", "model-20.pt", "a/optim-20.pt", "x.pt"] {
            fs::write(at(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("optim-10.pt", at("optim-20.pt")).unwrap();
        let places = |names: &[&str]| places_of(names.iter().map(|name| at(name)).collect(), 99);
        let [state] = <[Place; 1]>::try_from(places(&["optim-10.pt"])).unwrap();
        assert_eq!((&state.path, &*state.beside), (&at("model-10.pt"), &["optim-10.pt".to_owned()][..]));
        assert_eq!(state.apart(), [Place::of(&at("optim-10.pt"))]);
        let all = places(&["model-10.pt", "model-20.pt", "optim-10.pt", "optim-20.pt", "x.pt"]);
        let paths: Vec<_> = all.iter().map(|place| place.path.clone()).collect();
        assert_eq!(paths, ["model-10.pt", "model-20.pt", "optim-20.pt", "x.pt"].map(at));
        assert_eq!(places_of([at("optim-10.pt")].into(), 0), [Place::of(&at("optim-10.pt"))]);
    }
}
