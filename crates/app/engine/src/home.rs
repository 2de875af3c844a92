//! Where Trackway keeps its state.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind as ErrorKindOfFile};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use trackway_core::Timestamp;
use trackway_files::OwnedFolder;
use trackway_formats::layout::HomeLayout;
use trackway_formats::settings::SETTINGS_FILE;

use crate::error::{AppError, ErrorKind};

/// The folder that holds a ledger, attempts, records and checkpoints.
#[derive(Debug, Clone)]
pub struct Home {
    /// Where everything in it is.
    pub layout: HomeLayout,
    ledger_url: Option<String>,
    /// The folders that this process cleared.
    cleared: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Home {
    /// A home at `folder`, with the ledger at `ledger_url` instead of `folder/ledger.db` when given.
    #[must_use]
    pub fn new(folder: PathBuf, ledger_url: Option<String>) -> Self {
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        Self { layout: HomeLayout::new(folder), ledger_url, cleared: Arc::default() }
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.layout.folder()
    }

    /// A path of a SQLite file, or a `postgres://` URL.
    #[must_use]
    pub fn ledger_location(&self) -> String {
        self.ledger_url.clone().unwrap_or_else(|| self.layout.ledger_db().to_string_lossy().into_owned())
    }

    /// The ledger's file or URL without a password, for people.
    #[must_use]
    pub fn shown_ledger(&self) -> String {
        let location = self.ledger_location();
        if is_connection_string(&location) {
            "(a connection string, which is refused)".into()
        } else if location.contains("://") {
            trackway_ledger::without_password(&location)
        } else {
            location
        }
    }

    /// Whether the ledger was named by itself: it can then be read without the home's folder.
    #[must_use]
    pub fn has_ledger_elsewhere(&self) -> bool {
        self.ledger_url.is_some()
    }

    /// The ledger's file, where it is one.
    #[must_use]
    pub fn ledger_file(&self) -> Option<PathBuf> {
        let location = self.ledger_location();
        match location.split_once("://") {
            None => Some(location.into()),
            Some(("sqlite", path)) => Some(path.into()),
            Some(_) => None,
        }
    }

    /// Refuses a URL of a kind of ledger that does not exist, before it is taken for a path.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub fn check_ledger_scheme(&self) -> Result<(), AppError> {
        let location = self.ledger_location();
        if is_connection_string(&location) {
            // It may hold a password, so it is neither shown nor taken for the name of a file.
            let message = "the ledger is given as a connection string of `name=value` pairs";
            return Err(AppError::new(ErrorKind::Usage, message)
                .hint("write it as `postgres://user:password@host:port/database`, with `/`, `@` and `?` of the password as `%2F`, `%40` and `%3F`"));
        }
        match location.split_once("://") {
            None | Some(("postgres" | "postgresql" | "sqlite", _)) => Ok(()),
            Some((scheme, _)) => {
                let message = format!("unsupported ledger URL scheme `{scheme}://`");
                Err(AppError::new(ErrorKind::Usage, message)
                    .hint("use the path of a SQLite file or a `postgres://` URL"))
            }
        }
    }

    /// Whether it is a folder in which this user reaches the files, unless its ledger is elsewhere. It need not be listed for that.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] without one; when it cannot be entered.
    pub fn check_folder(&self) -> Result<(), AppError> {
        match self.folder().join(".").metadata() {
            Err(error) if !self.has_ledger_elsewhere() => Err(not_read(self.folder(), error)),
            _ => Ok(()),
        }
    }

