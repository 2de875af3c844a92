//! A model of one root on a local disk: writers that replace each other, a housekeeper that deletes, somebody who
//! pins. Every action is one I/O step of one of them, so that a kill, a power cut, a failed sync or anybody else's
//! step may come between any two.
//!
//! What a disk may do: a name or bytes that were not synced are lost by a power cut or not, each by itself. A process
//! that was replaced may go on (a zombie).

use std::hash::{DefaultHasher, Hash, Hasher as _};

use stateright::{Model, Property};

use crate::explore::{assert_fails, assert_holds, extra_bound};

/// How many commits of the chain are kept.
const KEEP: usize = 2;

/// The number of an entry; the first is 1.
type Number = u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Body {
    Claim { epoch: u8 },
    Begin { folder: u8 },
    Commit { folder: u8, epoch: u8, parent: Option<Number> },
    Suspect { commit: Number },
    Pin { commit: Number },
    Retire { commit: Number },
    Swept { commit: Number },
    Abandon { folder: u8 },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Entry {
    body: Body,
    /// A digest of it and of all entries that its writer had read when it decided.
    digest: u64,
    /// Whether its name was synced.
    durable: bool,
}

/// What is in the folder of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bytes {
    Absent,
    /// Some of it: a save that was killed, a power cut, a deletion that has begun.
    Partial,
    /// All of it; a power cut may lose it.
    Written,
    /// Its bytes survive, its names may not.
    Synced,
    Durable,
    /// All of it, and a bit has flipped.
    Rotten,
}

impl Bytes {
    fn whole(self) -> bool {
        matches!(self, Self::Written | Self::Synced | Self::Durable)
    }
}

/// The I/O steps of adding an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Io {
    /// Reads to the end and decides.
    Read,
    /// Links the entry to the next number.
    Link(Body),
    /// Syncs the folder of the log.
    Sync(Body),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Task {
    /// Not started yet.
    Absent,
    Claim(Io),
    /// Reads the log and verifies what it may go on from.
    Resume,
    Mark(Number, Io),
    Begin(Io),
    WriteFirst,
    WriteRest,
    SyncBytes,
    SyncNames,
    Commit(Io),
    // The housekeeper's and the one's who pins:
    Idle,
    Retire(Number, Io),
    DeleteFirst(Number),
    DeleteRest(Number),
    Swept(Number, Io),
    Abandon(u8, Io),
    DeleteOrphan(u8),
    Pin(Number, Io),
    /// Dead, fenced or done.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Actor {
    task: Task,
    /// How far it has read the log.
    known: u8,
    /// For writers.
    parent: Option<Number>,
    saves: u8,
}

impl Actor {
    fn new(task: Task) -> Self {
        Self { task, known: 0, parent: None, saves: 0 }
    }

    fn stop(&mut self) {
        *self = Self::new(Task::Stopped);
    }
}

/// How many faults may still happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Faults {
    kills: u8,
    power_cuts: u8,
    failed_syncs: u8,
    rots: u8,
    /// A file cannot be read just now.
    unreadable: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// `None`: a power cut lost the name.
    log: Vec<Option<Entry>>,
    folders: Vec<Bytes>,
    /// Writers by epoch, then the housekeeper, then the one who pins.
    actors: Vec<Actor>,
    /// Folders whose save was told to have succeeded.
    acknowledged: Vec<u8>,
    faults: Faults,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Step(usize, Task),
    /// The link was made and the sync behind it fails: the answer is unknown.
    SyncFails(usize),
    Kill(usize),
    /// Bit n of `names`: the n-th name that was not synced stays. `bytes`: so do bytes.
    PowerCut {
        names: u8,
        bytes: bool,
    },
    Rot(u8),
    /// A writer resumes and cannot read so many of the newest candidates just now, which says nothing about them.
    Unreadable(usize, u8),
    PinStart(Number),
}

