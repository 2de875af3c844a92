//! A home that is a copy of another one: its runs work where those of the other do, and there nothing may be moved or started for both.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use trackway_core::RunId;
use trackway_formats::layout::HomeLayout;
use trackway_formats::shell::quoted;
use trackway_ledger::RunRow;

use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::ledger::stored::stored_plan;

/// A home as it is found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HomeFolder {
    /// Its path without symbolic links.
    path: PathBuf,
    /// Device and inode: one folder may be at two paths.
    id: (u64, u64),
}

impl HomeFolder {
    /// None if the folder is gone.
    fn at(home: &Path) -> Option<Self> {
        let path = home.canonicalize().ok()?;
        let found = fs::metadata(&path).ok()?;
        Some(Self { path, id: (found.dev(), found.ino()) })
    }

    /// The home in which an attempt was made, if that still has the run: after a move there may be a new one at its place.
    fn with(run_id: RunId, log_directory: &str) -> Option<Self> {
        let home = home_of(log_directory)?;
        let has_run = HomeLayout::new(home.to_owned()).run(run_id).folder().is_dir();
        (has_run || Path::new(log_directory).is_dir()).then(|| Self::at(home)).flatten()
    }
}

/// # Errors
/// [`ErrorKind::Usage`] if an attempt of the run was made in another home that is still there, and this one has a copy of it.
pub(crate) fn refuse_in_a_copy(context: &Context, run: &RunRow, verb: &str) -> Result<(), AppError> {
    let layout = &context.home.layout;
    let plan = stored_plan(run).ok().flatten();
    // What several machines share has a lease, and a remote whose log decides.
    if context.home.has_ledger_elsewhere() || plan.is_some_and(|plan| plan.checkpoint.remote.is_some()) {
        return Ok(());
    }
    let Some(here) = HomeFolder::at(layout.folder()) else { return Ok(()) };
    let attempts = context.attempts_of(run.run_id)?;
    let copied = attempts.iter().filter(|attempt| layout.attempt(attempt.attempt_id).folder().is_dir());
    let there = copied.filter_map(|attempt| HomeFolder::with(run.run_id, &attempt.log_directory));
    let Some(original) = original_of(&here, there) else { return Ok(()) };
    let (name, here, there) = (&run.name, here.path.display(), original.display());
    let home = quoted(&there.to_string());
    let message = format!(
        "run `{name}` belongs to the home `{there}`, and `{here}` is a copy of that: its files would be moved and its script started where the original does"
    );
    Err(AppError::new(ErrorKind::Usage, message)
        .hint(format!("use the original: TRACKWAY_HOME={home} trackway {verb} {}", run.run_id))
        .hint("to train in the copy, start a new run here: trackway run"))
}

/// The home in which an attempt was made, by its folder.
fn home_of(log_directory: &str) -> Option<&Path> {
    Path::new(log_directory).parent()?.parent()
}

/// Which other home the runs here are of, if it is still there. One that was moved is nowhere else.
fn original_of(here: &HomeFolder, mut there: impl Iterator<Item = HomeFolder>) -> Option<PathBuf> {
    there.find(|home| home.path != here.path && home.id != here.id).map(|home| home.path)
}

#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only another home that is still there makes this one a copy: not the same by another path, and none that was moved.
    #[test]
    fn a_copy_has_its_original_elsewhere() {
        let found = |path: &str, inode| HomeFolder { path: path.into(), id: (1, inode) };
        let here = found("/copy/.trackway", 2);
        let of = |there: Vec<HomeFolder>| original_of(&here, there.into_iter());
        assert_eq!(of(vec![]), None, "it was moved here");
        assert_eq!(of(vec![found("/copy/.trackway", 2)]), None);
        assert_eq!(of(vec![found("/mounted/.trackway", 2)]), None, "the same folder");
        let original = found("/first/.trackway", 7);
        assert_eq!(of(vec![here.clone(), original]), Some("/first/.trackway".into()));
        assert_eq!(home_of("/first/.trackway/attempts/att_1"), Some(Path::new("/first/.trackway")));
        assert_eq!(home_of(""), None);
    }

    /// Proves that a home which has the run is found, by a link to it too, and that a new one at the place of one that was moved is not.
    #[test]
    fn only_a_home_with_the_run_is_an_original() {
        let folder = tempfile::tempdir().unwrap();
        let (home, link) = (folder.path().join("home"), folder.path().join("link"));
        let run_id = RunId::new(&trackway_core::SequentialIds::default());
        let attempt = |home: &Path| home.join("attempts/att_1").to_str().unwrap().to_owned();
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(&home, &link).unwrap();
        assert_eq!(HomeFolder::with(run_id, &attempt(&home)), None, "another home");
        fs::create_dir_all(home.join("runs").join(run_id.to_string())).unwrap();
        let found = HomeFolder::with(run_id, &attempt(&home));
        assert!(found.is_some() && found == HomeFolder::with(run_id, &attempt(&link)));
        assert_eq!(HomeFolder::with(run_id, &attempt(&folder.path().join("gone"))), None);
    }
}