    /// Makes the home where it does not exist, for this user alone, or for the group that `TRACKWAY_HOME_GROUP` names. Git ignores
    /// a new one.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a group that this user cannot give it; when the disk refuses.
    pub fn make(&self) -> Result<(), AppError> {
        let failed = |error: Error| match error.kind() {
            ErrorKindOfFile::AlreadyExists | ErrorKindOfFile::NotADirectory => not_read(self.folder(), error),
            _ => AppError::file("make the home", self.folder(), error),
        };
        // Looked at before it is made: a home that is there keeps its `.gitignore`.
        let is_new = !self.folder().exists();
        trackway_files::make_folders(self.folder()).map_err(failed)?;
        let group = std::env::var(trackway_files::GROUP_VARIABLE).ok().filter(|group| !group.is_empty());
        group.map_or(Ok(()), |group| self.give_to_group(&group))?;
        if is_new {
            let ignored = format!("# Written by Trackway.\n*\n!{SETTINGS_FILE}\n");
            trackway_files::write_own(&self.layout.gitignore(), ignored.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    fn give_to_group(&self, group: &str) -> Result<(), AppError> {
        trackway_files::give_to_group(self.folder(), group).map_err(|error| {
            let message =
                format!("cannot set the group of the home `{}` to `{group}`", self.folder().display());
            AppError::new(ErrorKind::Usage, message).because(error).hint(
                "the owner of the home must be in that group and set TRACKWAY_HOME_GROUP on the first command",
            )
        })
    }

    /// Whether this user may write here. Where a home can only be read, nothing is sealed and nothing tightened.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        trackway_files::may_write(self.folder())
    }

    /// Removes rights of other users that an older Trackway, or a wide umask, left open. The home itself is tightened
    /// if it contains only Trackway's files. Returns a line if there were any.
    #[must_use]
    pub fn tighten(&self) -> Option<String> {
        let mut count = 0;
        let entries = std::fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let (own, other): (Vec<String>, Vec<String>) =
            names.partition(|name| HomeLayout::ENTRIES.iter().any(|entry| name.starts_with(entry.name)));
        // In a folder with other contents, `data` may be the user's.
        let is_certain = |name: &&String| {
            other.is_empty() || HomeLayout::SIGNS.iter().any(|sign| *sign != "runs" && name.starts_with(sign))
        };
        for name in own.iter().filter(is_certain) {
            count += u32::from(trackway_files::tighten(&self.folder().join(name)).unwrap_or(false));
        }
        if other.is_empty() && !own.is_empty() {
            count += u32::from(trackway_files::tighten(self.folder()).unwrap_or(false));
        }
        (count > 0).then(|| {
            format!(
                "other users could read or write in `{}`: their permissions were removed (for a team: TRACKWAY_HOME_GROUP)",
                self.folder().display()
            )
        })
    }

    /// Deletes a file or folder of Trackway below the home. What does not exist is deleted already.
    ///
    /// # Errors
    /// When the path is not below the home, or leads through a link; when the disk refuses.
    pub fn remove(&self, path: &Path) -> std::io::Result<()> {
        let owned = OwnedFolder::holding(self.folder(), &HomeLayout::SIGNS)?;
        let mut below = path.strip_prefix(self.folder()).unwrap_or(path).components();
        match (below.next(), below.next()) {
            // The first folder below the home may be a link to another disk.
            (Some(Component::Normal(first)), Some(_)) => owned.folder(first)?.remove(path),
            _ => owned.remove(path),
        }
    }

    /// Removes what processes which were killed left of writing files in a folder of the home; once in this process,
    /// since all of the folder is listed for it.
    pub(crate) fn clear_abandoned(&self, folder: &Path) -> std::io::Result<()> {
        if !self.cleared.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
            return Ok(());
        }
        let owned = OwnedFolder::holding(self.folder(), &HomeLayout::SIGNS)?;
        let below = folder.strip_prefix(self.folder()).unwrap_or(folder);
        owned.folder(below)?.clear_abandoned()
    }
}

/// Why a home cannot be used, and what to do.
fn not_read(folder: &Path, error: Error) -> AppError {
    let shown = folder.display();
    match error.kind() {
        ErrorKindOfFile::NotFound => {
            AppError::new(ErrorKind::NotFound, format!("there is no Trackway home at `{shown}`"))
                .hint("name it with --home or TRACKWAY_HOME, or make one with `trackway run`")
        }
        ErrorKindOfFile::NotADirectory | ErrorKindOfFile::AlreadyExists => {
            let message = format!("the home `{shown}` is not a folder: a file is there, or in place of one above it");
            AppError::new(ErrorKind::NotFound, message).hint("name a folder with --home or TRACKWAY_HOME")
        }
        ErrorKindOfFile::PermissionDenied => AppError::file("read the home", folder, error).hint(
            "run this as its owner, or name another home with --home or TRACKWAY_HOME; a team shares one by TRACKWAY_HOME_GROUP",
        ),
        _ => AppError::file("read the home", folder, error),
    }
}

/// When a file, or the list of a folder's entries, last changed; none if unknown.
pub fn changed_at(path: &Path) -> Option<Timestamp> {
    let since_1970 = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)))
}

