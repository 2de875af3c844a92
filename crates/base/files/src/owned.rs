use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::if_there;

/// A folder whose content is Trackway's, so that it may be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedFolder {
    path: PathBuf,
}

impl OwnedFolder {
    /// Makes a folder that does not exist yet.
    ///
    /// # Errors
    /// When something has that name, and when the disk refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        crate::make_folder(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// A folder that holds one of `signs`: files and folders that only Trackway makes.
    ///
    /// # Errors
    /// `PermissionDenied` when it holds none of them: it is not Trackway's. `NotFound` when it does not exist.
    pub fn holding(path: &Path, signs: &[&str]) -> io::Result<Self> {
        fs::metadata(path)?;
        let is_there = |sign: &&str| fs::symlink_metadata(path.join(sign)).is_ok_and(|it| !it.is_symlink());
        if signs.iter().any(is_there) {
            return Ok(Self { path: path.to_owned() });
        }
        Err(refused(path, &format!("contains no {}, so Trackway deletes nothing in it", quoted(signs))))
    }

    /// A folder in it, which may be a link that its owner made to another disk.
    ///
    /// # Errors
    /// `PermissionDenied` when `name` is not the name of an entry.
    pub fn folder(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let path = self.path.join(name);
        self.inside(&path)?;
        Ok(Self { path })
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes a file, a link or a folder with everything in it. What does not exist is deleted already.
    ///
    /// # Errors
    /// `PermissionDenied` when the path is not strictly below this folder, or leads through a link; when the disk
    /// refuses.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.inside(path)?;
        let removed = match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        if_there(removed).map(drop)
    }

    /// Deletes a folder below this one if nothing is in it. True: it is gone.
    ///
    /// # Errors
    /// As [`OwnedFolder::remove`].
    pub fn remove_if_empty(&self, path: &Path) -> io::Result<bool> {
        self.inside(path)?;
        match if_there(fs::remove_dir(path)) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            removed => removed.map(|_| true),
        }
    }

    /// Deletes the folder with everything in it.
    ///
    /// # Errors
    /// When the disk refuses. What is gone already is not an error.
    pub fn remove_all(self) -> io::Result<()> {
        if_there(fs::remove_dir_all(&self.path)).map(drop)
    }

    fn inside(&self, path: &Path) -> io::Result<()> {
        let Ok(below) = path.strip_prefix(&self.path) else {
            return Err(refused(path, &format!("is not inside `{}`", self.path.display())));
        };
        let names: Vec<Component<'_>> = below.components().collect();
        if names.is_empty() || !names.iter().all(|name| matches!(name, Component::Normal(_))) {
            return Err(refused(path, &format!("is not strictly inside `{}`", self.path.display())));
        }
        let mut parent = self.path.clone();
        for name in &names[..names.len() - 1] {
            parent.push(name);
            if fs::symlink_metadata(&parent).is_ok_and(|found| found.is_symlink()) {
                return Err(refused(path, &format!("leads through the link `{}`", parent.display())));
            }
        }
        Ok(())
    }
}

/// Removes a single name that the caller made itself: a lock, a request, a file written aside. Never a folder.
///
/// # Errors
/// When there is no such name, when it is a folder, and when the disk refuses.
pub fn unlink(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("`{}` {why}", path.display()))
}

fn quoted(signs: &[&str]) -> String {
    let signs: Vec<String> = signs.iter().map(|sign| format!("`{sign}`")).collect();
    signs.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a folder without a sign of Trackway is never one to delete from, and that a link is not a sign.
    #[test]
    fn a_folder_without_a_sign_is_not_owned() {
        let home = tempfile::tempdir().unwrap();
        let refused = OwnedFolder::holding(home.path(), &["mark"]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("mark")).unwrap();
        let refused = OwnedFolder::holding(home.path(), &["mark"]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        fs::write(home.path().join("other"), "").unwrap();
        assert_eq!(OwnedFolder::holding(home.path(), &["mark", "other"]).unwrap().path(), home.path());
        assert_eq!(
            OwnedFolder::holding(&home.path().join("no"), &["mark"]).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    /// Proves that nothing outside an owned folder goes: not itself, not through `..`, not through a link.
    #[test]
    fn only_what_lies_strictly_below_goes() {
        let home = tempfile::tempdir().unwrap();
        let (own, theirs) = (home.path().join("own"), home.path().join("theirs"));
        fs::create_dir_all(theirs.join("deep")).unwrap();
        fs::write(theirs.join("thesis.txt"), "years").unwrap();
        let owned = OwnedFolder::create(&own).unwrap();
        std::os::unix::fs::symlink(&theirs, own.join("link")).unwrap();
        for path in [
            own.clone(),
            own.join(".."),
            own.join("../theirs"),
            own.join("link/thesis.txt"),
            own.join("link/deep"),
            theirs.clone(),
        ] {
            let refused = owned.remove(&path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{}", path.display());
        }
        owned.remove(&own.join("link")).unwrap();
        assert!(theirs.join("thesis.txt").exists() && !own.join("link").exists());
        fs::create_dir_all(own.join("a/b")).unwrap();
        assert!(!owned.remove_if_empty(&own.join("a")).unwrap());
        assert!(owned.remove_if_empty(&own.join("a/b")).unwrap());
        owned.remove(&own.join("a")).unwrap();
        owned.remove(&own.join("a")).unwrap();
        owned.remove_all().unwrap();
        assert!(!own.exists() && theirs.join("deep").exists());
    }

    /// Proves that a folder which exists is never taken for one that was just made, and that `unlink` removes no
    /// folder.
    #[test]
    fn an_existing_folder_is_not_created() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(OwnedFolder::create(home.path()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(unlink(home.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert!(home.path().exists());
    }
}
