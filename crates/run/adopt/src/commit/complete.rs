//! What is committed of a checkpoint, and what is not: decisions over what it is.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use trackway_checkpoint::{CheckpointError, Kind};
use trackway_core::Step;
use trackway_formats::checkpoint_manifest::MAX_MANIFEST_FILES;
use trackway_formats::checkpoint_origin::{CheckpointOrigin, OriginFile, stored_names, version_of};
use trackway_formats::writers::ShownBy;
use trackway_layouts::{Because, Component, Recognised, Root, StepOrigin, numbers};

use super::order::Order;
use crate::find::candidate::Candidate;
use crate::find::kinds::{kind_of, kind_of_part};
use crate::find::patterns::Patterns;

/// Why a link is not committed.
const LINK: &str =
    "it is a symbolic link: what it points to is committed if `checkpoint.adopt` names that by its own path";

/// Why the state of an optimizer alone is not committed.
pub(crate) const OPTIMIZER_ALONE: &str = "it has an optimizer's state and no model, so that no training can continue from it alone: save both in one file, or in one folder that `checkpoint.adopt` names";

/// Where the step of a checkpoint comes from that has none.
const UNKNOWN: &str = "unknown";

/// Devices and inodes of files, and the times of their last writes.
pub(crate) type SameFiles = Vec<(u64, u64, i64)>;

/// A candidate that is complete.
pub(crate) struct Complete {
    pub candidate: Candidate,
    pub recognised: Recognised,
    /// What each file of a state in several files is.
    pub parts: Vec<Recognised>,
    pub because: Because,
    pub step: Step,
    pub step_origin: &'static str,
    /// The last step that can have been printed before it was written: what is printed may be read some milliseconds later.
    pub reached: Option<Step>,
    pub shown_by: ShownBy,
}

impl Complete {
    pub fn order(&self) -> Order {
        let step = (self.step_origin != UNKNOWN).then_some(self.step);
        Order { step, modified_ns: self.candidate.modified_ns() }
    }
}

/// What two checkpoints have in common that are the same files under two names.
pub(crate) fn same_files(candidate: &Candidate) -> SameFiles {
    candidate.files().iter().map(|file| (file.device, file.inode, file.modified_ns)).collect()
}

/// Whether it is one file with the state of an optimizer, and of neither a model nor a trainer.
pub(crate) fn is_optimizer_alone(recognised: &Recognised) -> bool {
    let beside = |component: &Component| {
        matches!(component, Component::Optimizer | Component::Scheduler | Component::Scaler | Component::Rng)
    };
    recognised.root == Root::File
        && recognised.components.contains(&Component::Optimizer)
        && recognised.components.iter().all(beside)
}

/// Whether it is a symbolic link to one of these paths: the same checkpoint.
pub(crate) fn is_further_name(path: &Path, paths: &BTreeSet<PathBuf>) -> bool {
    let target = fs::read_link(path).ok().and_then(|target| Some(path.parent()?.join(target)));
    let folder = |path: &Path| path.parent().and_then(|folder| folder.canonicalize().ok());
    target.is_some_and(|target| {
        let name = target.file_name();
        let place = folder(&target);
        paths.iter().any(|path| *path == target || path.file_name() == name && folder(path) == place)
    })
}

/// Why it is not committed whatever is in its files.
pub(crate) fn never_committed(candidate: &Candidate) -> Option<String> {
    if candidate.path.is_symlink() {
        return Some(LINK.to_owned());
    }
    if let Some(link) = candidate.listing.links_below(&candidate.name).next() {
        let path = &link.path;
        return Some(format!(
            "`{path}` in it is a symbolic link, and a copy would not have what it points to"
        ));
    }
    (candidate.files().len() >= MAX_MANIFEST_FILES)
        .then(|| format!("a checkpoint has fewer than {MAX_MANIFEST_FILES} files, and it has not"))
}

