//! Who may read and write what Trackway makes.
//!
//! What Trackway keeps is its user's: folders 0700, files 0600, whatever the umask. A **team home** is a folder with
//! the set-group-id bit and the rights of its group (2770); below it folders are 2770 and files 0660. The folder's mode
//! marks it and is inherited, so that a training process needs no setting.
//!
//! What a person names as an output keeps the rights that the umask of that person gives.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::OnceLock;

use crate::{if_there, open_regular};

/// Names the group of a team home.
pub const GROUP_VARIABLE: &str = "TRACKWAY_HOME_GROUP";

const TEAM: u32 = 0o2070;
static USER_UMASK: OnceLock<libc::mode_t> = OnceLock::new();

/// Rights of what is kept in one folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rights {
    file: u32,
    folder: u32,
    is_team: bool,
}

impl Rights {
    fn in_folder(folder: &Path) -> Self {
        let mode = fs::metadata(folder).map_or(0, |found| found.mode());
        match mode & TEAM == TEAM {
            true => Self { file: 0o660, folder: 0o2770, is_team: true },
            false => Self { file: 0o600, folder: 0o700, is_team: false },
        }
    }
}

/// From here on the process writes for its user alone, or for the group of a team home. Called once, when it starts.
pub fn restrict_umask() {
    let is_team = std::env::var_os(GROUP_VARIABLE).is_some_and(|group| !group.is_empty());
    let own = if is_team { 0o007 } else { 0o077 };
    // SAFETY: the call takes and gives an integer.
    let before = unsafe { libc::umask(own) };
    USER_UMASK.get_or_init(|| before);
}

/// The umask of the user, for processes that are the user's: to be set between `fork` and `exec`. None: it was not
/// changed.
#[must_use]
pub fn user_umask() -> Option<u32> {
    USER_UMASK.get().copied()
}

/// Gives a process that is started the umask of the user.
pub fn restore_umask(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt as _;
    let Some(umask) = USER_UMASK.get().copied() else { return };
    let restore = move || {
        // SAFETY: the call is async-signal-safe, and takes and gives an integer.
        unsafe { libc::umask(umask) };
        Ok(())
    };
    // SAFETY: the closure makes one async-signal-safe call and allocates nothing.
    unsafe { command.pre_exec(restore) };
}

/// Gives an output that a person named the rights that the umask of that person gives.
pub fn give_to_user(path: &Path) -> io::Result<()> {
    let Some(umask) = user_umask() else { return Ok(()) };
    let found = fs::symlink_metadata(path)?;
    let most = match () {
        () if found.is_dir() => 0o777,
        () if found.is_file() => 0o666,
        () => return Ok(()),
    };
    let special = found.mode() & 0o7000;
    fs::set_permissions(path, Permissions::from_mode(special | (most & !umask)))
}

/// Makes a folder that a person named, with those above it, and gives what is new to that person.
pub fn make_folders_of_user(folder: &Path) -> io::Result<()> {
    let is_missing = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(folder)?;
    missing.into_iter().try_for_each(give_to_user)
}

/// As [`give_to_user`] for a folder with everything in it.
pub fn give_tree_to_user(folder: &Path) -> io::Result<()> {
    if user_umask().is_none() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => give_tree_to_user(&entry.path())?,
            false => give_to_user(&entry.path())?,
        }
    }
    give_to_user(folder)
}

/// Makes a folder and those above it, for the user or the team alone. Existing ones stay as they are.
pub fn make_folders(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folders(parent)?;
    match make_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes one folder, for the user or the team alone.
///
/// # Errors
/// `AlreadyExists`; when the disk refuses.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let rights = Rights::in_folder(parent);
    DirBuilder::new().mode(rights.folder & 0o777).create(path)?;
    // The umask of a training process may have taken away what the team needs.
    if rights.is_team { fs::set_permissions(path, Permissions::from_mode(rights.folder)) } else { Ok(()) }
}