/// What a writer obeys. Each can be switched off to see that a property notices.
#[derive(Debug, Clone, Copy)]
struct Rules {
    bytes_synced_before_commit: bool,
    names_synced_before_commit: bool,
    commit_behind_data: bool,
    fence_checked: bool,
    /// What was read is made durable before the next number is linked.
    settled_before_link: bool,
    /// What was read is made durable before something is deleted on its word.
    settled_before_delete: bool,
    /// A create counts only once its sync succeeded, also when the entry is found by reading back.
    acknowledged_when_synced: bool,
    /// Who finds the number taken reads and decides again.
    decided_again: bool,
    retired_before_delete: bool,
    two_verified_kept: bool,
    pins_respected: bool,
    /// Nothing is retired while the newest epoch has no commit: its writer goes on from one that is not in the log yet.
    newest_epoch_awaited: bool,
    /// Only a begin of an older epoch is an orphan.
    orphans_of_older_epochs: bool,
    /// A begin that was given up is never committed.
    abandoned_seen: bool,
}

const SOUND: Rules = Rules {
    bytes_synced_before_commit: true,
    names_synced_before_commit: true,
    commit_behind_data: true,
    fence_checked: true,
    settled_before_link: true,
    settled_before_delete: true,
    acknowledged_when_synced: true,
    decided_again: true,
    retired_before_delete: true,
    two_verified_kept: true,
    pins_respected: true,
    newest_epoch_awaited: true,
    orphans_of_older_epochs: true,
    abandoned_seen: true,
};

#[derive(Debug, Clone)]
struct Disk {
    rules: Rules,
    /// Saves by writers of epoch 1, 2, ….
    saves: Vec<u8>,
    /// How many checkpoints epoch 1 has committed when the exploration begins.
    earlier: u8,
    housekeeper: bool,
    pinner: bool,
    faults: Faults,
}

/// What the log says, up to some number.
struct History<'a>(&'a [Option<Entry>]);

#[derive(Debug, Clone, Copy)]
struct Commit {
    number: Number,
    folder: u8,
    epoch: u8,
    parent: Option<Number>,
}

impl<'a> History<'a> {
    fn bodies(&self) -> impl Iterator<Item = (Number, Body)> + use<'a> {
        (1..).zip(self.0.iter().map_while(|entry| entry.as_ref().map(|entry| entry.body)))
    }

    fn digest_with(&self, body: Body) -> u64 {
        let mut hasher = DefaultHasher::new();
        let before = self.0.last().and_then(Option::as_ref).map_or(0, |entry| entry.digest);
        (before, body).hash(&mut hasher);
        hasher.finish()
    }

    fn has(&self, body: Body) -> bool {
        self.bodies().any(|(_, found)| found == body)
    }

    fn epoch(&self) -> u8 {
        let epoch = |body| if let Body::Claim { epoch } = body { epoch } else { 0 };
        self.bodies().map(|(_, body)| epoch(body)).max().unwrap_or(0)
    }

    fn commits(&self) -> impl Iterator<Item = Commit> + use<'a> {
        self.bodies().filter_map(|(number, body)| match body {
            Body::Commit { folder, epoch, parent } => Some(Commit { number, folder, epoch, parent }),
            _ => None,
        })
    }

    fn commit(&self, number: Number) -> Option<Commit> {
        self.commits().find(|commit| commit.number == number)
    }

    fn retired(&self, commit: Number) -> bool {
        self.has(Body::Retire { commit })
    }

    /// From the newest commit of the newest epoch along the parents, but for those suspect or retired.
    fn chain(&self) -> Vec<Commit> {
        let mut next = self.commits().max_by_key(|commit| (commit.epoch, commit.number));
        let mut chain = Vec::new();
        while let Some(commit) = next {
            chain.push(commit);
            next = commit.parent.and_then(|parent| self.commit(parent));
        }
        chain.retain(|commit| {
            !self.retired(commit.number) && !self.has(Body::Suspect { commit: commit.number })
        });
        chain
    }
}

impl State {
    fn readable(&self) -> usize {
        self.log.iter().take_while(|entry| entry.is_some()).count()
    }

