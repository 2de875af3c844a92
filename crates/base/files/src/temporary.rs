use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{OwnedFolder, open_own};

/// Makes the names of this process's files unique.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// Names that killed processes of this id may have left are passed, at most so many.
const NAMES_TRIED_MAX: usize = 1_000;

/// A new file beside the one it becomes. Dropped before, it leaves nothing.
#[derive(Debug)]
pub struct TempFile {
    path: PathBuf,
    is_kept: bool,
    _maker: Option<File>,
}

impl TempFile {
    /// Makes `.NAME.part-PID-NUMBER` beside `target`, and opens it for writing.
    pub fn beside(target: &Path) -> io::Result<(Self, File)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let (path, (maker, file)) = new_name(target, |path| {
            let file = open_own(&mut options, path)?;
            Ok((hold(path, file.try_clone()?)?, file))
        })?;
        Ok((Self { path, is_kept: false, _maker: maker }, file))
    }

    /// The file as it is now.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, whatever file had it, and makes the name durable. The caller has synced the bytes.
    ///
    /// # Errors
    /// When the disk refuses; the file is gone then.
    pub fn persist(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.is_kept = true;
        sync_parent(target)
    }

    /// Gives it a name that nothing has.
    ///
    /// # Errors
    /// `AlreadyExists` when something has that name; when the disk refuses. The file is gone then.
    pub fn persist_new(self, target: &Path) -> io::Result<()> {
        fs::hard_link(&self.path, target)?;
        sync_parent(target)
    }

    /// Writes a file whole or not at all.
    ///
    /// # Errors
    /// When the disk refuses; what had the name stays then.
    pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let (temporary, mut file) = Self::beside(target)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        temporary.persist(target)
    }

    /// The same, but a power cut may give back what had the name before, or nothing: the name is durable with the next
    /// one of its folder that is. What has it is always whole.
    ///
    /// # Errors
    /// As [`TempFile::write`].
    pub fn write_whole(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let (mut temporary, mut file) = Self::beside(target)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary.path, target)?;
        temporary.is_kept = true;
        Ok(())
    }

    /// The same without waiting for the disk: for what can be made again, or means nothing after a power cut, which may lose it.
    ///
    /// # Errors
    /// As [`TempFile::write`].
    pub fn write_cache(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let (mut temporary, mut file) = Self::beside(target)?;
        file.write_all(bytes)?;
        fs::rename(&temporary.path, target)?;
        temporary.is_kept = true;
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A new folder beside the one it becomes. Dropped before, it is deleted with everything in it.
#[derive(Debug)]
pub struct TempFolder {
    folder: Option<OwnedFolder>,
    _maker: Option<File>,
}

impl TempFolder {
    /// Makes `.NAME.part-PID-NUMBER` beside `target`.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let (_, (folder, maker)) = new_name(target, |path| {
            let folder = OwnedFolder::create(path)?;
            let gone_again = |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound => io::ErrorKind::AlreadyExists.into(),
                _ => error,
            };
            let maker = File::open(path).and_then(|opened| hold(path, opened)).map_err(gone_again)?;
            Ok((folder, maker))
        })?;
        Ok(Self { folder: Some(folder), _maker: maker })
    }

    /// Makes a folder of this very name.
    ///
    /// # Errors
    /// When something has that name, and when the disk refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { folder: Some(OwnedFolder::create(path)?), _maker: None })
    }

    /// Whether a name is one that [`TempFolder::beside`] gives to what becomes `target_name`.
    #[must_use]
    pub fn is_name_of(name: &str, target_name: &str) -> bool {
        let name = name.strip_prefix('.').and_then(|name| name.strip_prefix(target_name));
        name.is_some_and(ends_as_temporary)
    }

    /// Removes folders that processes which were killed left of making `target`: those that hold one of `signs`, which
    /// only Trackway writes, or nothing, and whose maker is gone.
    pub fn clear_abandoned(target: &Path, signs: &[&str]) -> io::Result<()> {
        let (Some(folder), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(());
        };
        for path in abandoned(folder, |found| Self::is_name_of(found, name))? {
            match OwnedFolder::holding(&path, signs) {
                Ok(left) => left.remove_all()?,
                // It goes where it is empty only.
                Err(_) => drop(fs::remove_dir(&path)),
            }
        }
        Ok(())
    }

    /// The folder as it is now.
    ///
    /// # Panics
    /// Never: only [`TempFolder::persist`] takes it away, with the value.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.as_ref().expect("it is taken with the value only").path()
    }

    /// Gives it its name, which nothing has, or an empty folder. Durable.
    ///
    /// # Errors
    /// When something else has that name, and when the disk refuses. The folder is gone then.
    pub fn persist(mut self, target: &Path) -> io::Result<()> {
        fs::rename(self.path(), target)?;
        self.folder = None;
        sync_parent(target)
    }

    /// Gives it the name of a folder of Trackway, which goes. A kill leaves one of both there, wherever the file system
    /// can exchange names.
    ///
    /// # Errors
    /// When the disk refuses; when that is before the exchange, what had the name stays.
    pub fn replace(self, target: &OwnedFolder) -> io::Result<()> {
        let new = self.path().to_owned();
        if exchange(&new, target.path()).is_err() {
            // Without such a call in the file system: the old one goes aside, into what this process made.
            let aside = aside_of(&new);
            fs::rename(target.path(), &aside)?;
            fs::rename(&new, target.path())?;
            fs::rename(&aside, &new)?;
        }
        // Now the old one has the temporary name, and is deleted with it.
        drop(self);
        sync_parent(target.path())
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            // What cannot be removed has a name that is never read.
            let _ = folder.remove_all();
        }
    }
}

