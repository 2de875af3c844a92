//! The state of the working tree: commit, branch, and a hash of everything that is not committed.
//!
//! One `git status` returns commit, branch and changed files; only a changed tree needs a `git diff` too.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;

use crate::capture::CaptureInputs;
use crate::capture::command::{output, stream};
use crate::capture::named_files::modified_at;

/// The most of a diff that is hashed.
pub const MAX_DIFF_BYTES: u64 = 256 << 20;
/// The most untracked files that are hashed.
pub const MAX_UNTRACKED_FILES: usize = 1000;
/// The most untracked files that are listed one by one.
pub const MAX_UNTRACKED_LISTED: usize = 100;
/// The most bytes of untracked files that are hashed, all together.
pub const MAX_UNTRACKED_BYTES: u64 = 64 << 20;

/// The most of a diff that is kept.
pub const KEPT_DIFF_BYTES_MAX: u64 = 8 << 20;

/// How long git may take in all steps but the diff's own reading.
const LIMIT: Duration = Duration::from_secs(10);
/// The most of `git status` that is read.
const MAX_STATUS_BYTES: u64 = 16 << 20;
/// The most of an address that is read.
const MAX_ORIGIN_BYTES: u64 = 4096;
/// Shows the whole file around its changes.
const ALL_LINES: &str = "--unified=1000000";
/// What a tree without a commit is compared with (git's name for the tree without files).
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// The working tree of the script's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Git {
    /// The commit that is checked out; absent in a repository without one.
    pub commit: Option<String>,
    /// The branch; absent when the head is detached.
    pub branch: Option<String>,
    /// Whether tracked files differ from the commit or untracked, not ignored files exist.
    pub dirty: Option<bool>,
    /// BLAKE3 over `git diff HEAD --binary` and the path and hash of each untracked file; absent on a clean tree.
    pub dirty_diff_blake3: Option<String>,
    /// The size of that diff, tracked files only.
    pub diff_bytes: Option<u64>,
    /// Untracked, not ignored files by path from the root, the first [`MAX_UNTRACKED_LISTED`] of them.
    pub untracked: Vec<Untracked>,
    /// How many untracked files there are.
    pub untracked_count: u64,
    /// A description of what was left out of the hash because of a bound.
    pub left_out: Vec<String>,
    /// Why nothing or not everything is known.
    pub why_missing: Option<String>,
    /// The root of the repository.
    #[serde(default)]
    pub root: Option<String>,
    /// Where it was cloned from, as git has it.
    #[serde(default)]
    pub origin: Option<String>,
    /// The diff of tracked files; none if there is none, or if it is larger than 8 MiB.
    #[serde(skip)]
    pub diff: Option<Vec<u8>>,
    /// What git ignores, from the root: files, and folders of which all is ignored.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// An untracked file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untracked {
    /// From the root of the repository.
    pub path: String,
    /// BLAKE3 of its bytes; absent if it is not a readable regular file or is past the bounds.
    pub blake3: Option<String>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<Timestamp>,
}

impl Untracked {
    /// What distinguishes it from another version of it.
    #[must_use]
    pub fn identity(&self) -> String {
        let written = || self.modified_at.map(|at| format!("written at {}", at.as_micros()));
        self.blake3.clone().or_else(written).unwrap_or_default()
    }
}

impl Git {
    pub(in crate::capture) fn missing(why: impl Into<String>) -> Self {
        Self { why_missing: Some(why.into()), ..Self::default() }
    }
}

pub(in crate::capture) fn capture(inputs: &CaptureInputs<'_>) -> Git {
    let Some(root) = repository_root(inputs.working_directory) else {
        return Git::missing("not in a git repository");
    };
    // Each is a process, and neither needs the other.
    let (status, origin) = std::thread::scope(|scope| {
        let origin = scope.spawn(|| origin(&root));
        (status(&root, inputs), origin.join().unwrap_or(None))
    });
    let status = match status {
        Ok(status) => status,
        Err(why) => return Git::missing(why),
    };
    let mut git = Git {
        commit: status.commit.clone(),
        branch: status.branch,
        dirty: Some(status.changed || !status.untracked.is_empty()),
        untracked_count: status.untracked.len() as u64,
        root: Some(root.to_string_lossy().into_owned()),
        origin,
        ignored: status.ignored,
        ..Git::default()
    };
    if git.dirty == Some(true) {
        let changed = status.changed.then_some(status.commit.as_deref().unwrap_or(EMPTY_TREE));
        hash_changes(&mut git, &root, changed, &status.untracked, inputs);
    }
    git
}