    fn history(&self, known: u8) -> History<'_> {
        History(&self.log[..usize::from(known)])
    }

    fn now(&self) -> History<'_> {
        History(&self.log[..self.readable()])
    }

    fn settle(&mut self, known: u8) {
        self.log.iter_mut().take(usize::from(known)).flatten().for_each(|entry| entry.durable = true);
    }
}

impl Disk {
    fn writers(&self) -> usize {
        self.saves.len()
    }

    fn housekeeper_index(&self) -> usize {
        self.writers()
    }

    /// The folder of a writer's save; never used again.
    fn folder(&self, writer: usize, save: u8) -> u8 {
        self.saves[..writer].iter().sum::<u8>() + save
    }

    /// One I/O step of adding an entry. `None`: goes on; `Some(true)`: the entry stands; `Some(false)`: it never will.
    fn append(
        &self,
        state: &mut State,
        who: usize,
        io: &mut Io,
        decide: impl Fn(&State, &History<'_>) -> Option<Body>,
    ) -> Option<bool> {
        match *io {
            Io::Read => {
                let known = state.readable() as u8;
                state.actors[who].known = known;
                match decide(state, &state.history(known)) {
                    None => return Some(false),
                    Some(body) => *io = Io::Link(body),
                }
                if self.rules.settled_before_link {
                    state.settle(known);
                }
            }
            Io::Link(body) => {
                let index = usize::from(state.actors[who].known);
                let taken = state.log.get(index).is_some_and(Option::is_some);
                if taken && self.rules.decided_again {
                    *io = Io::Read;
                } else if taken {
                    state.actors[who].known += 1;
                } else {
                    let digest = state.history(index as u8).digest_with(body);
                    let entry = Some(Entry { body, digest, durable: false });
                    if index < state.log.len() {
                        state.log[index] = entry
                    } else {
                        state.log.push(entry)
                    }
                    *io = Io::Sync(body);
                }
            }
            Io::Sync(_) => {
                state.log.iter_mut().flatten().for_each(|entry| entry.durable = true);
                state.actors[who].known = state.readable() as u8;
                return Some(true);
            }
        }
        None
    }

    /// Adds an entry for a writer, who stops when fenced.
    fn append_as_writer(&self, state: &mut State, who: usize, io: &mut Io, body: Body) -> Option<bool> {
        let epoch = who as u8 + 1;
        let Rules { fence_checked, abandoned_seen, .. } = self.rules;
        let done = self.append(state, who, io, |_, history| {
            let fenced = fence_checked && history.epoch() > epoch;
            let abandoned = abandoned_seen
                && matches!(body, Body::Commit { folder, .. } if history.has(Body::Abandon { folder }));
            (!fenced && !abandoned).then_some(body)
        });
        if done == Some(false) {
            state.actors[who].stop();
        }
        done.filter(|stands| *stands)
    }

    fn step(&self, state: &mut State, who: usize) {
        let task = state.actors[who].task;
        let next = match task {
            Task::Absent => Task::Claim(Io::Read),
            Task::Stopped => return,
            Task::Idle => self.find_work(state),
            Task::Retire(..)
            | Task::DeleteFirst(_)
            | Task::DeleteRest(_)
            | Task::Swept(..)
            | Task::Abandon(..)
            | Task::DeleteOrphan(_) => self.keep_house(state, who, task),
            Task::Pin(commit, io) => self.pin(state, who, commit, io),
            _ => self.write(state, who, task),
        };
        if state.actors[who].task != Task::Stopped {
            state.actors[who].task = next;
        }
    }

    fn write(&self, state: &mut State, who: usize, task: Task) -> Task {
        let epoch = who as u8 + 1;
        let Actor { parent, saves, .. } = state.actors[who];
        let folder = self.folder(who, saves);
        let index = usize::from(folder);
        match task {
            Task::Claim(mut io) => match self.append_as_writer(state, who, &mut io, Body::Claim { epoch }) {
                Some(_) => Task::Resume,
                None => Task::Claim(io),
            },
            Task::Resume => self.resume(state, who, 0),
            Task::Mark(commit, mut io) => {
                match self.append_as_writer(state, who, &mut io, Body::Suspect { commit }) {
                    Some(_) => Task::Resume,
                    None => Task::Mark(commit, io),
                }
            }
            Task::Begin(mut io) => match self.append_as_writer(state, who, &mut io, Body::Begin { folder }) {
                Some(_) if self.rules.commit_behind_data => Task::WriteFirst,
                Some(_) => Task::Commit(Io::Read),
                None => Task::Begin(io),
            },
            Task::WriteFirst => {
                state.folders[index] = Bytes::Partial;
                Task::WriteRest
            }
            Task::WriteRest => {
                state.folders[index] = Bytes::Written;
                if self.rules.bytes_synced_before_commit { Task::SyncBytes } else { Task::Commit(Io::Read) }
            }
            Task::SyncBytes => {
                if state.folders[index] == Bytes::Written {
                    state.folders[index] = Bytes::Synced;
                }
                if self.rules.names_synced_before_commit { Task::SyncNames } else { Task::Commit(Io::Read) }
            }
            Task::SyncNames => {
                if state.folders[index] == Bytes::Synced {
                    state.folders[index] = Bytes::Durable;
                }
                if self.rules.commit_behind_data {
                    Task::Commit(Io::Read)
                } else {
                    self.next_save(state, who)
                }
            }
            Task::Commit(mut io) => {
                let body = Body::Commit { folder, epoch, parent };
                match self.append_as_writer(state, who, &mut io, body) {
                    Some(_) => self.acknowledge(state, who, folder),
                    None => Task::Commit(io),
                }
            }
            other => unreachable!("{other:?} is no writer's"),
        }
    }

    fn acknowledge(&self, state: &mut State, who: usize, folder: u8) -> Task {
        if !self.rules.commit_behind_data {
            return Task::WriteFirst;
        }
        state.acknowledged.push(folder);
        state.acknowledged.sort_unstable();
        let newest = state.now().commits().find(|commit| commit.folder == folder).map(|commit| commit.number);
        state.actors[who].parent = newest;
        self.next_save(state, who)
    }

    fn next_save(&self, state: &mut State, who: usize) -> Task {
        state.actors[who].saves += 1;
        if state.actors[who].saves == self.saves[who] { Task::Stopped } else { Task::Begin(Io::Read) }
    }

    fn resume(&self, state: &mut State, who: usize, unreadable: u8) -> Task {
        let known = state.readable() as u8;
        state.actors[who].known = known;
        let chain = state.history(known).chain();
        let mut candidates = chain.iter().skip(usize::from(unreadable));
        let Some(candidate) = candidates.next() else {
            let nothing_committed = state.history(known).commits().next().is_none();
            state.actors[who].parent = None;
            return if nothing_committed { Task::Begin(Io::Read) } else { Task::Stopped };
        };
        if !state.folders[usize::from(candidate.folder)].whole() {
            return Task::Mark(candidate.number, Io::Read);
        }
        state.actors[who].parent = Some(candidate.number);
        if self.saves[who] == 0 { Task::Stopped } else { Task::Begin(Io::Read) }
    }

    /// What the housekeeper may retire now, on what `history` says and what it finds on the disk.
    fn retirable(&self, state: &State, history: &History<'_>) -> Option<Number> {
        let chain = history.chain();
        let head_epoch = chain.first().map_or(0, |commit| commit.epoch);
        if self.rules.newest_epoch_awaited && head_epoch != history.epoch() {
            return None;
        }
        let verified = |commit: &&Commit| state.folders[usize::from(commit.folder)].whole();
        let kept = if self.rules.two_verified_kept { KEEP } else { 1 };
        if chain.iter().take(kept).filter(verified).count() < kept {
            return None;
        }
        let pinned = |commit: Number| self.rules.pins_respected && history.has(Body::Pin { commit });
        let kept: Vec<_> = chain.iter().take(kept).map(|commit| commit.number).collect();
        let gone = |number| kept.contains(&number) || pinned(number) || history.retired(number);
        history.commits().map(|commit| commit.number).find(|number| !gone(*number))
    }

    fn orphan(&self, history: &History<'_>) -> Option<u8> {
        let newest_epoch = history.epoch();
        let is_orphan = |folder: &u8| {
            let older = self.epoch_of(*folder) < newest_epoch || !self.rules.orphans_of_older_epochs;
            let committed = history.commits().any(|commit| commit.folder == *folder);
            older && !committed && !history.has(Body::Abandon { folder: *folder })
        };
        history.bodies().find_map(|(_, body)| match body {
            Body::Begin { folder } if is_orphan(&folder) => Some(folder),
            _ => None,
        })
    }

    fn epoch_of(&self, folder: u8) -> u8 {
        (0..self.writers()).filter(|writer| self.folder(*writer, 0) <= folder).count() as u8
    }

    fn find_work(&self, state: &mut State) -> Task {
        let history = state.now();
        let unswept = history.bodies().find_map(|(_, body)| match body {
            Body::Retire { commit } if !history.has(Body::Swept { commit }) => Some(commit),
            _ => None,
        });
        if let Some(commit) = unswept {
            if self.rules.settled_before_delete {
                state.settle(state.readable() as u8);
            }
            return Task::DeleteFirst(commit);
        }
        match (self.retirable(state, &history), self.orphan(&history)) {
            (Some(commit), _) if self.rules.retired_before_delete => Task::Retire(commit, Io::Read),
            (Some(commit), _) => Task::DeleteFirst(commit),
            (None, Some(folder)) => Task::Abandon(folder, Io::Read),
            (None, None) => Task::Idle,
        }
    }

    fn keep_house(&self, state: &mut State, who: usize, task: Task) -> Task {
        let folder_of =
            |state: &State, commit| state.now().commit(commit).map(|commit| usize::from(commit.folder));
        match task {
            Task::Retire(commit, mut io) => {
                let decide = |state: &State, history: &History<'_>| {
                    (self.retirable(state, history) == Some(commit)).then_some(Body::Retire { commit })
                };
                match self.append(state, who, &mut io, decide) {
                    Some(true) => Task::DeleteFirst(commit),
                    Some(false) => Task::Idle,
                    None => Task::Retire(commit, io),
                }
            }
            Task::DeleteFirst(commit) => {
                if let Some(folder) = folder_of(state, commit)
                    && state.folders[folder] != Bytes::Absent
                {
                    state.folders[folder] = Bytes::Partial;
                }
                Task::DeleteRest(commit)
            }
            Task::DeleteRest(commit) => {
                if let Some(folder) = folder_of(state, commit) {
                    state.folders[folder] = Bytes::Absent;
                }
                Task::Swept(commit, Io::Read)
            }
            Task::Swept(commit, mut io) => {
                let body = Body::Swept { commit };
                match self.append(state, who, &mut io, |_, history| (!history.has(body)).then_some(body)) {
                    Some(_) => Task::Idle,
                    None => Task::Swept(commit, io),
                }
            }
            Task::Abandon(folder, mut io) => {
                let decide = |_: &State, history: &History<'_>| {
                    (self.orphan(history) == Some(folder)).then_some(Body::Abandon { folder })
                };
                match self.append(state, who, &mut io, decide) {
                    Some(true) => Task::DeleteOrphan(folder),
                    Some(false) => Task::Idle,
                    None => Task::Abandon(folder, io),
                }
            }
            Task::DeleteOrphan(folder) => {
                state.folders[usize::from(folder)] = Bytes::Absent;
                Task::Idle
            }
            other => unreachable!("{other:?} is no housekeeper's"),
        }
    }

    fn pin(&self, state: &mut State, who: usize, commit: Number, mut io: Io) -> Task {
        let decide =
            |_: &State, history: &History<'_>| (!history.retired(commit)).then_some(Body::Pin { commit });
        match self.append(state, who, &mut io, decide) {
            Some(_) => Task::Stopped,
            None => Task::Pin(commit, io),
        }
    }

    fn sync_fails(&self, state: &mut State, who: usize) {
        // What a storage says when nobody knows. Reading back finds the own entry; that says nothing of the next
        // power cut, so the create is repeated until its sync succeeds.
        if !self.rules.acknowledged_when_synced {
            let durable: Vec<_> = state.log.iter().flatten().map(|entry| entry.durable).collect();
            self.step(state, who);
            state.log.iter_mut().flatten().zip(durable).for_each(|(entry, durable)| entry.durable = durable);
        }
    }

    fn power_cut(&self, state: &mut State, mut names: u8, bytes: bool) {
        for slot in &mut state.log {
            if slot.as_ref().is_some_and(|entry| !entry.durable) {
                let kept = names & 1 == 1;
                names >>= 1;
                *slot = slot.take().filter(|_| kept);
            }
            slot.iter_mut().for_each(|entry| entry.durable = true);
        }
        while state.log.last() == Some(&None) {
            state.log.pop();
        }
        for folder in &mut state.folders {
            *folder = match *folder {
                Bytes::Written | Bytes::Synced if bytes => Bytes::Durable,
                Bytes::Written => Bytes::Partial,
                Bytes::Synced => Bytes::Absent,
                other => other,
            };
        }
        let keepers = self.writers();
        for (index, actor) in
            state.actors.iter_mut().enumerate().filter(|(_, actor)| actor.task != Task::Absent)
        {
            let task = if index == keepers && self.housekeeper { Task::Idle } else { Task::Stopped };
            *actor = Actor::new(task);
        }
    }
}