/// The step, and where it comes from: the content, else the script's report, else a tracker or the name. Without any
/// the one that was reached when the files were written, and without that 0.
pub(crate) fn step_of(
    recognised: &Recognised,
    reported: Option<Step>,
    reached: impl FnOnce() -> Option<Step>,
) -> (Step, &'static str) {
    match (recognised.step, recognised.step_origin, reported) {
        (Some(step), Some(StepOrigin::Content), _) => (step, "content"),
        (_, _, Some(step)) => (step, "report"),
        (Some(step), Some(StepOrigin::Tracker), _) => (step, "tracker"),
        (Some(step), ..) => (step, "name"),
        (None, ..) => reached().map_or((0, UNKNOWN), |step| (step, "progress")),
    }
}

/// The step that was reached when the files were written, to a tick of the kernel's clock: of those that were reached
/// within it the one that is in the name.
pub(crate) fn named_in_tick(name: &str, earliest: Option<Step>, reached: Option<Step>) -> Option<Step> {
    let window = earliest?..=reached?;
    numbers(name).find(|number| window.contains(number))
}

/// The only step of a window that continues the saves before it at their distance: after 20 and 40 it is 60, whether
/// the script records a step right before it saves it or right after, and after 19 and 39 it is 59. The window goes
/// from the step that was reached for certain to the one a little later.
pub(crate) fn regular_in_window(window: &RangeInclusive<Step>, saved: &BTreeSet<Step>) -> Option<Step> {
    let mut newest = saved.iter().rev();
    let (last, before) = (*newest.next()?, newest.next().copied().unwrap_or(0));
    let way = last.checked_sub(before).filter(|way| *way > 0)?;
    let from = window.start().saturating_sub(last).max(1);
    let next = last.saturating_add(from.div_ceil(way).saturating_mul(way));
    let is_only = window.contains(&next) && !window.contains(&next.saturating_add(way));
    let is_behind = way > 2 && before % way == way - 1;
    ((before.is_multiple_of(way) || is_behind) && is_only).then_some(next)
}

/// What is written beside the files, and where each of them is.
pub(crate) fn origin_of(
    complete: &Complete,
    patterns: &Patterns,
) -> (CheckpointOrigin, Vec<(PathBuf, Kind)>) {
    let Complete { candidate, recognised, parts, step_origin, reached, shown_by, .. } = complete;
    let paths: Vec<&str> = candidate.files().iter().map(|file| candidate.below(file)).collect();
    let named = paths.iter().map(|path| if path.is_empty() { candidate.name.as_str() } else { path });
    let files: Vec<OriginFile> = stored_names(named)
        .into_iter()
        .zip(candidate.files().iter().zip(&paths))
        .map(|(name, (file, path))| OriginFile {
            name,
            path: (*path).to_owned(),
            modified_ns: file.modified_ns,
        })
        .collect();
    let sources = candidate.files().iter().zip(&paths).map(|(file, path)| {
        let part = parts.iter().find(|part| part.path == file.path);
        let kind = match part {
            Some(part) => kind_of_part(part),
            None => kind_of(path, &candidate.name, &recognised.components),
        };
        (candidate.place(file), kind)
    });
    let path = patterns.shown(&candidate.path);
    let origin = CheckpointOrigin {
        version: version_of(&path, candidate.is_folder, &files),
        layout: recognised.layout.as_str().to_owned(),
        path,
        is_folder: candidate.is_folder,
        step_origin: (*step_origin).to_owned(),
        shown_by: Some(*shown_by),
        reached_step: *reached,
        files,
    };
    let sources = sources.collect();
    (origin, sources)
}

/// What a reader needs of an error: of a refusal only its reason.
pub(crate) fn why(error: &CheckpointError) -> String {
    match error {
        CheckpointError::State { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// What an unprivileged process may still write below a folder; none if that is not known.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let found = nix::sys::statvfs::statvfs(folder).ok()?;
    Some(found.blocks_available().saturating_mul(found.fragment_size()))
}

/// A file that is gone was deleted by the script's own retention.
pub(crate) fn open(path: &Path) -> Result<File, CheckpointError> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).map_err(
        |error| match error.kind() {
            std::io::ErrorKind::NotFound => CheckpointError::SourceChanged { path: path.to_owned() },
            _ => CheckpointError::state(format!("cannot read {}: {error}", path.display())),
        },
    )
}

/// The path without symbolic links above its name: as the kernel and the script name it.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    parent.zip(path.file_name()).map_or_else(|| path.to_owned(), |(parent, name)| parent.join(name))
}
