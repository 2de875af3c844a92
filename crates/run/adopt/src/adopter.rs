//! Looks at the candidates from time to time and commits those that are complete.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_checkpoint::{CheckpointError, CheckpointRoot, Commit, ErrorKind, ForeignFile, Kind};
use trackway_core::{AttemptId, Clock, Ids, RunId, Step};
use trackway_formats::checkpoint_manifest::MAX_MANIFEST_FILES;
use trackway_formats::checkpoint_origin::{
    CheckpointOrigin, ORIGIN_FILE_NAME, ORIGIN_VERSION, OriginFile, stored_names,
};
use trackway_formats::writers::{OwnCheckpoint, ShownBy};
use trackway_layouts::{
    Answer, Because, Component, Fingerprint, Observation, Recognised, Root, Settling, StepOrigin, Wholeness,
};

use crate::candidates::{Candidate, Patterns};
use crate::committed::{Commits, default_beside, not_adopted};
use crate::kinds::kind_of;
use crate::order::{Place, put_in_order};
use crate::own::OwnCheckpoints;
use crate::owner::{Evidence, Owner, beyond, owner};
use crate::saves::Saves;
use crate::sightings::{Seen, WrittenFile};

/// A checkpoint that no pattern names is copied only where the disk has so many times its size free.
const FREE_PER_BYTE: u64 = 10;

/// Why a link is not committed.
const LINK: &str =
    "it is a symbolic link: what it points to is committed if `checkpoint.adopt` names that by its own path";

/// Why the state of an optimizer alone is not committed.
const OPTIMIZER_ALONE: &str = "it has an optimizer's state and no model, so that no training can continue from it alone: save both in one file, or in one folder that `checkpoint.adopt` names";

/// Why a path is not committed whose name is not UTF-8.
const NOT_TEXT: &str = "its name is not UTF-8, so that no record could say where it was: rename it";

/// Later checkpoints wait for one that is not yet known to be complete for at most so many looks, more than it takes where nothing can be
/// checked.
const AWAITED_LOOKS_MAX: u32 = 15;

/// So many of the last commits are known again under another name.
const COMMITTED_MAX: usize = 16;

/// Devices and inodes of files, and the times of their last writes.
type SameFiles = Vec<(u64, u64, i64)>;

/// Where the step of a checkpoint comes from that has none.
const UNKNOWN: &str = "unknown";

/// Whose checkpoints are adopted, and where they go.
#[derive(Debug, Clone)]
pub struct AdopterSpec {
    /// What is looked at.
    pub patterns: Patterns,
    /// The root of the run's checkpoints.
    pub checkpoint_root: PathBuf,
    /// The run.
    pub run_id: RunId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The epoch of its commits.
    pub epoch: u64,
    /// The commit that the attempt continues from, by number: the parent of its first one.
    pub parent: Option<u64>,
    /// How long files must not change to count as complete where nothing else shows it, in nanoseconds.
    pub quiet_ns: u64,
}

/// Whether one of these files, by device and inode, is open for writing; none if that is not known.
pub type IsOpen<'f> = dyn Fn(&[(u64, u64)]) -> Option<bool> + 'f;

/// The step that was reached when a file was written to, at a time in nanoseconds since 1970; none if none was recorded.
pub type StepWhenWritten<'f> = dyn Fn(i64) -> Option<Step> + 'f;

/// What was seen of the writers of files, of which earlier sightings than a time in nanoseconds since 1970 are of an earlier state.
pub type WritersOf<'f> = dyn Fn(&[WrittenFile], i64) -> Seen + 'f;

/// What the adopter cannot see in the files.
pub struct Facts<'f> {
    /// Now, in nanoseconds of any clock.
    pub at_ns: u64,
    /// Which saves were reported or renamed into place, by the real paths of the folders.
    pub saves: &'f Saves,
    /// Which step the script had recorded or printed ([`crate::Steps`]).
    pub step_when_written: &'f StepWhenWritten<'f>,
    /// How far such steps may be behind ([`crate::Steps::slack`]).
    pub step_slack: Step,
    /// Who wrote files.
    pub writers: &'f WritersOf<'f>,
    /// Whether every process that could write a checkpoint has ended.
    pub writers_ended: bool,
    /// Whether a process has one of these files, by device and inode, open for writing; none if that is not known.
    pub is_open_for_writing: &'f IsOpen<'f>,
    /// Whether to leave off at the next chunk of a copy; what is not committed is waited for.
    pub is_interrupted: &'f dyn Fn() -> bool,
}