impl Model for Disk {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let folders = usize::from(self.saves.iter().sum::<u8>());
        let mut actors = vec![Actor::new(Task::Absent); self.writers()];
        actors.push(Actor::new(if self.housekeeper { Task::Idle } else { Task::Stopped }));
        actors.push(Actor::new(if self.pinner { Task::Idle } else { Task::Stopped }));
        let mut state = State {
            log: Vec::new(),
            folders: vec![Bytes::Absent; folders],
            actors,
            acknowledged: Vec::new(),
            faults: self.faults,
        };
        while state.acknowledged.len() < usize::from(self.earlier) {
            self.step(&mut state, 0);
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let busy = |actor: &Actor| !matches!(actor.task, Task::Stopped | Task::Absent | Task::Idle);
        for (who, actor) in state.actors.iter().enumerate() {
            let is_pinner = who == self.writers() + 1;
            if actor.task == Task::Stopped {
                continue;
            }
            if is_pinner && actor.task == Task::Idle {
                let history = state.now();
                let live = history.commits().filter(|commit| !history.retired(commit.number));
                actions.extend(live.map(|commit| Action::PinStart(commit.number)));
                continue;
            }
            actions.push(Action::Step(who, actor.task));
            let syncing = matches!(
                actor.task,
                Task::Claim(Io::Sync(_))
                    | Task::Commit(Io::Sync(_))
                    | Task::Retire(_, Io::Sync(_))
                    | Task::Pin(_, Io::Sync(_))
            );
            if syncing && state.faults.failed_syncs > 0 {
                actions.push(Action::SyncFails(who));
            }
            if busy(actor) && state.faults.kills > 0 {
                actions.push(Action::Kill(who));
            }
            if actor.task == Task::Resume && state.faults.unreadable > 0 {
                actions.extend([1, 2].map(|count| Action::Unreadable(who, count)));
            }
        }
        if state.faults.power_cuts > 0 {
            let names = state.log.iter().flatten().filter(|entry| !entry.durable).count();
            for names in 0..1 << names {
                actions.extend([false, true].map(|bytes| Action::PowerCut { names, bytes }));
            }
        }
        if state.faults.rots > 0 {
            let durable = (0..).zip(&state.folders).filter(|(_, bytes)| **bytes == Bytes::Durable);
            actions.extend(durable.map(|(folder, _)| Action::Rot(folder)));
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Step(who, _) => self.step(&mut state, who),
            Action::PinStart(commit) => state.actors[self.writers() + 1].task = Task::Pin(commit, Io::Read),
            Action::SyncFails(who) => {
                state.faults.failed_syncs -= 1;
                self.sync_fails(&mut state, who);
            }
            Action::Kill(who) => {
                state.faults.kills -= 1;
                state.actors[who].stop();
                if who == self.housekeeper_index() {
                    state.actors[who].task = Task::Idle;
                }
            }
            Action::PowerCut { names, bytes } => {
                state.faults.power_cuts -= 1;
                self.power_cut(&mut state, names, bytes);
            }
            Action::Rot(folder) => {
                state.faults.rots -= 1;
                state.folders[usize::from(folder)] = Bytes::Rotten;
            }
            Action::Unreadable(who, count) => {
                state.faults.unreadable -= 1;
                state.actors[who].task = self.resume(&mut state, who, count);
            }
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("a commit that is not retired is whole", |_, state: &State| {
                let history = state.now();
                let intact = |commit: Commit| {
                    let bytes = state.folders[usize::from(commit.folder)];
                    bytes.whole() || bytes == Bytes::Rotten || history.retired(commit.number)
                };
                history.commits().all(intact)
            }),
            Property::always("what was acknowledged is in the log", |_, state: &State| {
                let history = state.now();
                state
                    .acknowledged
                    .iter()
                    .all(|folder| history.commits().any(|commit| commit.folder == *folder))
            }),
            Property::always("no commit behind the claim of a higher epoch", |_, state: &State| {
                let mut newest = 0;
                state.now().bodies().all(|(_, body)| match body {
                    Body::Claim { epoch } => {
                        newest = newest.max(epoch);
                        true
                    }
                    Body::Commit { epoch, .. } => epoch >= newest,
                    _ => true,
                })
            }),
            Property::always("every entry was decided on all before it", |_, state: &State| {
                let follows = |(index, entry): (usize, &Option<Entry>)| {
                    let before = History(&state.log[..index]);
                    entry.as_ref().is_none_or(|entry| entry.digest == before.digest_with(entry.body))
                };
                state.log[..state.readable()].iter().enumerate().all(follows)
            }),
            Property::always("nothing pinned is retired", |_, state: &State| {
                let history = state.now();
                history.bodies().all(|(_, body)| match body {
                    Body::Pin { commit } => !history.retired(commit),
                    _ => true,
                })
            }),
            Property::always("two are left wherever one was retired", |_, state: &State| {
                let history = state.now();
                let any_retired = history.bodies().any(|(_, body)| matches!(body, Body::Retire { .. }));
                let suspects =
                    history.bodies().filter(|(_, body)| matches!(body, Body::Suspect { .. })).count();
                !any_retired || history.chain().len() + suspects >= KEEP
            }),
            Property::always("one folder is committed once", |_, state: &State| {
                let history = state.now();
                history.commits().all(|one| {
                    history.commits().all(|other| one.number == other.number || one.folder != other.folder)
                })
            }),
            Property::sometimes("the last writer commits", |model: &Self, state: &State| {
                let last = model.writers() as u8;
                state.now().commits().any(|commit| commit.epoch == last)
            }),
        ];
        if self.housekeeper {
            properties.push(Property::sometimes("retired and swept", |_, state: &State| {
                state.now().bodies().any(|(_, body)| matches!(body, Body::Swept { .. }))
            }));
        }
        if self.pinner && self.housekeeper {
            properties.push(Property::sometimes(
                "a pin saves a commit that others of its age do not outlive",
                |_, state: &State| {
                    let history = state.now();
                    history.bodies().any(|(_, body)| match body {
                        Body::Pin { commit } => history
                            .commits()
                            .any(|other| other.number > commit && history.retired(other.number)),
                        _ => false,
                    })
                },
            ));
        }
        if self.faults.rots > 0 {
            properties.push(Property::sometimes("a resume falls back", |_, state: &State| {
                let history = state.now();
                history.commits().any(|commit| {
                    commit.epoch > 1
                        && commit
                            .parent
                            .is_some_and(|parent| history.has(Body::Suspect { commit: parent + 2 }))
                })
            }));
        }
        properties
    }
}