/// The nearest folder upwards that holds `.git` (a folder, or a file in worktrees and submodules). Looking ourselves
/// spares starting git outside a repository.
pub(in crate::capture) fn repository_root(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find(|ancestor| ancestor.join(".git").exists()).map(Path::to_owned)
}

/// A git that reads only: no lock on the index, no hooks, no pager, no translated messages.
fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]);
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    command
}

/// Where the repository was cloned from.
fn origin(root: &Path) -> Option<String> {
    let mut command = git(root);
    command.args(["config", "--get", "remote.origin.url"]);
    let url = String::from_utf8_lossy(&output(command, LIMIT, MAX_ORIGIN_BYTES).ok()?).trim().to_owned();
    (!url.is_empty()).then_some(url)
}

/// Restricts a command to the tree without the excluded folders and files.
fn add_pathspec(command: &mut Command, root: &Path, inputs: &CaptureInputs<'_>) {
    command.args(["--", ":(top)"]);
    for path in inputs.exclude {
        let path = path.canonicalize().unwrap_or_else(|_| path.clone());
        if let Ok(relative) = path.strip_prefix(root) {
            command.arg(format!(":(top,exclude,literal){}", relative.display()));
        }
    }
}

#[derive(Debug, Default)]
struct Status {
    commit: Option<String>,
    branch: Option<String>,
    changed: bool,
    untracked: Vec<String>,
    ignored: Vec<String>,
}

fn status(root: &Path, inputs: &CaptureInputs<'_>) -> Result<Status, String> {
    let mut command = git(root);
    command.args(["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"]);
    command.arg("--ignored=matching");
    add_pathspec(&mut command, root, inputs);
    Ok(parse_status(&String::from_utf8_lossy(&output(command, LIMIT, MAX_STATUS_BYTES)?)))
}

/// Reads `git status --porcelain=v2 -z` (git-status(1), "Porcelain Format Version 2").
fn parse_status(text: &str) -> Status {
    let mut status = Status::default();
    for record in text.split('\0').filter(|record| !record.is_empty()) {
        if let Some(oid) = record.strip_prefix("# branch.oid ") {
            status.commit = (oid != "(initial)").then(|| oid.to_owned());
        } else if let Some(head) = record.strip_prefix("# branch.head ") {
            status.branch = (head != "(detached)").then(|| head.to_owned());
        } else if let Some(path) = record.strip_prefix("? ") {
            status.untracked.push(path.to_owned());
        } else if let Some(path) = record.strip_prefix("! ") {
            status.ignored.push(path.to_owned());
        } else if !record.starts_with('#') {
            status.changed = true;
        }
    }
    status.untracked.sort();
    status.ignored.sort();
    status
}

/// Hashes the diff against `changed` (if tracked files changed) and the untracked files.
fn hash_changes(
    git: &mut Git,
    root: &Path,
    changed: Option<&str>,
    untracked: &[String],
    inputs: &CaptureInputs<'_>,
) {
    let mut hasher = blake3::Hasher::new();
    if let Some(against) = changed {
        match hash_diff(root, against, inputs) {
            Ok((bytes, hash, diff)) => {
                git.diff = Some(diff).filter(|_| bytes <= KEPT_DIFF_BYTES_MAX);
                git.diff_bytes = Some(bytes);
                hasher.update(hash.as_bytes());
                if bytes >= MAX_DIFF_BYTES {
                    git.left_out.push(format!("the diff beyond {MAX_DIFF_BYTES} bytes"));
                }
            }
            Err(why) => {
                git.why_missing = Some(why);
                return;
            }
        }
    }
    hash_untracked(git, root, untracked);
    for file in &git.untracked {
        hasher.update(file.path.as_bytes());
        hasher.update(b"\0");
        hasher.update(file.blake3.as_deref().unwrap_or("").as_bytes());
        hasher.update(b"\n");
    }
    git.untracked.truncate(MAX_UNTRACKED_LISTED);
    git.dirty_diff_blake3 = Some(hasher.finalize().to_hex().to_string());
}

