//! Folders on a disk.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use crate::listing::list_at_most;
use crate::{Folder, ListError, Listing, Source, list, list_to_search};

/// Proves that links are named and not followed, and that those which leave the folder are said to.
#[test]
fn links_are_named_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("out");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("a.pt"), b"x").unwrap();
    fs::write(folder.path().join("outside.pt"), b"x").unwrap();
    symlink("../a.pt", root.join("sub/inside.pt")).unwrap();
    symlink("../../outside.pt", root.join("sub/outside.pt")).unwrap();
    symlink(folder.path(), root.join("absolute")).unwrap();
    let listing = list(&root).unwrap();
    assert_eq!(listing.files().iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a.pt"]);
    let links: Vec<_> = listing.links().iter().map(|link| (link.path.as_str(), link.leaves)).collect();
    assert_eq!(links, [("absolute", true), ("sub/inside.pt", false), ("sub/outside.pt", true)]);
}

/// Proves that a file and a folder whose names are not UTF-8 are listed and read like others, and that a name which
/// looks like an escape is none.
#[test]
fn names_that_are_not_text_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
    fs::create_dir(at(b"run\xe9")).unwrap();
    for name in [&b"run\xe9/a.pt"[..], b"\xff.pt", b"\\xff.pt"] {
        fs::write(at(name), name).unwrap();
    }
    symlink(OsStr::from_bytes(b"\xff.pt"), at(b"link")).unwrap();
    let listing = list(folder.path()).unwrap();
    let paths: Vec<_> = listing.files().iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["\\x5cxff.pt", "\\xff.pt", "run\\xe9/a.pt"]);
    assert_eq!((listing.links()[0].target.as_str(), listing.skipped().len()), ("\\xff.pt", 0));
    let source = Folder::new(folder.path());
    for (path, name) in paths.iter().zip([&b"\\xff.pt"[..], b"\xff.pt", b"run\xe9/a.pt"]) {
        assert_eq!(source.read_at(path, 0, 99).unwrap(), name, "{path}");
    }
    assert_eq!(list(&at(b"\xff.pt")).unwrap().files()[0].path, "\\xff.pt");
}

/// Proves that a fingerprint changes with the content's length, time or inode, and with nothing outside of the path.
#[test]
fn a_fingerprint_is_of_one_path() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two", "two-more"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("w.pt"), b"x").unwrap();
    }
    let before = list(folder.path()).unwrap();
    fs::write(folder.path().join("two/w.pt"), b"xy").unwrap();
    let after = list(folder.path()).unwrap();
    assert_eq!(before.fingerprint("one"), after.fingerprint("one"));
    assert_eq!(before.fingerprint("two-more"), after.fingerprint("two-more"));
    assert_ne!(before.fingerprint("two"), after.fingerprint("two"));
    assert_eq!(after.fingerprint("three"), None);
    // Written beside it and renamed, as long as before: another inode.
    fs::write(folder.path().join("one/new"), b"y").unwrap();
    fs::rename(folder.path().join("one/new"), folder.path().join("one/w.pt")).unwrap();
    assert_ne!(after.fingerprint("one"), list(folder.path()).unwrap().fingerprint("one"));
}

/// Proves that a folder with more files, links and folders than the bound is an error that says what to do.
#[test]
fn too_many_files_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for name in ["a", "sub/b"] {
        fs::write(folder.path().join(name), b"x").unwrap();
    }
    assert_eq!(list_at_most(folder.path(), 4, |_, _| true, |_| true).unwrap().files().len(), 2);
    let error = list_at_most(folder.path(), 3, |_, _| true, |_| true).unwrap_err();
    assert!(matches!(error, ListError::TooManyFiles(_, _)));
    assert!(error.to_string().contains("name the checkpoints below it"), "{error}");
}

/// Proves that of files which no layout reads a search knows the names alone, of a pickle with such an ending all, and that a
/// listing of one checkpoint has the state of every file.
#[test]
fn a_search_knows_only_the_names_of_data() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.JPG", "b.csv", "c.pt", "d.json", "e.pkl.py", "f"] {
        fs::write(folder.path().join(name), b"x").unwrap();
    }
    let asked = |listing: &Listing| -> Vec<String> {
        listing.files().iter().filter(|file| file.inode != 0).map(|file| file.path.clone()).collect()
    };
    let search = list_to_search(folder.path(), &[]).unwrap();
    assert_eq!((search.files().len(), asked(&search).join(" ")), (6, "c.pt d.json e.pkl.py f".to_owned()));
    assert_eq!(asked(&list(folder.path()).unwrap()).len(), 6);
}

/// Proves that a search does not enter a folder that is left out, whatever is in it.
#[test]
fn a_search_leaves_a_folder_out() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["home/attempts", "out"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("c.pt"), b"x").unwrap();
    }
    let search = list_to_search(folder.path(), &[folder.path().join("home")]).unwrap();
    assert_eq!(search.files().iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["out/c.pt"]);
}

/// Proves that one file is a listing of its name, that a missing folder is an error with its path, and that a folder
/// reads beyond an end as nothing.
#[test]
fn a_file_and_a_missing_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ckpt.pt"), b"abc").unwrap();
    let listing = list(&folder.path().join("ckpt.pt")).unwrap();
    assert_eq!(listing.file("ckpt.pt").map(|file| file.size), Some(3));
    let error = list(&folder.path().join("missing")).unwrap_err().to_string();
    assert!(error.starts_with("cannot list `") && error.contains("missing"), "{error}");
    let source = Folder::new(folder.path());
    assert_eq!(source.read_at("ckpt.pt", 1, 10).unwrap(), b"bc");
    assert_eq!(source.read_at("ckpt.pt", 10, 10).unwrap(), b"");
}
