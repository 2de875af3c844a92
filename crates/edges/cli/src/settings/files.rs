//! Where settings files are, and which of them are used.

use std::ffi::OsString;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use trackway_api::home::settings::SettingsFileKind;
use trackway_engine::error::AppError;
use trackway_formats::layout::{HomeLayout, PROJECT_FOLDER};
use trackway_formats::settings::{SETTINGS_BYTES_MAX, SETTINGS_FILE, SettingsFile, parse};

use crate::exit::Failure;

/// A place where a settings file is, or could be.
#[derive(Debug)]
pub struct FoundFile {
    pub kind: SettingsFileKind,
    pub path: PathBuf,
    pub state: FileState,
}

/// What became of a settings file.
#[derive(Debug)]
pub enum FileState {
    /// It is used.
    Read(Box<SettingsFile>),
    /// There is none.
    Absent,
    /// It is not used, and why.
    Refused(String),
}

impl FoundFile {
    /// The file, if it is used.
    pub fn read(&self) -> Option<(&Path, &SettingsFile)> {
        match &self.state {
            FileState::Read(file) => Some((&self.path, file)),
            FileState::Absent | FileState::Refused(_) => None,
        }
    }

    /// Why it is not used although it is there.
    pub fn refused(&self) -> Option<&str> {
        match &self.state {
            FileState::Refused(why) => Some(why),
            FileState::Read(_) | FileState::Absent => None,
        }
    }
}

/// The settings files of a command in the folder `here`, the stronger one first, without that of its home.
///
/// # Errors
/// Mistakes in one of them; one that cannot be read.
pub fn find(here: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Vec<FoundFile>, Failure> {
    let project = (SettingsFileKind::Project, project_file(here));
    let user = user_file(environment).map(|path| (SettingsFileKind::User, path));
    let found = |(kind, path): (SettingsFileKind, PathBuf)| -> Result<FoundFile, Failure> {
        Ok(FoundFile { kind, state: state(&path)?, path })
    };
    std::iter::once(project).chain(user).map(found).collect()
}

/// Adds the settings file of the home that a command uses, after the project's, unless it is one of those already.
///
/// # Errors
/// Mistakes in it; when it cannot be read.
pub fn add_that_of_home(found: &mut Vec<FoundFile>, home: &Path) -> Result<(), Failure> {
    let path = HomeLayout::new(std::path::absolute(home).unwrap_or(home.to_owned())).settings();
    if found.iter().any(|known| is_same_file(&known.path, &path)) {
        return Ok(());
    }
    let mut state = state(&path)?;
    if let FileState::Read(file) = &mut state {
        // It was found by its home, which it cannot move.
        file.home = None;
    }
    let after_project = found.iter().take_while(|known| known.kind == SettingsFileKind::Project).count();
    found.insert(after_project, FoundFile { kind: SettingsFileKind::Home, path, state });
    Ok(())
}

/// Whether two paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let found = |path: &Path| path.canonicalize().ok();
    one == other || found(one).is_some_and(|one| found(other) == Some(one))
}

fn project_file(here: &Path) -> PathBuf {
    let in_folder = |folder: &Path| HomeLayout::new(folder.join(PROJECT_FOLDER)).settings();
    let found = here.ancestors().map(in_folder).find(|path| path.symlink_metadata().is_ok());
    found.unwrap_or_else(|| in_folder(here))
}

/// Below `XDG_CONFIG_HOME` where that is an absolute path, else below `~/.config`.
fn user_file(environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("trackway").join(SETTINGS_FILE))
}

fn state(path: &Path) -> Result<FileState, Failure> {
    let failed = |error: std::io::Error| {
        let what = format!("cannot read the settings file `{}`", path.display());
        Failure::usage(what, "repair it, or move it away").because(error)
    };
    let file = match trackway_files::open_of_user(path) {
        Ok(file) => file,
        Err(error) => {
            return match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(FileState::Absent),
                ErrorKind::PermissionDenied => Ok(FileState::Refused(error.to_string())),
                _ => Err(failed(error)),
            };
        }
    };
    let mut bytes = Vec::new();
    file.take(SETTINGS_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let parsed = parse(&bytes, &path.to_string_lossy());
    parsed
        .map(|file| FileState::Read(Box::new(file)))
        .map_err(|errors| Failure::from(AppError::run_file(&errors, &String::from_utf8_lossy(&bytes))))
}