impl OwnedFolder {
    /// Removes what processes which were killed left of writing files and folders directly in it.
    pub fn clear_abandoned(&self) -> io::Result<()> {
        let is_temporary = |name: &str| {
            name.starts_with('.') && name.find(".part-").is_some_and(|at| ends_as_temporary(&name[at..]))
        };
        abandoned(self.path(), is_temporary)?.iter().try_for_each(|path| self.remove(path))
    }
}

/// Whether a name ends as [`new_name`] makes it: `.part-PID-NUMBER`.
fn ends_as_temporary(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix(".part-").and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// A name of this process that [`new_name`] never makes, for what `part` takes the place of.
fn aside_of(part: &Path) -> PathBuf {
    let name = part.file_name().unwrap_or_default().to_string_lossy();
    let (before, number) = name.rsplit_once('-').unwrap_or((&name, ""));
    part.with_file_name(format!("{before}-0{number}"))
}

/// Locks what was just made for as long as its maker lives, so that it is not cleared. Does nothing if the file system
/// has no locks: nothing is cleared there.
///
/// # Errors
/// `AlreadyExists` when another process takes it for abandoned, between both.
fn hold(path: &Path, made: File) -> io::Result<Option<File>> {
    match made.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(TryLockError::Error(_)) => return Ok(None),
    }
    let own = made.metadata()?.ino();
    match fs::symlink_metadata(path) {
        Ok(found) if found.ino() == own => Ok(Some(made)),
        _ => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Files and folders with such a name whose maker does not live: they are not locked.
fn abandoned(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_wanted = entry.file_name().to_str().is_some_and(&is_wanted);
        if is_wanted && (kind.is_file() || kind.is_dir()) {
            let is_free = File::open(entry.path()).is_ok_and(|opened| opened.try_lock().is_ok());
            found.extend(is_free.then(|| entry.path()));
        }
    }
    Ok(found)
}

fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes());
    let (one, other) = (name(one)?, name(other)?);
    let (folder, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // Not by a function of the C library: that of musl has none before 1.2.6.
    // SAFETY: both strings end with NUL and live through the call.
    let result =
        unsafe { libc::syscall(libc::SYS_renameat2, folder, one.as_ptr(), folder, other.as_ptr(), flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes something beside `target` under the first name that is free.
pub(crate) fn new_name<T>(
    target: &Path,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a path without a name"))?;
    let process = std::process::id();
    for _ in 0..NAMES_TRIED_MAX {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut part = std::ffi::OsString::from(".");
        part.push(name);
        part.push(format!(".part-{process}-{number}"));
        let path = target.with_file_name(part);
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (path, made)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every temporary name is taken"))
}

/// Makes the names in the folder of `path` survive a power cut.
///
/// # Errors
/// When the disk refuses.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Proves that a file that is not kept leaves nothing, and that one that is kept leaves nothing else.
    #[test]
    fn a_temporary_file_is_kept_or_gone() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("a.json");
        drop(TempFile::beside(&target).unwrap());
        assert!(names(home.path()).is_empty());
        for write in [TempFile::write, TempFile::write_whole, TempFile::write_cache] {
            write(&target, b"one").unwrap();
            write(&target, b"two").unwrap();
            assert_eq!(
                (names(home.path()), fs::read(&target).unwrap()),
                (vec!["a.json".into()], b"two".to_vec())
            );
        }
        let (temporary, _) = TempFile::beside(&target).unwrap();
        assert_eq!(temporary.persist_new(&target).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            (names(home.path()), fs::read(&target).unwrap()),
            (vec!["a.json".into()], b"two".to_vec())
        );
    }

    /// Proves that a folder takes the place of an empty one, and never of one with something in it.
    #[test]
    fn a_temporary_folder_replaces_nothing_but_an_empty_folder() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("out");
        fs::create_dir(&target).unwrap();
        let folder = TempFolder::beside(&target).unwrap();
        fs::write(folder.path().join("model"), "m").unwrap();
        folder.persist(&target).unwrap();
        let folder = TempFolder::beside(&target).unwrap();
        let refused = folder.persist(&target).unwrap_err().kind();
        // Some file systems have the one name for it, and some the other.
        let is_full = matches!(refused, io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists);
        assert!(is_full, "{refused:?}");
        assert_eq!((names(home.path()), names(&target)), (vec!["out".into()], vec!["model".into()]));
    }

    /// Proves that what a killed process left is removed and what a live one is making is not; that a folder without a
    /// sign stays; and that no other name is taken for a temporary one.
    #[test]
    fn only_what_is_abandoned_is_cleared() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("out");
        let owned = OwnedFolder::create(&home.path().join("own")).unwrap();
        let file = owned.path().join("a.json");
        let (made, _file) = TempFile::beside(&file).unwrap();
        let folder = TempFolder::beside(&target).unwrap();
        for name in [".out.part-1-0", ".out.part-1-1", ".out.part-1-2", ".out.part-x", "out.part-1-3"] {
            fs::create_dir(home.path().join(name)).unwrap();
        }
        fs::write(home.path().join(".out.part-1-1/mark"), "").unwrap();
        fs::write(home.path().join(".out.part-1-2/thesis.txt"), "").unwrap();
        fs::write(owned.path().join(".a.json.part-1-0"), "").unwrap();
        fs::write(owned.path().join(".a.part-b.json"), "").unwrap();
        TempFolder::clear_abandoned(&target, &["mark"]).unwrap();
        owned.clear_abandoned().unwrap();
        let name_of = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut left = vec![".out.part-1-2".into(), ".out.part-x".into(), name_of(folder.path())];
        left.extend(["out.part-1-3".into(), "own".into()]);
        left.sort();
        assert_eq!(names(home.path()), left);
        let mut left = vec![".a.part-b.json".into(), name_of(made.path())];
        left.sort();
        assert_eq!(names(owned.path()), left);
        assert!(ends_as_temporary(&name_of(&aside_of(folder.path()))[".out".len()..]));
    }

    /// Proves that a folder of Trackway is exchanged for a new one, and that nothing else is left.
    #[test]
    fn an_owned_folder_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("v1");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("mark"), "old").unwrap();
        let folder = TempFolder::beside(&target).unwrap();
        fs::write(folder.path().join("mark"), "new").unwrap();
        folder.replace(&OwnedFolder::holding(&target, &["mark"]).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(target.join("mark")).unwrap(), "new");
        assert_eq!(names(home.path()), ["v1"]);
        assert!(
            TempFolder::is_name_of(".v1.part-7-0", "v1") && !TempFolder::is_name_of(".v12.part-7-0", "v1")
        );
    }
}
