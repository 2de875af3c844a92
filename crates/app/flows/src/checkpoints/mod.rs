//! A run's checkpoints, read from their own log: the ledger mirrors it, the log wins.
//!
//! [`Checkpoints`] is one root: of a run, or any folder of a disk without a home. Everything that a person does with
//! checkpoints begins there.

mod accept;
mod doctor;
mod entry;
mod environment;
mod explanation;
mod fetch;
mod hold;
mod lines;
mod loading;
pub mod model_pin;
mod now;
mod policy;
mod read_only;
mod reading;
mod remote_view;
mod resume;
mod retention;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_api::checkpoints::CheckpointListing;
use trackway_checkpoint::{CheckpointError, CheckpointState, CheckpointView, Housekeeper};
use trackway_core::{
    CheckpointUse, Clock, Health, Ids, LaunchKind, RunId, Rung, Step, Timestamp, Unfit, Weights,
};
use trackway_engine::checkpoints::{mirror_run, view};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::good_runs::{blessed_because, decided_otherwise, why_unfit};
use trackway_engine::rows::rung_of;
use trackway_engine::run::remote::RemotePlan;
use trackway_engine::{Context, run};
pub use trackway_formats::SaveReason;
use trackway_formats::shell::quoted;
use trackway_ledger::{AttemptRow, CheckpointRow, EventRow, RunRow};

use entry::{Facts, checkpoint, judge};
pub(crate) use environment::try_out_file_system;
pub(crate) use fetch::Arriving;
pub use hold::CheckpointRef;
pub(crate) use hold::Chosen;
pub use loading::{CheckedCheckpoint, OpenedCheckpoint};
pub use now::checkpoint_now;
pub use policy::KeepChanges;
pub(crate) use read_only::{ReadOnly, writable_again};
pub use reading::BytesProgress;
use reading::ReadProgress;
use remote_view::{PlacedCheckpoint, Remote};
pub use retention::Garbage;

/// A reference to a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The newest committed one.
    Latest,
    /// The one of this step; of several the one that a resume could reach, else the newest.
    Step(Step),
}

/// The checkpoints of one root.
pub struct Checkpoints {
    root: PathBuf,
    /// What names it on a command line.
    subject: String,
    /// Their run, if it is in the ledger.
    run: Option<RunFacts>,
    /// Where their truth is, when it is not here.
    remote: Option<RemotePlan>,
    /// Whether those that were read are what was committed, by the SHA-256 of their manifest.
    checked: RefCell<BTreeMap<String, bool>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

struct RunFacts {
    row: RunRow,
    /// Oldest first.
    attempts: Vec<AttemptRow>,
    events: Vec<EventRow>,
    /// A person vouches for the run although an attempt of it is broken.
    is_blessed: bool,
    /// What was logged at the step of each checkpoint, by the SHA-256 of its manifest; of an attempt that has ended.
    logged: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The checkpoints of the rung where a run is.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when the ledger cannot be read.
pub fn checkpoints(context: &Context, run: RunId) -> Result<Checkpoints, AppError> {
    let row = context.run_by_id(run)?;
    let rung = run::rung_now(context, &row)?;
    checkpoints_at(context, row, rung)
}

/// The checkpoints of a rung of a run.
pub fn checkpoints_at(context: &Context, row: RunRow, rung: Rung) -> Result<Checkpoints, AppError> {
    let mut attempts = context.attempts_of_kind(row.run_id, row.kind)?;
    attempts.retain(|attempt| rung_of(attempt) == rung);
    let events = context.ledger_read(|ledger| ledger.events_of_run(row.run_id))?;
    let mirrored = context.ledger_read(|ledger| ledger.checkpoints_of_run(row.run_id))?;
    let logged = mirrored.into_iter().filter_map(logged_values).collect();
    let is_broken = attempts.iter().any(|attempt| attempt.health == Some(Health::Broken));
    let is_blessed = is_broken && blessed_because(context, &row)?.is_some();
    let remote = RemotePlan::of_run(context, &row, rung)?.filter(|_| row.kind == LaunchKind::Train);
    Ok(Checkpoints {
        remote,
        root: context.home.layout.checkpoint_root(row.run_id, row.kind, &rung.to_string()),
        subject: row.run_id.to_string(),
        run: Some(RunFacts { row, attempts, events, is_blessed, logged }),
        checked: RefCell::default(),
        clock: Arc::clone(&context.clock),
        ids: Arc::clone(&context.ids),
    })
}

/// The metrics of a committed checkpoint as the ledger has them.
fn logged_values(row: CheckpointRow) -> Option<(String, BTreeMap<String, f64>)> {
    let values = row.metrics_json?;
    let numbers = values.as_object()?.iter();
    let numbers = numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect();
    Some((row.manifest_sha256?, numbers))
}

impl Checkpoints {
    /// Whether a text names a folder of checkpoints rather than a run: it begins as a path does (`/`, `./`, `../`), has a `/` and is
    /// there, or a folder of that name has a log.
    #[must_use]
    pub fn is_root(text: &str) -> bool {
        let path = Path::new(text);
        let begins = text.starts_with('/') || text.starts_with("./") || text.starts_with("../");
        begins
            || matches!(text, "." | "..")
            || (text.contains('/') && path.exists())
            || path.join("log").is_dir()
    }