/// A checkpoint that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Adopted {
    /// The commit.
    pub commit: Commit,
    /// Where the script wrote it.
    pub path: String,
    /// How it is laid out.
    pub layout: &'static str,
    /// What showed that it was complete.
    pub because: Because,
    /// Where its step comes from.
    pub step_origin: &'static str,
    /// What showed that the attempt wrote it.
    pub shown_by: ShownBy,
}

/// A path that is not shown to be the attempt's: neither committed nor moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOwn {
    /// The path.
    pub path: String,
    /// Its step, where the files say it.
    pub step: Option<Step>,
    /// Whether another writer is known; else none is.
    pub is_others: bool,
    /// Who wrote it, or why that is not known.
    pub why: String,
}

/// A path that was not committed, and will not be in its present state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAdopted {
    /// The path.
    pub path: String,
    /// Why.
    pub why: String,
}

/// What one look led to.
#[derive(Debug, Default)]
pub struct Look {
    /// What was committed, in the order of the log.
    pub adopted: Vec<Adopted>,
    /// What was given up; each state of a path once.
    pub not_adopted: Vec<NotAdopted>,
    /// What is not shown to be the attempt's; each state of a path once.
    pub not_own: Vec<NotOwn>,
    /// Whether something may still become complete.
    pub is_waiting: bool,
    /// Another attempt owns the run's checkpoints now: nothing more is committed.
    pub is_fenced: bool,
}

/// What is known of a path.
struct Known {
    settling: Settling,
    /// The state that needs nothing more: committed, given up, or there before the attempt.
    done: Option<Fingerprint>,
    /// Why it could not be looked into the last time.
    refused: Option<String>,
    /// How many looks since its last commit let later ones wait for it.
    awaited_looks: u32,
    /// The state that is not shown to be the attempt's.
    not_own: Option<Fingerprint>,
    /// The state that was not shown to be the attempt's by one look.
    doubted: Option<Fingerprint>,
    /// When the state in `done` was judged, in nanoseconds since 1970: what was seen before is of it or of an earlier one.
    since_ns: i64,
}

impl Known {
    fn new(quiet_ns: u64, since_ns: i64) -> Self {
        let settling = Settling::new(quiet_ns);
        Self { settling, done: None, refused: None, awaited_looks: 0, not_own: None, doubted: None, since_ns }
    }

    /// This state needs nothing more.
    fn is_done(&mut self, state: Fingerprint, at_ns: i64) {
        (self.done, self.since_ns) = (Some(state), at_ns);
    }

    /// Says once, while it is the same, why a path is not looked into.
    fn refuse(&mut self, path: String, why: String, look: &mut Look) {
        if self.refused.as_ref() != Some(&why) {
            self.refused = Some(why.clone());
            look.not_adopted.push(NotAdopted { path, why });
        }
    }
}

/// A candidate that is complete.
struct Complete {
    candidate: Candidate,
    recognised: Recognised,
    fingerprint: Fingerprint,
    because: Because,
    step: Step,
    step_origin: &'static str,
    shown_by: ShownBy,
}

impl Complete {
    fn place(&self) -> Place {
        let step = (self.step_origin != UNKNOWN).then_some(self.step);
        Place { step, modified_ns: self.candidate.modified_ns() }
    }
}

/// What a look found at a path.
enum Found {
    Complete(Box<Complete>),
    /// It is written, and becomes complete if it does not change.
    Settling(Place),
}

/// Follows the checkpoints that one attempt writes.
pub struct Adopter {
    spec: AdopterSpec,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    /// Claimed by the first commit, so that a script without checkpoints leaves no root.
    root: Option<CheckpointRoot>,
    known: BTreeMap<PathBuf, Known>,
    /// The last one that was committed.
    newest: Option<Place>,
    is_fenced: bool,
    /// What the attempt is shown to have written.
    own: OwnCheckpoints,
    /// What was committed last, to know it again under another name.
    committed: VecDeque<SameFiles>,
    /// Whether steps in checkpoints and printed steps were seen to be of one kind.
    steps_agree: bool,
}

impl Adopter {
    /// To be made before the script starts: what is there now is not its work, unless it changes.
    #[must_use]
    pub fn new(spec: AdopterSpec, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let since_ns = clock.now().as_nanos();
        Self::with_baseline(spec, since_ns, clock, ids, |_| true)
    }

