//! Looks at the candidates from time to time and commits those that are complete.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use trackway_checkpoint::{CheckpointError, CheckpointRoot, Commit, ErrorKind, ForeignFile, Kind};
use trackway_core::{Clock, Ids, Step};
use trackway_formats::checkpoint_origin::ORIGIN_FILE_NAME;
use trackway_formats::writers::{OwnCheckpoint, ShownBy};
use trackway_layouts::{Answer, Because, Fingerprint, Observation, Recognised, Wholeness};

use crate::commit::committed::{Commits, default_beside, not_adopted};
use crate::commit::complete::{
    Complete, OPTIMIZER_ALONE, SameFiles, free_bytes, is_further_name, is_optimizer_alone, named_in_tick,
    never_committed, open, origin_of, real_path, regular_in_window, same_files, step_of, why,
};
use crate::commit::families::Families;
use crate::commit::lost::{LostValues, lost_in};
use crate::commit::order::{Order, put_in_order};
use crate::commit::weights::same_tensors;
use crate::find::candidate::{Candidate, Content};
use crate::find::parts::{StateChange, compared};
use crate::find::patterns::holds_a_training;
use crate::find::places::Place;
use crate::look::{Adopted, AdopterSpec, Facts, Look, NotAdopted, NotOwn};
use crate::path_record::PathRecord;
use crate::put_back::own::OwnCheckpoints;
use crate::writers::owner::{Evidence, Owner, beyond, owner, owner_of_all};
use crate::writers::sightings::{WriterEvidence, WrittenFile};
use crate::writers::steps::{SOON_NS, TICK_NS};

/// A checkpoint that no pattern names is copied only where the disk has so many times its size free.
const FREE_PER_BYTE: u64 = 10;

/// So many of the last commits are known again under another name.
const COMMITTED_MAX: usize = 16;

/// What a look found at a path.
enum WriteStage {
    Complete(Box<Complete>),
    /// It is written, and becomes complete if it does not change.
    Settling(Order),
}

/// A state of a place, and what is known of it without a look into its files.
struct WrittenState {
    /// The path as the patterns show it.
    shown: String,
    candidate: Candidate,
    fingerprint: Fingerprint,
    /// When it was last written to, in nanoseconds since 1970.
    modified_ns: i64,
    /// Where its files are, without links.
    real_paths: Vec<PathBuf>,
    /// The step of a report that it is complete, where there is one.
    reported: Option<Option<Step>>,
    /// The step of the training at that time.
    reached: Option<Step>,
    /// What of it is of a save before.
    mixed: Option<String>,
}

impl WrittenState {
    fn observation(&self, wholeness: Wholeness, facts: &Facts<'_>) -> Observation {
        let files = self.candidate.files();
        let inodes: Vec<(u64, u64)> = files.iter().map(|file| (file.device, file.inode)).collect();
        let is_renamed = |path: &PathBuf| facts.saves.is_renamed(path, self.modified_ns);
        Observation {
            at_ns: facts.at_ns,
            fingerprint: Some(self.fingerprint),
            wholeness,
            is_open_for_writing: (facts.is_open_for_writing)(&inodes),
            reported_complete: self.reported.is_some(),
            renamed_into_place: self.real_paths.iter().all(is_renamed),
            writers_ended: facts.writers_ended,
        }
    }

    /// Its place in the order of the log. `step`: what its files say.
    fn order(&self, step: Option<Step>) -> Order {
        Order { step: step.or(self.reached), modified_ns: self.modified_ns }
    }
}

/// Follows the checkpoints that one attempt writes.
pub struct Adopter {
    spec: AdopterSpec,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    /// Claimed by the first commit, so that a script without checkpoints leaves no root.
    root: Option<CheckpointRoot>,
    known: BTreeMap<PathBuf, PathRecord>,
    /// The last one that was committed.
    newest: Option<Order>,
    is_fenced: bool,
    /// What the attempt is shown to have written.
    own: OwnCheckpoints,
    /// What was committed last, to know it again under another name.
    committed: VecDeque<SameFiles>,
    /// Files that by their names are one state, and by their content are not: the state of which this is known.
    apart: BTreeMap<PathBuf, (Fingerprint, bool)>,
    /// Which parts its states in several files have.
    families: Families,
    /// Whether steps in checkpoints and printed steps were seen to be of one kind.
    steps_agree: bool,
    /// Which values in its checkpoints are not finite.
    lost: LostValues,
}

impl Adopter {
    /// To be made before the script starts: what is there is not its work, unless it changes. `there`: what the
    /// patterns name, and since when they were looked at, in nanoseconds since 1970.
    #[must_use]
    pub fn new(spec: AdopterSpec, there: (&[Place], i64), clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self::with_baseline(spec, there, clock, ids, |_| true)
    }