fn crashes(rules: Rules) -> Disk {
    let more = extra_bound();
    Disk {
        rules,
        saves: vec![1 + more, 1, 1],
        earlier: 0,
        housekeeper: false,
        pinner: false,
        faults: Faults { kills: 1 + more, power_cuts: 1 + more, failed_syncs: 1, ..Faults::default() },
    }
}

/// A writer that goes on while another replaces it and the housekeeper deletes.
fn retention(rules: Rules) -> Disk {
    let more = extra_bound();
    Disk {
        rules,
        saves: vec![4 + more, 1],
        earlier: 3,
        housekeeper: true,
        pinner: false,
        faults: Faults { unreadable: 1, kills: more, ..Faults::default() },
    }
}

/// A housekeeper that crashes, and a writer that comes after it.
fn deletion(rules: Rules) -> Disk {
    let more = extra_bound();
    Disk {
        rules,
        saves: vec![3, 1 + more],
        earlier: 3,
        housekeeper: true,
        pinner: false,
        faults: Faults { kills: 1, power_cuts: 1, ..Faults::default() },
    }
}

fn pins(rules: Rules) -> Disk {
    let more = extra_bound();
    Disk {
        rules,
        saves: vec![3 + more, 1],
        earlier: 3,
        housekeeper: true,
        pinner: true,
        faults: Faults { kills: more, ..Faults::default() },
    }
}

