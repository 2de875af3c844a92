//! What an attempt started from: code, packages, container, machine, person.
//!
//! Every step may fail and none may hold the launch up: what could not be captured is absent with a `why_missing`.
//! The steps run side by side; each that starts a program has a time bound.

pub(crate) mod command;
mod comments;
mod folder;
mod git;
mod machine;
pub mod named_files;
mod outputs;
mod owner;
mod packages;
mod script;
mod settings;
pub mod sources;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_redact::Redactor;

pub use comments::{code_of, is_python, is_same_code};
pub use folder::{Folder, FolderFile, UnreadFile, is_of_packages, may_be_listed};
pub use git::diff::{PatchedFile, patched_files, states};
pub use git::working_tree::{
    ChangedFile, Git, MAX_DIFF_BYTES, MAX_UNTRACKED_BYTES, MAX_UNTRACKED_FILES, MAX_UNTRACKED_LISTED,
    Untracked, changed_between, patch_between, whole_patch,
};
pub use machine::container::{Container, ContainerSource};
pub use machine::gpu::{Gpu, GpuInventory};
pub use machine::host::Host;
pub use named_files::NamedFile;
pub use outputs::is_of_output;
pub use packages::environment::{EnvironmentLock, KeptPackages, LockKind};
pub use script::{Script, script_of};
pub use settings::both::both;
pub use settings::leaves::{given_leaves, leaves};
pub use settings::plain::{extension_is, is_plain, plain_settings};

/// What the capture steps look at.
#[derive(Debug, Clone, Copy)]
pub struct CaptureInputs<'i> {
    /// The script's argument vector.
    pub argv: &'i [String],
    /// The script's working directory; exists.
    pub working_directory: &'i Path,
    /// The script's whole environment.
    pub environment: &'i BTreeMap<String, String>,
    /// The image that the run file declares.
    pub container_image: Option<&'i str>,
    /// Folders and files that are no part of the code, above all Trackway's own home.
    pub exclude: &'i [PathBuf],
    /// Takes the secrets out of the list of packages before it is hashed.
    pub redactor: &'i Redactor,
}

/// Everything captured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// The working tree.
    pub git: Git,
    /// The script that the command names.
    #[serde(default)]
    pub script: Option<Script>,
    /// The files that the command names.
    #[serde(default)]
    pub named_files: Vec<NamedFile>,
    /// The other files below its folders that git does not compare; none in captures of older versions, and where it
    /// starts in no folder of a project.
    #[serde(default)]
    pub folder: Option<Folder>,
    /// The files that the output of the supervisor goes to, without links: they are outputs, whatever is written to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<PathBuf>,
    /// The packages that will run.
    pub environment_lock: EnvironmentLock,
    /// The container image.
    pub container: Container,
    /// The machine.
    pub host: Host,
    pub gpus: GpuInventory,
    /// The owner if the run file has none: git's `user.name`, else `USER`.
    pub owner_default: Option<String>,
    /// What is missing, as long as it is; it stays where the supervisor was killed before the rest was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// Runs all capture steps side by side. Takes as long as the slowest; never fails.
#[must_use]
pub fn capture(inputs: &CaptureInputs<'_>) -> Capture {
    let mut captured = capture_without_bytes(inputs);
    captured.folder.iter_mut().for_each(|folder| folder.read(inputs.redactor));
    captured
}

/// The same, but of the files beside the script the bytes are not read yet: [`Folder::read`] may do that while it runs.
#[must_use]
pub fn capture_without_bytes(inputs: &CaptureInputs<'_>) -> Capture {
    let mut outputs = outputs::capture(inputs);
    let exclude: Vec<PathBuf> = inputs.exclude.iter().chain(&outputs).cloned().collect();
    let inputs = &CaptureInputs { exclude: &exclude, ..*inputs };
    std::thread::scope(|scope| {
        // What git ignores is known only when it has answered.
        let git = scope.spawn(|| {
            let git = git::working_tree::capture(inputs);
            let folder = folder::list(inputs, &git);
            (git, folder)
        });
        let owner_default = scope.spawn(|| owner::default_owner(inputs));
        let gpus = scope.spawn(|| machine::gpu::capture(inputs));
        let environment_lock = scope.spawn(|| packages::environment::capture(inputs));
        let container = machine::container::capture(inputs);
        let host = machine::host::capture();
        let broke = "the step ended in a panic; please report it";
        let named_files = named_files::capture(inputs);
        // A program that reads the output may have opened its file only now.
        outputs.extend(outputs::capture(inputs));
        outputs.sort();
        outputs.dedup();
        let (git, folder) = git.join().unwrap_or_else(|_| (Git::missing(broke), None));
        Capture {
            script: script::capture(inputs),
            named_files,
            folder,
            outputs,
            git,
            environment_lock: environment_lock.join().unwrap_or_else(|_| EnvironmentLock::missing(broke)),
            container,
            host,
            gpus: gpus.join().unwrap_or_else(|_| GpuInventory::missing(broke)),
            owner_default: owner_default.join().unwrap_or(None),
            incomplete: None,
        }
    })
}