    /// For an attempt that ended while nothing followed it: its work is what was written since `since_ns` (nanoseconds since 1970) and was
    /// not committed.
    #[must_use]
    pub fn of_ended(spec: AdopterSpec, since_ns: i64, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let (commits, patterns) = (Commits::of(&spec.checkpoint_root), spec.patterns.clone());
        let there = patterns.places();
        Self::with_baseline(spec, (&there, since_ns), clock, ids, |candidate| {
            let is_older = candidate.files().iter().all(|file| file.modified_ns < since_ns);
            is_older || commits.of_candidate(candidate, &patterns).is_some()
        })
    }

    /// Candidates for which `needs_nothing` holds are left alone while they do not change.
    fn with_baseline(
        spec: AdopterSpec,
        (there, since_ns): (&[Place], i64),
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        needs_nothing: impl Fn(&Candidate) -> bool,
    ) -> Self {
        let mut known = BTreeMap::new();
        for place in there {
            let all: Vec<Candidate> = place.paths().filter_map(|path| Candidate::at(&path).ok()?).collect();
            for candidate in &all {
                known.insert(candidate.path.clone(), PathRecord::new(spec.quiet_ns, since_ns));
            }
            // Of several files each may turn out to be one for itself.
            let together = Candidate::of(place).ok().flatten().filter(|_| !place.beside.is_empty());
            let left_alone: Vec<&Candidate> =
                all.iter().filter(|candidate| needs_nothing(candidate)).collect();
            for candidate in &left_alone {
                known.get_mut(&candidate.path).expect("it was just made").is_done(candidate, since_ns);
            }
            if let Some(together) = together {
                let first = known
                    .entry(place.path.clone())
                    .or_insert_with(|| PathRecord::new(spec.quiet_ns, since_ns));
                first.done = together.fingerprint().filter(|_| needs_nothing(&together));
                first.done_files = left_alone.iter().flat_map(|it| it.files()).cloned().collect();
            }
        }
        let (own, committed) = (OwnCheckpoints::default(), VecDeque::new());
        let families = Commits::of(&spec.checkpoint_root).families();
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
            apart: BTreeMap::new(),
            families,
            steps_agree: false,
            lost: LostValues::default(),
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
        let mut places = self.spec.patterns.places();
        // A path that is gone may come again with the same name and other files.
        let paths: BTreeSet<PathBuf> = places.iter().flat_map(Place::paths).collect();
        places.retain(|place| !is_further_name(&place.path, &paths));
        self.known.retain(|path, _| paths.contains(path));
        self.apart.retain(|path, _| paths.contains(path));
        let (mut complete, mut settling) = (Vec::new(), Vec::new());
        for place in places {
            let places = if self.is_apart(&place) { place.apart() } else { vec![place] };
            for place in places {
                match self.observe(&place, facts, &mut look) {
                    Some(WriteStage::Complete(one)) => complete.push(*one),
                    Some(WriteStage::Settling(order)) => settling.push(order),
                    None => {}
                }
            }
        }
        put_in_order(&mut complete, Complete::order);
        for one in complete {
            // What comes later in the order must not come earlier in the log.
            let order = one.order();
            let is_early = settling.iter().any(|other| other.is_before(&order));
            if is_early || self.commit(one, facts, &mut look).is_break() {
                look.is_waiting = true;
                break;
            }
        }
        look
    }

    /// Whether the files of a place are no state together by what is in them. Each state of them is read once.
    fn is_apart(&mut self, place: &Place) -> bool {
        if place.beside.is_empty() {
            return false;
        }
        let Some(candidate) = Candidate::of(place).ok().flatten() else { return false };
        let Some(state) = candidate.fingerprint() else { return false };
        if self.known.get(&place.path).is_some_and(|known| known.done == Some(state)) {
            return false;
        }
        match self.apart.get(&place.path) {
            Some((known, is_apart)) if *known == state => *is_apart,
            _ => {
                let is_apart = !candidate.content().is_one_state();
                self.apart.insert(place.path.clone(), (state, is_apart));
                is_apart
            }
        }
    }