/// The size and the hash of the diff, and its first bytes.
fn hash_diff(
    root: &Path,
    against: &str,
    inputs: &CaptureInputs<'_>,
) -> Result<(u64, blake3::Hash, Vec<u8>), String> {
    let mut command = git_diff(root, against);
    add_pathspec(&mut command, root, inputs);
    stream(command, LIMIT, MAX_DIFF_BYTES, |stdout| {
        let mut kept = Vec::new();
        stdout.take(KEPT_DIFF_BYTES_MAX).read_to_end(&mut kept)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&kept);
        let more = std::io::copy(stdout, &mut hasher)?;
        Ok((kept.len() as u64 + more, hasher.finalize(), kept))
    })
}

/// The diff in a form that no user setting changes.
fn git_diff(root: &Path, against: &str) -> Command {
    let mut command = git(root);
    command.args(["diff", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"]);
    command.args([
        "--no-renames", "--unified=3", "--diff-algorithm=myers", "--src-prefix=a/", "--dst-prefix=b/",
    ]);
    command.arg(against);
    command
}

fn hash_untracked(git: &mut Git, root: &Path, untracked: &[String]) {
    let mut budget_bytes = MAX_UNTRACKED_BYTES;
    for path in untracked.iter().take(MAX_UNTRACKED_FILES) {
        let file = root.join(path);
        let modified_at = file.symlink_metadata().ok().as_ref().and_then(modified_at);
        let blake3 = hash_file(&file, &mut budget_bytes);
        if blake3.is_none() {
            git.left_out.push(format!("the content of `{path}`"));
        }
        git.untracked.push(Untracked { path: path.clone(), blake3, modified_at });
    }
    if untracked.len() > MAX_UNTRACKED_FILES {
        git.left_out.push(format!("{} more untracked files", untracked.len() - MAX_UNTRACKED_FILES));
    }
}

/// BLAKE3 of a regular file that fits the budget.
fn hash_file(path: &Path, budget_bytes: &mut u64) -> Option<String> {
    let metadata = path.symlink_metadata().ok().filter(|metadata| metadata.is_file())?;
    if metadata.len() > *budget_bytes {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    let read = std::io::copy(&mut File::open(path).ok()?.take(*budget_bytes), &mut hasher).ok()?;
    *budget_bytes = budget_bytes.saturating_sub(read);
    Some(hasher.finalize().to_hex().to_string())
}

/// A file that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// From the root of the repository.
    pub path: String,
    /// Lines that were added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// The files that differ between two commits of the repository at `root`.
///
/// # Errors
/// Why that is not known: there is no such repository any more, or it does not have both commits.
pub fn changed_between(root: &Path, before: &str, after: &str) -> Result<Vec<ChangedFile>, String> {
    if !is_commit(before) || !is_commit(after) {
        return Err("one of them does not name a commit".into());
    }
    let mut command = git(root);
    command.args([
        "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", before, after, "--",
    ]);
    let listed = output(command, LIMIT, MAX_STATUS_BYTES)?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let file = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (added, removed, path) = (parts.next()?, parts.next()?, parts.next()?);
        let lines = added.parse().ok().zip(removed.parse().ok());
        Some(ChangedFile { path: path.to_owned(), lines })
    };
    Ok(listed.split('\0').filter_map(file).collect())
}

/// The difference of these files between two commits.
///
/// # Errors
/// As [`changed_between`].
pub fn patch_between(root: &Path, before: &str, after: &str, paths: &[&str]) -> Result<Vec<u8>, String> {
    if paths.is_empty() || !is_commit(before) || !is_commit(after) {
        return Ok(Vec::new());
    }
    let mut command = git_diff(root, before);
    command.env("GIT_LITERAL_PATHSPECS", "1").arg(after).arg("--").args(paths);
    output(command, LIMIT, KEPT_DIFF_BYTES_MAX)
}

/// The same with all lines of these files; without `after`, up to the working tree.
///
/// # Errors
/// As [`changed_between`].
pub fn whole_patch(
    root: &Path,
    before: &str,
    after: Option<&str>,
    paths: &[&str],
) -> Result<Vec<u8>, String> {
    if paths.is_empty() || !is_commit(before) || !after.is_none_or(is_commit) {
        return Ok(Vec::new());
    }
    let mut command = git_diff(root, before);
    command.env("GIT_LITERAL_PATHSPECS", "1").arg(ALL_LINES).args(after).arg("--").args(paths);
    output(command, LIMIT, KEPT_DIFF_BYTES_MAX)
}

fn is_commit(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