/// Whether the location of a ledger is of the form `host=… user=… password=…` of libpq.
#[must_use]
pub fn is_connection_string(location: &str) -> bool {
    const NAMES: [&str; 8] =
        ["host", "hostaddr", "port", "user", "password", "passfile", "dbname", "service"];
    let pair = |word: &str| word.split_once('=').is_some_and(|(name, _)| NAMES.contains(&name));
    !location.contains("://") && location.split_whitespace().any(pair)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Proves that a home which is not there, is a file or cannot be read is said to be that, each with what to do, and that one which can
    /// only not be listed is used.
    #[test]
    fn why_a_home_cannot_be_used_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: PathBuf| Home::new(path, None).check_folder().unwrap_err();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let denied = not_read(&file, Error::from(ErrorKindOfFile::PermissionDenied));
        for (error, kind, says) in [
            (of(folder.path().join("none")), ErrorKind::NotFound, "there is no Trackway home at `"),
            (of(file.clone()), ErrorKind::NotFound, "is not a folder"),
            (of(file.join("below")), ErrorKind::NotFound, "is not a folder"),
            (Home::new(file.clone(), None).make().unwrap_err(), ErrorKind::NotFound, "is not a folder"),
            (denied, ErrorKind::Fault, "cannot read the home `"),
        ] {
            assert!(error.kind == kind && error.to_string().contains(says), "{error}");
            assert!(error.hints.iter().any(|hint| hint.contains("--home")), "{:?}", error.hints);
        }
        assert!(Home::new(folder.path().to_owned(), None).check_folder().is_ok());
        let unlisted = folder.path().join("unlisted");
        std::fs::create_dir(&unlisted).unwrap();
        let allow =
            |mode| std::fs::set_permissions(&unlisted, std::fs::Permissions::from_mode(mode)).unwrap();
        allow(0o100);
        assert!(Home::new(unlisted.clone(), None).check_folder().is_ok(), "its files can be reached by name");
        allow(0o700);
        let elsewhere = Home::new(folder.path().join("none"), Some("postgres://h/d".into()));
        assert!(elsewhere.check_folder().is_ok());
    }

    /// Proves that a process lists a folder once to remove what a kill left there, and that the next process removes
    /// what another kill left since.
    #[test]
    fn a_folder_is_cleared_once_by_a_process() {
        let folder = tempfile::tempdir().unwrap();
        let new = || Home::new(folder.path().to_owned(), None);
        let home = new();
        home.make().unwrap();
        std::fs::create_dir_all(home.layout.runs().join("r")).unwrap();
        let left = home.layout.runs().join("r/.receipt.json.part-1-2");
        let clear = |home: &Home| {
            std::fs::write(&left, "torn").unwrap();
            home.clear_abandoned(&home.layout.runs().join("r")).unwrap();
            !left.exists()
        };
        assert_eq!([clear(&home), clear(&home.clone()), clear(&new())], [true, false, true]);
    }
}