    /// For an attempt that ended while nothing followed it: its work is what was written since `since_ns` (nanoseconds since 1970) and was
    /// not committed.
    #[must_use]
    pub fn of_ended(spec: AdopterSpec, since_ns: i64, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let (commits, patterns) = (Commits::of(&spec.checkpoint_root), spec.patterns.clone());
        Self::with_baseline(spec, since_ns, clock, ids, |candidate| {
            let is_older = candidate.files().iter().all(|file| file.modified_ns < since_ns);
            is_older || commits.of_candidate(candidate, &patterns).is_some()
        })
    }

    /// Candidates for which `needs_nothing` holds are left alone while they do not change.
    fn with_baseline(
        spec: AdopterSpec,
        since_ns: i64,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        needs_nothing: impl Fn(&Candidate) -> bool,
    ) -> Self {
        let mut known = BTreeMap::new();
        for path in spec.patterns.paths() {
            if let Ok(Some(candidate)) = Candidate::at(&path) {
                let done = candidate.fingerprint().filter(|_| needs_nothing(&candidate));
                known.insert(path, Known { done, ..Known::new(spec.quiet_ns, since_ns) });
            }
        }
        let (own, committed) = (OwnCheckpoints::default(), VecDeque::new());
        Self {
            spec,
            clock,
            ids,
            root: None,
            known,
            newest: None,
            is_fenced: false,
            own,
            committed,
            steps_agree: false,
        }
    }

    /// What the attempt is shown to have written, if that changed since the last call.
    pub fn own_if_changed(&mut self) -> Option<Vec<OwnCheckpoint>> {
        self.own.if_changed()
    }

