//! A checkpoint while an evaluator reads it: without write permissions.
//!
//! Modes stop a mistake; they stop neither root nor an owner that changes them. What counts is that every byte is read
//! again afterwards ([`crate::checkpoints::Checkpoints::check_unchanged`]).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const WRITE_BITS: u32 = 0o222;
const OWNER_WRITES: u32 = 0o200;

/// Takes the right to write from everything below a folder, and gives it back when it is dropped.
pub struct ReadOnly {
    /// With their modes; folders before what they hold.
    changed: Vec<(PathBuf, u32)>,
}

impl ReadOnly {
    /// Of the folder itself too. What cannot be changed stays as it is.
    pub fn of(folder: &Path) -> Self {
        let mut changed = Vec::new();
        protect(folder, &mut changed);
        Self { changed }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        for (path, mode) in &self.changed {
            // Another evaluation may have taken the right first: then the mode that was found is not what it was.
            let _ = fs::set_permissions(path, Permissions::from_mode(mode | OWNER_WRITES));
        }
    }
}

fn protect(path: &Path, changed: &mut Vec<(PathBuf, u32)>) {
    let Ok(found) = path.symlink_metadata() else { return };
    if found.is_symlink() {
        return;
    }
    let mode = found.permissions().mode() & 0o7777;
    if fs::set_permissions(path, Permissions::from_mode(mode & !WRITE_BITS)).is_ok() {
        changed.push((path.to_owned(), mode));
    }
    if found.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            protect(&entry.path(), changed);
        }
    }
}

/// Gives the owner of a folder, and of the folders below it, the right to write back: of an evaluation that was killed.
pub fn writable_again(folder: &Path) {
    let Ok(found) = folder.symlink_metadata() else { return };
    if !found.is_dir() {
        return;
    }
    let mode = found.permissions().mode() & 0o7777;
    if mode & OWNER_WRITES == 0 {
        let _ = fs::set_permissions(folder, Permissions::from_mode(mode | OWNER_WRITES));
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        writable_again(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    /// Proves that nothing below a folder has a bit for writing while it is read, and that all modes are as before
    /// afterwards; that folders of a killed evaluation can be deleted again, and that what links lead to is left alone.
    #[test]
    fn modes_go_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, file) = (folder.path().join("inner"), folder.path().join("inner/file"));
        let other = tempfile::NamedTempFile::new().unwrap();
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(other.path(), folder.path().join("link")).unwrap();
        let before = mode(&inner);
        let guard = ReadOnly::of(folder.path());
        assert_eq!((mode(&inner) & WRITE_BITS, mode(&file)), (0, 0o440));
        assert_ne!(mode(other.path()) & WRITE_BITS, 0);
        drop(guard);
        assert_eq!((mode(&inner), mode(&file)), (before, 0o640));
        std::mem::forget(ReadOnly::of(folder.path()));
        writable_again(folder.path());
        assert_ne!(mode(&inner) & OWNER_WRITES, 0);
    }
}