    /// Looks at one place, for what is not committed yet.
    fn observe(&mut self, place: &Place, facts: &Facts<'_>, look: &mut Look) -> Option<WriteStage> {
        let state = self.state_to_judge(place, facts, look)?;
        let content = state.candidate.content();
        let wholeness = self.wholeness(&state, &content, look)?;
        let owner = self.owner(&state, &content.recognised, facts);
        self.learn(&state, &content.recognised, owner.as_ref(), facts.step_slack);
        let is_own = owner.as_ref().is_none_or(|owner| owner.shown_by().is_some());
        let seen = state.observation(wholeness, facts);
        let known = self.known.get_mut(&place.path).expect("it was just made");
        match known.answer(&seen) {
            Answer::Complete { because } => self.complete(state, content, owner, because, facts, look),
            Answer::Torn { .. } if !is_own => {
                known.not_own = Some(state.fingerprint);
                None
            }
            Answer::Torn { what } => {
                known.is_done(&state.candidate, self.clock.now().as_nanos());
                let why = format!("it is not whole: {what}");
                look.not_adopted.push(NotAdopted { path: state.shown, why });
                None
            }
            // Nothing of the attempt's waits for what others write.
            Answer::Wait { .. } if !is_own => None,
            Answer::Wait { .. } => {
                look.is_waiting = true;
                let order = state.order(content.recognised.step);
                known.is_awaited(&seen).then_some(WriteStage::Settling(order))
            }
            Answer::Gone => None,
        }
    }

    /// The state of a place where it is to be judged: one that is neither done with, nor never committed, nor known to be another's.
    fn state_to_judge(&mut self, place: &Place, facts: &Facts<'_>, look: &mut Look) -> Option<WrittenState> {
        let (path, quiet_ns) = (place.path.as_path(), self.spec.quiet_ns);
        let looked_ns = self.clock.now().as_nanos();
        let known = self.known.entry(path.to_owned()).or_insert_with(|| PathRecord::new(quiet_ns, 0));
        let shown = self.spec.patterns.shown(path);
        let candidate = match Candidate::of(place) {
            Ok(candidate) => candidate?,
            Err(error) => {
                known.refuse(shown, error.to_string(), look);
                return None;
            }
        };
        let fingerprint = candidate.fingerprint()?;
        known.is_seen(fingerprint, looked_ns);
        if known.done == Some(fingerprint) {
            return None;
        }
        let mixed = match compared(&known.done_files, candidate.files()) {
            StateChange::New => None,
            StateChange::Known => return None,
            StateChange::Added if known.done.is_some() => {
                known.is_done(&candidate, self.clock.now().as_nanos());
                return None;
            }
            StateChange::Added => Some("a file of it is that of a save before".to_owned()),
            StateChange::Mixed(what) => Some(what),
        };
        if let Some(why) = never_committed(&candidate) {
            known.refuse(shown, why, look);
            return None;
        }
        let modified_ns = candidate.modified_ns();
        let real_paths: Vec<PathBuf> = place.paths().map(|path| real_path(&path)).collect();
        let reported = real_paths.iter().find_map(|path| facts.saves.reported(path, modified_ns));
        if known.not_own == Some(fingerprint) && reported.is_none() {
            return None;
        }
        let reached = (facts.step_when_written)(modified_ns);
        Some(WrittenState {
            shown,
            candidate,
            fingerprint,
            modified_ns,
            real_paths,
            reported,
            reached,
            mixed,
        })
    }

    /// Whether the state is whole, by its content and by the files that it should have. None: it cannot be looked into.
    fn wholeness(&mut self, state: &WrittenState, content: &Content, look: &mut Look) -> Option<Wholeness> {
        let known = self.known.get_mut(&state.candidate.path).expect("it was just made");
        let wholeness = match content.wholeness(&state.candidate) {
            Ok(wholeness) => wholeness,
            Err(why) => {
                known.refuse(state.shown.clone(), why, look);
                return None;
            }
        };
        known.refused = None;
        let missing = || self.families.missing(&state.shown, &state.candidate.beside);
        let lacks = state.mixed.clone().or_else(missing);
        Some(match lacks {
            Some(what) if !matches!(wholeness, Wholeness::Torn { .. }) => Wholeness::Unfinished { what },
            _ => wholeness,
        })
    }