    /// Where candidates are, and may appear.
    #[must_use]
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let parents: BTreeSet<&Path> = self.known.keys().filter_map(|path| path.parent()).collect();
        let known = parents.into_iter().filter_map(|folder| folder.canonicalize().ok());
        known.chain(self.spec.patterns.folders()).collect()
    }

    /// Looks at every path once and commits what is complete.
    pub fn look(&mut self, facts: &Facts<'_>) -> Look {
        let mut look = Look { is_fenced: self.is_fenced, ..Look::default() };
        if self.is_fenced {
            return look;
        }
        let paths = self.spec.patterns.paths();
        // A path that is gone may come again with the same name and other files.
        self.known.retain(|path, _| paths.contains(path));
        let (mut complete, mut settling) = (Vec::new(), Vec::new());
        for path in paths {
            match self.observe(&path, facts, &mut look) {
                Some(Found::Complete(one)) => complete.push(*one),
                Some(Found::Settling(place)) => settling.push(place),
                None => {}
            }
        }
        put_in_order(&mut complete, Complete::place);
        for one in complete {
            // What comes later in the order must not come earlier in the log.
            let place = one.place();
            let is_early = settling.iter().any(|other| other.is_before(&place));
            if is_early || self.commit(one, facts, &mut look).is_break() {
                look.is_waiting = true;
                break;
            }
        }
        look
    }

    /// Looks at one path, for what is not committed yet.
    fn observe(&mut self, path: &Path, facts: &Facts<'_>, look: &mut Look) -> Option<Found> {
        let quiet_ns = self.spec.quiet_ns;
        let known = self.known.entry(path.to_owned()).or_insert_with(|| Known::new(quiet_ns, 0));
        let shown = self.spec.patterns.shown(path);
        if path.file_name().is_some_and(|name| name.to_str().is_none()) {
            known.refuse(shown, NOT_TEXT.into(), look);
            return None;
        }
        let candidate = match Candidate::at(path) {
            Ok(candidate) => candidate?,
            Err(error) => {
                known.refuse(shown, error.to_string(), look);
                return None;
            }
        };
        let fingerprint = candidate.fingerprint()?;
        if known.done == Some(fingerprint) {
            return None;
        }
        if let Some(why) = never_committed(&candidate) {
            known.refuse(shown, why, look);
            return None;
        }
        let (real, modified_ns) = (real_path(path), candidate.modified_ns());
        let reported = facts.saves.reported(&real, modified_ns);
        if known.not_own == Some(fingerprint) && reported.is_none() {
            return None;
        }
        let content = candidate.content();
        let wholeness = match content.wholeness(&candidate) {
            Ok(wholeness) => wholeness,
            Err(why) => {
                known.refuse(shown, why, look);
                return None;
            }
        };
        known.refused = None;
        let reached = (facts.step_when_written)(modified_ns);
        let evidence = self.evidence(&candidate, &content.recognised, reported.is_some(), reached, facts);
        let owner = owner(&evidence);
        self.learn(&candidate, &content.recognised, reached, owner.as_ref(), facts.step_slack);
        let known = self.known.get_mut(path).expect("it was just made");
        let is_own = owner.as_ref().is_none_or(|owner| owner.shown_by().is_some());
        let inodes: Vec<(u64, u64)> =
            candidate.files().iter().map(|file| (file.device, file.inode)).collect();
        let seen = Observation {
            at_ns: facts.at_ns,
            fingerprint: Some(fingerprint),
            wholeness,
            is_open_for_writing: (facts.is_open_for_writing)(&inodes),
            reported_complete: reported.is_some(),
            renamed_into_place: facts.saves.is_renamed(&real, modified_ns),
            writers_ended: facts.writers_ended,
        };
        match known.settling.observe(&seen) {
            Answer::Complete { because } => {
                let recognised = content.recognised;
                // Who wrote is looked at from time to time: what speaks for the attempt may be seen only after the file.
                let is_doubted = !is_own && known.doubted != Some(fingerprint) && !facts.writers_ended;
                let is_early = owner.is_none() || is_doubted;
                let Some(owner) = owner.filter(|_| !is_early) else {
                    known.doubted = Some(fingerprint).filter(|_| !is_own);
                    look.is_waiting = true;
                    return Some(Found::Settling(Place { step: recognised.step.or(reached), modified_ns }));
                };
                let Some(shown_by) = owner.shown_by() else {
                    known.not_own = Some(fingerprint);
                    let is_others = matches!(owner, Owner::Other { .. });
                    let why = owner.reason().unwrap_or_default();
                    look.not_own.push(NotOwn { path: shown, step: recognised.step, is_others, why });
                    return None;
                };
                let (step, step_origin) = step_of(&recognised, reported.flatten(), || reached);
                let one =
                    Complete { candidate, recognised, fingerprint, because, step, step_origin, shown_by };
                Some(Found::Complete(Box::new(one)))
            }
            Answer::Torn { .. } if !is_own => {
                known.not_own = Some(fingerprint);
                None
            }
            Answer::Torn { what } => {
                known.is_done(fingerprint, self.clock.now().as_nanos());
                look.not_adopted.push(NotAdopted { path: shown, why: format!("it is not whole: {what}") });
                None
            }
            // Nothing of the attempt's waits for what others write.
            Answer::Wait { .. } if !is_own => None,
            Answer::Wait { .. } => {
                look.is_waiting = true;
                let is_written =
                    matches!(seen.wholeness, Wholeness::Whole { .. } | Wholeness::CannotTell { .. })
                        && seen.is_open_for_writing != Some(true);
                known.awaited_looks += u32::from(is_written);
                let is_awaited = is_written && known.awaited_looks <= AWAITED_LOOKS_MAX;
                let step = content.recognised.step.or(reached);
                is_awaited.then_some(Found::Settling(Place { step, modified_ns }))
            }
            Answer::Gone => None,
        }
    }

    /// What is known of who wrote it.
    fn evidence(
        &self,
        candidate: &Candidate,
        recognised: &Recognised,
        reported: bool,
        reached: Option<Step>,
        facts: &Facts<'_>,
    ) -> Evidence {
        let since_ns = self.known.get(&candidate.path).map_or(0, |known| known.since_ns);
        let Seen { kernel, open, company } = (facts.writers)(&candidate.written(), since_ns);
        let is_named = !self.spec.patterns.is_detecting();
        let step = recognised.step.filter(|_| self.steps_agree);
        let beyond = step.and_then(|step| beyond(step, reached, facts.step_slack));
        Evidence { reported, kernel, open, company, beyond, is_named }
    }

    /// Remembers what is the attempt's own, and whether its steps are those that it prints.
    fn learn(
        &mut self,
        candidate: &Candidate,
        recognised: &Recognised,
        reached: Option<Step>,
        owner: Option<&Owner>,
        slack: Step,
    ) {
        let Some(owner) = owner else { return };
        let shown = self.spec.patterns.shown(&candidate.path);
        match owner.shown_by().filter(|_| owner.is_seen()) {
            Some(by) => self.own.put(shown, by, candidate),
            None => self.own.drop_changed(&shown, candidate),
        }
        let is_certain = matches!(owner.shown_by(), Some(ShownBy::Report | ShownBy::Kernel | ShownBy::Open));
        if let Some((step, reached)) = recognised.step.zip(reached).filter(|_| is_certain) {
            let is_near = beyond(step, Some(reached), slack).is_none();
            self.steps_agree = is_near && step.saturating_mul(2) >= reached;
        }
    }

    /// Commits it. A break: it was interrupted.
    fn commit(&mut self, complete: Complete, facts: &Facts<'_>, look: &mut Look) -> ControlFlow<()> {
        let place = complete.place();
        let files = same_files(&complete.candidate);
        if self.committed.contains(&files) {
            // A hard link to it: the same checkpoint.
            let at_ns = self.clock.now().as_nanos();
            let known = self.known.get_mut(&complete.candidate.path).expect("it was observed");
            known.is_done(complete.fingerprint, at_ns);
            return ControlFlow::Continue(());
        }
        let saved = self.save(&complete, facts);
        let Complete { candidate, recognised, fingerprint, because, step_origin, shown_by, .. } = complete;
        let at_ns = self.clock.now().as_nanos();
        let shown = self.spec.patterns.shown(&candidate.path);
        let layout = recognised.layout.as_str();
        let known = self.known.get_mut(&candidate.path).expect("it was observed");
        match saved {
            Ok(commit) => {
                known.is_done(fingerprint, at_ns);
                known.awaited_looks = 0;
                self.newest = Some(place);
                self.committed.truncate(COMMITTED_MAX - 1);
                self.committed.push_front(files);
                look.adopted.push(Adopted { commit, path: shown, layout, because, step_origin, shown_by });
            }
            Err(_) if (facts.is_interrupted)() => return ControlFlow::Break(()),
            Err(CheckpointError::SourceChanged { .. }) => {
                known.settling.rewritten();
                look.is_waiting = true;
            }
            Err(error) if error.kind() == ErrorKind::Fenced => {
                self.is_fenced = true;
                look.is_fenced = true;
                look.not_adopted.push(NotAdopted { path: shown, why: why(&error) });
            }
            // A full disk may have room for the next one; this state is not tried again each second.
            Err(error) => {
                known.is_done(fingerprint, at_ns);
                look.not_adopted.push(NotAdopted { path: shown, why: why(&error) });
            }
        }
        ControlFlow::Continue(())
    }

    fn save(&mut self, complete: &Complete, facts: &Facts<'_>) -> Result<Commit, CheckpointError> {
        let Complete { candidate, fingerprint, .. } = complete;
        if let Some(why) = self.refusal(complete) {
            return Err(CheckpointError::state(why));
        }
        let unless_interrupted = || match (facts.is_interrupted)() {
            true => Err(CheckpointError::state("the copy was interrupted")),
            false => Ok(()),
        };
        unless_interrupted()?;
        let (origin, sources) = origin_of(complete, &self.spec.patterns);
        let keep = default_beside(&not_adopted(&self.spec.checkpoint_root));
        let root = self.root()?;
        root.keep_by_default(keep);
        root.save(complete.step, &[], |writer| {
            for (file, (path, kind)) in origin.files.iter().zip(&sources) {
                let opened = open(path)?;
                let source = ForeignFile { name: &file.name, kind: *kind, path, file: &opened };
                writer.copy_of(&source, &mut |_| unless_interrupted())?;
            }
            // Every file was whole for itself; together they are what was judged only if none came, went or changed.
            let again = Candidate::at(&candidate.path).ok().flatten();
            if again.and_then(|again| again.fingerprint()) != Some(*fingerprint) {
                return Err(CheckpointError::SourceChanged { path: candidate.path.clone() });
            }
            writer.file(ORIGIN_FILE_NAME, Kind::Other, &origin.to_bytes())
        })
    }

    /// Why a checkpoint that could be committed should not be.
    fn refusal(&self, complete: &Complete) -> Option<String> {
        if self.saves_through_trackway() {
            return Some("the script saves through Trackway too, and one log cannot have both".into());
        }
        if is_optimizer_alone(&complete.recognised) {
            return Some(OPTIMIZER_ALONE.into());
        }
        if let Some(newest) = self.newest.as_ref().filter(|newest| complete.place().is_older(newest)) {
            let newest = newest.step.map_or("another one".to_owned(), |step| format!("that of step {step}"));
            return Some(format!("it is older than {newest}, which was committed before it was complete"));
        }
        let bytes = complete.candidate.bytes_on_disk();
        let free = free_bytes(self.spec.checkpoint_root.ancestors().find(|folder| folder.exists())?)?;
        if self.spec.patterns.is_detecting() && free / FREE_PER_BYTE < bytes {
            return Some(format!(
                "it has {bytes} bytes and the disk only {free} free: name it in `checkpoint.adopt` to have it copied"
            ));
        }
        (free < bytes).then(|| format!("it has {bytes} bytes and the disk only {free} free"))
    }

    /// Whether the log has a checkpoint of this attempt that it can resume from through Trackway; a model alone is none.
    fn saves_through_trackway(&self) -> bool {
        let found = not_adopted(&self.spec.checkpoint_root);
        found.iter().any(|one| one.attempt_id == self.spec.attempt_id && !one.is_model_alone())
    }

    fn root(&mut self) -> Result<&mut CheckpointRoot, CheckpointError> {
        if self.root.is_none() {
            let AdopterSpec { checkpoint_root, run_id, attempt_id, epoch, parent, .. } = &self.spec;
            let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
            let mut root = CheckpointRoot::open(checkpoint_root, *epoch, *run_id, *attempt_id, clock, ids)?;
            if let Some(parent) = parent {
                root.continue_from(*parent)?;
            }
            self.root = Some(root);
        }
        Ok(self.root.as_mut().expect("it was opened"))
    }
}

