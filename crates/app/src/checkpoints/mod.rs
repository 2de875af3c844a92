//! A run's checkpoints, read from their own log: the ledger mirrors it, the log wins.
//!
//! [`Checkpoints`] is one root: of a run, or any folder of a disk without a home. Everything that a person does with
//! checkpoints begins there.

mod doctor;
mod entry;
mod environment;
mod fall_back;
mod house;
mod lines;
mod load_crash;
mod now;
mod policy;
mod reading;
mod resume;
mod story;

use std::path::{Path, PathBuf};

use trackway_checkpoint::{CheckpointError, CheckpointInfo, CheckpointView, Housekeeper, State};
use trackway_core::{Clock as _, LaunchKind, Step, Timestamp};
use trackway_ledger::{AttemptRow, RunRow};
use trackway_recorder::{SystemClock, SystemIds};

pub use doctor::{DoctorFinding, DoctorReport};
pub use entry::CheckpointEntry;
pub use fall_back::FallBackCost;
pub use house::{CollectedEntry, Collection, Garbage, KeptEntry, OrphanEntry, Pinned};
pub use now::CheckpointAsked;
pub use policy::KeepChanges;
pub use reading::Watch;
pub use resume::{PassedOver, ResumeTarget};
pub use story::{KindLine, Story};

pub(crate) use fall_back::{Pace, told as fall_back_notice};
pub(crate) use load_crash::step_back;
pub(crate) use policy::{keep_variables, policy_of};

use crate::error::{AppError, ErrorKind};
use crate::run::remote::{RemotePlan, one_per_prefix};
use crate::{App, FULL_STAGE};

/// What the log of a run's checkpoint root says; empty when nothing was ever begun.
///
/// # Errors
/// When the log cannot be read.
pub fn view(root: &Path) -> Result<CheckpointView, AppError> {
    CheckpointView::open(root).map_err(|error| AppError::fault("the checkpoints could not be read", &error))
}

/// Which checkpoint is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The newest committed one.
    Latest,
    /// The one of this step; of several the one that a resume could come to, else the newest.
    Step(Step),
}

/// The checkpoints of one root.
pub struct Checkpoints {
    root: PathBuf,
    /// What names it on a command line.
    subject: String,
    /// Whose they are, when the ledger knows.
    run: Option<RunFacts>,
    /// Where their truth is, when it is not here.
    remote: Option<RemotePlan>,
    clock: SystemClock,
    ids: SystemIds,
}

struct RunFacts {
    row: RunRow,
    /// Oldest first.
    attempts: Vec<AttemptRow>,
}

impl App {
    /// The checkpoints of a run.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; when the ledger cannot be read.
    pub fn checkpoints(&self, run: &str) -> Result<Checkpoints, AppError> {
        let row = self.find_run(run)?;
        let attempts = self.attempts_of_kind(row.run_id, row.kind)?;
        let remote = RemotePlan::of_run(self, &row).filter(|_| row.kind == LaunchKind::Train);
        Ok(Checkpoints {
            remote,
            root: self.home.checkpoint_root(row.run_id, row.kind, FULL_STAGE),
            subject: row.run_id.to_string(),
            run: Some(RunFacts { row, attempts }),
            clock: SystemClock,
            ids: SystemIds,
        })
    }
}

impl Checkpoints {
    /// Whether a text names a folder of checkpoints rather than a run: it has a `/`, or a folder of that name has a log.
    #[must_use]
    pub fn is_root(text: &str) -> bool {
        text.contains('/') || matches!(text, "." | "..") || Path::new(text).join("log").is_dir()
    }

    /// The checkpoints below a folder, whatever run they are of.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the folder does not exist or is none of checkpoints.
    pub fn at(root: &Path) -> Result<Self, AppError> {
        let shown = root.display();
        if !root.is_dir() {
            return Err(AppError::new(ErrorKind::NotFound, format!("there is no folder `{shown}`")));
        }
        if !root.join("log").is_dir() && !has_checkpoint_folders(root) {
            let message = format!("`{shown}` is no checkpoint root: it has no `log` and no checkpoints");
            return Err(AppError::new(ErrorKind::NotFound, message)
                .hint("name the folder that holds `log` and `step-…`"));
        }
        let subject = quoted(&root.to_string_lossy());
        Ok(Self {
            root: root.to_owned(),
            subject,
            run: None,
            remote: None,
            clock: SystemClock,
            ids: SystemIds,
        })
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every checkpoint, newest first; those deleted already only when `all` are asked for. With a remote that answers,
    /// those that are only there come last.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn list(&self, all: bool) -> Result<Vec<CheckpointEntry>, AppError> {
        let view = self.view()?;
        let infos = if all { view.list() } else { one_per_prefix(view.list()) };
        let shown = infos.into_iter().rev().filter(|info| all || info.state != State::Retired);
        let mut entries: Vec<_> = shown.map(|info| self.entry(&view, info)).collect();
        let here = |info: &CheckpointInfo| {
            entries.iter().any(|entry: &CheckpointEntry| entry.object_prefix == info.object_prefix)
        };
        let there: Vec<_> = self.only_there().into_iter().rev().filter(|info| !here(info)).collect();
        entries.extend(there.into_iter().map(|info| self.remote_entry(&view, info)));
        Ok(entries)
    }