    /// What follows for a state that is complete: it is to be committed, is looked at once more, or is not the attempt's.
    fn complete(
        &mut self,
        state: WrittenState,
        content: Content,
        owner: Option<Owner>,
        because: Because,
        facts: &Facts<'_>,
        look: &mut Look,
    ) -> Option<WriteStage> {
        let Content { recognised, parts, .. } = content;
        // The model of a state that was cut off.
        if self.spec.patterns.is_detecting() && !holds_a_training(&recognised) {
            return None;
        }
        let known = self.known.get_mut(&state.candidate.path).expect("it was just made");
        let is_own = owner.as_ref().is_none_or(|owner| owner.shown_by().is_some());
        // Who wrote is looked at from time to time: what speaks for the attempt may be seen only after the file.
        let is_doubted = !is_own && known.doubted != Some(state.fingerprint) && !facts.writers_ended;
        let Some(owner) = owner.filter(|_| !is_doubted) else {
            known.doubted = Some(state.fingerprint).filter(|_| !is_own);
            look.is_waiting = true;
            return Some(WriteStage::Settling(state.order(recognised.step)));
        };
        let Some(shown_by) = owner.shown_by() else {
            known.not_own = Some(state.fingerprint);
            let is_others = matches!(owner, Owner::Other { .. });
            let why = owner.reason().unwrap_or_default();
            look.not_own.push(NotOwn { path: state.shown, step: recognised.step, is_others, why });
            return None;
        };
        let (modified_ns, reached) = (state.modified_ns, state.reached);
        let (step, step_origin) = step_of(&recognised, state.reported.flatten(), || {
            let earliest = (facts.step_when_written)(modified_ns.saturating_sub(2 * TICK_NS));
            let named = named_in_tick(&state.candidate.name, earliest, reached);
            named.or_else(|| self.regular_step(modified_ns, facts)).or(reached)
        });
        let reached = (facts.step_when_written)(modified_ns.saturating_add(SOON_NS - TICK_NS));
        let candidate = state.candidate;
        let one = Complete { candidate, recognised, parts, because, step, step_origin, reached, shown_by };
        Some(WriteStage::Complete(Box::new(one)))
    }

    /// The step of a save that is one of several at equal distances. A script may save a step right before it records it.
    fn regular_step(&self, modified_ns: i64, facts: &Facts<'_>) -> Option<Step> {
        let certain = (facts.step_when_written)(modified_ns.saturating_sub(TICK_NS))?;
        let later = (facts.step_when_written)(modified_ns.saturating_add(SOON_NS))?;
        regular_in_window(&(certain..=later), &Commits::of(&self.spec.checkpoint_root).steps())
    }

    /// Whose it is, by what is known of who wrote it: of several files each must be the attempt's. None: it has to be looked at once more.
    fn owner(&self, state: &WrittenState, recognised: &Recognised, facts: &Facts<'_>) -> Option<Owner> {
        let WrittenState { candidate, reached, .. } = state;
        let known = self.known.get(&candidate.path);
        let (since_ns, finished_ns) = known.map_or((0, 0), |known| (known.since_ns, known.finished_ns));
        let (is_named, reported) = (!self.spec.patterns.is_detecting(), state.reported.is_some());
        let step = recognised.step.filter(|_| self.steps_agree);
        let beyond = step.and_then(|step| beyond(step, *reached, facts.step_slack));
        let judge = |files: &[WrittenFile]| {
            let WriterEvidence { kernel, open, company, less } = (facts.writers)(files, since_ns);
            owner(&Evidence { reported, kernel, open, company, less, beyond, is_named })
        };
        let mut written = candidate.written();
        written.iter_mut().for_each(|file| file.since_ns = finished_ns);
        if candidate.beside.is_empty() {
            return judge(&written);
        }
        owner_of_all(&written.iter().map(|file| judge(slice::from_ref(file))).collect::<Vec<_>>())
    }

    /// Remembers what is the attempt's own, and whether its steps are those that it prints.
    fn learn(&mut self, state: &WrittenState, recognised: &Recognised, owner: Option<&Owner>, slack: Step) {
        let Some(owner) = owner else { return };
        let (candidate, shown) = (&state.candidate, state.shown.clone());
        match owner.shown_by().filter(|_| owner.is_seen()) {
            Some(by) => self.own.put(shown, by, candidate),
            None => self.own.drop_changed(&shown, candidate),
        }
        let is_certain = matches!(owner.shown_by(), Some(ShownBy::Report | ShownBy::Kernel | ShownBy::Open));
        if let Some((step, reached)) = recognised.step.zip(state.reached).filter(|_| is_certain) {
            let is_near = beyond(step, Some(reached), slack).is_none();
            self.steps_agree = is_near && step.saturating_mul(2) >= reached;
        }
    }