fn rot(rules: Rules) -> Disk {
    let more = extra_bound();
    Disk {
        rules,
        saves: vec![3, 2 + more],
        earlier: 3,
        housekeeper: true,
        pinner: false,
        faults: Faults { rots: 1, unreadable: 1, ..Faults::default() },
    }
}

/// Proves B1 to B3 of the protocol on a local disk, in every order of steps, with crashes between any two.
#[test]
fn the_protocol_on_a_disk_holds() {
    assert_holds("crashes", crashes(SOUND));
    assert_holds("retention", retention(SOUND));
    assert_holds("deletion", deletion(SOUND));
    assert_holds("pins", pins(SOUND));
    assert_holds("rot", rot(SOUND));
}

/// Proves that the properties can fail: each rule of the protocol, left out, breaks one.
#[test]
fn every_rule_on_a_disk_is_needed() {
    const WHOLE: &str = "a commit that is not retired is whole";
    assert_fails(
        "bytes are not synced",
        crashes(Rules { bytes_synced_before_commit: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "names are not synced",
        crashes(Rules { names_synced_before_commit: false, ..SOUND }),
        WHOLE,
    );
    assert_fails("commit before the data", crashes(Rules { commit_behind_data: false, ..SOUND }), WHOLE);
    assert_fails(
        "the fence is not checked",
        crashes(Rules { fence_checked: false, ..SOUND }),
        "no commit behind the claim of a higher epoch",
    );
    assert_fails(
        "the next number is linked before the last is durable",
        crashes(Rules { settled_before_link: false, ..SOUND }),
        "every entry was decided on all before it",
    );
    assert_fails(
        "found by reading back and not synced",
        crashes(Rules { acknowledged_when_synced: false, ..SOUND }),
        "what was acknowledged is in the log",
    );
    assert_fails(
        "deleted before it is retired",
        deletion(Rules { retired_before_delete: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "deleted on the word of an entry that is not durable",
        deletion(Rules { settled_before_delete: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "retired while a new epoch is on its way",
        retention(Rules { newest_epoch_awaited: false, ..SOUND }),
        "two are left wherever one was retired",
    );
    assert_fails(
        "one kept is enough",
        retention(Rules { two_verified_kept: false, ..SOUND }),
        "two are left wherever one was retired",
    );
    assert_fails(
        "orphans of the living are swept",
        retention(Rules { orphans_of_older_epochs: false, abandoned_seen: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "pins are passed over",
        pins(Rules { pins_respected: false, ..SOUND }),
        "nothing pinned is retired",
    );
    let hasty = Rules { decided_again: false, ..SOUND };
    assert_fails("pinned meanwhile", pins(hasty), "nothing pinned is retired");
    assert_fails("fenced meanwhile", crashes(hasty), "every entry was decided on all before it");
}