    /// What the remote holds, when there is one and it was not out of reach a moment ago.
    fn only_there(&self) -> Vec<CheckpointInfo> {
        let answers =
            |remote: &&RemotePlan| remote.status().is_none_or(|status| status.out_of_reach_since.is_none());
        let infos = self.remote.as_ref().filter(answers).and_then(|remote| remote.list().ok());
        let held = |info: &CheckpointInfo| info.uploaded_to.is_some() && info.state != State::Retired;
        infos.unwrap_or_default().into_iter().filter(held).collect()
    }

    fn remote_entry(&self, view: &CheckpointView, info: CheckpointInfo) -> CheckpointEntry {
        // Its number is one of the other log.
        let info = CheckpointInfo { pins: Vec::new(), ..info };
        CheckpointEntry { location: "remote".into(), shared_bytes: None, ..self.entry(view, info) }
    }

    /// How many entries of the log cannot be read.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn damaged_entry_count(&self) -> Result<usize, AppError> {
        Ok(self.view()?.damaged_entries().len())
    }

    /// The checkpoints whose bytes are here, newest first, every byte of them read; of one step when one is named.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a step that was never committed; when the log cannot be read. Damage is no error but
    /// `verified: false`.
    pub fn verify(&self, step: Option<Step>, watch: &Watch) -> Result<Vec<CheckpointEntry>, AppError> {
        let here = |info: &CheckpointInfo| {
            matches!(info.state, State::Committed | State::Superseded | State::Suspect)
                && step.is_none_or(|step| info.step == step)
        };
        let infos: Vec<_> = self.view()?.list().into_iter().rev().filter(here).collect();
        if let Some(step) = step.filter(|_| infos.is_empty()) {
            return Err(self.no_such_step(step));
        }
        let total_bytes = infos.iter().filter_map(|info| info.size_bytes).sum();
        let view = reading::watched_view(&self.root, watch, total_bytes)?;
        let checked = infos.into_iter().map(|info| {
            let checked = view.verify(info.number);
            let mut entry = self.entry(&view, info);
            entry.verified = Some(checked.is_ok());
            if let Err(error) = checked {
                entry.why = Some(error.to_string());
            }
            entry
        });
        Ok(checked.collect())
    }

    fn view(&self) -> Result<CheckpointView, AppError> {
        view(&self.root)
    }

    fn housekeeper(&self) -> Result<Housekeeper, AppError> {
        let (clock, ids) = (std::sync::Arc::new(self.clock), std::sync::Arc::new(self.ids));
        Housekeeper::open(&self.root, clock, ids).map_err(|error| self.error(&error))
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn attempts(&self) -> &[AttemptRow] {
        self.run.as_ref().map_or(&[], |run| &run.attempts)
    }

    fn entry(&self, view: &CheckpointView, info: CheckpointInfo) -> CheckpointEntry {
        let committed = matches!(info.state, State::Committed | State::Superseded);
        let waits = committed && info.on_branch && info.uploaded_to.is_none() && self.remote.is_some();
        let mut entry = CheckpointEntry::new(view, info, self.now());
        if waits {
            entry.location = "waiting".into();
        }
        entry
    }

    /// What people call it.
    fn title(&self) -> String {
        match &self.run {
            Some(run) => format!("run `{}`", run.row.name),
            None => format!("`{}`", self.root.display()),
        }
    }

    fn choose(&self, view: &CheckpointView, which: Which) -> Result<CheckpointInfo, AppError> {
        let mut infos: Vec<_> =
            view.list().into_iter().filter(|info| info.manifest_sha256.is_some()).collect();
        match which {
            Which::Latest => infos.retain(|info| info.state == State::Committed),
            Which::Step(step) => infos.retain(|info| info.step == step),
        }
        let here = |info: &CheckpointInfo| (info.on_branch, info.state != State::Retired, info.number);
        infos.into_iter().max_by_key(here).ok_or_else(|| match which {
            Which::Latest => self.nothing_committed(),
            Which::Step(step) => self.no_such_step(step),
        })
    }

    fn nothing_committed(&self) -> AppError {
        AppError::new(ErrorKind::NotFound, format!("{} has no committed checkpoint", self.title()))
    }

    fn no_such_step(&self, step: Step) -> AppError {
        let message = format!("{} has no committed checkpoint of step {step}", self.title());
        AppError::new(ErrorKind::NotFound, message)
            .hint(format!("see which there are with: trackway checkpoint ls {}", self.subject))
    }

    fn error(&self, error: &CheckpointError) -> AppError {
        use trackway_checkpoint::ErrorKind as Kind;
        let kind = match (error, error.kind()) {
            (CheckpointError::PinName { .. }, _) => ErrorKind::Usage,
            (_, Kind::Input) => ErrorKind::NotFound,
            (_, Kind::Integrity | Kind::Fenced) => ErrorKind::Integrity,
            (_, Kind::Retry) => ErrorKind::Locked,
            (_, Kind::Storage | Kind::State) => ErrorKind::Fault,
        };
        let told = AppError::new(kind, error.to_string());
        match kind {
            ErrorKind::Integrity => {
                told.hint(format!("see what is wrong with: trackway checkpoint doctor {}", self.subject))
            }
            _ => told,
        }
    }
}

fn has_checkpoint_folders(root: &Path) -> bool {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("step-"))
}

/// A text as a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:=+@%,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
