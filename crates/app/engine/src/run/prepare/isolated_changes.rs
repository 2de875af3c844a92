//! What the launches of a rehearsal wrote, while it lasts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use trackway_core::RunId;
use trackway_files::OwnedFolder;

use crate::Context;

/// The folder of what the launches of a run wrote to its working directory. It goes with the value: nothing of it is needed afterwards.
pub struct IsolatedChanges {
    folder: PathBuf,
    /// What shows that the folder above is that of a run.
    sign: String,
}

impl IsolatedChanges {
    pub fn of(context: &Context, run_id: RunId) -> Self {
        let run = context.home.layout.run(run_id);
        let folder = canonical(run.folder().to_owned()).join(run.below(&run.isolated()));
        Self { folder, sign: run.below(&run.plan_json()) }
    }

    /// Where they go.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for IsolatedChanges {
    fn drop(&mut self) {
        // An overlay leaves a folder that its owner may not read either.
        fs::set_permissions(self.folder.join("work/work"), Permissions::from_mode(0o700)).ok();
        let Some(run) = self.folder.parent() else { return };
        // What cannot be deleted goes with the run.
        OwnedFolder::holding(run, &[&self.sign]).and_then(|run| run.remove(&self.folder)).ok();
    }
}

/// The path without links, where it is there.
pub fn canonical(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}