/// Opens a file for writing; one that is made is for the user or the team alone.
///
/// # Errors
/// Those of [`OpenOptions::open`].
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let rights = Rights::in_folder(parent);
    let file = options.mode(rights.file).open(path)?;
    if rights.is_team {
        // Only its owner may, and has done so when it was made.
        let _ = file.set_permissions(Permissions::from_mode(rights.file));
    }
    Ok(file)
}

/// Writes a new file, or replaces the content of one, for the user or the team alone.
pub fn write_own(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    open_own(OpenOptions::new().write(true).create(true).truncate(true), path)?.write_all(bytes)
}

/// Opens a file that decides something: how an attempt ended, or a request to stop it.
///
/// It is trusted when it has the owner of its folder and no other user can write either; in the folder of a team, when
/// both have the same group.
///
/// # Errors
/// `PermissionDenied` with the reason, when it is not to be believed; those of [`open_regular`].
pub fn open_trusted(path: &Path) -> io::Result<File> {
    let file = open_regular(path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match mistrust(&file.metadata()?, &fs::metadata(parent)?) {
        None => Ok(file),
        Some(why) => {
            let message = format!("not trusted: {why}; remove it, or make it writable by its owner only");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        }
    }
}

/// Opens a file that sets something for this user, wherever it was found: as [`open_trusted`], and its owner is this
/// user or root.
///
/// # Errors
/// As [`open_trusted`]; `PermissionDenied` with the reason for a file of another user.
pub fn open_of_user(path: &Path) -> io::Result<File> {
    let file = open_trusted(path)?;
    let owner = file.metadata()?.uid();
    // SAFETY: the call takes nothing and gives an integer.
    let own = unsafe { libc::geteuid() };
    if owner == own || owner == 0 {
        return Ok(file);
    }
    let message = format!("not trusted: it belongs to user {owner}, and not to user {own} or root");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Why a file in a folder may be written by another user.
fn mistrust(file: &Metadata, folder: &Metadata) -> Option<String> {
    let is_team = folder.mode() & TEAM == TEAM && file.gid() == folder.gid();
    let writers = if is_team { 0o002 } else { 0o022 };
    if folder.mode() & writers != 0 {
        return Some(format!("other users can write its folder (mode {:o})", folder.mode() & 0o7777));
    }
    if file.mode() & writers != 0 {
        return Some(format!("other users can write it (mode {:o})", file.mode() & 0o7777));
    }
    (file.uid() != folder.uid() && !is_team)
        .then(|| format!("it belongs to user {}, and its folder to user {}", file.uid(), folder.uid()))
}

/// Whether this user may write a file or folder, and its disk permits it.
#[must_use]
pub fn may_write(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the text ends with NUL and lives through the call.
    unsafe { libc::access(name.as_ptr(), libc::W_OK) == 0 }
}

/// Takes rights of others away from a file or folder of this user that is there. True: it had some.
pub fn tighten(path: &Path) -> io::Result<bool> {
    let Some(found) = if_there(fs::symlink_metadata(path))? else { return Ok(false) };
    // SAFETY: the call takes nothing and gives an integer.
    let own = unsafe { libc::geteuid() };
    let is_team = found.mode() & TEAM == TEAM;
    let others = if is_team || path.parent().is_some_and(|above| Rights::in_folder(above).is_team) {
        0o007
    } else {
        0o077
    };
    if found.is_symlink() || found.uid() != own || found.mode() & others == 0 {
        return Ok(false);
    }
    fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o7777 & !others))?;
    Ok(true)
}

/// Makes a folder that of a team: its group is `group`, and everything that is made in it will be.
///
/// # Errors
/// `NotFound` for a group that does not exist; `PermissionDenied` when the folder is another user's, or this user is
/// not in the group.
pub fn give_to_group(folder: &Path, group: &str) -> io::Result<()> {
    let found = fs::metadata(folder)?;
    let gid = group_id(group)?;
    if found.mode() & 0o7777 == 0o2770 && found.gid() == gid {
        return Ok(());
    }
    std::os::unix::fs::chown(folder, None, Some(gid))?;
    fs::set_permissions(folder, Permissions::from_mode(0o2770))
}