    /// Commits it. A break: it was interrupted.
    fn commit(&mut self, complete: Complete, facts: &Facts<'_>, look: &mut Look) -> ControlFlow<()> {
        let order = complete.order();
        let files = same_files(&complete.candidate);
        if self.committed.contains(&files) || self.is_copy(&complete.candidate, facts) {
            // A further name, or a copy: the same checkpoint.
            let at_ns = self.clock.now().as_nanos();
            let known = self.known.get_mut(&complete.candidate.path).expect("it was observed");
            known.is_done(&complete.candidate, at_ns);
            return ControlFlow::Continue(());
        }
        let saved = self.save(&complete, facts);
        let Complete { candidate, recognised, because, step_origin, shown_by, .. } = complete;
        let at_ns = self.clock.now().as_nanos();
        let shown = self.spec.patterns.shown(&candidate.path);
        let layout = recognised.layout.as_str();
        let known = self.known.get_mut(&candidate.path).expect("it was observed");
        match saved {
            Ok(commit) => {
                known.is_done(&candidate, at_ns);
                known.awaited_looks = 0;
                self.newest = Some(order);
                self.families.put(&shown, &candidate.beside);
                self.committed.truncate(COMMITTED_MAX - 1);
                self.committed.push_front(files);
                let beside = candidate.beside;
                look.adopted.push(Adopted {
                    commit,
                    path: shown,
                    beside,
                    layout,
                    because,
                    step_origin,
                    shown_by,
                });
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
                known.is_done(&candidate, at_ns);
                look.not_adopted.push(NotAdopted { path: shown, why: why(&error) });
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether one of the last commits has the same bytes, from another path.
    fn is_copy(&self, candidate: &Candidate, facts: &Facts<'_>) -> bool {
        let commits = Commits::of(&self.spec.checkpoint_root);
        let may_continue = || !(facts.is_interrupted)();
        let copied = commits.with_same_bytes(candidate, &self.spec.patterns, &may_continue).is_some();
        // What was compared is still there.
        let again = || Candidate::of(&candidate.at_place()).ok().flatten();
        copied && again().is_some_and(|again| again.fingerprint() == candidate.fingerprint())
    }

    fn save(&mut self, complete: &Complete, facts: &Facts<'_>) -> Result<Commit, CheckpointError> {
        let candidate = &complete.candidate;
        if let Some(why) = self.refusal(complete) {
            return Err(CheckpointError::state(why));
        }
        let unless_interrupted = || match (facts.is_interrupted)() {
            true => Err(CheckpointError::state("the copy was interrupted")),
            false => Ok(()),
        };
        unless_interrupted()?;
        let (origin, sources) = origin_of(complete, &self.spec.patterns);
        let has_room = self.has_room(candidate);
        let keep = default_beside(&not_adopted(&self.spec.checkpoint_root));
        // What spoiled the newest may be found late: older ones stay until the attempt is sealed, where there is room.
        let spaces = has_room && keep.is_some();
        let is_losing = has_room && self.lost.are_new();
        let root = self.root()?;
        root.keep_by_default(keep);
        root.space_out(spaces);
        // What is left at the end is committed at once, before it is known what of it is safe; then it is deleted
        // where the attempt is sealed.
        root.hold_retention(facts.writers_ended || is_losing);
        let saved = root.save(complete.step, &[], |writer| {
            for (file, (path, kind)) in origin.files.iter().zip(&sources) {
                let opened = open(path)?;
                let source = ForeignFile { name: &file.name, kind: *kind, path, file: &opened };
                writer.copy_of(&source, &mut |_| unless_interrupted())?;
            }
            // Every file was whole for itself; together they are what was judged only if none came, went or changed.
            let again = Candidate::of(&candidate.at_place()).ok().flatten();
            if again.and_then(|again| again.fingerprint()) != candidate.fingerprint() {
                return Err(CheckpointError::SourceChanged { path: candidate.path.clone() });
            }
            writer.file(ORIGIN_FILE_NAME, Kind::Other, &origin.to_bytes())
        });
        // At the end the values are looked at where it is sealed.
        if saved.is_ok() && !facts.writers_ended {
            self.lost.take(lost_in(&sources));
        }
        saved
    }

    /// Whether the disk has room for more copies than needed.
    fn has_room(&self, candidate: &Candidate) -> bool {
        let folder = self.spec.checkpoint_root.ancestors().find(|folder| folder.exists());
        let free = folder.and_then(free_bytes);
        free.is_none_or(|free| free / FREE_PER_BYTE >= candidate.bytes_on_disk())
    }

    /// Why a checkpoint that could be committed should not be.
    fn refusal(&self, complete: &Complete) -> Option<String> {
        if self.saves_through_trackway() {
            return Some("the script saves through Trackway too, and one log cannot have both".into());
        }
        if is_optimizer_alone(&complete.recognised) {
            return Some(OPTIMIZER_ALONE.into());
        }
        if let Some(newest) = self.newest.as_ref().filter(|newest| complete.order().is_older(newest)) {
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
            root.compare_tensors(same_tensors);
            self.root = Some(root);
        }
        Ok(self.root.as_mut().expect("it was opened"))
    }
}