    /// The checkpoints below a folder, whatever run they are of.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the folder does not exist or is none of checkpoints.
    pub fn at(root: &Path, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Result<Self, AppError> {
        let shown = root.display();
        if !root.is_dir() {
            return Err(AppError::new(ErrorKind::NotFound, format!("there is no folder `{shown}`")));
        }
        if !root.join("log").is_dir() && !has_checkpoint_folders(root) {
            let message =
                format!("`{shown}` is not a checkpoint folder: it contains neither `log` nor `step-…`");
            return Err(AppError::new(ErrorKind::NotFound, message)
                .hint("name the folder that contains `log` and `step-…`"));
        }
        let subject = quoted(&root.to_string_lossy());
        let checked = RefCell::default();
        Ok(Self { root: root.to_owned(), subject, run: None, remote: None, checked, clock, ids })
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every checkpoint, newest first; those whose bytes are deleted already only with `all`. Includes what is only at
    /// the remote, if there is one.
    ///
    /// # Errors
    /// When the log cannot be read. That the remote does not answer is none.
    pub fn list(&self, all: bool) -> Result<CheckpointListing, AppError> {
        let view = self.view()?;
        let remote = self.ask_remote();
        let mut placed = self.placed(view.list(), &remote, all);
        if !all {
            let saved: BTreeSet<_> = placed
                .iter()
                .filter(|one| one.info.manifest_sha256.is_some())
                .map(|one| one.info.step)
                .collect();
            placed.retain(|one| match one.info.state {
                CheckpointState::Retired => false,
                // Its step was saved again.
                CheckpointState::Abandoned => !saved.contains(&one.info.step),
                _ => true,
            });
        }
        self.listing(&view, placed, &remote)
    }

    fn listing(
        &self,
        view: &CheckpointView,
        placed: Vec<PlacedCheckpoint>,
        remote: &Remote,
    ) -> Result<CheckpointListing, AppError> {
        let infos: Vec<_> = placed.iter().map(|one| one.info.clone()).collect();
        let facts =
            Facts { view, reasons: self.save_reasons(&infos)?, kept: self.kept(view)?, now: self.now() };
        let standing = self.standing(&self.placed(view.list(), remote, false));
        let checkpoints = placed.into_iter().map(|one| checkpoint(one, &facts)).collect();
        Ok(CheckpointListing { checkpoints, standing, remote: remote.answer() })
    }

    /// How many entries of the log cannot be read.
    pub fn damaged_entry_count(&self) -> Result<usize, AppError> {
        Ok(self.view()?.damaged_entries().len())
    }

    /// The checkpoints that were committed and not deleted, newest first, every byte of them read that is on this disk,
    /// and with `there` also every byte at the remote; of one step when one is named.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a step that was never committed; when the log cannot be read, or the remote does not
    /// answer and `there` is set. Damage is `verified: false`, not an error.
    pub fn verify(
        &self,
        step: Option<Step>,
        there: bool,
        watch: &BytesProgress,
    ) -> Result<CheckpointListing, AppError> {
        let view = self.view()?;
        let remote = match there.then(|| self.demand_remote()).transpose()?.flatten() {
            Some(there) => Remote::Answers(there),
            None => self.ask_remote(),
        };
        let mut placed = self.placed(view.list(), &remote, false);
        placed.retain(|one| {
            (one.info.state.is_whole() || one.info.state == CheckpointState::Suspect)
                && step.is_none_or(|step| one.info.step == step)
        });
        if let Some(step) = step.filter(|_| placed.is_empty()) {
            return Err(self.no_such_step(step));
        }
        let bytes_of = |one: &PlacedCheckpoint| {
            one.info.size_bytes.unwrap_or(0) * (u64::from(one.here) + u64::from(one.there && there))
        };
        let reading = ReadProgress::new(watch, placed.iter().map(bytes_of).sum());
        let view = reading.view(&self.root)?;
        let places: Vec<(bool, bool)> = placed.iter().map(|one| (one.here, one.there && there)).collect();
        let mut listing = self.listing(&view, placed, &remote)?;
        for (entry, (here, there)) in listing.checkpoints.iter_mut().zip(places) {
            if here {
                judge(entry, view.verify(entry.number).map(drop));
            }
            if let (true, Remote::Answers(remote)) = (there, &remote) {
                let prefix = &entry.object_prefix;
                let read = remote.replica.verify_there(prefix, &|done, _| reading.at_remote(prefix, done));
                judge(entry, read);
            }
        }
        let known = listing.checkpoints.iter();
        let known = known.filter_map(|entry| Some((entry.manifest_sha256.clone()?, entry.verified?)));
        self.checked.borrow_mut().extend(known);
        Ok(listing)
    }

    /// Keeps for [`Self::mirror`] what reading every byte of a checkpoint showed; an error that is not about its bytes shows nothing.
    fn note_read<T>(&self, manifest_sha256: &str, read: &Result<T, AppError>) {
        let matches = match read {
            Ok(_) => true,
            Err(error) if error.kind == ErrorKind::Integrity => false,
            Err(_) => return,
        };
        self.checked.borrow_mut().insert(manifest_sha256.to_owned(), matches);
    }

    /// Brings the ledger's rows up to the log: after every change of it, and after bytes were read. A folder without a run has none.
    ///
    /// # Errors
    /// When the log cannot be read or the ledger cannot be written.
    pub fn mirror(&self, context: &Context) -> Result<(), AppError> {
        match &self.run {
            Some(run) => mirror_run(context, &run.row, &self.checked.borrow()),
            None => Ok(()),
        }
    }

    /// Whether there are folders of checkpoints and no log that shows which of them are committed.
    #[must_use]
    pub fn log_is_gone(&self) -> bool {
        !self.root.join("log").is_dir() && has_checkpoint_folders(&self.root)
    }

    fn view(&self) -> Result<CheckpointView, AppError> {
        view(&self.root)
    }

    fn housekeeper(&self) -> Result<Housekeeper, AppError> {
        let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
        Housekeeper::open(&self.root, clock, ids).map_err(|error| self.error(error))
    }

    /// The time by the clock of these checkpoints.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn attempts(&self) -> &[AttemptRow] {
        self.run.as_ref().map_or(&[], |run| &run.attempts)
    }

    /// The attempt that wrote a checkpoint, if it is in the ledger.
    fn writer(&self, one: &PlacedCheckpoint) -> Option<&AttemptRow> {
        self.attempts().iter().find(|attempt| attempt.attempt_id == one.info.attempt_id)
    }

    /// What is known of the weights of a checkpoint; `accepts_unsafe`: a person uses them all the same.
    fn weights(&self, one: &PlacedCheckpoint, accepts_unsafe: bool) -> Weights {
        Weights {
            health: self.writer(one).and_then(|attempt| attempt.health),
            accepts_unsafe,
            is_blessed: self.run.as_ref().is_some_and(|run| run.is_blessed),
            ..Weights::in_state(one.info.state)
        }
    }

    /// What people call it.
    fn title(&self) -> String {
        match &self.run {
            Some(run) => format!("run `{}`", run.row.name),
            None => format!("`{}`", self.root.display()),
        }
    }

    /// The referenced one, among all of this disk and of the remote.
    fn choose(&self, placed: &[PlacedCheckpoint], which: Which) -> Result<PlacedCheckpoint, AppError> {
        self.choose_for(placed, which, CheckpointUse::Keep)
    }

    /// The same for a purpose, which decides what a person can do where nothing is safe.
    fn choose_for(
        &self,
        placed: &[PlacedCheckpoint],
        which: Which,
        purpose: CheckpointUse,
    ) -> Result<PlacedCheckpoint, AppError> {
        let committed = placed.iter().filter(|one| one.info.manifest_sha256.is_some());
        let meant = committed.filter(|one| match which {
            Which::Latest => one.info.state == CheckpointState::Committed,
            Which::Step(step) => one.info.step == step,
        });
        // They are in order, newest first, and of equals `max_by_key` takes the last.
        let nearest = |one: &&PlacedCheckpoint| {
            (one.info.on_branch, one.info.state != CheckpointState::Retired, one.info.number)
        };
        meant.max_by_key(nearest).cloned().ok_or_else(|| match which {
            Which::Latest => self.nothing_usable(placed, purpose),
            Which::Step(step) => self.no_such_step(step),
        })
    }

    /// Why there is no newest one: nothing was committed, or nothing of it is safe.
    fn nothing_usable(&self, placed: &[PlacedCheckpoint], purpose: CheckpointUse) -> AppError {
        let newest = placed.iter().find(|one| one.info.state == CheckpointState::Unsafe);
        let unfit = |newest: &PlacedCheckpoint| {
            self.unfit(newest, &self.weights(newest, false).unfit_for(purpose), purpose)
        };
        newest.map_or_else(|| self.nothing_committed(), unfit)
    }

    /// A checkpoint that only a person can decide to use.
    fn unfit(&self, one: &PlacedCheckpoint, unfit: &[Unfit], purpose: CheckpointUse) -> AppError {
        let what = format!("step {} of {}", one.info.step, self.title());
        let first = unfit.first().copied().unwrap_or(Unfit::Unsafe);
        let mut error =
            AppError::new(ErrorKind::Usage, why_unfit(first, (&what, &one.info), self.writer(one)));
        if first == Unfit::Unsafe {
            error = error.hint(format!("see which are safe with: trackway checkpoint ls {}", self.subject));
        }
        // A folder of checkpoints has no run for which a person could decide.
        if self.run.is_some() {
            error.hints.extend(decided_otherwise(unfit, purpose, &self.subject, one.info.step));
        }
        error
    }

    fn nothing_committed(&self) -> AppError {
        let message = format!("{} has no committed checkpoint", self.title());
        let error = AppError::new(ErrorKind::NotFound, message);
        match self.run.is_some() {
            true => error.hint(format!("see why with: trackway explain {}", self.subject)),
            false => error,
        }
    }

    fn no_such_step(&self, step: Step) -> AppError {
        let message = format!("{} has no committed checkpoint of step {step}", self.title());
        AppError::new(ErrorKind::NotFound, message)
            .hint(format!("see which there are with: trackway checkpoint ls {}", self.subject))
    }

    fn error(&self, error: CheckpointError) -> AppError {
        use trackway_checkpoint::ErrorKind as Kind;
        let kind = match (&error, error.kind()) {
            (CheckpointError::PinName { .. }, _) => ErrorKind::Usage,
            (_, Kind::Input) => ErrorKind::NotFound,
            (_, Kind::Integrity | Kind::Fenced) => ErrorKind::Integrity,
            (_, Kind::Retry) => ErrorKind::Locked,
            (_, Kind::Storage | Kind::State) => ErrorKind::Fault,
        };
        let failure = AppError::of(kind, error);
        match kind {
            ErrorKind::Integrity => {
                failure.hint(format!("see what is wrong with: trackway checkpoint doctor {}", self.subject))
            }
            _ => failure,
        }
    }
}

fn has_checkpoint_folders(root: &Path) -> bool {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("step-"))
}