/// What two checkpoints have in common that are the same files under two names.
fn same_files(candidate: &Candidate) -> SameFiles {
    candidate.files().iter().map(|file| (file.device, file.inode, file.modified_ns)).collect()
}

/// Whether it is one file with the state of an optimizer, and of neither a model nor a trainer.
fn is_optimizer_alone(recognised: &Recognised) -> bool {
    let beside = |component: &Component| {
        matches!(component, Component::Optimizer | Component::Scheduler | Component::Scaler | Component::Rng)
    };
    recognised.root == Root::File
        && recognised.components.contains(&Component::Optimizer)
        && recognised.components.iter().all(beside)
}

/// Why it is not committed whatever is in its files.
fn never_committed(candidate: &Candidate) -> Option<String> {
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

/// The step, and where it comes from: the content, else the script's report, else a tracker or the name. Without any the one that was reached
/// when the files were written, and without that 0.
fn step_of(
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

/// What is written beside the files, and where each of them is.
fn origin_of(complete: &Complete, patterns: &Patterns) -> (CheckpointOrigin, Vec<(PathBuf, Kind)>) {
    let Complete { candidate, recognised, step_origin, shown_by, .. } = complete;
    let paths: Vec<&str> = candidate.files().iter().map(|file| candidate.below(file)).collect();
    let named = paths.iter().map(|path| if path.is_empty() { candidate.name.as_str() } else { path });
    let files = stored_names(named)
        .into_iter()
        .zip(candidate.files().iter().zip(&paths))
        .map(|(name, (file, path))| OriginFile {
            name,
            path: (*path).to_owned(),
            modified_ns: file.modified_ns,
        })
        .collect();
    let sources = paths
        .iter()
        .map(|path| {
            let at = if path.is_empty() { candidate.path.clone() } else { candidate.path.join(path) };
            (at, kind_of(path, &candidate.name, &recognised.components))
        })
        .collect();
    let origin = CheckpointOrigin {
        version: ORIGIN_VERSION,
        layout: recognised.layout.as_str().to_owned(),
        path: patterns.shown(&candidate.path),
        is_folder: candidate.is_folder,
        step_origin: (*step_origin).to_owned(),
        shown_by: Some(*shown_by),
        files,
    };
    (origin, sources)
}

/// What a reader needs of an error: of a refusal only its reason.
fn why(error: &CheckpointError) -> String {
    match error {
        CheckpointError::State { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// What an unprivileged process may still write below a folder; none if that is not known.
fn free_bytes(folder: &Path) -> Option<u64> {
    let found = nix::sys::statvfs::statvfs(folder).ok()?;
    Some(found.blocks_available().saturating_mul(found.fragment_size()))
}

/// A file that is gone was deleted by the script's own retention.
fn open(path: &Path) -> Result<File, CheckpointError> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).map_err(
        |error| match error.kind() {
            std::io::ErrorKind::NotFound => CheckpointError::SourceChanged { path: path.to_owned() },
            _ => CheckpointError::state(format!("cannot read {}: {error}", path.display())),
        },
    )
}

/// The path without symbolic links above its name: as the kernel and the script name it.
fn real_path(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    parent.zip(path.file_name()).map_or_else(|| path.to_owned(), |(parent, name)| parent.join(name))
}