fn group_id(group: &str) -> io::Result<u32> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    let name = CString::new(std::ffi::OsStr::new(group).as_bytes())?;
    // SAFETY: the text ends with NUL and lives through the call; the answer is read before any other call for groups,
    // which only this function makes, when a process starts.
    let gid = unsafe { libc::getgrnam(name.as_ptr()).as_ref().map(|found| found.gr_gid) };
    gid.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no group `{group}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Proves that folders and files are for the user alone, and for the team in the folder of a team.
    #[test]
    fn the_folder_says_who_may_read() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        make_folders(&at("a/b")).unwrap();
        write_own(&at("a/b/f"), b"x").unwrap();
        assert_eq!([mode(&at("a")), mode(&at("a/b")), mode(&at("a/b/f"))], [0o700, 0o700, 0o600]);
        fs::create_dir(at("team")).unwrap();
        set(&at("team"), 0o2770);
        make_folders(&at("team/b")).unwrap();
        write_own(&at("team/b/f"), b"x").unwrap();
        assert_eq!([mode(&at("team/b")), mode(&at("team/b/f"))], [0o2770, 0o660]);
    }

    /// Proves that a file which others can write, or in a folder which they can, is not believed, and that a pipe is
    /// not opened.
    #[test]
    fn what_others_can_write_is_not_believed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("exit.json");
        fs::write(&file, "{}").unwrap();
        for (folder_mode, file_mode, why) in [
            (0o700, 0o600, None),
            (0o755, 0o644, None),
            (0o777, 0o644, Some("folder (mode 777)")),
            (0o775, 0o644, Some("folder (mode 775)")),
            (0o755, 0o666, Some("write it (mode 666)")),
            (0o755, 0o664, Some("write it (mode 664)")),
            (0o2770, 0o660, None),
            (0o2777, 0o660, Some("folder (mode 2777)")),
        ] {
            set(home.path(), folder_mode);
            set(&file, file_mode);
            let opened = open_trusted(&file).map(|_| ()).map_err(|error| error.to_string());
            match why {
                None => assert_eq!(opened, Ok(()), "{folder_mode:o} {file_mode:o}"),
                Some(why) => {
                    assert!(opened.as_ref().is_err_and(|refusal| refusal.contains(why)), "{opened:?}")
                }
            }
        }
        // Only root can give a file away.
        set(home.path(), 0o700);
        set(&file, 0o600);
        if std::os::unix::fs::chown(&file, Some(65_534), None).is_ok() {
            assert!(open_trusted(&file).unwrap_err().to_string().contains("belongs to user 65534"));
        }
    }

    /// Proves that a file of this user is used, and one that another user placed with its folder is not.
    #[test]
    fn a_file_of_another_user_sets_nothing() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        fs::write(&file, "a = 1\n").unwrap();
        set(&file, 0o600);
        assert_eq!(io::read_to_string(open_of_user(&file).unwrap()).unwrap(), "a = 1\n");
        set(&file, 0o666);
        assert!(open_of_user(&file).unwrap_err().to_string().contains("write it (mode 666)"));
        // Only root can give a file away.
        set(&file, 0o644);
        let give = |path: &Path| std::os::unix::fs::chown(path, Some(65_534), None);
        if give(&file).and_then(|()| give(home.path())).is_ok() {
            assert_eq!(io::read_to_string(open_trusted(&file).unwrap()).unwrap(), "a = 1\n");
            assert!(open_of_user(&file).unwrap_err().to_string().contains("belongs to user 65534"));
        }
    }

    /// Proves that rights of others are taken away once, and that a team keeps its own.
    #[test]
    fn rights_of_others_are_taken_away() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("ledger.db");
        fs::write(&file, "").unwrap();
        set(&file, 0o664);
        assert!(tighten(&file).unwrap() && !tighten(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
        set(home.path(), 0o2777);
        set(&file, 0o664);
        assert!(tighten(&file).unwrap() && tighten(home.path()).unwrap());
        assert_eq!((mode(&file), mode(home.path())), (0o660, 0o2770));
        assert!(!tighten(&home.path().join("nothing")).unwrap());
    }
}
